"""Detectable effects: their Monte Carlo error, and comparisons of groups."""

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.hypotheses.simulation import Curve
from privrank.hypotheses.solving import detectable


def probit_curve(noise=0.3):
    """A power of x, blurred by simulation, from 0 at 0 to 1 at 2."""

    def sampler(effect, rng):
        return effect / 2 + noise * rng.standard_normal()

    return Curve(lambda data, order: float(np.clip(data, 0, 1)), sampler, 2, "test")


def test_the_error_of_an_effect_is_that_of_its_simulation(monkeypatch):
    found = []
    for turn in range(30):
        monkeypatch.setattr(
            "privrank.hypotheses.simulation.public_generator",
            lambda label, number, turn=turn: np.random.default_rng([turn, number]),
        )
        found.append(detectable(probit_curve().at, 0.6, 100, start=0.5, most=2.0))
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


def test_a_summary_states_the_power_that_fits_have():
    result = of_counts([60, 50, 40, 30])
    power, error, phi = result.standard_power()
    assert phi is None and 0.005 < error < 0.05
    rng = np.random.default_rng(2)
    # a distance of .1, with more of half of the categories, the first ones of a random order
    drawn = []
    for _ in range(150):
        order, cells = rng.permutation(4), np.array(list(NULL.values()))
        raised = order[: max(1, (np.cumsum(cells[order]) <= 0.5 + 1e-9).sum())]
        share, more = cells[raised].sum(), np.isin(np.arange(4), raised)
        drawn.append(
            rng.multinomial(180, cells * np.where(more, 1 + 0.1 / share, 1 - 0.1 / (1 - share)))
        )
    rejected = np.mean([of_counts(each, rng=rng).reject for each in drawn])
    assert abs(rejected - power) < 3 * np.hypot(error, 0.5 / np.sqrt(150))
    text = " ".join(result.summary().as_text().split())
    assert "Power at a total variation distance of 0.1 from H0 (half of the categories" in text
    assert f"{power:.2f} (Monte Carlo standard error {error:.1g})" in text
    # public numbers alone
    assert of_counts([0, 0, 0, 180]).standard_power() == result.standard_power()


@pytest.mark.parametrize("shares", [(0.4, 0.3, 0.2, 0.1), (0.7, 0.1, 0.1, 0.1), (0.8, 0.2)])
def test_stated_power_does_not_depend_on_the_order_of_categories(shares):
    found = []
    for order in (shares, shares[::-1]):
        null = dict(zip("abcd", order, strict=False))
        found.append(of_counts([45] * len(shares), null).standard_power()[:2])
    (one, error), (other, again) = found
    assert abs(one - other) <= 4 * np.hypot(error, again) + 1e-9
    # least and most favourable halves lie far apart: .27 and .39 were printed
    detected = [
        of_counts([45] * len(each), dict(zip("abcd", each, strict=False))).detectable_effect(
            0.8, replicates=100
        )
        for each in (shares, shares[::-1])
    ]
    errors = np.hypot(detected[0].error or 0, detected[1].error or 0)
    apart = detected[0].total_variation - detected[1].total_variation
    assert abs(apart) <= 4 * errors + 1e-6


def test_of_rankings_it_is_for_a_mallows_model():
    rng = np.random.default_rng(3)
    items = list("abcde")
    result = pr.UniformityTest(pr.Mallows(items, 1.0).rvs(200, rng)).fit(1.0, draws=499, rng=rng)
    power, error, phi = result.standard_power()
    assert pr.Mallows(items, phi).total_variation("uniform") == pytest.approx(0.1, rel=1e-3)
    drawn = [pr.Mallows(items, phi).rvs(200, rng) for _ in range(100)]
    fits = [pr.UniformityTest(ranks).fit(1.0, draws=499, rng=rng).reject for ranks in drawn]
    assert abs(np.mean(fits) - power) < 3 * np.hypot(error, 0.5 / np.sqrt(100))
    centred = pr.Mallows(items, 0.5)
    test = pr.IdentityTest(centred.rvs(200, rng), centred, items=items)
    against = test.fit(1.0, draws=499, rng=rng)
    other = pr.Mallows(items, against.standard_power()[2])
    assert other.phi > 0.5
    assert centred.total_variation(other) == pytest.approx(0.1, rel=1e-3)
    assert "and the centre of H0): " in against.summary().as_text().replace("\n", " ")


def test_counts_of_orders_have_a_power_too():
    rng = np.random.default_rng(5)
    test = pr.UniformityTest(pr.Mallows(4, 1.0).rvs(100, rng))
    result = test.fit(2.0, method="omnibus", draws=199, rng=rng)
    assert 0.05 < result.standard_power()[0] < 0.9
    assert 0.5 < result.detectable_effect(0.8, replicates=20).phi < 1


def unstated():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(pr.Mallows(3, 0.9).rvs(50, rng), columns=list("abc"))
    tied, few = frame.assign(b=frame["a"]), {"draws": 199, "rng": rng}
    orders = frame.iloc[:2].assign(probability=[0.5, 0.5])
    wide = pr.Mallows(2000, 1.0).rvs(40, rng)
    return {
        "completed": pr.UniformityTest(tied, ties="complete").fit(1.0, **few),
        "a table of rankings": pr.IdentityTest(frame, orders).fit(1.0, **few),
        "large": pr.UniformityTest(wide).fit(1.0, method="pairs", **few),
        "a skewed null": of_counts([90, 10], {"a": 0.95, "b": 0.05}),
        "a bit": of_counts([50, 50], {"a": 0.5, "b": 0.5}, 4.0, method="sigmoid", tolerance=0.2),
    }


def test_where_it_is_not_quickly_found_nothing_is_stated():
    for name, result in unstated().items():
        assert result.standard_power() is None, name
        assert "Power at" not in result.summary().as_text()
