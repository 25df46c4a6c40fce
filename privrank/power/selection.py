"""Planning a selection: how surely the top k is set apart from the rest, or is the right one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privrank.bradley_terry.contrasts import own_and_between
from privrank.bradley_terry.errors import to_normal
from privrank.hypotheses.nulltables import public_generator
from privrank.hypotheses.tails import noisy_tail
from privrank.local.protocols import Asking
from privrank.planning.choice import Choice
from privrank.planning.comparisons import plan_selection
from privrank.planning.dependence import Dependence
from privrank.power.base import Dependent, Estimate, Point, Power, Range
from privrank.power.surveys import Expected, Mode, PairsKnown, Survey, least_and_most, survey_of
from privrank.privacy.budget import Unit
from privrank.release.release import PAIR_COUNTS
from privrank.release.survey import Design, DesignKind
from privrank.results.topk import equal_variances
from privrank.util.checks import as_numbers, check_choice, check_count
from privrank.util.solvers import square_root
from privrank.util.workers import Workers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Aim", "TopKPower"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

Aim = Literal["separated", "right"]

_LEVELS, _FLOORED, _HALVINGS = 9, 200, 30
"""Variances at which a critical gap is computed, draws of a covariance that second moments show,
and steps of the search for a gap."""

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
    max_rows, unit, design, pair_counts, ties, design_effect, mode, protocol
        As for :class:`privrank.power.BTLPower`.
    dependence
        As for :meth:`privrank.PrivateTopK.fit`.
    worths : sequence of float, optional
        Worths of all items, the best first. Without it the top k have one worth and the rest
        another, so that all pairs across the gap are as hard to tell apart.
    aim : {"separated", "right"}
        What `power` is the probability of: that the right set is selected and its separation
        p-value is at most `alpha`, or that the right set is selected.
    replicates : int, default 4000
        Surveys that are simulated.

    Notes
    -----
    Noisy net wins are drawn: normal sampling errors around what the worths let expect, the noise of
    the fit's own plan, and the errors of released pair counts and of the estimated variances; each
    draw is judged by the fit's own distribution of the gap of two equally good items. The power has
    the Monte Carlo error of these draws. `docs/validation/power_models.md` compares it with fits.

    Examples
    --------
    Can the top two of six be told from the rest with 200 people at epsilon 1?

    >>> import privrank as pr
    >>> plan = pr.power.TopKPower(items=6, k=2, max_rows=15)
    >>> round(plan.power(nobs=200, epsilon=1.0, gap=0.3), 2)
    0.03

    How many people would do?

    >>> 460 < plan.solve_power(epsilon=1.0, gap=0.3, power=0.8) < 500
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
    design_effect: float = 1.0
    aim: Aim = "separated"
    mode: Mode = "central"
    protocol: Asking | None = None
    replicates: int = 4000
    n_jobs: int = field(default=1, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse what is no survey, before anything is asked."""
        check_choice("dependence", self.dependence, Dependence)
        check_choice("aim", self.aim, Aim)
        check_count("replicates", self.replicates, low=100)
        m = len(self._survey().items)
        check_count("k", self.k, high=m - 1)
        self._worths(0.0)

    def _survey(self) -> Survey:
        return survey_of(self)

    def _worths(self, gap: float) -> FloatArray:
        """Return the worths, the best first, with this gap below the k-th."""
        m = len(self._survey().items)
        worths = np.zeros(m)
        if self.worths is not None:
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
            worths = stated
        worths = worths - worths[self.k]
        worths[: self.k] += gap - worths[self.k - 1]
        return np.asarray(worths - worths.mean())

    def _choice(self, design: Design, epsilon: float, delta: float) -> Choice:
        dependence = "none" if math.isinf(epsilon) else self.dependence
        return plan_selection(design, epsilon, delta, dependence=dependence)

    def _measure(self, at: Point, replicates: int, workers: Workers) -> tuple[float, float]:
        del replicates, workers  # so few numbers are drawn that all replicates are always taken
        found = self._survey().expected(at, self._choice, self._worths(at.effect))
        drawn = _drawn(found, self.replicates)
        hits = drawn.right(self.k)
        if self.aim == "separated":
            hits &= drawn.separated(self.k, at.alpha)
        share = float(hits.mean())
        smooth = (hits.sum() + 1.0) / (self.replicates + 2.0)
        return share, math.sqrt(smooth * (1.0 - smooth) / self.replicates)

    def _range(self, name: Dependent, at: Point) -> Range:
        if name == "effect":
            return Range(0.3, 1e-3, MOST_GAP)
        return least_and_most(name, self._survey().protocol is not None)

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
            gap = float(self.worths[self.k - 1]) - float(self.worths[self.k])
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


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """Simulated win rates, and by how much differences of two err where the items are equal.

    Parameters
    ----------
    found : Expected
        The survey.
    rates : ndarray, shape (draws, m)
        Win rates, the truly best first.
    errors : ndarray, shape (draws, m)
        What errors of released pair counts add to the variance of each.
    equal : ndarray, shape (m, m) or (draws, m, m)
        Variances of differences, as fits estimate them.
    factors : ndarray, shape (draws,)
        What these are multiplied by.
    """

    found: Expected
    rates: FloatArray
    errors: FloatArray
    equal: FloatArray
    factors: FloatArray

    def right(self, k: int) -> BoolArray:
        """Return in which draws the truly best k come first."""
        return np.asarray(self.rates[:, :k].min(axis=1) > self.rates[:, k:].max(axis=1))

    def separated(self, k: int, alpha: float) -> BoolArray:
        """Return in which draws the truly best k are each surely better than all others."""
        gaps = self.rates[:, :k, None] - self.rates[:, None, k:]
        variance = self.factors[:, None, None] * self.equal[..., :k, k:]
        variance = variance + self.errors[:, :k, None] + self.errors[:, None, k:]
        levels = np.geomspace(variance.min(), 1.001 * variance.max(), _LEVELS)
        bounds = np.log(self._critical(levels, alpha))
        least = np.exp(np.interp(np.log(variance), np.log(levels), bounds))
        return np.asarray((gaps >= least).all(axis=(1, 2)))

    def _critical(self, variances: FloatArray, alpha: float) -> FloatArray:
        """Return the gaps that are rejected for these variances."""
        facts = self.found.inference.equations
        each = np.full(len(variances), facts.item_step / facts.degrees.mean())
        sd = np.sqrt(variances)
        total = np.sqrt(variances + 2.0 * facts.item_variance / facts.degrees.mean() ** 2)
        low, high = np.zeros(len(sd)), 20.0 * total * (1.0 - ndtri(0.5 * alpha))
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            size = total * to_normal(middle / total, self.found.freedom)
            beyond = noisy_tail(facts.item_law, size, sd, each, each) > alpha
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        return np.asarray(high)


def _drawn(found: Expected, draws: int) -> _Drawn:
    """Simulate surveys by their noisy net wins."""
    facts, release = found.inference.equations, found.inference.release
    m, n, degrees = facts.items, release.design.nobs, facts.degrees
    rng = public_generator("selections", m)
    root = square_root(found.effect * found.independent)
    score = facts.score + rng.standard_normal((draws, m)) @ root.T
    score = score + facts.item_step * facts.item_law.simulate((draws, m), rng)
    met: FloatArray = np.broadcast_to(degrees, (draws, m))
    if release.design.kind == "private":
        ends, more = facts.linear.matrix(), _counts(release.design, draws, rng)
        score = score + (more * facts.function.mean(facts.linear.predict(found.worths))) @ ends
        if PAIR_COUNTS in release.parts:
            part = release.plan.parts[PAIR_COUNTS]
            assert part.noise is not None
            more = more + part.step * part.noise.simulate(more.shape, rng)
            met = np.maximum(degrees + more @ abs(ends), 1.0)
    rates = 0.5 + score / met
    errors = (m - 1) * facts.count_variance * (rates - 0.5) ** 2 / met**2
    equal, factors = equal_variances(facts, degrees), np.ones(draws)
    if len(found.measured):
        factors = rng.choice(found.measured, draws)
    elif found.measures:
        scale = np.outer(degrees, degrees)
        alone = own_and_between(found.independent / scale)
        shown = [own_and_between(each / scale) for each in found.floored(_FLOORED)]
        ratio = np.array(shown) / alone
        equal = (ratio * equal)[rng.integers(0, len(shown), draws)]
    elif release.source == "none" and release.design.unit == "respondent":
        # the cluster-robust variance, about a difference of 0
        both = own_and_between(found.effect * found.independent / np.outer(degrees, degrees))
        away = (facts.score / degrees)[:, None] - facts.score / degrees
        equal = (1.0 - 1.0 / n) * both + away**2 / n
    return _Drawn(found, rates, errors, equal, factors)


def _counts(design: Design, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return by how much the comparisons of each pair differ from their mean, (draws, pairs).

    Where units answer so many pairs drawn at random, as for normal variables.
    """
    reach = design.reach
    share = reach.effective_rows / reach.pairs
    drawn = rng.standard_normal((draws, reach.pairs))
    spread = design.nobs * share * (1.0 - share) * reach.pairs / max(reach.pairs - 1, 1)
    return np.asarray(math.sqrt(spread) * (drawn - drawn.mean(axis=1, keepdims=True)))
