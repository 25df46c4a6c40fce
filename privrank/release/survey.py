"""Public facts of a survey and the plan of its release: what may be known before the release.

**The linear predictor** of a Bradley-Terry model with covariates. A *pattern* is one combination of
covariate values. Categorical covariates cut the units into *cells*; numeric ones, scaled to [-1, 1]
by their bounds, enter as *monomials* u_1^e_1 u_2^e_2 ... with exponents 0 or 1. The *rows* of the
released statistic are the cells times the monomials: row (c, e) is the sum over the units of cell c
of the monomial times the unit's net wins. Every column of the model matrix is a linear combination
of rows. Therefore all models with these covariates can be fitted to the same statistic.

**Plans** are statistics with calibrated noise, fixed from public numbers. Each statistic that a
release of paired comparisons may contain is declared once, in :data:`PARTS`. Plans calibrate noise
by these declarations, archives are checked against them, and summaries use their words. The
statistics themselves, which see data, are :data:`privrank.mechanisms.tallies.STATISTICS` and, in a
second stage, :data:`privrank.mechanisms.comparisons.SECOND_STAGE`. The worths of objective
perturbation, whose noise depends on a ridge and a loss, are planned by
:func:`privrank.plans.choice.perturbation`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal, cast

import numpy as np

from privrank.privacy.accounting import Unit
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise, ZeroSumLaplace
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.privacy.offered import Offered, offered_edges, offered_sensitivity, vote_noise
from privrank.privacy.sensitivity import (
    Adjacency,
    NoiseName,
    PartNoise,
    UnitSensitivity,
    answered_noise,
    cell_noise,
    contest_noise,
    count_noise,
    item_noise,
    net_noise,
    side_noise,
    tie_noise,
    ties_left,
    weighted_noise,
)
from privrank.release.names import (
    ANSWERED,
    CONTEST,
    DEPENDENCE,
    GROUP_ANSWERS,
    ITEM_COUNTS,
    NET,
    OPPONENTS,
    PAIR_COUNTS,
    PAIRS,
    SIDES,
    TIES,
    WINS,
    WORTHS,
)
from privrank.release.weights import WEIGHT_STEPS, Weights
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
    contest : tuple of str
        Names of the q contest covariates, which describe single comparisons.
    item_columns : tuple of str
        Names of the item covariates; empty where every item has a worth of its own.
    item_matrix : ndarray, shape (m, q)
        Item covariates; worths are their linear combinations.
    cell : ndarray of int64, shape (S,)
        Cell of each pattern.
    position : ndarray of int64, shape (S, numerics)
        Numeric covariates of each pattern, scaled to [-1, 1], in steps of 1 / FINENESS.
    contests : ndarray, shape (S, q)
        Contest covariates of each pattern, with the sign for the earlier item of a pair.
    units : ndarray, shape (S,)
        Units with the covariates of each pattern, whatever their contests, where that is public or
        released; else empty.
    """

    formula: str
    factors: tuple[tuple[str, tuple[str, ...]], ...]
    bounds: tuple[tuple[str, float, float], ...]
    monomials: tuple[tuple[int, ...], ...]
    columns: tuple[str, ...]
    terms: tuple[tuple[str, int, int], ...]
    weights: FloatArray
    contest: tuple[str, ...]
    item_columns: tuple[str, ...]
    item_matrix: FloatArray
    cell: IntArray
    position: IntArray
    contests: FloatArray
    units: FloatArray | IntArray

    def __post_init__(self) -> None:
        """Take private, read-only copies."""
        for name, width in (("position", len(self.bounds)), ("contests", len(self.contest))):
            whole = np.reshape(getattr(self, name), (len(self.cell), width))
            object.__setattr__(self, name, whole)
        for name, kind in (
            ("weights", np.float64),
            ("item_matrix", np.float64),
            ("units", np.float64),
            ("cell", np.int64),
            ("position", np.int64),
            ("contests", np.float64),
        ):
            object.__setattr__(self, name, readonly_copy(getattr(self, name), kind))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates, the categorical ones first."""
        return (*(name for name, _ in self.factors), *(name for name, _, _ in self.bounds))

    @property
    def described(self) -> str:
        """Right side of the formula, followed by the contest covariates."""
        return ", contest: ".join(filter(None, (self.formula, " + ".join(self.contest))))

    @property
    def patterns(self) -> int:
        """Number of patterns S."""
        return len(self.cell)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return math.prod(len(levels) for _, levels in self.factors)

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
        """Number the combinations of covariate values by pattern, whatever the contests.

        All answers of a unit are of one kind.
        """
        values = np.column_stack((self.cell, self.position)) if self.bounds else self.cell
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


INTERCEPT = Covariates(
    formula="1",
    factors=(),
    bounds=(),
    monomials=((),),
    columns=("Intercept",),
    terms=(("Intercept", 0, 1),),
    weights=np.ones((1, 1)),
    contest=(),
    item_columns=(),
    item_matrix=np.zeros((0, 0)),
    cell=np.zeros(1, dtype=np.int64),
    position=np.zeros((1, 0), dtype=np.int64),
    contests=np.zeros((1, 0)),
    units=np.zeros(0),
)
"""What a model without covariates has in their place: an intercept, and a single pattern."""


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
        for name in np.flatnonzero(exponents):
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
        Comparisons of that pair; pairs never met may be left out. Edges of choices from sets can
        have the same pair, whose comparisons are then their sum.
    origin : {"observed", "declared", "equal", "proportional", "unknown", "released"}
        Where the numbers come from: counted under a public design, declared by the user, assumed
        equal, or released with noise. Proportional ones follow from the released counts of items,
        and of unknown ones, which a selection can do without, nothing is stated; in a design equal
        numbers stand for both, which plans take.
    squares : ndarray of float64, shape (edges,), or None
        With design weights `count` is the sum of the weights of a pair's comparisons, and this is
        the sum of their squares.
    """

    first: IntArray
    second: IntArray
    count: FloatArray | IntArray
    origin: Origin
    squares: FloatArray | IntArray | None = None

    def __post_init__(self) -> None:
        """Take private, read-only copies, sorted by the first item as the solvers need them."""
        order = np.argsort(self.first, kind="stable")
        kinds = {"first": np.int64, "second": np.int64, "count": np.float64}
        if self.squares is not None:
            kinds["squares"] = np.float64
        for name, kind in kinds.items():
            object.__setattr__(
                self, name, readonly_copy(np.asarray(getattr(self, name))[order], kind)
            )

    @classmethod
    def equal(cls, items: int, number: float, origin: Origin = "equal") -> PairCounts:
        """Return the count `number` on every pair."""
        first, second = np.triu_indices(items, 1)
        return cls(first, second, np.full(len(first), number), origin)

    @property
    def squared(self) -> FloatArray | IntArray:
        """Comparisons as they count in variances: times the squares of weights."""
        return self.count if self.squares is None else self.squares

    @property
    def total(self) -> float:
        """Comparisons in all."""
        return float(self.count.sum())

    def table(self, items: int) -> FloatArray:
        """Comparisons of each two items, shape (items, items)."""
        cells = self.first * items + self.second
        upper = np.bincount(cells, self.count, items * items).reshape(items, items)
        return np.asarray(upper + upper.T)


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
    offered : Offered or None
        The sets that were offered, where answers are choices from sets. `pairs` then follow from
        them: the pairs of items of each set
        (:func:`privrank.privacy.offered.offered_edges`).
    weights : Weights or None
        Design weights, where the net wins of units are multiplied by them.

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
    offered: Offered | None = None
    weights: Weights | None = None

    def __post_init__(self) -> None:
        """Derive the pairs that offered sets compare."""
        if self.offered is not None:
            if not self.offered.describes(len(self.items), self.nobs):
                raise ValueError("offered must be sets of the items for all units.")
            edges = offered_edges(self.offered, len(self.items))
            pairs = PairCounts(edges.first, edges.second, edges.count, "observed")
            object.__setattr__(self, "pairs", pairs)

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
    def silent(self) -> bool:
        """Whether units may leave tasks unanswered, which is part of their answers.

        Examples
        --------
        >>> design.silent
        False
        """
        return self.offered is not None and self.offered.unanswered is not None

    @property
    def tasks(self) -> int:
        """Number of tasks that were offered; 0 for paired comparisons.

        Examples
        --------
        >>> design.tasks
        0
        """
        return 0 if self.offered is None else self.offered.tasks

    @property
    def scaled_by_sets(self) -> bool:
        """Whether the scale of the worths depends on the size of the offered sets.

        Examples
        --------
        >>> design.scaled_by_sets
        False
        """
        return self.offered is not None and self.offered.answer == "best-worst"

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
        if self.offered is not None:
            return offered_sensitivity(len(self.items), self.offered)
        rows = self.max_rows if self.unit == "respondent" else 1
        weight = 1 if self.weights is None else WEIGHT_STEPS
        return UnitSensitivity(
            len(self.items), rows, self.distinct_pairs, self.adjacency, weight=weight
        )

    def step(self, part: str, *, exact: bool) -> float:
        """Return the unit in which a part counts; a non-private run counts wins in halves.

        Examples
        --------
        >>> design.step("win matrix", exact=False), design.step("pair_counts", exact=False)
        (0.5, 1.0)
        """
        if part == NET:
            # the score of a choice is the net win itself, and half of it for comparisons
            whole = self.offered is not None and self.offered.answer != "order"
            size = (self.covariates or INTERCEPT).step
            return 2.0 * size if whole else size
        return 0.5 if part in (WINS, SIDES) and (self.ties or exact) else 1.0

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
        every = m * m * (1 if facts is None else len(facts.columns) + facts.cells)
        numbers = m * len(np.unique((facts or INTERCEPT).kinds))
        if self.offered is not None:  # a contrast has ends for each set and each questionnaire
            numbers = max(numbers, len(self.offered.sets) + len(self.offered.versions))
        return m <= MAX_PAIRED_ITEMS and every * numbers <= MAX_NUMBERS

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


def effective_units(design: Design) -> float:
    """Return the number of units for sampling errors, with weights by Kish."""
    return float(design.nobs) if design.weights is None else design.weights.kish


def squared_units(design: Design) -> float:
    """Return the sum of the squares of the weights of all units, in steps; without weights, n."""
    if design.weights is None:
        return float(design.nobs)
    return design.weights.squares * WEIGHT_STEPS**2


def weight_unit(design: Design) -> float:
    """Return what one step of a design weight counts in a fit; 1 without weights.

    Weights and their squares then have equal sums over the comparisons, so independent answers have
    a variance equal to their information, and equal weights count 1.
    """
    pairs = design.pairs
    if pairs is None or pairs.squares is None:
        return 1.0
    return float(pairs.count.sum() / pairs.squares.sum())


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


def kind_of(survey: Design | Sample) -> str:
    """Return what the rows of a tested survey contain, in words."""
    return "choices from offered sets" if isinstance(survey, Design) else survey.kind


def size_of(survey: Design | Sample) -> str:
    """Return how large a survey is, in words."""
    return f"{len(survey.items)} items, {survey.nobs} {survey.unit}s"


Noise = DiscreteLaplace | DiscreteGaussian | CubeNoise | PermutohedronNoise | ZeroSumLaplace

Setting = float | str | bool

# Names of the settings of an objective perturbation: ridge, noise, its cells, and the gradient.
_OBJECTIVE = ("gamma", "lambda", "cell", "tolerance")

QUIET = DiscreteLaplace(0.0)
"""No noise."""


def equivalent_variance(distribution: Noise, items: int) -> float:
    """Return the variance of independent noise whose differences vary like a distribution's.

    Differences within vectors that sum to 0 vary like differences of independent
    numbers of m / (m - 1) their variance.
    """
    if isinstance(distribution, PermutohedronNoise | ZeroSumLaplace):
        # entries have covariance -variance / (m - 1), so a difference varies by 2 m / (m - 1) of it
        return distribution.variance * items / (items - 1)
    return distribution.variance


@immutable
@dataclass(frozen=True, slots=True)
class PartPlan:
    """One statistic on a lattice, with the noise that will be added to it.

    Parameters
    ----------
    noise : Noise or None
        Distribution of the noise, in lattice steps; None for values that have none of their own,
        such as an order found in noisy numbers.
    sensitivity : int
        Sensitivity of the statistic in lattice steps, in the norm of the noise: l1 for discrete and
        zero-sum Laplace noise, the maximum norm for discrete Gaussian and cube noise, and
        permutohedra of rank differences for permutohedron noise.
    epsilon : float
        Epsilon of this part.
    step : float
        Size of one lattice step in the statistic's own unit (0.5 for half wins).
    fineness : int
        Lattice steps in one step of the exact statistic.
    rho : float or None
        Zero-concentrated privacy of Gaussian noise; None for a pure part. Archives do not keep it.
    """

    noise: Noise | None
    sensitivity: int
    epsilon: float
    step: float = 1.0
    fineness: int = 1
    rho: float | None = None


@immutable
@dataclass(frozen=True, slots=True)
class Plan:
    """What a fit will release.

    Parameters
    ----------
    by : str
        The model or test that spends, for the ledger. Archives do not store it.
    mechanism : str
        Name of the mechanism in a summary.
    method : str
        The key by which inference selects a reader of the release.
    epsilon, delta : float
        The guarantee of all parts together, per unit.
    parts : mapping of str to PartPlan
        The statistics with their noise.
    settings : mapping of str to float, str or bool
        Public constants and choices of the method.
    rho : float or None
        Zero-concentrated privacy of all parts together, if it is known.
    """

    by: str
    mechanism: str
    method: str
    epsilon: float
    delta: float
    parts: Mapping[str, PartPlan]
    settings: Mapping[str, Setting] = field(default_factory=dict)
    rho: float | None = None

    def number(self, name: str) -> float:
        """Return a setting that is a number."""
        return float(self.settings[name])


@immutable
@dataclass(frozen=True, slots=True)
class Perturbation:
    """Public numbers of one objective perturbation, stored in the settings of its plan."""

    gamma: float
    scale: float
    cell: float
    tolerance: float
    part: PartPlan
    """The worths that are published, with the noise of the output."""

    @property
    def settings(self) -> dict[str, Setting]:
        """The numbers of the objective."""
        return dict(
            zip(_OBJECTIVE, (self.gamma, self.scale, self.cell, self.tolerance), strict=True)
        )

    @classmethod
    def of(cls, plan: Plan) -> Perturbation:
        """Read the numbers back from a plan."""
        # the settings contain the objective, the part contains the noise of the output
        gamma, scale, cell, tolerance = map(plan.number, _OBJECTIVE)
        return cls(gamma, scale, cell, tolerance, plan.parts[WORTHS])


Form = Literal["worst", "pairs", "none", "cluster"]

STEPS = 2**16
"""Sensitivity of the largest design effect, in lattice steps."""

FINE = 2**8
"""Lattice steps of sums of squares within their own unit, where answers are less expected ones."""


@dataclass(frozen=True, slots=True)
class NoiseRequest:
    """The choices that noise is calibrated to, in addition to the public facts.

    Parameters
    ----------
    epsilons : mapping of str to float
        Epsilon of each part.
    delta : float
        Delta of the release, which Gaussian noise of its main part uses.
    distribution : str
        Distribution of the noise of the main part.
    form : str
        Form in which the dependence of a respondent's answers is released.
    """

    epsilons: Mapping[str, float]
    delta: float = 0.0
    distribution: NoiseName = "laplace"
    form: Form = "none"


@dataclass(frozen=True, slots=True)
class PartSpec:
    """The declaration of one released statistic.

    Parameters
    ----------
    name : str
        Name of the part in a release.
    words : str
        Name of the statistic in a summary.
    calibrate : callable
        Returns the noise, with the sensitivity of the statistic, from public facts and a request.
    size : callable
        Returns the number of values, from public facts and the form of dependence.
    main : bool
        Whether the part is the main release, of which a fit has one. All others are side releases.
    share : float, "balanced" or None
        Default share of epsilon of a side release. Balanced shares minimise the error of these
        parts and the net wins together. None for dependence, whose share depends on its form.
    needed : callable
        Returns whether net wins need this side release, from public facts and whether noise is
        added.
    lattice : callable
        Returns the number of lattice steps in a unit of the statistic as it is measured, from
        public facts and the form of dependence.
    """

    name: str
    words: str
    calibrate: Callable[[Design, NoiseRequest], PartNoise]
    size: Callable[[Design, Form], int]
    main: bool = False
    share: float | Literal["balanced"] | None = None
    needed: Callable[[Design, bool], bool] = lambda design, private: False
    lattice: Callable[[Design, Form], int] = lambda design, form: 1


def plan_parts(design: Design, request: NoiseRequest) -> dict[str, PartPlan]:
    """Return all declared parts that have an epsilon, with their calibrated noise.

    Notes
    -----
    **Privacy.** Unit and neighbours as in `design`: replace one unit. Each part has the noise that
    :data:`PARTS` declares for it, at its own epsilon. Net wins have the noise of
    :func:`privrank.privacy.sensitivity.net_noise`, or of
    :func:`privrank.privacy.sensitivity.weighted_noise` with numeric covariates, which are public.
    The number of ties shares the noise of the net wins
    (:func:`privrank.privacy.sensitivity.tie_noise`), and so does the number of answered tasks
    (:func:`privrank.privacy.sensitivity.answered_noise`). Wins and losses:
    :func:`privrank.privacy.sensitivity.side_noise`. Win matrix:
    :func:`privrank.privacy.sensitivity.cell_noise`. Pair counts:
    :func:`privrank.privacy.sensitivity.count_noise`. Item counts:
    :func:`privrank.privacy.sensitivity.item_noise`. Contest covariates:
    :func:`privrank.privacy.sensitivity.contest_noise`. Votes on pairs by orders of offered sets:
    :func:`privrank.privacy.offered.vote_noise`. All other parts have discrete Laplace noise of
    scale l1 sensitivity / epsilon (:meth:`privrank.privacy.noise.DiscreteLaplace.calibrate`). Their
    sensitivities are proved in :class:`privrank.privacy.sensitivity.UnitSensitivity` and, for
    dependence, in :func:`privrank.mechanisms.tallies.largest_design_effect` and
    :func:`privrank.mechanisms.tallies.pair_moments`.
    """
    parts = {}
    for name in sorted(request.epsilons.keys() & PARTS.keys()):
        noise = PARTS[name].calibrate(design, request)
        epsilon = request.epsilons[name]
        lattice = noise.fineness * PARTS[name].lattice(design, request.form)
        parts[name] = PartPlan(
            noise.distribution,
            noise.sensitivity,
            epsilon,
            design.step(name, exact=math.isinf(epsilon)) / lattice,
            noise.fineness,
            noise.rho,
        )
    return parts


def _net_noise(design: Design, request: NoiseRequest) -> PartNoise:
    """Return the noise of net wins, which public numeric covariates may weight."""
    facts = design.covariates
    epsilon = request.epsilons[NET]
    if facts is not None and facts.bounds:
        return weighted_noise(design.sensitivity, facts.weight, epsilon)
    # a selection reads a release with a number of ties as one without ties
    ties = TIES in request.epsilons
    return net_noise(design.sensitivity, request.distribution, epsilon, request.delta, ties=ties)


def _laplace_noise(l1: int, epsilon: float) -> PartNoise:
    return PartNoise(DiscreteLaplace.calibrate(l1, epsilon), l1)


def _dependence(design: Design, form: Form) -> tuple[int, int]:
    """Return the l1 sensitivity of what is released of dependence, and the lattice steps per unit.

    The sensitivity is in lattice steps.
    """
    if form == "worst":
        return STEPS, STEPS
    unit = design.sensitivity
    moved = unit.moments_l1(ties=design.davidson, expected=design.varied)
    if design.varied:
        return FINE * moved + unit.pairs + design.davidson, FINE
    return moved, 1


_DECLARED = (
    PartSpec(
        NET,
        words="net wins",
        main=True,
        calibrate=_net_noise,
        size=lambda design, form: len(design.items) * (design.covariates or INTERCEPT).rows,
    ),
    PartSpec(
        SIDES,
        words="wins and losses",
        main=True,
        calibrate=lambda design, request: side_noise(
            design.sensitivity,
            request.distribution,
            request.epsilons[SIDES],
            ties=bool(design.ties),
        ),
        size=lambda design, form: 2 * len(design.items),
    ),
    PartSpec(
        WINS,
        words="wins of each pair",
        main=True,
        calibrate=lambda design, request: cell_noise(
            design.sensitivity,
            request.distribution,
            request.epsilons[WINS],
            request.delta,
            ties=bool(design.ties),
        ),
        size=lambda design, form: 2 * design.sensitivity.pairs,
    ),
    PartSpec(
        DEPENDENCE,
        words="dependence of answers",
        calibrate=lambda design, request: _laplace_noise(
            _dependence(design, request.form)[0], request.epsilons[DEPENDENCE]
        ),
        size=lambda design, form: (
            design.sensitivity.pairs + design.davidson if form == "pairs" else 1
        ),
        lattice=lambda design, form: _dependence(design, form)[1],
    ),
    PartSpec(
        PAIR_COUNTS,
        words="pair counts",
        calibrate=lambda design, request: count_noise(
            design.sensitivity, request.epsilons[PAIR_COUNTS]
        ),
        size=lambda design, form: design.sensitivity.pairs,
        share="balanced",
        needed=lambda design, private: private and design.pairs is None,
    ),
    PartSpec(
        ITEM_COUNTS,
        words="comparisons of each item",
        calibrate=lambda design, request: item_noise(
            design.sensitivity, request.epsilons[ITEM_COUNTS]
        ),
        size=lambda design, form: len(design.items),
        share="balanced",
    ),
    PartSpec(
        OPPONENTS,
        words="check of opponents",
        calibrate=lambda design, request: _laplace_noise(
            design.sensitivity.opponents_l1, request.epsilons[OPPONENTS]
        ),
        size=lambda design, form: 1,
        share=0.05,
        needed=lambda design, private: private and design.matched,
    ),
    PartSpec(
        GROUP_ANSWERS,
        words="answers of each group",
        calibrate=lambda design, request: _laplace_noise(
            design.sensitivity.group_answers_l1, request.epsilons[GROUP_ANSWERS]
        ),
        size=lambda design, form: (design.covariates or INTERCEPT).cells,
        share="balanced",
        needed=lambda design, private: (
            design.kind == "private" and (design.covariates or INTERCEPT).cells > 1
        ),
    ),
    PartSpec(
        CONTEST,
        words="sums of contest covariates",
        calibrate=lambda design, request: contest_noise(
            design.sensitivity,
            len((design.covariates or INTERCEPT).contest),
            request.epsilons[CONTEST],
        ),
        size=lambda design, form: len((design.covariates or INTERCEPT).contest),
        share="balanced",
        needed=lambda design, private: private and bool((design.covariates or INTERCEPT).contest),
    ),
    PartSpec(
        TIES,
        words="number of ties",
        calibrate=lambda design, request: tie_noise(
            design.sensitivity,
            _net_noise(design, request),
            request.epsilons[NET],
            request.epsilons[TIES],
        ),
        size=lambda design, form: 1,
        share=0.15,
        needed=lambda design, private: (
            private and design.davidson and bool(ties_left(design.sensitivity, "permutohedron"))
        ),
    ),
    PartSpec(
        ANSWERED,
        words="number of answered tasks",
        calibrate=lambda design, request: answered_noise(
            design.sensitivity, request.epsilons[NET], cast(Offered, design.offered).named
        ),
        size=lambda design, form: 1,
    ),
    PartSpec(
        PAIRS,
        words="pair counts of orders",
        main=True,
        calibrate=lambda design, request: vote_noise(
            len(design.items), cast(Offered, design.offered), request.epsilons[PAIRS]
        ),
        size=lambda design, form: design.sensitivity.pairs,
    ),
)

PARTS: dict[str, PartSpec] = {spec.name: spec for spec in _DECLARED}
"""The statistics of paired comparisons by name, in the order in which shares are listed."""

MAIN = tuple(name for name, spec in PARTS.items() if spec.main)
"""The main releases of counts."""
