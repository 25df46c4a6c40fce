"""Effects of tests as a user states them, and the methods that plans of all tests share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol

from privrank.hypotheses.nullmodel import NullModel
from privrank.planning.effects import MOST_THETA, alternative, effect_at
from privrank.power.base import Dependent, Estimate, Point, Power, Range, each_of
from privrank.release.survey import SampleKind
from privrank.util.checks import check_count, check_items, is_number, quoted
from privrank.util.workers import Workers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Effects", "TestPower", "Tested", "check_work", "names_of"]

Effect = float | Sequence[float] | None


def check_work(replicates: object, n_jobs: object) -> None:
    """Refuse what are no numbers of replicates and of processes."""
    check_count("replicates", replicates, low=20)
    if not is_number(n_jobs) or n_jobs != -1:
        check_count("n_jobs", n_jobs)


def names_of(items: object) -> tuple[str, ...]:
    """Return the names of items, or of so many."""
    if isinstance(items, Integral) and not isinstance(items, bool):
        return tuple(
            str(number) for number in range(check_count("items", items, low=2, high=10**6))
        )
    return tuple(str(name) for name in check_items(items))


@dataclass(frozen=True, slots=True)
class Effects:
    """Effects as a user states them, and on the scale of the engine.

    Parameters
    ----------
    kind : {"rankings", "choices"}
        What a row holds.
    items : int
        Number of items or categories.
    null : NullModel
        What holds without an effect.
    most : float
        The largest effect on the engine's scale.
    """

    kind: SampleKind
    items: int
    null: NullModel
    most: float

    def read(self, phi: Effect, total_variation: Effect) -> Any:
        """Return the effect, or the effects, on the engine's scale; None if none is stated."""
        if phi is not None and total_variation is not None:
            raise ValueError("phi and total_variation state the same effect: give one of them.")
        if phi is not None and self.kind == "choices":
            raise ValueError(
                "phi= is the dispersion of rankings: give total_variation= for choices."
            )
        if phi is not None:
            return each_of(self._of_phi, phi)
        return None if total_variation is None else each_of(self._of_distance, total_variation)

    def _of_phi(self, value: object) -> float:
        if not is_number(value) or not 0 <= value <= 1:
            raise ValueError(
                f"phi must lie between 0 (all rankings equal) and 1 (uniform), got {quoted(value)}."
            )
        theta = -math.log(value) if value > 0 else math.inf
        if not self.null.center:
            return min(theta, MOST_THETA)
        return 1.0 - min(theta, MOST_THETA) / self.null.theta

    def _of_distance(self, value: object) -> float:
        if not is_number(value) or not 0 <= value < 1:
            raise ValueError(
                f"total_variation must be a distance of at least 0 and below 1, "
                f"got {quoted(value)}."
            )
        if self.kind == "choices":
            if float(value) <= self.most:
                return float(value)
            farthest = self.most
        else:
            found = effect_at(self.items, float(value), self.null, self.most)
            if found is not None:
                return found
            farthest = alternative(self.items, self.most, self.null)[1]
        raise ValueError(
            f"total_variation must be at most {farthest:.4g}, which is how far the alternatives "
            f"get from H0 here, got {value}."
        )

    def shown(self, effect: float) -> float:
        """Return an effect as a user states it: phi, or the distance of choices."""
        if self.kind == "choices":
            return effect
        return alternative(self.items, effect, self.null)[0].phi

    @property
    def words(self) -> str:
        """What an effect is called."""
        return "total variation =" if self.kind == "choices" else "phi ="


class Tested(Protocol):
    """What a plan asks of the test that it is of."""

    @property
    def effects(self) -> Effects:
        """How effects are stated."""

    def measure(
        self, at: Point, replicates: int, workers: Workers, *, look: bool
    ) -> tuple[float, float]:
        """Return the power at a point and its error; a first `look` may be less exact."""

    def range(self, name: Dependent, at: Point) -> Range:
        """Return where a number is looked for."""


class TestPower(Power):
    """The plan of a test: its effects are dispersions of rankings or distances."""

    @property
    @abstractmethod
    def _test(self) -> Tested:
        """The test that is planned."""

    def _measure(self, at: Point, replicates: int, workers: Workers) -> tuple[float, float]:
        return self._test.measure(at, replicates, workers, look=replicates < self.replicates)

    def _range(self, name: Dependent, at: Point) -> Range:
        return self._test.range(name, at)

    def _shown(self, effect: float) -> float:
        return self._test.effects.shown(effect)

    @property
    def _effect_words(self) -> str:
        return self._test.effects.words

    def power(
        self,
        *,
        nobs: int,
        epsilon: float,
        phi: float | None = None,
        total_variation: float | None = None,
        delta: float = 0.0,
        alpha: float = 0.05,
    ) -> Estimate:
        """Return the probability that the test rejects.

        Parameters
        ----------
        nobs : int
            Number of respondents, of all groups together.
        epsilon, delta : float
            The guarantee; ``epsilon=numpy.inf`` for the non-private test.
        phi : float, optional
            Of rankings: the dispersion of the Mallows model that they follow, or those of the
            smallest group, 1 where all orders are equally likely and 0 where all rankings are
            equal; its centre is that of H0, if H0 has one.
        total_variation : float, optional
            Total variation distance from H0, or of the smallest group from the others: of choices,
            and of rankings in place of `phi`.
        alpha : float, default 0.05
            Level of the test.

        Returns
        -------
        Estimate
        """
        effect = self._test.effects.read(phi, total_variation)
        return self._predict(nobs=nobs, epsilon=epsilon, effect=effect, delta=delta, alpha=alpha)

    def solve_power(
        self,
        *,
        nobs: int | None = None,
        epsilon: float | None = None,
        phi: float | None = None,
        total_variation: float | None = None,
        delta: float = 0.0,
        alpha: float = 0.05,
        power: float | None = None,
    ) -> Estimate:
        """Return the one that is left out of the number of respondents, epsilon, effect and power.

        Parameters
        ----------
        nobs, epsilon, phi, total_variation, delta, alpha
            As for `power`.
        power : float, optional
            Probability of rejection that is wanted.

        Returns
        -------
        Estimate
            The least number of respondents, or the least epsilon, that reaches the power; of
            effects the phi nearest to that of H0 on the side of 1, or of uniformity on that of 0,
            and the least distance of choices.
        """
        effect = self._test.effects.read(phi, total_variation)
        return self._solve(
            power, nobs=nobs, epsilon=epsilon, effect=effect, delta=delta, alpha=alpha
        )

    def plot_power(
        self,
        dep_var: Dependent = "nobs",
        *,
        nobs: int | Sequence[int],
        epsilon: float | Sequence[float],
        phi: Effect = None,
        total_variation: Effect = None,
        delta: float = 0.0,
        alpha: float = 0.05,
        ax: Axes | None = None,
    ) -> Figure:
        """Draw the power against one of the numbers.

        Parameters
        ----------
        dep_var : {"nobs", "epsilon", "effect"}
            What goes across; its argument is a sequence.
        nobs, epsilon, phi, total_variation
            As for `power`; one of those that do not go across may be a sequence, too, and has a
            line for each of its numbers.
        delta, alpha : float
            As for `power`.
        ax : matplotlib Axes, optional
            Where to draw.

        Returns
        -------
        Figure
        """
        effect = self._test.effects.read(phi, total_variation)
        at = {"nobs": nobs, "epsilon": epsilon, "effect": effect, "delta": delta, "alpha": alpha}
        return self._plot(dep_var, ax, **at)
