"""What beside a test may be released: budgets on top of epsilon, and items chosen beforehand."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from privrank.release.survey import Sample
from privrank.util.checks import is_number

__all__ = ["check_extra", "detail_items"]


def check_extra(name: str, what: str, extra: object, epsilon: float) -> None:
    """Refuse what is no budget on top of epsilon."""
    if epsilon == np.inf:
        raise ValueError(
            f"{name}= is what {what} costs: leave it out with epsilon=numpy.inf, where it is free."
        )
    if not is_number(extra):
        raise TypeError(f"{name} must be a positive number, got {type(extra).__name__}.")
    if not 1e-9 <= float(extra) <= 1e9:
        raise ValueError(
            f"{name} must be positive and finite, got {extra}: it comes on top of epsilon."
        )


def detail_items(
    details_epsilon: object, chosen: object, epsilon: float, sample: Sample
) -> tuple[int, ...]:
    """Return the places of the items whose totals are released; none if they are not wanted."""
    alone = sample.private_labels or sample.paired
    if details_epsilon is None and (epsilon < np.inf or alone):
        if chosen is not None:
            raise ValueError("details_items= says what details_epsilon= is for: give it, too.")
        return ()
    if details_epsilon is not None:
        check_extra("details_epsilon", "the table of what differs", details_epsilon, epsilon)
    if alone:
        raise ValueError(
            "details_epsilon= is for groups of different respondents whose sizes are public: leave "
            "it out with labels='private' and with paired=True."
        )
    if chosen is None:
        return tuple(range(len(sample.items)))
    noun = "items" if sample.kind == "rankings" else "categories"
    if isinstance(chosen, str) or not isinstance(chosen, Iterable):
        raise TypeError(
            f"details_items must be a sequence of names, got {type(chosen).__name__}: list the "
            f"{noun}."
        )
    names = [str(name) for name in chosen]
    if not names or len(set(names)) < len(names) or not set(names) <= set(sample.items):
        raise ValueError(
            f"details_items must name at least one of the {noun}, none of them twice: leave it out "
            f"for all."
        )
    return tuple(sorted(sample.items.index(name) for name in names))
