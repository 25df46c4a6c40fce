"""A survey of paired comparisons before it runs: what it would release, and how its fit would err.

All from public numbers and from worths that are supposed: the release is the one that a fit would
make, with the noise it would have, and the values that are expected under these worths. What reads
a release then tells the errors of a fit that nobody has made yet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.contrasts import own_and_between
from privrank.bradley_terry.directions import Directions, contrast_directions, expected_answers
from privrank.bradley_terry.estimate import covariance, estimate, response
from privrank.bradley_terry.fit import fit_ridge
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.linear import ItemContrasts
from privrank.bradley_terry.moments import independent_scores
from privrank.bradley_terry.score import ScoreEquations, score_equations
from privrank.hypotheses.nulltables import public_generator
from privrank.local.protocols import Asking
from privrank.mechanisms.comparisons import plan_comparisons
from privrank.mechanisms.dependence import Expected as Rounded
from privrank.mechanisms.dependence import round_directions, round_expected
from privrank.planning.choice import Choice
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
    WORTHS,
    Release,
)
from privrank.release.survey import Design, DesignKind, PairCounts
from privrank.privacy.budget import Unit

__all__ = ["Expected", "Survey"]

FloatArray = NDArray[np.float64]

_SURVEYS, _RESPONDENTS, _CELLS = 48, 400, 2**22
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
    max_rows : int
        Comparisons that each respondent makes.
    unit : {"respondent", "row"}
        What one unit is.
    kind : {"private", "public"}
        Whether who compared which pairs is public.
    pair_counts : {"release", "equal"}
        What is known of the comparisons per pair under a private design.
    ties : bool
        Whether ties are allowed.
    design_effect : float
        How many times independent answers' variance that of a respondent's answers is.
    """

    items: tuple[str, ...]
    max_rows: int
    unit: Unit
    kind: DesignKind
    pair_counts: Literal["release", "equal"]
    ties: bool
    design_effect: float

    def design(self, nobs: int, *, exact: bool = False) -> Design:
        """Return the design with so many units, pairs asked for equally often."""
        rows = self.max_rows if self.unit == "respondent" else 1
        design = Design(
            self.items, nobs, self.unit, rows, True, self.ties, self.kind, None
        )
        each = nobs * design.reach.effective_rows / design.reach.pairs
        pairs = PairCounts.equal(len(self.items), each)
        if self.kind == "public" or exact:
            pairs = PairCounts(pairs.first, pairs.second, pairs.count, "observed")
        elif self.pair_counts == "release":
            return design
        return replace(design, pairs=pairs)

    def expected(
        self, design: Design, choice: Choice, epsilon: float, delta: float, worths: FloatArray
    ) -> Expected:
        """Return what a fit is expected to release, if these are the worths."""
        plan = plan_comparisons(design, choice, epsilon, delta, by="power")
        found = _released(design, plan, worths)
        return Expected.of(found, worths, self.design_effect)

    def reports(self, protocol: Asking, nobs: int, worths: FloatArray) -> Expected:
        """Return what reports of the local model are expected to tell, if these are the worths."""
        each = nobs / len(protocol.all_pairs)
        first, second = protocol.all_pairs.T
        pairs = PairCounts(first, second, np.full(len(first), each), "observed")
        design = Design(self.items, nobs, "respondent", 1, True, self.ties, "public", pairs)
        parts, settings = {WINS: PartPlan(QUIET, 0, 0.0)}, {GAIN: protocol.gain}
        plan = Plan("power", protocol.kind, "", protocol.epsilon, 0.0, parts, settings)
        return Expected.of(_released(design, plan, worths, protocol.gain), worths, 1.0)


def _scores(design: Design, worths: FloatArray) -> tuple[PairCounts, FloatArray, FloatArray]:
    """Return comparisons per pair, expected wins beyond half of them, and scores by item."""
    m = len(worths)
    each = design.nominal_total / design.reach.pairs
    pairs = design.pairs or PairCounts.equal(m, each)
    away = worths[pairs.first] - worths[pairs.second]
    mean = np.asarray(pairs.count * (1.0 / (1.0 + np.exp(-away)) - 0.5))
    return pairs, mean, ItemContrasts(pairs, m).scores(mean)


def _released(design: Design, plan: Plan, worths: FloatArray, gain: float = 1.0) -> Release:
    """Return the release of a plan at the values that are expected, but for dependence."""
    pairs, mean, score = _scores(design, worths)
    wins = 0.5 * pairs.count + gain * np.array([mean, -mean])
    values: dict[str, FloatArray] = {NET: 2.0 * score, WINS: wins.ravel()}
    values[PAIR_COUNTS] = np.asarray(pairs.count)
    kept = {
        name: np.rint(values[name] / plan.parts[name].step).astype(np.int64)
        for name in values.keys() & plan.parts.keys()
    }
    source: Literal["none", "respondents", "seeded"] = "seeded"
    if GAIN in plan.settings:
        source = "respondents"
    elif math.isinf(plan.epsilon):
        source = "none"
    release = Release(plan, design, source, kept, tuple(range(len(worths))))
    if WORTHS not in plan.parts:
        return release
    linear = ItemContrasts(pairs, len(worths))
    step = plan.parts[WORTHS].step
    start = np.rint(worths / step).astype(np.int64)
    loss = score_equations(replace(release, values={**kept, WORTHS: start})).loss
    first = linear.centred(fit_ridge(score, linear, plan.number("gamma"), loss).point)
    kept[WORTHS] = np.rint(first / step).astype(np.int64)
    return replace(release, values=kept)


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """A release at the values expected of it, and how its fit errs.

    Parameters
    ----------
    worths : ndarray, shape (m,)
        The worths that are supposed.
    inference : Inference
        The fit of what is expected, with its errors.
    effect : float
        Design effect of the answers.
    measured : ndarray
        Draws of the largest design effect as a fit measures it; empty where it measures none.
    """

    worths: FloatArray
    inference: Inference
    effect: float
    measured: FloatArray

    @classmethod
    def of(cls, release: Release, worths: FloatArray, effect: float) -> Expected:
        """Fit a release, dependence added to it as far as it is planned."""
        equations, measured = _equations(release, worths), np.empty(0)
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
        fitted = estimate(equations, release)
        errors = covariance(equations, release, fitted)
        inference = Inference(release, equations, fitted, errors)
        return cls(worths, inference, effect, measured)


def _equations(release: Release, worths: FloatArray) -> ScoreEquations:
    """Return the score equations with the scores that are expected, which are no whole numbers."""
    found = score_equations(release)
    if WORTHS in release.plan.parts:
        return found
    return replace(found, score=_scores(release.design, worths)[2])


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
