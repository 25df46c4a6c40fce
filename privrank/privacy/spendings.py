"""The lines of a ledger: numbers within their ranges, and as the texts that are kept."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from privrank.util.checks import LARGEST_EPSILON, check_delta, check_epsilon, is_number, quoted

__all__ = [
    "Spending",
    "checked",
    "fields",
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


def record_of(line: Spending) -> dict[str, str]:
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
