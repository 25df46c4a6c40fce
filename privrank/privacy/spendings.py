"""What a ledger holds, one line for each spending, and who keeps them: memory, or a file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from threading import Lock
from typing import Any, NoReturn

from privrank.privacy.ledgerfile import LedgerFile, Record
from privrank.util.checks import LARGEST_EPSILON, check_delta, check_epsilon, is_number, quoted

__all__ = [
    "Disk",
    "Memory",
    "Spending",
    "checked",
    "fields",
    "foreign",
    "number",
    "read_spending",
    "record_of",
]


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


def checked(
    by: object, epsilon: object, delta: object, rho: object, released: object = None
) -> Spending:
    """Return a line of the ledger, its numbers within their ranges.

    A `rho` of None becomes epsilon^2 / 2 where `delta` is 0.
    """
    if not isinstance(by, str):
        raise TypeError(f"by must be text, the model or test that spends, got {type(by).__name__}.")
    if not isinstance(released, str | None):
        raise TypeError(f"released must be text or None, got {type(released).__name__}.")
    spent, failure = check_epsilon(epsilon), check_delta(delta)
    if rho is None:
        half = 0.5 * spent**2 if failure == 0 else None
        return Spending(by, spent, failure, half, released)
    largest = 0.5 * LARGEST_EPSILON**2
    value = float(rho) if is_number(rho) else math.nan
    if not (0 <= value <= largest or value == math.inf):
        raise ValueError(
            f"rho must be between 0 and {largest:g}, infinite, or None where it is not known, got "
            f"{quoted(rho)}."
        )
    return Spending(by, spent, failure, value, released)


_LINE = ("by", "epsilon", "delta", "rho", "released", "date")
_OPTIONAL = frozenset({"rho", "released", "date"})


def fields(
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


def number(text: object) -> float:
    """Return a number that was written as text."""
    try:
        value = float(text) if isinstance(text, str) else None
    except ValueError:
        value = None
    if value is None or str(value) != text:
        raise ValueError(f"a number must be text such as '0.5', as to_json() writes it: {text!r}.")
    return value


def record_of(line: Spending) -> Record:
    """Return a spending as texts."""
    return {key: str(value) for key, value in asdict(line).items() if value is not None}


def read_spending(record: object) -> Spending:
    """Return the spending that :func:`record_of` wrote, given as a tuple of pairs."""
    found = fields(record, _LINE, "every spending", _OPTIONAL)
    rho = number(found["rho"]) if "rho" in found else None
    line = checked(
        found["by"], number(found["epsilon"]), number(found["delta"]), rho, found.get("released")
    )
    date = found.get("date")
    if not isinstance(date, str | None):
        raise TypeError("date must be text.")
    return replace(line, date=date)


Held = tuple[tuple[Spending, ...], Callable[[Spending], None]]


class Memory:
    """Keeps the spendings in the process that made it, for all its threads.

    Notes
    -----
    **Privacy.** From reading to entering, :meth:`held` holds a lock that one thread has at a time.
    The copy that a forked process inherits, which knows nothing of later spendings, is refused.
    """

    __slots__ = ("_lock", "_process", "_spendings")

    def __init__(self, spendings: tuple[Spending, ...] = ()) -> None:
        self._spendings = spendings
        self._lock = Lock()
        self._process = os.getpid()

    def spendings(self) -> tuple[Spending, ...]:
        """Return the spendings, oldest first."""
        return self._spendings

    @contextmanager
    def held(self) -> Iterator[Held]:
        """Keep other threads away; yield the spendings and a function that enters one."""
        # before the lock: a fork copies it as it is, and one that another thread held stays shut
        if os.getpid() != self._process:
            raise RuntimeError(
                "a Budget in memory spends only in the process that made it, because the copy in a "
                "forked process would spend it a second time: keep it on disk, "
                "privrank.Budget('survey.ledger', epsilon=...), which all processes may spend."
            )
        with self._lock:
            yield self._spendings, self._enter

    def _enter(self, line: Spending) -> None:
        self._spendings = (*self._spendings, line)


def foreign(path: str, error: Exception) -> NoReturn:
    """Refuse a ledger whose lines are whole but are none that a fit wrote."""
    reason = str(error).removesuffix(".")
    raise ValueError(
        f"the ledger {os.path.basename(path)!r} holds what no fit wrote ({reason}): restore it as "
        f"it was after the last fit."
    ) from None


class Disk:
    """Keeps the spendings in a file, for all processes that open it, with dates and label.

    `check` raises ValueError for spendings that the ledger cannot hold.
    """

    __slots__ = ("_check", "_file", "_label")

    def __init__(self, file: LedgerFile, check: Callable[[tuple[Spending, ...]], None]) -> None:
        self._file = file
        self._check = check
        self._label = file.header["label"]

    def spendings(self) -> tuple[Spending, ...]:
        """Return what is in the file, oldest first."""
        return self._read(self._file.records())

    @contextmanager
    def held(self) -> Iterator[Held]:
        """Keep all others from adding; yield the spendings and a function that enters one."""
        with self._file.held() as (records, add):

            def enter(line: Spending) -> None:
                date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
                add({"date": date, "label": self._label, **record_of(line)})

            yield self._read(records), enter

    def _read(self, records: tuple[Record, ...]) -> tuple[Spending, ...]:
        try:
            found = tuple(
                read_spending(tuple((key, text) for key, text in line.items() if key != "label"))
                for line in records
            )
            self._check(found)
        except (TypeError, ValueError) as error:
            foreign(self._file.path, error)
        return found
