"""The number of ties beside net wins: exact losses over all neighbours of small surveys."""

import itertools
import math
from functools import cache

import pytest

from privrank.privacy import sensitivity
from privrank.privacy.knorm import SLACK
from privrank.privacy.sensitivity import (
    UnitSensitivity,
    net_noise,
    tie_noise,
    ties_left,
    weighted_noise,
)

LAWS = ("laplace", "zero-sum-laplace", "permutohedron")
SMALL = [
    UnitSensitivity(m, rows, distinct, "replace")
    for m in (2, 3, 4)
    for distinct in (True, False)
    for rows in range(1, m * (m - 1) // 2 + 1 if distinct else 4)
]
LARGER = [UnitSensitivity(5, rows, True, "outcome") for rows in (4, 7, 10)]


def units(reach):
    """The net wins and ties that one unit can have, (net, t)."""
    edges = list(itertools.combinations(range(reach.items), 2))
    found = {((0,) * reach.items, 0): 0}
    for first, second in edges if reach.distinct else edges * reach.rows:
        more = dict(found)
        for (net, ties), used in found.items():
            for side in (1, -1, 0):
                moved = list(net)
                moved[first] += side
                moved[second] -= side
                state = tuple(moved), ties + (side == 0)
                more[state] = min(more.get(state, math.inf), used + 1)
        found = {state: used for state, used in more.items() if used <= reach.rows}
    return found


def farthest(reach):
    """By ties t and set of items, how far net wins of a unit with t ties add up over the set."""
    sets = [
        chosen
        for size in range(1, reach.items)
        for chosen in itertools.combinations(range(reach.items), size)
    ]
    out = {}
    for net, ties in units(reach):
        for chosen in sets:
            total = sum(net[item] for item in chosen)
            out[ties, chosen] = max(out.get((ties, chosen), 0), total)
    return out


@cache
def moves(reach):
    """How far two units can be apart: in ties, and in the sum of net wins over each set.

    Nets of the other sign are possible, too, so that both are farthest for any set.
    """
    far = farthest(reach)
    return {
        (ties - other, len(chosen), total + far[other, chosen])
        for (ties, chosen), total in far.items()
        for other in range(ties + 1)
    }


@cache
def moves_between_groups(reach):
    """How far net wins can move in two groups by a unit that leaves one for the other.

    By the difference in ties: the sum over a set and its size, of the one net and of the other.
    """
    far, ties = farthest(reach), range(reach.effective_rows + 1)
    by_size = {t: {} for t in ties}
    for (t, chosen), total in far.items():
        by_size[t][len(chosen)] = max(by_size[t].get(len(chosen), 0), total)
    return {
        (abs(t - other), one, two)
        for t in ties
        for other in ties
        for one in by_size[t].items()
        for two in by_size[other].items()
    }


@pytest.mark.parametrize("reach", SMALL + LARGER)
@pytest.mark.parametrize("weight", [0.25, 1.0, 2.0])
def test_net_wins_and_ties_move_together_by_their_sensitivity(reach, weight):
    # a vector of sum 0 has an l1 norm of twice its largest sum over a set
    moved = max(2 * total + weight * ties for ties, _, total in moves(reach))
    paid = reach.net_l1 // 4
    assert moved == 4 * paid + weight * (reach.effective_rows - paid)
    # and no more where a unit takes them to another group
    groups = moves_between_groups(reach)
    assert moved == max(2 * (one + two) + weight * t for t, (_, one), (_, two) in groups)


@pytest.mark.parametrize("reach", SMALL + LARGER)
@pytest.mark.parametrize("weight", [1, 3, 7])
@pytest.mark.parametrize("part", [0.2, 1.0, 2.0])
def test_weighted_net_wins_and_ties_move_together_by_their_sensitivity(reach, weight, part):
    # weights of one unit that add up to anything from 0 to `weight`: 4 X c + w (k - c), w <= 2 X
    paid, w = reach.net_l1 // 4, part * weight
    moved = {
        own: max(2 * own * total + w * ties for ties, _, total in moves(reach))
        for own in range(weight + 1)
    }
    assert moved[weight] == max(moved.values())
    assert moved[weight] == pytest.approx(4 * weight * paid + w * (reach.effective_rows - paid))


@pytest.mark.parametrize("reach", SMALL + LARGER)
@pytest.mark.parametrize("weight", [1, 2**20, 3 * 2**20])
@pytest.mark.parametrize("epsilons", [(0.85, 0.15), (0.3, 0.6)])
def test_weighted_net_wins_and_ties_spend_what_they_have(reach, weight, epsilons):
    nets = weighted_noise(reach, weight, epsilons[0])
    ties = tie_noise(reach, nets, *epsilons)
    assert ties.sensitivity == ties_left(reach, "laplace")
    scale = nets.distribution.scale
    losses = [
        2 * weight * total / scale + apart / ties.distribution.scale
        for apart, _, total in moves(reach)
    ]
    whole = epsilons[0] + (epsilons[1] if ties.sensitivity else 0.0)
    assert max(losses) <= whole
    own = bool(ties.sensitivity) and ties.distribution.scale * epsilons[1] == pytest.approx(
        ties.sensitivity
    )
    assert max(losses) > 0.99 * (whole if own else epsilons[0])


@pytest.mark.parametrize("reach", SMALL + LARGER)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("epsilons", [(0.06, 0.01), (0.85, 0.15), (0.3, 0.6), (5.0, 1.0)])
def test_net_wins_and_ties_spend_what_they_have(reach, law, epsilons):
    nets = net_noise(reach, law, epsilons[0], ties=True)
    ties = tie_noise(reach, nets, *epsilons)
    left = ties_left(reach, law)
    assert ties.sensitivity == left
    whole = epsilons[0] + (epsilons[1] if left else 0.0)
    lost = largest_loss(reach, nets, ties)
    assert lost <= whole
    # all of it, unless net wins ask for more noise than the ties that they do not pay for
    own = bool(left) and ties.distribution.scale * epsilons[1] == pytest.approx(left)
    assert lost > 0.99 * (whole if own else epsilons[0])


def largest_loss(reach, nets, ties):
    """What two units can lose by net wins and ties together."""
    m, losses = reach.items, []
    for apart, size, total in moves(reach):
        steps, rate = 2 * nets.fineness * total, 0.0
        if nets.name == "permutohedron":
            steps = -(-nets.fineness * total // (size * (m - size)))
            rate = nets.distribution.rate + SLACK
        rate = rate or 1.0 / nets.distribution.scale
        losses.append(steps * rate + apart / ties.distribution.scale)
    # and where a unit goes to another group, whose net wins have noise of their own
    for apart, *both in moves_between_groups(reach):
        steps = [2 * nets.fineness * total for _, total in both]
        if nets.name == "permutohedron":
            steps = [-(-nets.fineness * total // (size * (m - size))) for size, total in both]
        losses.append(sum(steps) * rate + apart / ties.distribution.scale)
    return max(losses)


@pytest.mark.parametrize("law", LAWS)
def test_ties_that_are_not_paid_for_would_be_found(law, monkeypatch):
    """Planted: the sensitivity of net wins alone, 4 c, without w (k - c) for the ties beside."""
    reach, epsilons = UnitSensitivity(4, 6, True, "outcome"), (0.85, 0.15)
    nets = net_noise(reach, law, epsilons[0], ties=True)
    assert ties_left(reach, law) > 0
    assert largest_loss(reach, nets, tie_noise(reach, nets, *epsilons)) <= 1.0
    monkeypatch.setattr(sensitivity, "ties_left", lambda sensitivity, name: 0)
    assert largest_loss(reach, nets, tie_noise(reach, nets, *epsilons)) > 1.05


def test_ties_are_free_where_answers_are_few():
    whole = UnitSensitivity(6, 15, True, "outcome")
    assert [ties_left(whole, law) for law in LAWS] == [6, 6, 10]
    assert ties_left(UnitSensitivity(6, 9, True, "outcome"), "laplace") == 0
    assert ties_left(UnitSensitivity(6, 5, True, "outcome"), "permutohedron") == 0
    assert ties_left(UnitSensitivity(6, 40, False, "replace"), "permutohedron") == 0
    row = UnitSensitivity(6, 1, True, "replace")
    nets = net_noise(row, "zero-sum-laplace", 1.0, ties=True)
    assert tie_noise(row, nets, 1.0, 0.0).distribution.scale == pytest.approx(2.0)
