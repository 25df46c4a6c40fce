"""Loops (most compiled) from arrays to arrays, without generators or frames.

Loops do not store their arrays, so data without noise may pass through some of them. They may run
in several threads at a time. Import them only before a loop runs, because numba is slow to load; no
other subpackage imports numba. Every function also runs uncompiled (``NUMBA_DISABLE_JIT=1``) with
the same results. Callers validate: ranks are int64, 1..m without ties in every row.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

_Loop = TypeVar("_Loop", bound=Callable[..., object])


def compiled(function: _Loop) -> _Loop:
    """Return a loop that is compiled at its first call, or loaded from a cache."""
    # numba's decorator is untyped; the compiled loop keeps the types of the source
    try:
        return cast(_Loop, njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no directory to write to: compile again in every process
        return cast(_Loop, njit(nogil=True)(function))
