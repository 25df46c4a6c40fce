"""Base classes of results: the release, its public facts, archives, pages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
import pandas as pd

from privrank import __version__
from privrank.release.archived import archive
from privrank.release.release import Release
from privrank.release.survey import Sample, size_of
from privrank.results import guarantee, plots, tables
from privrank.util.arrays import immutable
from privrank.util.checks import check_alpha, check_flag, check_names, seen

# The names in ``tidy()`` of the columns of frames.
_WORDS = {
    **dict.fromkeys(("worth", "coef", "win_rate", "net_wins", "borda", "effect"), "estimate"),
    "std_err": "std_error",
    **dict.fromkeys(("statistic", "z"), "statistic"),
    "pvalue": "p_value",
    "lower": "conf_low",
    "upper": "conf_high",
}

# Start of the label of a line with the rank of a term, in tables of several results.
RANK_OF = "rank of "

# The column of a model matrix whose coefficients are named by the items alone.
_REST = "Intercept"

Kind = TypeVar("Kind", bound="Result")
Value = TypeVar("Value")


def cached_result(compute: Callable[[Kind], Value]) -> Callable[[Kind], Value]:
    """Cache the return value of a method of a result at the first call."""
    name = compute.__qualname__

    @wraps(compute)
    def stored(result: Kind) -> Value:
        # results are frozen except for this cache of values computed from their release
        if name not in result._kept:
            result._kept[name] = compute(result)
        return cast(Value, result._kept[name])

    return stored


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Summarised(ABC):
    """A result with a summary, from one release or from several pooled releases.

    Parameters
    ----------
    alpha : float
        Significance level of intervals, rank sets and tests.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> result = model.fit(epsilon=1.0, rng=np.random.default_rng(1))
    """

    alpha: float

    @property
    def model(self) -> str:
        """Name of the kind of result in archives.

        Examples
        --------
        >>> result.model
        'BTLResult'
        """
        return type(self).__name__

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return the summary as a data frame, with its warnings in ``attrs``."""

    def summary(self, details: bool = False) -> tables.Table:
        """Return a summary table in the style of statsmodels.

        The table can be written as text, HTML, LaTeX, Markdown and CSV.

        Parameters
        ----------
        details : bool, default False
            Whether to add technical details: the scale of the noise and how it was chosen, shares
            of epsilon, methods and thresholds.

        Returns
        -------
        Table

        Examples
        --------
        >>> table = result.summary()
        >>> for line in str(table).splitlines()[9:13]:
        ...     print(line)
                     coef  std err  sampling  privacy        z    P>|z|   [0.025   0.975]     rank
        ------------------------------------------------------------------------------------------
        crimRate   0.6070    0.184     0.146    0.113    3.064    0.002    0.243    1.002      1-2
        socBurd    0.2625    0.176     0.141    0.105    1.485    0.138   -0.091    0.629      1-3
        """
        return self._table(check_flag("details", details))

    @abstractmethod
    def _table(self, details: bool) -> tables.Table:
        """Return the summary."""

    @abstractmethod
    def plot(self, ax: plots.Axes | None = None) -> plots.Figure:
        """Plot the result."""

    @abstractmethod
    def _cautions(self) -> tuple[str, ...]:
        """Return the warnings of all formats, including those about single numbers."""

    def _unlimited(self) -> dict[str, str]:
        """Return a text about infinite interval limits by term."""
        return {}

    def _series(self: Any, values: Any, name: str) -> pd.Series[Any]:
        """Return a copy of the values as a series over the items."""
        return pd.Series(np.array(values), index=pd.Index(self.items, name="item"), name=name)

    def _cautioned(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a frame with its warnings in ``attrs["warnings"]``."""
        frame.attrs["warnings"] = list(self._cautions())
        return frame

    def tidy(self) -> pd.DataFrame:
        """Return one row per term, with the column names of the R package broom.

        Returns
        -------
        DataFrame
            ``term``, ``estimate``, ``std_error``, ``statistic``, ``p_value``, ``conf_low`` and
            ``conf_high``, the same for all results and missing where there is no such number. Rows
            and numbers are those of ``to_frame()``. The estimate of a test is the effect that it
            measures. ``attrs["warnings"]`` lists the warnings that the notes of ``summary()``
            state.

        Examples
        --------
        >>> list(result.tidy().columns)
        ['term', 'estimate', 'std_error', 'statistic', 'p_value', 'conf_low', 'conf_high']
        """
        words = list(dict.fromkeys(_WORDS.values()))
        frame = self.to_frame().rename(columns=_WORDS)
        # net wins are not a second estimate in a selection by win rates
        frame = frame.loc[:, ~frame.columns.duplicated()]
        frame = frame.reindex(columns=words).astype(np.float64)
        frame.insert(0, "term", frame.index.astype(str))
        return self._cautioned(frame.reset_index(drop=True))

    def _level(self, alpha: float | None) -> float:
        """Return a given level, or the level of the result."""
        return check_alpha(self.alpha if alpha is None else alpha)

    def _fit_frame(self: Any, estimate: str, **statistic: Any) -> pd.DataFrame:
        """Return estimates with standard errors, p-values and intervals."""
        named = {
            estimate: self.params,
            "std_err": self.bse,
            "sampling": self.bse_sampling,
            "privacy": self.bse_privacy,
            **statistic,
            "pvalue": self.pvalues,
        }
        return pd.DataFrame(named).join(self.conf_int())

    def _limits(self: Any, low: Any, high: Any) -> pd.DataFrame:
        """Return the ends of intervals as a frame over the items."""
        return pd.DataFrame({"lower": low, "upper": high}, index=pd.Index(self.items, name="item"))

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())


@immutable
@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Result(Summarised):
    """An immutable result, computed from a release and settings alone.

    Parameters
    ----------
    release : Release
        The output of the private mechanism.
    alpha : float
        Significance level of intervals, rank sets and tests.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> result = model.fit(epsilon=1.0, rng=np.random.default_rng(1))
    >>> result
    <BTLResult: 4 items, 98 respondents, epsilon = 1>
    """

    release: Release
    _kept: dict[str, Any] = field(default_factory=dict, init=False)

    family: ClassVar[str]
    """Title of a table of several such results."""

    @property
    def items(self) -> tuple[str, ...]:
        """The items, or the categories, in the declared order.

        Examples
        --------
        >>> result.items
        ('crimRate', 'position', 'socBurd', 'culture')
        """
        return self.release.survey.items

    @property
    def nobs(self) -> int:
        """Number of units (rows or respondents).

        Examples
        --------
        >>> result.nobs
        98
        """
        return self.release.survey.nobs

    @property
    def epsilon(self) -> float:
        """Epsilon spent.

        Examples
        --------
        >>> result.epsilon
        1.0
        """
        return self.release.epsilon

    @property
    def delta(self) -> float:
        """Delta spent.

        Examples
        --------
        >>> result.delta
        0.0
        """
        return self.release.delta

    def __repr__(self) -> str:
        """Show the shape and the guarantee."""
        shape = (*self._shape(), f"epsilon = {self.epsilon:g}")
        return f"<{self.model.removesuffix('Result')}Result: {', '.join(shape)}>"

    def _shape(self) -> tuple[str, ...]:
        return (size_of(self.release.survey),)

    def _settings(self) -> dict[str, Any]:
        """Return the settings other than alpha that the result is rebuilt from."""
        return {}

    @abstractmethod
    def _estimates(self) -> dict[str, Any]:
        """Return estimates for readers of the archive; nothing is rebuilt from them."""

    def to_json(self) -> str:
        """Return the result as JSON text, from which :func:`privrank.from_json` rebuilds it.

        See Also
        --------
        privrank.from_json : Read the text.

        Examples
        --------
        The archive contains the release, so the result is rebuilt without the data:

        >>> text = result.to_json()
        >>> pr.from_json(text).params.equals(result.params)
        True
        """
        return archive(
            {
                "privrank": __version__,
                "result": self.model,
                "settings": {"alpha": self.alpha, **self._settings()},
                "estimates": self._estimates(),
                "release": self.release.to_record(),
            }
        )

    def _warned(self) -> list[str]:
        """Return warnings about all numbers of the release, a sentence each."""
        return guarantee.effect_notes(self.release) + guarantee.delta_notes(self.release)

    def _cautions(self) -> tuple[str, ...]:
        """Return the warnings of all formats, including those about single numbers."""
        return tuple(self._warned())

    def with_labels(self, labels: Mapping[str, str]) -> Self:
        """Return the same result with labels instead of codes.

        Tables, frames, figures, notes and archives of the returned result have the labels, and its
        methods accept them. Names are public, so there is no additional privacy cost.

        Parameters
        ----------
        labels : mapping of str to str
            Labels by code, for items or categories, columns of covariates, and groups. Codes that
            are left out do not change, and neither do the levels of covariates.

        Raises
        ------
        TypeError, ValueError
            If `labels` is not a mapping to texts, a code is unknown, or two codes get one label.

        Examples
        --------
        >>> result.with_labels({"crimRate": "Crime rate", "socBurd": "Social burden"}).items
        ('Crime rate', 'position', 'Social burden', 'culture')
        """
        return replace(self, release=_labelled(self.release, labels))

    def _public(self) -> dict[str, str]:
        """Return the public facts of the release for a table of several results."""
        return guarantee.release_facts(self.release)

    def _numbers(self) -> tuple[pd.Series[Any], pd.Series[Any], dict[str, Any]]:
        """Return estimates, errors and other lines for a table of several results.

        The name of the series of estimates states their kind.
        """
        nothing = pd.Series(np.empty(0))
        return getattr(self, "params", nothing), getattr(self, "bse", nothing), self._lines()

    def _lines(self) -> dict[str, Any]:
        """Return the other lines of a table of several results."""
        return {}

    def _row(self, test: str, names: Sequence[str], **more: Any) -> pd.DataFrame:
        """Return the row of a test: named attributes, other values, the guarantee."""
        numbers = {name: getattr(self, name) for name in names} | more
        numbers |= {"epsilon": self.epsilon, "delta": self.delta, "nobs": self.nobs}
        return self._cautioned(pd.DataFrame(numbers, index=pd.Index([test], name="test")))


def _labelled(release: Release, labels: object) -> Release:
    """Return a release with labels of items, columns of covariates and groups.

    The names are public facts, and nothing else changes.

    Raises
    ------
    TypeError, ValueError
        If `labels` is not a mapping to texts, a code is unknown, or two codes get one label.
    """
    survey = release.survey
    # a coefficient is named by its column and its item, so these are all names
    lists: list[tuple[str, ...]] = [survey.items]
    if isinstance(survey, Sample):
        lists.append(tuple(name for name, _ in survey.groups))
    elif (facts := survey.covariates) is not None:
        lists += [facts.item_columns, facts.columns]
    codes = [*survey.items, *(name for names in lists[1:] for name in names if name != _REST)]
    items, *more = _renamed(lists, _checked_labels(labels, codes))
    if isinstance(survey, Sample):
        groups = tuple(zip(more[0], (size for _, size in survey.groups), strict=True))
        return replace(release, survey=replace(survey, items=items, groups=groups))
    if facts is not None:
        facts = replace(facts, item_columns=more[0], columns=more[1])
    return replace(release, survey=replace(survey, items=items, covariates=facts))


def _checked_labels(labels: object, codes: Sequence[str]) -> dict[str, str]:
    """Return labels by code; raise if they are not labels of known codes."""
    if not isinstance(labels, Mapping) or not all(isinstance(v, str) for v in labels.values()):
        raise TypeError('labels must map codes to texts, as {"crimRate": "Crime rate"} does.')
    check_names("labels", list(labels))
    if empty := [str(code) for code, label in labels.items() if not label.strip()]:
        raise ValueError(f"labels must not be empty, and that of {empty[0]!r} is.")
    if unknown := [str(code) for code in labels if str(code) not in codes]:
        raise ValueError(
            f"labels must be for {', '.join(codes)}, and {unknown[0]!r} is none of them."
        )
    return {str(code): seen(label) for code, label in labels.items()}


def _renamed(lists: Sequence[tuple[str, ...]], labels: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return lists of names with labels instead of codes, unique in each list."""
    renamed = [tuple(labels.get(name, name) for name in names) for names in lists]
    shown = [[seen(name) for name in names] for names in renamed]
    if twice := [name for names in shown for name in names if names.count(name) > 1]:
        raise ValueError(f"labels must differ from each other, and {twice[0]!r} is there twice.")
    return renamed
