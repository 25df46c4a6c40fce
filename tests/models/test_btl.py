"""The private Bradley-Terry model against R, against itself, and against hand computation."""

import json
import math
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pairfits import fit_ridge, rounding_bound, win_matrix
from scipy.stats import chi2, norm

import privrank as pr
from privrank.bradley_terry import fit as fits
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.estimate import nominal_information
from privrank.privacy.knorm import CubeNoise
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.survey import PairCounts
from privrank.results.claims import CLAIMS

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "btl.json").read_text(encoding="utf-8")
)
SURVEYS = {
    "university": pr.datasets.load_university(),
    "university_1998": pr.datasets.load_university("1998"),
    "immigration": pr.datasets.load_immigration(),
}
ROWS = {"university": 15, "university_1998": 15, "immigration": 6}
GAMMAS = (0, 0.25, 1, 4)

by_survey = pytest.mark.parametrize("name", SURVEYS)
by_design = pytest.mark.parametrize("design", ["public", "private"])
by_unit = pytest.mark.parametrize("unit", ["row", "respondent"])
# many fits here are at an epsilon or on data for which the package rightly warns
quiet = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def seeded(seed=7):
    return np.random.default_rng(seed)


def model(name="university", *, unit="respondent", frame=None, **arguments):
    survey = SURVEYS[name]
    if unit == "respondent":
        arguments = {"respondent": "respondent", "max_rows": ROWS[name]} | arguments
    frame = survey.comparisons if frame is None else frame
    return pr.PrivateBTL(
        frame, **{"items": survey.items, "respondent": None, "ties": True} | arguments
    )


def long_frame(rows):
    return pd.DataFrame(rows, columns=["item1", "item2", "outcome"])


# --- against R ---


@by_survey
@by_design
@by_unit
@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("method", ["counts", "objective"])
def test_worths_equal_reference(name, design, unit, gamma, method):
    result = model(name, unit=unit, design=design).fit(np.inf, penalty=gamma, method=method)
    expected = REFERENCE[name]["params"][f"{gamma}"]
    np.testing.assert_allclose(result.params, [expected[i] for i in result.items], atol=1e-6)
    assert result.penalty == gamma and not result.corrected
    np.testing.assert_allclose(result.params.sum(), 0, atol=1e-9)


@by_survey
@by_design
def test_standard_errors_equal_reference(name, design):
    survey = model(name, design=design)
    for effect, errors in (("none", "model"), ("cluster", "cluster")):
        result = survey.fit(np.inf, penalty=0, dependence=effect)
        expected = REFERENCE[name]["bse"][errors]
        # the reference has no small-sample factor
        n = result.nobs
        factor = n / (n - 1) if effect == "cluster" else 1.0
        errors_of_r = math.sqrt(factor) * np.array([expected[i] for i in result.items])
        np.testing.assert_allclose(result.bse, errors_of_r, atol=1e-5)
        covariance = factor * np.array(REFERENCE[name]["covariance"][errors])
        np.testing.assert_allclose(result.cov_params(), covariance, atol=1e-6)
        assert (result.bse_privacy == 0).all()
    # without respondents there is nothing to be dependent
    rows = model(name, unit="row", design=design).fit(np.inf, penalty=0)
    expected = REFERENCE[name]["bse"]["model"]
    np.testing.assert_allclose(rows.bse, [expected[i] for i in rows.items], atol=1e-5)


@by_survey
def test_likelihood_equals_reference(name):
    # the reference log-likelihoods, from the worths and counts of a release
    result = model(name, design="public").fit(np.inf, penalty=1, rng=seeded())
    pairs, net = result.release.design.pairs, result.release.parts["net wins"].values
    theta = result.params.to_numpy()
    gap = theta[pairs.first] - theta[pairs.second]
    loglik = 0.5 * net @ theta - pairs.count @ np.logaddexp(gap / 2, -gap / 2)
    assert loglik == pytest.approx(REFERENCE[name]["loglik"]["1"], abs=1e-6)


@by_survey
def test_sizes_equal_reference(name):
    assert model(name).fit(np.inf).nobs == REFERENCE[name]["respondents"]
    rows = model(name, unit="row").fit(np.inf)
    assert rows.nobs == REFERENCE[name]["comparisons"] + REFERENCE[name]["missing"]
    assert rows.release.design.pairs.total == REFERENCE[name]["comparisons"]


@by_design
def test_design_effect_of_university(design):
    # StGallen divides the students most, from Milano; every error is that of the widest pair
    result = model(design=design).fit(np.inf, penalty=0, dependence="worst")
    naive = model(design=design).fit(np.inf, penalty=0, dependence="none")
    assert naive.design_effect == 1.0
    np.testing.assert_allclose(result.bse, naive.bse * math.sqrt(result.design_effect), rtol=1e-9)
    robust = model(design=design).fit(np.inf, penalty=0)
    assert round(robust.design_effect, 2) == 2.46
    assert 2.4 < result.design_effect < 2.55


@quiet
@by_survey
def test_design_effect_is_at_least_one(name):
    fits = [model(name, design="public").fit(0.2, rng=seeded(k)) for k in range(20)]
    assert min(fit.design_effect for fit in fits) >= 1.0
    # a noisy spread falls below what independence gives now and then: then it is cut at one
    flat = long_frame([(i, j, 0.0) for i, j in combinations("abc", 2)] * 9)
    flat["respondent"] = np.repeat(np.arange(9), 3)
    result = pr.PrivateBTL(
        flat,
        items="a b c".split(),
        respondent="respondent",
        max_rows=3,
        ties=True,
        design="public",
    ).fit(np.inf, dependence="worst")
    assert result.design_effect == 1.0


# --- where noise is zero but for a vanishing chance ---


@by_survey
@by_unit
@pytest.mark.parametrize(
    ("arguments", "mechanism", "method"),
    [
        ({"design": "public"}, "net wins", "counts"),
        ({"design": "public"}, "objective perturbation", "objective"),
        ({"pair_counts": "release"}, "net wins", "counts"),
        ({"pair_counts": "release"}, "objective perturbation", "objective"),
    ],
)
def test_at_a_huge_epsilon_the_fit_is_the_non_private_one(name, unit, arguments, mechanism, method):
    survey = model(name, unit=unit, **arguments)
    # dependence apart, of which the non-private run has more
    private = survey.fit(1e6, penalty=1.0, method=method, dependence="none")
    plain = survey.fit(np.inf, penalty=1.0, method="counts", dependence="none")
    assert private.release.mechanism == mechanism
    assert private.release.source == "secure" and plain.release.source == "none"
    # discrete noise is zero; the continuous noise of the objective is about m lambda / information
    atol = 1e-6 if method == "counts" else 1e-5
    np.testing.assert_allclose(private.params, plain.params, atol=atol)
    np.testing.assert_allclose(private.bse, plain.bse, atol=1e-4)


@by_survey
def test_declared_true_pair_counts_give_the_public_fit(name):
    public = model(name, design="public").fit(np.inf, penalty=1.0)
    pairs = public.release.design.pairs
    table = {
        (public.items[i], public.items[j]): count
        for i, j, count in zip(pairs.first, pairs.second, pairs.count, strict=True)
    }
    declared = model(name, pair_counts=table).fit(1e6, penalty=1.0, method="counts")
    np.testing.assert_allclose(declared.params, public.params, atol=1e-6)
    assert declared.release.design.pairs.origin == "declared"


@by_unit
def test_pair_counts_of_a_private_design_are_released_by_default(unit):
    for arguments in ({}, {"pair_counts": "release"}):
        fit = model(unit=unit, **arguments).fit(1.0, method="counts", noise="zero-sum-laplace")
        assert fit.release.design.pairs is None and "pair_counts" in fit.release.parts
        assert "private (noisy pair counts)" in str(fit.summary())
    asserted = model(unit=unit, pair_counts="equal").fit(1.0, method="counts")
    assert asserted.release.design.pairs.origin == "equal"


def test_fits_are_not_biased_by_pairs_that_were_never_compared():
    # a chain: most pairs have no comparisons, and noise puts half of their counts below 0
    truth = np.linspace(0.8, -0.8, 5)
    frame = pr.simulate.bradley_terry(truth, repeats=400, rng=np.random.default_rng(1))
    frame["respondent"] = frame.groupby(["item1", "item2"], observed=True).cumcount()
    frame = frame[(frame["item1"].astype(int) - frame["item2"].astype(int)).abs() == 1]
    survey = pr.PrivateBTL(frame, items=range(5), respondent="respondent", max_rows=4)
    exact = survey.fit(np.inf, penalty=0).params
    fits = [survey.fit(3.0, rng=np.random.default_rng(k)) for k in range(120)]
    away = np.array([fit.params - exact for fit in fits])
    assert np.mean([(score_equations(fit.release).pairs.count == 0).sum() for fit in fits]) > 2
    assert (np.abs(np.median(away, axis=0)) < 4 * 1.25 * away.std(axis=0) / np.sqrt(120)).all()


def test_many_items_release_net_wins_and_pair_counts_apart():
    # nine items are beyond the win matrix
    frame, items = sparse_survey(9, 400)
    survey = pr.PrivateBTL(frame, items=items, respondent=None, pair_counts="release")
    private = survey.fit(1e6, penalty=1.0, method="counts")
    assert set(private.release.parts) == {"net wins", "pair_counts"}
    plain = survey.fit(np.inf, penalty=1.0)
    np.testing.assert_allclose(private.params, plain.params, atol=1e-6)


# --- solvers ---


def sparse_survey(items, rows, seed=3):
    """Comparisons on a ring with chords, so that every item is connected."""
    rng = np.random.default_rng(seed)
    first = np.concatenate((np.arange(items), rng.integers(0, items, rows)))
    second = (first + np.concatenate((np.ones(items, int), rng.integers(1, items, rows)))) % items
    worth = rng.normal(scale=0.5, size=items)
    wins = rng.random(len(first)) < 1 / (1 + np.exp(worth[second] - worth[first]))
    names = np.array([f"i{k}" for k in range(items)])
    frame = pd.DataFrame(
        {"item1": names[first], "item2": names[second], "outcome": np.where(wins, 1.0, -1.0)}
    )
    return frame, names.tolist()


SOLVED = {
    "private counts": ({"design": "public"}, {"epsilon": 0.5, "noise": "laplace"}),
    "private counts, gamma 0": (
        {"design": "public"},
        {"epsilon": 5.0, "penalty": 0, "noise": "laplace"},
    ),
    "private counts, small gamma": (
        {"design": "public"},
        {"epsilon": 1.0, "penalty": 1e-4, "noise": "laplace"},
    ),
    "non-private, gamma 0": ({"design": "public"}, {"epsilon": np.inf, "penalty": 0}),
    "objective": ({}, {"epsilon": 1.0, "method": "objective"}),
    "released counts": ({"pair_counts": "release"}, {"epsilon": 1.0, "method": "counts"}),
}


@quiet
@by_survey
@pytest.mark.parametrize("case", SOLVED)
def test_solvers_agree(name, case):
    arguments, options = SOLVED[case]
    fits = {
        solver: model(name, **arguments).fit(**options, solver=solver, rng=seeded())
        for solver in ("newton", "lbfgs", "cvxpy")
    }
    assert not any("not finite" in warning for fit in fits.values() for warning in fit.warnings)
    for fit in fits.values():
        np.testing.assert_allclose(fit.params, fits["newton"].params, atol=1e-6)


@pytest.mark.parametrize("gamma", [0.0, 1e-3, 2.0])
def test_conjugate_gradients_agree_with_the_dense_factor(monkeypatch, gamma):
    frame, items = sparse_survey(600, 24_000)
    survey = pr.PrivateBTL(frame, items=items, respondent=None, design="public")

    def fit(limit, solver="newton"):
        monkeypatch.setattr(fits, "DENSE_LIMIT", limit)
        result = survey.fit(np.inf, penalty=gamma, solver=solver)
        assert result.penalty == gamma, "no finite fit: these data test nothing"
        return result.params

    dense, iterative = fit(1_000), fit(100)
    assert np.ptp(dense) > 1
    np.testing.assert_allclose(iterative, dense, atol=1e-6)
    np.testing.assert_allclose(fit(100, "lbfgs"), dense, atol=1e-6)


@pytest.mark.parametrize("limit", [1_000, 1])
def test_a_fit_solves_its_score_equations(monkeypatch, limit):
    monkeypatch.setattr(fits, "DENSE_LIMIT", limit)
    rng = np.random.default_rng(8)
    first, second = np.triu_indices(12, 1)
    pairs = PairCounts(first, second, rng.integers(1, 30, len(first)), "observed")
    target = rng.normal(scale=5.0, size=12)
    fit = fit_ridge(target, pairs, 0.7)
    table = np.zeros((12, 12))
    table[first, second] = pairs.count
    table += table.T
    chance = 1 / (1 + np.exp(fit.point[None, :] - fit.point[:, None]))
    score = (table * (chance - 0.5)).sum(axis=1) + 0.7 * fit.point
    np.testing.assert_allclose(score, target, atol=1e-9)
    assert fit.gradient_norm < 1e-9


def test_objective_perturbation_certifies_its_gradient():
    # the proof needs the gradient norm below the public tolerance for every solver
    pairs = PairCounts([0, 0, 1], [1, 2, 2], [40.0, 10.0, 5.0], "observed")
    target = np.array([9.0, -30.0, 14.0])
    for solver in ("newton", "lbfgs", "cvxpy"):
        fit = fit_ridge(target, pairs, 0.3, solver=solver, tolerance=1e-8)
        bound = rounding_bound(fit.point, target, pairs, 0.3)
        assert fit.gradient_norm + bound <= 1e-8


# --- when no finite fit exists, and when intervals undercover ---

SEPARABLE = {
    "one item wins all": [("a", "b", 1.0), ("a", "c", 1.0), ("b", "c", 1.0), ("b", "c", -1.0)] * 20,
    "an order without exception": [("a", "b", 1.0), ("b", "c", 1.0), ("a", "c", 1.0)] * 20,
    "a group wins all": [("a", "b", 1.0), ("a", "b", -1.0), ("b", "c", 1.0), ("c", "d", 1.0)] * 20
    + [("c", "d", -1.0)],
}


@pytest.mark.parametrize("rows", SEPARABLE.values(), ids=SEPARABLE)
@pytest.mark.parametrize("solver", ["newton", "lbfgs", "cvxpy"])
def test_separable_data_fall_back_on_the_ridge(rows, solver):
    frame = long_frame(rows)
    items = sorted(set(frame["item1"]) | set(frame["item2"]))
    survey = pr.PrivateBTL(frame, items=items, respondent=None, design="public")
    with pytest.warns(pr.PrivrankWarning, match="not finite"):
        result = survey.fit(np.inf, penalty=0, solver=solver, rng=seeded())
    automatic = survey.fit(np.inf, rng=seeded())
    np.testing.assert_allclose(result.params, automatic.params, atol=1e-6)
    assert result.corrected and result.penalty == automatic.penalty > 0
    assert any("not finite" in note for note in result.warnings)
    # notes are wrapped to the width of the table
    assert "worths are not finite" in " ".join(str(result.summary()).split())


def test_extreme_but_finite_worths_are_no_reason_to_fall_back():
    rows = [("a", "b", 1.0)] * 9_999 + [("a", "b", -1.0)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", pr.PrivrankWarning)
        result = pr.PrivateBTL(
            long_frame(rows), items=["a", "b"], respondent=None, design="public"
        ).fit(np.inf, penalty=0)
    assert result.params["a"] - result.params["b"] == pytest.approx(math.log(9_999), abs=1e-6)


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("source", ["fit", "release"])
def test_the_undercoverage_warning_fires_exactly_past_the_information(above, source):
    survey = model("immigration", design="public")
    plain = survey.fit(np.inf, rng=seeded())
    information = nominal_information(4, plain.release.design.pairs.total)
    penalty = information * (1.0 + (1e-9 if above else -1e-9))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if source == "fit":
            result = survey.fit(np.inf, penalty=penalty, rng=seeded())
        else:
            result = pr.PrivateBTL.from_release(plain.release, penalty=penalty)
    fired = [w for w in caught if "Shrinkage dominates" in str(w.message)]
    assert len(fired) == above
    assert len(result.warnings) == above
    if fired:
        assert fired[0].category is pr.PrivrankWarning
        # it points at the caller's line, not into the package
        assert fired[0].filename == __file__


@quiet
def test_the_undercoverage_warning_follows_the_noise():
    survey = model("immigration", design="public")
    fits = [survey.fit(epsilon, rng=seeded()) for epsilon in np.geomspace(0.02, 20, 13)]
    warned = [bool(fit.warnings) for fit in fits]
    information = nominal_information(4, fits[0].release.design.pairs.total)
    assert warned == [fit.penalty > information for fit in fits]
    assert warned == sorted(warned, reverse=True) and {*warned} == {True, False}


@pytest.mark.parametrize("seed", range(3))
def test_counts_that_noise_decides_are_warned_of(seed):
    # 49 comparisons each: fewer than the noise of 49 released counts
    rng = np.random.default_rng(seed)
    frame = pr.simulate.bradley_terry(rng.standard_normal(50), repeats=1, rng=rng)
    fitted = pr.PrivateBTL(frame, items=range(50), respondent=None, design="private")
    words = "ridge penalty is .* times the information|No differences are identified"
    with pytest.warns(pr.PrivrankWarning, match=words):
        result = fitted.fit(epsilon=0.5, method="counts", rng=rng)
    total = float(result.release.parts["pair_counts"].values.sum())
    assert result.penalty > nominal_information(50, total)


# --- what a result offers ---


@pytest.fixture(scope="module")
def private():
    return model(design="public").fit(1.0, rng=seeded())


def contrast(result, first, second):
    weights = np.zeros(len(result.items))
    weights[result.items.index(first)], weights[result.items.index(second)] = 1.0, -1.0
    return weights


def test_t_test_agrees_with_hand_computation(private):
    weights = contrast(private, "London", "Paris")
    gap = weights @ private.params
    error = math.sqrt(weights @ private.cov_params().to_numpy() @ weights)
    for hypothesis in ("London = Paris", weights):
        test = private.t_test(hypothesis)
        assert float(np.squeeze(test.effect)) == pytest.approx(gap)
        assert float(np.squeeze(test.sd)) == pytest.approx(error)
        # noise is not quite normal
        normal = 2 * norm.sf(abs(gap) / error)
        assert float(np.squeeze(test.pvalue)) == pytest.approx(normal, abs=2e-3)
        half = 1.959964 * error
        assert np.squeeze(test.conf_int()) == pytest.approx((gap - half, gap + half), rel=0.02)


def test_wald_test_agrees_with_hand_computation(private):
    hypothesis = "London = Paris, Milano = StGallen"
    weights = np.array(
        [contrast(private, "London", "Paris"), contrast(private, "Milano", "StGallen")]
    )
    gaps = weights @ private.params.to_numpy()
    covariance = weights @ private.cov_params().to_numpy() @ weights.T
    statistic = gaps @ np.linalg.solve(covariance, gaps)
    first, second = private.wald_test(hypothesis), private.wald_test(weights)
    assert first.statistic == pytest.approx(second.statistic) and first.df == 2
    assert first.pvalue == second.pvalue
    # Wald's statistic has its errors at the estimates, and this one under the hypothesis
    assert first.statistic == pytest.approx(statistic, rel=0.1)
    assert first.pvalue == pytest.approx(chi2.sf(statistic, 2), abs=0.01)


@pytest.mark.parametrize(
    "wrong", ["Londn = Paris", "London ==", "", 3, [[1, -1]], {"a": 1}, np.zeros(6), [np.nan] * 6]
)
def test_a_hypothesis_that_cannot_be_read_gets_one_sentence(private, wrong):
    for test in (private.t_test, private.wald_test):
        with pytest.raises(ValueError, match=r"^hypothesis must be .*'London = .* 6 columns") as e:
            test(wrong)
        assert "\n" not in str(e.value)


def test_names_that_no_formula_could_spell():
    frame = long_frame([("St. Gallen", "A&B", 1.0), ("A&B", "1st", -1.0), ("1st", "A&B", -1.0)] * 9)
    result = pr.PrivateBTL(
        frame, items=["St. Gallen", "A&B", "1st"], respondent=None, design="public"
    ).fit(np.inf)
    test = result.t_test([[1.0, -1.0, 0.0]])
    assert float(np.squeeze(test.effect)) == pytest.approx(
        result.params.iloc[0] - result.params.iloc[1]
    )


def test_pairwise_and_probabilities_agree(private):
    pairs = private.pairwise(0.1)
    matrix = private.probabilities()
    np.testing.assert_allclose(matrix + matrix.T, 1.0)
    assert len(pairs) == 15
    for row in pairs.itertuples():
        test = private.t_test(contrast(private, row.item1, row.item2))
        assert row.difference == pytest.approx(float(np.squeeze(test.effect)))
        assert row.std_err == pytest.approx(float(np.squeeze(test.sd)))
        # the scores' answer, which is Wald's where worths are ordinary
        assert row.pvalue == pytest.approx(float(np.squeeze(test.pvalue)), rel=0.1, abs=1e-4)
        share = row.preferred_plus_half_ties
        assert share == pytest.approx(matrix.loc[row.item1, row.item2])
        assert share == pytest.approx(1 / (1 + math.exp(-row.difference)))
        low, high = np.squeeze(test.conf_int(0.1))
        assert (row.lower, row.upper) == pytest.approx(
            (1 / (1 + math.exp(-low)), 1 / (1 + math.exp(-high))), abs=0.005
        )


def test_worth_and_ranks_follow_params(private):
    worth = private.worth()
    assert worth.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.log(worth) - np.log(worth).mean(), private.params)
    order = private.params.sort_values(ascending=False).index
    assert list(private.ranks().sort_values().index) == list(order)
    assert sorted(private.ranks()) == [1, 2, 3, 4, 5, 6]
    assert list(private.to_frame().index) == list(order)


def test_equal_worths_share_a_rank_and_keep_the_order_of_the_items():
    frame = long_frame([("a", "b", 0.0), ("b", "c", 0.0), ("a", "c", 0.0)] * 5)
    survey = pr.PrivateBTL(
        frame, items=["a", "b", "c"], respondent=None, ties=True, design="public"
    )
    orders = set()
    for seed in range(10):
        result = survey.fit(np.inf, rng=seeded(seed))
        assert list(result.params) == [0.0, 0.0, 0.0]
        assert list(result.ranks()) == [1, 1, 1]
        assert list(result.to_frame().index) == ["a", "b", "c"]
        shown = result.plot_pairwise().axes[0].get_yticklabels()
        assert [label.get_text() for label in shown] == ["a", "b", "c"]
        equal = CLAIMS["equal estimates"].format(names="a, b, c")
        assert any(equal in note for note in result.summary().notes)
        orders.add(result.release.tie_break)
    assert len(orders) > 1


def test_intervals_and_rank_sets_are_consistent(private):
    interval = private.conf_int()
    width = interval["upper"] - interval["lower"]
    np.testing.assert_allclose(width, 2 * norm.isf(0.025) * private.bse, rtol=0.04)
    wide = private.conf_int(simultaneous=True)
    half = (wide["upper"] - wide["lower"]) / 2
    # the design effect is known as well as its noise allows, which tells in the tails
    np.testing.assert_allclose(half, norm.isf(0.025 / 6) * private.bse, rtol=0.08)
    sets, ranks = private.rank_conf_int(), private.ranks()
    assert (sets["lower"] <= ranks).all() and (ranks <= sets["upper"]).all()
    looser = private.rank_conf_int(0.5)
    assert (looser["lower"] >= sets["lower"]).all() and (looser["upper"] <= sets["upper"]).all()
    # an item surely better than another has its whole set above: here the extremes are apart
    assert sets.loc["London", "upper"] < sets.loc["Stockholm", "lower"]
    assert sets["lower"].min() == 1 and sets["upper"].max() == 6


def test_standard_errors_split_into_sampling_and_privacy(private):
    np.testing.assert_allclose(
        private.bse**2, private.bse_sampling**2 + private.bse_privacy**2, rtol=1e-12
    )
    assert (private.bse_privacy > 0).all()
    np.testing.assert_allclose(private.pvalues, 2 * norm.sf(abs(private.tvalues)), rtol=1e-6)
    assert (np.sign(private.tvalues) == np.sign(private.params)).all()
    # only contrasts are identified: the covariance does not move along the constant vector
    np.testing.assert_allclose(private.cov_params().sum(), 0, atol=1e-12)


@quiet
@pytest.mark.parametrize("case", SOLVED)
def test_standard_errors_split_in_every_mechanism(case):
    arguments, options = SOLVED[case]
    result = model("immigration", **arguments).fit(**options, rng=seeded())
    np.testing.assert_allclose(result.bse**2, result.bse_sampling**2 + result.bse_privacy**2)
    assert (result.bse > 0).all()


def test_homogeneity_without_noise_is_nearly_the_chi_square_test():
    # coin tosses: the score test of equal worths, by hand from the net wins
    rng = np.random.default_rng(12)
    rows = [(i, j, o) for i, j in combinations("abcd", 2) for o in rng.choice([1.0, -1.0], 50)]
    result = pr.PrivateBTL(
        long_frame(rows), items=list("abcd"), respondent=None, design="public"
    ).fit(np.inf)
    test = result.test_homogeneity()
    net = result.release.parts["net wins"].values
    # every item met three others 50 times: covariance of net is 50 (4 I - J)
    assert test.df == 3 and test.statistic == pytest.approx(net @ net / 200)
    assert test.pvalue == pytest.approx(chi2.sf(test.statistic, 3), abs=4 * test.pvalue_error)


def test_the_noise_of_a_win_matrix_of_many_items_is_part_of_the_test_of_equal_worths():
    m, rng = 60, np.random.default_rng(3)
    first, second = np.triu_indices(m, 1)
    names = np.array([f"i{k}" for k in range(m)])
    answers = rng.choice([1.0, -1.0], (20, len(first)))
    frame = long_frame(list(zip(names[first], names[second], answers[0], strict=True)))
    frame = pd.concat([frame.assign(outcome=row) for row in answers])
    model = pr.PrivateBTL(frame, items=list(names), respondent=None)
    result = pr.PrivateBTL.from_release(win_matrix(model, 0.3, rng))
    assert score_equations(result.release).components.projection is None
    test = result.test_homogeneity()
    assert 0.05 < test.pvalue < 0.95 and test.statistic == pytest.approx(test.df, rel=0.5)


# --- symmetries ---


@quiet
@pytest.mark.parametrize("case", SOLVED)
def test_two_items_work_everywhere(case):
    arguments, options = SOLVED[case]
    frame = long_frame([("a", "b", 1.0)] * 30 + [("b", "a", 1.0)] * 20 + [("a", "b", 0.0)] * 5)
    frame["respondent"] = np.arange(len(frame))
    for unit in ({"respondent": None}, {"respondent": "respondent"}):
        survey = pr.PrivateBTL(frame, items=["a", "b"], ties=True, **unit, **arguments)
        result = survey.fit(**options, rng=seeded())
        assert np.isfinite(result.params).all() and result.params.sum() == pytest.approx(0)
        assert result.bse["a"] == pytest.approx(result.bse["b"]) and result.bse["a"] > 0
        assert len(result.pairwise()) == 1
        assert 0 < result.test_homogeneity().pvalue <= 1
        assert str(result.summary())
        result.plot()
        result.plot_pairwise()


def test_two_items_by_hand():
    frame = long_frame([("a", "b", 1.0)] * 30 + [("a", "b", -1.0)] * 10)
    result = pr.PrivateBTL(frame, items=["a", "b"], respondent=None, design="public").fit(
        np.inf, penalty=0
    )
    assert result.params["a"] == pytest.approx(math.log(3) / 2)
    (row,) = result.pairwise().itertuples()
    assert row.probability == pytest.approx(0.75)
    assert row.std_err == pytest.approx(1 / math.sqrt(40 * 0.75 * 0.25))


@quiet
@pytest.mark.parametrize("case", [case for case in SOLVED if "private" in case])
def test_relabelling_items_permutes_everything(monkeypatch, case):
    # noise is switched off, so that only the arithmetic is compared
    monkeypatch.setattr(DiscreteLaplace, "draw", lambda self, values, rng: np.array(values))
    arguments, options = SOLVED[case]
    items = SURVEYS["university"].items
    order = [items[k] for k in (3, 0, 5, 1, 4, 2)]
    one, other = (model(items=names, **arguments).fit(**options) for names in (items, order))
    for name in ("params", "bse", "bse_sampling", "bse_privacy", "pvalues"):
        np.testing.assert_allclose(getattr(other, name)[list(items)], getattr(one, name), atol=1e-9)
    np.testing.assert_allclose(
        other.cov_params().loc[list(items), list(items)], one.cov_params(), atol=1e-9
    )
    pd.testing.assert_series_equal(other.ranks()[list(items)], one.ranks())
    probabilities = other.probabilities().loc[list(items), list(items)]
    np.testing.assert_allclose(probabilities, one.probabilities(), atol=1e-9)
    assert other.design_effect == pytest.approx(one.design_effect)
    assert other.test_homogeneity().statistic == pytest.approx(one.test_homogeneity().statistic)


# --- other ways to the same fit ---


@by_design
@pytest.mark.parametrize(
    "text", ["item1 + item2 + outcome ~ 1", "Q('item1') + item2 + Q(\"outcome\") ~ 1"]
)
def test_from_formula_equals_the_constructor(design, text):
    survey = SURVEYS["immigration"]
    arguments = {
        "items": survey.items,
        "respondent": "respondent",
        "max_rows": 6,
        "ties": True,
        "design": design,
        "link": "logit",
    }
    by_formula = pr.PrivateBTL.from_formula(text, survey.comparisons, **arguments)
    plain = pr.PrivateBTL(survey.comparisons, **arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        one, other = (m.fit(0.7, rng=seeded()).to_json() for m in (by_formula, plain))
    assert one == other


@by_design
def test_from_formula_with_winner_and_loser(design):
    survey = SURVEYS["university"].comparisons
    decided = survey[survey["outcome"].isin([1.0, -1.0])].astype({"item1": str, "item2": str})
    won = decided["outcome"] == 1
    games = pd.DataFrame(
        {
            "the winner": decided["item1"].where(won, decided["item2"]),
            "loser": decided["item2"].where(won, decided["item1"]),
        }
    )
    items = SURVEYS["university"].items
    one = pr.PrivateBTL.from_formula(
        "Q('the winner') + loser ~ 1", games, items=items, respondent=None, design=design
    ).fit(0.7, rng=seeded())
    other = pr.PrivateBTL(decided, items=items, respondent=None, ties=False, design=design).fit(
        0.7, rng=seeded()
    )
    assert one.to_json() == other.to_json()
    assert one.release.design.ties is False


def test_renamed_columns_give_the_same_fit():
    survey = SURVEYS["immigration"].comparisons
    renamed = survey.rename(columns={"item1": "x", "item2": "y", "outcome": "z", "respondent": "w"})
    one = model("immigration", design="public").fit(2.0, rng=seeded())
    other = model(
        "immigration",
        frame=renamed,
        item1="x",
        item2="y",
        outcome="z",
        respondent="w",
        design="public",
    ).fit(2.0, rng=seeded())
    assert one.to_json() == other.to_json()


def test_from_release_costs_nothing_and_gives_the_same_numbers(monkeypatch):
    budget = pr.Budget(epsilon=3.0, unit="respondent")
    survey = SURVEYS["university"]
    arguments = {
        "items": survey.items,
        "respondent": "respondent",
        "max_rows": 15,
        "ties": True,
        "design": "public",
    }
    worths = model(design="public").fit(1.0, budget=budget, rng=seeded())
    selection = pr.PrivateTopK(survey.comparisons, 2, **arguments).fit(
        1.0, budget=budget, rng=seeded(8)
    )
    assert budget.spent == (2.0, 0.0)

    def no_noise(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(DiscreteLaplace, "draw", no_noise)
    assert pr.PrivateBTL.from_release(worths.release).to_json() == worths.to_json()
    assert pr.PrivateTopK.from_release(selection.release, 2).to_json() == selection.to_json()
    crossed = pr.PrivateBTL.from_release(selection.release, penalty=0.5, alpha=0.1)
    assert crossed.penalty == 0.5 and crossed.alpha == 0.1
    assert crossed.release is selection.release
    top = pr.PrivateTopK.from_release(worths.release, 3)
    assert top.k == 3
    part = worths.release.parts["net wins"]
    np.testing.assert_allclose(top.net_wins, part.step * part.values, atol=1e-9)
    assert budget.spent == (2.0, 0.0)


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.4])
@pytest.mark.parametrize("method", ["counts", "objective"])
def test_delta_is_worth_its_logarithm(delta, method):
    # pure noise at epsilon + log(1 / (1 - delta)) is (epsilon, delta)-private
    survey = model("immigration", design="public")
    options = {"method": method, "noise": "laplace", "penalty": 2.0}
    one = survey.fit(1.0, delta, **options, rng=seeded())
    other = survey.fit(1.0 - math.log1p(-delta), **options, rng=seeded())
    for name, part in one.release.parts.items():
        assert part.distribution == other.release.parts[name].distribution
        np.testing.assert_array_equal(part.values, other.release.parts[name].values)
    assert one.release.plan.settings == other.release.plan.settings
    assert (one.epsilon, one.delta, other.delta) == (1.0, delta, 0.0)
    assert f"probability of {delta:g}" in " ".join(str(one.summary()).split())


# --- what a private design must not give away ---


def two_graphs():
    """Two data sets with the same respondents and quite different pair counts."""
    survey = SURVEYS["university"].comparisons
    odd = survey["respondent"] % 3 == 0
    other = survey[
        ~(odd & survey["item1"].eq("London") & survey["item2"].isin(["Paris", "Milano"]))
    ]
    other = other[~(other["respondent"].gt(150) & other["item2"].eq("Stockholm"))]
    assert other["respondent"].nunique() == survey["respondent"].nunique()
    return survey, other


@quiet
@pytest.mark.parametrize("effect", ["auto", "none"])
@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ({}, {"method": "counts", "noise": "laplace"}),
        ({}, {"method": "objective"}),
        ({}, {"method": "counts", "penalty": 0, "noise": "laplace"}),
        ({"pair_counts": "equal"}, {"method": "counts", "noise": "laplace"}),
        ({"pair_counts": "equal"}, {"method": "objective"}),
        (
            {"pair_counts": dict.fromkeys(combinations(SURVEYS["university"].items, 2), 300)},
            {"noise": "laplace"},
        ),
    ],
)
def test_standard_errors_under_a_private_design_come_from_the_release(
    monkeypatch, arguments, options, effect
):
    survey, other = two_graphs()
    truth = model(frame=survey, **arguments).fit(1.0, **options, dependence=effect, rng=seeded())

    def replayed(self, values, rng):
        # the noisy release of the first data set, whatever the data are
        (same,) = (
            part.values
            for part in truth.release.parts.values()
            if part.values.shape == values.shape and part.distribution == self
        )
        return same

    monkeypatch.setattr(DiscreteLaplace, "draw", replayed)
    monkeypatch.setattr(CubeNoise, "draw", replayed)
    monkeypatch.setattr("privrank.mechanisms.comparisons.draw_cells", lambda *_: np.full(6, 40.0))
    for frame in (survey, other):
        result = model(frame=frame, **arguments).fit(
            1.0, **options, dependence=effect, rng=seeded()
        )
        pd.testing.assert_series_equal(result.bse, truth.bse, check_exact=True)
        pd.testing.assert_series_equal(result.bse_sampling, truth.bse_sampling, check_exact=True)
        assert result.warnings == truth.warnings


def test_the_fault_that_the_test_above_looks_for_would_show():
    # under a public design the same two graphs do give different standard errors
    survey, other = two_graphs()
    one, two = (model(frame=frame, design="public").fit(np.inf) for frame in (survey, other))
    assert np.abs(one.bse - two.bse).max() > 0.002


@quiet
@by_design
def test_the_plan_comes_from_public_numbers(design):
    # which mechanism is taken must not depend on answers, or on the graph if that is private
    survey, other = two_graphs()
    if design == "public":
        other = survey.assign(outcome=-survey["outcome"])
    for pair_counts in (None, "release") if design == "private" else (None,):
        for epsilon in (0.05, 0.5, 5.0):
            one, two = (
                model(frame=frame, design=design, pair_counts=pair_counts)
                .fit(epsilon, rng=seeded())
                .release
                for frame in (survey, other)
            )
            assert one.mechanism == two.mechanism and one.plan.settings == two.plan.settings
            assert {n: p.distribution for n, p in one.parts.items()} == {
                n: p.distribution for n, p in two.parts.items()
            }


def test_public_design_takes_counts_and_two_over_epsilon():
    # one row, replaced outcome: net moves by 4 in l1, so half-wins move by 2 at lambda = 2/epsilon
    release = model(unit="row", design="public").fit(0.5, noise="laplace", rng=seeded()).release
    part = release.parts["net wins"]
    assert release.mechanism == "net wins" and part.sensitivity == 4
    assert (
        part.distribution.scale == pytest.approx(4 / 0.5, rel=1e-12)
        and part.distribution.scale >= 8.0
    )
    # a University respondent moves it by 36, with a tenth of epsilon left to the design effect
    fit = model(design="public").fit(0.5, noise="laplace", rng=seeded())
    part = fit.release.parts["net wins"]
    assert part.sensitivity == 36
    assert part.distribution.scale == pytest.approx(36 / 0.45, rel=1e-12)


@by_unit
def test_shares_add_up_to_epsilon(unit):
    shares = {"output": 0.02, "pair_counts": 0.2}
    if unit == "respondent":
        shares["dependence"] = 0.3
    result = model(unit=unit, pair_counts="release").fit(
        2.0, method="objective", shares=shares, rng=seeded()
    )
    parts = result.release.parts
    assert sum(part.epsilon for part in parts.values()) == pytest.approx(2.0, rel=1e-12)
    assert sum(part.epsilon for part in parts.values()) <= 2.0
    assert parts["pair_counts"].epsilon == pytest.approx(0.4)
    if unit == "respondent":
        assert parts["dependence"].epsilon == pytest.approx(0.6)


def test_auto_leaves_objective_perturbation_out_when_the_ridge_is_too_small():
    cems = pr.datasets.load_university()
    model = pr.PrivateBTL(
        cems.comparisons, items=cems.items, ties=True, pair_counts="equal", respondent=None
    )
    rng = np.random.default_rng(0)
    assert model.fit(1.0, rng=rng).release.mechanism == "objective perturbation"
    assert model.fit(1.0, penalty=0, rng=rng).release.mechanism == "net wins"
    with pytest.raises(ValueError, match="penalty"):
        model.fit(1.0, penalty=0, method="objective", rng=rng)
