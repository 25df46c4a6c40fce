"""Planning worths and selections: is a difference detected, are the top k set apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privrank import btl, topk
from privrank.bradley_terry.linear import display
from privrank.bradley_terry.scoretests import pvalues
from privrank.plans.choice import Choice, check_ties
from privrank.plans.comparisons import (
    Method,
    Request,
    Target,
    plan_fit,
    plan_selection,
)
from privrank.plans.identified import probably_unidentified
from privrank.power.base import DesignPoint
from privrank.power.surveys import ComparisonPower, spread_worths
from privrank.release.release import Release
from privrank.release.survey import Design, without_counts
from privrank.util.arrays import FloatArray
from privrank.util.checks import as_numbers, check_count, is_number

Aim = Literal["separated", "right"]

MAX_CONTRAST = 6.0
"""Largest difference of two worths that is looked for: a probability of .9975."""

MAX_GAP = 4.0
"""Largest gap that is looked for."""


@dataclass(frozen=True, kw_only=True)
class BTLPower(ComparisonPower):
    """Plan a Bradley-Terry fit: how surely a difference is detected.

    Parameters
    ----------
    items : int or sequence of str
        The items, or their number.
    max_rows : int, default 1
        Comparisons that each respondent makes, of different pairs drawn at random.
    unit : {"respondent", "row"}
        What `nobs` counts and epsilon protects; a row is one comparison.
    design, ties
        As for :class:`privrank.PrivateBTL`. Pair counts that are private are released. With
        ``ties="davidson"`` some answers are ties; else all that are simulated are decided.
    tie_rate : float, default 0.1
        Probability that two items of equal worth tie, with ``ties="davidson"``.
    method, dependence
        As for :meth:`privrank.PrivateBTL.fit`.
    worths : float or sequence of float, optional
        Worths of the other items, beside the middle of the two that are compared: one for each, or
        one number over whose range they are spread evenly. Without it all are in the middle.
    mode : {"central", "local"}
        ``"local"``: reports of :class:`privrank.local.Comparisons`, one of each respondent.
    replicates : int, default 200
        Surveys that are simulated.
    n_jobs : int, default 1
        Processes; -1 for as many as there are cores. The answer is the same for any number.

    See Also
    --------
    privrank.PrivateBTL : The model that is planned.
    privrank.power.TopKPower : Plans a selection of the leading items.

    Notes
    -----
    Whole fits are simulated: answers are drawn and counted, released by the plan of a fit with its
    noise, and read by the code that reads releases, so that what is predicted is what fits give, up
    to the Monte Carlo error. Surveys whose comparisons do not connect all items find nothing, as
    their fits are refused.

    An effect is a ``contrast``, the difference of the two worths on the scale of the logit: that of
    an item that is preferred with probability p is log(p / (1 - p)). `power` is the share of fits
    whose score test rejects a difference of 0, so that their interval leaves it out.
    So the contrast that is found with power 1/2 is the half width of intervals.
    `docs/validation/power_models.md` compares plans with fits of simulated surveys.

    Examples
    --------
    >>> import privrank as pr
    >>> plan = pr.power.BTLPower(items=6, max_rows=15, design="public", replicates=100)
    >>> 0.6 < plan.power(nobs=200, epsilon=1.0, contrast=0.4) < 0.9
    True
    """

    method: Method = "auto"
    worths: float | Sequence[float] | None = None
    tie_rate: float = 0.1

    _named = "contrast"
    caption = "Two items separated by their worths"

    def __post_init__(self) -> None:
        """Refuse what is no plan, before anything is asked."""
        super().__post_init__()
        check_ties(self.ties, decided=False, facts=None)
        if not (is_number(self.tie_rate) and 0 < self.tie_rate < 1):
            raise ValueError(
                "tie_rate must be a probability between 0 and 1: it is that of a tie between two "
                "items of equal worth."
            )
        self._worths(0.0)

    @property
    def _tie_parameter(self) -> float | None:
        if self.ties != "davidson":
            return None
        # of two equal items the rate is nu / (2 + nu)
        return math.log(2.0 * self.tie_rate / (1.0 - self.tie_rate))

    def _worths(self, contrast: float) -> FloatArray:
        """Return the worths, those of the two items that are compared first."""
        left = len(self._names) - 2
        half = 0.5 * abs(contrast)
        others = spread_worths(0.0 if self.worths is None else self.worths, left)
        return np.concatenate(([half, -half], others))

    @property
    def _assumption(self) -> str:
        if self.worths is None:
            return "all other items alike"
        return f"other worths over {self.worths:g}" if is_number(self.worths) else ""

    def _choice(self, design: Design, epsilon: float, delta: float) -> Choice:
        return plan_fit(Request(design, epsilon, delta, self.method, dependence=self.dependence))

    def _measure(self, at: DesignPoint, replicates: int) -> tuple[float, float]:
        plan = self._planned(at)
        if plan is not None and probably_unidentified(self._facts(at.nobs, at.epsilon), plan) > 0.5:
            return 0.0, 0.0  # such a fit is refused
        return super()._measure(at, replicates)

    def _finds(self, release: Release, alpha: float) -> bool:
        """Return whether a fit detects the difference of the first two items."""
        table = display(release.design)
        contrast = table[:1] - table[1:2]
        return bool(pvalues(btl.infer(release)._inference(), contrast)[0] <= alpha)

    def _effect_range(self, at: DesignPoint) -> tuple[float, float, float]:
        return 0.5, 1e-3, MAX_CONTRAST


@dataclass(frozen=True, kw_only=True)
class TopKPower(ComparisonPower):
    """Plan a selection of the k most preferred items: how surely they are set apart from the rest.

    Parameters
    ----------
    items : int or sequence of str
        The items, or their number.
    k : int
        Size of the set.
    max_rows, unit, design, ties, mode, replicates, n_jobs
        As for :class:`privrank.power.BTLPower`.
    target, dependence
        As for :meth:`privrank.PrivateTopK.fit`.
    worths : sequence of float, optional
        Worths of all items, the best first; a gap that is asked about takes the place of theirs
        below the k-th. Without it the top k have one worth and the rest another, so that all pairs
        across the gap are as hard to separate.
    aim : {"separated", "right"}
        What `power` is the probability of: that the right set is selected and its separation
        p-value is at most `alpha`, or that the right set is selected.

    See Also
    --------
    privrank.PrivateTopK : The selection that is planned.

    Notes
    -----
    An effect is a ``gap``, the difference of the worths of the k-th item and the next, on the scale
    of the logit. `power` is the share of simulated fits that find what is asked for, as that of
    :class:`privrank.power.BTLPower` is: answers, release, noise and inference are those of a fit.
    `docs/validation/power_models.md` compares it with fits of simulated surveys.

    Examples
    --------
    >>> import privrank as pr
    >>> plan = pr.power.TopKPower(items=6, k=2, max_rows=15, design="public", replicates=50)
    >>> 0.4 < plan.power(nobs=300, epsilon=1.0, gap=0.35) < 0.8
    True
    """

    k: int
    target: Target = "auto"
    ties: bool = False
    worths: Sequence[float] | None = None
    aim: Aim = "separated"

    _named = "gap"
    caption = "Top {k} {aim}"

    def __post_init__(self) -> None:
        """Refuse what is no plan, before anything is asked."""
        super().__post_init__()
        check_count("k", self.k, high=len(self._names) - 1)
        self._worths(0.0)

    def _worths(self, gap: float) -> FloatArray:
        """Return the worths as stated, the best first, with this gap below the k-th."""
        m = len(self._names)
        worths = np.zeros(m) if self.worths is None else as_numbers(self.worths)
        usable = worths is not None and worths.shape == (m,) and np.isfinite(worths).all()
        if worths is None or not usable or (np.diff(worths) > 0).any():
            raise ValueError(
                f"worths must be {m} numbers that do not rise, the best item first: sort them."
            )
        # the top k move together and so do the others: only the gap between them changes
        worths = worths - worths[self.k]
        worths[: self.k] += gap - worths[self.k - 1]
        return np.asarray(worths - worths.mean())

    @property
    def _assumption(self) -> str:
        return "items alike on either side" if self.worths is None else ""

    def _facts(self, nobs: int, epsilon: float) -> Design:
        return without_counts(super()._facts(nobs, epsilon))

    def _choice(self, design: Design, epsilon: float, delta: float) -> Choice:
        return plan_selection(
            Request(design, epsilon, delta, dependence=self.dependence), self.target
        )

    def _read(self, value: Any) -> float:
        gap = super()._read(value)
        if gap < 0:
            raise ValueError(f"gap must not be negative, got {gap:g}: the k-th item is the better.")
        return gap

    def _finds(self, release: Release, alpha: float) -> bool:
        """Return whether a fit selects the best k, and separates them if asked to."""
        result = topk.infer_topk(release, k=self.k, target=self.target)
        right = set(result.selected) == set(result.items[: self.k])
        return right and (self.aim == "right" or result.pvalue <= alpha)

    def _effect_range(self, at: DesignPoint) -> tuple[float, float, float]:
        return 0.3, 1e-3, MAX_GAP
