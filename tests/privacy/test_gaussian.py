"""Gaussian calibration against the definition of delta, and published and summed values."""

import itertools
import math

import numpy as np
import opendp.prelude as dp
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from privrank.privacy.accounting import (
    gaussian_delta,
    gaussian_scale,
    lattice_delta,
    lattice_scale,
    zcdp_epsilon,
)
from privrank.privacy.sensitivity import UnitSensitivity, net_noise


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("scale", [0.7, 2.0, 5.0])
def test_delta_is_the_integral_of_what_exceeds(epsilon, scale):
    distribution = norm(scale=scale)
    start = epsilon * scale**2 - 0.5
    exact = quad(
        lambda x: distribution.pdf(x) - math.exp(epsilon) * distribution.pdf(x + 1),
        start,
        start + 30 * scale,
        epsabs=1e-14,
        points=[max(start, 0.0), max(start, 0.0) + scale],
    )[0]
    delta = gaussian_delta(scale, epsilon)
    assert exact - 1e-13 <= delta <= exact * (1 + 1e-9) + 1e-12
    assert gaussian_delta(3 * scale, epsilon, 3.0) == pytest.approx(delta, rel=1e-9)


def test_scales_are_those_of_other_implementations():
    # dp-accounting prints this
    assert gaussian_scale(1.0, 1e-6) == pytest.approx(4.224678889326822, rel=1e-10)
    # far below the classical sqrt(2 log(1.25 / delta)) / epsilon, and valid above epsilon 1
    assert gaussian_scale(0.1, 1e-6) < math.sqrt(2 * math.log(1.25e6)) / 0.1 / 1.4


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0, 40.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_scale_is_private_and_hardly_more(epsilon, delta):
    scale = gaussian_scale(epsilon, delta, 3.0)
    assert gaussian_delta(scale, epsilon, 3.0) <= delta
    assert gaussian_delta(scale * (1 - 1e-6), epsilon, 3.0) > delta


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.5])
def test_lattice_delta_is_the_sum_of_what_exceeds(dimension, epsilon):
    scale = 3.0
    k = np.arange(-40, 41)
    one = np.exp(-0.5 * (k / scale) ** 2)
    one /= one.sum()
    moved = np.exp(-0.5 * ((k + 1) / scale) ** 2)
    moved *= one[40] / math.exp(0.0)
    first, second = np.ones(1), np.ones(1)
    for _ in range(dimension):
        first, second = np.multiply.outer(first, one), np.multiply.outer(second, moved)
    exact = np.maximum(first - math.exp(epsilon) * second, 0.0).sum()
    delta = lattice_delta(scale, epsilon, dimension)
    assert exact <= delta <= exact * (1 + 1e-8) + 1e-16


def test_fewer_changed_counts_are_more_private():
    for epsilon, scale in itertools.product((0.1, 1.0), (3.0, 11.0)):
        deltas = [lattice_delta(scale, epsilon, d) for d in range(1, 30)]
        assert deltas == sorted(deltas)


@pytest.mark.parametrize("moves", [(2,), (3,), (2, 2), (3, 3), (1, 3), (0, 3), (2, 3)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_counts_that_move_by_several_steps(moves, epsilon):
    scale, k = 4.0, np.arange(-45, 46)
    one = np.exp(-0.5 * (k / scale) ** 2)
    one /= one.sum()
    first, second = np.ones(1), np.ones(1)
    for move in moves:
        moved = np.exp(-0.5 * ((k + move) / scale) ** 2) * one[45]
        first, second = np.multiply.outer(first, one), np.multiply.outer(second, moved)
    exact = np.maximum(first - math.exp(epsilon) * second, 0.0).sum()
    delta = lattice_delta(scale, epsilon, len(moves), max(moves))
    assert exact <= delta
    if len(set(moves)) == 1:  # the bound is attained where all counts move as far as they can
        assert delta <= exact * (1 + 1e-8) + 1e-16


def test_finer_lattices_cost_nothing():
    for steps in (2, 60, 2520):
        scale = lattice_scale(1.0, 1e-6, 45, steps)
        assert lattice_delta(scale, 1.0, 45, steps) <= 1e-6
        assert scale / steps == pytest.approx(lattice_scale(1.0, 1e-6, 45), rel=2e-3)


@pytest.mark.parametrize("coordinates", [1, 3, 45, 4950])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_lattice_scale_is_near_the_continuous_one(coordinates, epsilon):
    scale = lattice_scale(epsilon, 1e-6, coordinates)
    assert lattice_delta(scale, epsilon, coordinates) <= 1e-6
    continuous = gaussian_scale(epsilon, 1e-6, math.sqrt(coordinates))
    assert scale == pytest.approx(max(continuous, 3.0), rel=2e-3)


def test_bound_and_sum_agree_where_they_meet():
    for epsilon in (0.05, 1.0):
        below, above = 4095.9 / 60, 4096.1 / 60
        summed = lattice_delta(below, epsilon, 3600)
        bounded = lattice_delta(above, epsilon, 3600)
        assert 0.99 < bounded / summed < 1.02
    with pytest.raises(ValueError, match="at least 3"):
        lattice_delta(2.0, 1.0, 5)


@pytest.mark.parametrize("items, rows", [(3, 1), (6, 15), (12, 4)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_scales_hold_against_the_maps_of_opendp(items, rows, epsilon, delta):
    dp.enable_features("contrib")
    reach = UnitSensitivity(items, rows, True, "replace")
    noise = net_noise(reach, "gaussian", epsilon, delta)
    moved = noise.fineness * reach.net_l2
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    theirs = dp.m.make_gaussian(*space, scale=noise.distribution.scale)
    assert theirs.map(moved) == pytest.approx(noise.rho, rel=1e-12)
    # their epsilon at delta is that of concentrated privacy, a bound: above ours, as near as it is
    bound = dp.c.make_zCDP_to_approxDP(theirs).map(moved).epsilon(delta)
    assert epsilon < bound < 1.5 * epsilon
    assert zcdp_epsilon(noise.rho, delta) == pytest.approx(bound, rel=1e-5)


def test_no_delta_is_above_one():
    assert gaussian_delta(1e-3, 0.1) == 1.0
