"""Objective perturbation under noise of any size: what is certified holds in exact arithmetic."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from ownlinks import SECH
from pairfits import fit_ridge, rounding_bound
from test_objective import LINKS, counts_only, exact_slope, problem

from privrank.bradley_terry.fit import loss_bounds
from privrank.distributions.links import LOGIT
from privrank.mechanisms import comparisons
from privrank.plans import choice as calibration
from privrank.release.survey import PairCounts

SHARES = {"worths": 0.99, "output": 0.01}
FINE = 2.0**-60
"""A grid on which the worths are known far better than their tolerance."""

by_link = pytest.mark.parametrize("link", [LOGIT, *LINKS], ids=lambda link: link.name)


def slope_of(link, won, lost, t):
    """Exact slope of the loss of a pair; beyond these ends it is its limit to 30 decimals."""
    end = Decimal({"probit": 12, "sech": 60}.get(link.name, 400))
    t = min(max(t, -end), end)
    if link is LOGIT:
        won, lost = Decimal(float(won)), Decimal(float(lost))
        return lost / (1 + (-t).exp()) - won / (1 + t.exp())
    return exact_slope(link, won, lost, t)


def as_decimal(number):
    part = Fraction(number)
    return Decimal(part.numerator) / Decimal(part.denominator)


def gradient_norm(theta, drawn, pairs, won, lost, gamma, link):
    """Norm of the gradient of the perturbed loss at `theta`, in 120 decimals."""
    with localcontext() as context:
        context.prec = 120
        t = [as_decimal(x) for x in theta]
        gradient = [as_decimal(gamma) * x + as_decimal(w) for x, w in zip(t, drawn, strict=True)]
        for i, j, a, b in zip(pairs.first, pairs.second, won, lost, strict=True):
            pull = slope_of(link, a, b, t[i] - t[j])
            gradient[i] += pull
            gradient[j] -= pull
        return sum(x * x for x in gradient).sqrt()


def noises(m, scale, gamma):
    """Noise vectors from ordinary ones to far beyond what double precision resolves."""
    rng = np.random.default_rng(m)
    ordinary = rng.laplace(0, scale, m)
    yield ordinary
    for size in (60.0, 1e4, 1e9, 1e17, 1e25):
        one = ordinary.copy()
        one[0] = size * scale
        yield one
        yield size * scale * np.where(np.arange(m) % 2, 1.0, -1.0) + 0.0 * ordinary
        # two far items that are close to each other, and fractions with more than 53 digits
        pair = [Fraction(float(x)) for x in ordinary]
        pair[1] = Fraction(size * scale) + Fraction(1, 3)
        pair[2] = Fraction(size * scale) - Fraction(gamma)
        yield np.array(pair, dtype=object)


def check_certificates(link, items=5, each=40, gamma=2.0, noise_vectors=noises, epsilon=0.99):
    encoded = counts_only(items, each, np.random.default_rng(0))
    noise = calibration.perturbation(encoded.design, gamma, SHARES | {"worths": epsilon}, link)
    pairs = PairCounts.equal(items, each)
    won = np.random.default_rng(1).integers(0, each + 1, len(pairs.first)).astype(float)
    loss, target = problem(link, pairs, won, each - won)
    for drawn in noise_vectors(items, noise.scale, gamma):
        steps = comparisons.certified_worths(target, drawn, pairs, loss, noise, "newton")
        theta = [int(step) * Fraction(FINE) for step in steps]
        norm = gradient_norm(theta, drawn, pairs, won, each - won, gamma, link)
        assert norm <= Decimal(noise.tolerance) * Decimal("1.000001")


@pytest.fixture(autouse=True)
def fine_grid(monkeypatch):
    monkeypatch.setattr(comparisons, "OUTPUT_STEP", FINE)
    monkeypatch.setattr(calibration, "OUTPUT_STEP", FINE)


@by_link
@pytest.mark.filterwarnings("error")
def test_the_certificate_holds_whatever_the_noise(link):
    check_certificates(link)


@pytest.mark.parametrize(("items", "each", "gamma"), [(3, 1, 0.05), (4, 10**6, 0.05), (8, 3, 1e4)])
def test_the_certificate_holds_at_small_and_large_ridges(items, each, gamma):
    check_certificates(LOGIT, items, each, gamma, epsilon=20.0)


@pytest.mark.parametrize("solver", ["lbfgs", "cvxpy"])
def test_other_solvers_are_certified_too(solver):
    pairs, noise = PairCounts.equal(4, 10), None
    encoded = counts_only(4, 10, np.random.default_rng(0))
    noise = calibration.perturbation(encoded.design, 4.0, SHARES, LOGIT)
    won = np.arange(6.0)
    loss, target = problem(LOGIT, pairs, won, 10 - won)
    drawn = np.array([3.0, -2e6, 0.5, 1.0])
    steps = comparisons.certified_worths(target, drawn, pairs, loss, noise, solver)
    theta = [int(step) * Fraction(FINE) for step in steps]
    norm = gradient_norm(theta, drawn, pairs, won, 10 - won, 4.0, LOGIT)
    assert norm <= Decimal(noise.tolerance) * Decimal("1.000001")


def test_rounding_before_the_difference_is_caught(monkeypatch):
    # the right-hand side in double precision: certified, and not true
    def one(m, scale, gamma):
        drawn = np.zeros(m)
        drawn[0] = 1e12 * scale / 3
        yield drawn

    check_certificates(LOGIT, gamma=3.7, noise_vectors=one)
    monkeypatch.setattr(comparisons, "Fraction", float)
    with pytest.raises(AssertionError):
        check_certificates(LOGIT, gamma=3.7, noise_vectors=one)


def test_the_tolerance_does_not_grow_with_the_noise(monkeypatch):
    # nor with the worths: lambda / gamma enters neither
    monkeypatch.setattr(comparisons, "OUTPUT_STEP", 2.0**-30)
    monkeypatch.setattr(calibration, "OUTPUT_STEP", 2.0**-30)
    encoded = counts_only(6, 10**7, np.random.default_rng(0))
    noises_of = [
        calibration.perturbation(encoded.design, gamma, {"worths": 20.0, "output": 0.01}, LOGIT)
        for gamma in (0.05, 1.0)
    ]
    low, high = sorted(noise.tolerance for noise in noises_of)
    assert 1e-8 < low and high <= low * (1 + 1e-6)


def test_a_ridge_below_the_rounding_errors_is_refused():
    encoded = counts_only(6, 10**9, np.random.default_rng(0))
    with pytest.raises(ValueError, match="too small for objective perturbation"):
        calibration.perturbation(encoded.design, 1e-5, {"worths": 1e6, "output": 0.01}, LOGIT)


@pytest.mark.parametrize("link", [LOGIT, SECH, *LINKS[:1]], ids=lambda link: link.name)
@pytest.mark.parametrize("spread", [0.0, 3.0, 40.0, 1e9])
def test_rounding_bound_covers_a_moved_loss(link, spread):
    """The gradient computed beside an offset, against 120 decimals."""
    rng = np.random.default_rng(3)
    pairs, worst = PairCounts.equal(6, 1e5), 0.0
    for _ in range(4):
        won = rng.integers(0, 10**5, 15).astype(float)
        loss, _ = problem(link, pairs, won, 1e5 - won)
        centre = [int(x) for x in np.rint(spread * rng.standard_normal(6) / FINE)]
        left = 2.0**-7 * loss.far * rng.uniform(-1, 1, 6)
        offset = np.array(
            [float((centre[i] - centre[j]) * Fraction(FINE)) for i, j in zip(
                pairs.first, pairs.second, strict=True)]
        )  # fmt: skip
        moved = loss.moved(offset, 2.0**-7)
        slopes = moved.slope(left[pairs.first] - left[pairs.second])
        pulled = np.bincount(pairs.first, slopes, 6) - np.bincount(pairs.second, slopes, 6)
        rest = np.asarray(pulled + 2.0 * left)
        computed = pulled + 2.0 * left - rest
        # the exact gradient has the same terms where w = gamma left - rest - gamma theta
        theta = [c * Fraction(FINE) + Fraction(x) for c, x in zip(centre, left, strict=True)]
        drawn = [
            2 * Fraction(x) - Fraction(r) - 2 * t for x, r, t in zip(left, rest, theta, strict=True)
        ]
        if loss_bounds(link).answers_curve:
            wins, losses = won, 1e5 - won
        else:
            # a matching loss has its answers in the target
            wins = losses = np.full(15, 5e4)
        norm = gradient_norm(theta, drawn, pairs, wins, losses, 2.0, link)
        bound = rounding_bound(left, rest, pairs, 2.0, moved)
        worst = max(worst, abs(float(norm) - float(np.linalg.norm(computed))) / bound)
    assert worst <= 1


def test_a_large_noise_once_had_no_certificate():
    # the bound at the worths themselves exceeds the tolerance, so that no solver could meet it
    encoded = counts_only(5, 40, np.random.default_rng(0))
    noise = calibration.perturbation(encoded.design, 2.0, SHARES, LOGIT)
    pairs = PairCounts.equal(5, 40)
    target = np.zeros(5)
    target[0] = 1e9 * noise.scale
    fit = fit_ridge(target, pairs, 2.0)
    assert rounding_bound(fit.point, target, pairs, 2.0) > noise.tolerance
    assert math.isfinite(fit.gradient_norm)
