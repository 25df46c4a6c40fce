"""What a fit of paired comparisons may release, and which noise would disturb it least.

All from public numbers; the noise of a choice is calibrated afterwards. Also what is declared,
rather than released, of who compared what.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from pandas.api.types import is_complex_dtype, is_numeric_dtype

from privrank.distributions.links import LOGIT, Link
from privrank.privacy.budget import pure_epsilon
from privrank.privacy.netnoise import MOST_ITEMS, NetNoise, NoiseName, net_noise
from privrank.privacy.sensitivity import UnitSensitivity
from privrank.release.names import GROUP_ANSWERS, ORDER_EFFECT, PAIR_COUNTS
from privrank.release.plan import equivalent_variance
from privrank.release.release import Mechanism
from privrank.release.survey import Design, DesignKind, Excess, PairCounts
from privrank.util.checks import check_choice

__all__ = [
    "BALANCED",
    "DEFAULT_SHARES",
    "LEAST_RIDGE",
    "OUTPUT",
    "Choice",
    "PairCountChoice",
    "check_excess",
    "declared_pairs",
    "deviation",
    "noise_choices",
]

OUTPUT = "output"

LEAST_RIDGE = 1 / 200
"""Least ridge of objective perturbation, over its noise scale."""

DEFAULT_SHARES = {
    OUTPUT: 0.01,
    ORDER_EFFECT: 0.15,
}
"""Default shares of epsilon for the side releases of a fit."""

BALANCED = (PAIR_COUNTS, GROUP_ANSWERS)
"""Side releases whose shares are chosen so that they and the net wins err least together."""


PairCountChoice = Literal["release", "equal"]

MOST_ITEMS_COMPLETE = 3000
"""Beyond this a table of all pairs is too large to assume or to release."""

LEAST_COUNT, MOST_COUNT = 1e-6, 1e15
"""Declared comparisons of a pair, which may be expected ones."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a fit is going to release, before noise is calibrated for it.

    Parameters
    ----------
    mechanism : {"net wins", "win matrix", "objective perturbation"}
        The main release.
    shares : mapping of str to float
        Shares of epsilon of the side releases that are wanted: ``"dependence"``,
        ``"pair_counts"``, ``"output"``, ``"group_answers"``, ``"order_effect"``.
    gamma : float
        Ridge of objective perturbation.
    form : {"worst", "pairs", "none", "cluster"}
        What is released of the dependence of a respondent's answers; ``"cluster"`` are the moments
        that the non-private run keeps.
    noise : str
        Distribution of the noise on net wins or on the win matrix.
    link : Link
        Link of the model. What is released depends on it under objective perturbation, and in the
        non-private run, which keeps the wins of every pair met where the link is not the logit.
    """

    mechanism: Mechanism
    shares: Mapping[str, float] = field(default_factory=dict)
    gamma: float = 0.0
    form: Literal["worst", "pairs", "none", "cluster"] = "none"
    noise: NoiseName = "laplace"
    link: Link = LOGIT


def deviation(noise: NetNoise, items: int) -> float:
    """Return the standard deviation, in net wins, of independent noise that harms as much.

    Only differences between items count.
    """
    return math.sqrt(equivalent_variance(noise.distribution, items)) / noise.fineness


def noise_choices(
    sensitivity: UnitSensitivity, epsilon: float, delta: float, share: float = 1.0
) -> tuple[NetNoise, ...]:
    """Return the noise of every distribution that applies, the least harmful first.

    Given the guarantee of a fit and the share of epsilon that goes to the net wins.
    """
    found = []
    for name in get_args(NoiseName):
        if sensitivity.items > MOST_ITEMS.get(name, sensitivity.items) or (
            name == "gaussian" and delta == 0
        ):
            continue
        whole = epsilon if name == "gaussian" else pure_epsilon(epsilon, delta)
        try:
            found.append(net_noise(sensitivity, name, share * whole, delta))
        except ValueError:
            # an epsilon so small that this distribution would not fit its integers
            if name == "laplace":
                raise
    return tuple(sorted(found, key=lambda noise: deviation(noise, sensitivity.items)))


def check_excess(excess: object, respondent: str | None, kind: DesignKind) -> Excess:
    """Return what is done about rows beyond the bounds; refuse a draw that cannot stay secret."""
    chosen: Excess = check_choice("excess", excess, Excess)
    if chosen == "sample" and respondent is None:
        raise ValueError(
            "excess='sample' draws among the rows of a respondent: name the column that says whose "
            "they are with respondent=, or leave excess= out."
        )
    if chosen == "sample" and kind == "public":
        raise ValueError(
            "excess='sample' needs design='private', because which rows are kept has to stay "
            "secret: use that, or choose each respondent's rows by a rule that was fixed before "
            "the answers were known."
        )
    return chosen


def declared_pairs(
    facts: Design, pair_counts: object, labels: tuple[Any, ...]
) -> PairCounts | None:
    """Return the comparisons per pair that are declared under a private design.

    None where they are to be released.
    """
    m = len(labels)
    if pair_counts is None or isinstance(pair_counts, str):
        choice = "release" if pair_counts is None else pair_counts
        check_choice("pair_counts", choice, PairCountChoice)
        if m > MOST_ITEMS_COMPLETE:
            raise ValueError(
                f"pair_counts must be declared as a table for more than {MOST_ITEMS_COMPLETE} "
                f"items under a private design: a complete table of pairs would be too large."
            )
        if choice == "release":
            return None
        return PairCounts.equal(
            m, facts.nobs * facts.sensitivity.effective_rows / facts.sensitivity.pairs
        )
    return _read_pairs(pair_counts, labels)


def _read_pairs(table: object, labels: tuple[Any, ...]) -> PairCounts:
    """Read a declared table of comparisons per pair: a mapping or a frame item1, item2, count."""
    rule = (
        "pair_counts must be 'release', 'equal', a mapping {(item, item): count} or a data frame "
        "with columns item1, item2, count over the declared items, each pair once, counts positive"
    )
    if isinstance(table, Mapping):
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in table):
            raise ValueError(f"{rule}.")
        table = pd.DataFrame(
            [(*pair, count) for pair, count in table.items()], columns=["item1", "item2", "count"]
        )
    if not isinstance(table, pd.DataFrame) or not {"item1", "item2", "count"} <= set(table.columns):
        raise ValueError(f"{rule}.")
    names = list(table.columns)
    if any(names.count(name) > 1 for name in ("item1", "item2", "count")):
        raise ValueError(f"{rule}.")
    index = pd.Index(labels)
    first, second = (index.get_indexer(pd.Index(table[name])) for name in ("item1", "item2"))
    try:
        numbers = pd.to_numeric(table["count"], errors="coerce")
    except OverflowError:  # of whole numbers beyond all floats, which the message must not quote
        numbers = pd.Series(dtype=object)
    if not is_numeric_dtype(numbers) or is_complex_dtype(numbers):
        raise ValueError(f"{rule}.")
    count = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    low, high = np.minimum(first, second), np.maximum(first, second)
    cells = low * len(labels) + high
    if not (
        len(count)
        and (low >= 0).all()
        and (low < high).all()
        and (count >= LEAST_COUNT).all()
        and (count <= MOST_COUNT).all()
        and len(np.unique(cells)) == len(cells)
    ):
        raise ValueError(f"{rule}.")
    order = np.argsort(cells)
    return PairCounts(low[order], high[order], count[order], "declared")
