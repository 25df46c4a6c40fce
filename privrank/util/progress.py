"""One line on standard error for work that takes a while."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

__all__ = ["PATIENCE", "Progress"]

PATIENCE = 2.0
"""Seconds of work before anything is shown."""


@dataclass(slots=True)
class Progress:
    """A progress bar of so many steps that shows itself once they have taken two seconds."""

    label: str
    wanted: int
    started: float = field(default_factory=time.monotonic)
    _last: float = 0.0

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def show(self, done: int) -> None:
        """Redraw the bar, a few times a second; the line is wiped when the work is complete.

        Nothing is shown unless the error stream is a terminal.
        """
        spent = self.spent
        early = spent < PATIENCE if self._last == 0 else spent - self._last < 0.2
        if (early and done < self.wanted) or not _watched():
            return
        if done == self.wanted and self._last == 0:
            return
        width = 30 * done // self.wanted
        bar = "=" * width + " " * (30 - width)
        left = spent / done * (self.wanted - done)
        line = f"{self.label} [{bar}] {100 * done // self.wanted} %, {left:.0f} s left   "
        sys.stderr.write(f"\r{line}" if done < self.wanted else f"\r{' ' * len(line)}\r")
        sys.stderr.flush()
        self._last = spent


def _watched() -> bool:
    return sys.stderr.isatty()
