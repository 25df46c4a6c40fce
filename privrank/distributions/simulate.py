"""Simulated rankings and comparisons, for studies, examples and tests.

These functions provide no privacy and add no noise: the output follows a model and uses no real
answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from privrank.distributions.links import Link, find
from privrank.util.arrays import FloatArray, IntArray, batches, immutable, readonly_copy
from privrank.util.checks import as_numbers, check_count, check_names, check_number, refuse_if

__all__ = ["PlackettLuce", "bradley_terry", "generator", "ranks_of_scores"]


def generator(rng: object) -> np.random.Generator:
    """Return `rng`, or a new generator with fresh entropy if it is None.

    Integer seeds are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from privrank import simulate
    >>> rng = np.random.default_rng(1)
    >>> simulate.generator(rng) is rng, type(simulate.generator(None)).__name__
    (True, 'Generator')
    """
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng must be None (fresh entropy) or a numpy.random.Generator, got "
            f"{type(rng).__name__}. Use numpy.random.default_rng(...) to make a simulation "
            f"reproducible."
        )
    return np.random.default_rng() if rng is None else rng


def ranks_of_scores(scores: FloatArray) -> IntArray:
    """Return the ranks within each row, 1 for the largest score.

    Examples
    --------
    >>> import numpy as np
    >>> from privrank import simulate
    >>> simulate.ranks_of_scores(np.array([[0.2, 1.5, -0.3]]))
    array([[2, 1, 3]])
    """
    # the order of an order is its inverse: the position of each item
    return np.argsort(np.argsort(-scores, axis=1), axis=1) + 1


def _check_worths(worths: object) -> tuple[FloatArray, pd.Index]:
    """Return the worths as a vector, and the items (a Series' index, or 0..m-1)."""
    values = as_numbers(worths)
    if values is None:
        raise TypeError(f"worths must be one number for each item, got {type(worths).__name__}.")
    refuse_if(
        (
            len(values) < 2,
            "worths must be one number for each of at least two items.",
        ),
        (
            not np.isfinite(values).all(),
            "worths must be finite, and at least one is missing or infinite.",
        ),
    )
    items = worths.index if isinstance(worths, pd.Series) else pd.RangeIndex(len(values))
    check_names("worths.index", items)
    if not items.is_unique:
        raise ValueError("worths.index must name each item once, and a name occurs twice.")
    return values, items


@immutable
@dataclass(frozen=True, slots=True, init=False, eq=False)
class PlackettLuce:
    """Plackett-Luce model for rankings.

    A ranking is chosen item by item, best first. Each remaining item is chosen next with
    probability proportional to exp(worth). Like in the Bradley-Terry model, P(i ranked before j) is
    1 / (1 + exp(worth_j - worth_i)).

    Parameters
    ----------
    worths : Series or array_like, shape (m,)
        Items with larger worths are preferred; only differences matter. The index of a Series names
        the items.

    Raises
    ------
    ValueError, TypeError
        If the worths are not at least two finite numbers.

    See Also
    --------
    privrank.Mallows : Mallows model for rankings.
    privrank.simulate.bradley_terry : Draw paired comparisons from the Bradley-Terry model.

    Notes
    -----
    **Statistic.** Adding independent standard Gumbel variables to the worths and sorting gives
    exactly this distribution.

    References
    ----------
    Plackett (1975), https://doi.org/10.2307/2346567; Yellott (1977),
    https://doi.org/10.1016/0022-2496(77)90026-8.

    Examples
    --------
    >>> import numpy as np
    >>> from privrank import PlackettLuce
    >>> model = PlackettLuce([1.0, 0.0, -1.0])
    >>> model.rvs(2, np.random.default_rng(1)).shape
    (2, 3)
    """

    worths: FloatArray
    items: pd.Index

    def __init__(self, worths: pd.Series | ArrayLike) -> None:
        values, items = _check_worths(worths)
        object.__setattr__(self, "worths", readonly_copy(values))
        object.__setattr__(self, "items", items)

    def __repr__(self) -> str:
        return f"PlackettLuce({len(self.worths)} items)"

    def rvs(self, size: int = 1, rng: np.random.Generator | None = None) -> IntArray:
        """Draw rankings.

        Parameters
        ----------
        size : int
            Number of rankings n.
        rng : numpy.random.Generator or None
            None for fresh entropy.

        Returns
        -------
        ndarray of int64, shape (n, m)
            Ranks, 1 for the best; one row per ranking, one column per item.

        See Also
        --------
        privrank.simulate.bradley_terry : Draw paired comparisons from the Bradley-Terry model.

        Examples
        --------
        >>> model.rvs(3, np.random.default_rng(1))
        array([[1, 3, 2],
               [2, 1, 3],
               [2, 1, 3]])
        """
        n = check_count("size", size)
        m = len(self.worths)
        source = generator(rng)
        return np.concatenate(
            [
                ranks_of_scores(self.worths + source.gumbel(size=(rows.stop - rows.start, m)))
                for rows in batches(n, m)
            ]
        )


def bradley_terry(
    worths: pd.Series | ArrayLike,
    *,
    repeats: int = 1,
    share: float = 1.0,
    link: str | Link = "logit",
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Draw paired comparisons from the Bradley-Terry model, without ties.

    Parameters
    ----------
    worths : Series or array_like, shape (m,)
        P(item1 preferred to item2) = F(worth1 - worth2), where F is the distribution function of
        the link.
    repeats : int, default 1
        Number of comparisons planned for every pair.
    share : float in (0, 1], default 1.0
        Probability that a planned comparison is made, independently of the others.
    link : {"logit", "probit"} or Link, default "logit"
        Link function (see :class:`privrank.PrivateBTL`); ``"probit"`` is Thurstone's model.
    rng : numpy.random.Generator or None
        None for fresh entropy.

    Returns
    -------
    DataFrame
        One row per comparison with `item1`, `item2` and `outcome` (1 or -1), pair by pair in the
        order of the items. Items are the index of a Series, or 0..m-1.

    Raises
    ------
    ValueError, TypeError
        If an argument is outside its range.

    See Also
    --------
    privrank.PlackettLuce : Plackett-Luce model for rankings.
    privrank.PrivateBTL : Bradley-Terry model for paired comparisons.

    References
    ----------
    Bradley and Terry (1952), https://doi.org/10.2307/2334029.

    Examples
    --------
    >>> import numpy as np
    >>> from privrank import simulate
    >>> frame = simulate.bradley_terry([1.0, 0.0], repeats=3, rng=np.random.default_rng(1))
    >>> list(frame.columns), len(frame)
    (['item1', 'item2', 'outcome'], 3)
    """
    values, items = _check_worths(worths)
    times = check_count("repeats", repeats)
    check_number("share", share, 0, 1, "(]")
    distribution = find(link)
    source = generator(rng)
    pairs = np.repeat(np.triu_indices(len(values), 1), times, axis=1)
    # drawn even for share = 1, so the random stream of a study does not depend on its settings
    first, second = pairs[:, source.random(pairs.shape[1]) < share]
    probability = distribution.probability(values[first] - values[second])
    return pd.DataFrame(
        {
            "item1": items[first],
            "item2": items[second],
            "outcome": np.where(source.random(len(first)) < probability, 1, -1),
        }
    )


def __dir__() -> list[str]:
    return __all__
