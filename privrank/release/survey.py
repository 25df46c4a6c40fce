"""Public facts of a survey: what everybody may know before anything is released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privrank.privacy.budget import Unit
from privrank.privacy.sensitivity import Adjacency, Reach
from privrank.release.covariates import Covariates
from privrank.util.arrays import own

__all__ = [
    "FEWEST_UNITS",
    "Design",
    "DesignKind",
    "Excess",
    "Origin",
    "PairCounts",
    "Sample",
    "SampleKind",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

DesignKind = Literal["public", "private"]
Excess = Literal["refuse", "sample"]
SampleKind = Literal["rankings", "choices"]
Origin = Literal["observed", "declared", "equal", "released"]


FEWEST_UNITS = 2
"""Units of a sample below which nothing can be tested or estimated."""

MOST_PAIRED_ITEMS = 200
"""Items up to which the design effects of all differences are compared: about a second."""

MOST_NUMBERS = 2**23
"""Weights up to which they are, too."""


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
    """Comparisons per pair as the public may know them.

    Parameters
    ----------
    first, second : ndarray of int64, shape (edges,)
        Positions of the two items in the item list, ``first < second``, sorted.
    count : ndarray of float64, shape (edges,)
        Comparisons of that pair; pairs never met may be left out.
    origin : {"observed", "declared", "equal", "released"}
        Where the numbers come from: counted under a public design, declared by the user, assumed
        equal, or released with noise.
    """

    first: IntArray
    second: IntArray
    count: FloatArray | IntArray
    origin: Origin

    def __post_init__(self) -> None:
        """Take private, read-only copies, sorted by the first item as the solvers need them."""
        order = np.argsort(self.first, kind="stable")
        object.__setattr__(self, "first", own(np.asarray(self.first)[order], np.int64))
        object.__setattr__(self, "second", own(np.asarray(self.second)[order], np.int64))
        object.__setattr__(self, "count", own(np.asarray(self.count)[order], np.float64))

    @classmethod
    def equal(cls, items: int, each: float) -> PairCounts:
        """Return the count `each` on every pair."""
        first, second = np.triu_indices(items, 1)
        return cls(first, second, np.full(len(first), each), "equal")

    @property
    def total(self) -> float:
        """Comparisons in all."""
        return float(self.count.sum())

    def degrees(self, items: int) -> FloatArray:
        """Comparisons each item takes part in."""
        by_first = np.bincount(self.first, self.count, minlength=items)
        return np.asarray(by_first + np.bincount(self.second, self.count, minlength=items))

    def table(self, items: int) -> FloatArray:
        """Comparisons of each two items, shape (items, items)."""
        upper = np.zeros((items, items))
        upper[self.first, self.second] = self.count
        return np.asarray(upper + upper.T)

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping; equal counts shrink to their number."""
        if self.origin == "equal":
            return {"origin": "equal", "each": float(self.count[0])}
        return {
            "origin": self.origin,
            "first": self.first.tolist(),
            "second": self.second.tolist(),
            "count": self.count.tolist(),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], items: int) -> PairCounts:
        """Rebuild from :meth:`to_record`."""
        if record["origin"] == "equal":
            return cls.equal(items, record["each"])
        return cls(record["first"], record["second"], record["count"], record["origin"])


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """The public facts of a paired-comparison survey.

    Parameters
    ----------
    items : tuple of str
        The items, in the declared order.
    nobs : int
        Number of units; public because neighbours replace a unit.
    unit : {"row", "respondent"}
        What one unit is.
    max_rows : int
        Rows a respondent may contribute (declared). A test uses one of them, drawn by lot;
        aggregations use their mean.
    distinct_pairs : bool
        Whether a respondent compares each pair at most once (declared).
    ties : bool
        Whether the questionnaire allows ties (declared).
    kind : {"public", "private"}
        Whether who compared which pairs is public.
    pairs : PairCounts or None
        Public comparisons per pair; None when they have to be released. With covariates, under a
        public design, per pattern and pair: item i with pattern s has the number s m + i.
    covariates : Covariates or None
        The linear predictor, where the model has covariates.
    excess : {"refuse", "sample"}
        Whether respondents keep the bounds by themselves, or a secret draw of their rows does.
    """

    items: tuple[str, ...]
    nobs: int
    unit: Unit
    max_rows: int
    distinct_pairs: bool
    ties: bool
    kind: DesignKind
    pairs: PairCounts | None
    covariates: Covariates | None = None
    excess: Excess = "refuse"

    @property
    def adjacency(self) -> Adjacency:
        """What neighbours may change."""
        return "outcome" if self.kind == "public" else "replace"

    @property
    def reach(self) -> Reach:
        """What one unit can change."""
        rows = self.max_rows if self.unit == "respondent" else 1
        return Reach(len(self.items), rows, self.distinct_pairs, self.adjacency)

    @property
    def varied(self) -> bool:
        """Whether who compared which pairs varies between surveys as respondents do.

        Then a respondent's net wins vary with the pairs, too, which the fit allows for by the
        comparisons of each pair, released or declared. Not so where these are only asserted to be
        equal; fits with covariates take who compared what as given.
        """
        asserted = self.pairs is not None and self.pairs.origin == "equal"
        return self.kind == "private" and self.covariates is None and not asserted

    @property
    def few_differences(self) -> bool:
        """Whether items and covariates are few enough to compare all design effects."""
        m, facts = len(self.items), self.covariates
        kinds = 1 if facts is None else len(np.unique(facts.kinds))
        every = m * m * (1 if facts is None else len(facts.columns) + facts.cells)
        return m <= MOST_PAIRED_ITEMS and every * kinds * m <= MOST_NUMBERS

    @property
    def item_freedom(self) -> int:
        """Contrasts of the items that item covariates leave; 0 without these."""
        columns = 0 if self.covariates is None else len(self.covariates.item_columns)
        return max(len(self.items) - 1 - columns, 0) if columns else 0

    @property
    def nominal_total(self) -> float:
        """Comparisons in all, from public numbers alone."""
        if self.pairs is not None:
            return self.pairs.total
        return float(self.nobs * self.reach.effective_rows)

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        record = {
            "items": list(self.items),
            "nobs": self.nobs,
            "unit": self.unit,
            "max_rows": self.max_rows,
            "distinct_pairs": self.distinct_pairs,
            "ties": self.ties,
            "kind": self.kind,
            "pairs": None if self.pairs is None else self.pairs.to_record(),
            "excess": self.excess,
        }
        if self.covariates is not None:
            record["covariates"] = self.covariates.to_record()
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Design:
        """Rebuild from :meth:`to_record`."""
        facts = dict(record)
        facts["items"] = tuple(record["items"])
        if record["pairs"] is not None:
            facts["pairs"] = PairCounts.from_record(record["pairs"], len(facts["items"]))
        if "covariates" in record:
            facts["covariates"] = Covariates.from_record(record["covariates"])
        return cls(**facts)


@dataclass(frozen=True, slots=True)
class Sample:
    """The public facts of a sample of rankings, or of choices of one category each.

    Parameters
    ----------
    kind : {"rankings", "choices"}
        What one row holds: a ranking of all items, or one of them.
    items : tuple of str
        The items ranked, or the categories, in the declared order.
    nobs : int
        Number of units; public because neighbours replace a unit.
    unit : {"row", "respondent"}
        What one unit is.
    max_rows : int
        Rows a respondent may contribute (declared). A test uses one of them, drawn by lot;
        aggregations use their mean.
    groups : tuple of (str, int or None)
        Names and numbers of units of the samples that are compared; empty where there is one.
        Numbers are None where who is in which group is protected.
    paired : bool
        Whether the two groups are of the same respondents, each of whom is one unit.
    completed : bool
        Whether rankings may have ties or missing items (declared), which a secret draw completes.
    group_column : str
        The column that names the groups; empty where samples come one by one.
    """

    kind: SampleKind
    items: tuple[str, ...]
    nobs: int
    unit: Unit
    max_rows: int
    groups: tuple[tuple[str, int | None], ...] = ()
    paired: bool = False
    completed: bool = False
    group_column: str = ""

    @property
    def private_labels(self) -> bool:
        """Whether who is in which group is protected."""
        return any(size is None for _, size in self.groups)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of units of the groups, where they are public."""
        return tuple(size for _, size in self.groups if size is not None)

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        groups = [list(group) for group in self.groups]
        return {**asdict(self), "items": list(self.items), "groups": groups}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Sample:
        """Rebuild from :meth:`to_record`."""
        groups = tuple(
            (str(name), None if size is None else int(size))
            for name, size in record.get("groups", ())
        )
        return cls(**{**record, "items": tuple(record["items"]), "groups": groups})
