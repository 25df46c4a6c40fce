"""Power of Bradley-Terry fits and of top-k selections."""

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
"""Largest difference of two worths in a search: a preference probability of 0.9975."""

MAX_GAP = 4.0
"""Largest gap in a search."""


@dataclass(frozen=True, kw_only=True)
class BTLPower(ComparisonPower):
    """Power and sample size for PrivateBTL.

    Parameters
    ----------
    items : int or sequence of str
        The items, or their number.
    max_rows : int, default 1
        Number of comparisons per respondent, of different pairs drawn at random.
    unit : {"respondent", "row"}
        The unit of `nobs` and of privacy; a row is one comparison.
    design, ties
        See :class:`privrank.PrivateBTL`. Under a private design pair counts are released. With
        ``ties="davidson"`` some answers are ties; in all other cases all simulated answers are
        decided.
    tie_rate : float, default 0.1
        Probability that two items of equal worth tie, with ``ties="davidson"``.
    method, dependence
        See :meth:`privrank.PrivateBTL.fit`.
    worths : float or sequence of float, optional
        Worths of the other items, relative to the mean of the two compared items: one for each, or
        one number, the width of a range of equally spaced worths. By default all are at the mean.
    mode : {"central", "local"}
        ``"local"``: local reports of :class:`privrank.local.Comparisons`, one per respondent.
    replicates : int, default 200
        Number of simulated surveys.
    n_jobs : int, default 1
        Number of processes; -1 for the number of cores. It does not affect the result.

    See Also
    --------
    privrank.PrivateBTL : The model.
    privrank.power.TopKPower : Power and sample size for PrivateTopK.

    Notes
    -----
    Complete fits are simulated: answers are drawn, counted, released with the plan and noise of a
    fit, and analysed by the same code. The predictions therefore agree with fits up to the Monte
    Carlo error. A survey whose comparisons do not connect all items counts as no detection, because
    its fit is refused.

    The effect is a ``contrast``: the difference of the two worths on the logit scale. It is
    log(p / (1 - p)) if one item is preferred with probability p. `power` is the fraction of fits
    whose score test rejects a difference of 0, or equivalently whose interval excludes 0. The
    contrast detected with power 1/2 is therefore the half width of intervals.
    `docs/validation/power_models.md` compares the predictions with fits of simulated surveys.

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
        """Refuse an invalid plan."""
        super().__post_init__()
        check_ties(self.ties, decided=False, facts=None)
        if not (is_number(self.tie_rate) and 0 < self.tie_rate < 1):
            raise ValueError(
                "tie_rate must be a probability between 0 and 1: the probability of a tie between "
                "two items of equal worth."
            )
        self._worths(0.0)

    @property
    def _tie_parameter(self) -> float | None:
        if self.ties != "davidson":
            return None
        # for two equal items the tie rate is nu / (2 + nu)
        return math.log(2.0 * self.tie_rate / (1.0 - self.tie_rate))

    def _worths(self, contrast: float) -> FloatArray:
        """Return the worths, beginning with the two compared items."""
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
    """Power and sample size for PrivateTopK.

    Parameters
    ----------
    items : int or sequence of str
        The items, or their number.
    k : int
        Size of the set.
    max_rows, unit, design, ties, mode, replicates, n_jobs
        See :class:`privrank.power.BTLPower`.
    target, dependence
        See :meth:`privrank.PrivateTopK.fit`.
    worths : sequence of float, optional
        Worths of all items, the best first; the gap of the effect replaces their gap below the
        k-th. By default the top k have one worth and the rest another, so all pairs across the gap
        are equally hard to separate.
    aim : {"separated", "right"}
        The event whose probability is the power. ``"separated"``: the correct set is selected and
        its separation p-value is at most `alpha`. ``"right"``: the correct set is selected.

    See Also
    --------
    privrank.PrivateTopK : The selection.

    Notes
    -----
    The effect is a ``gap``: the difference of the worths of the k-th item and the next on the logit
    scale. `power` is the fraction of simulated fits in which the event of `aim` occurs. Answers,
    release, noise and inference are the same as in a fit. `docs/validation/power_models.md`
    compares the predictions with fits of simulated surveys.

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
        """Refuse an invalid plan."""
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
                f"worths must be {m} numbers in decreasing order, the best item first. Sort them."
            )
        # the top k move together, and so do the others: only the gap between them changes
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
            raise ValueError(
                f"gap must not be negative, got {gap:g}: the k-th item is the better one."
            )
        return gap

    def _finds(self, release: Release, alpha: float) -> bool:
        """Return whether a fit selects the best k, and separates them if `aim` requires it."""
        result = topk.infer_topk(release, k=self.k, target=self.target)
        right = set(result.selected) == set(result.items[: self.k])
        return right and (self.aim == "right" or result.pvalue <= alpha)

    def _effect_range(self, at: DesignPoint) -> tuple[float, float, float]:
        return 0.3, 1e-3, MAX_GAP
