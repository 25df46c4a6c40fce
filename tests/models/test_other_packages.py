"""Without privacy worths are those of other packages, on both surveys, and the page says them."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import privrank as pr

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
SURVEYS = {
    "university": pr.datasets.load_university(),
    "immigration": pr.datasets.load_immigration(),
}


def reference(name):
    return json.loads((ROOT / "tests" / "reference" / f"{name}.json").read_text(encoding="utf-8"))


@cache
def fit(survey, ties):
    loaded = SURVEYS[survey]
    model = pr.PrivateBTL(
        loaded.comparisons, items=loaded.items, respondent=None, ties=ties, design="public"
    )
    return model.fit(np.inf, penalty=0)


def others(survey, ties):
    """The worths that other packages state, by package."""
    if ties == "davidson":
        return {"psychotools": reference("davidson")[survey]["params"]}
    return {"BradleyTerry2": reference("btl")[survey]["params"]["0"]} | reference("packages")[
        survey
    ]


@pytest.mark.parametrize("survey", SURVEYS)
@pytest.mark.parametrize("ties", [True, "davidson"])
def test_worths_are_those_of_other_packages(survey, ties):
    stated = others(survey, ties)
    assert len(stated) == (1 if ties == "davidson" else 5)
    for name, worths in stated.items():
        ours = fit(survey, ties).params
        assert set(worths) == set(ours.index)
        assert max(abs(ours[item] - worth) for item, worth in worths.items()) < 1e-6, name


def test_the_page_says_these_worths():
    text = PAGE.partition("## The same numbers")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (University|Immigration), (.+?) \| .+? \| (.+) \|$", text, flags=re.M)
    assert len(rows) == 4
    for survey, model, numbers in rows:
        ties = "davidson" if "Davidson" in model else True
        result = fit(survey.lower(), ties)
        stated = dict(re.findall(r"(\w+) (-?\d*\.\d{4})", numbers))
        if ties == "davidson":
            assert abs(result.tie_parameter["estimate"] - float(stated.pop("ties"))) < 1e-4
        assert set(stated) == set(result.items)
        for item, worth in stated.items():
            assert abs(result.params[item] - float(worth)) < 1e-4


def test_versions_and_the_script_are_named():
    meta = reference("packages")["meta"]
    assert (ROOT / meta["made_by"]).exists()
    table = (ROOT / "tests" / "reference" / "README.md").read_text(encoding="utf-8")
    for name in ("choix", "statsmodels", "evalica", "arena-rank"):
        assert f"{name} {meta[name]}" in table


def test_tests_and_orders_are_those_of_r():
    found, cems = reference("rankings"), SURVEYS["university"]
    ranks = cems.rankings(ties="shared").rank(axis=1, method="first").astype(int)
    mean_ranks = pr.UniformityTest(ranks).fit(np.inf, method="borda")
    stated = {"friedman": mean_ranks.statistic**2 / len(ranks)}
    step = next(iter(mean_ranks.release.parts.values())).step
    assert abs(np.sqrt(found["friedman"]["statistic"] * len(ranks)) - mean_ranks.statistic) < step

    share = {"female": found["binomial"]["null"], "male": 1 - found["binomial"]["null"]}
    identity = pr.IdentityTest(cems.students["gender"], share)
    stated["binomial"] = identity.fit(np.inf, method="binary", alternative="larger").pvalue
    assert abs(stated["binomial"] - found["binomial"]["larger"]) < 1e-9

    test = pr.ClosenessTest.from_formula(
        "french ~ study", cems.students, categories=cems.levels["french"]
    )
    rng = np.random.default_rng(1)
    groups = test.fit(np.inf, method="chi-square", permutations=49_999, rng=rng)
    stated["chi-square"], expected = groups.effect, found["chi_square"]
    assert abs(groups.effect - expected["statistic"]) < groups.release.parts["statistic"].step
    assert abs(groups.pvalue - expected["by_permutation"]) < 0.006

    order = pr.PrivateRankAggregation(ranks, respondent="respondent").fit(np.inf)
    assert list(order.order) == found["kemeny"]["order"]
    stated["kemeny"] = order.kemeny_score
    assert abs(order.kemeny_score - found["kemeny"]["score"]) < 1e-9
    for item, score in found["borda"].items():
        assert abs(order.borda()["score"][item] - score) < 1e-9

    text = PAGE.partition("## Tests, consensus")[2].partition("\n## ")[0]
    numbers = [318.35, 318.36, 0.0404, 1.724, 1.725, 0.216, 0.189, 4.865]
    printed = [float(one) for one in re.findall(r"(?<![\w.])\d*\.\d+", text)]
    assert set(numbers) <= set(printed)
    assert [stated["friedman"], found["friedman"]["statistic"]] == pytest.approx(
        numbers[:2], abs=0.005
    )
    assert [stated["binomial"], *expected.values()] == pytest.approx(
        [0.0404, 1.725, 0.189, 0.216], abs=6e-4
    )
    assert [stated["chi-square"], stated["kemeny"]] == pytest.approx([1.724, 4.865], abs=6e-4)
