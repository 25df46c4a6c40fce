"""Tests of identity: levels and power against given nulls, intervals, refusals, archives."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest, kstest
from searching import CANARY, ODD, has_canary, reachable
from sentences import refused_briefly

import privrank as pr
from privrank.hypotheses import nulls
from privrank.results.claims import CLAIMS

SHARES = {"a": 0.5, "b": 0.3, "c": 0.15, "d": 0.05}


def seeded(seed=7):
    return np.random.default_rng(seed)


def choices(n=300, shares=SHARES, null=SHARES, seed=1):
    rng = seeded(seed)
    counts = rng.multinomial(n, list(shares.values()))
    table = dict(zip(shares, map(int, counts), strict=True))
    return pr.IdentityTest.from_counts(table, null, list(shares) if null == "uniform" else None)


def rankings(phi=0.8, null=0.8, n=200, m=5, seed=1, center=None):
    ranks = pr.Mallows(m, phi, center).rvs(n, seeded(seed))
    return pr.IdentityTest(ranks, pr.Mallows(m, null))


def false_alarms(build, epsilon, replicates=200, **options):
    hits = [build(k).fit(epsilon, rng=seeded(k), **options).pvalue for k in range(replicates)]
    return np.array(hits)


@pytest.mark.parametrize("method", ["auto", "omnibus"])
def test_choices_keep_their_level_and_find_other_shares(method):
    options = {"method": method, "draws": 999}
    pvalues = false_alarms(lambda k: choices(seed=k), 0.5, **options)
    assert np.mean(pvalues <= 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)
    assert kstest(pvalues, "uniform", alternative="greater").pvalue > 1e-3
    other = {"a": 0.1, "b": 0.1, "c": 0.1, "d": 0.7}
    assert choices(2000, other).fit(2.0, rng=seeded(), **options).pvalue < 0.01


@pytest.mark.parametrize("method", ["auto", "kernel", "distance"])
def test_mallows_nulls_keep_their_level_and_find_other_models(method):
    options = {"method": method, "draws": 999}
    pvalues = false_alarms(lambda k: rankings(n=60, m=6, seed=k), 1.0, **options)
    assert np.mean(pvalues <= 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)
    assert kstest(pvalues, "uniform").pvalue > 1e-3
    center = None if method == "distance" else np.array([5, 4, 3, 2, 1, 6])
    other = rankings(0.5 if center is None else 0.8, n=400, m=6, center=center)
    assert other.fit(1.0, rng=seeded(), **options).pvalue < 0.01


def test_two_categories_are_a_binomial_test():
    counts = {"a": 32, "b": 18}
    test = pr.IdentityTest.from_counts(counts, {"a": 0.5, "b": 0.5})
    for alternative, word in (
        ("two-sided", "two-sided"),
        ("larger", "greater"),
        ("smaller", "less"),
    ):
        result = test.fit(np.inf, method="binary", alternative=alternative)
        assert result.pvalue == pytest.approx(binomtest(32, 50, alternative=word).pvalue, rel=1e-9)
        assert result.draws is None
    private = test.fit(1.0, method="binary", rng=seeded())
    low, high = private.conf_int()
    assert 0 <= low < 0.14 < high
    pvalues = []
    for k in range(300):
        counts = {"a": int(seeded(k).binomial(50, 0.5))}
        counts["b"] = 50 - counts["a"]
        fresh = pr.IdentityTest.from_counts(counts, {"a": 0.5, "b": 0.5})
        fit = fresh.fit(0.5, method="binary", alternative="larger", rng=seeded(k))
        pvalues.append(fit.pvalue)
    assert kstest(pvalues, "uniform", alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize(("alternative", "word"), [("larger", "greater"), ("smaller", "less")])
def test_the_default_takes_a_side_of_two_categories(alternative, word):
    test = pr.IdentityTest.from_counts({"a": 32, "b": 18}, {"a": 0.55, "b": 0.45})
    result = test.fit(np.inf, alternative=alternative)
    assert result.pvalue == pytest.approx(binomtest(32, 50, 0.55, word).pvalue, rel=1e-9)
    one, two = (
        test.fit(0.5, method=method, alternative=alternative, rng=seeded())
        for method in ("auto", "binary")
    )
    assert one.release.values == two.release.values and one.pvalue == two.pvalue
    assert pr.from_json(one.to_json()).pvalue == one.pvalue
    null = {"a": 0.55, "b": 0.45}
    assert pr.IdentityTest.from_release(one.release, null).pvalue == one.pvalue
    assert one.hypotheses[1] == two.hypotheses[1] and "the first category is" in one.hypotheses[1]


def test_a_side_of_a_null_that_rules_out_a_category():
    test = pr.IdentityTest.from_counts({"a": 49, "b": 1}, {"a": 1.0, "b": 0.0})
    assert test.fit(np.inf, alternative="smaller").pvalue == 0.0
    assert test.fit(np.inf, alternative="larger").pvalue == 1.0


def test_listed_rankings_of_two_items_are_a_binomial_test():
    ranks = pd.DataFrame([[1, 2]] * 14 + [[2, 1]] * 5, columns=["a", "b"])
    table = pd.DataFrame({"a": [2, 1], "b": [1, 2], "probability": [0.6, 0.4]})
    test = pr.IdentityTest(ranks, table, items=["a", "b"])
    result, terms = test.fit(np.inf), binom.pmf(range(20), 19, 0.4)
    beyond = [k for k in range(20) if abs(k - 19 * 0.4) >= 14 - 19 * 0.4 - 1e-9]
    assert result.pvalue == pytest.approx(terms[beyond].sum(), rel=1e-9)
    fit = test.fit(1.0, rng=seeded())
    assert pr.IdentityTest.from_release(fit.release, table).pvalue == fit.pvalue
    with pytest.raises(ValueError, match="alternative is for choices of two categories"):
        test.fit(1.0, alternative="larger")


def test_a_uniform_null_is_the_test_of_uniformity():
    counts = {"a": 30, "b": 50, "c": 20}
    listed = list(counts)
    one = pr.IdentityTest.from_counts(counts, "uniform", listed)
    two = pr.UniformityTest.from_counts(counts, listed)
    one, two = (test.fit(1.0, method="tv", rng=seeded()) for test in (one, two))
    assert one.pvalue == two.pvalue and one.conf_int() == two.conf_int()
    ranks = pr.Mallows(5, 0.9).rvs(80, seeded())
    for epsilon in (1.0, np.inf):
        for one, two in (
            (
                pr.IdentityTest.from_counts(counts, "uniform", listed),
                pr.UniformityTest.from_counts(counts, listed),
            ),
            (pr.IdentityTest(ranks, "uniform"), pr.UniformityTest(ranks)),
        ):
            one, two = (test.fit(epsilon, draws=499, rng=seeded()) for test in (one, two))
            assert (one.statistic, one.pvalue) == (two.statistic, two.pvalue)
            assert one.threshold == two.threshold
    borda = [test.fit(1.0, method="borda", draws=99, rng=seeded()).statistic
             for test in (pr.IdentityTest(ranks, "uniform"), pr.UniformityTest(ranks))]  # fmt: skip
    assert borda[0] == borda[1]
    lumped = np.repeat([4, 0], [25, 175])
    many = pr.IdentityTest.from_counts(lumped, "uniform", range(200))
    assert many.fit(5.0, method="paninski", draws=499, rng=seeded()).pvalue < 0.05


def test_a_table_of_rankings_is_a_null():
    model = pr.Mallows(["x", "y", "z"], 0.6)
    table = pd.DataFrame(
        [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]], columns=list("xyz")
    )
    table["probability"] = model.pmf(table[list("xyz")].to_numpy())
    ranks = pd.DataFrame(model.rvs(300, seeded()), columns=list("xyz"))
    for method in ("auto", "tv"):
        fit = pr.IdentityTest(ranks, table).fit(1.0, method=method, draws=499, rng=seeded())
        assert fit.pvalue > 0.01
        reverse = pr.IdentityTest(4 - ranks, table).fit(1.0, method=method, draws=499, rng=seeded())
        assert reverse.pvalue < 0.01


def test_intervals_cover_and_names_are_matched():
    distance = 0.15
    shares = {"a": 0.35, "b": 0.3, "c": 0.25, "d": 0.1}
    covered = []
    for k in range(100):
        fit = choices(400, shares, seed=k).fit(0.5, method="tv", draws=99, rng=seeded(k))
        low, high = fit.conf_int()
        covered.append(low <= distance <= high)
    assert np.mean(covered) >= 0.95
    # a null's labels decide, not their order; a centre's as well
    turned = dict(reversed(SHARES.items()))
    one, two = (choices(null=null).fit(1.0, draws=99, rng=seeded()) for null in (SHARES, turned))
    assert one.pvalue == two.pvalue
    frame = pd.DataFrame(pr.Mallows(["x", "y", "z"], 0.3).rvs(200, seeded()), columns=list("xyz"))
    fits = [
        pr.IdentityTest(frame[list(order)], pr.Mallows(list(names), 0.3, center)).fit(
            1.0, draws=499, rng=seeded()
        )
        for order, names, center in (
            ("xyz", "xyz", None), ("zyx", "xyz", None), ("xyz", "yxz", np.array([2, 1, 3])),
        )
    ]  # fmt: skip
    assert all(fit.pvalue > 0.01 for fit in fits)
    assert fits[0].pvalue == fits[2].pvalue


def test_detectable_effects():
    effect = rankings(n=150).fit(1.0, draws=999, rng=seeded()).detectable_effect(replicates=100)
    assert 0.8 < effect.phi <= 1 and 0 < effect.total_variation < 0.9
    tilted = choices(200).fit(1.0, draws=999, rng=seeded()).detectable_effect(replicates=100)
    assert 0.05 < tilted.total_variation < 0.4


@pytest.mark.parametrize(
    ("build", "options"),
    [
        (choices, {}),
        (choices, {"method": "omnibus"}),
        (rankings, {}),
        (rankings, {"method": "distance"}),
        (lambda: choices(null="uniform"), {"method": "sigmoid", "tolerance": 0.2}),
        (lambda: choices(shares={"a": 0.5, "b": 0.5}, null="uniform"), {"method": "binary"}),
    ],
)
def test_archived_results_come_back_without_drawing(build, options, monkeypatch):
    result = build().fit(1.0, 1e-6, rng=seeded(), **options, draws=499)
    text, shown = result.to_json(), str(result.summary())
    monkeypatch.setattr(nulls, "in_processes", None)
    again = pr.from_json(text)
    assert again.to_json() == text and str(again.summary()) == shown
    assert str(pickle.loads(pickle.dumps(result)).summary()) == shown
    words = " ".join(shown.split())
    for part in ("Private Test of Identity", "H0:", "H1: ", "seeded (do not publish)", "exp(1)"):
        assert part in words
    assert ("none stated" in words or CLAIMS["bit"] in words) == (
        options.get("method") == "sigmoid"
    )


def test_nothing_of_the_data_gets_out():
    ranks = pd.DataFrame(pr.Mallows(4, 0.8).rvs(60, seeded()), columns=list("abcd"))
    frame = ranks.assign(who=[f"{CANARY}-{k // 2}" for k in range(60)], number=ODD)
    null = pr.Mallows(list("abcd"), 0.8)
    test = pr.IdentityTest(frame, null, items=list("abcd"), respondent="who", max_rows=2)
    result = test.fit(1.0, draws=99, rng=seeded(ODD))
    for text in (repr(test), result.to_json(), str(result.summary()), str(pickle.dumps(result))):
        assert CANARY not in text and str(ODD) not in text
    for root in (test, result):
        assert not [item for item in reachable(root) if has_canary(item) or item is frame]


def refuse(null, data=None):
    data = {"a": 5, "b": 6, "c": 7} if data is None else data
    return pr.IdentityTest.from_counts(data, null, list(data))


REFUSED = {
    "no sum": (lambda: refuse({"a": 0.5, "b": 0.4, "c": 0.4}), ["sum to 1", "1.3"]),
    "counts": (lambda: refuse({"a": 5, "b": 4, "c": 4}), ["sum to 13", "null_nobs= their total"]),
    "negative": (lambda: refuse([0.5, 0.7, -0.2]), ["negative or missing"]),
    "missing": (lambda: refuse([0.5, 0.5, np.nan]), ["negative or missing"]),
    "too few": (lambda: refuse([0.5, 0.5]), ["2 for 3 categories"]),
    "other labels": (lambda: refuse({"a": 0.5, "x": 0.5}), ["declared categories"]),
    "words": (lambda: refuse(["one", "two", "three"]), ["numbers"]),
    "a number": (lambda: refuse(0.5), ["null must be", "float"]),
    "a word": (lambda: refuse("normal"), ["'uniform'", "'normal'"]),
    "a model of rankings": (lambda: refuse(pr.Mallows(3, 0.5)), ["about rankings"]),
    "other items": (
        lambda: pr.IdentityTest(np.array([[1, 2, 3], [3, 1, 2]]), pr.Mallows(4, 0.5)),
        ["same items"],
    ),
    "one ranking alone": (
        lambda: pr.IdentityTest(np.array([[1, 2, 3], [3, 1, 2]]), pr.Mallows(3, 0.0)),
        ["positive probability"],
    ),
    "probabilities of rankings": (
        lambda: pr.IdentityTest(np.array([[1, 2, 3], [3, 1, 2]]), [0.5, 0.5]),
        ["'probability'"],
    ),
    "method for this null": (
        lambda: refuse(SHARES, dict.fromkeys(SHARES, 5)).fit(1.0, method="paninski"),
        ["method must be one of", "for choices"],
    ),
    "a side for all": (
        lambda: refuse([0.2, 0.3, 0.5]).fit(1.0, alternative="larger"),
        ["alternative is for choices of two categories", "'binary'"],
    ),
    "a bit without tolerance": (
        lambda: refuse("uniform").fit(1.0, method="sigmoid"),
        ["tolerance"],
    ),
    "a tolerance without a bit": (
        lambda: refuse("uniform").fit(1.0, tolerance=0.1),
        ["tolerance"],
    ),
    "a bit of nothing": (
        lambda: refuse("uniform").fit(np.inf, method="sigmoid", tolerance=0.1),
        ["finite epsilon"],
    ),
    "answers behind a model": (
        lambda: pr.IdentityTest(np.array([[1, 2, 3], [3, 1, 2]]), pr.Mallows(3, 0.5), null_nobs=50),
        ["null_nobs=", "Mallows model"],
    ),
    "no answers behind a null": (lambda: estimated(0), ["null_nobs must be at least 2"]),
    "noise that is no number": (lambda: estimated(90, "x"), ["null_noise must be a standard"]),
    "noise of counts that nobody told": (lambda: estimated(None, 1.0), ["null_nobs"]),
    "noise above all that answers tell": (lambda: estimated(90, 1e3), ["null_noise must leave"]),
    "half an answer": (lambda: estimated(10.5), ["null_nobs must be an integer"]),
    "a method of an exact null": (
        lambda: estimated(50).fit(1.0, method="omnibus"),
        ["'auto', 'tv'", "null_nobs="],
    ),
    "a tolerance of an exact null": (
        lambda: estimated(50).fit(1.0, draws=99),
        ["draws", "null_nobs"],
    ),
    "answers behind a null of lists": (
        lambda: pr.IdentityTest(
            pd.DataFrame({"a": [1, 1], "b": [1, 2]}),
            pd.DataFrame({"a": [1, 2], "b": [2, 1], "probability": [0.5, 0.5]}),
            ties="complete",
            null_nobs=50,
        ),
        ["ties= and missing="],
    ),
    "categories of rankings": (
        lambda: pr.IdentityTest(np.array([[1, 2], [2, 1]]), "uniform", categories=["a"]),
        ["categories= is for choices"],
    ),
}


def estimated(number, noise=None, counts=(5, 6, 7), null=(0.25, 0.25, 0.5)):
    names = "abcdef"[: len(counts)]
    table, shares = (dict(zip(names, each, strict=True)) for each in (counts, null))
    return pr.IdentityTest.from_counts(table, shares, null_nobs=number, null_noise=noise)


def test_an_estimated_null_keeps_its_level_and_an_exact_one_does_not():
    rng, p = seeded(3), np.array([0.4, 0.3, 0.2, 0.1])
    exact, told = [], []
    for _ in range(90):
        before, now = rng.multinomial(400, p) / 400, rng.multinomial(400, p)
        told.append(estimated(400, None, now, before).fit(2.0, rng=rng).reject)
        test = estimated(None, None, now, before)
        exact.append(test.fit(2.0, draws=499, rng=rng).reject)
    assert np.mean(told) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 90) and np.mean(exact) > 0.15
    other = rng.multinomial(400, p[::-1])
    assert estimated(400, None, other, before).fit(2.0, rng=rng).pvalue < 0.01


def compared(test):
    """Return the data and the answers behind the null, as the test of two samples has them."""
    return [part._rows for part in test._two._encoded._parts]


def test_the_answers_behind_a_null_are_a_second_sample():
    shares, rounded = np.array([137, 202, 61]) / 400, (0.343, 0.505, 0.152)
    exact, near = (compared(estimated(400, None, (90, 60, 50), null)) for null in (shares, rounded))
    assert [rows.tolist() for rows in exact] == [[90, 60, 50], [137, 202, 61]]
    assert near[1].sum() == 400 and abs(near[1] - 400 * shares).max() < 1
    counts = {"data": [90, 60, 50], "answers behind the null": [137, 202, 61]}
    expected = pr.ClosenessTest.from_counts(counts, list("abc")).fit(1.0, rng=seeded())
    result = estimated(400, None, (90, 60, 50), shares).fit(1.0, rng=seeded())
    assert result.pvalue == expected.pvalue
    assert str(pr.from_json(result.to_json()).summary()) == str(result.summary())
    said = " ".join(str(result.summary()).split())
    assert "data (n = 200), answers behind the null (n = 400). The 600 rows are 200 of" in said
    ranks = np.array([[1, 2], [2, 1], [1, 2]])
    table = pd.DataFrame({"a": [1, 2], "b": [2, 1], "probability": [0.25, 0.75]})
    test = pr.IdentityTest(ranks, table, items=["a", "b"], null_nobs=8)
    assert compared(test)[1].tolist() == [[1, 2]] * 2 + [[2, 1]] * 6
    people = pd.DataFrame({"who": [0, 0, 1, 2], "choice": list("aabb")})
    known = {"categories": ["a", "b"], "respondent": "who", "max_rows": 2, "null_nobs": 10}
    test = pr.IdentityTest.from_formula("choice ~ 1", people, {"a": 0.5, "b": 0.5}, **known)
    fit = test.fit(1.0, rng=seeded())
    assert fit.nobs == 13 and fit.release.sample.unit == "respondent"
    with pytest.raises(ValueError, match="at no further cost"):
        test.fit(1.0, effect_epsilon=1.0, rng=seeded())


@pytest.mark.parametrize("noise", [0.0, 3.0, 12.0])
def test_answers_that_stand_for_a_noisy_null_vary_at_least_as_much(noise):
    """Along every function of the categories, and less than a fifth more answers do not."""
    p, n = np.array([0.05, 0.25, 0.3, 0.4]), 400
    each, away = np.diag(p) - np.outer(p, p), np.eye(4) - np.outer(p, np.ones(4))
    noisy = each / n + (noise / n) ** 2 * away @ away.T
    answers = compared(estimated(n, noise, (9, 9, 9, 9), p))[1].sum()
    assert np.linalg.eigvalsh(each / answers - noisy).min() > -1e-12
    assert np.linalg.eigvalsh(each / (1.2 * answers + 1.0) - noisy).min() < 0.0


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_briefly(case):
    build, words = REFUSED[case]
    refused_briefly(build, (ValueError, TypeError), words)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_bit_of_two_categories_is_private_and_answers(epsilon):
    from privrank.published.asz18 import binary_bit

    n, p = 12, 0.3
    bit = binary_bit(n, p, epsilon, 0.2)
    chances = np.array([bit.probability(np.array([k, n - k]), ()) for k in range(n + 1)])
    for distribution in (chances, 1 - chances):
        assert np.abs(np.diff(np.log(distribution))).max() <= epsilon * (1 + 1e-9)
        assert np.abs(np.diff(np.log(distribution))).max() > 0.5 * epsilon * min(1, 1 / epsilon)
    test = pr.IdentityTest.from_counts({"a": 90, "b": 10}, {"a": 0.3, "b": 0.7})
    result = test.fit(epsilon, method="sigmoid", tolerance=0.2, rng=seeded())
    assert result.reject and result.pvalue is None
    assert pr.from_json(result.to_json()).reject


def test_a_one_sided_test_leaves_the_interval_of_the_distance_alone():
    counts, even = {"a": 50, "b": 950}, {"a": 0.5, "b": 0.5}
    asked = {"method": "binary", "alternative": "larger", "effect_epsilon": 2.0}
    fit = pr.IdentityTest.from_counts(counts, even).fit(2.0, rng=np.random.default_rng(1), **asked)
    low, high = fit.conf_int()
    assert not fit.reject and 0.4 < low < 0.45 < high
    assert "H1: the first category is more likely" in " ".join(str(fit.summary()).split())


@pytest.mark.parametrize("alternative", ["larger", "smaller"])
def test_effects_in_the_direction_of_the_alternative_are_detected(alternative):
    test = pr.IdentityTest.from_counts({"a": 300, "b": 700}, {"a": 0.3, "b": 0.7})
    fit = test.fit(2.0, method="binary", alternative=alternative, rng=np.random.default_rng(1))
    assert 0.02 < fit.detectable_effect(replicates=100).total_variation < 0.1


def test_an_interval_takes_no_more_memory_where_the_noise_is_huge():
    counts, null = {"a": 500, "b": 300, "c": 200}, {"a": 0.5, "b": 0.25, "c": 0.25}
    test = pr.IdentityTest.from_counts(counts, null)
    fit = test.fit(1.0, effect_epsilon=1e-7, draws=99, rng=np.random.default_rng(1))
    low, high = fit.conf_int()
    assert (low > 0) == fit.reject and 0 < high <= 0.75
