"""Intervals from scores: what they invert, where they end, and what they cover."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit, ndtr
from scipy.stats import binom, norm

import privrank as pr
from privrank.bradley_terry.equations import pair_noise, score_equations
from privrank.hypotheses.tails import simulated

CEMS = pr.datasets.load_university()
pytestmark = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def model(items, people):
    """A questionnaire in which everybody compares all pairs."""
    first, second = np.triu_indices(items, 1)
    names, edges = np.array([f"item {k}" for k in range(items)]), len(first)
    frame = pd.DataFrame(
        {
            "item1": np.tile(names[first], people),
            "item2": np.tile(names[second], people),
            "outcome": np.where(np.arange(people * edges) % 2, 1, -1),
            "respondent": np.repeat(np.arange(people), edges),
        }
    )
    return pr.PrivateBTL(
        frame,
        items=list(names),
        respondent="respondent",
        max_rows=edges,
        design="public",
    )


def releases(worths, people, epsilon, repeats):
    """Releases of surveys with independent answers."""
    generator, m = np.random.default_rng(2), len(worths)
    rng = np.random.default_rng(1)
    release = model(m, people).fit(epsilon, dependence="none", rng=rng).release
    pairs, part = release.design.pairs, release.parts["net wins"]
    chance = expit(worths[pairs.first] - worths[pairs.second])
    for _ in range(repeats):
        net = 2 * generator.binomial(people, chance) - people
        net = np.bincount(pairs.first, net, m) - np.bincount(pairs.second, net, m)
        noise = simulated(part.distribution, (1, m), generator)[0]
        counts = np.rint(net / part.step + noise).astype(np.int64)
        yield replace(release, values=release.values | {"net wins": counts})


def differences(m):
    first, second = np.triu_indices(m, 1)
    return np.eye(m)[first] - np.eye(m)[second]


def intervals(tests, alpha):
    """Return the lower and the upper limits of contrasts."""
    return np.transpose(tests.conf_int(alpha))


def wald(tests):
    half = norm.isf(0.025) * tests.sd
    return tests.effect - half, tests.effect + half


def test_two_items_are_tested_by_their_counts():
    """With two items nothing is estimated beside the difference: p-values by enumeration."""
    people, worths, contrast = 80, np.array([0.9, -0.9]), np.array([[1.0, -1.0]])
    for release in releases(worths, people, 0.5, 5):
        part = release.parts["net wins"]
        tests = pr.PrivateBTL.from_release(release).t_test(contrast)
        score = score_equations(release).score[0]
        noise = simulated(part.distribution, (400_000, 2), np.random.default_rng(5)) * part.step / 2
        noise = (noise[:, 0] - noise[:, 1]) / 2

        def pvalue(t, score=score, noise=noise):
            chance = expit(t)
            sd, away = np.sqrt(people * chance * (1 - chance)), score - people * (chance - 0.5)
            return np.mean(ndtr((noise - abs(away)) / sd) + ndtr((-noise - abs(away)) / sd))

        assert tests.pvalue == pytest.approx(pvalue(0.0), abs=0.006)
        for limit in intervals(tests, 0.05):
            if np.isfinite(limit[0]):
                assert pvalue(limit[0]) == pytest.approx(0.05, abs=0.006)


def test_ordinary_intervals_are_those_of_wald():
    survey = pr.PrivateBTL(
        CEMS.comparisons,
        items=CEMS.items,
        respondent="respondent",
        max_rows=15,
        ties=True,
        design="public",
    )
    # but for the skewness of answers, which only adds to them
    for epsilon, close in ((1.0, 0.02), (2.0, 0.02), (0.5, 0.04)):
        rng = np.random.default_rng(4)
        result = survey.fit(epsilon, dependence="none", rng=rng)
        for contrasts in (differences(6), np.eye(6) - 1 / 6):
            tests = result.t_test(contrasts)
            low, high = intervals(tests, 0.05)
            wald_low, wald_high = wald(tests)
            np.testing.assert_allclose(high - low, wald_high - wald_low, rtol=close)


@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.001])
@pytest.mark.parametrize("epsilon", [0.25, 2.0])
def test_an_interval_holds_what_its_test_does_not_reject(alpha, epsilon):
    worths = np.array([2.0, 0.3, 0.1, 0.0, -0.2, -2.2])
    contrasts, both = np.vstack((differences(6), np.eye(6) - 1 / 6)), set()
    for release in releases(worths, 60, epsilon, 4):
        result = pr.PrivateBTL.from_release(release)
        tests = result.t_test(contrasts)
        low, high = intervals(tests, alpha)
        kept = (low < 0) & (high > 0)
        np.testing.assert_array_equal(kept, tests.pvalue > alpha)
        assert ((low <= tests.effect) & (tests.effect <= high)).all()
        both |= set(kept)
        table = result.pairwise(alpha)
        kept = (table["lower"] < 0.5) & (table["upper"] > 0.5)
        np.testing.assert_array_equal(kept, table["pvalue"] > alpha)
    assert True in both
    assert (False in both) == (alpha > 0.01 or epsilon > 1)


def test_covariates_have_them_too():
    generator = np.random.default_rng(3)
    first, second = np.triu_indices(4, 1)
    names, worths = np.array([f"item {k}" for k in range(4)]), np.array([3.0, 0.0, 0.0, -0.5])
    chance = expit(worths[first] - worths[second])
    survey = pd.DataFrame(
        {
            "item1": np.tile(names[first], 150),
            "item2": np.tile(names[second], 150),
            "outcome": np.where(generator.random(900) < np.tile(chance, 150), 1, -1),
            "respondent": np.repeat(np.arange(150), 6),
            "group": pd.Categorical(np.repeat(generator.choice(["f", "m"], 150), 6)),
        }
    )
    fitted = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ group",
        survey,
        items=list(names),
        respondent="respondent",
        max_rows=6,
        design="public",
    ).fit(1.0, rng=np.random.default_rng(2))
    table, limits = fitted.pairwise(at={"group": "f"}), fitted.conf_int()
    kept = (table["lower"] < 0.5) & (table["upper"] > 0.5)
    np.testing.assert_array_equal(kept, table["pvalue"] > 0.05)
    np.testing.assert_array_equal(
        (limits["lower"] < 0) & (limits["upper"] > 0), fitted.pvalues > 0.05
    )
    assert (limits["lower"] <= fitted.params).all()


def test_extreme_pairs_are_covered_with_and_without_a_warning():
    worths = np.array([logit(0.99), 0.0, 0.0, 0.0, 0.0, 0.0])
    truth, contrasts = logit(0.99), differences(6)[:5]
    covered = {"score": [], "wald": []}
    warned = []
    for release in releases(worths, 100, 0.5, 80):
        result = pr.PrivateBTL.from_release(release)
        tests = result.t_test(contrasts)
        warned.append(bool(result.warnings))
        for name, (low, high) in (("score", intervals(tests, 0.05)), ("wald", wald(tests))):
            covered[name].append(np.mean((low <= truth) & (truth <= high)))
    found = {name: np.array(each) for name, each in covered.items()}
    quiet = ~np.array(warned)
    assert quiet.sum() > 20
    assert (~quiet).sum() > 20
    assert found["score"][quiet].mean() > 0.93
    assert found["score"][~quiet].mean() > 0.93
    # why there are intervals from scores at all
    assert found["wald"][quiet].mean() < 0.8


def test_where_noise_leaves_no_limit_there_is_none():
    release = next(releases(np.array([logit(0.999), 0.0, 0.0, 0.0]), 60, 0.5, 1))
    counts = release.parts["net wins"].values + np.array([500, -100, -200, -200])
    result = pr.PrivateBTL.from_release(
        replace(release, values=release.values | {"net wins": counts})
    )
    assert any("boundary of possible data" in text for text in result.warnings)
    low, high = intervals(result.t_test(differences(4)[:3]), 0.05)
    assert np.isinf(high).all()
    assert np.isfinite(low).all()
    assert (low > 0).all()
    table = result.pairwise().iloc[:3]
    assert (table["upper"] == 1.0).all()
    assert (table["lower"] > 0.5).all()
    assert "inf" in str(result.summary())
    result.plot()


@pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")
def test_an_interval_without_an_end_runs_out_of_the_figure():
    cems = pr.datasets.load_university()
    few = cems.comparisons[cems.comparisons["respondent"] <= 40]
    fit = pr.PrivateBTL(
        few, items=cems.items, respondent="respondent", max_rows=15, ties=True, design="public"
    ).fit(0.3, rng=np.random.default_rng(5))
    sides = fit.conf_int()
    assert np.isinf(sides.to_numpy()).any()
    axes = fit.plot_worth().axes[0]
    # after the bars of the sampling error
    left, right = axes.collections[1:3]
    arrows = len(left.get_offsets()) + len(right.get_offsets())
    assert arrows == np.isinf(sides.to_numpy()).sum()
    bars = np.array(axes.collections[3].get_segments())
    assert len(bars) == 6 and np.isfinite(bars).all()
    assert all(np.ptp(bar[:, 0]) > 1.0 for bar in bars)


def test_intervals_without_noise_cover_outcomes_that_hardly_ever_occur():
    # exact coverage over all numbers of losses; Wald's interval has .51 where one answer in 100 is
    people, found = 80, {}
    for lost in range(20):
        frame = pd.DataFrame(
            {
                "respondent": range(people),
                "item1": "a",
                "item2": "b",
                "outcome": [-1] * lost + [1] * (people - lost),
            }
        )
        fit = pr.PrivateBTL(frame, items=["a", "b"], respondent="respondent", design="public").fit(
            np.inf
        )
        found[lost] = 2.0 * fit.conf_int().loc["a"].to_numpy()
        assert found[lost][0] > 0.0 and fit.pvalues["a"] < 0.002
    for chance in (0.9, 0.95, 0.98, 0.99):
        inside = [low <= logit(chance) <= high for low, high in found.values()]
        assert binom.pmf(list(found), people, 1.0 - chance)[inside].sum() > 0.95


def test_intervals_without_noise_allow_for_respondents_that_agree_with_themselves():
    # ten answers of each say the same: the interval is that of 80 answers, not of 800
    frame = pd.DataFrame({"respondent": np.repeat(range(80), 10), "item1": "a", "item2": "b"})
    frame["outcome"] = np.repeat([-1] * 20 + [1] * 60, 10)
    several = pr.PrivateBTL(
        frame,
        items=["a", "b"],
        respondent="respondent",
        max_rows=10,
        distinct_pairs=False,
        design="public",
    )
    single = pr.PrivateBTL(
        frame.iloc[::10], items=["a", "b"], respondent="respondent", design="public"
    )
    wide, alone = (each.fit(np.inf, penalty=0).conf_int().loc["a"] for each in (several, single))
    np.testing.assert_allclose(wide, alone, atol=0.02)


@pytest.mark.parametrize("formula", ["1", "group"])
def test_errors_of_pair_counts_add_at_the_fit_what_the_covariance_of_the_noise_has(formula):
    rng, items = np.random.default_rng(4), list("abcd")
    first = rng.integers(0, 4, 600)
    second = (first + rng.integers(1, 4, 600)) % 4
    frame = pd.DataFrame(
        {
            "item1": np.array(items)[first],
            "item2": np.array(items)[second],
            "outcome": rng.choice([-1.0, 1.0], 600),
            "group": np.where(np.arange(600) % 3 == 0, "x", "y"),
        }
    )
    model = pr.PrivateBTL.from_formula(
        f"item1 + item2 + outcome ~ {formula}",
        frame,
        items=items,
        levels={"group": ["x", "y"]} if formula == "group" else None,
        respondent=None,
        design="private",
    )
    equations = score_equations(model.fit(2.0, rng=rng).release)
    b = rng.normal(size=equations.linear.size)
    noise = pair_noise(equations, b)
    noise -= pair_noise(equations, np.zeros_like(b))
    along = rng.normal(size=(5, len(b)))
    edges = np.array([equations.linear.predict(row) for row in along])
    found = equations.count_noise(edges, equations.linear.predict(b))
    assert equations.count_variance > 0
    assert found == pytest.approx(np.einsum("rp,pq,rq->r", along, noise, along))
