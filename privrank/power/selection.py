"""Planning a selection: how surely the top k is set apart from the rest, or is the right one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from privrank.local.protocols import Asking
from privrank.planning.simulation import Outcome, share_of
from privrank.plans.choice import Choice
from privrank.plans.comparisons import plan_selection
from privrank.plans.dependence import Dependence
from privrank.power.base import Dependent, Estimate, Point, Power, Range
from privrank.power.fits import Fits
from privrank.power.stated import check_work
from privrank.power.surveys import Answers, Mode, PairsKnown, Survey, least_and_most, survey_of
from privrank.privacy.budget import Unit
from privrank.release.survey import Design, DesignKind
from privrank.topk import infer
from privrank.util.checks import as_numbers, check_choice, check_count
from privrank.util.workers import Workers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Aim", "TopKPower"]

FloatArray = NDArray[np.float64]

Aim = Literal["separated", "right"]

MOST_GAP = 4.0
"""Largest difference of worths that is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKPower(Power):
    """Plan a selection of the k most preferred items: how surely they are set apart from the rest.

    Parameters
    ----------
    items : int or sequence of str
        The items, or their number.
    k : int
        Size of the set.
    max_rows, unit, design, pair_counts, ties, answers, mode, protocol
        As for :class:`privrank.power.BTLPower`.
    dependence
        As for :meth:`privrank.PrivateTopK.fit`.
    worths : sequence of float, optional
        Worths of all items, the best first; a gap that is asked about takes the place of theirs
        below the k-th. Without it the top k have one worth and the rest another, so that all pairs
        across the gap are as hard to tell apart.
    aim : {"separated", "right"}
        What `power` is the probability of: that the right set is selected and its separation
        p-value is at most `alpha`, or that the right set is selected.
    replicates : int, default 100
        Fits that are simulated.
    n_jobs : int, default 1
        Processes; -1 for as many as there are cores. The answer is the same for any number.

    Notes
    -----
    `power` is the share of simulated fits that find what is asked for, as that of
    :class:`privrank.power.BTLPower` is: answers, release, noise and inference are those of a fit.
    `docs/validation/power_models.md` compares it with fits of simulated surveys.

    Examples
    --------
    Can the top two of six be told from the rest with 200 people at epsilon 1?

    >>> import privrank as pr
    >>> plan = pr.power.TopKPower(items=6, k=2, max_rows=15)
    >>> round(plan.power(nobs=200, epsilon=1.0, gap=0.3), 2)
    0.01

    How many people would do?

    >>> 510 < plan.solve_power(epsilon=1.0, gap=0.3, power=0.8) < 620
    True
    """

    items: int | Sequence[str] = field(kw_only=False)
    k: int = field(kw_only=False)
    max_rows: int = 1
    unit: Unit = "respondent"
    design: DesignKind = "private"
    pair_counts: PairsKnown = "release"
    ties: bool = False
    dependence: Dependence = "auto"
    worths: Sequence[float] | None = None
    answers: Answers | float = "usual"
    aim: Aim = "separated"
    mode: Mode = "central"
    protocol: Asking | None = None
    replicates: int = 100
    n_jobs: int = 1

    def __post_init__(self) -> None:
        """Refuse what is no survey, before anything is asked."""
        check_choice("dependence", self.dependence, Dependence)
        check_choice("aim", self.aim, Aim)
        check_work(self.replicates, self.n_jobs)
        m = len(self._survey().items)
        check_count("k", self.k, high=m - 1)
        self._stated()

    def _survey(self) -> Survey:
        return survey_of(self)

    def _stated(self) -> FloatArray:
        """Return the worths as stated, the best first."""
        m = len(self._survey().items)
        if self.worths is None:
            return np.zeros(m)
        stated = as_numbers(self.worths)
        if (
            stated is None
            or stated.shape != (m,)
            or not np.isfinite(stated).all()
            or (np.diff(stated) > 0).any()
        ):
            raise ValueError(
                f"worths must be {m} numbers that do not rise, the best item first: sort them."
            )
        return stated

    def _worths(self, gap: float) -> FloatArray:
        """Return them with this gap below the k-th."""
        worths = self._stated()
        worths = worths - worths[self.k]
        worths[: self.k] += gap - worths[self.k - 1]
        return np.asarray(worths - worths.mean())

    def _finite(self, effect: object) -> float:
        gap = super(TopKPower, self)._finite(effect)
        if gap < 0:
            raise ValueError(f"gap must not be negative, got {gap:g}: the k-th item is the better.")
        return gap

    def _choice(self, design: Design, epsilon: float, delta: float) -> Choice:
        return plan_selection(design, epsilon, delta, dependence=self.dependence)

    def _measure(self, at: Point, replicates: int, workers: Workers) -> tuple[float, float]:
        survey = self._survey()
        fits = Fits(*survey.planned(at, self._choice), self._worths(at.effect), survey.effect)
        level = at.alpha if self.aim == "separated" else 1.0
        return share_of(partial(_outcome, fits, self.k, level), replicates, workers, "fits")

    def _range(self, name: Dependent, at: Point) -> Range:
        if name == "effect":
            return Range(0.3, 1e-3, MOST_GAP)
        return least_and_most(name, self._survey().protocol is not None)

    @property
    def _counted(self) -> str:
        return self._survey().units

    @property
    def _caption(self) -> str:
        verb = "separated" if self.aim == "separated" else "selected"
        return f"Top {self.k} {verb}"

    @property
    def _assumes(self) -> str:
        return self._survey().assumes

    @property
    def _effect_words(self) -> str:
        return "gap ="

    def power(
        self,
        nobs: int,
        epsilon: float,
        gap: float | None = None,
        *,
        delta: float = 0.0,
        alpha: float = 0.05,
    ) -> Estimate:
        """Return the probability that the top k will be set apart, or be the right set.

        Parameters
        ----------
        nobs : int
            Units: respondents, or comparisons for ``unit="row"``.
        epsilon, delta : float
            The guarantee; ``numpy.inf`` for the non-private selection.
        gap : float, optional
            Difference of the worths of the k-th item and the next, on the scale of the logit; may
            be left out where `worths` are given, which have one.
        alpha : float, default 0.05
            Level of the separation.

        Returns
        -------
        Estimate
        """
        if gap is None and self.worths is not None:
            above, below = self._stated()[self.k - 1 : self.k + 1].tolist()
            gap = above - below
        return self._predict(nobs=nobs, epsilon=epsilon, effect=gap, delta=delta, alpha=alpha)

    def solve_power(
        self,
        nobs: int | None = None,
        epsilon: float | None = None,
        gap: float | None = None,
        power: float | None = None,
        *,
        delta: float = 0.0,
        alpha: float = 0.05,
    ) -> Estimate:
        """Return the one of nobs, epsilon, the gap and the power that is left out.

        Parameters
        ----------
        nobs, epsilon, gap, delta, alpha
            As for `power`; a gap that is left out is looked for.
        power : float, optional
            The probability that is wanted.

        Returns
        -------
        Estimate
            A number with its Monte Carlo error.
        """
        return self._solve(power, nobs=nobs, epsilon=epsilon, effect=gap, delta=delta, alpha=alpha)

    def plot_power(
        self,
        dep_var: Dependent = "nobs",
        nobs: int | Sequence[int] | None = None,
        epsilon: float | Sequence[float] | None = None,
        gap: float | Sequence[float] | None = None,
        *,
        delta: float = 0.0,
        alpha: float = 0.05,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw the power against one of nobs, epsilon and the gap.

        Parameters
        ----------
        dep_var : {"nobs", "epsilon", "effect"}
            What is on the horizontal axis; it has a list of numbers.
        nobs, epsilon, gap : number or sequence of numbers
            One of the others may be a list, too: each of its numbers has a line.
        delta, alpha : float
            As for `power`.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        Figure
        """
        at: dict[str, Any] = {"nobs": nobs, "epsilon": epsilon, "effect": gap}
        return self._plot(dep_var, ax, **at, delta=delta, alpha=alpha)


def _outcome(fits: Fits, k: int, level: float, number: int) -> Outcome:
    """Return whether a simulated fit selects the best k, with a p-value of at most this level."""
    release, near = fits.release(number)
    gaps = near[:, :k].min(axis=1) - near[:, k:].max(axis=1)
    if release is None:
        return Outcome(False, gaps[0], gaps[1:])
    result = infer(release, k=k)
    right = set(result.selected) == set(result.items[:k])
    return Outcome(right and (level >= 1.0 or result.pvalue <= level), gaps[0], gaps[1:])
