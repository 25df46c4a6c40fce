"""What the spendings of one data set add up to: exact sums, and zero-concentrated composition."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from privrank.util import checks

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
    """Divide `epsilon` among the named releases of one fit, the rest going to `main`.

    The parts are rounded so that their exact sum is at most `epsilon`.
    """
    if math.isinf(epsilon):
        return {main: math.inf, **dict.fromkeys(shares, math.inf)}
    parts = {name: epsilon * share for name, share in shares.items()}
    rest = float(Fraction(epsilon) - sum((Fraction(part) for part in parts.values()), Fraction(0)))
    return {main: math.nextafter(rest, 0.0), **parts}


@dataclass(frozen=True, slots=True)
class Spending:
    """One line of the ledger.

    Parameters
    ----------
    by : str
        The model or test that spends.
    epsilon, delta : float
        What it spends.
    rho : float or None
        Its zero-concentrated privacy, where it is known.
    released : str or None
        What it releases.
    date : str or None
        When, in UTC, for a ledger on disk.
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
        """Return a line of the ledger, its numbers within their ranges.

        A `rho` of None becomes epsilon^2 / 2 where `delta` is 0.
        """
        spender = checks.check_text("by", by, ", the model or test that spends")
        if released is not None:
            checks.check_text("released", released, " or None")
        spent, failure = checks.check_epsilon(epsilon), checks.check_delta(delta)
        if rho is None:
            half = 0.5 * spent**2 if failure == 0 else None
            return cls(spender, spent, failure, half, released)
        largest = 0.5 * checks.LARGEST_EPSILON**2
        value = float(rho) if checks.is_number(rho) else math.nan
        if not (0 <= value <= largest or value == math.inf):
            raise ValueError(
                f"rho must be between 0 and {largest:g}, infinite, or None where it is not known, "
                f"got {checks.quoted(rho)}."
            )
        return cls(spender, spent, failure, value, released)


@lru_cache(maxsize=1024)
def _exact(value: float) -> Fraction | float:
    """Return the decimal a person would have typed, so that ten times 0.1 is 1."""
    return value if math.isinf(value) else Fraction(repr(value))


@dataclass(frozen=True, slots=True)
class Survey:
    """Of which survey an account is: what it may spend, and per which unit."""

    label: str | None
    epsilon: float
    delta: float
    unit: Unit


@dataclass(frozen=True, slots=True)
class Account:
    """A survey and what was spent of it, oldest first.

    Notes
    -----
    **Privacy.** Basic composition: releases that are (epsilon_k, delta_k)-private are together
    (sum epsilon_k, sum delta_k)-private, also when each is chosen after seeing the earlier ones.
    Sums are exact, in the decimals the caller typed.

    `composed` is a report, which admits nothing. A release that is a-private without delta is
    a^2 / 2 zero-concentrated private, and Gaussian noise of scale w for l2 sensitivity s is
    s^2 / (2 w^2). These numbers rho add up if they were fixed in advance, whatever each release is
    chosen to be after seeing the earlier ones. Their sum gives an epsilon at a delta of the
    ledger's choice. Admitting a fit whenever either account has room would let the results decide
    by which of the two the ledger stops. Where both can stop it their deltas would add up. That is
    not proved here, so fits are admitted by basic composition.
    """

    survey: Survey
    spendings: tuple[Spending, ...] = ()

    def _total(self, lines: tuple[Spending, ...]) -> tuple[Fraction | float, Fraction | float]:
        """Return the sums of epsilons and of deltas, exactly."""
        epsilon = sum((_exact(line.epsilon) for line in lines), Fraction(0))
        return epsilon, sum((_exact(line.delta) for line in lines), Fraction(0))

    def covers(self, *more: Spending) -> bool:
        """Return whether the total covers what was spent, and `more`."""
        epsilon, delta = self._total((*self.spendings, *more))
        return epsilon <= _exact(self.survey.epsilon) and delta <= _exact(self.survey.delta)

    @property
    def spent(self) -> tuple[float, float]:
        """Epsilon and delta spent."""
        epsilon, delta = self._total(self.spendings)
        return float(epsilon), float(delta)

    @property
    def left(self) -> tuple[float, float]:
        """Epsilon and delta left."""
        epsilon, delta = self._total(self.spendings)
        total = self.survey.epsilon
        left = math.inf if math.isinf(total) else float(_exact(total) - epsilon)
        return left, float(_exact(self.survey.delta) - delta)

    @property
    def composed(self) -> tuple[float, float]:
        """Epsilon and delta of all that was spent, by the tighter of two accounts.

        Basic composition, or zero-concentrated privacy at the budget's delta, less the deltas of
        spendings whose rho is not known and which are added as they are. The second account holds
        if the sizes of the fits were fixed in advance, not chosen by looking at earlier results.
        """
        from privrank.privacy.gaussian import zcdp_epsilon

        rho = math.fsum(line.rho for line in self.spendings if line.rho is not None)
        others = self._total(tuple(line for line in self.spendings if line.rho is None))
        room = float(_exact(self.survey.delta) - others[1])
        if room <= 0:
            return self.spent
        together = float(others[0]) + zcdp_epsilon(rho, room)
        return (together, self.survey.delta) if together < self.spent[0] else self.spent
