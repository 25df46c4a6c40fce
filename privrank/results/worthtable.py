"""The rows of a table of worths."""

from __future__ import annotations

import pandas as pd

from privrank.results.guarantee import rank_range

__all__ = ["worth_columns", "worth_rows"]


def worth_columns(alpha: float) -> tuple[str, ...]:
    """Return the headings, the first of the items."""
    limits = (f"[{alpha / 2:.3g}", f"{1 - alpha / 2:.4g}]")
    return ("", "coef", "std err", "sampling", "privacy", "z", "P>|z|", *limits, "rank")


def worth_rows(frame: pd.DataFrame) -> tuple[tuple[str, ...], ...]:
    """Return the cells of a fit's ``to_frame()``, as they are printed."""
    numbers = ["std_err", "sampling", "privacy", "z", "pvalue", "lower", "upper"]
    return tuple(
        (
            str(item),
            f"{row['worth']:.4f}",
            *(f"{row[name]:.3f}" for name in numbers),
            rank_range(int(row["rank_lower"]), int(row["rank_upper"])),
        )
        for item, row in zip(frame.index, frame.to_dict("records"), strict=True)
    )
