"""Planning a Bradley-Terry fit: the error of a difference of worths, and whether it is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privrank.bradley_terry.errors import Components, NoisyErrors
from privrank.bradley_terry.inversion import zero_tests
from privrank.local.protocols import Asking
from privrank.planning.choice import Choice
from privrank.planning.comparisons import Method, plan_fit
from privrank.planning.dependence import Dependence
from privrank.power.base import Dependent, Estimate, Point, Power, Range
from privrank.power.surveys import Expected, Mode, PairsKnown, Survey, least_and_most, survey_of
from privrank.privacy.budget import Unit
from privrank.release.survey import Design, DesignKind
from privrank.util.checks import as_numbers, check_choice, check_flag, is_number, quoted
from privrank.util.workers import Workers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BTLPower"]

FloatArray = NDArray[np.float64]

_LEVELS, _QUANTILES = 13, 65
"""Estimated variances at which power is computed, and quantiles of one."""

_FLOORED = 101
"""Draws of a covariance that second moments show."""

_HALVINGS = 50
"""Steps of the search for a critical value."""

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
    design_effect : float, default 1.0
        How many times as much a respondent's answers vary as independent ones. 1.5 is usual where
        respondents differ.
    simultaneous : bool, default False
        Whether all pairs are judged at once, as for ranks (Bonferroni).
    mode : {"central", "local"}
        ``"local"``: reports of :class:`privrank.local.Comparisons`, one of each respondent.
    protocol : Protocol, optional
        A protocol of the local model that asks for one pair; its epsilon is that which is asked
        about.

    Notes
    -----
    The release that the fit would make is formed at its expected values, with the noise of the
    fit's own plan, and read by the code that reads releases. `standard_error` is the standard error
    there. `power` is the probability that the statistic of the fit's score test lies beyond its
    critical value: the statistic is expected where the worths put it, errs by a normal variable and
    the distribution of the noise, and the critical value moves with the estimated variance, which
    is drawn (the largest of many design effects, and its noise) or has quantiles of its own (second
    moments of pairs). That other worths are estimated is left out, as it does not matter to first
    order: `docs/validation/power_models.md` measures what these approximations do. Where the noise
    is nearly all of the error the plan is too hopeful, as released pair counts and worths then vary
    far around what is expected: for 10 items, 400 respondents and epsilon .5 it expects power .13
    where fits have .04, and a standard error of .60 where they have .81.

    Examples
    --------
    >>> import privrank as pr
    >>> plan = pr.power.BTLPower(items=6, max_rows=15, design="public")
    >>> round(plan.power(nobs=200, epsilon=1.0, contrast=0.4), 2)
    0.86
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
    design_effect: float = 1.0
    simultaneous: bool = False
    mode: Mode = "central"
    protocol: Asking | None = None
    replicates: int = field(default=1, init=False, repr=False)
    n_jobs: int = field(default=1, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse what is no survey, before anything is asked."""
        check_choice("method", self.method, Method)
        check_choice("dependence", self.dependence, Dependence)
        check_flag("simultaneous", self.simultaneous)
        self._worths(0.0)
        self._survey()

    def _survey(self) -> Survey:
        return survey_of(self)

    def _worths(self, contrast: float) -> FloatArray:
        """Return the worths, those of the two items that are compared first."""
        return np.concatenate(
            ([0.5 * contrast, -0.5 * contrast], spread(self.worths, survey_of(self).items, 2))
        )

    def _choice(self, design: Design, epsilon: float, delta: float) -> Choice:
        dependence = "none" if math.isinf(epsilon) else self.dependence
        return plan_fit(design, epsilon, self.method, None, dependence, None, delta=delta)

    def _expected(self, at: Point) -> Expected:
        return self._survey().expected(at, self._choice, self._worths(at.effect))

    def _measure(self, at: Point, replicates: int, workers: Workers) -> tuple[float, float]:
        del replicates, workers
        m = len(self._survey().items)
        level = at.alpha / (m * (m - 1) // 2 if self.simultaneous else 1)
        contrast = np.zeros((1, m))
        contrast[0, :2] = 1.0, -1.0
        return _separated(self._expected(at), contrast, level), 0.0

    def _range(self, name: Dependent, at: Point) -> Range:
        if name == "effect":
            return Range(0.5, 1e-3, MOST_CONTRAST)
        return least_and_most(name, self._survey().protocol is not None)

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
        """Return the standard error of the difference of the two worths.

        Parameters
        ----------
        nobs, epsilon, contrast, delta
            As for `power`.

        Returns
        -------
        Estimate
        """
        at = self._given({"nobs": nobs, "epsilon": epsilon, "effect": contrast, "delta": delta})
        found = self._expected(at)
        errors = found.inference.errors
        along = errors.response[0] - errors.response[1]
        if len(found.measured):
            sampling = np.median(found.measured) / found.effect * (along @ errors.scores @ along)
        elif found.measures:
            sampling = np.median(found.floored(_FLOORED) @ along @ along)
        else:
            sampling = found.known * _contrast(errors.sampling)
        privacy = _contrast(errors.privacy)
        return Estimate(math.sqrt(float(sampling) + privacy))

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
        found = np.linspace(0.5, -0.5, left) * float(worths)
    if found is None or found.shape != (left,) or not np.isfinite(found).all():
        raise ValueError(
            f"worths must be one number, or one for each of the {left} other items: leave it out "
            f"where they are equal."
        )
    return found


def _contrast(covariance: FloatArray) -> float:
    """Return the variance of the difference of the first two worths."""
    return float(covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1])


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


def _separated(found: Expected, contrast: FloatArray, alpha: float) -> float:
    """Return the probability that a contrast is rejected to be zero."""
    statistic, errors, null, fit = zero_tests(found.inference, contrast)
    null, fit = (replace(part, variance=found.known * part.variance) for part in (null, fit))
    errors = replace(errors, df=found.freedom)
    factors = _factors(found, null)
    levels = np.geomspace(factors.min(), max(factors.max(), 1.001 * factors.min()), _LEVELS)
    size = abs(float(statistic[0]))
    h = _critical(errors, null, levels, alpha)
    rows = _repeated(fit, np.ones(_LEVELS))
    beyond = 0.5 * (rows.tail(h - size) + rows.tail(h + size))
    return float(np.interp(np.log(factors), np.log(levels), beyond).mean())


def _factors(found: Expected, null: Components) -> FloatArray:
    """Return how many times its size a variance is estimated as, one or many draws of it."""
    if len(found.measured):
        return found.measured / found.effect
    if not found.measures:
        return np.ones(1)
    variance, n = float(null.variance[0]), found.inference.release.design.nobs
    sd = math.sqrt(float(null.side[0]) / variance**2 + 2.0 / max(n - 1, 1))
    normal = ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    return np.asarray(np.maximum(1.0 + sd * normal, 1.0 / found.effect))


def _repeated(parts: Components, factors: FloatArray) -> Components:
    """Return the components of one number, once for each of the factors of its variance."""
    rows = len(factors)
    noise = np.repeat(parts.noise, rows, axis=0)
    return Components(parts.variance * factors, np.repeat(parts.side, rows), noise, parts.share)


def _critical(
    errors: NoisyErrors, null: Components, factors: FloatArray, alpha: float
) -> FloatArray:
    """Return the sizes that are rejected where the variance is estimated as so many times its own.

    Given the components of one number under the hypothesis.
    """
    parts = _repeated(null, factors)
    low, high = np.zeros(len(factors)), 20.0 * parts.total * (1.0 - ndtri(0.5 * alpha))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        beyond = errors.tail(middle, parts) > alpha
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return np.asarray(high)
