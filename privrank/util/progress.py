"""A bar for work that takes a while: tqdm's, on a terminal and in notebooks."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PATIENCE", "Progress"]

PATIENCE = 2.0
"""Seconds of work before anything is shown."""


@dataclass(slots=True)
class Progress:
    """A progress bar of so many steps that shows itself once they have taken two seconds.

    Short work, which is nearly all, does without the library as well.
    """

    label: str
    wanted: int
    started: float = field(default_factory=time.monotonic)
    _bar: Any = None

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def show(self, done: int) -> None:
        """Say how many steps are done; the bar goes when all are.

        Nothing is shown where the error stream is neither a terminal nor a notebook's.
        """
        if self._bar is None:
            if self.spent < PATIENCE or done == self.wanted:
                return
            self._bar = _bar(self.label, self.wanted, done)
        self._bar.update(done - self._bar.n)
        if done == self.wanted:
            self._bar.close()


def _bar(label: str, wanted: int, done: int) -> Any:
    with warnings.catch_warnings():  # of notebooks without widgets, which show no bar
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

    shown: dict[str, Any] = {"leave": False, "miniters": 1, "disable": None}  # None: see show
    return tqdm(desc=label, total=wanted, initial=done, **shown)
