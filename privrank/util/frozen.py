"""What the user reads who changes an object that cannot be changed."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import NoReturn, TypeVar

Class = TypeVar("Class", bound=type)


def immutable(frozen: Class) -> Class:
    """Let a frozen dataclass refuse changes in plain words.

    The methods that ``dataclass(frozen=True, slots=True)`` writes refer to the class as it was
    before it had slots, so for a name that is no field they fail with a message about ``super``.
    """
    for method in ("__setattr__", "__delattr__"):
        setattr(frozen, method, _refuse)
    return frozen


def _refuse(thing: object, name: str, value: object = None) -> NoReturn:
    raise FrozenInstanceError(
        f"{type(thing).__name__} objects are immutable, so {name!r} can be neither set nor "
        f"deleted. Make a new object instead: for a result, by a new fit or by from_release."
    )
