"""Tests of uniformity: valid p-values, the right refusals, results that archive and print."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, friedmanchisquare, kendalltau, kstest

import privrank as pr
from privrank.hypotheses import nulls
from privrank.hypotheses.nulls import Null, uniform_rankings
from privrank.mechanisms.ranknorms import borda_norm
from privrank.privacy.noise import DiscreteLaplace
from privrank.results.tables import statistic_words

CEMS = pr.datasets.load_university()


def seeded(seed=7):
    return np.random.default_rng(seed)


def consensus(n=200, m=5, phi=0.8, seed=1):
    return pr.Mallows(m, phi).rvs(n, seeded(seed))


def test_the_university_students_do_not_rank_at_random():
    budget = pr.Budget(epsilon=1.0, unit="respondent")
    test = pr.UniformityTest(CEMS.rankings(), respondent="respondent")
    result = test.fit(epsilon=0.5, budget=budget)
    assert result.reject and result.pvalue < 0.01 and result.nobs == 303
    assert result.release.source == "secure" and budget.spent == (0.5, 0.0)
    with pytest.raises(pr.BudgetExceeded):
        test.fit(epsilon=0.6, budget=budget)


def test_nothing_is_read_before_the_budget_allows(monkeypatch):
    test = pr.UniformityTest(consensus())
    budget = pr.Budget(epsilon=0.1, unit="row")
    monkeypatch.setattr("privrank.mechanisms.samples.one_row_each", None)
    with pytest.raises(pr.BudgetExceeded):
        test.fit(epsilon=1.0, budget=budget)
    with pytest.raises(ValueError, match="protects one respondent"):
        test.fit(epsilon=0.05, budget=pr.Budget(epsilon=1.0, unit="respondent"))


def test_without_noise_mean_ranks_alone_are_friedmans_test():
    ranks = consensus(30, 6, 0.93)
    result = pr.UniformityTest(ranks).fit(np.inf, method="borda")
    n, m = ranks.shape
    statistic, approximate = friedmanchisquare(*ranks.T)
    # Friedman's statistic is 12 / (n m (m + 1)) sum (R_j - n (m + 1) / 2)^2 = |sum x|^2 / n
    assert result.statistic**2 / n == pytest.approx(statistic, rel=0.02)
    assert result.pvalue == pytest.approx(approximate, abs=0.01)
    assert result.release.mechanism == "Borda norm" and "non-private" in str(result.summary())


def test_without_noise_pairs_of_two_items_are_a_binomial_test():
    ranks = np.array([[1, 2]] * 14 + [[2, 1]] * 5)
    exact = binomtest(14, 19).pvalue
    for method in ("laplace", "mallows"):
        drawn = pr.UniformityTest(ranks).fit(np.inf, method=method)
        assert drawn.pvalue == pytest.approx(exact, abs=4 * drawn.pvalue_error)


def test_without_noise_two_rankings_are_kendalls_test():
    rng = seeded(3)
    ranks = np.stack(
        [np.arange(1, 61), np.argsort(np.argsort(np.arange(60) + 22 * rng.random(60))) + 1]
    )
    result = pr.UniformityTest(ranks).fit(np.inf, method="two-sample")
    tau = kendalltau(*ranks, alternative="greater", method="exact")
    assert result.pvalue == pytest.approx(tau.pvalue, abs=max(4 * result.pvalue_error, 1e-3))
    assert result.statistic == pytest.approx((tau.statistic + 1) / 2 * 60 * 59 / 2)


@pytest.mark.parametrize("m", [2, 3, 5, 20, 46])
def test_two_rankings_of_few_items_are_tested_without_a_published_guarantee(m):
    rng, agreeing, pvalues = seeded(m), m * (m - 1) // 2, []
    for swaps in (0, 1):
        ranks = np.stack([np.arange(1, m + 1)] * 2)
        ranks[1, : swaps + 1] = ranks[1, : swaps + 1][::-1]
        result = pr.UniformityTest(ranks).fit(np.inf, method="two-sample")
        tau = kendalltau(*ranks, alternative="greater", method="exact")
        assert result.pvalue == pytest.approx(tau.pvalue, abs=max(4 * result.pvalue_error, 1e-3))
        assert result.statistic == agreeing - swaps
    for _ in range(200):
        ranks = np.stack([rng.permutation(m) + 1 for _ in range(2)])
        fit = pr.UniformityTest(ranks).fit(1.0, method="two-sample", draws=999, rng=rng)
        pvalues.append(fit.pvalue)
    assert kstest(pvalues, "uniform", alternative="greater").pvalue > 1e-3
    assert "tolerance" not in fit.release.plan.settings
    assert pr.from_json(fit.to_json()).pvalue == fit.pvalue
    assert pr.UniformityTest.from_release(fit.release, draws=999).pvalue == fit.pvalue
    with pytest.raises(ValueError, match="at no tolerance: leave tolerance= out"):
        pr.UniformityTest(ranks).fit(1.0, method="two-sample", tolerance=0.99)


METHODS = ["auto", "borda", "laplace", "mallows", "omnibus", "truncated", "bucket"]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_strong_consensus_and_keeps_its_level(method):
    strong = pr.UniformityTest(consensus(2000, 5, 0.4))
    hits = [strong.fit(1.0, method=method, rng=seeded(k)).reject for k in range(15)]
    # a coin answers one time in twenty, and wrongly half of those times
    assert np.mean(hits) >= (0.8 if method in ("truncated", "bucket") else 1.0)
    rng = seeded(11)
    false = []
    for _ in range(120):
        test = pr.UniformityTest(uniform_rankings(rng, 300, 4))
        false.append(test.fit(1.0, method=method, rng=rng).reject)
    assert np.mean(false) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 120)


@pytest.mark.parametrize("method", ["auto", "tv", "omnibus"])
def test_choices_are_tested_at_their_level_and_with_power(method):
    uneven = pr.UniformityTest.from_counts([240, 120, 140, 100], list("abcd"))
    assert uneven.fit(1.0, method=method, rng=seeded()).pvalue < 0.01
    rng = seeded(5)
    pvalues = []
    for _ in range(300):
        test = pr.UniformityTest.from_counts(rng.multinomial(200, [0.25] * 4), list("abcd"))
        pvalues.append(test.fit(0.5, method=method, rng=rng).pvalue)
    assert np.mean(np.array(pvalues) <= 0.05) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)
    # a statistic of few values makes p-values of few values, which may be too large but not small
    assert kstest(pvalues, "uniform", alternative="greater").statistic < 0.09


def test_total_variation_has_an_interval_that_covers():
    p = np.array([0.3, 0.3, 0.1, 0.1, 0.1, 0.1])
    distance = np.abs(p - 1 / 6).sum() / 2
    rng = seeded(2)
    covered, widths = [], []
    for _ in range(15):
        test = pr.UniformityTest.from_counts(rng.multinomial(300, p), list("abcdef"))
        low, high = test.fit(0.5, method="tv", rng=rng).conf_int()
        covered.append(low <= distance <= high)
        widths.append(high - low)
    assert np.mean(covered) >= 0.8 and np.mean(widths) < 0.27
    with pytest.raises(ValueError, match="method='tv'"):
        test.fit(0.5, rng=rng).conf_int()


def test_a_series_is_a_sample_of_choices():
    series = pd.Series(list("aabbbbbb"), name="choice")
    one = pr.UniformityTest(series, items=list("abc")).fit(np.inf, method="tv")
    two = pr.UniformityTest.from_counts([2, 6, 0], list("abc")).fit(np.inf, method="tv")
    assert one.pvalue == two.pvalue and one.statistic == two.statistic


def test_the_pvalue_is_a_function_of_the_release():
    test = pr.UniformityTest(consensus(50, 6, 0.95))
    result = test.fit(0.7, rng=seeded(4))
    again = pr.UniformityTest.from_release(result.release)
    assert (again.pvalue, again.threshold) == (result.pvalue, result.threshold)
    coarse = pr.UniformityTest.from_release(result.release, draws=99)
    assert coarse.draws == 99 and coarse.pvalue_error > result.pvalue_error
    assert abs(coarse.pvalue - result.pvalue) < 4 * coarse.pvalue_error + 0.02


@pytest.mark.parametrize("method", METHODS)
def test_an_archived_result_comes_back_without_drawing_anything(method, monkeypatch):
    result = pr.UniformityTest(consensus(600, 5)).fit(1.0, method=method, rng=seeded(4))
    text, shown = result.to_json(), str(result.summary())
    monkeypatch.setattr(nulls, "in_processes", None)
    again = pr.from_json(text)
    assert again.to_json() == text and str(again.summary()) == shown
    assert again.reject == result.reject and again.method == result.method


@pytest.mark.parametrize("method", METHODS)
def test_summaries_say_what_they_must(method):
    result = pr.UniformityTest(consensus(600, 5)).fit(1.0, 1e-6, method=method, rng=seeded(4))
    text = " ".join(str(result.summary()).split())
    for words in (
        "Private Test of Uniformity", "No. Rows: 600", "row (replace one)", "Epsilon: 1",
        "Delta: 1e-06", "seeded (do", "H0: all orders of the 5 items are equally likely.", "H1:",
        "privacy for replacing one row", "exp(1)", "Mechanism:",
    ):  # fmt: skip
        assert words in text
    # what only an expert asks is among the details
    full = " ".join(str(result.summary(details=True)).split())
    released = statistic_words(result.release.mechanism)
    for words in (f"Method: {method}", "Noise scale:"):
        assert words in full and words not in text
    assert released in dict(result.summary(details=True).header)["Mechanism:"]
    if method in ("truncated", "bucket"):
        assert result.pvalue is None and result.statistic is None and "without a p-value" in text
        with pytest.raises(ValueError, match="random bit"):
            result.plot()
    else:
        assert f"{result.statistic:.4f}" in text and f"{result.threshold:.4f}" in text
        assert "reaches the threshold" in full
        assert result.reject == (result.statistic >= result.threshold)
    row = result.to_frame().iloc[0]
    assert row["reject"] == result.reject and row["nobs"] == 600
    assert "<table" in result._repr_html_() and "epsilon = 1" in repr(result)


def test_results_stand_side_by_side():
    test = pr.UniformityTest(consensus())
    fits = [test.fit(e, rng=seeded()) for e in (0.5, 1.0)]
    text = pr.summary_col(fits).as_text()
    assert "eps=0.5" in text and "p-value" in text and "Standard errors" not in text
    with pytest.raises(TypeError, match="a list of results"):
        pr.summary_col([fits[0], pr.PrivateBTL.from_formula])


def test_the_default_sees_what_mean_ranks_do_not():
    ranks = np.repeat([[1, 2, 3, 4], [4, 3, 2, 1]], 200, axis=0)
    test = pr.UniformityTest(ranks)
    blind = test.fit(np.inf, method="borda", draws=499)
    assert not blind.reject and "method='auto' has" in " ".join(str(blind.summary()).split())
    for method in ("auto", "omnibus"):
        for epsilon in (1.0, np.inf):
            assert test.fit(epsilon, method=method, draws=999, rng=seeded()).pvalue == 1 / 1000
    seven = np.repeat([np.arange(1, 8), np.arange(7, 0, -1)], 50, axis=0)
    assert pr.UniformityTest(seven).fit(1.0, draws=499, rng=seeded()).reject


def test_without_noise_the_default_is_the_limit_of_the_private_one():
    test = pr.UniformityTest(consensus(100, 5, 0.97))
    near, limit = (test.fit(e, draws=499, rng=seeded()) for e in (1e6, np.inf))
    assert near.statistic == pytest.approx(limit.statistic, abs=0.01)
    assert near.pvalue == pytest.approx(limit.pvalue, abs=0.01)
    choices = pr.UniformityTest.from_counts([40, 20, 30, 30], list("abcd"))
    near, limit = (choices.fit(e, draws=499, rng=seeded()) for e in (1e6, np.inf))
    assert near.statistic == pytest.approx(limit.statistic, abs=0.01)


def test_what_is_left_out_at_large_sizes_is_said():
    rng = seeded(3)
    few, many = (pr.UniformityTest(uniform_rankings(rng, n, 30)) for n in (60, 1200))
    texts = [" ".join(str(t.fit(1.0, draws=19, rng=rng).summary()).split()) for t in (few, many)]
    assert "consistent" not in " ".join(texts)
    assert "other departures are searched for in at most 1,094 rankings" in texts[1]
    assert "are searched for" not in texts[0]


def test_draws_follow_from_public_sizes_unless_asked_for():
    counts = [3, 5, 2]
    assert pr.UniformityTest.from_counts(counts, list("abc")).fit(1.0, rng=seeded()).draws == 9999
    asked = pr.UniformityTest.from_counts(counts, list("abc")).fit(1.0, draws=200, rng=seeded())
    assert asked.draws == 200 and "Monte Carlo (200 draws)" in str(asked.summary())


def test_detectable_effects_are_detected():
    result = pr.UniformityTest(consensus(150, 6)).fit(0.5, rng=seeded())
    effect = result.detectable_effect(0.8, replicates=200)
    smaller = result.detectable_effect(0.5, replicates=100)
    assert 0.8 < effect.phi < smaller.phi < 1
    assert 0 < smaller.total_variation < effect.total_variation < 1
    assert 0.5 < effect.first_over_last < 1
    rng, hits = seeded(8), []
    for _ in range(150):
        test = pr.UniformityTest(pr.Mallows(6, effect.phi).rvs(150, rng))
        hits.append(test.fit(0.5, rng=rng).reject)
    assert np.mean(hits) == pytest.approx(0.8, abs=0.1)
    with pytest.raises(ValueError, match=re.escape("between the level 0.05 and 1")):
        result.detectable_effect(0.01)


def test_the_detectable_effect_of_choices_is_a_distance():
    result = pr.UniformityTest.from_counts([50, 55, 45, 50], list("abcd")).fit(0.5, rng=seeded())
    effect = result.detectable_effect(0.9, replicates=200)
    assert effect.phi is None and 0.05 < effect.total_variation < 0.3


def test_an_effect_beyond_reach_is_said_to_be():
    result = pr.UniformityTest(consensus(2, 2)).fit(0.1, rng=seeded())
    assert result.detectable_effect(0.9, replicates=20).total_variation is None


def test_figures_are_drawn(tmp_path):
    result = pr.UniformityTest(consensus(100, 4)).fit(1.0, rng=seeded())
    result.plot().savefig(tmp_path / "null.png")
    assert (tmp_path / "null.png").stat().st_size > 5000


REFUSED = {
    "unknown": (dict(method="chi2"), "method must be one of"),
    "for choices": (dict(method="tv"), "for rankings"),
    "two rankings": (dict(method="two-sample"), "exactly two rankings"),
    "tolerance without use": (dict(tolerance=0.3), "Omit it"),
    "no tolerance": (dict(method="truncated", tolerance=2), "in (0, 1)"),
    "a bit of nothing": (dict(method="bucket", epsilon=np.inf), "finite epsilon"),
    "too small for a ramp": (dict(method="truncated", epsilon=0.01), "use method='auto'"),
    "too small for buckets": (dict(method="bucket", epsilon=0.01), "method='auto'"),
    "few draws": (dict(draws=3), "draws must be"),
    "epsilon": (dict(epsilon=0.0), "epsilon must be positive"),
    "an int for rng": (dict(rng=3), "rng must be None"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused_before_spending(case):
    arguments, words = REFUSED[case]
    budget = pr.Budget(epsilon=5.0, unit="row")
    with pytest.raises((ValueError, TypeError), match=re.escape(words)) as caught:
        pr.UniformityTest(consensus()).fit(**{"epsilon": 1.0, "budget": budget} | arguments)
    assert budget.spent == (0.0, 0.0) and "\n" not in str(caught.value)


def test_more_refusals():
    with pytest.raises(ValueError, match="at most 6 items"):
        pr.UniformityTest(consensus(50, 7)).fit(1.0, method="omnibus")
    with pytest.raises(ValueError, match="from tolerance 1 on: leave tolerance= out"):
        pr.UniformityTest(consensus(2, 60)).fit(np.inf, method="two-sample", tolerance=0.5)
    btl = pr.PrivateBTL(CEMS.comparisons, items=CEMS.items, respondent=None, ties=True).fit(
        1.0, rng=seeded()
    )
    with pytest.raises(ValueError, match="paired comparisons"):
        pr.UniformityTest.from_release(btl.release)
    test = pr.UniformityTest(consensus()).fit(1.0, rng=seeded())
    with pytest.raises(ValueError, match="PrivateBTL"):
        pr.PrivateTopK.from_release(test.release, k=1)


@pytest.mark.parametrize(("n", "m", "replicates"), [(5, 3, 1000), (12, 20, 200)])
def test_default_pvalues_are_uniform_with_fresh_tables(n, m, replicates):
    # every p-value has a null table of its own, so that they are independent
    test, rng = borda_norm(n, m), seeded(6)
    assert (test.name == "Borda norm") == (m == 3)
    distribution = DiscreteLaplace.calibrate(test.sensitivity, 1.0)
    value = test.simulated or test.value
    pvalues = []
    for _ in range(replicates):
        drawn = np.array([value(uniform_rankings(rng, n, m), ()) for _ in range(40)])
        noisy = int(drawn[0] + distribution.simulate(1, rng)[0])
        pvalues.append(Null.of_draws(drawn[1:]).pvalue(noisy, distribution))
    assert kstest(pvalues, "uniform").pvalue > 1e-3


def test_half_the_noise_would_be_noticed(monkeypatch):
    # p-values are computed from the stated distribution: if less were drawn, their spread would
    # show
    def pvalues():
        rng = seeded(9)
        return [
            test.fit(0.05, rng=rng).pvalue
            for test in [pr.UniformityTest(uniform_rankings(rng, 20, 4)) for _ in range(200)]
        ]

    assert kstest(pvalues(), "uniform").pvalue > 1e-3
    honest = DiscreteLaplace.simulate
    monkeypatch.setattr(
        DiscreteLaplace, "simulate", lambda distribution, *more: honest(distribution, *more) // 2
    )
    assert kstest(pvalues(), "uniform").pvalue < 1e-3


def test_an_interrupted_null_table_costs_no_budget(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(nulls, "in_processes", interrupted)
    budget = pr.Budget(epsilon=1.0, unit="row")
    with pytest.raises(KeyboardInterrupt):
        pr.UniformityTest(consensus(77, 9)).fit(1.0, budget=budget)
    with pytest.raises(KeyboardInterrupt):
        pr.IdentityTest(consensus(77, 9), pr.Mallows(9, 0.7)).fit(1.0, budget=budget)
    assert budget.spent == (0.0, 0.0)
