"""Private top k: the set, win rates, intervals, the separation p-value and its coin."""

import math
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from pairfits import win_matrix
from scipy.optimize import brentq
from scipy.stats import norm

import privrank as pr

CEMS = pr.datasets.load_university()
quiet = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def seeded(seed=7):
    return np.random.default_rng(seed)


def university(k=2, **arguments):
    return pr.PrivateTopK(
        CEMS.comparisons,
        k,
        **{
            "items": CEMS.items,
            "respondent": "respondent",
            "max_rows": 15,
            "ties": True,
            "design": "public",
        }
        | arguments,
    )


def exact_counts(frame, items):
    """Wins with ties as half, and comparisons, per item."""
    answered = frame[frame["outcome"].notna()]
    first, second = (
        answered.groupby(column, observed=False)["outcome"].agg(["sum", "size"]).loc[list(items)]
        for column in ("item1", "item2")
    )
    degree = first["size"] + second["size"]
    return (degree + first["sum"] - second["sum"]) / 2, degree


def test_university_without_noise():
    result = university().fit(np.inf)
    wins, degree = exact_counts(CEMS.comparisons, CEMS.items)
    assert result.selected == ("London", "Paris")
    np.testing.assert_allclose(result.params, wins / degree)
    np.testing.assert_allclose(result.net_wins, 2 * wins - degree, atol=1e-9)
    # 91 students had no answer to Paris against Milano
    assert dict(zip(result.items, result.degrees, strict=True)) == {
        "London": 1515,
        "Paris": 1424,
        "Milano": 1424,
        "StGallen": 1515,
        "Barcelona": 1515,
        "Stockholm": 1515,
    }
    assert list(result.to_frame().index[:2]) == ["London", "Paris"]
    assert result.to_frame()["selected"].tolist() == [True, True, False, False, False, False]


def test_unequal_degrees_rank_by_rate_and_not_by_wins():
    # b wins more often than a in all, but a wins a larger share of its few comparisons
    rows = [("a", "c", 1.0)] * 9 + [("a", "c", -1.0)]
    rows += [("b", "c", 1.0)] * 60 + [("b", "c", -1.0)] * 40
    frame = pd.DataFrame(rows, columns=["item1", "item2", "outcome"])
    result = pr.PrivateTopK(frame, 1, items=["a", "b", "c"], respondent=None, design="public").fit(
        np.inf
    )
    assert result.selected == ("a",)
    np.testing.assert_allclose(result.params, [0.9, 0.6, 41 / 110])
    # the interval of the item met ten times is the widest
    widths = result.conf_int()["upper"] - result.conf_int()["lower"]
    assert widths.idxmax() == "a"


def test_at_a_huge_epsilon_all_designs_agree():
    # dependence apart, which the non-private run has from all moments
    plain = university().fit(np.inf, dependence="none")
    for arguments in (
        {},
        {"design": "private"},
        {
            "design": "private",
            "pair_counts": {
                (plain.items[i], plain.items[j]): n
                for i, j, n in zip(
                    plain.release.design.pairs.first,
                    plain.release.design.pairs.second,
                    plain.release.design.pairs.count,
                    strict=True,
                )
            },
        },
    ):
        result = university(**arguments).fit(1e6, dependence="none")
        np.testing.assert_allclose(result.params, plain.params, atol=1e-6)
        np.testing.assert_allclose(result.bse, plain.bse, atol=1e-6)
        assert result.pvalue == pytest.approx(plain.pvalue, abs=1e-6)


def noisy_tail(gap, sd, scales):
    """P(|Z + L_1 + ...| > gap) from the characteristic function, by Gauss-Legendre on octaves."""
    edges = np.concatenate(([0.0], np.geomspace(1e-9 / max(sd, *scales), 14 / sd, 60)))
    nodes, weights = np.polynomial.legendre.leggauss(100)
    half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
    t = half * nodes + middle
    values = np.exp(-0.5 * (sd * t) ** 2) * np.sin(t * gap) / t
    for scale in scales:
        values /= 1 + (scale * t) ** 2
    return 1 - 2 / np.pi * float((values * half * weights).sum())


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_intervals_invert_the_noisy_binomial(epsilon):
    result = university().fit(epsilon, noise="laplace", dependence="none", rng=seeded())
    interval = result.conf_int(0.1)
    scale = 0.5 * result.release.parts["net wins"].distribution.scale
    for k in range(6):
        estimate, degree = result.estimate[k], result.degrees[k]

        def excess(rate, estimate=estimate, degree=degree):
            sd = math.sqrt(result.design_effect * rate * (1 - rate) / degree)
            return noisy_tail(abs(estimate - rate), sd, [scale / degree]) - 0.1

        low = brentq(excess, 0.01, estimate, xtol=1e-10)
        high = brentq(excess, estimate, 0.99, xtol=1e-10)
        assert tuple(interval.iloc[k]) == pytest.approx((low, high), abs=1e-7)


def test_intervals_without_noise_are_wilson_intervals():
    rows = [("a", "b", 1.0)] * 14 + [("a", "b", -1.0)] * 6
    frame = pd.DataFrame(rows, columns=["item1", "item2", "outcome"])
    result = pr.PrivateTopK(frame, 1, items=["a", "b"], respondent=None, design="public").fit(
        np.inf
    )
    z, n, p = norm.isf(0.025), 20, 0.7
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert tuple(result.conf_int().loc["a"]) == pytest.approx((centre - half, centre + half))


@quiet
@pytest.mark.parametrize("epsilon", [0.01, 0.1])
def test_intervals_stay_between_zero_and_one(epsilon):
    # the noise throws win rates far outside; the interval is still about a rate
    for seed in range(5):
        result = university().fit(epsilon, rng=seeded(seed))
        interval = result.conf_int()
        assert interval.ge(0).all(axis=None) and interval.le(1).all(axis=None)
        assert (interval["lower"] <= interval["upper"]).all()


def test_standard_errors_and_separation_by_hand():
    result = university(3).fit(1.0, noise="laplace", dependence="none", rng=seeded())
    distribution = result.release.parts["net wins"].distribution
    rate, degree = result.params.to_numpy(), result.degrees
    sampling = result.design_effect * rate * (1 - rate) / degree
    np.testing.assert_allclose(
        result.bse, np.sqrt(sampling + distribution.variance / (4 * degree**2))
    )
    order = np.argsort(-rate)
    i, j = order[2], order[3]
    assert result.statistic == pytest.approx(rate[i] - rate[j])
    pairs = result.release.design.pairs
    (n,) = pairs.count[(pairs.first == min(i, j)) & (pairs.second == max(i, j))]
    # one comparison of i with j moves both rates: the head-to-head term is + 2 n / (d_i d_j)
    variance = 1 / degree[i] + 1 / degree[j] + 2 * n / (degree[i] * degree[j])
    sd = 0.5 * math.sqrt(result.design_effect * variance)
    scales = 0.5 * distribution.scale / degree[[i, j]]
    assert result.pvalue == pytest.approx(noisy_tail(result.statistic, sd, scales), abs=1e-6)


def equal_items_release(m, each, epsilon):
    """A release of net wins of m items after `each` comparisons of every pair."""
    items = np.array([f"i{k}" for k in range(m)])
    first, second = np.triu_indices(m, 1)
    rows = pd.DataFrame({"item1": items[first], "item2": items[second], "outcome": 1})
    frame = rows.loc[rows.index.repeat(each)]
    model = pr.PrivateTopK(frame, 1, items=items, respondent=None, design="public", ties=False)
    return model.fit(epsilon, noise="laplace", rng=seeded()).release


def with_net_wins(release, net):
    """Return the selection of one item from a release of other net wins."""
    observed = replace(release, values={"net wins": net}, tie_break=tuple(range(len(net))))
    return pr.PrivateTopK.from_release(observed, 1)


@pytest.mark.parametrize("epsilon", [math.inf, 0.5], ids=["no noise", "noise"])
@pytest.mark.parametrize("m", [2, 3])
def test_separation_keeps_its_level(m, epsilon):
    # Two equally good items at the top, k = 1, any third item far below: the null hypothesis is
    # true. A variance without the head-to-head term would reject about 17 % of the time at m = 2,
    # and one that took all m n / 2 wins as independent would be off at m = 3.
    each, studies = 150, 1_500
    rng = seeded(2024)
    release = equal_items_release(m, each, epsilon)
    net = np.zeros((studies, m), dtype=np.int64)
    for i, j in combinations(range(m), 2):
        odds = 0.5 if j == 1 else 0.95
        margin = 2 * rng.binomial(each, odds, studies) - each
        net[:, i] += margin
        net[:, j] -= margin
    net += release.parts["net wins"].distribution.simulate(net.shape, rng)
    pvalues = np.array([with_net_wins(release, row).pvalue for row in net])
    rejected = np.mean(pvalues <= 0.05)
    error = math.sqrt(0.05 * 0.95 / studies)
    assert rejected <= 0.05 + 2 * error
    if m == 2:
        # with nothing else in play the level is used up
        assert rejected >= 0.05 - 4 * error


def test_gap_variance_is_that_of_the_net_wins():
    # m = 5 equal items: the difference of two nets has variance 2 n m, of which n m / 2 wins are
    # decided in comparisons that involve the two
    m, each, studies = 5, 40, 40_000
    rng = seeded(5)
    net = np.zeros((studies, m))
    for i, j in combinations(range(m), 2):
        margin = 2 * rng.binomial(each, 0.5, studies) - each
        net[:, i] += margin
        net[:, j] -= margin
    degree = each * (m - 1)
    simulated = np.var(0.5 * (net[:, 0] - net[:, 1]) / degree)
    gap = 0.05
    released = np.array([degree, degree - 2 * degree * gap, 0, -9, -9]).round()
    result = with_net_wins(equal_items_release(m, each, math.inf), released)
    implied = (result.statistic / norm.isf(result.pvalue / 2)) ** 2
    assert implied == pytest.approx(simulated, rel=0.03)
    assert implied == pytest.approx(2 * each * m / (4 * degree**2), rel=1e-9)


def test_equal_counts_are_ordered_by_the_coin():
    rows = [(*pair, 0.0) for pair in combinations("abc", 2)] * 4
    frame = pd.DataFrame(rows, columns=["item1", "item2", "outcome"])
    model = pr.PrivateTopK(frame, 1, items=list("abc"), respondent=None, ties=True, design="public")
    chosen = []
    for seed in range(60):
        result = model.fit(np.inf, rng=seeded(seed))
        assert result.selected == ("abc"[result.release.tie_break[0]],)
        # the set has k items, and the table says that they are tied
        assert list(result.ranks()) == [1, 1, 1]
        assert list(result.to_frame().index) == ["a", "b", "c"]
        assert tuple(result.to_frame().query("selected").index) == result.selected
        assert any("A public random order decided" in note for note in result.summary().notes)
        assert result.ranks()[result.selected[0]] == 1
        assert result.statistic == 0.0 and result.pvalue == pytest.approx(1.0)
        chosen.append(result.selected[0])
    # each item should come first twenty times; 8 is more than three deviations below
    assert min(chosen.count(item) for item in "abc") > 8
    # and without a seed the coin is tossed by the system
    orders = {model.fit(np.inf).release.tie_break for _ in range(60)}
    assert len(orders) > 1


@quiet
@pytest.mark.parametrize("k", [1, 5, np.int64(3)])
@pytest.mark.parametrize("epsilon", [0.5, np.inf])
def test_every_k(k, epsilon):
    result = university(k).fit(epsilon, rng=seeded())
    ranks = result.ranks()
    assert len(result.selected) == k
    assert set(result.selected) == set(ranks[ranks <= k].index)
    assert result.statistic >= 0 and 0 <= result.pvalue <= 1
    assert f"Top-{k} Results" in str(result.summary())
    sets = result.rank_conf_int()
    assert ((sets["lower"] <= ranks) & (ranks <= sets["upper"])).all()


def test_k_does_not_change_the_release():
    one, three = (university(k).fit(0.5, rng=seeded()) for k in (1, 3))
    assert one.release.to_json() == three.release.to_json()
    assert pr.PrivateTopK.from_release(one.release, 3).to_json() == three.to_json()


@pytest.mark.parametrize("k", [0, 6, 7, -1])
def test_from_release_checks_k(k):
    release = university().fit(np.inf).release
    with pytest.raises(ValueError, match="k must be between 1 and 5"):
        pr.PrivateTopK.from_release(release, k)


@quiet
def test_objective_perturbation_holds_no_counts():
    release = (
        pr.PrivateBTL(CEMS.comparisons, items=CEMS.items, respondent=None, ties=True)
        .fit(1.0, method="objective", rng=seeded())
        .release
    )
    with pytest.raises(ValueError, match=r"objective perturbation .* method='counts'\."):
        pr.PrivateTopK.from_release(release, 2)


def test_from_a_win_matrix():
    model = pr.PrivateBTL(
        CEMS.comparisons, items=CEMS.items, respondent=None, ties=True, pair_counts="release"
    )
    result = pr.PrivateTopK.from_release(win_matrix(model, 1e6), 2)
    plain = university(respondent=None).fit(np.inf)
    assert result.selected == plain.selected
    np.testing.assert_allclose(result.params, plain.params, atol=1e-6)


def test_from_formula_equals_the_constructor():
    arguments = {"items": CEMS.items, "respondent": "respondent", "max_rows": 15, "ties": True}
    formula = "item1 + item2 + outcome ~ 1"
    one = pr.PrivateTopK.from_formula(formula, CEMS.comparisons, 2, **arguments)
    other = pr.PrivateTopK(CEMS.comparisons, 2, **arguments)
    results = [model.fit(0.5, rng=seeded()).to_json() for model in (one, other)]
    assert results[0] == results[1]
    assert repr(one) == repr(other) == "<PrivateTopK: k = 2, 6 items, 303 respondents>"


def test_relabelling_items_permutes_the_selection():
    order = [CEMS.items[k] for k in (3, 0, 5, 1, 4, 2)]
    one, other = (university(items=items).fit(np.inf) for items in (CEMS.items, order))
    for name in ("params", "bse", "pvalues", "net_wins"):
        np.testing.assert_allclose(
            getattr(other, name)[list(CEMS.items)], getattr(one, name), atol=1e-9
        )
    assert one.selected == other.selected
    assert other.pvalue == pytest.approx(one.pvalue)


def test_standard_errors_hold_the_noise_of_a_win_matrix():
    model = pr.PrivateBTL(
        CEMS.comparisons, items=CEMS.items, respondent=None, ties=True, pair_counts="release"
    )
    release = model.fit(0.5, method="counts", rng=seeded()).release
    result = pr.PrivateTopK.from_release(release, 2)
    part = release.parts["win matrix"]
    # half the difference of two cells for each of five opponents
    noise = 5 * part.noise_variance / 2 / result.degrees**2
    # and the sum of the two, which is their pair's count, for a rate that is not one half
    counts = 5 * part.noise_variance * 2 * (result.estimate - 0.5) ** 2 / result.degrees**2
    noise = noise + counts
    np.testing.assert_allclose(result.bse**2, result.bse_sampling**2 + noise)


def test_one_shot_noise_is_refused():
    budget = pr.Budget(epsilon=1.0, unit="respondent")
    with pytest.raises(ValueError, match="noise must be one of 'auto'.*got 'gumbel'"):
        university(1).fit(1.0, noise="gumbel", budget=budget)
    assert budget.spent == (0.0, 0.0)


def strong_and_weak(opponents):
    """Two equal items, 0 and 1, that meet strong and weak items as often as is said."""
    theta = np.array([0.0, 0.0, 2.0, -2.0])
    (first, second), rng = np.triu_indices(4, 1), seeded(3)
    often = np.array([opponents.get((i, j), 40) for i, j in zip(first, second, strict=True)])
    first, second = np.repeat(first, often), np.repeat(second, often)
    won = rng.random(len(first)) < 1 / (1 + np.exp(theta[second] - theta[first]))
    frame = {"item1": first, "item2": second, "outcome": np.where(won, 1, -1)}
    return pd.DataFrame(frame)


@pytest.mark.parametrize(("opponents", "warned"), [({}, False), ({(0, 2): 5, (1, 3): 5}, True)])
def test_unequal_opponents_are_warned_of_from_public_counts(opponents, warned):
    frame = strong_and_weak(opponents)
    model = pr.PrivateTopK(frame, 2, items=range(4), respondent=None, ties=False, design="public")
    text = str(model.fit(1.0, rng=seeded()).summary())
    assert "against the opponents met" in " ".join(text.split())
    assert ("did not meet all opponents equally often" in text) == warned


def test_win_rates_that_noise_carries_away_are_printed_as_rates():
    frame = pr.simulate.bradley_terry([1.0, 0, -1.0], repeats=1, rng=seeded())
    model = pr.PrivateTopK(frame, 1, items=range(3), respondent=None, ties=False, design="public")
    result = model.fit(0.05, rng=seeded())
    assert np.abs(result.estimate - 0.5).max() > 0.5
    assert result.params.between(0, 1).all() and result.to_frame()["win_rate"].between(0, 1).all()


@pytest.mark.parametrize("design", ["public", "private"])
def test_a_summary_of_six_items_fits_a_page_and_more_is_asked_for(design):
    cems = pr.datasets.load_university()
    model = pr.PrivateTopK(
        cems.comparisons, 2, items=cems.items, respondent="respondent", ties=True, max_rows=15,
        design=design,
    )  # fmt: skip
    fit = model.fit(0.5, rng=seeded())
    short, full = str(fit.summary()), str(fit.summary(details=True))
    assert len(short.splitlines()) <= 32 and len(short) < len(full)
    others = ["the best of the others"] if design == "public" else ["How often two items met"]
    for words in ("Noise scale:", "Epsilon includes ", "H1:", *others):
        assert words in " ".join(full.split()) and words not in short


def test_a_release_is_read_once_for_all_numbers_of_a_result(monkeypatch):
    fit = pr.PrivateTopK(strong_and_weak({}), 2, items=range(4), respondent=None, ties=False).fit(
        1.0, rng=seeded()
    )
    calls, module = [], sys.modules[type(fit).__module__]
    honest = module.score_equations
    monkeypatch.setattr(
        module, "score_equations", lambda release: calls.append(1) or honest(release)
    )
    again = pr.from_json(fit.to_json())
    calls.clear()
    first = str(again.summary())
    assert first == str(again.summary()) and again.pvalues.notna().all() and again.bse.gt(0).all()
    assert len(calls) <= 1
