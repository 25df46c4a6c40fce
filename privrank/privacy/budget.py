"""The privacy budget: a ledger that reserves before anything is drawn."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NoReturn, Self

from privrank.privacy.ledgertable import FORMAT, LedgerTable, Record
from privrank.util.checks import (
    LARGEST_EPSILON,
    check_choice,
    check_delta,
    check_epsilon,
    is_number,
    quoted,
)

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
        cls, by: object, epsilon: object, delta: object, rho: object, released: object
    ) -> Spending:
        """Return a line of the ledger, its numbers within their ranges.

        A `rho` of None becomes epsilon^2 / 2 where `delta` is 0.
        """
        if not isinstance(by, str):
            raise TypeError(
                f"by must be text, the model or test that spends, got {type(by).__name__}."
            )
        if not isinstance(released, str | None):
            raise TypeError(f"released must be text or None, got {type(released).__name__}.")
        spent, failure = check_epsilon(epsilon), check_delta(delta)
        if rho is None:
            half = 0.5 * spent**2 if failure == 0 else None
            return cls(by, spent, failure, half, released)
        largest = 0.5 * LARGEST_EPSILON**2
        value = float(rho) if is_number(rho) else math.nan
        if not (0 <= value <= largest or value == math.inf):
            raise ValueError(
                f"rho must be between 0 and {largest:g}, infinite, or None where it is not known, "
                f"got {quoted(rho)}."
            )
        return cls(by, spent, failure, value, released)

    @property
    def record(self) -> Record:
        """The line as texts."""
        return {key: str(value) for key, value in asdict(self).items() if value is not None}

    @classmethod
    def read(cls, record: object) -> Spending:
        """Return the line that a :attr:`record` holds, given as a tuple of pairs."""
        found = _fields(record, _LINE, "every spending", _OPTIONAL)
        rho = _number(found["rho"]) if "rho" in found else None
        epsilon, delta = _number(found["epsilon"]), _number(found["delta"])
        line = cls.checked(found["by"], epsilon, delta, rho, found.get("released"))
        date = found.get("date")
        if not isinstance(date, str | None):
            raise TypeError("date must be text.")
        return replace(line, date=date)


_LINE = ("by", "epsilon", "delta", "rho", "released", "date")
_OPTIONAL = frozenset({"rho", "released", "date"})
_HEADER = ("format", "label", "epsilon", "delta", "unit")
_LEDGER = ("epsilon", "delta", "unit", "spendings")
_USUAL = {"delta": "0.0", "unit": "row"}


def _fields(
    record: object, names: tuple[str, ...], what: str, optional: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return a JSON object, given as a tuple of pairs, that has each of `names` once.

    Those that are `optional` may be left out.
    """
    if isinstance(record, tuple):
        found = dict(record)
        if len(found) == len(record) and set(names) - optional <= found.keys() <= set(names):
            return found
    raise ValueError(f"{what} must have {', '.join(names)}, each once, and nothing else.")


def _number(text: object) -> float:
    """Return a number that was written as text."""
    try:
        value = float(text) if isinstance(text, str) else None
    except ValueError:
        value = None
    if value is None or str(value) != text:
        raise ValueError(f"a number must be text such as '0.5', as to_json() writes it: {text!r}.")
    return value


@lru_cache(maxsize=1024)
def _exact(value: float) -> Fraction | float:
    """Return the decimal a person would have typed, so that ten times 0.1 is 1."""
    return value if math.isinf(value) else Fraction(repr(value))


def _foreign(name: str, error: Exception) -> NoReturn:
    """Refuse a ledger whose lines are whole but are none that a fit wrote."""
    reason = str(error).removesuffix(".")
    raise ValueError(
        f"the ledger {name!r} holds what no fit wrote ({reason}): restore it as it was after the "
        f"last fit."
    ) from None


def _opened(path: object, given: Record) -> LedgerTable:
    """Return the table of a ledger on disk, made if it is new, if its facts are those given."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(
            f"path must be the file of a ledger on disk, text or os.PathLike, got "
            f"{type(path).__name__}: the total of a ledger in memory is epsilon=."
        )
    if "\0" in name:
        raise ValueError("path must be the file of a ledger on disk, without NUL characters.")
    if not isinstance(label := given.get("label", ""), str):
        raise TypeError(f"label must be text, got {type(label).__name__}.")
    usual = {"format": FORMAT, "label": Path(name).stem, "epsilon": ""} | _USUAL
    table = LedgerTable(name, usual | given if "epsilon" in given else None)
    name = os.path.basename(name)
    facts = table.header
    try:
        _fields(tuple(facts.items()), _HEADER, "its first record")
        _total(facts)
    except (TypeError, ValueError) as error:
        _foreign(name, error)
    for key, value in given.items():
        if facts[key] != value:
            raise ValueError(
                f"the ledger {name!r} was made with {key} {facts[key]!r}, not {value!r}: leave "
                f"{key}= out, or give another data set a ledger of its own."
            )
    return table


def _total(facts: dict[str, str]) -> tuple[float, float, Unit]:
    """Return epsilon, delta and unit, which were written as texts."""
    epsilon, delta = _number(facts["epsilon"]), _number(facts["delta"])
    return check_epsilon(epsilon), check_delta(delta), check_choice("unit", facts["unit"], Unit)


class Ledger:
    """A ledger of the privacy budget of one data set, without its table.

    :class:`privrank.Budget` is the ledger that users hold, and says what its arguments are.

    Notes
    -----
    **Privacy.** Basic composition: releases that are (epsilon_k, delta_k)-private are together
    (sum epsilon_k, sum delta_k)-private, also when each is chosen after seeing the earlier ones.
    Sums are exact, in the decimals the caller typed. A reservation is made before the data are
    read, and it stands when the fit fails afterwards. There is one ledger: its table, in memory or
    in a file (:class:`privrank.privacy.ledgertable.LedgerTable`), lets one reservation at a time
    read all spendings, and add its own if the total covers it. A budget cannot be copied or
    pickled. Two that were read from one JSON text are two, which know nothing of each other.

    `composed` is a report, which admits nothing. A release that is a-private without delta is
    a^2 / 2 zero-concentrated private, Gaussian noise of scale w for l2 sensitivity s is
    s^2 / (2 w^2), and these numbers rho add up, whatever each release is chosen to be after seeing
    the earlier ones as long as the numbers themselves were fixed in advance. Their sum gives an
    epsilon at a delta of the ledger's choice. Admitting a fit whenever either account has room
    would let the results decide by which of the two the ledger stops, and where both can stop it
    their deltas would add up: that is not proved here, so fits are admitted by basic composition.
    """

    __slots__ = ("_delta", "_epsilon", "_label", "_table", "_unit")

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        unit: Unit | None = None,
        label: str | None = None,
    ) -> None:
        asked = {
            "label": label,
            "epsilon": None if epsilon is None else str(check_epsilon(epsilon)),
            "delta": None if delta is None else str(check_delta(delta)),
            "unit": None if unit is None else check_choice("unit", unit, Unit),
        }
        given = {key: value for key, value in asked.items() if value is not None}
        if path is not None:
            self._table = _opened(path, given)
        elif label is not None:
            raise ValueError("label= names the data set in a ledger on disk: give its path, too.")
        elif epsilon is None:
            raise TypeError("epsilon must be given: it is the total that all fits may spend.")
        else:
            self._table = LedgerTable(None, {"format": FORMAT} | _USUAL | given)
        facts = self._table.header
        self._epsilon, self._delta, self._unit = _total(facts)
        self._label = facts.get("label")

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
    def path(self) -> Path | None:
        """The file of a ledger on disk."""
        return None if self._table.path is None else Path(self._table.path)

    @property
    def label(self) -> str | None:
        """The data set, for a ledger on disk."""
        return self._label

    @property
    def spendings(self) -> tuple[Spending, ...]:
        """The ledger, oldest first; one on disk is read each time."""
        return self._read(self._table.records())

    @property
    def spent(self) -> tuple[float, float]:
        """Epsilon and delta spent so far."""
        return self._spent(self.spendings)

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
        return self._composed(self.spendings)

    @property
    def left(self) -> tuple[float, float]:
        """Epsilon and delta left."""
        return self._left(self.spendings)

    def _spent(self, spendings: tuple[Spending, ...]) -> tuple[float, float]:
        epsilon, delta = self._totals(spendings)
        return float(epsilon), float(delta)

    def _composed(self, spendings: tuple[Spending, ...]) -> tuple[float, float]:
        from privrank.privacy.gaussian import zcdp_epsilon

        epsilon, _ = basic = self._spent(spendings)
        rho = math.fsum(line.rho for line in spendings if line.rho is not None)
        others = self._totals(tuple(line for line in spendings if line.rho is None))
        room = float(_exact(self._delta) - others[1])
        if room <= 0:
            return basic
        together = float(others[0]) + zcdp_epsilon(rho, room)
        return (together, self._delta) if together < epsilon else basic

    def _left(self, spendings: tuple[Spending, ...]) -> tuple[float, float]:
        epsilon, delta = self._totals(spendings)
        unlimited = math.isinf(self._epsilon)
        left = math.inf if unlimited else float(_exact(self._epsilon) - epsilon)
        return left, float(_exact(self._delta) - delta)

    @staticmethod
    def _totals(spendings: tuple[Spending, ...]) -> tuple[Fraction | float, Fraction | float]:
        epsilon = sum((_exact(line.epsilon) for line in spendings), Fraction(0))
        delta = sum((_exact(line.delta) for line in spendings), Fraction(0))
        return epsilon, delta

    def _covers(self, spendings: tuple[Spending, ...]) -> bool:
        epsilon, delta = self._totals(spendings)
        return epsilon <= _exact(self._epsilon) and delta <= _exact(self._delta)

    def _read(self, records: tuple[Record, ...]) -> tuple[Spending, ...]:
        """Return the spendings of a table, or refuse what no ledger holds.

        Each spending was entered only if the total covered it. A line that a crash left counts in
        every later reading or in none, so that it is no exception.
        """
        try:
            return self._covered(
                tuple((key, text) for key, text in line.items() if key != "label")
                for line in records
            )
        except (TypeError, ValueError) as error:
            _foreign(os.path.basename(self._table.path or ""), error)

    def _covered(self, records: Iterable[object]) -> tuple[Spending, ...]:
        """Return the spendings of records, given as tuples of pairs, if the total covers them."""
        lines = tuple(map(Spending.read, records))
        if not self._covers(lines):
            raise ValueError("the spendings add up to more than the total.")
        return lines

    def reserve(
        self,
        by: str,
        epsilon: float,
        delta: float,
        *,
        unit: Unit,
        max_rows: int = 1,
        rho: float | None = None,
        released: str | None = None,
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
        released : str or None
            What it releases.

        Raises
        ------
        ValueError, TypeError
            If `unit` is not the unit of this budget, a number is out of its range, or the file of
            a ledger on disk is not as it was left.
        OSError
            If that file cannot be read, locked or written.
        RuntimeError
            For a ledger in memory, in another process than the one that made it.
        BudgetExceeded
            If less than `epsilon` or `delta` is left.
        """
        if check_choice("unit", unit, Unit) != self._unit:
            rows = "1 row" if max_rows == 1 else f"up to {max_rows} rows"
            if self._unit == "respondent":
                remedy = (
                    "name the respondent column with respondent=, because an epsilon per row "
                    "counts once for every row of a respondent"
                )
            else:
                remedy = (
                    f"use a Budget(unit='respondent'), because epsilon {epsilon} per respondent "
                    f"with {rows} is stronger than epsilon {epsilon} per row and the two cannot be "
                    f"added"
                )
            raise ValueError(
                f"budget protects one {self._unit} but this fit protects one {unit}: {remedy}."
            )
        line = Spending.checked(by, epsilon, delta, rho, released)
        with self._table.held() as (records, add):
            spendings = self._read(records)
            if not self._covers((*spendings, line)):
                left_epsilon, left_delta = self._left(spendings)
                raise BudgetExceeded(
                    f"{by} asks for epsilon {line.epsilon:g}, delta {line.delta:g} but the budget "
                    f"has epsilon {left_epsilon:g}, delta {left_delta:g} left of "
                    f"{self._epsilon:g}, {self._delta:g}: nothing was read or drawn."
                )
            if self._label is None:
                add(line.record)
            else:
                now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
                add({"date": now, "label": self._label, **line.record})

    def to_json(self) -> str:
        """Return the ledger as JSON text."""
        return json.dumps(
            {
                "epsilon": str(self._epsilon),
                "delta": str(self._delta),
                "unit": self._unit,
                "spendings": [line.record for line in self.spendings],
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the budget that :meth:`to_json` wrote, in memory.

        Whoever reads the text twice has two budgets, each with all that is left: what several
        scripts spend belongs on disk.

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
            epsilon, delta = _number(record["epsilon"]), _number(record["delta"])
            budget = cls(epsilon=epsilon, delta=delta, unit=record["unit"])
            if not isinstance(record["spendings"], list):
                raise TypeError("spendings must be a list.")
            lines = [line.record for line in budget._covered(record["spendings"])]
        except (TypeError, ValueError) as error:
            raise ValueError(f"text must be a ledger written by to_json(), but {error}") from None
        budget._table = LedgerTable(None, budget._table.header, lines)
        return budget

    def __repr__(self) -> str:
        """Show total and what is left."""
        place = "" if self.path is None else f"{self.path.name!r}, "
        left = self.left
        return (
            f"Budget({place}epsilon={self._epsilon:g}, delta={self._delta:g}, "
            f"unit={self._unit!r}; left {left[0]:g}, {left[1]:g})"
        )

    def _refuse_copy(self, *_: object) -> NoReturn:
        raise TypeError(
            "a Budget cannot be copied or pickled, because two copies would each spend it: keep "
            "one, store it with to_json(), or keep it on disk and open its path in each process."
        )

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _refuse_copy
