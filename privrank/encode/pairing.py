"""Samples of the same respondents, each of whom answered once in each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank.encode import counting
from privrank.encode.frames import with_respondent_column

__all__ = ["check_paired", "partners"]

IntArray = NDArray[np.int64]


def check_paired(
    paired: object, secret: bool, respondent: object, groups: int, max_rows: object
) -> None:
    """Refuse what pairs cannot go with; it concerns arguments alone."""
    if not isinstance(paired, bool):
        raise TypeError(f"paired must be True or False, got {type(paired).__name__}.")
    if not paired:
        return
    if secret:
        raise ValueError(
            "paired=True tells for everybody that they are in both samples: leave labels='private' "
            "out."
        )
    if respondent is None:
        raise ValueError(
            "paired=True matches the rows of two samples by respondent: name the column, or the "
            "index level, that identifies them with respondent=."
        )
    if groups != 2:
        raise ValueError(
            f"paired=True compares two samples of the same respondents, got {groups}: compare two "
            f"at a time."
        )
    if max_rows != 1:
        raise ValueError(
            "paired=True takes one row per respondent in each sample: leave max_rows= out, and "
            "give the row that shall count."
        )


def partners(samples: Sequence[object], respondent: str) -> IntArray:
    """Return the place in the second sample of each respondent of the first, as they are encoded.

    Notes
    -----
    **Privacy.** Errors say nothing of who answered where, nor of how many did once only.
    """
    names = []
    for sample in samples:
        frame = with_respondent_column(sample, respondent)
        view = counting.open_frame(frame, "data")
        if respondent not in counting.column_names(view):
            raise ValueError(
                f"data has no column {respondent!r}: name the right one with respondent=."
            )
        column = counting.collect(view, [respondent])[respondent]
        codes, values = counting.factorize(column, respondent)
        if (codes < 0).any():
            raise ValueError(
                f"column {respondent!r} must name the respondent of every row: fill in the missing "
                f"entries."
            )
        if len(codes) > len(values):
            raise ValueError(
                f"paired=True takes one row per respondent in each sample, and column "
                f"{respondent!r} names at least one twice: keep the row that shall count."
            )
        names.append(pd.Index(values))
    place = names[1].get_indexer(names[0])
    if len(names[0]) != len(names[1]) or (place < 0).any():
        raise ValueError(
            f"paired=True needs every respondent in both samples, and column {respondent!r} has at "
            f"least one in one of them only: leave out who did not answer twice, or compare the "
            f"samples without paired=."
        )
    return np.asarray(place, dtype=np.int64)
