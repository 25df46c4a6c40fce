"""Plans of releases: statistics with calibrated noise, fixed from public numbers.

Each statistic that a release of paired comparisons may contain is declared once, in :data:`PARTS`.
Plans calibrate noise by these declarations, archives are checked against them, and summaries use
their words. The statistics themselves, which see data, are
:data:`privrank.mechanisms.tallies.STATISTICS` and, in a second stage,
:data:`privrank.mechanisms.comparisons.SECOND_STAGE`. The worths of objective perturbation, whose
noise depends on a ridge and a loss, are planned by :func:`privrank.plans.calibration.perturbation`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.privacy.netnoise import (
    NoiseName,
    PartNoise,
    ZeroSumLaplace,
    cell_noise,
    count_noise,
    item_noise,
    net_noise,
    side_noise,
    tie_noise,
    ties_left,
    weighted_noise,
)
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release.names import (
    DEPENDENCE,
    GROUP_ANSWERS,
    ITEM_COUNTS,
    NET,
    OPPONENTS,
    ORDER_EFFECT,
    PAIR_COUNTS,
    SIDES,
    TIES,
    WINS,
    WORTHS,
)
from privrank.release.survey import Design
from privrank.util.arrays import immutable

Noise = DiscreteLaplace | DiscreteGaussian | CubeNoise | PermutohedronNoise | ZeroSumLaplace

Setting = float | str | bool

# Names of the settings of an objective perturbation: ridge, noise, its cells, and the gradient.
_OBJECTIVE = ("gamma", "lambda", "cell", "tolerance")

QUIET = DiscreteLaplace(0.0)
"""No noise."""


def equivalent_variance(distribution: Noise, items: int) -> float:
    """Return the variance of independent noise with differences like those of a distribution.

    Differences within vectors that sum to 0 vary like those of independent numbers of m / (m - 1)
    their variance.
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
    stage : {1, 2}
        2 for a statistic that depends on the released parts of stage 1.
    """

    name: str
    words: str
    calibrate: Callable[[Design, NoiseRequest], PartNoise]
    size: Callable[[Design, Form], int]
    main: bool = False
    share: float | Literal["balanced"] | None = None
    needed: Callable[[Design, bool], bool] = lambda design, private: False
    lattice: Callable[[Design, Form], int] = lambda design, form: 1
    stage: Literal[1, 2] = 1


def plan_parts(design: Design, request: NoiseRequest) -> dict[str, PartPlan]:
    """Return all declared parts that have an epsilon, with their calibrated noise.

    Notes
    -----
    **Privacy.** Unit and neighbours as in `design`: replace one unit. Each part has the noise that
    :data:`PARTS` declares for it, at its own epsilon. Net wins have that of
    :func:`privrank.privacy.netnoise.net_noise`, or of
    :func:`privrank.privacy.netnoise.weighted_noise` with numeric covariates, which are public. The
    number of ties shares the noise of the net wins (:func:`privrank.privacy.netnoise.tie_noise`).
    Wins and losses: :func:`privrank.privacy.netnoise.side_noise`. Win matrix:
    :func:`privrank.privacy.netnoise.cell_noise`. Pair counts:
    :func:`privrank.privacy.netnoise.count_noise`. Item counts:
    :func:`privrank.privacy.netnoise.item_noise`. All other parts have discrete Laplace noise of
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
        size=lambda design, form: (
            len(design.items) * (1 if design.covariates is None else design.covariates.rows)
        ),
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
        stage=2,
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
        stage=2,
    ),
    PartSpec(
        GROUP_ANSWERS,
        words="answers of each group",
        calibrate=lambda design, request: _laplace_noise(
            design.sensitivity.group_answers_l1, request.epsilons[GROUP_ANSWERS]
        ),
        size=lambda design, form: 1 if design.covariates is None else design.covariates.cells,
        share="balanced",
        needed=lambda design, private: (
            design.kind == "private"
            and design.covariates is not None
            and design.covariates.cells > 1
        ),
    ),
    PartSpec(
        ORDER_EFFECT,
        words="order effect",
        calibrate=lambda design, request: _laplace_noise(
            design.sensitivity.named_first_l1, request.epsilons[ORDER_EFFECT]
        ),
        size=lambda design, form: 1,
        share=0.15,
        needed=lambda design, private: design.covariates is not None and design.covariates.ordered,
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
)

PARTS: dict[str, PartSpec] = {spec.name: spec for spec in _DECLARED}
"""The statistics of paired comparisons by name, in the order in which shares are listed."""

MAIN = tuple(name for name, spec in PARTS.items() if spec.main)
"""The main releases of counts."""
