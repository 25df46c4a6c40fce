"""What all results share: the release, its public facts, archives and pages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import pandas as pd

from privrank import __version__
from privrank.release.archived import archive
from privrank.release.release import Release
from privrank.results import broom
from privrank.results.guarantee import column_name, release_facts
from privrank.results.labels import codes, labelled
from privrank.results.tables import Column, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Result", "once"]

Kind = TypeVar("Kind", bound="Result")
Value = TypeVar("Value")


def once(compute: Callable[[Kind], Value]) -> Callable[[Kind], Value]:
    """Compute what a method of a result returns when it is first asked for, and keep it."""
    name = compute.__qualname__

    @wraps(compute)
    def kept(result: Kind) -> Value:
        if name not in result._kept:
            result._kept[name] = compute(result)
        value: Value = result._kept[name]
        return value

    return kept


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Result(ABC):
    """A frozen result: everything is computed from `release` and settings, nothing from data.

    Parameters
    ----------
    release : Release
        What the mechanism let out.
    alpha : float
        Significance level of what it states.
    """

    release: Release
    alpha: float
    _kept: dict[str, Any] = field(default_factory=dict, init=False)

    family: ClassVar[str]
    """Title of a table of several such results."""

    @property
    def items(self) -> tuple[str, ...]:
        """The items, or the categories, in the declared order."""
        return self.release.survey.items

    @property
    def nobs(self) -> int:
        """Number of units (rows or respondents)."""
        return self.release.survey.nobs

    @property
    def epsilon(self) -> float:
        """Epsilon spent."""
        return self.release.epsilon

    @property
    def delta(self) -> float:
        """Delta spent."""
        return self.release.delta

    @property
    def model(self) -> str:
        """Name by which an archive is rebuilt."""
        return type(self).__name__

    def __repr__(self) -> str:
        """Show the shape and the guarantee."""
        shape = (*self._shape(), f"epsilon = {self.epsilon:g}")
        return f"<{self.model.removesuffix('Result')}Result: {', '.join(shape)}>"

    def _shape(self) -> tuple[str, ...]:
        return f"{len(self.items)} items", f"{self.nobs} {self.release.survey.unit}s"

    def _series(self, values: Any, name: str) -> pd.Series[Any]:
        """Return a copy of the values as a series over the items."""
        return pd.Series(np.array(values), index=pd.Index(self.items, name="item"), name=name)

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """Return the table of the summary as a data frame."""

    @abstractmethod
    def summary(self, details: bool = False) -> Table:
        """Return a table in the style of statsmodels (text, HTML, LaTeX, Markdown, CSV)."""

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the result."""

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return what rebuilds the result from its release, beside alpha."""

    @abstractmethod
    def _estimates(self) -> dict[str, Any]:
        """Return what a reader of the archive wants to see; nothing is rebuilt from it."""

    def to_json(self) -> str:
        """Return the result as JSON text, from which :func:`privrank.from_json` rebuilds it."""
        return archive(
            {
                "privrank": __version__,
                "result": self.model,
                "settings": {"alpha": self.alpha, **self._settings()},
                "estimates": self._estimates(),
                "release": self.release.to_record(),
            }
        )

    tidy = broom.tidy
    glance = broom.glance

    def _glance(self) -> dict[str, Any]:
        """Return what `glance` says beyond what is public."""
        return broom.headlines(self)

    def with_labels(self, labels: Mapping[str, str]) -> Self:
        """Return the same result with labels in the place of codes, wherever these are shown.

        Tables, frames, figures, notes and archives of what is returned have the labels, and its
        methods take them. Names are public, so that this costs nothing.

        Parameters
        ----------
        labels : mapping of str to str
            Labels by code: of items or categories, of the columns of covariates, and of groups.
            Codes that are left out stay as they are, and so do the levels of covariates.

        Raises
        ------
        TypeError, ValueError
            If it is no mapping to texts, a code is unknown, or two codes would have one label.
        """
        return replace(self, release=labelled(self.release, labels))

    def _column(self) -> Column:
        """Return the result as a column of a table of several."""
        return Column(column_name(self.release), *self._numbers(), self._public())

    def _public(self) -> tuple[tuple[str, str], ...]:
        """Return what is public of the release, as such a column states it."""
        return release_facts(self.release)

    def _codes(self) -> tuple[str, ...]:
        """Return what can be labelled."""
        return codes(self.release)

    @abstractmethod
    def _numbers(self) -> tuple[pd.Series[Any], pd.Series[Any], tuple[tuple[str, Any], ...]]:
        """Return numbers, their standard errors and other lines of such a column.

        The name of the numbers says what they are.
        """

    def _repr_html_(self) -> str:
        return self.summary().as_html()
