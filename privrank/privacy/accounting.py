"""Epsilon and delta: of Gaussian noise, exactly, and of the spendings of one data set together.

Composition is basic or zero-concentrated. For Gaussian noise epsilons are at least 0, deltas are in
(0, 1), and sensitivities are l2. All rounding is conservative: each delta returned is an upper
bound, and each scale is the private end of a bisection.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, Self

import numpy as np
from scipy.special import log_ndtr, ndtr

from privrank.util import checks
from privrank.util.arrays import immutable
from privrank.util.solvers import first_beyond

Unit = Literal["row", "respondent"]

SMALLEST_LATTICE_SCALE = 3.0
"""Smallest scale at which the discrete distribution is close to its limit (`lattice_delta`)."""

_FINE_SCALE = 2.0**16
"""Scale of lattice noise for vectors, at which a single lattice point has negligible mass."""

_SUMMED = 2.0**12
"""Largest scale of the summed noise for which the series for delta is summed, not bounded."""


def pure_epsilon(epsilon: float, delta: float) -> float:
    """Return the pure epsilon at which a mechanism is (epsilon, delta)-private.

    Notes
    -----
    **Privacy.** Let xi = epsilon - log(1 - delta) and P(A) <= e^xi Q(A) for all A. If
    e^epsilon Q(A) <= 1 - delta, then P(A) <= e^epsilon Q(A) / (1 - delta), which equals
    e^epsilon Q(A) + delta e^epsilon Q(A) / (1 - delta) <= e^epsilon Q(A) + delta. Otherwise
    P(A) <= 1 <= e^epsilon Q(A) + delta.

    References
    ----------
    Sharpens Acharya, Sun and Zhang (2018), Lemma 5.
    """
    return epsilon - math.log1p(-delta)


def split(epsilon: float, shares: dict[str, float], main: str) -> dict[str, float]:
    """Divide `epsilon` among the releases of one fit; `main` gets the remainder.

    The parts are rounded such that their exact sum is at most `epsilon`.
    """
    if math.isinf(epsilon):
        return {main: math.inf, **dict.fromkeys(shares, math.inf)}
    parts = {name: epsilon * share for name, share in shares.items()}
    rest = float(Fraction(epsilon) - sum((Fraction(part) for part in parts.values()), Fraction(0)))
    return {main: math.nextafter(rest, 0.0), **parts}


@immutable
@dataclass(frozen=True, slots=True)
class Spending:
    """One line of the ledger.

    Parameters
    ----------
    by : str
        The model or test that spends.
    epsilon, delta : float
        The privacy loss of its release.
    rho : float or None
        Its zero-concentrated privacy, if known.
    released : str or None
        A description of the release.
    date : str or None
        Date and time in UTC, for a ledger on disk.
    """

    by: str
    epsilon: float
    delta: float
    rho: float | None = None
    released: str | None = None
    date: str | None = None

    @classmethod
    def checked(
        cls, by: object, epsilon: object, delta: object, rho: object, released: str | None
    ) -> Self:
        """Return a line of the ledger after checking its numbers.

        If `rho` is None and `delta` is 0, rho is set to epsilon^2 / 2.
        """
        spender = checks.check_text("by", by)
        if released is not None:
            checks.check_text("released", released)
        spent = checks.check_epsilon(epsilon)
        failure = checks.check_delta(delta)
        if rho is None:
            return cls(spender, spent, failure, 0.5 * spent**2 if failure == 0 else None, released)
        largest = 0.5 * checks.LARGEST_EPSILON**2
        value = float(rho) if checks.is_number(rho) else math.nan
        if not (0 <= value <= largest or value == math.inf):
            raise ValueError(
                f"rho must be between 0 and {largest:g}, infinite, or None if it is not known, "
                f"got {checks.quoted(rho)}."
            )
        return cls(spender, spent, failure, value, released)


@lru_cache(maxsize=1024)
def _exact(value: float) -> Fraction | float:
    """Return the decimal number typed by the user; ten times 0.1 is then 1."""
    return value if math.isinf(value) else Fraction(repr(value))


@immutable
@dataclass(frozen=True, slots=True)
class BudgetTerms:
    """Terms of the budget of a survey: its totals, and the unit of privacy.

    Fits without delta may spend `pure` of epsilon. If `pure` is None, all fits are added in one
    account.
    """

    label: str | None
    epsilon: float
    delta: float
    unit: Unit
    pure: float | None = None

    @property
    def rest(self) -> float:
        """Epsilon minus `pure`."""
        return float(_exact(self.epsilon) - _exact(self.pure or 0.0))


@immutable
@dataclass(frozen=True, slots=True)
class Account:
    """Budget terms of a survey and its spendings, oldest first.

    Notes
    -----
    **Privacy.** Basic composition: releases that are (epsilon_k, delta_k)-private are together
    (sum epsilon_k, sum delta_k)-private, even if each is chosen after seeing the earlier ones. Sums
    are exact, in the decimals typed by the caller.

    `composed` is for information and admits no fits. A release that is a-private without delta is
    a^2 / 2 zero-concentrated private, and Gaussian noise of scale w for l2 sensitivity s is
    s^2 / (2 w^2) zero-concentrated private. These numbers rho add up if they were fixed in advance,
    even if each release is chosen after seeing the earlier ones. Their sum gives an epsilon at a
    delta chosen for the ledger. If a fit were admitted whenever either account has room, the
    results would decide which of the two accounts stops the ledger. If both can stop it, their
    deltas would add up. This is not proved here, so fits are admitted by basic composition.

    **Privacy, two accounts.** With `pure` a the two parts of epsilon are fixed before the first
    fit. The epsilons of fits without delta may add up to at most a. All other fits have a known
    rho, and the sum of rho may be at most r, where r-zero-concentrated privacy is
    (epsilon - a, delta)-private by :func:`zcdp_epsilon`; their own deltas count as 0. All fits
    together are (epsilon, delta)-private, however each is chosen from the earlier releases.

    Under P, the data, let Z_k be the privacy loss of fit k against a neighbour Q, given the earlier
    releases. Whether fit k has a delta, and its epsilon_k or rho_k, are functions of these
    releases. The Z_k without delta add up to at most a. Let L be the sum of the others. For every
    order x > 1 the product of exp((x - 1) Z_k - x (x - 1) rho_k) over the fits with a delta so far
    is a supermartingale: by the definition of rho_k, each factor has a conditional mean of at most
    1. Because the rho_k never add up to more than r, E exp((x - 1) L) <= exp(x (x - 1) r) at the
    end, and the proof at `zcdp_epsilon` needs no more than this. So
    E max(0, 1 - exp(epsilon - a - L)) <= delta. The total loss is at most a + L, so this bounds the
    delta of all releases at epsilon.

    The guarantee holds for the cap. The amount spent when an analyst stops is not a guarantee by
    itself, because the decision to stop may depend on the releases.

    References
    ----------
    Whitehouse, Ramdas, Rogers and Wu (2023), https://proceedings.mlr.press/v202/whitehouse23a.html.
    """

    survey: BudgetTerms
    spendings: tuple[Spending, ...] = ()

    def _total(self, lines: tuple[Spending, ...]) -> tuple[Fraction | float, Fraction | float]:
        """Return the exact sums of epsilons and of deltas."""
        return (
            sum((_exact(line.epsilon) for line in lines), Fraction(0)),
            sum((_exact(line.delta) for line in lines), Fraction(0)),
        )

    def _sums(self, lines: tuple[Spending, ...]) -> tuple[Fraction | float, Fraction | float]:
        """Return the two limited sums; an unknown rho is infinite."""
        if self.survey.pure is None:
            return self._total(lines)
        rhos = (math.inf if line.rho is None else line.rho for line in lines if line.delta > 0)
        pure = self._total(tuple(line for line in lines if line.delta == 0))[0]
        return pure, sum(map(_exact, rhos), Fraction(0))

    @property
    def limits(self) -> tuple[float, float]:
        """Limits of epsilon and delta; with two accounts, of pure epsilon and rho."""
        survey = self.survey
        if survey.pure is None:
            return survey.epsilon, survey.delta
        return survey.pure, zcdp_rho(survey.rest, survey.delta)

    def covers(self, *more: Spending) -> bool:
        """Return whether the total covers all spendings together with `more`."""
        return all(
            s <= _exact(limit)
            for s, limit in zip(self._sums((*self.spendings, *more)), self.limits, strict=True)
        )

    @property
    def spent(self) -> tuple[float, float]:
        """Epsilon and delta spent; with two accounts, pure epsilon and rho."""
        first, second = self._sums(self.spendings)
        return float(first), float(second)

    @property
    def left(self) -> tuple[float, float]:
        """Epsilon and delta left; with two accounts, pure epsilon and rho."""
        first, second = (
            math.inf if math.isinf(limit) else float(_exact(limit) - s)
            for s, limit in zip(self._sums(self.spendings), self.limits, strict=True)
        )
        return first, second

    def shortage(self, line: Spending) -> str:
        """Return the message for a line that the budget does not cover."""
        left = self.left
        limits = self.limits
        if self.survey.pure is None:
            return (
                f"Privacy budget exceeded: {line.by} needs epsilon={line.epsilon:g}, "
                f"delta={line.delta:g}, but only {left[0]:g} and {left[1]:g} of {limits[0]:g} and "
                f"{limits[1]:g} remain. No data were read and no noise was drawn. A release "
                f"already made can be reused with privrank.from_json()."
            )
        if line.delta == 0:
            return (
                f"Privacy budget exceeded: {line.by} needs epsilon={line.epsilon:g} without delta, "
                f"but only {left[0]:g} of {limits[0]:g} remain for such fits. No data were read "
                f"and no noise was drawn."
            )
        return (
            f"Privacy budget exceeded: {line.by} needs rho={line.rho:g}, but only {left[1]:g} of "
            f"{limits[1]:g} remain for fits with a delta. No data were read and no noise was drawn."
        )

    @property
    def composed(self) -> tuple[float, float]:
        """Epsilon and delta of all spendings, by the tighter of two accounts.

        The first account is basic composition. The second is zero-concentrated composition at the
        budget's delta minus the deltas of spendings with unknown rho, which are added by basic
        composition. It is valid if the sizes of the fits were fixed in advance, not chosen from
        earlier results.
        """
        first, second = map(float, self._total(self.spendings))
        rho = math.fsum(line.rho for line in self.spendings if line.rho is not None)
        others = self._total(tuple(line for line in self.spendings if line.rho is None))
        room = float(_exact(self.survey.delta) - others[1])
        if room <= 0:
            return first, second
        together = float(others[0]) + zcdp_epsilon(rho, room)
        return (together, self.survey.delta) if together < first else (first, second)


def gaussian_delta(scale: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """Return the smallest delta of continuous Gaussian noise at an epsilon.

    The noise is (epsilon, delta)-differentially private; `scale` is the standard deviation per
    coordinate. The value is an upper bound, by no more than the rounding error of the normal
    distribution function.

    Notes
    -----
    **Privacy.** The privacy loss is normal with mean 2 a^2 and standard deviation 2 a, where
    a = sensitivity / (2 scale). With b = epsilon / (2 a), delta is the largest value of
    P(A) - e^epsilon Q(A), attained where the loss exceeds epsilon: Phi(a - b) - e^epsilon
    Phi(-a - b). A relative error r in the arguments moves log Phi(x) by at most r (x^2 + 1).

    References
    ----------
    Balle and Wang (2018), Theorem 8, https://proceedings.mlr.press/v80/balle18a.html.
    """
    a = 0.5 * sensitivity / scale
    b = 0.5 * epsilon / a
    slack = 2.0**-48 * (8.0 + epsilon + (a + b) ** 2)
    above = float(ndtr(a - b)) * (1.0 + slack)
    below = math.exp(epsilon + float(log_ndtr(-a - b))) * (1.0 - slack)
    return min(max(above - below, 0.0), 1.0)


def gaussian_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Return the smallest scale at which `gaussian_delta` is at most `delta`."""
    return sensitivity * _smallest(lambda scale: gaussian_delta(scale, epsilon) <= delta, 1e-3)


def _smallest(private: Callable[[float], bool], low: float) -> float:
    """Return the least scale above `low` that is private, to a relative 1e-12.

    The returned scale was checked itself; privacy need not be monotone in the scale.
    """
    end = first_beyond(lambda scale: not private(scale), 2.0 * low, 200, low=low, relative=1e-12)
    scale = end * (1.0 + 1e-12)
    while not private(scale):
        scale *= 1.0 + 1e-9
    return scale


def lattice_delta(scale: float, epsilon: float, coordinates: int, reach: int = 1) -> float:
    """Return the delta of discrete Gaussian noise on counts.

    At most D = `coordinates` counts differ between neighbours, each by at most r = `reach`; the
    scale is at least 3. The value is an upper bound: tight to rounding while scale sqrt(D) is at
    most 4096, and within a few tenths of a percent beyond.

    Notes
    -----
    **Privacy.** The distribution is log-concave, so the set that best distinguishes it from its
    translate by d >= 0 is a half-line. P(X <= c) - e^epsilon P(X <= c - d) increases with d for
    every c, so a larger translation dominates a smaller one at every epsilon, hence in every
    composition. The distribution is also symmetric. So let all D counts increase by r. The privacy
    loss at noise x is r (2 S + r D) / (2 scale^2), where S is the sum of the x_k, and
    delta = E max(0, 1 - exp(epsilon - loss)).

    S is nearly discrete Gaussian with scale tau = scale sqrt(D). Because
    |x|^2 = s^2 / D + |x - s / D|^2, its mass at s is exp(-s^2 / (2 tau^2)) times the sum of
    exp(-|y|^2 / (2 scale^2)) over a shifted lattice A_(D-1). By Poisson summation this sum is
    constant in s except for a relative eta, at most the sum of exp(-2 pi^2 scale^2 |v|^2) over the
    dual vectors v other than 0. These are z minus its mean for integer z, which may be taken with
    median 0. Each non-zero z_k is in at least D / 2 pairs of coordinates whose other member is 0 or
    has the other sign. So |v|^2, the sum of the squared differences of all pairs divided by D, is
    at least |z|^2 / 2. Hence eta < 5 D exp(-pi^2 scale^2), below 1e-25 at scale 3 for any D up to
    1e12.

    So, up to a factor of 1 + 3 eta, delta is the sum of p(s) - e^epsilon p(s + r D) over the
    integers s above t = epsilon scale^2 / r - r D / 2, where p is the discrete Gaussian mass, whose
    normaliser is at least tau sqrt(2 pi) (Poisson summation again). The terms are log-concave in s,
    because p and 1 - exp(-x) are. So their sum is at most their integral, which is
    `gaussian_delta`, plus their maximum, which is at most p(max(t, 0)).
    """
    if scale < SMALLEST_LATTICE_SCALE:
        raise ValueError(f"the scale must be at least {SMALLEST_LATTICE_SCALE}, got {scale}.")
    tau = scale * math.sqrt(coordinates)
    start = epsilon * scale**2 / reach - 0.5 * coordinates * reach
    if tau > _SUMMED:
        peak = math.exp(-0.5 * (max(start, 0.0) / tau) ** 2) / (tau * math.sqrt(2 * math.pi))
        return min(
            gaussian_delta(scale, epsilon, reach * math.sqrt(coordinates)) + peak * (1.0 + 1e-9),
            1.0,
        )
    first = math.floor(start) + 1
    # the omitted terms are below exp(-800) of the largest term, far less than the slack
    s = first + np.arange(math.ceil(40 * tau) + max(0, -first))
    loss = reach * (s + 0.5 * coordinates * reach) / scale**2
    terms = np.exp(-0.5 * (s / tau) ** 2) * -np.expm1(np.minimum(epsilon - loss, 0.0))
    return min(float(terms.sum()) / (tau * math.sqrt(2 * math.pi)) * (1.0 + 1e-9) + 1e-300, 1.0)


def lattice_scale(epsilon: float, delta: float, coordinates: int, reach: int = 1) -> float:
    """Return the smallest scale >= 3 at which `lattice_delta` is at most `delta`."""

    def private(scale: float) -> bool:
        return lattice_delta(scale, epsilon, coordinates, reach) <= delta

    least = SMALLEST_LATTICE_SCALE
    return least if private(least) else _smallest(private, least)


def _least_ratio(coordinates: int) -> float:
    """Return the smallest ratio of scale to sensitivity at which eta < 1e-25."""
    return math.sqrt((60.0 + (coordinates - 1) * math.log(5.0)) / (2.0 * math.pi**2))


def integer_delta(
    scale: float, epsilon: float, sensitivity: float, coordinates: int, fineness: int = 1
) -> float:
    """Return the delta of discrete Gaussian noise on an integer vector.

    The vector, in which m = `coordinates` entries may differ between neighbours, is multiplied by
    L = `fineness` before noise of this scale, in lattice steps, is added to each entry. The scale
    must be at least sqrt((60 + (m - 1) log 5) / (2 pi^2)) times the l2 `sensitivity`. The value is
    an upper bound. It exceeds the delta of continuous noise by no more than
    exp(-t^2 / 2) / (sqrt(2 pi) scale), where t is the threshold of the privacy loss in standard
    deviations.

    Notes
    -----
    **Privacy.** Let neighbours differ by d = L d_0 with d_0 an integer vector that is not 0,
    g = gcd(d), d' = d / g, and w the scale. The distribution is symmetric, and the privacy loss at
    noise x is (|d|^2 + 2 <x, d>) / (2 w^2). Let T = <x, d'>, which takes all integers t. By
    |x|^2 = t^2 / |d'|^2 + |y|^2, with y the part of x orthogonal to d', the mass of T at t is
    proportional to exp(-t^2 / (2 w^2 |d'|^2)) times the sum of exp(-|y|^2 / (2 w^2)) over a shifted
    copy of the lattice A of integer vectors orthogonal to d'. By Poisson summation this sum is
    constant in t except for a relative eta, at most the sum of exp(-2 pi^2 w^2 |v|^2) over the
    vectors v other than 0 of the dual lattice of A. Because d' is primitive, these are the integer
    vectors z projected along d'. By Lagrange's identity |v|^2 |d'|^2 is the sum of the squares of
    the minors z_i d'_j - z_j d'_i, which are integers and not all 0. So |v| is at least 1 / |d'|,
    hence at least 1 / s, where s is the sensitivity, because d' also divides d_0 and |d_0| <= s.
    Any two dual vectors have at least this distance, so balls of half that radius around them do
    not overlap, and at most (2 j + 3)^(m-1) <= 5^(j (m-1)) of them are shorter than (j + 1) / s.
    With q = 5^(m-1) exp(-2 pi^2 (w / s)^2) it follows that eta <= q + q^2 + ..., below 1e-25 at the
    smallest scale.

    So the mass of T is at most 1 + 3 eta times the mass of the discrete Gaussian distribution of
    scale u = w |d'| on the integers, whose normaliser is at least u sqrt(2 pi) (Poisson summation
    again). delta is E max(0, 1 - exp(epsilon - loss)). Its terms are log-concave in t, because both
    factors are, so their sum is at most their integral plus their maximum. The integral equals the
    delta of continuous noise, `gaussian_delta` at the sensitivity |d|. The maximum is at most the
    mass at the threshold of the loss: exp(-max(epsilon / a - a / 2, 0)^2 / 2) / (u sqrt(2 pi)) with
    a = |d| / w, and u >= w. Both increase with |d|, which is at most L s. A neighbour with the same
    vector adds nothing.
    """
    if scale < _least_ratio(coordinates) * sensitivity:
        raise ValueError(f"the scale must be larger for {coordinates} coordinates, got {scale}.")
    # the threshold of the loss, in standard deviations of T, and the mass of T there
    a = fineness * sensitivity / scale
    threshold = max(epsilon / a - 0.5 * a, 0.0)
    peak = math.exp(-0.5 * threshold**2) / (scale * math.sqrt(2.0 * math.pi))
    return min((gaussian_delta(scale, epsilon, fineness * sensitivity) + peak) * (1.0 + 1e-9), 1.0)


def integer_scale(
    epsilon: float, delta: float, sensitivity: float, coordinates: int
) -> tuple[float, int]:
    """Return the smallest scale for a delta of `integer_delta`, and the fineness.

    The scale is in lattice steps. The fineness is the power of two by which the vector must be
    multiplied: the smallest one for which the lattice adds little noise over continuous noise.
    """
    # refine until lattice sums have converged and a single lattice point has negligible mass
    continuous = gaussian_scale(epsilon, delta, sensitivity)
    least = _least_ratio(coordinates) * sensitivity
    fineness = 2 ** max(0, math.ceil(math.log2(max(least, _FINE_SCALE) / continuous)))
    scale = _smallest(
        lambda scale: integer_delta(scale, epsilon, sensitivity, coordinates, fineness) <= delta,
        max(least, 0.5 * fineness * continuous),
    )
    return scale, fineness


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return an epsilon for rho-zero-concentrated privacy at a given delta.

    A rho-zero-concentrated private release is (epsilon, delta)-private. The value is a bound at the
    order that minimises it.

    Notes
    -----
    **Privacy.** Let Z be the privacy loss under P and E exp((alpha - 1) Z) <=
    exp((alpha - 1) alpha rho) for an order alpha > 1. delta is at most
    E max(0, 1 - exp(epsilon - Z)), and max(0, 1 - exp(-x)) <= c exp((alpha - 1) x) for
    c = (1 - 1 / alpha)^alpha / (alpha - 1), because with y = exp(-x), (1 - y) y^(alpha - 1) is
    largest at y = 1 - 1 / alpha. So delta <= c exp((alpha - 1) (alpha rho - epsilon)); solve for
    epsilon. The bound holds for every alpha, so its validity does not depend on the accuracy of
    the search below.

    References
    ----------
    Canonne, Kamath and Steinke (2020), Proposition 12, https://doi.org/10.29012/jpc.784.
    """
    if rho == 0 or math.isinf(rho):
        return float(rho)

    def bound(log_order: float) -> float:
        # in terms of the order minus 1, which may be too small to be represented in the order
        above = math.exp(log_order)
        log_whole = math.log1p(above)
        spread = -(math.log(delta) + log_whole) / above
        return (1.0 + above) * rho + spread + log_order - log_whole

    # the best order is about 1 + sqrt(log(1 / delta) / rho)
    middle = 0.5 * (math.log(max(-math.log(delta), 1.0)) - math.log(rho))
    best = min(bound(middle + step) for step in np.linspace(-4.0, 4.0, 4001).tolist())
    return max(best, 0.0) * (1.0 + 1e-12)


@lru_cache(maxsize=64)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return a rho, close to the largest, that implies (epsilon, delta)-privacy.

    Notes
    -----
    **Privacy.** The bound of :func:`zcdp_epsilon` at an order, solved for rho. It holds for every
    order, so its validity does not depend on the accuracy of the grid.
    """
    log_order = np.linspace(-40.0, 40.0, 80_001)
    above = np.exp(log_order)
    log_whole = np.logaddexp(0.0, log_order)
    spread = -(math.log(delta) + log_whole) / above
    best = float(np.max((epsilon - spread - log_order + log_whole) / (1.0 + above)))
    return max(best, 0.0) * (1.0 - 1e-12)
