"""Units that move between groups: what they spend under every noise that a model may ask for.

Where groups have nets of their own, a unit that changes its group takes its net u out of one vector
and puts a net v into another. The loss of each distribution is computed here from its own weights.
"""

import itertools
import math
from fractions import Fraction
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import privrank as pr
from privrank.hypotheses.tails import radii_up_to
from privrank.privacy import sensitivity
from privrank.privacy.accounting import integer_delta
from privrank.privacy.knorm import PermutohedronNoise
from privrank.privacy.sensitivity import MAX_ITEMS, NoiseName, PartNoise, UnitSensitivity, net_noise

DELTA = 1e-6
EPSILONS = (0.02, 0.054, 0.06, 0.1, 0.18, 0.25, 0.4, 0.63, 1.0, 1.7, 3.0, 5.0)
GRID = [
    UnitSensitivity(m, rows, distinct, "replace")
    for m in (2, 3, 4, 5, 6, 9)
    for rows in (1, 2, 3, 6, 7, 15, 36)
    for distinct in (True, False)
]


def net_of(items, edges):
    net = np.zeros(items, dtype=np.int64)
    for i, j in edges:
        net[i] += 1
        net[j] -= 1
    return net


def extreme_nets(reach):
    """Nets of units that are the longest for one of the norms; every unit's net for few items.

    Stars, one pair again and again, cuts and round robins, each of at most `rows` answers.
    """
    m, rows = reach.items, reach.rows
    pairs = list(itertools.combinations(range(m), 2))
    copies = pairs if reach.distinct else pairs * min(rows, 3)
    nets = [net_of(m, itertools.islice(itertools.cycle([(0, 1)]), 1 if reach.distinct else rows))]
    for first in range(1, m):
        cut = [(i, j) for i in range(first) for j in range(first, m)]
        nets.append(net_of(m, cut[:rows]))
        if not reach.distinct:
            nets.append(net_of(m, itertools.islice(itertools.cycle(cut), rows)))
    nets.append(net_of(m, pairs[:rows]))
    nets.append(net_of(m, sorted(pairs, key=lambda pair: pair[0] - pair[1])[:rows]))
    if len(copies) <= 6:
        for answers in itertools.product((-1, 0, 1), repeat=len(copies)):
            if sum(map(abs, answers)) <= rows:
                each = zip(copies, answers, strict=True)
                nets.append(sum((a * net_of(m, [edge]) for edge, a in each), np.zeros(m, int)))
    return np.unique(np.array(nets), axis=0)


def gauge(net):
    """The least t with the net in t times the permutohedron of all pair differences, exactly."""
    top = np.cumsum(np.sort(net)[::-1])[:-1]
    sizes = range(1, len(net))
    return max(Fraction(int(s), k * (len(net) - k)) for k, s in zip(sizes, top, strict=True))


def step_loss(distribution):
    """The largest loss of one step: log v_k / v_(k+1), v_k = P(R = k) / (2 k)^(m - 1)."""
    radius = distribution.radius
    k = radius.low + np.arange(len(radius.weights), dtype=np.float64)
    inside = np.log(radius.weights) - (distribution.items - 1) * np.log(k)
    # the weight next to the table, then a geometric tail
    first = math.log(radius.tail) + math.log(-math.expm1(-1 / radius.scale))
    ends = np.append(inside, first - (distribution.items - 1) * math.log(k[-1] + 1))
    tail = 1 / radius.scale + (distribution.items - 1) * math.log1p(1 / (k[-1] + 1))
    return max(float(-np.diff(ends).min()), tail)


def steps_of(noise, nets):
    """How many steps each net takes under a pure distribution, on its lattice and rounded up."""
    moved = noise.fineness * nets
    if isinstance(noise.distribution, PermutohedronNoise):
        return np.array([math.ceil(noise.fineness * gauge(net)) for net in nets])
    return np.abs(moved).sum(axis=1)


def loss_of_a_move(noise, nets):
    """Largest loss of taking one net out of one group and putting another into a second group."""
    each = steps_of(noise, nets).max()
    if isinstance(noise.distribution, PermutohedronNoise):
        return 2 * each * step_loss(noise.distribution)
    return 2 * each / noise.distribution.scale


def check_moves(epsilons=EPSILONS, grid=GRID):
    for reach in grid:
        nets = extreme_nets(reach)
        longest = max(np.linalg.norm(nets, axis=1))
        for name, epsilon in itertools.product(get_args(NoiseName), epsilons):
            if reach.items > MAX_ITEMS.get(name, reach.items):
                continue
            noise = net_noise(reach, name, epsilon, DELTA if name == "gaussian" else 0.0)
            where = (reach, name, epsilon)
            assert noise.sensitivity % 2 == 0, where
            if name == "gaussian":
                # (u, v) is one vector on the coordinates of both groups
                both = integer_delta(
                    noise.distribution.scale, epsilon, math.sqrt(2) * longest, 2 * reach.items,
                    noise.fineness,
                )  # fmt: skip
                assert both <= DELTA, where
                continue
            assert 2 * steps_of(noise, nets).max() <= noise.sensitivity, where
            assert loss_of_a_move(noise, nets) <= epsilon * (1 + 1e-12), where


def test_units_that_change_their_group_spend_at_most_epsilon():
    check_moves()


@pytest.mark.parametrize(
    ("items", "rows", "distinct", "epsilon"),
    [(3, 1, True, 0.054), (3, 3, False, 0.18), (9, 6, True, 0.18), (9, 7, True, 0.4)],
)
def test_moves_that_once_spent_more(items, rows, distinct, epsilon):
    reach = UnitSensitivity(items, rows, distinct, "replace")
    noise = net_noise(reach, "permutohedron", epsilon)
    spent = loss_of_a_move(noise, extreme_nets(reach))
    assert 0.99 * epsilon <= spent <= epsilon


def test_step_loss_is_that_of_the_probabilities():
    # P(x) is the sum of v_k over k >= the radius of x: the ratio of two such sums, term by term
    distribution = PermutohedronNoise.calibrate(3, 0.5)
    radii, mass = radii_up_to(distribution.radius, distribution.radius.low + 5000.0)
    log_v = np.log(mass) - 2 * np.log(radii)
    tails = np.array([logsumexp(log_v[k:]) for k in range(0, 3000, 50)])
    after = np.array([logsumexp(log_v[k + 1 :]) for k in range(0, 3000, 50)])
    assert (tails - after).max() <= step_loss(distribution) <= 0.5 / distribution.fineness


def whole_bound(patch):
    """Calibrate by the change of a unit that stays, as once was done."""

    def calibrated(reach, name, epsilon, delta=0.0, least=1):
        if name != "permutohedron":
            return honest(reach, name, epsilon, delta, least)
        body = PermutohedronNoise.calibrate(reach.items, epsilon, reach.net_permutohedra)
        steps = int(body.fineness * reach.net_permutohedra)
        distribution = PermutohedronNoise(reach.items, body.rate, 1)
        return PartNoise(distribution, steps, body.fineness, name=name)

    honest = sensitivity._calibrated
    patch.setattr(sensitivity, "_calibrated", calibrated)


def test_an_odd_sensitivity_is_refused_beside_the_calibration(monkeypatch):
    whole_bound(monkeypatch)
    with pytest.raises(AssertionError, match="not whole"):
        net_noise(UnitSensitivity(3, 1, True, "replace"), "permutohedron", 0.054)


def test_the_grid_catches_a_calibration_by_the_whole_bound(monkeypatch):
    whole_bound(monkeypatch)
    monkeypatch.setattr(sensitivity, "net_noise", sensitivity._calibrated)
    monkeypatch.setitem(globals(), "net_noise", lambda *a: sensitivity._calibrated(*a))
    with pytest.raises(AssertionError):
        check_moves((0.054,), [UnitSensitivity(3, 1, True, "replace")])


@pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")
@pytest.mark.parametrize("name", get_args(NoiseName))
def test_a_model_with_groups_has_such_noise(name):
    pairs = list(itertools.combinations("abc", 2)) * 8
    frame = pd.DataFrame(pairs, columns=["item1", "item2"])
    frame["outcome"] = np.tile([1, -1, 1, 1], 6)
    frame["group"] = np.repeat(["x", "y"], 12)
    model = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ group", frame, items=list("abc"), levels={"group": ["x", "y"]},
        respondent=None, ties=False, design="private",
    )  # fmt: skip
    delta = DELTA if name == "gaussian" else 0.0
    result = model.fit(0.06, delta, noise=name, rng=np.random.default_rng(0))
    part, reach = result.release.parts["net wins"], result.release.design.sensitivity
    noise = net_noise(reach, name, part.epsilon, delta)
    assert (part.distribution, part.sensitivity) == (noise.distribution, noise.sensitivity)
    if name != "gaussian":
        assert loss_of_a_move(noise, extreme_nets(reach)) <= part.epsilon
