"""Composition of the spendings of one data set: basic and zero-concentrated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from privrank.util import checks
from privrank.util.arrays import immutable

Unit = Literal["row", "respondent"]


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
    ) -> Spending:
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
    (epsilon - a, delta)-private by :func:`privrank.privacy.gaussian.zcdp_epsilon`; their own deltas
    count as 0. All fits together are (epsilon, delta)-private, however each is chosen from the
    earlier releases.

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
        epsilon = sum((_exact(line.epsilon) for line in lines), Fraction(0))
        return epsilon, sum((_exact(line.delta) for line in lines), Fraction(0))

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
        from privrank.privacy.gaussian import zcdp_rho

        return survey.pure, zcdp_rho(survey.rest, survey.delta)

    def covers(self, *more: Spending) -> bool:
        """Return whether the total covers all spendings together with `more`."""
        sums = self._sums((*self.spendings, *more))
        return all(s <= _exact(limit) for s, limit in zip(sums, self.limits, strict=True))

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
        from privrank.privacy.gaussian import zcdp_epsilon

        first, second = map(float, self._total(self.spendings))
        rho = math.fsum(line.rho for line in self.spendings if line.rho is not None)
        others = self._total(tuple(line for line in self.spendings if line.rho is None))
        room = float(_exact(self.survey.delta) - others[1])
        if room <= 0:
            return first, second
        together = float(others[0]) + zcdp_epsilon(rho, room)
        return (together, self.survey.delta) if together < first else (first, second)
