"""Base classes of results, and tables of several results side by side."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import chain
from typing import Any, ClassVar, Self, TypeVar, TypeVarTuple, cast

import numpy as np
import pandas as pd

from privrank import __version__
from privrank.release.archived import archive
from privrank.release.release import Release
from privrank.release.survey import Sample, size_of
from privrank.results import guarantee, plots, tables
from privrank.results.claims import said
from privrank.util.arrays import immutable
from privrank.util.checks import check_alpha, check_count, check_flag, check_names, seen

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
Given = TypeVarTuple("Given")


def cached_result(compute: Callable[[Kind, *Given], Value]) -> Callable[[Kind, *Given], Value]:
    """Cache the values of a method of a result, by the arguments of its calls."""

    @wraps(compute)
    def stored(result: Kind, *given: *Given) -> Value:
        # results are frozen except for this cache of values computed from their release
        key = (compute.__qualname__, *given)
        if key not in result._kept:
            result._kept[key] = compute(result, *given)
        return cast(Value, result._kept[key])

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
            and numbers agree with ``to_frame()``. The estimate of a test is the effect that it
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
        frame = frame.loc[:, ~frame.columns.duplicated()].reindex(columns=words).astype(np.float64)
        frame.insert(0, "term", frame.index.astype(str))
        return self._cautioned(frame.reset_index(drop=True))

    def _level(self, alpha: float | None) -> float:
        """Return a given level, or the level of the result."""
        return check_alpha(self.alpha if alpha is None else alpha)

    def _fit_frame(self: Any, estimate: str, **statistic: Any) -> pd.DataFrame:
        """Return estimates with standard errors, p-values and intervals."""
        return pd.DataFrame(
            {
                estimate: self.params,
                "std_err": self.bse,
                "sampling": self.bse_sampling,
                "privacy": self.bse_privacy,
                **statistic,
                "pvalue": self.pvalues,
            }
        ).join(self.conf_int())

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
    _kept: dict[Any, Any] = field(default_factory=dict, init=False)

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
        survey = self.release.survey
        # a coefficient is named by its column and its item, so these are all names
        lists: list[tuple[str, ...]] = [survey.items]
        if isinstance(survey, Sample):
            lists.append(tuple(name for name, _ in survey.groups))
        elif (facts := survey.covariates) is not None:
            lists += [facts.item_columns, facts.columns]
        renamed = _checked_labels(
            labels,
            [*survey.items, *(name for names in lists[1:] for name in names if name != _REST)],
        )
        items, *more = (tuple(renamed.get(name, name) for name in names) for names in lists)
        for names in (items, *more):
            shown = [seen(name) for name in names]
            if twice := [name for name in shown if shown.count(name) > 1]:
                raise ValueError(
                    f"labels must differ from each other, and {twice[0]!r} is there twice."
                )
        changes: dict[str, Any] = {"items": items}
        if isinstance(survey, Sample):
            changes["groups"] = tuple(zip(more[0], (n for _, n in survey.groups), strict=True))
        elif facts is not None:
            changes["covariates"] = replace(facts, item_columns=more[0], columns=more[1])
        return replace(self, release=replace(self.release, survey=replace(survey, **changes)))

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


def _checked_labels(labels: object, codes: Sequence[str]) -> dict[str, str]:
    """Return labels by code; raise if they are not labels of known codes."""
    if not isinstance(labels, Mapping) or not all(isinstance(v, str) for v in labels.values()):
        raise TypeError('labels must map codes to texts, as {"crimRate": "Crime rate"} does.')
    check_names("labels", list(labels))
    if empty := [str(code) for code, label in labels.items() if not label.strip()]:
        raise ValueError(f"labels must not be empty. The label of {empty[0]!r} is empty.")
    if unknown := [str(code) for code in labels if str(code) not in codes]:
        raise ValueError(
            f"labels must be for {', '.join(codes)}, and {unknown[0]!r} is none of them."
        )
    return {str(code): seen(label) for code, label in labels.items()}


def summary_col(
    results: Sequence[Summarised],
    *,
    names: Sequence[str] | None = None,
    rows: Sequence[str] | None = None,
    digits: int = 4,
    title: str | None = None,
) -> tables.Table:
    """Show several results side by side, for example one column per epsilon.

    Parameters
    ----------
    results : sequence of results
        Results of one or several kinds. A cell is blank if a result has no such number. If results
        estimate different quantities, an additional row names the quantity of each column.
    names : sequence of str, optional
        Column headings; by default each result's epsilon.
    rows : sequence of str, optional
        The terms to show, in this order; by default all of them. To show labels instead of codes,
        use the ``with_labels`` method of each result.
    digits : int, default 4
        Decimals of estimates, standard errors, statistics and p-values.
    title : str, optional
        Title of the table.

    Returns
    -------
    Table
        With ``as_text()``, ``as_html()``, ``as_latex()``, ``as_markdown()``, ``as_csv()`` and
        ``to_frame()``. The lines below the estimates are the public facts of each release: epsilon,
        delta, unit, mechanism and the source of the noise. If a limit of an interval is infinite,
        this is stated next to the standard error. The notes list every warning of the results; a
        warning that does not concern all columns names its columns.

    Raises
    ------
    TypeError
        If `results` is not a list of at least one result.
    ValueError
        If there are not as many `names` as results, or a term is unknown.

    See Also
    --------
    privrank.pool : Pool several fits.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> fits = [model.fit(epsilon, rng=np.random.default_rng(1)) for epsilon in (1.0, np.inf)]
    >>> table = pr.summary_col(fits, names=["private", "non-private"])
    >>> for line in str(table).splitlines()[2:6]:
    ...     print(line)
                  private  non-private
    ----------------------------------
    crimRate       0.6070       0.4383
                 (0.1843)     (0.1059)
    """
    if not isinstance(results, Sequence) or not all(isinstance(one, Summarised) for one in results):
        raise TypeError("results must be a list of results.")
    if not results:
        raise TypeError("results must be a list of at least one result.")
    check_count("digits", digits, low=0, high=12)
    if not isinstance(title, str | None):
        raise TypeError(f"title must be a text, got {type(title).__name__}.")
    shown = cast("Sequence[Result]", results)
    params, errors, facts = zip(*(one._numbers() for one in shown), strict=True)
    public = [one._public() for one in shown]
    headings = (
        [f"eps={one.epsilon:g}" for one in shown] if names is None else check_names("names", names)
    )
    if len(headings) != len(results):
        raise ValueError(f"names must give one heading per result, got {len(headings)}.")
    terms = list(dict.fromkeys(chain.from_iterable(map(_terms, params, facts))))
    if rows is not None:
        known = terms
        terms = check_names("rows", rows)
        if unknown := [row for row in terms if row not in known]:
            raise ValueError(f"rows must be among {', '.join(known)}, and {unknown[0]!r} is not.")
    # ranks are lines below the rule, under the estimates of the same terms
    estimates = _estimate_rows(params, errors, [one._unlimited() for one in shown], terms, digits)
    families = {one.family for one in shown}
    # a warning that is not about all columns begins with theirs
    distinct = len({*headings}) == len(headings)
    named = headings if distinct else [f"column {k}" for k in range(1, len(headings) + 1)]
    said_of = [(name, one._cautions()) for name, one in zip(named, shown, strict=True)]
    cautions = tuple(tables.joined(said_of))
    return tables.Table(
        title=title or (families.pop() if len(families) == 1 else "Results side by side"),
        header=(),
        columns=("", *headings),
        rows=(*estimates, *_fact_rows(facts, public, terms, digits)),
        notes=(
            *said("errors in parentheses", any(map(len, errors))),
            *said("seeded", any("seeded" in column["noise"] for column in public)),
            *cautions,
        ),
        rule=len(estimates),
        cautions=cautions,
    )


def _terms(params: pd.Series[Any], facts: Mapping[str, Any]) -> list[str]:
    """Return the terms of a column: those of its estimates, then those of its ranks."""
    return [
        *map(str, params.index),
        *(label.removeprefix(RANK_OF) for label in facts if RANK_OF in label),
    ]


def _estimate_rows(
    params: Sequence[pd.Series[Any]],
    errors: Sequence[pd.Series[Any]],
    unlimited: Sequence[Mapping[str, str]],
    terms: Sequence[str],
    digits: int,
) -> list[tuple[str, ...]]:
    """Return a row of estimates and one of their standard errors for each term."""
    kinds = [str(column.name or "") for column in params]
    rows = [("estimate", *kinds)] if len({*kinds} - {""}) > 1 else []
    for term in terms:
        below = [""]
        for bse, limits in zip(errors, unlimited, strict=True):
            error = bse.get(term)
            missing = error is None or math.isnan(error)
            shown = [_printed("", error, digits), *filter(None, [limits.get(term)])]
            below.append("" if missing else f"({', '.join(shown)})")
        if any(term in column.index for column in params):
            estimates = (_printed("", column.get(term), digits) for column in params)
            rows += [(term, *estimates), tuple(below)]
    return rows


def _fact_rows(
    facts: Sequence[dict[str, Any]],
    public: Sequence[dict[str, str]],
    terms: Sequence[str],
    digits: int,
) -> list[tuple[str, ...]]:
    """Return other lines of the results, then the public facts of their releases."""
    labels = [
        label
        for label in dict.fromkeys(chain(*facts))
        if not label.startswith(RANK_OF) or label.removeprefix(RANK_OF) in terms
    ]
    rows = []
    for label in (*labels, *dict.fromkeys(chain(*public))):
        values = [(stated | own).get(label) for stated, own in zip(public, facts, strict=True)]
        if any(value is not None for value in values):
            rows.append((label, *(_printed(label, value, digits) for value in values)))
    return rows


def _printed(label: str, value: Any, digits: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return tables.UNIDENTIFIED
    least = 10.0**-digits
    small = label.startswith("p-value") and value < least
    return f"<{least:.{digits}f}" if small else f"{value:.{digits}f}"
