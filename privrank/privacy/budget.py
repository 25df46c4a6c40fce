"""The privacy budget: a ledger that reserves before anything is drawn."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from fractions import Fraction
from numbers import Real
from threading import Lock
from typing import Any, Literal, NoReturn, Self

from privrank.util.checks import LARGEST_EPSILON, check_choice, check_delta, check_epsilon

__all__ = [
    "BudgetExceeded",
    "Ledger",
    "Spending",
    "Unit",
    "check_budget",
    "pure_epsilon",
    "split",
]

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


def check_budget(budget: object) -> None:
    """Refuse what is neither None nor a :class:`Ledger`."""
    if budget is not None and not isinstance(budget, Ledger):
        raise TypeError(
            f"budget must be a privrank.Budget or None, got {type(budget).__name__}: make one with "
            f"privrank.Budget(epsilon=...)."
        )


def split(epsilon: float, shares: dict[str, float], main: str) -> dict[str, float]:
    """Divide `epsilon` among the named releases of one fit, the rest going to `main`.

    The parts are rounded so that their exact sum is at most `epsilon`.
    """
    if math.isinf(epsilon):
        return {main: math.inf, **dict.fromkeys(shares, math.inf)}
    parts = {name: epsilon * share for name, share in shares.items()}
    rest = float(Fraction(epsilon) - sum((Fraction(part) for part in parts.values()), Fraction(0)))
    return {main: math.nextafter(rest, 0.0), **parts}


class BudgetExceeded(Exception):
    """A fit asked for more than its budget has left; no data were read and no noise was drawn."""


@dataclass(frozen=True, slots=True)
class Spending:
    """One line of the ledger: what was spent, and by whom; `rho` where it is known."""

    by: str
    epsilon: float
    delta: float
    rho: float | None = None


def _spending(by: object, epsilon: object, delta: object, rho: object) -> Spending:
    """Return a line of the ledger, its numbers within their ranges.

    A `rho` of None becomes epsilon^2 / 2 where `delta` is 0.
    """
    if not isinstance(by, str):
        raise TypeError(f"by must be text, the model or test that spends, got {type(by).__name__}.")
    spent, failure = check_epsilon(epsilon), check_delta(delta)
    if rho is None:
        return Spending(by, spent, failure, 0.5 * spent**2 if failure == 0 else None)
    largest = 0.5 * LARGEST_EPSILON**2
    value = float(rho) if isinstance(rho, Real) and not isinstance(rho, bool) else math.nan
    if not (0 <= value <= largest or value == math.inf):
        raise ValueError(
            f"rho must be between 0 and {largest:g}, infinite, or None where it is not known, got "
            f"{rho!r}."
        )
    return Spending(by, spent, failure, value)


def _exact(value: float) -> Fraction | float:
    """Return the decimal a person would have typed, so that ten times 0.1 is 1."""
    return value if math.isinf(value) else Fraction(repr(value))


_LEDGER = ("epsilon", "delta", "unit", "spendings")
_LINE = ("by", "epsilon", "delta", "rho")


def _fields(record: object, names: tuple[str, ...], what: str) -> dict[str, Any]:
    """Return a JSON object, given as a tuple of pairs, that has each of `names` once.

    What is not known, `rho`, may be left out.
    """
    if isinstance(record, tuple):
        found = dict(record)
        if len(found) == len(record) and set(names) - {"rho"} <= found.keys() <= set(names):
            return found
    raise ValueError(f"{what} must have {', '.join(names)}, each once, and nothing else.")


def _number(text: object) -> float:
    """Return a number that :meth:`Ledger.to_json` wrote."""
    try:
        value = float(text) if isinstance(text, str) else None
    except ValueError:
        value = None
    if value is None or str(value) != text:
        raise ValueError(f"a number must be text such as '0.5', as to_json() writes it: {text!r}.")
    return value


class Ledger:
    """A ledger of the privacy budget of one data set, without its table.

    :class:`privrank.Budget` is the ledger that users hold, and says what its arguments are.

    Notes
    -----
    **Privacy.** Basic composition: releases that are (epsilon_k, delta_k)-private are together
    (sum epsilon_k, sum delta_k)-private, also when each is chosen after seeing the earlier ones.
    Sums are exact, in the decimals the caller typed. A reservation is made before the data are
    read, and it stands when the fit fails afterwards. There is one ledger: a budget cannot be
    copied or pickled, and the copy that a forked process inherits spends nothing. Threads share it.

    `composed` is a report, which admits nothing. A release that is a-private without delta is
    a^2 / 2 zero-concentrated private, Gaussian noise of scale w for l2 sensitivity s is
    s^2 / (2 w^2), and these numbers rho add up, whatever each release is chosen to be after seeing
    the earlier ones as long as the numbers themselves were fixed in advance. Their sum gives an
    epsilon at a delta of the ledger's choice. Admitting a fit whenever either account has room
    would let the results decide by which of the two the ledger stops, and where both can stop it
    their deltas would add up: that is not proved here, so fits are admitted by basic composition.
    """

    __slots__ = ("_delta", "_epsilon", "_lock", "_process", "_spendings", "_unit")

    def __init__(self, epsilon: float, delta: float = 0.0, unit: Unit = "row") -> None:
        self._epsilon = check_epsilon(epsilon)
        self._delta = check_delta(delta)
        self._unit: Unit = check_choice("unit", unit, Unit)
        self._spendings: tuple[Spending, ...] = ()
        self._lock = Lock()
        self._process = os.getpid()

    @property
    def epsilon(self) -> float:
        """Total epsilon."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """Total delta."""
        return self._delta

    @property
    def unit(self) -> Unit:
        """What the budget protects: one row or one respondent."""
        return self._unit

    @property
    def spendings(self) -> tuple[Spending, ...]:
        """The ledger, oldest first."""
        return self._spendings

    @property
    def spent(self) -> tuple[float, float]:
        """Epsilon and delta spent so far."""
        epsilon, delta = self._totals(self._spendings)
        return float(epsilon), float(delta)

    @property
    def composed(self) -> tuple[float, float]:
        """Epsilon and delta of all that was spent, by the tighter of two accounts.

        Basic composition, or zero-concentrated privacy at the budget's delta, less the deltas of
        spendings whose rho is not known and which are added as they are. The second account holds
        if the sizes of the fits were fixed in advance, not chosen by looking at earlier results.

        References
        ----------
        Bun and Steinke (2016), https://doi.org/10.1007/978-3-662-53641-4_24; the epsilon is that of
        :func:`privrank.privacy.gaussian.zcdp_epsilon`.
        """
        from privrank.privacy.gaussian import zcdp_epsilon

        epsilon, _ = basic = self.spent
        rho = math.fsum(line.rho for line in self._spendings if line.rho is not None)
        others = self._totals(tuple(line for line in self._spendings if line.rho is None))
        room = float(_exact(self._delta) - others[1])
        if room <= 0:
            return basic
        together = float(others[0]) + zcdp_epsilon(rho, room)
        return (together, self._delta) if together < epsilon else basic

    @property
    def left(self) -> tuple[float, float]:
        """Epsilon and delta left."""
        if math.isinf(self._epsilon):
            return math.inf, float(_exact(self._delta) - self._totals(self._spendings)[1])
        epsilon, delta = self._totals(self._spendings)
        return float(_exact(self._epsilon) - epsilon), float(_exact(self._delta) - delta)

    @staticmethod
    def _totals(spendings: tuple[Spending, ...]) -> tuple[Fraction | float, Fraction | float]:
        epsilon = sum((_exact(line.epsilon) for line in spendings), Fraction(0))
        delta = sum((_exact(line.delta) for line in spendings), Fraction(0))
        return epsilon, delta

    def _covers(self, spendings: tuple[Spending, ...]) -> bool:
        epsilon, delta = self._totals(spendings)
        return epsilon <= _exact(self._epsilon) and delta <= _exact(self._delta)

    def reserve(
        self,
        by: str,
        epsilon: float,
        delta: float,
        *,
        unit: Unit,
        max_rows: int = 1,
        rho: float | None = None,
    ) -> None:
        """Enter a spending in the ledger, or refuse it and leave the ledger as it was.

        Parameters
        ----------
        by : str
            Who spends: the model or test.
        epsilon, delta : float
            What it spends.
        unit : {"row", "respondent"}
            The unit the spending protects.
        max_rows : int, default 1
            Rows per respondent, for the conversion in the message.
        rho : float or None
            Its zero-concentrated privacy, for `composed`; None takes epsilon^2 / 2 if `delta` is 0.

        Raises
        ------
        ValueError, TypeError
            If `unit` is not the unit of this budget, or a number is out of its range.
        RuntimeError
            In another process than the one that made this budget.
        BudgetExceeded
            If less than `epsilon` or `delta` is left.
        """
        # before the lock: a fork copies it as it is, and one that another thread held stays shut
        if os.getpid() != self._process:
            raise RuntimeError(
                "a Budget spends only in the process that made it, because the copy in a forked "
                "process would spend it a second time: fit in that process, or divide the total "
                "beforehand and make in each process a Budget with its share."
            )
        if unit != self._unit:
            if self._unit == "respondent":
                remedy = (
                    "name the respondent column with respondent=, because an epsilon per row "
                    "counts once for every row of a respondent"
                )
            else:
                remedy = (
                    f"use a Budget(unit='respondent'), because epsilon {epsilon} per respondent "
                    f"with up to {max_rows} rows is stronger than epsilon {epsilon} per row and "
                    f"the two cannot be added"
                )
            raise ValueError(
                f"budget protects one {self._unit} but this fit protects one {unit}: {remedy}."
            )
        line = _spending(by, epsilon, delta, rho)
        with self._lock:
            trial = (*self._spendings, line)
            if not self._covers(trial):
                left_epsilon, left_delta = self.left
                raise BudgetExceeded(
                    f"{by} asks for epsilon {line.epsilon:g}, delta {line.delta:g} but the budget "
                    f"has epsilon {left_epsilon:g}, delta {left_delta:g} left of "
                    f"{self._epsilon:g}, {self._delta:g}: nothing was read or drawn."
                )
            self._spendings = trial

    def to_json(self) -> str:
        """Return the ledger as JSON text."""
        return json.dumps(
            {
                "epsilon": str(self._epsilon),
                "delta": str(self._delta),
                "unit": self._unit,
                "spendings": [
                    {key: str(value) for key, value in asdict(line).items() if value is not None}
                    for line in self._spendings
                ],
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the budget that :meth:`to_json` wrote.

        Parameters
        ----------
        text : str
            JSON text of a ledger.

        Raises
        ------
        ValueError
            If the text is not a ledger that a budget can have: what it holds is refused as
            :class:`Ledger` and :meth:`reserve` would refuse it.
        """
        try:
            read = json.loads(text, object_pairs_hook=tuple)
        except (TypeError, ValueError, RecursionError):
            raise ValueError("text must be JSON written by a budget's to_json().") from None
        try:
            record = _fields(read, _LEDGER, "the ledger")
            budget = cls(_number(record["epsilon"]), _number(record["delta"]), record["unit"])
            if not isinstance(record["spendings"], list):
                raise TypeError("spendings must be a list.")
            lines = [_fields(line, _LINE, "every spending") for line in record["spendings"]]
            spendings = tuple(
                _spending(
                    line["by"],
                    _number(line["epsilon"]),
                    _number(line["delta"]),
                    _number(line["rho"]) if "rho" in line else None,
                )
                for line in lines
            )
            if not budget._covers(spendings):
                raise ValueError("the spendings add up to more than the total.")
        except (TypeError, ValueError) as error:
            raise ValueError(f"text must be a ledger written by to_json(), but {error}") from None
        budget._spendings = spendings
        return budget

    def __repr__(self) -> str:
        """Show total and what is left."""
        return (
            f"Budget(epsilon={self._epsilon:g}, delta={self._delta:g}, unit={self._unit!r}; "
            f"left {self.left[0]:g}, {self.left[1]:g})"
        )

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise TypeError(
            "a Budget cannot be copied or pickled, because two copies would each spend it: keep "
            "one, or store it with to_json()."
        )

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _refuse_copy
