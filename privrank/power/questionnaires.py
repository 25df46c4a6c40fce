"""Balanced plans of questionnaires that offer sets of items."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privrank.hypotheses.nulls import public_generator
from privrank.power.base import item_names
from privrank.util.arrays import IntArray
from privrank.util.checks import check_count, check_items, is_number

_STEPS = 20_000
"""Largest number of exchanges that a search tries."""


def balanced_plan(
    items: object, size: int, tasks: int, versions: int = 1, seed: int = 0
) -> pd.DataFrame:
    """Return a balanced plan of questionnaires that offer sets of items.

    Parameters
    ----------
    items : int or sequence of str or int
        The items, or their number; items without names are "0", "1", ... At most 100.
    size : int
        Number of items in each set, at least 2.
    tasks : int
        Number of tasks of each version, at most 100.
    versions : int, default 1
        Number of versions of the questionnaire, at most 10,000.
    seed : int, default 0
        Seed of the search. The plan depends on the arguments alone.

    Returns
    -------
    pandas.DataFrame
        One row per task, with the columns ``version`` and ``task``, both numbered from 1, and
        ``item 1``, ``item 2``, ..., the items of the set in the order in which they are shown. It
        is a plan for ``offered=`` of :func:`privrank.as_choices` and
        :class:`privrank.power.BTLPower`. The columns of items are categorical and declare the
        items.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range or of another type, or `items` are not distinct names.

    See Also
    --------
    privrank.power.BTLPower : Power and sample size of a survey with such a plan.

    Notes
    -----
    The plan uses no data, so it is public and can be printed. In each version the numbers of sets
    with each item differ by at most 1. A search exchanges items between sets, by simulated
    annealing, until the numbers of sets with each pair of items also differ by at most 1. It ends
    after 20,000 attempts in any case, because there may be no such plan. If all numbers of pairs
    are equal, the plan is a balanced incomplete block design, such as the Fano plane (7 items in 7
    sets of 3).

    All versions have the same sets under random names of the items, so over many versions all pairs
    are about equally frequent. The tasks and the items in a set are in random order, because items
    that are shown first may be preferred.

    Examples
    --------
    >>> import privrank as pr
    >>> pr.power.balanced_plan(["tea", "milk", "juice", "water"], size=3, tasks=4)
       version  task item 1 item 2 item 3
    0        1     1    tea  water   milk
    1        1     2    tea  juice  water
    2        1     3   milk  juice  water
    3        1     4    tea   milk  juice
    """
    labels = item_names(items) if is_number(items) else check_items(items)
    m = check_count("items", len(labels), low=2, high=100)
    check_count("size", size, low=2, high=m)
    check_count("tasks", tasks, high=100)
    check_count("versions", versions, high=10_000)
    rng = public_generator("balanced plan", check_count("seed", seed, low=0))
    sets = rng.permutation(_balanced_sets(m, size, tasks, rng))
    # each version has the same sets under other names of the items
    names = rng.permuted(np.tile(np.arange(m), (versions, 1)), axis=1)
    shown = rng.permuted(names[:, sets], axis=2).reshape(-1, size)
    columns = {
        f"item {place}": pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(list(labels)))
        for place, codes in enumerate(shown.T, 1)
    }
    version, task = np.divmod(np.arange(len(shown)), tasks)
    return pd.DataFrame({"version": version + 1, "task": task + 1, **columns})


def _balanced_sets(items: int, size: int, tasks: int, rng: np.random.Generator) -> IntArray:
    """Return sets of items, shape (tasks, size), in which pairs are about equally frequent.

    An exchange that increases the unevenness is accepted with probability exp(-increase /
    temperature). The temperature decreases from 1 to 0.
    """
    # each item is in about equally many of these sets, and exchanges preserve their number
    sets = np.arange(tasks * size).reshape(tasks, size) % items
    uneven = _unevenness(sets, items)
    exchanges = rng.integers((tasks, tasks, size, size), size=(_STEPS, 4))
    rises = rng.exponential(np.linspace(1.0, 0.0, _STEPS))
    for (one, other, leaves, joins), rise in zip(exchanges, rises, strict=True):
        changed = sets.copy()
        changed[[one, other], [leaves, joins]] = sets[[other, one], [joins, leaves]]
        new = _unevenness(changed, items)
        if new <= uneven + rise:
            sets = changed
            uneven = new
        if uneven == 0:
            break
    return sets


def _unevenness(sets: IntArray, items: int) -> float:
    """Return how unequal the numbers of sets with each pair of items are.

    If these numbers have the mean q + f with an integer q and 0 <= f < 1, this is the sum of
    (number - q) (number - q - 1). It is the sum of squares minus a constant, because the sum of the
    numbers is constant. It is 0 if no two numbers differ by more than 1, and infinite if a set
    contains an item twice.
    """
    shows = np.eye(items)[sets].sum(axis=1)
    if shows.max() > 1:
        return np.inf
    pairs = (shows.T @ shows)[np.triu_indices(items, 1)]
    pairs -= pairs.mean() // 1
    return float((pairs * (pairs - 1)).sum())
