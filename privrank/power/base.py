"""Base class of all plans: the arguments of a design, the search, and the estimate."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_origin, get_type_hints

import numpy as np
import pandas as pd

from privrank.hypotheses.effects import Search, check_power, least_number
from privrank.local.protocols import LARGEST_EPSILON
from privrank.util import checks
from privrank.util.arrays import immutable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Dependent = Literal["nobs", "epsilon", "effect"]
Mode = Literal["central", "local"]

SMALLEST = 1e-3
LARGEST = 1e3
"""Range of the search for epsilon in the central model."""


class Estimate(float):
    """A number with its Monte Carlo standard error.

    An estimate is a float, and its text describes it. A data frame keeps the number alone, so store
    the standard errors in another column.

    Attributes
    ----------
    error : float
        Monte Carlo standard error, 0 if the number is exact.
    exact : bool
        Whether the number is computed without simulation.
    words : str
        Unit of the number, such as ``"respondents"``; empty for a bare number.
    assumption : str
        Assumption of the simulation that no argument states, such as the worths of the other
        items.

    Examples
    --------
    >>> import pandas as pd
    >>> import privrank as pr
    >>> n = pr.power.Estimate(187, 2.13, words="respondents")
    >>> n
    187 respondents (Monte Carlo standard error 2.1)
    >>> f"{n:.0f}", n / 2
    ('187', 93.5)
    >>> sizes = [n, pr.power.Estimate(94, 1.5, words="respondents")]
    >>> pd.DataFrame({"respondents": sizes, "std err": [size.error for size in sizes]})
       respondents  std err
    0        187.0     2.13
    1         94.0     1.50
    """

    __slots__ = ("assumption", "error", "exact", "words")

    error: float
    exact: bool
    words: str
    assumption: str

    def __new__(
        cls, value: float, error: float = 0.0, *, words: str = "", assumption: str = ""
    ) -> Self:
        """Create the estimate; an error of 0 means that it is exact."""
        for name, number in (("value", value), ("error", error)):
            if not checks.is_number(number):
                raise TypeError(f"{name} must be a number, got {type(number).__name__}.")
        for name, text in (("words", words), ("assumption", assumption)):
            if not isinstance(text, str):
                raise TypeError(f"{name} must be a text, got {type(text).__name__}.")
        made = super().__new__(cls, value)
        made.error = float(error)
        made.exact = error == 0.0
        made.words = words
        made.assumption = assumption
        return made

    def __repr__(self) -> str:
        """Return the number, its unit and its standard error."""
        number = float(self)
        text = f"{number:.0f}" if number.is_integer() and abs(number) >= 2 else f"{number:.4g}"
        if self.words:
            text = f"{self.words} {text}" if self.words.endswith("=") else f"{text} {self.words}"
        how = (
            "no Monte Carlo error" if self.exact else f"Monte Carlo standard error {self.error:.2g}"
        )
        return f"{text} ({'; '.join(filter(None, (how, self.assumption)))})"

    __str__ = __repr__


@immutable
@dataclass(frozen=True, slots=True)
class DesignPoint:
    """One combination of the variable quantities of a design.

    Parameters
    ----------
    nobs : int
        Number of units, such as respondents.
    effect : float
        Size of the effect on the internal scale: 0 is no effect, and larger ones are easier to
        detect.
    epsilon, delta : float
        The privacy guarantee.
    alpha : float
        The significance level.
    """

    nobs: int
    effect: float
    epsilon: float
    delta: float
    alpha: float


@dataclass(frozen=True, kw_only=True)
class Power(ABC):
    """A design whose power, or expected accuracy, is computed before data are collected.

    A subclass is a frozen dataclass of the fixed quantities. It defines the measurement at a design
    point and the name of its effect.

    Examples
    --------
    >>> import privrank as pr
    >>> design = pr.power.UniformityPower(2, kind="choices")
    """

    replicates: int = 200
    n_jobs: int = 1

    outcome: ClassVar[str] = "power"
    """Name of the predicted quantity as an argument."""
    rising: ClassVar[bool] = True
    """Whether it increases with the number of units, epsilon and the effect; if not, decreases."""
    probability: ClassVar[bool] = True
    """Whether it is a probability; if not, it is a positive number."""
    _limit: ClassVar[Any] = None
    """Like `_measure`, a bound that no private method can exceed; None if no bound is known."""
    caption: ClassVar[str]
    """Caption of a figure, with the names of fields in braces."""

    def __post_init__(self) -> None:
        """Refuse invalid values of fields, and invalid numbers of replicates."""
        for name, hint in get_type_hints(type(self)).items():
            if get_origin(hint) is Literal:
                checks.check_choice(name, getattr(self, name), hint)
            elif hint is bool:
                checks.check_flag(name, getattr(self, name))
        checks.check_count("replicates", self.replicates, low=20)
        if not checks.is_number(self.n_jobs) or self.n_jobs != -1:
            checks.check_count("n_jobs", self.n_jobs)

    @abstractmethod
    def _measure(self, at: DesignPoint, replicates: int) -> tuple[float, float]:
        """Return the predicted quantity at a point, and its Monte Carlo standard error.

        The standard error is 0 if the value is exact. The random numbers are the same at every
        point: replicate r is seeded by r alone.
        """

    @abstractmethod
    def _effect_range(self, at: DesignPoint) -> tuple[float, float, float]:
        """Return the start and the range (low, high) of the search for an effect."""

    @property
    @abstractmethod
    def _named(self) -> str:
        """The name of the effect as an argument."""

    @property
    def _assumption(self) -> str:
        """The assumption of the simulation that no argument of `power` states."""
        return ""

    @property
    def _readers(self) -> dict[str, Callable[[Any], float]]:
        """Functions that read an effect, by each name under which it can be given."""
        return {self._named: self._read}

    def _read(self, value: Any) -> float:
        """Return an effect on the internal scale."""
        if not checks.is_number(value) or not math.isfinite(value):
            raise ValueError(f"{self._named} must be a finite number, got {checks.quoted(value)}.")
        return float(value)

    def _shown(self, effect: float) -> float:
        """Return an effect on the scale of its argument."""
        return effect

    @property
    def _local(self) -> bool:
        """Whether the plan is for the local model, if the design supports it."""
        return getattr(self, "mode", "central") == "local"

    @property
    def _most(self) -> int:
        """Largest number of units that is simulated."""
        return 10**9

    @property
    def _searched(self) -> tuple[float, float]:
        """Range of the search for the number of units."""
        return 2.0, float(self._most)

    @property
    def _counted(self) -> str:
        """The unit of `nobs`."""
        return "respondents"

    def power(
        self,
        nobs: int,
        epsilon: float,
        effect: float | None = None,
        *,
        delta: float = 0.0,
        alpha: float = 0.05,
        **stated: float,
    ) -> Estimate:
        """Compute the power (or the expected accuracy) of a design.

        Parameters
        ----------
        nobs : int
            Number of units, such as the respondents of all groups together.
        epsilon, delta : float
            The privacy guarantee; ``epsilon=numpy.inf`` for the non-private fit.
        effect : float, optional
            Size of the effect.
        alpha : float, default 0.05
            Significance level of the test, or one minus the confidence level.
        **stated
            Instead of `effect`: the effect by its name, such as ``phi=0.9``.

        Returns
        -------
        Estimate

        Examples
        --------
        >>> design.power(nobs=400, epsilon=1.0, total_variation=0.1)
        0.9789 (no Monte Carlo error)
        """
        size = self._stated(effect, stated)
        for name, value in (("nobs", nobs), (self._named, size), ("epsilon", epsilon)):
            if value is None:
                raise ValueError(
                    f"{name} must be given: use solve_power(...) to find it from {self.outcome}=..."
                )
        return self._answer(
            self._measure, nobs, epsilon, effect, delta=delta, alpha=alpha, **stated
        )

    def solve_power(
        self,
        nobs: int | None = None,
        epsilon: float | None = None,
        effect: float | None = None,
        *,
        delta: float = 0.0,
        alpha: float = 0.05,
        **stated: float,
    ) -> Estimate:
        """Solve for the argument that is left out.

        The arguments are the number of units, epsilon, the effect and the power.

        Parameters
        ----------
        nobs, epsilon, effect, delta, alpha
            See :meth:`power`.
        **stated
            The effect by its name, and ``power=``, the required power. For a design that predicts
            another quantity, the name of that quantity replaces ``power``.

        Returns
        -------
        Estimate
            The smallest number of units, the smallest epsilon, or the effect closest to none with
            the required power.

        Examples
        --------
        The required number of respondents, and the required epsilon for 500 respondents:

        >>> design.solve_power(epsilon=1.0, total_variation=0.1, power=0.8)
        202 respondents (no Monte Carlo error)
        >>> design.solve_power(nobs=500, total_variation=0.1, power=0.8)
        epsilon = 0.09486 (no Monte Carlo error)
        """
        return self._answer(
            self._measure, nobs, epsilon, effect, delta=delta, alpha=alpha, **stated
        )

    def _answer(
        self,
        measure: Callable[[DesignPoint, int], tuple[float, float]],
        nobs: int | None = None,
        epsilon: float | None = None,
        effect: float | None = None,
        *,
        delta: float = 0.0,
        alpha: float = 0.05,
        **stated: float,
    ) -> Estimate:
        """Return the argument that is left out, given the function `measure` of a point."""
        target = stated.pop(self.outcome, None)
        size = self._stated(effect, stated)
        given = {self.outcome: target, "nobs": nobs, "epsilon": epsilon, self._named: size}
        missing = [name for name, value in given.items() if value is None]
        if len(missing) != 1:
            left = f"{', '.join(missing)} are" if missing else "none is"
            raise ValueError(
                f"exactly one of {', '.join(given)} must be None (the one to find), but {left}."
            )
        # None marks the argument to solve for: nobs 0 and NaN replace it until the search ends
        at = DesignPoint(
            nobs=0 if nobs is None else checks.check_count("nobs", nobs, low=2, high=self._most),
            effect=math.nan if size is None else size,
            epsilon=math.nan if epsilon is None else checks.check_epsilon(epsilon),
            delta=checks.check_delta(delta),
            alpha=checks.check_alpha(alpha),
        )
        if self._local and at.delta > 0:
            raise ValueError(
                "delta must be 0 in the local model, whose guarantee is pure. Omit delta."
            )
        if target is None:
            return Estimate(*measure(at, self.replicates), assumption=self._assumption)
        self._check_target(target, alpha)
        return self._solved(missing[0], at, float(target), measure)

    def _stated(self, effect: float | None, stated: Mapping[str, Any]) -> float | None:
        """Return the effect on the internal scale, under any of its names; None if omitted."""
        readers = self._readers
        unknown = [name for name in stated if name not in readers]
        if unknown or len(stated) + (effect is not None) > 1:
            differs = "phi" in unknown and hasattr(self, "kind")
            other = "plan with kind='rankings'" if differs else "omit it"
            wrong = f"{unknown[-1]}=" if unknown else f"{[*stated][-1]}= with another effect"
            raise TypeError(
                f"{type(self).__name__} takes no {wrong}. State {'= or '.join(readers)}= once, or "
                f"{other}."
            )
        name, value = next(iter(stated.items()), (self._named, effect))
        return None if value is None else readers[name](value)

    def _check_target(self, target: object, alpha: float) -> None:
        check_power(target, alpha)

    def _solved(
        self,
        name: str,
        point: DesignPoint,
        target: float,
        predicted: Callable[[DesignPoint, int], tuple[float, float]],
    ) -> Estimate:
        """Find the nobs, epsilon or effect at which the target is reached."""
        start, least, most = self._range(name, point)
        varied = name if name in ("nobs", "epsilon") else "effect"

        def measure(x: float, replicates: int) -> tuple[float, float]:
            change: dict[str, Any] = {varied: int(x) if name == "nobs" else x}
            try:
                return predicted(replace(point, **change), replicates)
            except ValueError:  # a fit of this size is refused, so its power is 0
                if x >= most or not self.probability:
                    raise
                return 0.0, 0.0

        search = Search(
            measure,
            target,
            least,
            most,
            self.replicates,
            whole=name == "nobs",
            rising=self.rising,
            probability=self.probability,
        )
        solved = least_number(search, start)
        if solved is None:
            up_to = "" if varied == "effect" else f" up to {most:.0f}"
            raise ValueError(
                f"no {varied}{up_to} reaches {self.outcome} {target:g}. State more "
                f"{self._counted}, a larger effect, a larger epsilon or less {self.outcome}."
            )
        if varied != "effect":
            return Estimate(
                solved.at,
                solved.error,
                words=self._counted if name == "nobs" else "epsilon =",
                assumption=self._assumption,
            )
        shown = self._shown(solved.at)
        # transform the error to the shown scale by a step to the side that is in range
        side = -1.0 if solved.at + solved.error > most else 1.0
        error = abs(self._shown(solved.at + side * solved.error) - shown)
        return Estimate(
            shown, error, words=f"{name.replace('_', ' ')} =", assumption=self._assumption
        )

    def _range(self, name: str, at: DesignPoint) -> tuple[float, float, float]:
        """Return the start and the range of the search for a number."""
        if name == "epsilon":
            least = checks.SMALLEST_EPSILON if self._local else SMALLEST
            return 1.0, least, LARGEST_EPSILON if self._local else LARGEST
        if name != "nobs":
            return self._effect_range(at)
        if at.effect == 0:
            raise ValueError(
                f"{self._named} = {self._shown(0.0):g} is H0 itself. State an effect other than H0."
            )
        # the search starts at 200 units, which are fast to simulate, and brackets the answer
        least, most = self._searched
        return max(200.0, least), least, most

    def plot_power(
        self, dep_var: Dependent = "nobs", *, ax: Axes | None = None, **at: Any
    ) -> Figure:
        """Plot the power, or the required number of units, against one of the arguments.

        A hatched region cannot be reached by any private method. It shows more power than any
        private test has, or a smaller excess than any private order has on average over the
        possible best orders, and the corresponding numbers of units, epsilons and effects.
        :func:`privrank.hypotheses.effects.least_errors` has the proof. Other plans have no such
        bound. In the local model the region is the bound for a central curator, and local reports
        achieve much less. Lines and regions are interpolated between the numbers on the axis. Bands
        are two Monte Carlo standard errors wide on either side.

        Parameters
        ----------
        dep_var : {"nobs", "epsilon", "effect"}
            Quantity on the horizontal axis; its argument is a sequence of numbers. One epsilon may
            be ``numpy.inf``: a dashed line shows the value without privacy.
        ax : matplotlib Axes, optional
            Axes for the plot.
        **at
            The arguments of :meth:`solve_power`, by name. The argument that is omitted is plotted:
            the power, or with ``power=`` the number of units. One other argument may also be a
            sequence; each of its numbers has a line.

        Returns
        -------
        Figure

        Examples
        --------
        >>> import matplotlib
        >>> import privrank as pr
        >>> matplotlib.use("Agg")
        >>> design = pr.power.UniformityPower(2, kind="choices")
        >>> at = {"epsilon": [0.25, 0.5, 1, 2, float("inf")], "total_variation": 0.1}
        >>> design.plot_power("epsilon", power=0.8, **at).axes[0].get_ylabel()
        'respondents'
        """
        from privrank.results import plots

        checks.check_choice("dep_var", dep_var, Dependent)
        # scalars become lists of length one, so the grid of points is always their product
        listed = {name: checks.as_list(value) for name, value in at.items()}
        lists = {name: [at[name]] if some is None else some for name, some in listed.items()}
        effect = next((name for name in self._readers if name in at), "effect")
        across = effect if dep_var == "effect" else dep_var
        if empty := [name for name in (across, *lists) if not lists.get(name)]:
            raise ValueError(f"{empty[0]} must be a number, or a list of at least one.")
        long = [name for name, values in lists.items() if len(values) > 1 and name != across]
        if len(long) > 1 or self.outcome in long:
            raise ValueError(
                f"{' and '.join(long)} must not be lists. At most one argument other than {across} "
                f"and {self.outcome} may be a list; each of its values has a line."
            )
        # epsilon = inf is not on a logarithmic axis: it is drawn as a horizontal line
        plain = across == "epsilon" and math.inf in lists["epsilon"]
        if plain and long:
            raise ValueError(
                f"epsilon must be finite on the axis if {long[0]} is a list. The value without "
                f"privacy is plotted for a single line only."
            )
        points = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
        sizes = [self.solve_power(**point) for point in points]
        # solve_power returns the quantity that is not given, which is on the vertical axis
        drawn = next(n for n in ("nobs", "epsilon", effect, self.outcome) if n not in at)
        frame = (
            pd.DataFrame(points)
            .rename(columns={effect: "effect"})
            .reindex(columns=["nobs", "epsilon", "effect"])
        )
        frame[drawn] = np.array(sizes)
        frame["std err"] = [size.error for size in sizes]
        if self._limit is not None:
            limits = np.array([self._answer(self._limit, **point) for point in points])
            # below the range of the search nothing is known
            frame["beyond"] = np.where(
                limits > {"nobs": self._searched[0], "epsilon": SMALLEST}.get(drawn, 0.0),
                limits,
                np.nan,
            )
        without = float(frame.loc[frame["epsilon"] == math.inf, drawn].iloc[0]) if plain else None
        frame = frame[frame["epsilon"] < math.inf] if plain else frame
        return plots.planned(
            frame,
            dep_var,
            drawn,
            self.caption.format_map(vars(self)),
            words=effect.replace("_", " "),
            plain=without,
            edge=self._shown(0.0) if drawn == effect else float(drawn == "power"),
            ax=ax,
        )


def item_names(items: object) -> tuple[str, ...]:
    """Return the names of at least two items, given names or a number."""
    if isinstance(items, Integral) and not isinstance(items, bool):
        return tuple(map(str, range(checks.check_count("items", items, low=2, high=10**6))))
    return tuple(str(name) for name in checks.check_items(items))
