"""Archives: JSON texts that end with a check of what they say, so that a changed one is seen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NoReturn

__all__ = ["archive", "read_archive"]


def archive(record: Mapping[str, Any]) -> str:
    """Return a record as JSON text with its check."""
    return json.dumps({**record, "check": _check(record)})


def read_archive(text: object, writer: str) -> dict[str, Any]:
    """Return the record of which :func:`archive` made a text.

    A text that was parsed and written again by other software is the same archive, as long as its
    numbers are. Whoever changes numbers on purpose can make a new check as well.

    Raises
    ------
    ValueError
        If the text is none that `writer` wrote, or was changed afterwards.
    """
    try:
        record = json.loads(text, parse_constant=_refuse)  # type: ignore[arg-type]
        check, found = record.pop("check"), _check(record)
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        raise ValueError(f"text must be JSON written by {writer}.") from None
    if check != found:
        raise ValueError(
            f"text must be JSON as {writer} wrote it, and this one was changed: take the text as "
            f"it was written."
        )
    return dict(record)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _check(record: object) -> str:
    text = json.dumps(_plain(record), sort_keys=True, separators=(",", ":"))
    return sha256(text.encode("ascii")).hexdigest()


def _plain(value: Any) -> Any:
    """Return a value in which whole numbers are written alike, as 1 and 1.0 are one number."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
