"""Detectable effects: their Monte Carlo error, and comparisons of groups."""

import numpy as np
import pytest

import privrank as pr
from privrank.planning.simulation import Curve


def probit_curve(noise=0.3):
    """A power of x, blurred by simulation, from 0 at 0 to 1 at 2."""

    def sampler(effect, rng):
        return effect / 2 + noise * rng.standard_normal()

    return Curve(lambda data, order: float(np.clip(data, 0, 1)), sampler, 2, "test")


def test_the_error_of_an_effect_is_that_of_its_simulation(monkeypatch):
    found = []
    for turn in range(30):
        monkeypatch.setattr(
            "privrank.planning.simulation.public_generator",
            lambda label, number, turn=turn: np.random.default_rng([turn, number]),
        )
        found.append(probit_curve().detectable(0.6, 100, start=0.5, most=2.0))
    effects, errors = np.array(found).T
    assert 0.4 < np.median(errors) / effects.std(ddof=1) < 2.5
    assert abs(effects.mean() - 1.2) < 0.1


def test_a_comparison_of_groups_says_what_it_detects():
    counts = {"x": {"a": 60, "b": 60}, "y": {"a": 90, "b": 90}, "z": {"a": 40, "b": 40}}
    rng = np.random.default_rng(3)
    result = pr.ClosenessTest.from_counts(counts).fit(2.0, permutations=99, rng=rng)
    effect = result.detectable_effect(0.8, replicates=40)
    assert 0.1 < effect.total_variation < 0.5 and 0 < effect.error < 0.1
    assert "of the smallest group from the others" in str(effect)
    assert "Monte Carlo standard error" in str(effect) and effect.phi is None
    small = {group: {k: v // 2 for k, v in each.items()} for group, each in counts.items()}
    less = pr.ClosenessTest.from_counts(small).fit(2.0, permutations=99, rng=rng)
    assert less.detectable_effect(0.8, replicates=40).total_variation > effect.total_variation
    # public numbers alone: another sample of the same sizes detects the same
    other = {group: {"a": sum(each.values()), "b": 0} for group, each in counts.items()}
    again = pr.ClosenessTest.from_counts(other).fit(2.0, permutations=99, rng=rng)
    assert again.detectable_effect(0.8, replicates=40) == effect


def test_rankings_of_groups_have_a_mallows_effect():
    model, rng = pr.Mallows(4, 1.0), np.random.default_rng(4)
    test = pr.ClosenessTest(model.rvs(60, rng), model.rvs(40, rng))
    effect = test.fit(2.0, permutations=99, rng=rng).detectable_effect(0.7, replicates=30)
    assert 0.2 < effect.phi < 0.9 and effect.error > 0
    with pytest.raises(ValueError, match="power must be"):
        test.fit(2.0, permutations=99, rng=rng).detectable_effect(0.01)
