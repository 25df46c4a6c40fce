"""A survey of paired comparisons before it runs: what it would release, and what to expect of it.

All from public numbers and from worths that are supposed. Expected is the release that a selection
would make, with the noise it would have, at the values that are expected under these worths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.contrasts import own_and_between
from privrank.bradley_terry.directions import Directions, contrast_directions, expected_answers
from privrank.bradley_terry.estimate import estimate, response
from privrank.bradley_terry.linear import ItemContrasts
from privrank.bradley_terry.moments import (
    degrees_of_freedom,
    floored_moments,
    independent_scores,
)
from privrank.bradley_terry.score import ScoreEquations, score_equations
from privrank.hypotheses.nulltables import public_generator
from privrank.local.protocols import LARGEST_EPSILON, Asking
from privrank.local.protocols_orders import Comparisons
from privrank.mechanisms.comparisons import plan_comparisons
from privrank.mechanisms.dependence import Expected as Rounded
from privrank.mechanisms.dependence import round_directions, round_expected
from privrank.planning.choice import Choice
from privrank.power import base
from privrank.power.base import Point, Range
from privrank.power.stated import names_of
from privrank.privacy.budget import Unit
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.plan import QUIET, PartPlan, Plan
from privrank.release.release import (
    DEPENDENCE,
    GAIN,
    LARGEST,
    NET,
    PAIR_COUNTS,
    RESIDUAL,
    WINS,
    Release,
)
from privrank.release.survey import Design, DesignKind, PairCounts
from privrank.util.checks import (
    SMALLEST_EPSILON,
    check_choice,
    check_count,
    check_flag,
    is_number,
    quoted,
)
from privrank.util.solvers import square_root

if TYPE_CHECKING:
    from privrank.power.comparisons import BTLPower
    from privrank.power.selection import TopKPower

__all__ = [
    "Expected",
    "Mode",
    "PairsKnown",
    "Survey",
    "check_protocol",
    "item_names",
    "least_and_most",
    "released",
    "survey_of",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Mode = Literal["central", "local"]
PairsKnown = Literal["release", "equal"]

_SURVEYS, _RESPONDENTS, _CELLS = 48, 400, 2**20
"""Surveys, respondents of each and answers of all that are simulated for the design effect."""

_NOISES = 512
"""Draws of the noise of a design effect."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The public facts of a survey of paired comparisons, but for the number of units.

    Parameters
    ----------
    items : tuple of str
        The items.
    rows : int
        Comparisons that each unit makes, of different pairs.
    unit : {"respondent", "row"}
        What one unit is.
    kind : {"private", "public"}
        Whether who compared which pairs is public.
    pair_counts : {"release", "equal"}
        What is known of the comparisons per pair under a private design.
    ties : bool
        Whether ties are allowed.
    effect : float
        Design effect of a respondent's answers.
    protocol : Asking or None
        Of reports in the local model.
    """

    items: tuple[str, ...]
    rows: int
    unit: Unit
    kind: DesignKind
    pair_counts: PairsKnown
    ties: bool
    effect: float
    protocol: Asking | None

    def design(self, nobs: int, epsilon: float) -> Design:
        """Return the public facts of so many units, pairs asked for equally often."""
        items, ties, public = self.items, self.ties, self.kind == "public"
        design = Design(items, nobs, self.unit, self.rows, True, ties, self.kind, None)
        pairs = PairCounts.equal(len(items), nobs * self.rows / design.reach.pairs)
        if public or math.isinf(epsilon):
            return replace(design, pairs=replace(pairs, origin="observed"))
        return replace(design, pairs=pairs) if self.pair_counts == "equal" else design

    def planned(
        self, at: Point, choose: Callable[[Design, float, float], Choice]
    ) -> tuple[Design, Plan]:
        """Return the public facts of a survey at a point, and what a fit of it releases."""
        if self.protocol is not None:
            return self._reports(at)
        design = self.design(at.nobs, at.epsilon)
        choice = choose(design, at.epsilon, at.delta)
        return design, plan_comparisons(design, choice, at.epsilon, at.delta, by="power")

    def _reports(self, at: Point) -> tuple[Design, Plan]:
        """Return the same of reports of the local model."""
        if at.delta > 0:
            raise ValueError(
                "delta must be 0 in the local model, whose reports are pure: leave it out."
            )
        assert self.protocol is not None
        protocol = replace(self.protocol, epsilon=at.epsilon)
        pairs = PairCounts.equal(len(self.items), at.nobs / len(protocol.all_pairs))
        pairs = replace(pairs, origin="observed")
        design = Design(self.items, at.nobs, "respondent", 1, True, self.ties, "public", pairs)
        parts, settings = {WINS: PartPlan(QUIET, 0, 0.0)}, {GAIN: protocol.gain}
        return design, Plan("power", protocol.kind, "", at.epsilon, 0.0, parts, settings)


def survey_of(asked: BTLPower | TopKPower) -> Survey:
    """Return the survey that is asked about, or refuse."""
    for name, value, literal in (
        ("unit", asked.unit, Unit),
        ("design", asked.design, DesignKind),
        ("pair_counts", asked.pair_counts, PairsKnown),
        ("mode", asked.mode, Mode),
    ):
        check_choice(name, value, literal)
    items = item_names(asked.items)
    rows = check_count("max_rows", asked.max_rows, high=len(items) * (len(items) - 1) // 2)
    effect = asked.design_effect
    if not is_number(effect) or not 1 <= effect < math.inf:
        raise ValueError(
            f"design_effect must be a number of at least 1, got {quoted(effect)}: 1 is that of "
            f"independent answers."
        )
    protocol = asked.protocol
    if protocol is None and asked.mode == "local":
        protocol = Comparisons(items, 1.0, ties=asked.ties)
    if protocol is not None:
        check_protocol(protocol, len(items))
    if rows > 1 and (protocol is not None or asked.unit == "row"):
        raise ValueError(
            "max_rows must be 1 in the local model and where a row is the unit: leave it out."
        )
    ties = check_flag("ties", asked.ties)
    unit, kind, known = asked.unit, asked.design, asked.pair_counts
    # a respondent of the local model gives one answer
    effect = 1.0 if protocol is not None else float(effect)
    return Survey(items, rows, unit, kind, known, ties, effect, protocol)


def item_names(items: object) -> tuple[str, ...]:
    """Return the names of at least two items, or of so many."""
    names = names_of(items)
    check_count("items", len(names), low=2)
    return names


def check_protocol(protocol: object, items: int) -> None:
    """Refuse what is no protocol of single pairs of so many items."""
    if not isinstance(protocol, Asking) or protocol.width != 2 or protocol.digits != 1:
        raise TypeError(
            "protocol must ask each respondent for one pair, as privrank.local.Comparisons does: "
            "leave it out and use mode='local'."
        )
    if len(protocol.items) != items:
        raise ValueError(
            f"protocol must be of the {items} items of the plan, got {len(protocol.items)}."
        )


def least_and_most(name: str, local: bool) -> Range:
    """Return where a number of units, or an epsilon, is looked for."""
    if name == "nobs":
        return Range(200.0, 10.0, 1e8)
    if local:
        return Range(1.0, SMALLEST_EPSILON, LARGEST_EPSILON)
    return Range(1.0, base.SMALLEST, base.LARGEST)


def _scores(design: Design, worths: FloatArray) -> tuple[PairCounts, FloatArray, FloatArray]:
    """Return comparisons per pair, expected wins beyond half of them, and scores by item."""
    m = len(worths)
    each = design.nominal_total / design.reach.pairs
    pairs = design.pairs or PairCounts.equal(m, each)
    away = worths[pairs.first] - worths[pairs.second]
    mean = np.asarray(pairs.count * (1.0 / (1.0 + np.exp(-away)) - 0.5))
    return pairs, mean, ItemContrasts(pairs, m).scores(mean)


def _released(design: Design, plan: Plan, worths: FloatArray) -> Release:
    """Return the release of a plan at the values that are expected, but for dependence."""
    pairs, mean, score = _scores(design, worths)
    gain = plan.number(GAIN) if GAIN in plan.settings else 1.0
    wins = 0.5 * pairs.count + gain * np.array([mean, -mean])
    values: dict[str, FloatArray] = {NET: 2.0 * score, WINS: wins.ravel()}
    values[PAIR_COUNTS] = np.asarray(pairs.count)
    kept = {
        name: np.rint(values[name] / plan.parts[name].step).astype(np.int64)
        for name in values.keys() & plan.parts.keys()
    }
    return released(design, plan, kept)


def released(design: Design, plan: Plan, values: Mapping[str, IntArray]) -> Release:
    """Return a release with these values that stands for one that a plan would make."""
    source: Literal["none", "respondents", "seeded"] = "seeded"
    if GAIN in plan.settings:
        source = "respondents"
    elif math.isinf(plan.epsilon):
        source = "none"
    return Release(plan, design, source, values, tuple(range(len(design.items))))


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """A release at the values expected of it, and how it errs.

    Parameters
    ----------
    worths : ndarray, shape (m,)
        The worths that are supposed.
    release : Release
        What is expected.
    equations : ScoreEquations
        The same, read as score equations.
    effect : float
        Design effect of the answers.
    measured : ndarray
        Draws of the largest design effect as a fit measures it; empty where it measures none.
    """

    worths: FloatArray
    release: Release
    equations: ScoreEquations
    effect: float
    measured: FloatArray

    @property
    def measures(self) -> bool:
        """Whether a fit measures how much more than independent answers those given vary."""
        return DEPENDENCE in self.release.plan.parts

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the fit's variances: those of clusters in the non-private fit."""
        release = self.release
        if release.source == "none" and release.design.unit == "respondent":
            return max(release.design.nobs - 1.0, 1.0)
        return degrees_of_freedom(release)

    @property
    def independent(self) -> FloatArray:
        """Covariance of the scores if answers are independent, shape (m, m)."""
        return independent_scores(self.equations, self.release, self.worths)

    def floored(self, draws: int) -> FloatArray:
        """Return draws of the covariance of the scores as released second moments show it.

        Shape (draws, m, m). Sampling moves sums of squares as it does those of normal variables.
        """
        equations, release = self.equations, self.release
        n, m, alone = release.design.nobs, len(self.worths), self.independent
        part, root = release.plan.parts[DEPENDENCE], square_root(self.effect * alone)
        rng = public_generator("second moments", n, m)
        assert isinstance(part.noise, DiscreteLaplace)
        noise = part.noise.simulate((draws, m * (m - 1) // 2), rng)
        found = []
        for row in noise:
            each = rng.standard_normal((m, m)) / math.sqrt(2.0 * n)
            scores = root @ (np.eye(m) + each + each.T) @ root.T
            near = _with_pairs(release, equations, scores, self.worths)
            values = {**near.values, DEPENDENCE: near.values[DEPENDENCE] + row}
            shown = replace(near, values=values)
            found.append(floored_moments(equations, shown, self.worths, alone))
        return np.array(found)

    @classmethod
    def of(cls, design: Design, plan: Plan, worths: FloatArray, effect: float) -> Expected:
        """Return what a plan releases, dependence added to it as far as it is planned."""
        release, measured = _released(design, plan, worths), np.empty(0)
        # scores that are expected are no whole numbers
        equations = replace(score_equations(release), score=_scores(design, worths)[2])
        part = release.plan.parts.get(DEPENDENCE)
        if part is not None and release.plan.settings[DEPENDENCE] == "worst":
            fitted = estimate(equations, release)
            b = fitted.coefficients
            directions = contrast_directions(equations, release, b, response(equations, fitted))
            measured = _largest_effects(release, directions, worths, effect)
            release = _with(release, LARGEST, effect, np.array([release.design.nobs / part.step]))
        elif part is not None:
            alone = effect * independent_scores(equations, release, worths)
            release = _with_pairs(release, equations, alone, worths)
        return cls(worths, release, equations, effect, measured)


def _with(release: Release, name: str, number: float, values: FloatArray) -> Release:
    """Add what is released of dependence, and a number found with it."""
    kept = {**release.values, DEPENDENCE: np.rint(values).astype(np.int64)}
    return replace(release, values=kept, found={**release.found, name: number})


def _rounded(release: Release, worths: FloatArray) -> Rounded:
    """Return the expected answers that are taken off, where that is done, in whole numbers."""
    answers = expected_answers(release, worths) if release.design.varied else None
    return round_expected(release.design, answers)


def _with_pairs(
    release: Release, equations: ScoreEquations, scores: FloatArray, worths: FloatArray
) -> Release:
    """Add the sums of squares of differences of nets under this covariance of the scores."""
    n, step, residual = release.design.nobs, release.plan.parts[DEPENDENCE].step, 1.0
    mean = equations.noise_covariance(worths)
    if release.design.varied:
        rounded = _rounded(release, worths)
        residual = rounded.farthest / rounded.steps
    else:
        mean = np.outer(equations.score, equations.score) - mean
    total = scores * ((n - 1) / n) + mean / n
    first, second = np.triu_indices(len(scores), 1)
    squares = 4.0 * own_and_between(total)[first, second] / (step * residual**2)
    # a number that is found in fits that take expected answers off, and 1 in the others
    return _with(release, RESIDUAL, residual, squares)


def _largest_effects(
    release: Release, directions: Directions, worths: FloatArray, effect: float
) -> FloatArray:
    """Return draws of the largest design effect of these directions, noise included.

    Surveys of up to 400 respondents are simulated, and how far their sums of squares vary is scaled
    to the number of respondents.
    """
    design, m = release.design, len(worths)
    n, rows, pairs = design.nobs, design.reach.effective_rows, design.reach.pairs
    each = max(20, min(n, _RESPONDENTS, _CELLS // (_SURVEYS * pairs)))
    rng = public_generator("design effects", n, m)
    first, second = np.triu_indices(m, 1)
    ahead = 1.0 / (1.0 + np.exp(worths[second] - worths[first]))
    answers = np.where(rng.random((_SURVEYS * each, pairs)) < ahead, 1.0, -1.0)
    if design.varied:
        answers -= 2.0 * ahead - 1.0
    if rows < pairs:
        answers *= rng.random(answers.shape).argsort(axis=1) < rows
    ends = np.eye(m)[first] - np.eye(m)[second]
    along = answers @ (ends @ directions.weights[:, 0, :m].T)
    squares = np.square(along).reshape(_SURVEYS, each, -1).mean(axis=1)
    middle = squares.mean(axis=0)
    squares = middle + (squares - middle) * math.sqrt(each / n)
    found = (n * squares - directions.explained) / directions.independent
    contrasts = round_directions(design, directions, _rounded(release, worths))
    part, most = release.plan.parts[DEPENDENCE], directions.others * contrasts.most
    assert isinstance(part.noise, DiscreteLaplace)
    noise = part.noise.simulate(_NOISES, rng) * (part.step / n * most)
    largest = directions.others * effect * found.max(axis=1)
    return np.asarray(np.clip(largest[:, None] + noise, 1.0, most)).ravel()
