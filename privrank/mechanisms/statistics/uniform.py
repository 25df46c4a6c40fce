"""The default statistics against uniformity, of rankings and of choices."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from privrank.hypotheses.nullmodel import uniform
from privrank.hypotheses.nulltables import uniform_rankings, usual_draws
from privrank.hypotheses.statistic import Statistic
from privrank.mechanisms.statistics.categories import (
    MOST_ITEMS,
    binomial,
    of_ranks,
    omnibus_of,
)
from privrank.mechanisms.statistics.norms import borda_norm
from privrank.mechanisms.statistics.omnibus import (
    ALLOWANCE,
    GRID,
    QUANTILE_DRAWS,
    Part,
    omnibus,
)
from privrank.mechanisms.statistics.residual import residual_norm

__all__ = ["of_choices", "of_orders", "of_rankings"]

BORDA_LEVEL, RESIDUAL_LEVEL = 0.045, 0.005
"""How a level of .05 is shared by the Borda norm and the residual norm."""


def of_choices(n: int, k: int, xi: float) -> Statistic:
    """Return the default statistic of n choices among k categories, at a pure budget `xi`.

    Notes
    -----
    **Privacy.** **Null.** As :func:`privrank.mechanisms.statistics.categories.omnibus_of`. Of two
    categories its parts are one statistic, whose null distribution is known exactly.
    """
    return binomial(n, 0.5) if k == 2 else omnibus_of(n, uniform(k), xi)


def of_orders(n: int, m: int, xi: float) -> Statistic:
    """Return the omnibus of counts over all m! orders, for at most 6 items.

    Notes
    -----
    **Privacy.** **Null.** As :func:`privrank.mechanisms.statistics.categories.omnibus_of`.
    """
    if m > MOST_ITEMS:
        raise ValueError(
            f"method='omnibus' counts all m! orders, so it takes at most {MOST_ITEMS} items, "
            f"got {m}: use method='auto'."
        )
    return of_ranks(omnibus_of(n, uniform(math.factorial(m)), xi, rankings=True))


def of_rankings(n: int, m: int, xi: float) -> Statistic:
    """Return the larger of Borda norm and residual norm, each less a public quantile.

    Parameters
    ----------
    n, m : int
        Rankings and items, at least 2 each.
    xi : float
        Pure privacy budget, infinite for none.

    Returns
    -------
    Statistic
        Of the Borda norm at level .045 and the residual norm at level .005: most of what surveys
        hold shows in mean ranks, and the small share is enough for large departures from them. Of
        two items, whether both orders are equally frequent.

    Notes
    -----
    **Privacy.** **Null.** As :func:`privrank.mechanisms.statistics.omnibus.omnibus` of its parts.
    n and m alone decide whether the Borda norm is capped and whether the residual norm has its
    third term.
    """
    if m == 2:
        return of_ranks(replace(binomial(n, 0.5), distance=False))
    borda, residual = borda_norm(n, m), residual_norm(n, m)
    parts = (
        Part(borda.value, BORDA_LEVEL, borda.simulated),
        Part(residual.value, RESIDUAL_LEVEL),
    )
    return omnibus(
        "Borda and residual norm",
        "omnibus of rankings against uniformity",
        (n, m),
        parts,
        partial(uniform_rankings, n=n, m=m),
        GRID + ALLOWANCE,
        xi,
        min(QUANTILE_DRAWS, usual_draws("rankings", n, m)),
    )
