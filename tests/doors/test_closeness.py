"""Tests of closeness: uniform p-values, nothing beside them, the right refusals, archives."""

import math
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, kstest
from searching import CANARY, ODD, has_canary, reachable

import privrank as pr
from privrank.encode.groups import EncodedGroups
from privrank.encode.samples import EncodedSample
from privrank.mechanisms import closeness as mechanism

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
    letters = list("abcdefghijklmnopqrstuvwxyz")[: len(tables[0])]
    inner = [dict(zip(letters, map(int, table), strict=True)) for table in tables]
    return pr.ClosenessTest.from_counts(dict(zip(names, inner, strict=True)), **arguments)


def test_the_line_of_the_quick_start_runs():
    budget = pr.Budget(epsilon=1.0, unit="respondent")
    result = university().fit(epsilon=1.0, budget=budget)
    assert result.release.source == "secure" and 0 < result.pvalue <= 1
    assert dict(result.groups) == {"female": 152, "male": 151} and result.nobs == 303
    with pytest.raises(pr.BudgetExceeded):
        university().fit(epsilon=0.1, budget=budget)


def test_different_laws_are_told_apart_and_equal_ones_are_not():
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
        ((12, 12), math.inf, {}),
    ],
)
def test_pvalues_of_choices_are_uniform(sizes, epsilon, arguments):
    rng = seeded(4)
    p = np.array([0.6, 0.3, 0.1])
    pvalues = []
    for _ in range(500):
        test = counts(*[rng.multinomial(n, p) for n in sizes])
        pvalues.append(test.fit(epsilon, permutations=99, rng=rng, **arguments).pvalue)
    # rounding up and, without noise, ties make p-values larger, never smaller
    assert kstest(pvalues, "uniform", alternative="greater").pvalue > 1e-3
    if epsilon < math.inf:
        assert kstest(pvalues, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(("sizes", "m", "rows"), [((20, 7), 4, 1), ((9, 14), 8, 1), ((8, 8), 4, 2)])
def test_pvalues_of_rankings_are_uniform(sizes, m, rows):
    rng = seeded(5)
    pvalues = []
    for _ in range(250):
        frames = [
            pd.DataFrame(pr.Mallows(m, 0.7).rvs(n * rows, rng)).assign(
                who=np.repeat([f"{g}-{k}" for k in range(n)], rows)
            )
            for g, n in enumerate(sizes)
        ]
        items = [str(k) for k in range(m)]
        test = pr.ClosenessTest(*frames, items=items, respondent="who", max_rows=rows)
        pvalues.append(test.fit(1.0, permutations=49, rng=rng).pvalue)
    assert kstest(pvalues, "uniform").pvalue > 1e-3


def test_half_the_noise_would_be_noticed(monkeypatch):
    rng = seeded(6)
    tests = [counts(*rng.multinomial(15, [0.5, 0.5], size=2)) for _ in range(300)]
    honest = mechanism.draw_cells
    monkeypatch.setattr(mechanism, "draw_cells", lambda *more: 0.25 * honest(*more))
    pvalues = [test.fit(0.2, permutations=49, rng=rng).pvalue for test in tests]
    assert kstest(pvalues, "uniform").pvalue < 1e-3


def test_without_noise_chi_square_is_pearsons():
    one, other = np.array([30, 50, 20]), np.array([45, 40, 30])
    result = counts(one, other).fit(math.inf, method="chi-square", permutations=4999, rng=seeded())
    expected = chi2_contingency([one, other], correction=False)
    assert result.effect == pytest.approx(expected.statistic, rel=1e-3)
    assert result.pvalue == pytest.approx(expected.pvalue, abs=0.02)
    assert "protects nobody" in str(result.summary())


def test_power_of_the_default_for_choices():
    # 24 categories, 300 a group, half of them more likely by a total variation distance of 0.2
    k, rng = 24, seeded(3)
    p = np.full(k, 1 / k)
    q = p + np.tile([0.4 / k, -0.4 / k], k // 2)
    hits = []
    for _ in range(120):
        test = counts(rng.multinomial(300, p), rng.multinomial(300, q))
        hits.append(test.fit(1.0, permutations=199, rng=rng).reject)
    assert np.mean(hits) == pytest.approx(0.84, abs=0.11)


def test_all_ways_to_give_the_same_choices_agree():
    table = {"x": {"a": 5, "b": 9, "c": 0}, "y": {"a": 8, "b": 2, "c": 3}}
    frame = pd.DataFrame(
        [(g, c) for g, row in table.items() for c, n in row.items() for _ in range(n)],
        columns=["group", "choice"],
    )
    typed = frame.astype({"choice": pd.CategoricalDtype(list("abc")), "group": "category"})
    tests = [
        pr.ClosenessTest.from_counts(table),
        pr.ClosenessTest.from_counts(pd.DataFrame(table)),
        pr.ClosenessTest.from_formula("choice ~ group", typed),
        pr.ClosenessTest.from_formula(
            "choice ~ group", frame, levels=["x", "y"], categories=list("abc")
        ),
        pr.ClosenessTest(*[typed.loc[typed["group"] == g, "choice"] for g in "xy"]),
    ]
    results = [test.fit(1.0, effect_epsilon=1.0, rng=seeded()) for test in tests]
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
        pvalues.append(several.fit(5.0, permutations=49, rng=rng).pvalue)
        rows = pr.ClosenessTest.from_formula("choice ~ group", frame, **options)
        naive.append(rows.fit(5.0, permutations=49, rng=rng).pvalue)
    assert kstest(pvalues, "uniform").pvalue > 1e-3
    assert np.mean(np.array(naive) <= 0.05) > 0.1


def test_effect_has_a_budget_of_its_own_and_an_interval():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.3, 0.4])
    distance, rng, covered = 0.2, seeded(2), []
    for _ in range(100):
        test = counts(rng.multinomial(400, p), rng.multinomial(300, q))
        result = test.fit(1.0, effect_epsilon=0.5, permutations=19, rng=rng)
        low, high = result.conf_int()
        covered.append(low <= distance <= high)
    assert np.mean(covered) >= 0.95 and high - low < 0.5
    budget = pr.Budget(epsilon=2.0, unit="row")
    test.fit(1.0, effect_epsilon=0.5, budget=budget)
    assert budget.spent == (1.5, 0.0) and result.epsilon == 1.5
    with pytest.raises(pr.BudgetExceeded):
        test.fit(0.4, effect_epsilon=0.2, budget=budget)
    parts = result.release.parts
    assert parts["statistic"].epsilon + parts["p-value"].epsilon == pytest.approx(1.5)
    plain = test.fit(1.0, rng=rng)
    assert plain.effect is None and set(plain.release.parts) == {"p-value"}
    with pytest.raises(ValueError, match="effect_epsilon"):
        plain.conf_int()


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


def test_decisions_come_alone():
    one, other = mallows(0.5, 150), mallows(0.9, 150, seed=2)
    result = pr.ClosenessTest(one, other).fit(1.0, method="kim-schrab", rng=seeded())
    assert result.reject and result.pvalue is None and "no p-value" in str(result.summary())
    assert pr.from_json(result.to_json()).reject
    again = pr.ClosenessTest.from_release(result.release, alpha=0.2)
    assert again.alpha == 0.05
    bit = counts([90, 10], [10, 90]).fit(8.0, method="sigmoid", rng=seeded())
    assert bit.reject and "no test of a stated level" in " ".join(str(bit.summary()).split())


def test_secret_labels_cost_more_and_hide_the_sizes():
    frame = pd.DataFrame({"group": ["x"] * 33 + ["y"] * 47, "choice": ["a", "b"] * 40})
    options = {"levels": ["x", "y"], "categories": ["a", "b"]}
    public = pr.ClosenessTest.from_formula("choice ~ group", frame, **options)
    secret = pr.ClosenessTest.from_formula(
        "choice ~ group", frame, labels="private", min_group_sizes=(30, 30), **options
    )
    shown, hidden = public.fit(1.0, rng=seeded()), secret.fit(1.0, rng=seeded())
    assert shown.asked.sensitivity == 1 / 33 and hidden.asked.sensitivity == pytest.approx(
        2 / 30 + 1 / 31
    )
    for text in (repr(secret), str(hidden.summary()), str(hidden.release.survey)):
        assert not set(re.findall(r"\d+", text)) & {"33", "47"}
    assert "at least 30" in str(hidden.summary()) and "who is in which group" in " ".join(
        str(hidden.summary()).split()
    )
    again = pr.from_json(hidden.to_json())
    assert again.secret_labels and str(again.summary()) == str(hidden.summary())


def test_every_neighbour_of_secret_labels_is_within_reach():
    # all data of four people, two categories: T at re-labellings that differ in one place
    from itertools import product

    from privrank.mechanisms.statistics.permutation import total_variation

    def distance(values, labels):
        table = np.zeros((1, 2, 2), dtype=np.int32)
        for value, label in zip(values, labels, strict=True):
            table[0, label, value] += 1
        return float(total_variation(table)[0])

    for n, (small, large) in ((5, (2, 2)), (6, (2, 3)), (7, (2, 4))):
        reach, worst = 2 / small + 1 / (large + 1), 0.0
        labelled = [
            labels
            for labels in product((0, 1), repeat=n)
            if min(sum(labels), n - sum(labels)) >= small
            and max(sum(labels), n - sum(labels)) >= large
        ]
        for values, labels in product(product((0, 1), repeat=n), labelled):
            flipped = (*labels[:-1], 1 - labels[-1])
            if flipped not in labelled:
                continue
            changed = (1 - values[0], *values[1:])
            worst = max(worst, abs(distance(values, labels) - distance(changed, flipped)))
        assert worst <= reach


def test_results_archive_print_and_stand_side_by_side():
    result = university("study").fit(1.0, effect_epsilon=0.5, rng=seeded())
    again = pr.from_json(result.to_json())
    assert again.to_json() == result.to_json() and str(again.summary()) == str(result.summary())
    assert str(pickle.loads(pickle.dumps(result)).summary()) == str(result.summary())
    text = " ".join(str(result.summary()).split())
    for words in (
        "Private Test of Closeness", "Groups: 2", "replace one respondent", "Epsilon: 1.5",
        "H0: the rankings of all groups have the same distribution.", "SEEDED", "p-value accounts",
        "taken as public", "commerce 111",
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


@pytest.mark.parametrize("method", ["auto", "kendall", "kim-schrab"])
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
    assert set(result.release.plan.settings) <= {"permutations", "scale", "level"}


def rankings(**arguments):
    return pr.ClosenessTest(mallows(0.8, 20), mallows(0.8, 20, seed=2), **arguments)


def formula(text="a + b + c + d ~ group", frame=None, **arguments):
    frame = canaries() if frame is None else frame
    return pr.ClosenessTest.from_formula(text, frame, **arguments)


def secret(groups, **arguments):
    """A comparison of choices under secret labels, made from the group of each unit."""
    frame = pd.DataFrame({"group": groups, "choice": np.resize(["a", "b"], len(groups))})
    options = {"levels": ["x", "y"], "categories": ["a", "b"], "labels": "private"}
    return pr.ClosenessTest.from_formula("choice ~ group", frame, **options | arguments)


REFUSED = {
    "an empty group": (
        lambda: formula(frame=canaries().head(40)),
        ["'y' has 0", "at least two units"],
    ),
    "an unknown group": (lambda: formula(levels=["x", "z"]), ["'group'", "levels="]),
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
    "one unit": (lambda: pr.ClosenessTest(mallows(0.8, 20), mallows(0.8, 1)), ["two units"]),
    "a frame and a Series": (
        lambda: pr.ClosenessTest(mallows(0.8, 20), pd.Series([1, 2])),
        ["data frame"],
    ),
    "method for choices": (lambda: rankings().fit(1.0, method="tv"), ["for rankings"]),
    "an unknown method": (lambda: rankings().fit(1.0, method="ks"), ["method must be one of"]),
    "a free decision": (lambda: rankings().fit(np.inf, method="kim-schrab"), ["finite epsilon"]),
    "a free effect": (lambda: rankings().fit(np.inf, effect_epsilon=1), ["leave it out"]),
    "no effect": (lambda: rankings().fit(1.0, effect_epsilon=0), ["positive and finite"]),
    "few permutations": (lambda: rankings().fit(1.0, permutations=9), ["between 19 and"]),
    "many permutations": (lambda: rankings().fit(1.0, permutations=10**6), ["between 19 and"]),
    "secret labels of rankings": (
        lambda: rankings(labels="private", min_group_sizes=(5, 5)),
        ["two samples of choices"],
    ),
    "secret labels without sizes": (lambda: rankings(labels="private"), ["min_group_sizes="]),
    "broken promises": (
        lambda: secret(["x"] * 33 + ["y"] * 47, min_group_sizes=(30, 50)),
        ["from below"],
    ),
    "sizes of public labels": (lambda: rankings(min_group_sizes=(5, 5)), ["leave it out"]),
    "unequal sizes for a bit": (
        lambda: counts([5, 5], [5, 6]).fit(1.0, method="sigmoid"),
        ["same size"],
    ),
    "counts of one group": (
        lambda: pr.ClosenessTest.from_counts({"x": {"a": 3, "b": 4}}),
        ["at least two groups"],
    ),
    "counts of other categories": (
        lambda: pr.ClosenessTest.from_counts({"x": {"a": 3, "b": 4}, "y": {"a": 3, "c": 4}}),
        ["same items, or categories"],
    ),
    "too many rankings to compare": (
        lambda: pr.ClosenessTest(
            np.tile(np.arange(1, 8), (15_000, 1)), np.tile(np.arange(1, 8), (15_000, 1))
        ).fit(1.0),
        ["20,000", "random sample"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_in_one_sentence(case):
    build, words = REFUSED[case]
    with pytest.raises((ValueError, TypeError)) as caught:
        build()
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message and CANARY not in message
    assert len(re.findall(r"[.?!](?=\s+[A-Z])", message)) == 0
    for word in words:
        assert word in message


def test_noise_of_p_value_and_effect_is_as_wide_as_epsilon_asks():
    test = counts([90, 10, 30], [30, 80, 20])
    fits = [test.fit(1.0, effect_epsilon=0.5, permutations=19, rng=seeded(k)) for k in range(200)]
    part = fits[0].release.parts["statistic"]
    assert 0.499 < part.sensitivity / part.law.scale <= 0.5
    assert part.step * 1024 == pytest.approx(1 / 130)
    spread = np.var([int(fit.release.parts["statistic"].values[0]) for fit in fits], ddof=1)
    assert 0.6 < spread / part.law.variance < 1.7
    # 2.25 reach / epsilon for the p-value
    assert 2.25 / 130 <= fits[0].release.plan.settings["scale"] < 2.26 / 130
