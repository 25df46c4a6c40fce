"""Public facts of a survey: what everybody may know before anything is released.

**The linear predictor** of a Bradley-Terry model with covariates. A *pattern* is one combination of
covariate values. Categorical covariates cut the units into *cells*; numeric ones, scaled to [-1, 1]
by their bounds, enter as *monomials* u_1^e_1 u_2^e_2 ... with exponents 0 or 1. The *rows* of the
released statistic are the cells times the monomials: row (c, e) is the sum over the units of cell c
of the monomial times the unit's net wins. Every column of the model matrix is a linear combination
of rows. Therefore all models with these covariates can be fitted to the same statistic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np

from privrank.privacy.accounting import Unit
from privrank.privacy.sensitivity import Adjacency, UnitSensitivity
from privrank.release import names
from privrank.util.arrays import FloatArray, IntArray, immutable, readonly_copy

DesignKind = Literal["public", "private"]
Excess = Literal["refuse", "sample"]

Ties = bool | Literal["davidson"]
Origin = Literal["observed", "declared", "equal", "proportional", "unknown", "released"]
SampleKind = Literal["rankings", "choices"]

ASSERTED = ("equal", "proportional", "unknown")
"""Origins of pair counts that were neither counted nor declared one by one."""

FINENESS = 2**20
"""Lattice steps per unit of a scaled numeric covariate."""

MIN_UNITS = 2
"""Units of a sample below which nothing can be tested or estimated."""

MAX_PAIRED_ITEMS = 200
"""Items up to which the design effects of all differences are compared: about a second."""

MAX_NUMBERS = 2**23
"""Number of weights up to which they are compared."""


@immutable
@dataclass(frozen=True, slots=True, eq=False)
class Covariates:
    """The public facts about the covariates of a model.

    Parameters
    ----------
    formula : str
        Right side of the formula.
    factors : tuple of (str, tuple of str)
        Names and declared levels of the categorical covariates.
    bounds : tuple of (str, float, float)
        Names and bounds of the numeric covariates.
    monomials : tuple of tuple of int
        Exponents, 0 or 1, of the numeric covariates in each monomial; all 0 in the first.
    columns : tuple of str
        Names of the K columns of the model matrix.
    terms : tuple of (str, int, int)
        Name of each term, its first column, and one past its last.
    weights : ndarray, shape (R, K)
        Rows of the statistic to columns of the model matrix.
    ordered : bool
        Whether the item that is named first has an advantage of its own.
    item_columns : tuple of str
        Names of the item covariates; empty where every item has a worth of its own.
    item_matrix : ndarray, shape (m, q)
        Item covariates; worths are their linear combinations.
    cell : ndarray of int64, shape (S,)
        Cell of each pattern.
    position : ndarray of int64, shape (S, numerics)
        Numeric covariates of each pattern, scaled to [-1, 1], in steps of 1 / FINENESS.
    first : ndarray of int64, shape (S,)
        1 where the earlier item of a pair was named first, -1 where the later, 0 without an order
        effect.
    units : ndarray, shape (S,)
        Units with the covariates of each pattern, in whichever order items were named, where that
        is public or released; else empty.
    """

    formula: str
    factors: tuple[tuple[str, tuple[str, ...]], ...]
    bounds: tuple[tuple[str, float, float], ...]
    monomials: tuple[tuple[int, ...], ...]
    columns: tuple[str, ...]
    terms: tuple[tuple[str, int, int], ...]
    weights: FloatArray
    ordered: bool
    item_columns: tuple[str, ...]
    item_matrix: FloatArray
    cell: IntArray
    position: IntArray
    first: IntArray
    units: FloatArray | IntArray

    def __post_init__(self) -> None:
        """Take private, read-only copies."""
        kinds = dict.fromkeys(("weights", "item_matrix", "units"), np.float64)
        for name, kind in {**kinds, "cell": np.int64, "first": np.int64}.items():
            object.__setattr__(self, name, readonly_copy(getattr(self, name), kind))
        shape = (len(self.cell), len(self.bounds))
        object.__setattr__(
            self, "position", readonly_copy(np.reshape(self.position, shape), np.int64)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates, the categorical ones first."""
        return (*(name for name, _ in self.factors), *(name for name, _, _ in self.bounds))

    @property
    def patterns(self) -> int:
        """Number of patterns S."""
        return len(self.cell)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return prod(len(levels) for _, levels in self.factors)

    @property
    def rows(self) -> int:
        """Rows R of the statistic."""
        return self.cells * len(self.monomials)

    @property
    def step(self) -> float:
        """Size of a lattice step of the statistic: 1 without numeric covariates."""
        return 1.0 / FINENESS if self.bounds else 1.0

    @property
    def basis(self) -> IntArray:
        """Weight of each pattern in each row of the statistic, in lattice steps, shape (S, R)."""
        # a pattern has the monomials of its values in the rows of its own cell, 0 in all others
        table = np.zeros((self.patterns, self.cells, len(self.monomials)), dtype=np.int64)
        table[np.arange(self.patterns), self.cell] = powers_of(self.position, self.monomials)
        return table.reshape(self.patterns, self.rows)

    @property
    def weight(self) -> int:
        """Largest sum of a pattern's absolute weights in the statistic, in lattice steps."""
        return int(np.abs(self.basis).sum(axis=1).max())

    @property
    def kinds(self) -> IntArray:
        """Number the combinations of covariate values, by pattern: orders of naming are one kind.

        All answers of a unit are of one kind.
        """
        values = np.column_stack((self.cell, self.position))
        return np.unique(values, axis=0, return_inverse=True)[1].ravel().astype(np.int64)

    @property
    def matrix(self) -> FloatArray:
        """The model matrix by pattern, shape (S, K)."""
        return np.asarray((self.step * self.basis) @ self.weights)

    @property
    def cell_labels(self) -> tuple[dict[str, str], ...]:
        """The levels that each cell stands for, the last factor running fastest."""
        names = [name for name, _ in self.factors]
        levels = [levels for _, levels in self.factors]
        return tuple(dict(zip(names, cell, strict=True)) for cell in product(*levels))


def scaled_position(values: FloatArray, low: float, high: float) -> IntArray:
    """Return numbers within bounds, scaled to [-1, 1], in lattice steps."""
    # as a difference of differences, which is exactly -1 and 1 at the bounds
    scaled = ((values - low) - (high - values)) / (high - low)
    return np.rint(FINENESS * np.clip(scaled, -1.0, 1.0)).astype(np.int64)


def powers_of(position: IntArray, monomials: Sequence[tuple[int, ...]]) -> IntArray:
    """Return the monomials of scaled values, in lattice steps, shape (patterns, monomials).

    A product is rounded to the lattice after each factor and therefore stays in [-1, 1].
    """
    unit = FINENESS if position.shape[1] else 1
    table = np.full((len(position), len(monomials)), unit, dtype=np.int64)
    for column, exponents in enumerate(monomials):
        for name, exponent in enumerate(exponents):
            if exponent:
                # both are at most 2^20 in size, so the product is exact
                table[:, column] = np.rint(table[:, column] * position[:, name] / FINENESS)
    return table


@immutable
@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
    """Comparisons per pair as the public may know them.

    Parameters
    ----------
    first, second : ndarray of int64, shape (edges,)
        Positions of the two items in the item list, ``first < second``, sorted.
    count : ndarray of float64, shape (edges,)
        Comparisons of that pair; pairs never met may be left out.
    origin : {"observed", "declared", "equal", "proportional", "unknown", "released"}
        Where the numbers come from: counted under a public design, declared by the user, assumed
        equal, or released with noise. Proportional ones follow from the released counts of items,
        and of unknown ones, which a selection can do without, nothing is stated; in a design equal
        numbers stand for both, which plans take.
    """

    first: IntArray
    second: IntArray
    count: FloatArray | IntArray
    origin: Origin

    def __post_init__(self) -> None:
        """Take private, read-only copies, sorted by the first item as the solvers need them."""
        order = np.argsort(self.first, kind="stable")
        for name, kind in (("first", np.int64), ("second", np.int64), ("count", np.float64)):
            object.__setattr__(
                self, name, readonly_copy(np.asarray(getattr(self, name))[order], kind)
            )

    @classmethod
    def equal(cls, items: int, number: float, origin: Origin = "equal") -> PairCounts:
        """Return the count `number` on every pair."""
        first, second = np.triu_indices(items, 1)
        return cls(first, second, np.full(len(first), number), origin)

    @property
    def total(self) -> float:
        """Comparisons in all."""
        return float(self.count.sum())

    def table(self, items: int) -> FloatArray:
        """Comparisons of each two items, shape (items, items)."""
        table = np.zeros((items, items))
        table[self.first, self.second] = table[self.second, self.first] = self.count
        return table


@immutable
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
        Rows a respondent may contribute (declared). A test uses one of them, drawn at random;
        aggregations use their mean.
    distinct_pairs : bool
        Whether a respondent compares each pair at most once (declared).
    ties : bool or "davidson"
        Whether the questionnaire allows ties (declared), and whether they have a parameter.
    kind : {"public", "private"}
        Whether who compared which pairs is public.
    pairs : PairCounts or None
        Public comparisons per pair; None if they must be released. With covariates, under a public
        design, per pattern and pair: item i with pattern s has the number s m + i.
    covariates : Covariates or None
        The linear predictor, where the model has covariates.
    excess : {"refuse", "sample"}
        Whether respondents keep the bounds by themselves, or a secret draw of their rows does.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> design = model.fit(epsilon=1.0, rng=np.random.default_rng(1)).release.design
    >>> design.nobs, design.unit, design.max_rows
    (98, 'respondent', 6)
    """

    items: tuple[str, ...]
    nobs: int
    unit: Unit
    max_rows: int
    distinct_pairs: bool
    ties: Ties
    kind: DesignKind
    pairs: PairCounts | None
    covariates: Covariates | None = None
    excess: Excess = "refuse"

    @property
    def davidson(self) -> bool:
        """Whether ties have a parameter, and their number is released.

        Examples
        --------
        >>> design.davidson
        False
        """
        return self.ties == "davidson"

    @property
    def adjacency(self) -> Adjacency:
        """What neighbours may change.

        Examples
        --------
        >>> design.adjacency
        'outcome'
        """
        return "outcome" if self.kind == "public" else "replace"

    @property
    def sensitivity(self) -> UnitSensitivity:
        """What one unit can change.

        Examples
        --------
        >>> design.sensitivity.effective_rows
        6
        """
        rows = self.max_rows if self.unit == "respondent" else 1
        return UnitSensitivity(len(self.items), rows, self.distinct_pairs, self.adjacency)

    def step(self, part: str, *, exact: bool) -> float:
        """Return the unit in which a part counts; a non-private run counts wins in halves.

        Examples
        --------
        >>> design.step("win matrix", exact=False), design.step("pair_counts", exact=False)
        (0.5, 1.0)
        """
        if part == names.NET and self.covariates is not None:
            return self.covariates.step
        return 0.5 if part in (names.WINS, names.SIDES) and (self.ties or exact) else 1.0

    @property
    def varied(self) -> bool:
        """Whether who compared which pairs varies between surveys as respondents do.

        Then a respondent's net wins vary with the pairs as well. The fit accounts for this by the
        comparisons of each pair, released or declared. Not so where these are only asserted to be
        equal or proportional; fits with covariates take who compared what as given.

        Examples
        --------
        >>> design.varied
        False
        """
        asserted = self.pairs is not None and self.pairs.origin in ASSERTED
        return self.kind == "private" and self.covariates is None and not asserted

    @property
    def unknown(self) -> bool:
        """Whether nothing is known of how often each pair was compared, as a selection needs none.

        Examples
        --------
        >>> design.unknown
        False
        """
        return self.pairs is not None and self.pairs.origin == "unknown"

    @property
    def matched(self) -> bool:
        """Whether opponents are asserted to be matched at random, given the counts of items.

        Examples
        --------
        >>> design.matched
        False
        """
        return self.pairs is not None and self.pairs.origin == "proportional"

    @property
    def few_differences(self) -> bool:
        """Whether items and covariates are few enough to compare all design effects.

        Examples
        --------
        >>> design.few_differences
        True
        """
        m = len(self.items)
        facts = self.covariates
        kinds = 1 if facts is None else len(np.unique(facts.kinds))
        every = m * m * (1 if facts is None else len(facts.columns) + facts.cells)
        return m <= MAX_PAIRED_ITEMS and every * kinds * m <= MAX_NUMBERS

    @property
    def item_freedom(self) -> int:
        """Contrasts of the items that item covariates leave; 0 without these.

        Examples
        --------
        >>> design.item_freedom
        0
        """
        columns = 0 if self.covariates is None else len(self.covariates.item_columns)
        return max(len(self.items) - 1 - columns, 0) if columns else 0

    @property
    def nominal_total(self) -> float:
        """Comparisons in all, from public numbers alone.

        Examples
        --------
        >>> design.nominal_total
        503.0
        """
        if self.pairs is not None:
            return self.pairs.total
        return float(self.nobs * self.sensitivity.effective_rows)


def nominal_pairs(design: Design, origin: Origin) -> PairCounts:
    """Return equal counts of all pairs, as many comparisons in all as public numbers suggest."""
    nominal = design.nominal_total / design.sensitivity.pairs
    return PairCounts.equal(len(design.items), nominal, origin)


def without_counts(design: Design) -> Design:
    """Return the design of a selection, which has no need of pair counts that are not public."""
    if design.pairs is not None:
        return design
    return replace(design, pairs=nominal_pairs(design, "unknown"))


@immutable
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
        Rows a respondent may contribute (declared). A test uses one of them, drawn at random;
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

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> rng = np.random.default_rng(1)
    >>> women, men = pr.Mallows(4, 0.6).rvs(60, rng), pr.Mallows(4, 0.9).rvs(50, rng)
    >>> result = pr.ClosenessTest(women, men).fit(epsilon=1.0, permutations=99, rng=rng)
    >>> sample = result.release.sample
    >>> sample.kind, sample.nobs, sample.groups
    ('rankings', 110, (('sample 1', 60), ('sample 2', 50)))
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
        """Whether who is in which group is protected.

        Examples
        --------
        >>> sample.private_labels
        False
        """
        return any(size is None for _, size in self.groups)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of units of the groups, where they are public.

        Examples
        --------
        >>> sample.sizes
        (60, 50)
        """
        return tuple(size for _, size in self.groups if size is not None)


def size_of(survey: Design | Sample) -> str:
    """Return how large a survey is, in words."""
    return f"{len(survey.items)} items, {survey.nobs} {survey.unit}s"


def record_of(facts: Any) -> dict[str, Any]:
    """Return public facts by name, as JSON has them, without what the design does not have."""
    values = {part: getattr(facts, part.name) for part in fields(facts)}
    return {
        part.name: _plain(value)
        for part, value in values.items()
        if value is not None or part.default is not None
    }


def _plain(value: Any) -> Any:
    if isinstance(value, PairCounts) and value.origin in ASSERTED:
        return {"origin": value.origin, "each": float(value.count[0])}
    if isinstance(value, Covariates | PairCounts):
        return record_of(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


def survey_of(record: Mapping[str, Any]) -> Design | Sample:
    """Return the public facts that :func:`record_of` has written."""
    facts = {name: _tupled(value) for name, value in record.items()}
    if record["kind"] not in ("public", "private"):
        return Sample(**facts)
    if (pairs := record["pairs"]) is not None:
        facts["pairs"] = (
            PairCounts.equal(len(facts["items"]), pairs["each"], pairs["origin"])
            if pairs["origin"] in ASSERTED
            else PairCounts(**pairs)
        )
    if "covariates" in record:
        covariates = {name: _tupled(value) for name, value in record["covariates"].items()}
        facts["covariates"] = Covariates(**covariates)
    return Design(**facts)


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list) else value
