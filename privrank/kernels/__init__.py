"""Loops, most of them compiled: arrays in, arrays out; no generators, no frames.

They keep nothing of their arrays, so that un-noised data may pass through some of them. Several
run at a time where threads call them. Imported
only where a loop is about to run, as numba, which nothing else imports, is slow to load. Every
function also runs uncompiled (``NUMBA_DISABLE_JIT=1``) with the same results. Callers validate:
ranks are int64, 1..m without ties in every row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

_Loop = TypeVar("_Loop", bound=Callable[..., object])


def compiled(function: _Loop) -> _Loop:
    """Return a loop that is compiled when first called, from a cache where there is one."""
    # numba's decorator has no types of its own; the compiled loop keeps those of the source
    try:
        return cast(_Loop, njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no directory to write to: compile again in every process
        return cast(_Loop, njit(nogil=True)(function))
