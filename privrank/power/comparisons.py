"""Planning a Bradley-Terry fit: the error of a difference of worths, and whether it is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.inversion import pvalues
from privrank.local.protocols import Asking
from privrank.planning.simulation import Outcome, all_of, share_of
from privrank.plans.choice import Choice
from privrank.plans.comparisons import Method, plan_fit
from privrank.plans.dependence import Dependence
from privrank.power.base import Dependent, Estimate, Point, Power, Range
from privrank.power.fits import Fits
from privrank.power.stated import check_work
from privrank.power.surveys import Answers, Mode, PairsKnown, Survey, least_and_most, survey_of
from privrank.privacy.budget import Unit
from privrank.release.survey import Design, DesignKind
from privrank.util.checks import as_numbers, check_choice, check_flag, is_number, quoted
from privrank.util.workers import Workers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BTLPower"]

FloatArray = NDArray[np.float64]

MOST_CONTRAST = 6.0
"""Largest difference of two worths that is looked for: a probability of .9975."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BTLPower(Power):
    """Plan a Bradley-Terry fit: how surely two items are told apart, and the error of a difference.

    Parameters
    ----------
    items : int or sequence of str
        The items, or their number.
    max_rows : int, default 1
        Comparisons that each respondent makes, of different pairs drawn at random.
    unit : {"respondent", "row"}
        What `nobs` counts and epsilon protects; a row is one comparison.
    design, pair_counts, ties
        As for :class:`privrank.PrivateBTL`; ``pair_counts`` is ``"release"`` or ``"equal"``.
    method, dependence
        As for :meth:`privrank.PrivateBTL.fit`.
    worths : float or sequence of float, optional
        Worths of the other items, beside the middle of the two that are compared: one for each, or
        one number over whose range they are spread evenly. Without it all are in the middle.
    answers : {"usual", "rankings", "independent"} or float, default "usual"
        How a respondent's answers go together. ``"rankings"``: as those of people who have an order
        of all items in mind; ``"independent"``: not at all; ``"usual"``: half way. A number is the
        design effect, how many times as much answers vary as independent ones, at most `max_rows`.
        Every answer of a plan says the design effect that it was found for.
    simultaneous : bool, default False
        Whether all pairs are judged at once, as for ranks (Bonferroni).
    mode : {"central", "local"}
        ``"local"``: reports of :class:`privrank.local.Comparisons`, one of each respondent.
    protocol : Protocol, optional
        A protocol of the local model that asks for one of all pairs; its epsilon is that which is
        asked about.
    replicates : int, default 100
        Fits that are simulated.
    n_jobs : int, default 1
        Processes; -1 for as many as there are cores. The answer is the same for any number.

    Notes
    -----
    Whole fits are simulated: answers are drawn, released by the plan of a fit with its noise, and
    read by the code that reads releases, so that what is predicted is what fits give, up to the
    Monte Carlo error. Of a survey with many more answers than pairs, some respondents are drawn,
    and errors are scaled to its size. Surveys whose comparisons do not connect all items find
    nothing, as their fits are refused.

    `power` is the share of fits whose score test rejects a difference of 0. Its error is made
    smaller by a control variate: how far answers and noise move the difference to first order, of
    which the distribution is known. `standard_error` is the median of what fits print.
    `docs/validation/power_models.md` compares both with fits of simulated surveys.

    Examples
    --------
    >>> import privrank as pr
    >>> plan = pr.power.BTLPower(items=6, max_rows=15, design="public")
    >>> round(plan.power(nobs=200, epsilon=1.0, contrast=0.4), 1)
    0.8
    """

    items: int | Sequence[str] = field(kw_only=False)
    max_rows: int = 1
    unit: Unit = "respondent"
    design: DesignKind = "private"
    pair_counts: PairsKnown = "release"
    ties: bool = False
    method: Method = "auto"
    dependence: Dependence = "auto"
    worths: float | Sequence[float] | None = None
    answers: Answers | float = "usual"
    simultaneous: bool = False
    mode: Mode = "central"
    protocol: Asking | None = None
    replicates: int = 100
    n_jobs: int = 1

    def __post_init__(self) -> None:
        """Refuse what is no survey, before anything is asked."""
        check_choice("method", self.method, Method)
        check_choice("dependence", self.dependence, Dependence)
        check_flag("simultaneous", self.simultaneous)
        check_work(self.replicates, self.n_jobs)
        self._worths(0.0)
        self._survey()

    def _survey(self) -> Survey:
        return survey_of(self)

    def _worths(self, contrast: float) -> FloatArray:
        """Return the worths, those of the two items that are compared first."""
        return np.concatenate(
            (
                [0.5 * abs(contrast), -0.5 * abs(contrast)],
                spread(self.worths, survey_of(self).items, 2),
            )
        )

    def _choice(self, design: Design, epsilon: float, delta: float) -> Choice:
        return plan_fit(design, epsilon, self.method, None, self.dependence, None, delta=delta)

    def _fits(self, at: Point) -> Fits:
        survey = self._survey()
        return Fits(*survey.planned(at, self._choice), self._worths(at.effect), survey.effect)

    def _measure(self, at: Point, replicates: int, workers: Workers) -> tuple[float, float]:
        m = len(self._survey().items)
        level = at.alpha / (m * (m - 1) // 2 if self.simultaneous else 1)
        one = partial(_outcome, self._fits(at), level)
        return share_of(one, replicates, workers, "fits")

    def _range(self, name: Dependent, at: Point) -> Range:
        if name == "effect":
            return Range(0.5, 1e-3, MOST_CONTRAST)
        return least_and_most(name, self._survey().protocol is not None)

    @property
    def _counted(self) -> str:
        return self._survey().units

    @property
    def _caption(self) -> str:
        return "Two items told apart by their worths"

    @property
    def _assumes(self) -> str:
        return self._survey().assumes

    @property
    def _effect_words(self) -> str:
        return "contrast ="

    def power(
        self,
        nobs: int,
        epsilon: float,
        contrast: float | None = None,
        *,
        win_probability: float | None = None,
        delta: float = 0.0,
        alpha: float = 0.05,
    ) -> Estimate:
        """Return the probability that the interval of the difference will leave out 0.

        Parameters
        ----------
        nobs : int
            Units: respondents, or comparisons for ``unit="row"``.
        epsilon, delta : float
            The guarantee; ``numpy.inf`` for the non-private fit.
        contrast : float, optional
            Difference of the two worths, on the scale of the logit.
        win_probability : float, optional
            In its place: the probability that the one is preferred to the other.
        alpha : float, default 0.05
            Level of the interval.

        Returns
        -------
        Estimate
        """
        effect = _effect(contrast, win_probability)
        return self._predict(nobs=nobs, epsilon=epsilon, effect=effect, delta=delta, alpha=alpha)

    def standard_error(
        self, nobs: int, epsilon: float, contrast: float = 0.0, *, delta: float = 0.0
    ) -> Estimate:
        """Return the median of the standard errors of the difference that fits will print.

        Infinite where half of them and more would be refused, as comparisons do not connect all
        items.

        Parameters
        ----------
        nobs, epsilon, contrast, delta
            As for `power`.

        Returns
        -------
        Estimate
        """
        at = self._given({"nobs": nobs, "epsilon": epsilon, "effect": contrast, "delta": delta})
        one = partial(_standard_error, self._fits(at))
        found = all_of(one, self.replicates, Workers(self.n_jobs), "fits")
        return Estimate(*median_of(found), assumes=self._assumes)

    def solve_power(
        self,
        nobs: int | None = None,
        epsilon: float | None = None,
        contrast: float | None = None,
        power: float | None = None,
        *,
        win_probability: float | None = None,
        delta: float = 0.0,
        alpha: float = 0.05,
    ) -> Estimate:
        """Return the one of nobs, epsilon, the contrast and the power that is left out.

        Parameters
        ----------
        nobs, epsilon, contrast, win_probability, delta, alpha
            As for `power`.
        power : float, optional
            The probability that is wanted.

        Returns
        -------
        Estimate
            A number with its error; an effect that is found is a contrast.
        """
        effect = _effect(contrast, win_probability)
        return self._solve(
            power, nobs=nobs, epsilon=epsilon, effect=effect, delta=delta, alpha=alpha
        )

    def plot_power(
        self,
        dep_var: Dependent = "nobs",
        nobs: int | Sequence[int] | None = None,
        epsilon: float | Sequence[float] | None = None,
        contrast: float | Sequence[float] | None = None,
        *,
        delta: float = 0.0,
        alpha: float = 0.05,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw the power against one of nobs, epsilon and the contrast.

        Parameters
        ----------
        dep_var : {"nobs", "epsilon", "effect"}
            What is on the horizontal axis; it has a list of numbers.
        nobs, epsilon, contrast : number or sequence of numbers
            One of the others may be a list, too: each of its numbers has a line.
        delta, alpha : float
            As for `power`.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        Figure
        """
        at: dict[str, Any] = {"nobs": nobs, "epsilon": epsilon, "effect": contrast}
        return self._plot(dep_var, ax, **at, delta=delta, alpha=alpha)


def spread(worths: object, items: Sequence[str], named: int) -> FloatArray:
    """Return the worths of all items but so many that are named, or refuse."""
    left = len(items) - named
    if worths is None:
        return np.zeros(left)
    found = as_numbers(worths)
    if is_number(worths) and left:
        found = np.linspace(0.5, -0.5, left) * float(worths) if left > 1 else np.zeros(1)
    if found is None or found.shape != (left,) or not np.isfinite(found).all():
        raise ValueError(
            f"worths must be one number, or one for each of the {left} other items: leave it out "
            f"where they are equal."
        )
    return found


def _effect(contrast: float | None, win_probability: float | None) -> float | None:
    """Return the difference of worths that is stated, in one way or the other."""
    if win_probability is None:
        return contrast
    if contrast is not None:
        raise ValueError(
            "contrast and win_probability say the same thing: give one of the two and leave the "
            "other out."
        )
    if not is_number(win_probability) or not 0 < win_probability < 1:
        raise ValueError(
            f"win_probability must lie between 0 and 1, got {quoted(win_probability)}: .6 is that "
            f"of an item that wins six comparisons in ten."
        )
    return math.log(win_probability / (1.0 - win_probability))


def _first_two(items: int) -> FloatArray:
    """Return the contrast of the first two items, shape (1, items)."""
    contrast = np.zeros((1, items))
    contrast[0, :2] = 1.0, -1.0
    return contrast


def _outcome(fits: Fits, level: float, number: int) -> Outcome:
    """Return whether a simulated fit tells the first two items apart at this level."""
    inference, near = fits.fit(number)
    away = np.abs(near[:, 0] - near[:, 1])
    told = inference is not None and pvalues(inference, _first_two(near.shape[1]))[0] <= level
    return Outcome(bool(told), away[0], away[1:])


def _standard_error(fits: Fits, number: int) -> float:
    """Return the standard error of the difference of the first two that a simulated fit prints.

    Infinite where it is refused, or the release does not identify it.
    """
    inference, near = fits.fit(number)
    if inference is None:
        return math.inf
    contrast = _first_two(near.shape[1])
    if not inference.equations.identifies(contrast).all():
        return math.inf
    return math.sqrt((contrast @ inference.errors.total @ contrast.T).item())


def median_of(values: Sequence[float]) -> tuple[float, float]:
    """Return the median and its standard error.

    A quarter of what lies between the values of the ranks two standard deviations, the root of
    their number, to either side; infinite where one of these is.
    """
    ranked, n = np.sort(values), len(values)
    ranks = 0.5 * (n - 1) + math.sqrt(n) * np.array([-1.0, 1.0])
    if math.isinf(ranked[math.ceil(ranks[1])]):
        return float(np.quantile(ranked, 0.5, method="higher")), math.inf
    low, high = np.interp(ranks, np.arange(n), ranked)
    return float(np.median(ranked)), 0.25 * float(high - low)
