"""What all plans share: what is asked for, the one engine that finds it, and the answer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import pandas as pd
from scipy.special import betaincinv

from privrank.planning.effects import check_power
from privrank.planning.solving import Search, solve
from privrank.util.checks import (
    as_list,
    check_alpha,
    check_choice,
    check_count,
    check_delta,
    check_epsilon,
    is_number,
    quoted,
)
from privrank.util.workers import Workers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LARGEST", "SMALLEST", "Dependent", "Estimate", "Point", "Power", "Range", "each_of"]

Dependent = Literal["nobs", "epsilon", "effect"]

SMALLEST, LARGEST = 1e-3, 1e3
"""Range of the epsilons that are looked for."""


class Estimate(float):
    """A number with the Monte Carlo standard error that it was found with.

    It is a float; its text says what it is.

    Attributes
    ----------
    error : float
        Monte Carlo standard error, 0 where the number is exact.
    exact : bool
        Whether no simulation went into it.
    words : str
        What it counts, such as ``"respondents"``; empty for a bare number.
    assumes : str
        What was assumed, such as ``"design effect 1.67"``; empty where there is nothing to say.
    interval : tuple of float or None
        For a probability near 0 or 1, where a standard error says too little: a 95% interval for
        it, by Clopper and Pearson, as if each simulated survey gave 0 or 1.

    Examples
    --------
    >>> import privrank as pr
    >>> n = pr.power.Estimate(187, 2.13, words="respondents")
    >>> n
    187 respondents (Monte Carlo standard error 2.1)
    >>> f"{n:.0f}", n / 2
    ('187', 93.5)
    """

    __slots__ = ("assumes", "error", "exact", "interval", "words")

    error: float
    exact: bool
    words: str
    assumes: str
    interval: tuple[float, float] | None

    def __new__(
        cls,
        value: float,
        error: float = 0.0,
        *,
        words: str = "",
        assumes: str = "",
        interval: tuple[float, float] | None = None,
    ) -> Self:
        """Make the number; an error of 0 says that it is exact."""
        for name, number in (("value", value), ("error", error)):
            if not is_number(number):
                raise TypeError(f"{name} must be a number, got {type(number).__name__}.")
        for name, text in (("words", words), ("assumes", assumes)):
            if not isinstance(text, str):
                raise TypeError(f"{name} must be a text, got {type(text).__name__}.")
        made = super().__new__(cls, value)
        made.error, made.exact, made.words = float(error), error == 0.0, words
        made.assumes, made.interval = assumes, interval
        return made

    def __repr__(self) -> str:
        """Say it in a few words."""
        number = float(self)
        text = f"{number:.0f}" if number.is_integer() and abs(number) >= 2 else f"{number:.4g}"
        if self.words:
            text = f"{self.words} {text}" if self.words.endswith("=") else f"{text} {self.words}"
        how = f"Monte Carlo standard error {self.error:.2g}"
        if self.interval is not None:
            how = "95% Monte Carlo interval {:.3g} to {:.3g}".format(*self.interval)
        how = "no Monte Carlo error" if self.exact else how
        return f"{text} ({'; '.join(filter(None, (how, self.assumes)))})"

    __str__ = __repr__


def _binomial_interval(share: float, n: int) -> tuple[float, float]:
    """Return the 95% interval of a probability that n draws showed as a share."""
    hits = share * n
    low = 0.0 if hits <= 0 else float(betaincinv(hits, n - hits + 1.0, 0.025))
    high = 1.0 if hits >= n else float(betaincinv(hits + 1.0, n - hits, 0.975))
    return low, high


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of what can vary in a design.

    Parameters
    ----------
    nobs : int
        Units, such as respondents.
    effect : float
        Size of the effect on the scale of the engine: 0 is none, and a larger one is easier to see.
    epsilon, delta : float
        The guarantee.
    alpha : float
        The level.
    """

    nobs: int
    effect: float
    epsilon: float
    delta: float
    alpha: float


@dataclass(frozen=True, slots=True)
class Range:
    """Where a number is looked for: where to start, and how far to go."""

    start: float
    least: float
    most: float


class Power(ABC):
    """A design whose power, or other quality, is known before data are.

    A subclass is a frozen dataclass of what is fixed. It has public `power`, `solve_power` and
    `plot_power` with explicit arguments, which hand them to :meth:`_predict`, :meth:`_solve` and
    :meth:`_plot`, with the effect on the engine's scale.
    """

    outcome: ClassVar[str] = "power"
    """What is predicted, as an argument is called."""
    rising: ClassVar[bool] = True
    """Whether it grows with the number of units, epsilon and the effect; else it falls."""
    probability: ClassVar[bool] = True
    """Whether it is a probability; else it is positive."""

    replicates: int
    n_jobs: int

    @abstractmethod
    def _measure(self, at: Point, replicates: int, workers: Workers) -> tuple[float, float]:
        """Return what is predicted at a point, and its Monte Carlo standard error, 0 if exact.

        By the same random numbers at every point: those of replicate r are seeded by r alone.
        """

    @abstractmethod
    def _range(self, name: Dependent, at: Point) -> Range:
        """Return where this number of a point is looked for."""

    def _shown(self, effect: float) -> float:
        """Return an effect as a user states it."""
        return effect

    @property
    def _counted(self) -> str:
        """What `nobs` counts."""
        return "respondents"

    @property
    def _assumes(self) -> str:
        """What is assumed that an answer has to name; empty if nothing is."""
        return ""

    @property
    def _effect_words(self) -> str:
        """What an effect is called, with "=" at the end where the name stands before the number."""
        return "effect ="

    def _argument(self, name: str) -> str:
        """Return what one of the numbers is called as an argument of this class."""
        return self._effect_words.rstrip(" =").replace(" ", "_") if name == "effect" else name

    def _checked(self, at: Mapping[str, Any]) -> Point:
        """Return the point; refuses what is not in the range of an argument, but for None."""
        nobs, epsilon, effect = at["nobs"], at["epsilon"], at["effect"]
        return Point(
            nobs=0 if nobs is None else check_count("nobs", nobs, low=2),
            effect=math.nan if effect is None else self._finite(effect),
            epsilon=math.nan if epsilon is None else check_epsilon(epsilon),
            delta=check_delta(at.get("delta", 0.0)),
            alpha=check_alpha(at.get("alpha", 0.05)),
        )

    def _finite(self, effect: object) -> float:
        if is_number(effect) and math.isfinite(effect):
            return float(effect)
        raise ValueError(
            f"{self._argument('effect')} must be a finite number, got {quoted(effect)}."
        )

    def _given(self, at: Mapping[str, Any]) -> Point:
        """Return the point, of which nothing is left out."""
        for name in ("nobs", "effect", "epsilon"):
            if at[name] is None:
                raise ValueError(
                    f"{self._argument(name)} must be given: use solve_power(...) to find it from "
                    f"{self.outcome}=..."
                )
        return self._checked(at)

    def _predict(self, **at: Any) -> Estimate:
        """Return what is predicted at a point of nobs, effect, epsilon, delta and alpha."""
        point = self._given(at)
        value, error = self._measure(point, self.replicates, Workers(self.n_jobs))
        edge = self.probability and error > 0 and not 3 * error < value < 1.0 - 3 * error
        interval = _binomial_interval(value, self.replicates) if edge else None
        return Estimate(value, error, assumes=self._assumes, interval=interval)

    def _solve(self, target: float | None, **at: Any) -> Estimate:
        """Return the one of nobs, effect, epsilon and the target that is None.

        The others are given, the effect on the engine's scale.
        """
        given = {self.outcome: target, **{name: at[name] for name in ("nobs", "epsilon", "effect")}}
        missing = [name for name, value in given.items() if value is None]
        if len(missing) != 1:
            names, left = (", ".join(map(self._argument, some)) for some in (given, missing))
            left = f"{left} are" if missing else "none is"
            raise ValueError(f"exactly one of {names} must be None, the one to find, and {left}.")
        if missing == [self.outcome]:
            return self._predict(**at)
        point = self._checked(at)
        self._check_target(target, point.alpha)
        return self._found(missing[0], point, float(target or 0.0))

    def _check_target(self, target: object, alpha: float) -> None:
        check_power(target, alpha)

    def _found(self, name: Any, point: Point, target: float) -> Estimate:
        span = self._range(name, point)

        def measure(x: float, replicates: int) -> tuple[float, float]:
            number: Any = int(x) if name == "nobs" else x
            return self._measure(replace(point, **{name: number}), replicates, Workers(self.n_jobs))

        search = Search(
            measure,
            target,
            span.least,
            span.most,
            self.replicates,
            whole=name == "nobs",
            rising=self.rising,
            probability=self.probability,
        )
        found = solve(search, span.start)
        if found is None:
            raise ValueError(self._out_of_reach(name, target, span, point))
        if name != "effect":
            words = self._counted if name == "nobs" else "epsilon ="
            return Estimate(found.at, found.error, words=words, assumes=self._assumes)
        shown = self._shown(found.at)
        side = -1.0 if found.at + found.error > span.most else 1.0
        error = abs(self._shown(found.at + side * found.error) - shown)
        return Estimate(shown, error, words=self._effect_words, assumes=self._assumes)

    def _out_of_reach(self, name: str, target: float, span: Range, point: Point) -> str:
        """Return the sentence for a target that nothing within the range reaches."""
        if name == "nobs":
            return (
                f"no nobs up to {span.most:.0f} reaches {self.outcome} {target:g} here: state a "
                f"larger effect, a larger epsilon or less {self.outcome}."
            )
        if name == "epsilon":
            return (
                f"no epsilon up to {span.most:g} reaches {self.outcome} {target:g} here: take more "
                f"{self._counted} or state a larger effect."
            )
        return (
            f"no effect reaches {self.outcome} {target:g} with {point.nobs} {self._counted} at "
            f"epsilon {point.epsilon:g}: take more {self._counted} or a larger epsilon."
        )

    def _frame(self, dep_var: Dependent, **at: Any) -> pd.DataFrame:
        """Return what is predicted for all combinations of the numbers given, each one or several.

        One row each, with ``nobs``, ``epsilon``, ``effect`` as a user states it, what is predicted
        and ``std err``.
        """
        check_choice("dep_var", dep_var, Dependent)
        lists = {name: _several(at[name]) for name in ("nobs", "epsilon", "effect")}
        if empty := [name for name, values in lists.items() if not values]:
            raise ValueError(f"{empty[0]} must be a number, or a list of at least one.")
        long = [name for name, values in lists.items() if len(values) > 1 and name != dep_var]
        if len(long) > 1:
            raise ValueError(
                f"{long[0]} and {long[1]} must not both be lists: one may be, and each of its "
                f"numbers has a line of its own."
            )
        rows = []
        for nobs, epsilon, effect in product(*lists.values()):
            found = self._predict(**{**at, "nobs": nobs, "epsilon": epsilon, "effect": effect})
            shown = self._shown(effect)
            rows.append((nobs, epsilon, shown, float(found), found.error))
        columns = ["nobs", "epsilon", "effect", self.outcome, "std err"]
        return pd.DataFrame(rows, columns=columns)

    def _plot(self, dep_var: Dependent, ax: Axes | None, **at: Any) -> Figure:
        """Draw what is predicted against one of nobs, epsilon and effect."""
        from privrank.results import plots

        if dep_var == "epsilon" and any(value == math.inf for value in _several(at["epsilon"])):
            raise ValueError(
                "epsilon must be finite where it is on the axis: plot_tradeoff draws what there is "
                "without privacy as a line."
            )
        frame = self._frame(dep_var, **at)
        words = self._effect_words.rstrip(" =")
        return plots.planned(frame, dep_var, self.outcome, self._title, words=words, ax=ax)

    @property
    def _caption(self) -> str:
        return type(self).__name__

    @property
    def _title(self) -> str:
        """The title of a figure: what is drawn, and what was assumed."""
        return ", ".join(filter(None, (self._caption, self._assumes)))


def _several(value: object) -> list[Any]:
    """Return a number as a list of one."""
    found = as_list(value)
    return [value] if found is None else found


def each_of(read: Callable[[object], float], value: object) -> Any:
    """Return what a number is read as, or each of several."""
    found = as_list(value)
    return read(value) if found is None else [read(one) for one in found]
