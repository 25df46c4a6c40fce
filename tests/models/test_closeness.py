"""Tests of closeness: uniform p-values, nothing beside them, the right refusals, archives."""

import math
import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, kstest
from searching import CANARY, ODD, has_canary, reachable
from sentences import refused_briefly

import privrank as pr
from privrank.encode.encoded import EncodedGroups, EncodedSample
from privrank.hypotheses.interval import THRESHOLD_LEVEL
from privrank.mechanisms import closeness as mechanism
from privrank.results.claims import CLAIMS

CEMS = pr.datasets.load_university()
UNIVERSITIES = " + ".join(CEMS.items)


def seeded(seed=7):
    return np.random.default_rng(seed)


def mallows(phi, n, m=5, seed=1):
    return pr.Mallows(m, phi).rvs(n, seeded(seed))


def university(group="gender"):
    data = CEMS.rankings(seeded()).join(CEMS.students)
    return pr.ClosenessTest.from_formula(f"{UNIVERSITIES} ~ {group}", data, respondent="respondent")


def counts(*tables, **arguments):
    names = [f"g{k}" for k in range(len(tables))]
    letters = [f"c{k}" for k in range(len(tables[0]))]
    inner = [dict(zip(letters, map(int, table), strict=True)) for table in tables]
    return pr.ClosenessTest.from_counts(dict(zip(names, inner, strict=True)), letters, **arguments)


def test_the_line_of_the_quick_start_runs():
    budget = pr.Budget(epsilon=1.0, unit="respondent")
    result = university().fit(epsilon=1.0, budget=budget)
    assert result.release.source == "secure" and 0 < result.pvalue <= 1
    assert dict(result.groups) == {"female": 152, "male": 151} and result.nobs == 303
    with pytest.raises(pr.BudgetExceeded):
        university().fit(epsilon=0.1, budget=budget)


def test_different_distributions_are_separated_and_equal_ones_are_not():
    one, other = mallows(0.6, 200), mallows(0.85, 150, seed=2)
    for method in ("auto", "kendall", "mmd"):
        assert pr.ClosenessTest(one, other).fit(1.0, method=method, rng=seeded()).pvalue < 0.01
    same = pr.ClosenessTest(one, mallows(0.6, 150, seed=3))
    rejected = [same.fit(1.0, rng=seeded(k)).reject for k in range(20)]
    assert np.mean(rejected) < 0.5
    long = pr.ClosenessTest(mallows(0.8, 100, 12), mallows(0.97, 80, 12, seed=2))
    assert long.fit(2.0, rng=seeded()).pvalue < 0.05


@pytest.mark.parametrize(
    ("sizes", "epsilon", "arguments"),
    [
        ((30, 8), 0.5, {}),
        ((5, 40), 2.0, {"method": "chi-square"}),
        ((10, 12, 9), 1.0, {}),
        ((10, 12, 9), 1.0, {"method": "pairs"}),
        ((40, 40, 3), 0.5, {"method": "tv"}),
        ((12, 12), math.inf, {}),
        ((30, 8), 1.0, {"categories": 8}),
        ((25, 15, 6), 2.0, {"categories": 8}),
    ],
)
def test_pvalues_of_choices_are_uniform(sizes, epsilon, arguments):
    rng, k = seeded(4), arguments.pop("categories", 3)
    p = 1 / np.arange(1, k + 1)
    pvalues = []
    for _ in range(120):
        test = counts(*[rng.multinomial(n, p / p.sum()) for n in sizes])
        options = {"method": "permutation"} | arguments
        pvalues.append(test.fit(epsilon, permutations=99, rng=rng, **options).pvalue)
    # rounding up and, without noise, ties make p-values larger, never smaller
    assert kstest(pvalues, "uniform", alternative="greater").pvalue > 1e-3
    if epsilon < math.inf:
        assert kstest(pvalues, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    ("sizes", "m", "rows"),
    [((20, 7), 4, 1), ((9, 14), 8, 1), ((8, 8), 4, 2), ((12, 9, 3), 4, 1), ((9, 6, 8), 7, 1)],
)
def test_pvalues_of_rankings_are_uniform(sizes, m, rows):
    rng = seeded(5)
    pvalues = []
    items = [f"i{k}" for k in range(m)]
    group = pd.Categorical.from_codes(
        np.repeat(range(len(sizes)), np.array(sizes) * rows), ["x", "y", "z"]
    )
    for _ in range(100):
        frame = pd.DataFrame(pr.Mallows(m, 0.7).rvs(sum(sizes) * rows, rng), columns=items)
        frame = frame.assign(who=np.repeat(np.arange(sum(sizes)), rows), group=group)
        formula = f"{' + '.join(items)} ~ group"
        unit = {"respondent": "who", "max_rows": rows}
        test = pr.ClosenessTest.from_formula(formula, frame, **unit)
        pvalues.append(test.fit(1.0, permutations=49, rng=rng).pvalue)
    assert kstest(pvalues, "uniform").pvalue > 1e-3


def test_half_the_noise_would_be_noticed(monkeypatch):
    rng = seeded(6)
    tests = [counts(*rng.multinomial(15, [0.5, 0.5], size=2)) for _ in range(300)]
    honest = mechanism.draw_cells
    monkeypatch.setattr(mechanism, "draw_cells", lambda *more: 0.25 * honest(*more))
    options = {"method": "permutation", "permutations": 49, "rng": rng}
    pvalues = [test.fit(0.2, **options).pvalue for test in tests]
    assert kstest(pvalues, "uniform").pvalue < 1e-3


def test_without_noise_chi_square_is_pearsons():
    one, other = np.array([30, 50, 20]), np.array([45, 40, 30])
    result = counts(one, other).fit(math.inf, method="chi-square", permutations=4999, rng=seeded())
    expected = chi2_contingency([one, other], correction=False)
    assert result.effect == pytest.approx(expected.statistic, rel=1e-3)
    assert result.pvalue == pytest.approx(expected.pvalue, abs=0.02)
    assert CLAIMS["not private"] in " ".join(result.summary().notes)


def test_power_of_total_variation():
    # 24 categories, 300 a group, half of them more likely by a total variation distance of 0.2
    k, rng = 24, seeded(3)
    p = np.full(k, 1 / k)
    q = p + np.tile([0.4 / k, -0.4 / k], k // 2)
    hits = []
    for _ in range(120):
        test = counts(rng.multinomial(300, p), rng.multinomial(300, q))
        hits.append(test.fit(1.0, method="tv", permutations=199, rng=rng).reject)
    assert np.mean(hits) == pytest.approx(0.84, abs=0.11)


def test_a_small_third_group_does_not_hide_the_others():
    rng, p = seeded(3), np.full(5, 0.2)
    q = p + np.array([0.15, 0, 0, 0, -0.15])
    found = {"auto": [], "pairs": []}
    for _ in range(40):
        test = counts(rng.multinomial(500, p), rng.multinomial(500, q), rng.multinomial(10, p))
        for method, hits in found.items():
            hits.append(test.fit(1.0, method=method, permutations=99, rng=rng).reject)
    assert np.mean(found["auto"]) > 0.9 and np.mean(found["pairs"]) < 0.3


def test_one_category_of_many_is_seen():
    rng, p = seeded(3), np.full(300, 1 / 300)
    q = 0.93 * p
    q[0] += 0.07
    found = {"auto": [], "tv": []}
    for _ in range(40):
        test = counts(rng.multinomial(300, p), rng.multinomial(300, q))
        for method, hits in found.items():
            hits.append(test.fit(1.0, method=method, permutations=99, rng=rng).reject)
    assert np.mean(found["auto"]) > 0.7 and np.mean(found["tv"]) < 0.5


def test_all_ways_to_give_the_same_choices_agree():
    table = {"x": {"a": 5, "b": 9, "c": 0}, "y": {"a": 8, "b": 2, "c": 3}}
    frame = pd.DataFrame(
        [(g, c) for g, row in table.items() for c, n in row.items() for _ in range(n)],
        columns=["group", "choice"],
    )
    typed, listed = frame.astype({"group": "category"}), list("abc")
    tests = [
        pr.ClosenessTest.from_counts(table, listed),
        pr.ClosenessTest.from_counts(pd.DataFrame(table), listed),
        pr.ClosenessTest.from_formula("choice ~ group", typed, categories=listed),
        pr.ClosenessTest.from_formula(
            "choice ~ group", frame, levels=["x", "y"], categories=listed
        ),
        pr.ClosenessTest(*[frame.loc[frame["group"] == g, "choice"] for g in "xy"], items=listed),
    ]
    assert len({test.fit(1.0, rng=seeded()).pvalue for test in tests}) == 1
    asked = {"method": "permutation", "effect_epsilon": 1.0}
    results = [test.fit(1.0, **asked, rng=seeded()) for test in tests]
    assert len({result.pvalue for result in results}) == 1
    assert len({result.effect for result in results}) == 1


def test_respondents_with_several_rows_are_permuted_together():
    # everybody answers alike three times over: as rows this looks like a difference
    rng, pvalues, naive = seeded(8), [], []
    for _ in range(150):
        answer = np.repeat(rng.integers(0, 2, 24), 3)
        frame = pd.DataFrame({"who": np.repeat(np.arange(24), 3), "choice": answer})
        frame["group"] = np.where(frame["who"] < 12, "x", "y")
        options = {"levels": ["x", "y"], "categories": [0, 1]}
        several = pr.ClosenessTest.from_formula(
            "choice ~ group", frame, respondent="who", max_rows=3, **options
        )
        pvalues.append(several.fit(5.0, method="permutation", permutations=49, rng=rng).pvalue)
        rows = pr.ClosenessTest.from_formula("choice ~ group", frame, **options)
        naive.append(rows.fit(5.0, permutations=49, rng=rng).pvalue)
    assert kstest(pvalues, "uniform").pvalue > 1e-3
    assert np.mean(np.array(naive) <= 0.05) > 0.1


@pytest.mark.parametrize("kind", ["choices", "rankings"])
@pytest.mark.parametrize(("few", "many"), [(1, 3), (3, 1)])
def test_activity_alone_is_no_difference(kind, few, many):
    # every row has the same distribution, and means of rows have not: they rejected in .36 and .67
    rng, hits = seeded(9), []
    rows = np.repeat([few, many], [50, 450])
    who = np.repeat(np.arange(500), rows)
    frame = pd.DataFrame({"who": who, "group": np.where(who < 50, "x", "y")})
    options = {"levels": ["x", "y"], "respondent": "who", "max_rows": 3}
    for _ in range(60):
        if kind == "choices":
            data = frame.assign(choice=rng.integers(0, 4, len(who)))
            test = pr.ClosenessTest.from_formula(
                "choice ~ group", data, categories=[0, 1, 2, 3], **options
            )
        else:
            ranks = pr.Mallows(list("abc"), 0.8).rvs(len(who), rng)
            data = frame.join(pd.DataFrame(ranks, columns=list("abc")))
            test = pr.ClosenessTest.from_formula("a + b + c ~ group", data, **options)
        hits.append(test.fit(math.inf, permutations=99, rng=rng).reject)
    assert np.mean(hits) < 0.15  # .05 and three and a half standard errors


def test_a_summary_says_what_its_p_value_is_worth():
    alike, apart = counts([50, 50], [50, 50]), counts([90, 10], [10, 90])
    kept, rejected = (
        test.fit(1.0, method="permutation", permutations=99, rng=seeded(4))
        for test in (alike, apart)
    )
    assert rejected.reject and not kept.reject
    line = CLAIMS["no evidence"]
    assert line in flat(kept) and line not in flat(rejected)
    for result in (kept, rejected):
        assert CLAIMS["noise"] in flat(result)
        assert CLAIMS["idealised step"] in flat(result)
        full = " ".join(str(result.summary(details=True)).split())
        assert CLAIMS["idealised step"] in full and "2e-10" in full
    plain = flat(alike.fit(math.inf, permutations=99, rng=seeded()))
    assert "another" not in plain and "discretised" not in plain and line in plain
    secret = pr.ClosenessTest(mallows(1.0, 60), mallows(1.0, 60, seed=2), labels="private")
    assert CLAIMS["no evidence, private labels"] in flat(secret.fit(0.2, rng=seeded(5)))


def test_rows_that_are_drawn_are_told():
    frame = pd.DataFrame({"who": np.repeat(np.arange(60), 2), "choice": [0, 1] * 60})
    frame["group"] = np.where(frame["who"] < 30, "x", "y")
    test = pr.ClosenessTest.from_formula(
        "choice ~ group", frame, levels=["x", "y"], categories=[0, 1], respondent="who", max_rows=2
    )
    private = flat(test.fit(1.0, permutations=99, rng=seeded()))
    assert f"{CLAIMS['by lot']} {CLAIMS['noise and lot']}" in private
    assert CLAIMS["by lot alone"] in flat(test.fit(math.inf, permutations=99, rng=seeded()))


def test_effect_has_a_budget_of_its_own_and_an_interval():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.3, 0.4])
    distance, rng, covered = 0.2, seeded(2), []
    for _ in range(100):
        test = counts(rng.multinomial(400, p), rng.multinomial(300, q))
        result = test.fit(1.0, method="tv", effect_epsilon=0.5, permutations=19, rng=rng)
        low, high = result.conf_int()
        covered.append(low <= distance <= high)
    assert np.mean(covered) >= 0.95 and high - low < 0.5
    budget = pr.Budget(epsilon=2.0, unit="row")
    test.fit(1.0, method="tv", effect_epsilon=0.5, budget=budget)
    assert budget.spent == (1.5, 0.0) and result.epsilon == 1.5
    with pytest.raises(pr.BudgetExceeded):
        test.fit(0.4, method="tv", effect_epsilon=0.2, budget=budget)
    parts = result.release.parts
    assert parts["statistic"].epsilon + parts["p-value"].epsilon == pytest.approx(1.5)
    plain = test.fit(1.0, method="tv", rng=rng)
    assert plain.effect is None and set(plain.release.parts) == {"p-value"}
    with pytest.raises(ValueError, match="effect_epsilon"):
        plain.conf_int()


def released(result, pvalue, *numbers):
    """The result of the same test with other released numbers."""
    steps = [round(number / result.release.parts["statistic"].step) for number in numbers]
    values = {"p-value": np.array([pvalue]), "statistic": np.array(steps)}
    return pr.ClosenessTest.from_release(replace(result.release, values=values))


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda: counts([90, 10, 30], [30, 80, 20]), {"method": "permutation"}),
        (lambda: counts([30] * 10, [3] * 10), {"method": "permutation"}),
        (lambda: pr.ClosenessTest(mallows(0.8, 30), mallows(0.8, 150, seed=2)), {}),
    ],
)
def test_an_interval_excludes_zero_where_the_test_rejects(make, options, epsilon):
    rng, extra = seeded(3), {} if epsilon == math.inf else {"effect_epsilon": 1.0}
    first = make().fit(epsilon, permutations=19, rng=rng, **options, **extra)
    for _ in range(1700):
        numbers = rng.laplace([0.15, 0.05], 0.1)
        result = released(first, int(rng.integers(1, 1500)), *numbers)
        alpha = float(rng.choice([0.01, 0.05, 0.1]))
        low, high = result.conf_int(alpha)
        assert (low > 0) == (result.pvalue <= alpha) and 0 <= low <= high
        assert (result.conf_int()[0] > 0) == result.reject
    above = released(first, 1, 0.001, 0.4)  # rejected, but nothing above 0 by the effect
    assert 0 < above.conf_int()[0] <= above.conf_int()[1]
    within = CLAIMS["interval of the effect"].format(level="95%", interval="(0, ").removesuffix(".")
    assert within in flat(above)
    below = released(first, 9999, 0.9, 0.0)
    assert below.conf_int()[0] == 0 and within.replace("(0, ", "[0, ") in flat(below)
    assert pr.from_json(above.to_json()).conf_int() == above.conf_int()


def flat(result):
    return " ".join(str(result.summary()).split())


def test_intervals_stand_alone_where_zero_is_not_the_null():
    test = pr.ClosenessTest(mallows(0.8, 90), mallows(0.8, 90, seed=2))
    result = test.fit(1.0, method="kendall", effect_epsilon=1.0, rng=seeded())
    assert result.release.parts["statistic"].values.shape == (1,)
    assert result.corrected_effect is None and "if and only if" not in flat(result)
    low, high = result.conf_int()
    assert 0 <= low <= high


def test_a_threshold_serves_its_own_level_and_larger_ones():
    test = pr.ClosenessTest(mallows(0.3, 90), mallows(0.9, 90, seed=2))
    result = test.fit(99.0, effect_epsilon=99.0, rng=seeded())
    t, c = result.release.parts["statistic"].values * result.release.parts["statistic"].step
    assert result.conf_int(0.05)[0] == result.conf_int(0.2)[0] == pytest.approx(t - c, abs=1e-3)
    assert result.conf_int(0.04)[0] < t - c


def test_kernel_distance_interval_covers():
    # a point mass against a mixture with a known distance
    rng, covered = seeded(9), []
    same, other = np.array([1, 2, 3]), np.array([3, 2, 1])
    mix = 0.3
    distance = mix * math.sqrt(2 * (1 - math.exp(-2)))
    for _ in range(60):
        one = np.tile(same, (200, 1))
        two = np.where(rng.random((200, 1)) < mix, other, same)
        result = pr.ClosenessTest(one, two).fit(1.0, effect_epsilon=1.0, permutations=19, rng=rng)
        low, high = result.conf_int()
        covered.append(low <= distance <= high)
    assert np.mean(covered) >= 0.95


def test_a_bit_comes_alone():
    bit = counts([90, 10], [10, 90]).fit(8.0, method="sigmoid", rng=seeded())
    assert bit.reject and bit.pvalue is None and bit.release.plan.number("scale") == 0
    assert CLAIMS["bit"] in " ".join(str(bit.summary()).split())
    assert pr.from_json(bit.to_json()).reject
    again = pr.ClosenessTest.from_release(bit.release, alpha=0.2)
    assert again.alpha == 0.05


def test_private_labels_hide_the_sizes():
    frame = pd.DataFrame({"group": ["x"] * 33 + ["y"] * 47, "choice": ["a", "b"] * 40})
    options = {"levels": ["x", "y", "z"], "categories": ["a", "b"]}
    public = pr.ClosenessTest.from_formula("choice ~ group", frame, **options)
    private = pr.ClosenessTest.from_formula("choice ~ group", frame, labels="private", **options)
    shown = public.fit(1.0, method="permutation", rng=seeded())
    hidden = private.fit(1.0, rng=seeded())
    assert dict(shown.groups) == {"x": 33, "y": 47}  # nobody is in z, which is public
    assert list(hidden.groups.index) == ["x", "y", "z"] and hidden.groups.isna().all()
    assert shown.asked.sensitivity == 1 / 33 and hidden.asked.sensitivity == 4 / 80
    for text in (repr(private), str(hidden.summary()), str(hidden.release.survey)):
        assert not set(re.findall(r"\d+", text)) & {"33", "47"}
    assert "and group membership" in flat(hidden)
    again = pr.from_json(hidden.to_json())
    assert str(again.summary()) == str(hidden.summary())
    assert pr.ClosenessTest.from_release(hidden.release).pvalue == hidden.pvalue
    assert pr.ClosenessTest.from_release(hidden.release).asked.sensitivity == 4 / 80


@pytest.mark.parametrize("kind", ["choices", "rankings"])
def test_pvalues_of_private_labels_are_uniform(kind):
    rng, pvalues = seeded(11), []
    for _ in range(150):
        frame = pd.DataFrame(pr.Mallows(3, 0.8).rvs(40, rng), columns=list("abc"))
        frame["choice"] = rng.choice(["u", "v", "w"], 40, p=[0.6, 0.3, 0.1])
        frame["group"] = rng.choice(["x", "y", "z"], 40, p=[0.7, 0.28, 0.02])
        formula = "choice ~ group" if kind == "choices" else "a + b + c ~ group"
        more = {"categories": ["u", "v", "w"]} if kind == "choices" else {}
        test = pr.ClosenessTest.from_formula(
            formula, frame, levels=["x", "y", "z"], labels="private", **more
        )
        pvalues.append(test.fit(2.0, permutations=49, rng=rng).pvalue)
    assert kstest(pvalues, "uniform").pvalue > 1e-3


def test_private_labels_see_a_difference():
    rng = seeded(12)
    one, other = mallows(0.5, 150), mallows(0.9, 150, seed=2)
    assert pr.ClosenessTest(one, other, labels="private").fit(2.0, rng=rng).pvalue < 0.01
    first, second = (pd.Series(["a"] * n + ["b"] * (200 - n)) for n in (140, 70))
    choices = pr.ClosenessTest(first, second, items=["a", "b"], labels="private")
    assert choices.fit(2.0, rng=rng).pvalue < 0.01


def test_results_archive_print_and_stand_side_by_side():
    result = university("study").fit(1.0, effect_epsilon=0.5, rng=seeded())
    again = pr.from_json(result.to_json())
    assert again.to_json() == result.to_json() and str(again.summary()) == str(result.summary())
    assert str(pickle.loads(pickle.dumps(result)).summary()) == str(result.summary())
    text = " ".join(str(result.summary()).split())
    for words in (
        "Private Test of Closeness", "Groups: 2", "respondent (replace one)", "Epsilon: 1.5",
        "H0: the rankings of all groups have the same distribution.", "seeded (do not publish)",
        "Public: group membership", "commerce (n = 111)",
    ):  # fmt: skip
        assert words in text
    assert "p-value" in pr.summary_col([result, again]).as_text()
    assert "<table" in result._repr_html_() and result.to_frame()["effect"].iloc[0] > 0
    assert result.plot().axes[0].get_xlabel().startswith("kernel distance")
    with pytest.raises(ValueError, match="another model"):
        uniform = pr.UniformityTest(mallows(0.9, 50)).fit(1.0, draws=99, rng=seeded())
        pr.ClosenessTest.from_release(uniform.release)


def canaries():
    rng = seeded(5)
    frame = pd.DataFrame(rng.permuted(np.tile([1, 2, 3, 4], (80, 1)), axis=1), columns=list("abcd"))
    frame["who"] = np.repeat([f"{CANARY}-{k}" for k in range(40)], 2)
    frame["group"] = pd.Categorical(np.repeat(["x", "y"], 40), ["x", "y"])
    frame["remark"], frame["number"] = f"{CANARY}-remark", ODD
    return frame


@pytest.mark.parametrize("method", ["auto", "kendall"])
def test_nothing_of_the_data_gets_out(method):
    frame = canaries()
    test = pr.ClosenessTest.from_formula(
        "a + b + c + d ~ group", frame, respondent="who", max_rows=2
    )
    result = test.fit(1.0, 1e-6, method=method, effect_epsilon=0.5, rng=seeded(ODD))
    for text in (
        repr(test),
        repr(result),
        result.to_json(),
        str(result.summary()),
        result.summary().as_html(),
        result.to_frame().to_csv(),
        pickle.dumps(result).decode("latin-1"),
    ):
        assert CANARY not in text and str(ODD) not in text
    for root in (test, result):
        objects = reachable(root)
        assert not [item for item in objects if item is frame or has_canary(item)]
        assert not [
            item for item in objects if isinstance(item, pd.DataFrame | np.random.Generator)
        ]
    for item in reachable(result):
        assert not isinstance(item, EncodedGroups | EncodedSample | pr.ClosenessTest)
        if isinstance(item, np.ndarray):
            assert item.base is None and not item.flags.writeable and item.size < 40
    # of a p-value's release nothing but the p-value and public constants
    assert set(result.release.plan.settings) <= {"permutations", "scale", "level", THRESHOLD_LEVEL}


def rankings(**arguments):
    return pr.ClosenessTest(mallows(0.8, 20), mallows(0.8, 20, seed=2), **arguments)


def formula(text="a + b + c + d ~ group", frame=None, **arguments):
    frame = canaries() if frame is None else frame
    return pr.ClosenessTest.from_formula(text, frame, **arguments)


REFUSED = {
    "an empty group": (
        lambda: formula(frame=canaries().head(40)),
        ["at least two groups of column 'group' must have units", "1 of the declared"],
    ),
    "an unknown group": (lambda: formula(levels=["x", "z"]), ["'group'", "listed in levels"]),
    "undeclared groups": (
        lambda: formula(frame=canaries().astype({"group": str})),
        ["groups must be declared"],
    ),
    "no groups": (lambda: formula("a + b + c + d ~ 1"), ["one column of groups"]),
    "two columns of groups": (lambda: formula("a + b + c + d ~ group + who"), ["one column"]),
    "no such column": (lambda: formula("a + b + c + e ~ group"), ["'e'"]),
    "other arguments": (lambda: formula(group="x"), ["from_formula takes"]),
    "people in two groups": (
        lambda: formula(frame=canaries().assign(who="one"), respondent="who", max_rows=80),
        ["in one group only"],
    ),
    "other items": (
        lambda: pr.ClosenessTest(mallows(0.8, 20), mallows(0.8, 20, 6)),
        ["same items"],
    ),
    "one unit": (
        lambda: pr.ClosenessTest(mallows(0.8, 20), mallows(0.8, 1)),
        ["group 'sample 2' has 1"],
    ),
    "a frame and a Series": (
        lambda: pr.ClosenessTest(mallows(0.8, 20), pd.Series([1, 2])),
        ["data frame"],
    ),
    "method for choices": (lambda: rankings().fit(1.0, method="tv"), ["for rankings"]),
    "an unknown method": (lambda: rankings().fit(1.0, method="ks"), ["method must be one of"]),
    "a free decision": (
        lambda: counts([9, 1], [1, 9]).fit(np.inf, method="sigmoid"),
        ["finite epsilon"],
    ),
    "a free effect": (lambda: rankings().fit(np.inf, effect_epsilon=1), ["leave it out"]),
    "no effect": (lambda: rankings().fit(1.0, effect_epsilon=0), ["epsilon must be positive"]),
    "few permutations": (lambda: rankings().fit(1.0, permutations=9), ["between 19 and"]),
    "many permutations": (lambda: rankings().fit(1.0, permutations=10**6), ["between 19 and"]),
    "an effect of private labels": (
        lambda: rankings(labels="private").fit(1.0, effect_epsilon=1),
        ["labels='private'", "sizes are public"],
    ),
    "pairs of private labels": (
        lambda: rankings(labels="private").fit(1.0, method="pairs"),
        ["method must be one of 'auto', 'mmd', 'kendall'", "labels='private'"],
    ),
    "an effect of three groups": (
        lambda: counts([5, 5], [5, 6], [4, 4]).fit(1.0, method="tv", effect_epsilon=1),
        ["two groups"],
    ),
    "one group": (lambda: formula(levels=["x"]), ["at least two names"]),
    "unequal sizes for a bit": (
        lambda: counts([5, 5], [5, 6]).fit(1.0, method="sigmoid"),
        ["same size"],
    ),
    "counts of one group": (
        lambda: pr.ClosenessTest.from_counts({"x": {"a": 3, "b": 4}}, ["a", "b"]),
        ["at least two groups"],
    ),
    "counts of an empty group": (
        lambda: counts([3, 4], [0, 0]),
        ["every group must have at least two units", "group 'g1' has 0"],
    ),
    "one unit with many rows": (
        lambda: formula(
            frame=canaries().assign(who=[*range(40), *[40] * 40]), respondent="who", max_rows=40
        ),
        ["group 'y' has 1"],
    ),
    "counts of other categories": (
        lambda: pr.ClosenessTest.from_counts(
            {"x": {"a": 3, "b": 4}, "y": {"a": 3, "c": 4}}, ["a", "b"]
        ),
        ["counts must name declared categories"],
    ),
    "too many rankings to compare": (
        lambda: pr.ClosenessTest(*2 * [np.tile(np.arange(1, 102), (10_001, 1))]).fit(1.0),
        ["20,000", "random sample"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_briefly(case):
    build, words = REFUSED[case]
    error = refused_briefly(build, (ValueError, TypeError), words)
    assert CANARY not in str(error)


def test_noise_of_p_value_and_effect_is_as_wide_as_epsilon_asks():
    test = counts([90, 10, 30], [30, 80, 20])
    options = {"method": "tv", "effect_epsilon": 0.5, "permutations": 19}
    fits = [test.fit(1.0, **options, rng=seeded(k)) for k in range(200)]
    part = fits[0].release.parts["statistic"]
    assert 0.499 < part.sensitivity / part.distribution.scale <= 0.5
    assert part.sensitivity == 2 * 1026 and len(part.values) == 2
    assert part.step * 1024 == pytest.approx(1 / 130)
    spread = np.var([int(fit.release.parts["statistic"].values[0]) for fit in fits], ddof=1)
    assert 0.6 < spread / part.distribution.variance < 1.7
    # 2.25 reach / epsilon for the p-value
    assert 2.25 / 130 <= fits[0].release.plan.settings["scale"] < 2.26 / 130
