"""Detectable effects: their Monte Carlo error, and comparisons of groups."""

import numpy as np
import pytest

import privrank as pr
from privrank.hypotheses.effects import Curve, Search, least_number
from privrank.results.claims import CLAIMS


def probit_curve(noise=0.3):
    """A power of x, blurred by simulation, from 0 at 0 to 1 at 2."""

    def sampler(effect, rng):
        return effect / 2 + noise * rng.standard_normal()

    return Curve(lambda data, order: float(np.clip(data, 0, 1)), sampler, 2, "test")


def test_the_error_of_an_effect_is_that_of_its_simulation(monkeypatch):
    found = []
    for turn in range(30):
        monkeypatch.setattr(
            "privrank.hypotheses.effects.public_generator",
            lambda label, number, turn=turn: np.random.default_rng([turn, number]),
        )
        search = Search(probit_curve().at, 0.6, 2.0**-20 * 0.5, 2.0, 100)
        found.append(least_number(search, 0.5))
    effects, errors = np.array([(one.at, one.error) for one in found]).T
    assert 0.4 < np.median(errors) / effects.std(ddof=1) < 2.5
    assert abs(effects.mean() - 1.2) < 0.1


def test_a_comparison_of_groups_says_what_it_detects():
    counts = {"x": {"a": 60, "b": 60}, "y": {"a": 90, "b": 90}, "z": {"a": 40, "b": 40}}
    rng = np.random.default_rng(3)
    result = pr.ClosenessTest.from_counts(counts, ["a", "b"]).fit(2.0, permutations=99, rng=rng)
    effect = result.detectable_effect(0.8, replicates=40)
    assert 0.1 < effect.total_variation < 0.5 and 0 < effect.error < 0.1
    assert "of the smallest group from the others" in str(effect)
    assert "Monte Carlo standard error" in str(effect) and effect.phi is None
    small = {group: {k: v // 2 for k, v in each.items()} for group, each in counts.items()}
    less = pr.ClosenessTest.from_counts(small, ["a", "b"]).fit(2.0, permutations=99, rng=rng)
    assert less.detectable_effect(0.8, replicates=40).total_variation > effect.total_variation
    # public numbers alone: another sample of the same sizes detects the same
    other = {group: {"a": sum(each.values()), "b": 0} for group, each in counts.items()}
    again = pr.ClosenessTest.from_counts(other, ["a", "b"]).fit(2.0, permutations=99, rng=rng)
    assert again.detectable_effect(0.8, replicates=40) == effect


def test_rankings_of_groups_have_a_mallows_effect():
    model, rng = pr.Mallows(4, 1.0), np.random.default_rng(4)
    test = pr.ClosenessTest(model.rvs(60, rng), model.rvs(40, rng))
    effect = test.fit(2.0, permutations=99, rng=rng).detectable_effect(0.7, replicates=30)
    assert 0.2 < effect.phi < 0.9 and effect.error > 0
    with pytest.raises(ValueError, match="power must be"):
        test.fit(2.0, permutations=99, rng=rng).detectable_effect(0.01)


NULL = {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}


def of_counts(counts, null=None, epsilon=1.0, **options):
    counts = dict(zip("abcdefgh", counts, strict=False))
    test = pr.IdentityTest.from_counts(counts, NULL if null is None else null, list(counts))
    return test.fit(epsilon, **{"draws": 999, "rng": np.random.default_rng(1), **options})


def test_a_summary_that_keeps_h0_names_what_computes_the_least_effect():
    line = CLAIMS["no evidence"]
    for counts, kept in (([72, 54, 36, 18], True), ([18, 36, 54, 72], False)):
        result = of_counts(counts)
        assert result.reject != kept
        assert (line in " ".join(result.summary().as_text().split())) == kept


@pytest.mark.parametrize("shares", [(0.4, 0.3, 0.2, 0.1), (0.7, 0.1, 0.1, 0.1), (0.8, 0.2)])
def test_detectable_effects_do_not_depend_on_the_order_of_categories(shares):
    # least and most favourable halves lie far apart: .27 and .39 were printed
    detected = [
        of_counts([45] * len(each), dict(zip("abcd", each, strict=False))).detectable_effect(
            0.8, replicates=200
        )
        for each in (shares, shares[::-1])
    ]
    errors = np.hypot(detected[0].error or 0, detected[1].error or 0)
    apart = detected[0].total_variation - detected[1].total_variation
    assert abs(apart) <= 4 * errors + 1e-6


def test_counts_of_orders_have_a_power_too():
    rng = np.random.default_rng(5)
    test = pr.UniformityTest(pr.Mallows(4, 1.0).rvs(100, rng))
    result = test.fit(2.0, method="omnibus", draws=199, rng=rng)
    assert 0.5 < result.detectable_effect(0.8, replicates=20).phi < 1
