"""What one respondent who may tie can do to the released design effect, by enumeration."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import respondents
from scipy.special import ndtr
from test_dependence import ENUMERATED, fewest, squares

import privrank as pr
from privrank.bradley_terry.dependence import (
    Directions,
    effect_error,
    independent_scores,
    released_effect,
)
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.estimate import score_covariance
from privrank.mechanisms import tallies
from privrank.mechanisms.tallies import (
    Expected,
    largest_design_effect,
    round_directions,
    round_expected,
)
from privrank.privacy.sensitivity import UnitSensitivity
from privrank.release.names import TIE_FLOOR
from privrank.release.survey import STEPS, Design


def design(m, rows, n=5, distinct=True):
    items = tuple("abcdefgh"[:m])
    return Design(items, n, "respondent", rows, distinct, "davidson", "private", None)


def expect(seed, m, steps=8):
    """Expected answers and ties of m items, in whole numbers."""
    rng = np.random.default_rng(seed)
    ties = np.triu(rng.integers(0, steps + 1, (m, m)), 1)
    above = np.triu(rng.integers(-steps, steps + 1, (m, m)), 1)
    above = np.clip(above, ties - steps, steps - ties) * (ties >= 0)
    above = np.triu(above, 1)
    return Expected(above - above.T, steps, ties + ties.T)


def reached(weights, m, answers, expected):
    """The weighted sums of all sets of answers, by contrast."""
    first, second = np.triu_indices(m, 1)
    table = np.array(answers, dtype=float)
    asked, s = ~np.isnan(table), expected.steps
    net = np.where(asked, s * np.nan_to_num(table) - expected.answers[first, second], 0.0)
    tied = np.where(asked, s * (table == 0) - expected.ties[first, second], 0.0)
    apart = weights[:, first] - weights[:, second]
    return net @ apart.T + np.outer(tied.sum(axis=1), weights[:, -1])


def all_answers(m, rows):
    pairs = m * (m - 1) // 2
    every = product((1.0, 0.0, -1.0, np.nan), repeat=pairs)
    return [one for one in every if np.isfinite(one).sum() <= rows]


@pytest.mark.parametrize(("m", "rows"), [(3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (4, 4), (4, 6)])
def test_one_respondent_reaches_along_a_contrast_as_far_as_stated(m, rows):
    answers, rng = all_answers(m, rows), np.random.default_rng(rows)
    weights = rng.normal(size=(12, 1, m + 1))
    weights[-1, 0, :m] = 0.0  # ties alone
    facts = design(m, rows)
    found = Directions(weights, np.ones(12), np.zeros(12), np.array([2.0]))
    nothing = round_expected(facts, None)
    stated = round_directions(facts, found, nothing)
    most = np.abs(reached(stated.weights[:, 0], m, answers, nothing)).max(axis=0)
    # answers along the contrast and ties may pull apart, as the bound takes each pair by itself
    assert (most <= stated.farthest).all()
    assert most[-1] == stated.farthest[-1]
    small = np.abs(stated.weights[:, 0, -1]) <= np.abs(np.diff(stated.weights[:, 0, :2]))[:, 0] / 9
    for seed in range(3):
        expected = expect(seed, m)
        stated = round_directions(facts, found, expected)
        most = np.abs(reached(stated.weights[:, 0], m, answers, expected)).max(axis=0)
        assert (most <= stated.farthest).all()
    assert small.shape == (12,)


def joint(net, ties):
    """Squares of differences of nets by pair, and of the numbers of ties, one row each."""
    return np.column_stack((squares(net).T, ties**2))


ALL_ANSWERS = [(3, rows, distinct) for rows in (1, 2, 3) for distinct in (True, False)]


@pytest.mark.parametrize(
    ("m", "rows", "distinct"), ALL_ANSWERS + [(4, rows, True) for rows in range(1, 7)]
)
def test_nets_and_ties_together_move_by_their_sensitivity(m, rows, distinct):
    """Over all answers: win, loss, tie or missing."""
    pairs = list(combinations(range(m), 2)) * (1 if distinct else rows)
    sides = np.eye(m)[[i for i, _ in pairs]] - np.eye(m)[[j for _, j in pairs]]
    answers = np.array(list(product((1.0, 0.0, -1.0, np.nan), repeat=len(pairs))))
    answers = answers[np.isfinite(answers).sum(axis=1) <= rows]
    units = joint(np.nan_to_num(answers) @ sides, (answers == 0).sum(axis=1))
    units = np.unique(units, axis=0)
    moved = max(np.abs(units - one).sum(axis=1).max() for one in units)
    stated = UnitSensitivity(m, rows, distinct, "replace").moments_l1(ties=True, expected=False)
    assert moved == stated if distinct else moved <= stated


@pytest.mark.parametrize(("m", "rows"), ENUMERATED)
def test_stated_sensitivities_of_nets_and_ties_are_those_of_all_answers(m, rows):
    # given a net, ties are largest where as few answers as can be are decided, and smallest at 0
    net, decided = fewest(m)
    net, ties = net[decided <= rows], rows - decided[decided <= rows]
    q, ordered = squares(net).T, (np.diff(net, axis=1) >= 0).all(axis=1)
    moved = max(
        (np.abs(q - one).sum(axis=1) + np.maximum(ties, own) ** 2).max()
        for one, own in zip(q[ordered], ties[ordered], strict=True)
    )
    for adjacency in ("replace", "outcome"):
        reach = UnitSensitivity(m, rows, True, adjacency)
        assert reach.moments_l1(ties=True, expected=False) == moved
        assert reach.moments_l1(ties=False, expected=False) == reach.second_moments_l1
        # the bound that larger designs have
        shorter = [m * (reach._star(rows - t) + reach._star(rows)) for t in range(rows + 1)]
        bounds = (min(reach.second_moments_l1, s) + t * t for t, s in enumerate(shorter))
        assert moved <= max(bounds)


@pytest.mark.parametrize(("m", "rows"), [(7, 21), (8, 12), (10, 45), (12, 20)])
def test_nets_and_ties_of_more_items_keep_their_bound(m, rows):
    # the largest found among rankings and stars of which some answers are ties
    rng, edges = np.random.default_rng(2), np.array(list(combinations(range(m), 2)))
    sides, found = np.eye(m)[edges[:, 0]] - np.eye(m)[edges[:, 1]], []
    for _ in range(300):
        order, asked = rng.permutation(m), rng.permutation(len(edges))[:rows]
        asked = asked[: rows if rng.random() < 0.5 else None]
        answers = np.zeros(len(edges))
        answers[asked] = np.where(order[edges[asked, 0]] < order[edges[asked, 1]], 1, -1)
        tied = asked[: rng.integers(rows + 1)]
        answers[tied] = 0
        found.append(joint((answers @ sides)[None], np.array([len(tied)]))[0])
    found = np.array(found)
    stated = UnitSensitivity(m, rows, True, "replace").moments_l1(ties=True, expected=False)
    assert max(np.abs(found - one).sum(axis=1).max() for one in found) <= stated


def encode(units):
    """A survey of three items from one list of answers, by pair, for each respondent."""
    pairs = list(combinations("abc", 2))
    answered = [zip(pairs, unit, strict=True) for unit in units]
    return respondents.encode(
        answered, max_rows=3, distinct_pairs=True, ties="davidson", pair_counts="equal"
    )


def moved(seed, taken):
    """How far a third respondent moves the statistic, whose sensitivity is STEPS."""
    rng = np.random.default_rng(seed)
    found = Directions(
        rng.normal(size=(6, 1, 4)), rng.exponential(9.0, 6), rng.normal(size=6) * 9, np.array([9.0])
    )
    facts = design(3, 3, n=3)
    expected = round_expected(facts, None) if taken == "nothing" else expect(seed, 3)
    contrasts = round_directions(facts, found, expected)
    most = 0
    for rest in ([(1, 1, 1), (1, 1, -1)], [(0, 0, 0), (0, 0, 0)]):
        values = [
            largest_design_effect(encode([*rest, unit]), contrasts, expected)
            for unit in product((1, 0, -1), repeat=3)
        ]
        most = max(most, max(values) - min(values))
    return most


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("taken", ["nothing", "expected answers"])
def test_the_worst_contrast_moves_by_its_sensitivity_at_most(taken, seed):
    assert 0.1 * STEPS < moved(seed, taken) <= STEPS


def test_a_bound_that_forgets_what_is_taken_off_would_be_exceeded(monkeypatch):
    """Planted: how far answers reach before the expected ones are taken off, or ties left out."""
    honest, answers = tallies._farthest_with_ties, all_answers(3, 3)

    def uncentred(facts, weights, expected, ties):
        return honest(facts, weights, Expected(0 * expected.answers, expected.steps), 0 * ties)

    def untied(facts, weights, expected, ties):
        worths = weights * (np.arange(weights.shape[2]) < weights.shape[2] - 1)
        return honest(facts, worths, expected, ties)

    for planted, taken in ((uncentred, expect(1, 3)), (untied, expect(1, 3)), (honest, None)):
        monkeypatch.setattr(tallies, "_farthest_with_ties", planted)
        expected = taken or round_expected(design(3, 3), None)
        weights = np.random.default_rng(4).normal(size=(12, 1, 4))
        found = Directions(weights, np.ones(12), np.zeros(12), np.array([2.0]))
        stated = round_directions(design(3, 3), found, expected)
        most = np.abs(reached(stated.weights[:, 0], 3, answers, expected)).max(axis=0)
        assert (most > stated.farthest).any() == (planted is not honest)
        if planted is not honest:
            assert max(moved(seed, "expected answers") for seed in range(3)) > STEPS


def test_a_respondent_whose_ties_are_forgotten_would_reach_too_far():
    # net wins that do not matter: what is left of the bound without ties is nothing
    weights = np.zeros((1, 1, 4))
    weights[0, 0, -1] = 1.0
    facts = design(3, 3, n=3)
    nothing = round_expected(facts, None)
    found = Directions(weights, np.ones(1), np.zeros(1), np.array([3.0]))
    contrasts = round_directions(facts, found, nothing)
    values = [
        largest_design_effect(encode([(1, 1, 1), (1, 1, 1), unit]), contrasts, nothing)
        for unit in ((1, 1, 1), (0, 0, 0))
    ]
    assert values == [0, STEPS]


def test_rare_ties_do_not_drown_the_worths_in_noise():
    weights = np.concatenate((np.eye(3) - 1 / 3, np.zeros((3, 1))), axis=1)
    weights = np.vstack((weights, [0, 0, 0, 1.0]))[:, None, :]
    facts, nothing = design(3, 3, n=100), round_expected(design(3, 3), None)
    found = Directions(weights, np.array([200.0] * 3 + [0.5]), np.zeros(4), np.array([100.0]))
    every = round_directions(facts, found, nothing)
    alone = Directions(weights[:3], found.independent[:3], found.explained[:3], found.units)
    assert every.most == pytest.approx(round_directions(facts, alone, nothing).most, rel=0.01)
    assert every.tie_floor > 10


def test_lambda_allows_for_half_the_noise_of_the_design_effect():
    rng = np.random.default_rng(3)
    first, second = np.triu_indices(4, 1)
    frame = pd.DataFrame({"item1": np.tile(first, 400), "item2": np.tile(second, 400)})
    frame["who"] = np.repeat(np.arange(400), len(first))
    # half of the people tie whenever they can
    tied = (frame["who"] % 2 == 0) & (rng.random(len(frame)) < 0.8)
    frame["outcome"] = np.where(tied, 0, rng.choice([-1, 1], len(frame)))
    model = pr.PrivateBTL(
        frame, items=range(4), respondent="who", max_rows=6, ties="davidson", design="public"
    )
    result = model.fit(2.0, dependence="worst", rng=rng)
    release, equations = result.release, score_equations(result.release)
    b = result.estimate.coefficients
    alone, along = independent_scores(equations, release, b), equations.information(b)
    direction = equations.linear.inverse(along)[-1]
    variance = direction @ score_covariance(equations, release, b) @ direction
    effect, error = released_effect(release), effect_error(release)
    assert 1.0 < effect < 5.0
    wanted = min((effect + 0.5 * error) * release.found[TIE_FLOOR], 6.0)
    assert wanted > 1.01 * effect
    assert variance == pytest.approx(wanted * direction @ alone @ direction, rel=1e-9)


def test_half_the_noise_of_a_design_effect_keeps_the_coverage():
    # quantiles of Laplace noise of variance 1, evenly spaced
    share = (np.arange(20_000) + 0.5) / 20_000
    noise = -np.sign(share - 0.5) * np.log1p(-2.0 * np.abs(share - 0.5)) / np.sqrt(2.0)
    covered = []
    for effect, size in product((1.0, 1.5, 3.0, 6.0, 15.0), (0.1, 0.3, 0.5, 0.7, 1.0, 2.0, 4.0)):
        released = np.clip(effect * (1.0 + size * noise), 1.0, 20.0)
        allowed = np.minimum(released + 0.5 * size * effect, 20.0)
        covered.append((2.0 * ndtr(1.96 * np.sqrt(allowed / effect)) - 1.0).mean())
    assert min(covered) > 0.9475
