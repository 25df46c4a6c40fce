"""Declarations of the statistics that a release of paired comparisons may contain.

Each statistic is declared once. Plans calibrate noise by these declarations, archives are checked
against them, and summaries use their words. The statistics themselves, which see data, are
:data:`privrank.mechanisms.tallies.STATISTICS` and, in a second stage,
:data:`privrank.mechanisms.comparisons.SECOND_STAGE`. The worths of objective perturbation, whose
noise depends on a ridge and a loss, are planned by :func:`privrank.plans.calibration.perturbation`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from privrank.privacy.netnoise import (
    NoiseName,
    PartNoise,
    cell_noise,
    count_noise,
    item_noise,
    net_noise,
    side_noise,
    tie_noise,
    ties_left,
    weighted_noise,
)
from privrank.privacy.noise import DiscreteLaplace
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
)
from privrank.release.plan import PartPlan
from privrank.release.survey import Design

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

    def plan(self, design: Design, request: NoiseRequest) -> PartPlan:
        """Return the part with its calibrated noise."""
        noise = self.calibrate(design, request)
        epsilon = request.epsilons[self.name]
        unit = design.step(self.name, exact=math.isinf(epsilon))
        return PartPlan(
            noise.distribution,
            noise.sensitivity,
            epsilon,
            unit / (noise.fineness * self.lattice(design, request.form)),
            noise.fineness,
            noise.rho,
        )


def plan_parts(design: Design, request: NoiseRequest) -> dict[str, PartPlan]:
    """Return all declared parts that have an epsilon, with their calibrated noise.

    Notes
    -----
    **Privacy.** Unit and neighbours as in `design`: replace one unit. Each part has the noise that
    :data:`PARTS` declares for it, at its own epsilon. Net wins have the noise of
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
    names = sorted(request.epsilons.keys() & PARTS.keys())
    return {name: PARTS[name].plan(design, request) for name in names}


def _net_noise(design: Design, request: NoiseRequest) -> PartNoise:
    """Return the noise of net wins, which public numeric covariates may weight."""
    facts = design.covariates
    epsilon = request.epsilons[NET]
    if facts is not None and facts.bounds:
        return weighted_noise(design.sensitivity, facts.weight, epsilon)
    ties = TIES in request.epsilons  # a selection reads such a release as one without ties
    return net_noise(design.sensitivity, request.distribution, epsilon, request.delta, ties=ties)


def _laplace_noise(l1: int, epsilon: float) -> PartNoise:
    return PartNoise(DiscreteLaplace.calibrate(l1, epsilon), l1)


def _dependence_l1(design: Design, form: Form) -> int:
    """Return the l1 sensitivity of what is released of dependence, in lattice steps."""
    if form == "worst":
        return STEPS
    unit = design.sensitivity
    moved = unit.moments_l1(ties=design.davidson, expected=design.varied)
    return FINE * moved + unit.pairs + design.davidson if design.varied else moved


def _dependence_lattice(design: Design, form: Form) -> int:
    if form == "worst":
        return STEPS
    return FINE if design.varied else 1


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
            _dependence_l1(design, request.form), request.epsilons[DEPENDENCE]
        ),
        size=lambda design, form: (
            design.sensitivity.pairs + design.davidson if form == "pairs" else 1
        ),
        lattice=_dependence_lattice,
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
