"""What the default releases: by public numbers, the least predicted loss, and never a worse one."""

import itertools
import math

import numpy as np
import pytest

import privrank as pr
from privrank.plans.aggregation import (
    AHEAD,
    PAIR_KINDS,
    TIE,
    TIE_SHARE,
    plan_aggregation,
    predicted_excess,
    predicted_excesses,
)
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.privacy.noise import DiscreteGaussian
from privrank.release.names import PAIRS, SCORE, TOTALS
from privrank.release.survey import Sample


def public(m, n):
    return Sample("rankings", tuple(str(k) for k in range(m)), n, "row", 1)


def kind_of(plan):
    distributions = {CubeNoise: "cube", PermutohedronNoise: "K-norm", DiscreteGaussian: "Gaussian"}
    name = "pairs" if PAIRS in plan.parts else TOTALS
    return f"{distributions[type(plan.parts[name].noise)]} {name.removeprefix('Borda ')}"


@pytest.mark.parametrize(
    ("m", "n", "epsilon", "delta", "kind"),
    [
        (10, 100_000, 1.0, 0.0, "cube pairs"),  # no noise to speak of: Kemeny's order, and pairs
        (10, 5000, 0.5, 0.0, "K-norm totals"),
        (45, 5000, 1.0, 0.0, "K-norm totals"),
        (10, 1000, 0.1, 1e-6, "K-norm totals"),  # a delta is no reason for a worse order
        (45, 5000, 1.0, 1e-6, "Gaussian pairs"),
        (45, 10**6, 1.0, 1e-6, "Gaussian pairs"),
        (300, 500, 0.1, 1e-6, "Gaussian totals"),  # noise hides all that pairs would show
        (25, 1000, 0.2, 1e-6, "Gaussian totals"),
        (25, 3000, 0.2, 1e-6, "Gaussian pairs"),
        (2, 2, 0.1, 0.0, "cube pairs"),  # one pair is as good as two totals
    ],
)
def test_the_default_goes_by_public_numbers(m, n, epsilon, delta, kind):
    plan = plan_aggregation(public(m, n), epsilon, delta, "auto")
    assert kind_of(plan) == kind and SCORE not in plan.parts
    assert plan.method == ("EB-Kemeny" if "pairs" in kind else "Borda")
    pairs = plan_aggregation(public(m, n), epsilon, delta, "auto", releases="pairs")
    assert PAIRS in pairs.parts and pairs.method == "EB-Kemeny"


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("method", ["auto", "kemeny", "borda"])
@pytest.mark.parametrize("m", [2, 3, 7, 20, 60, 300])
@pytest.mark.parametrize("n", [50, 2000, 100_000])
def test_more_epsilon_or_delta_never_leads_to_a_worse_order(m, n, method, share):
    def chosen(epsilon, delta):
        kind = kind_of(plan_aggregation(public(m, n), epsilon, delta, method, share))
        found = predicted_excesses(public(m, n), epsilon, delta, share)
        # what pairs are taken to be worth beside Gaussian totals
        return min(found[kind], max(found[kind] - AHEAD, found["Gaussian totals"]))

    epsilons, deltas = (0.1, 0.3, 1.0, 3.0), (0.0, 1e-9, 1e-6, 1e-3)
    found = {both: chosen(*both) for both in itertools.product(epsilons, deltas)}
    for (e, d), (f, g) in itertools.product(found, repeat=2):
        if e <= f and d <= g:
            assert found[f, g] <= max(found[e, d] + TIE, (1 + TIE_SHARE) * found[e, d]) * 1.001


def test_pairs_are_taken_where_their_noise_no_longer_matters():
    for n in (10, 10**3, 10**5, 10**7):
        excesses = predicted_excesses(public(15, n), 1.0, 1e-6)
        plan = plan_aggregation(public(15, n), 1.0, 1e-6, "auto")
        pairs = min(excesses[kind] for kind in PAIR_KINDS)
        least = min(pairs, excesses["K-norm totals"])
        near = pairs < min(max(least + TIE, 1.05 * least), excesses["Gaussian totals"] + AHEAD)
        assert (PAIRS in plan.parts) == near
    assert near


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("m", [3, 9, 30])
def test_what_is_predicted_is_what_the_noise_of_the_release_predicts(m, delta, share):
    rng = np.random.default_rng(1)
    model = pr.PrivateRankAggregation(pr.Mallows(m, 0.8).rvs(300, rng))
    for options in ({}, {"releases": "pairs"}, {"method": "borda"}):
        fit = model.fit(1.0, delta, score_share=share, rng=rng, **options)
        plan = plan_aggregation(public(m, 300), 1.0, delta, options.get("method", "auto"), share,
                                releases=options.get("releases", "auto"))  # fmt: skip
        predicted = predicted_excesses(public(m, 300), 1.0, delta, share)[kind_of(plan)]
        assert predicted_excess(fit.release) == pytest.approx(predicted, rel=0.02)


def test_the_order_of_gaussian_totals_is_that_of_mean_ranks():
    ranks = pr.Mallows(40, 0.9).rvs(4000, np.random.default_rng(3))
    fit = pr.PrivateRankAggregation(ranks).fit(5.0, 1e-6, method="borda")
    assert fit.release.source == "secure"
    part = fit.release.parts["Borda totals"]
    assert isinstance(part.distribution, DiscreteGaussian) and part.step < 0.01
    mean = fit.borda()["mean_rank"]
    off = mean - ranks.mean(axis=0)[fit.places]
    assert np.abs(off).max() < 5 * math.sqrt(part.noise_variance) / 4000 < 0.25
    assert (np.diff(mean) >= 0).all()
