"""Planning a rank aggregation: what its order loses, and how wide its rank intervals are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from privrank.consensus.intervals import Target
from privrank.distributions.kendall import pair_probability
from privrank.distributions.mallows import Mallows
from privrank.local.protocols import Protocol
from privrank.local.protocols_orders import RandomPairs, SubRanking
from privrank.local.protocols_vectors import CapBorda, DuchiBall
from privrank.planning.simulation import mean_of
from privrank.plans.aggregation import AggregationMethod, Releases
from privrank.power.base import Dependent, Estimate, Point, Power, Range, each_of
from privrank.power.consensusfits import Central, Local, Loss
from privrank.power.stated import check_work
from privrank.power.surveys import Mode, item_names, least_and_most
from privrank.util.checks import check_choice, is_number, quoted
from privrank.util.workers import Workers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["AggregationPower", "Loss"]


_LOOKED = (0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Values of -log phi among which the one of the largest excess is looked for."""

MOST_THETA = 6.0
"""Largest -log phi that is looked for: phi = .0025, nearly equal rankings."""

_PLANNED = ("auto", "kemeny", "borda", "pairs-laplace")


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregationPower(Power):
    """Plan a consensus order: the disagreements it costs, and how wide intervals of ranks will be.

    Rankings are supposed to be of a Mallows model with dispersion phi.

    Parameters
    ----------
    items : int or sequence of str
        The items, or their number.
    loss : {"excess", "width"}
        What `power` predicts. ``"excess"``: how much more often than with the best order a ranking
        disagrees with the order that is found, as a share of all pairs. ``"width"``: the mean width
        of the simultaneous rank intervals, highest rank less lowest: 0 where all ranks are certain.
    method : {"auto", "kemeny", "borda", "pairs-laplace"}
        As for :meth:`privrank.PrivateRankAggregation.fit`.
    releases, target
        As for :meth:`privrank.PrivateRankAggregation.fit`. The best order is that of the population
        (the centre of the model), or of the sample.
    mode : {"central", "local"}
        ``"local"``: reports of :class:`privrank.local.SubRanking`, one of each respondent.
    protocol : Protocol, optional
        Another protocol that asks for a consensus; its epsilon is that which is asked about.
    replicates : int, default 100
        Surveys that are simulated.
    n_jobs : int, default 1
        Processes; -1 for as many as there are cores. The answer is the same for any number.

    Notes
    -----
    Rankings are drawn from the model, released by the plan of a fit with its noise, and read by the
    code that reads releases, so that what is predicted is what fits give, up to the Monte Carlo
    error. Of a survey of more than 5,000 rankings so many are drawn, and the errors of pair counts
    are scaled to its size; so are those of reports, of which five are drawn for each pair if these
    are more. Reports of pairs that do not connect all items, which a fit refuses, count as an order
    at random, and as intervals of all ranks. An excess of which no draw has any is stated as that
    of half an exchange of neighbours in all draws. As a function of phi the excess is largest in
    between, as an order of rankings without a consensus has nothing to lose: what is looked for is
    the largest phi below that.

    Examples
    --------
    >>> import privrank as pr
    >>> plan = pr.power.AggregationPower(items=6)
    >>> plan.power(nobs=300, epsilon=0.5, phi=0.8) < 0.02
    True
    """

    items: int | Sequence[str] = field(kw_only=False)
    loss: Loss = "excess"
    method: AggregationMethod = "auto"
    releases: Releases = "auto"
    target: Target = "population"
    mode: Mode = "central"
    protocol: Protocol | None = None
    replicates: int = 100
    n_jobs: int = 1

    rising = False
    probability = False

    def __post_init__(self) -> None:
        """Refuse what is no survey, before anything is asked."""
        check_choice("loss", self.loss, Loss)
        check_choice("releases", self.releases, Releases)
        check_choice("target", self.target, Target)
        check_choice("mode", self.mode, Mode)
        check_work(self.replicates, self.n_jobs)
        if not isinstance(self.method, str) or self.method not in _PLANNED:
            raise ValueError(
                f"method must be one of {', '.join(map(repr, _PLANNED))} to be planned, got "
                f"{quoted(self.method)}."
            )
        items = item_names(self.items)
        if self._local and (self.method, self.releases) != ("auto", "auto"):
            raise ValueError(
                "method and releases are those of the central model: leave them out in the local "
                "one, where the protocol says what is released."
            )
        if self.protocol is None:
            return
        kinds = SubRanking | RandomPairs | CapBorda | DuchiBall
        if not isinstance(self.protocol, kinds) or len(self.protocol.items) != len(items):
            raise ValueError(
                f"protocol must be a SubRanking, RandomPairs, CapBorda or DuchiBall for the "
                f"{len(items)} items of the plan: leave it out and use mode='local'."
            )

    @property
    def outcome(self) -> str:  # type: ignore[override]
        """What is predicted, as an argument is called."""
        return self.loss

    @property
    def _local(self) -> bool:
        return self.mode == "local" or self.protocol is not None

    def _measure(self, at: Point, replicates: int, workers: Workers) -> tuple[float, float]:
        items = item_names(self.items)
        model = Mallows.from_theta(items, at.effect)
        survey: Central | Local
        if self._local:
            if at.delta > 0:
                raise ValueError(
                    "delta must be 0 in the local model, whose reports are pure: leave it out."
                )
            # by itself a sub-ranking is as long as is best at its epsilon
            protocol = self.protocol or SubRanking(items, at.epsilon)
            survey = Local(replace(protocol, epsilon=at.epsilon), model, self.target)
        else:
            plan = at.epsilon, at.delta, self.method, self.releases
            survey = Central(plan, model, self.target)
        one = partial(survey.loss, at.nobs, at.alpha, self.loss)
        m = len(items)
        # what one replicate adds at least that is not like the others
        swap = (2.0 * pair_probability(1, model.theta) - 1.0) / (m * (m - 1) / 2)
        step = 1.0 / m if self.loss == "width" else swap
        label = f"{self.loss} of orders"
        value, error = mean_of(one, replicates, workers, label, step=step)
        return max(value, 0.5 * step / replicates), error

    def _range(self, name: Dependent, at: Point) -> Range:
        if name != "effect":
            return least_and_most(name, self._local)
        if self.loss == "width":
            return Range(0.2, 1e-3, MOST_THETA)
        looked = [self._measure(replace(at, effect=theta), 20, Workers(1))[0] for theta in _LOOKED]
        worst = _LOOKED[int(np.argmax(looked))]
        return Range(2.0 * worst, worst, MOST_THETA)

    def _checked(self, at: Any) -> Point:
        if at["effect"] is not None and not 0 < at["effect"] < math.inf:
            raise ValueError(
                "phi must lie between 0 and 1: near 0 rankings are nearly equal, and at 1 all are "
                "equally likely."
            )
        return super(AggregationPower, self)._checked(at)

    def _check_target(self, target: object, alpha: float) -> None:
        most = len(item_names(self.items)) - 1.0 if self.loss == "width" else 0.5
        if not is_number(target) or not 0 < target < most:
            raise ValueError(
                f"{self.loss} must lie between 0 and {most:g} to be reached, got {quoted(target)}."
            )

    def _shown(self, effect: float) -> float:
        return math.exp(-effect)

    @property
    def _caption(self) -> str:
        return "Consensus order"

    @property
    def _effect_words(self) -> str:
        return "phi ="

    def power(
        self,
        nobs: int,
        epsilon: float,
        phi: float | None = None,
        *,
        delta: float = 0.0,
        alpha: float = 0.05,
    ) -> Estimate:
        """Return the predicted excess, or width, as `loss` says.

        Parameters
        ----------
        nobs : int
            Respondents, each with one ranking.
        epsilon, delta : float
            The guarantee; ``numpy.inf`` for the non-private consensus.
        phi : float
            Dispersion of the Mallows model.
        alpha : float, default 0.05
            One minus the confidence level of the rank intervals.

        Returns
        -------
        Estimate
        """
        effect = None if phi is None else _theta(phi)
        return self._predict(nobs=nobs, epsilon=epsilon, effect=effect, delta=delta, alpha=alpha)

    def solve_power(
        self,
        nobs: int | None = None,
        epsilon: float | None = None,
        phi: float | None = None,
        *,
        excess: float | None = None,
        width: float | None = None,
        delta: float = 0.0,
        alpha: float = 0.05,
    ) -> Estimate:
        """Return the one of nobs, epsilon, phi, and the excess or the width, that is left out.

        Parameters
        ----------
        nobs, epsilon, phi, delta, alpha
            As for `power`.
        excess, width : float, optional
            What is wanted, one of the two. Where nobs, epsilon and phi are given and neither of
            these is, what `loss` says is predicted.

        Returns
        -------
        Estimate
            A number with its Monte Carlo error.
        """
        if excess is not None and width is not None:
            raise ValueError("excess and width are two aims: give one of them.")
        given = {"excess": excess, "width": width}
        wanted = next((name for name, value in given.items() if value is not None), self.loss)
        asked = replace(self, loss=wanted)  # type: ignore[arg-type]
        effect = None if phi is None else _theta(phi)
        return asked._solve(
            given[wanted], nobs=nobs, epsilon=epsilon, effect=effect, delta=delta, alpha=alpha
        )

    def plot_power(
        self,
        dep_var: Dependent = "nobs",
        nobs: int | Sequence[int] | None = None,
        epsilon: float | Sequence[float] | None = None,
        phi: float | Sequence[float] | None = None,
        *,
        delta: float = 0.0,
        alpha: float = 0.05,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw the excess, or the width, against one of nobs, epsilon and phi.

        Parameters
        ----------
        dep_var : {"nobs", "epsilon", "effect"}
            What is on the horizontal axis; it has a list of numbers.
        nobs, epsilon, phi : number or sequence of numbers
            One of the others may be a list, too: each of its numbers has a line.
        delta, alpha : float
            As for `power`.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        Figure
        """
        effect = None if phi is None else each_of(_theta, phi)
        at: dict[str, Any] = {"nobs": nobs, "epsilon": epsilon, "effect": effect}
        return self._plot(dep_var, ax, **at, delta=delta, alpha=alpha)


def _theta(phi: object) -> float:
    """Return -log phi, and a number that is refused for what is no dispersion between 0 and 1."""
    return -math.log(phi) if is_number(phi) and 0 < phi < 1 else math.nan
