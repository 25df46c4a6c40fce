"""What the spendings of one data set add up to: exact sums, and zero-concentrated composition."""

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
    """Divide `epsilon` among the named releases of one fit, the rest going to `main`.

    The parts are rounded so that their exact sum is at most `epsilon`.
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
                f"rho must be between 0 and {largest:g}, infinite, or None where it is not known, "
                f"got {checks.quoted(rho)}."
            )
        return cls(spender, spent, failure, value, released)


@lru_cache(maxsize=1024)
def _exact(value: float) -> Fraction | float:
    """Return the decimal a person would have typed, so that ten times 0.1 is 1."""
    return value if math.isinf(value) else Fraction(repr(value))


@immutable
@dataclass(frozen=True, slots=True)
class BudgetTerms:
    """Of which survey an account is: what it may spend, `pure` of it without delta; per which unit.

    With `pure` None all fits add up in one account.
    """

    label: str | None
    epsilon: float
    delta: float
    unit: Unit
    pure: float | None = None

    @property
    def rest(self) -> float:
        """What `pure` leaves of epsilon."""
        return float(_exact(self.epsilon) - _exact(self.pure or 0.0))


@immutable
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

    **Privacy, two accounts.** With `pure` a the two parts of epsilon are fixed before the first
    fit. Fits without delta add their epsilons to at most a. The others have a known rho, and add
    them to at most r, where r-zero-concentrated privacy is (epsilon - a, delta)-private by
    :func:`privrank.privacy.gaussian.zcdp_epsilon`; deltas of their own count 0. Together all fits
    are (epsilon, delta)-private, however each is chosen from the releases before.

    Under P, the data, let Z_k be the privacy loss of fit k against a neighbour Q, given the
    releases before. Whether it has a delta, and its epsilon_k or rho_k, are functions of these. The
    Z_k without delta add up to at most a. Let L be the sum of the others. For every order x > 1 the
    product of exp((x - 1) Z_k - x (x - 1) rho_k) over fits with a delta, so far, is a
    supermartingale: a factor has a conditional mean of at most 1, which is what rho_k says. As the
    rho_k never add up to more than r, E exp((x - 1) L) <= exp(x (x - 1) r) at the end, and this is
    all that the proof at `zcdp_epsilon` takes. So E max(0, 1 - exp(epsilon - a - L)) <= delta. The
    whole loss is at most a + L, so this bounds the delta of all releases at epsilon.

    What holds is the cap. What was spent when somebody stops is no guarantee of its own, as to stop
    there may depend on the releases.

    References
    ----------
    Whitehouse, Ramdas, Rogers and Wu (2023), https://proceedings.mlr.press/v202/whitehouse23a.html.
    """

    survey: BudgetTerms
    spendings: tuple[Spending, ...] = ()

    def _total(self, lines: tuple[Spending, ...]) -> tuple[Fraction | float, Fraction | float]:
        """Return the sums of epsilons and of deltas, exactly."""
        epsilon = sum((_exact(line.epsilon) for line in lines), Fraction(0))
        return epsilon, sum((_exact(line.delta) for line in lines), Fraction(0))

    def _sums(self, lines: tuple[Spending, ...]) -> tuple[Fraction | float, Fraction | float]:
        """Return the two numbers that are limited; a rho that is not known is infinite."""
        if self.survey.pure is None:
            return self._total(lines)
        rhos = (math.inf if line.rho is None else line.rho for line in lines if line.delta > 0)
        pure = self._total(tuple(line for line in lines if line.delta == 0))[0]
        return pure, sum(map(_exact, rhos), Fraction(0))

    @property
    def limits(self) -> tuple[float, float]:
        """The most of epsilon and delta; with two accounts of pure epsilon and of rho."""
        survey = self.survey
        if survey.pure is None:
            return survey.epsilon, survey.delta
        from privrank.privacy.gaussian import zcdp_rho

        return survey.pure, zcdp_rho(survey.rest, survey.delta)

    def covers(self, *more: Spending) -> bool:
        """Return whether the total covers what was spent, and `more`."""
        sums = self._sums((*self.spendings, *more))
        return all(s <= _exact(limit) for s, limit in zip(sums, self.limits, strict=True))

    @property
    def spent(self) -> tuple[float, float]:
        """Epsilon and delta spent; with two accounts pure epsilon and rho."""
        first, second = self._sums(self.spendings)
        return float(first), float(second)

    @property
    def left(self) -> tuple[float, float]:
        """Epsilon and delta left; with two accounts pure epsilon and rho."""
        first, second = (
            math.inf if math.isinf(limit) else float(_exact(limit) - s)
            for s, limit in zip(self._sums(self.spendings), self.limits, strict=True)
        )
        return first, second

    def shortage(self, line: Spending) -> str:
        """Say in sentences what a line asks for that is not covered, and what is left of it."""
        left = self.left
        limits = self.limits
        if self.survey.pure is None:
            return (
                f"{line.by} asks for epsilon {line.epsilon:g}, delta {line.delta:g} but of the "
                f"budget's epsilon {limits[0]:g}, delta {limits[1]:g} there are {left[0]:g} and "
                f"{left[1]:g} left. Nothing was read or drawn. To read an earlier result, use "
                f"privrank.from_json."
            )
        if line.delta == 0:
            return (
                f"{line.by} asks for epsilon {line.epsilon:g} without delta but the budget has "
                f"{left[0]:g} left of {limits[0]:g} for such fits. Nothing was read or drawn."
            )
        return (
            f"{line.by} asks for rho {line.rho:g} but the budget has {left[1]:g} left of "
            f"{limits[1]:g} for fits with a delta. Nothing was read or drawn."
        )

    @property
    def composed(self) -> tuple[float, float]:
        """Epsilon and delta of all that was spent, by the tighter of two accounts.

        Basic composition, or zero-concentrated privacy at the budget's delta, less the deltas of
        spendings whose rho is not known and which are added as they are. The second account holds
        if the sizes of the fits were fixed in advance, not chosen by looking at earlier results.
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
