"""The bundled surveys against their published counts."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from privrank import datasets

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = json.loads((ROOT / "tests/reference/btl.json").read_text(encoding="utf-8"))

# item1, item2: wins of item1, ties, wins of item2, missing.
UNIVERSITY = {
    ("London", "Paris"): (186, 26, 91, 0),
    ("London", "Milano"): (221, 26, 56, 0),
    ("Paris", "Milano"): (121, 32, 59, 91),
    ("London", "StGallen"): (208, 22, 73, 0),
    ("Paris", "StGallen"): (165, 19, 119, 0),
    ("Milano", "StGallen"): (135, 28, 140, 0),
    ("London", "Barcelona"): (217, 19, 67, 0),
    ("Paris", "Barcelona"): (157, 37, 109, 0),
    ("Milano", "Barcelona"): (104, 67, 132, 0),
    ("StGallen", "Barcelona"): (144, 25, 134, 0),
    ("London", "Stockholm"): (250, 19, 34, 0),
    ("Paris", "Stockholm"): (203, 30, 70, 0),
    ("Milano", "Stockholm"): (157, 46, 100, 0),
    ("StGallen", "Stockholm"): (155, 50, 98, 0),
    ("Barcelona", "Stockholm"): (172, 41, 90, 0),
}
IMMIGRATION = {
    ("crimRate", "position"): (53, 23, 12, 10),
    ("crimRate", "socBurd"): (34, 16, 38, 10),
    ("position", "socBurd"): (20, 21, 43, 14),
    ("crimRate", "culture"): (48, 19, 15, 16),
    ("position", "culture"): (31, 28, 21, 18),
    ("socBurd", "culture"): (50, 17, 14, 17),
}
STUDENTS = {
    "study": {"commerce": 111, "other": 192},
    "english": {"good": 222, "poor": 81},
    "french": {"good": 193, "poor": 110},
    "spanish": {"good": 40, "poor": 263},
    "italian": {"good": 49, "poor": 254},
    "work": {"no": 290, "yes": 13},
    "gender": {"female": 152, "male": 151},
    "intdegree": {"no": 193, "yes": 110},
}
SURVEYS = {
    "university": datasets.load_university(),
    "university_1998": datasets.load_university("1998"),
    "immigration": datasets.load_immigration(),
}


@pytest.fixture(params=list(SURVEYS))
def survey(request: pytest.FixtureRequest) -> datasets.Survey:
    return SURVEYS[request.param]


def counts(survey: datasets.Survey) -> dict[tuple[str, str], tuple[int, ...]]:
    """Wins, ties, losses and missing answers by pair, pairs in order of appearance."""
    groups = survey.comparisons.groupby(["item1", "item2"], sort=False, observed=True)["outcome"]
    return {
        (str(item1), str(item2)): (
            *(int(outcome.eq(value).sum()) for value in (1, 0, -1)),
            int(outcome.isna().sum()),
        )
        for (item1, item2), outcome in groups
    }


def net_wins(survey: datasets.Survey) -> np.ndarray[Any, Any]:
    """Wins minus losses per respondent, by two group-bys."""
    wide = [
        survey.comparisons.pivot_table(
            index="respondent", columns=item, values="outcome", aggfunc="sum", observed=False
        ).reindex(columns=list(survey.items), fill_value=0)
        for item in ("item1", "item2")
    ]
    return (wide[0].fillna(0) - wide[1].fillna(0)).to_numpy().astype(int)


def test_counts_per_pair_are_the_published_ones() -> None:
    assert list(counts(SURVEYS["university"]).items()) == list(UNIVERSITY.items())
    assert list(counts(SURVEYS["immigration"]).items()) == list(IMMIGRATION.items())


def test_frames_have_the_declared_shape_and_types(survey: datasets.Survey) -> None:
    items = list(survey.items)
    comparisons, students = survey.comparisons, survey.students
    pairs = len(items) * (len(items) - 1) // 2
    assert list(comparisons.columns) == ["respondent", "item1", "item2", "outcome"]
    assert comparisons["respondent"].dtype == np.int64
    assert comparisons["outcome"].dtype == np.float64
    assert list(comparisons["item1"].cat.categories) == items
    assert list(comparisons["item2"].cat.categories) == items
    assert not comparisons[["item1", "item2"]].isna().any(axis=None)
    assert students.index.name == "respondent"
    assert students.index.to_list() == list(range(1, len(students) + 1))
    assert comparisons["respondent"].to_list() == list(np.repeat(students.index, pairs))
    assert not students.isna().any(axis=None)
    assert all(isinstance(dtype, pd.CategoricalDtype) for dtype in students.dtypes)


def test_each_respondent_has_the_pairs_in_questionnaire_order(survey: datasets.Survey) -> None:
    m = len(survey.items)
    order = [(survey.items[i], survey.items[j]) for j in range(m) for i in range(j)]
    rows = zip(survey.comparisons["item1"], survey.comparisons["item2"], strict=True)
    assert list(rows) == order * len(survey.students)


@pytest.mark.parametrize(
    ("name", "respondents", "decided", "ties", "missing", "tied_respondents"),
    [
        ("university", 303, 3967, 487, 91, 160),
        ("university_1998", 303, 3967, 487, 91, 160),
        ("immigration", 98, 379, 124, 85, 54),
    ],
)
def test_totals(
    name: str, respondents: int, decided: int, ties: int, missing: int, tied_respondents: int
) -> None:
    comparisons = SURVEYS[name].comparisons
    outcome = comparisons["outcome"]
    assert len(SURVEYS[name].students) == respondents
    assert int(outcome.abs().eq(1).sum()) == decided
    assert int(outcome.eq(0).sum()) == ties
    assert int(outcome.isna().sum()) == missing
    assert comparisons.loc[outcome.eq(0), "respondent"].nunique() == tied_respondents


def test_university_lacks_paris_milano_of_the_first_91_respondents_only() -> None:
    comparisons = SURVEYS["university"].comparisons
    missing = comparisons[comparisons["outcome"].isna()]
    assert missing["respondent"].to_list() == list(range(1, 92))
    assert set(zip(missing["item1"], missing["item2"], strict=True)) == {("Paris", "Milano")}


def test_immigration_missing_answers_per_respondent() -> None:
    comparisons = SURVEYS["immigration"].comparisons
    missing = comparisons["outcome"].isna().groupby(comparisons["respondent"]).sum()
    assert np.bincount(missing, minlength=7).tolist() == [65, 9, 5, 13, 3, 3, 0]


def test_student_covariates_have_the_published_levels() -> None:
    students = SURVEYS["university"].students
    found = {name: students[name].value_counts(sort=False).to_dict() for name in students}
    assert found == STUDENTS
    assert {name: list(students[name].cat.categories) for name in students} == {
        name: list(levels) for name, levels in STUDENTS.items()
    }
    immigration = SURVEYS["immigration"].students
    assert list(immigration.columns) == ["sex"]
    assert list(immigration["sex"].cat.categories) == ["female", "male"]
    assert immigration["sex"].value_counts(sort=False).to_dict() == {"female": 43, "male": 55}


def test_version_1998_reverses_barcelona_stockholm_and_nothing_else() -> None:
    right, wrong = SURVEYS["university"].comparisons, SURVEYS["university_1998"].comparisons
    pair = right["item1"].eq("Barcelona") & right["item2"].eq("Stockholm")
    assert int(pair.sum()) == 303
    pd.testing.assert_series_equal(wrong.loc[pair, "outcome"], -right.loc[pair, "outcome"])
    pd.testing.assert_frame_equal(wrong[~pair], right[~pair])
    pd.testing.assert_frame_equal(wrong.drop(columns="outcome"), right.drop(columns="outcome"))
    assert not np.signbit(wrong.loc[wrong["outcome"].eq(0), "outcome"]).any()


def test_immigration_agrees_with_the_table_of_answers() -> None:
    survey = SURVEYS["immigration"]
    with (ROOT / "data/immigration_answers.csv").open(encoding="utf-8", newline="") as stream:
        header, *table = csv.reader(stream)
    code = {"1": 1.0, "2": -1.0, "0": 0.0, ".": np.nan}
    expected = [
        ([code[answer] for answer in answers], sex)
        for *answers, sex, count in table
        for _ in range(int(count))
    ]
    answers = survey.comparisons["outcome"].to_numpy().reshape(98, 6)
    assert header == [*(":".join(pair) for pair in IMMIGRATION), "sex", "count"]
    np.testing.assert_array_equal(answers, [row for row, _ in expected])
    assert survey.students["sex"].to_list() == [sex for _, sex in expected]


def test_rankings_are_permutations_that_follow_net_wins(survey: datasets.Survey) -> None:
    rankings = survey.rankings(np.random.default_rng(1))
    ranks = rankings.to_numpy()
    m = len(survey.items)
    assert rankings.index.equals(survey.students.index)
    assert rankings.index.name == "respondent"
    assert list(rankings.columns) == list(survey.items)
    assert (rankings.dtypes == np.int64).all()
    assert (np.sort(ranks, axis=1) == np.arange(1, m + 1)).all()
    ranked_net = np.take_along_axis(net_wins(survey), np.argsort(ranks, axis=1), axis=1)
    assert (np.diff(ranked_net, axis=1) <= 0).all()


@pytest.mark.parametrize(
    ("name", "tied"), [("university", 163), ("university_1998", 242), ("immigration", 67)]
)
def test_respondents_with_tied_net_wins(name: str, tied: int) -> None:
    net = np.sort(net_wins(SURVEYS[name]), axis=1)
    assert int((np.diff(net, axis=1) == 0).any(axis=1).sum()) == tied


def test_ties_are_broken_uniformly() -> None:
    n, items = 60_000, ("a", "b", "c")
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    comparisons = pd.DataFrame(pairs * n, columns=["item1", "item2"]).astype(
        pd.CategoricalDtype(list(items))
    )
    comparisons.insert(0, "respondent", np.repeat(np.arange(n), 3))
    comparisons["outcome"] = 0.0
    students = pd.DataFrame(index=pd.RangeIndex(n, name="respondent"))
    survey = datasets.Survey("undecided", comparisons, students, items, {}, "")
    frequency = survey.rankings(np.random.default_rng(2)).value_counts()
    # Chi-squared with 5 degrees of freedom: 20.5 is exceeded once in a thousand.
    assert len(frequency) == 6
    assert float(((frequency - n / 6) ** 2 / (n / 6)).sum()) < 20.5


def test_untied_rankings_do_not_depend_on_the_generator(survey: datasets.Survey) -> None:
    untied = (np.diff(np.sort(net_wins(survey), axis=1), axis=1) != 0).all(axis=1)
    one, other = survey.rankings(np.random.default_rng(3)), survey.rankings()
    pd.testing.assert_frame_equal(one[untied], other[untied])
    pd.testing.assert_frame_equal(one, survey.rankings(np.random.default_rng(3)))
    assert not one.equals(survey.rankings(np.random.default_rng(4)))


def test_shared_ranks_are_the_mean_of_their_places():
    survey = datasets.load_university()
    shared, drawn = survey.rankings(ties="shared"), survey.rankings(np.random.default_rng(5))
    assert (shared.sum(axis=1) == 21).all() and shared.index.name == "respondent"
    many = np.mean([survey.rankings(np.random.default_rng(k)) for k in range(200)], axis=0)
    np.testing.assert_allclose(shared, many, atol=0.6)
    strict = shared.nunique(axis=1) == 6
    assert strict.sum() == 140 and shared[strict].astype("int64").equals(drawn[strict])
    with pytest.raises(ValueError, match="ties must be"):
        survey.rankings(ties="kept")


@pytest.mark.parametrize("rng", [0, np.int64(1), np.random.RandomState(1), "seed"])
def test_rankings_refuse_what_is_not_a_generator(rng: Any) -> None:
    with pytest.raises(TypeError, match=rf"^rng must be .*, got {type(rng).__name__}\."):
        SURVEYS["immigration"].rankings(rng)


@pytest.mark.parametrize("version", ["1999", 2001, None])
def test_unknown_version_is_refused(version: Any) -> None:
    with pytest.raises(ValueError, match=r"^version must be"):
        datasets.load_university(version)


def test_repr_is_one_short_line(survey: datasets.Survey) -> None:
    n, m = len(survey.students), len(survey.items)
    assert repr(survey) == f"<Survey {survey.name}: {n} respondents, {m} items>"


def test_loading_gives_fresh_frames() -> None:
    changed = datasets.load_immigration()
    changed.comparisons["outcome"] = 0.0
    assert int(datasets.load_immigration().comparisons["outcome"].isna().sum()) == 85


def test_loads_from_another_working_directory(tmp_path: Path) -> None:
    code = (
        "from privrank.datasets import load_immigration, load_university;"
        "print(load_university(), load_immigration())"
    )
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == f"{SURVEYS['university']!r} {SURVEYS['immigration']!r}"


def test_immigration_files_are_what_the_script_writes(tmp_path: Path) -> None:
    (tmp_path / "immigration_answers.csv").write_bytes(
        (ROOT / "data/immigration_answers.csv").read_bytes()
    )
    subprocess.run([sys.executable, ROOT / "tools/data/immigration.py", tmp_path], check=True)
    for name in ("immigration.csv", "immigration_students.csv"):
        assert (tmp_path / name).read_bytes() == (ROOT / "data" / name).read_bytes()


def test_reference_fits_belong_to_these_data(survey: datasets.Survey) -> None:
    """The reference worths solve the score equations of the survey as loaded."""
    reference = REFERENCE[survey.name]
    answered = survey.comparisons.dropna()
    m = len(survey.items)
    assert reference["items"] == list(survey.items)
    assert reference["comparisons"] == len(answered)
    item1, item2 = answered["item1"].cat.codes, answered["item2"].cat.codes
    won = (answered["outcome"].to_numpy() + 1) / 2
    for gamma, named in reference["params"].items():
        params = np.array([named[item] for item in survey.items])
        residual = won - 1 / (1 + np.exp(params[item2] - params[item1]))
        score = np.bincount(item1, residual, m) - np.bincount(item2, residual, m)
        np.testing.assert_allclose(score - float(gamma) * params, 0, atol=1e-9)
