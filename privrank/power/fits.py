"""Fits of paired comparisons that are simulated whole: answers, release and inference.

All from public numbers and from worths that are supposed. What simulated respondents answer goes
the way of a fit: its plan, its noise, and the code that reads a release. So what these fits say on
average is what fits say, up to the Monte Carlo error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.directions import contrast_directions, expected_answers
from privrank.bradley_terry.estimate import Estimate, covariance, estimate, response
from privrank.bradley_terry.fit import fit_ridge
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.linear import ItemContrasts
from privrank.bradley_terry.losses import LOGISTIC_SCORE, EdgeLoss
from privrank.bradley_terry.score import ScoreEquations, score_equations
from privrank.hypotheses.nulltables import public_generator
from privrank.mechanisms.dependence import STEPS, round_directions, round_expected
from privrank.mechanisms.objective import Perturbation, certified_worths
from privrank.mechanisms.spend import draw
from privrank.release.plan import Plan
from privrank.release.release import (
    DEPENDENCE,
    GAIN,
    LARGEST,
    MOMENTS,
    NET,
    PAIR_COUNTS,
    RESIDUAL,
    WINS,
    WORTHS,
    Release,
)
from privrank.release.survey import Design, PairCounts
from privrank.util.solvers import pseudo_inverse

__all__ = ["Fits"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_MOST, _LEAST, _CELLS = 400, 100, 2**16
"""Respondents that are simulated at most, and at least where pairs are many, and their answers."""

_OTHERS = 64
"""Draws of other answers and noise."""


@dataclass(frozen=True, slots=True, eq=False)
class _Answers:
    """The answers of a simulated survey.

    Parameters
    ----------
    nobs : int
        Respondents of the survey.
    count, net : ndarray, shape (pairs,)
        Comparisons, and wins less losses of the first item.
    mean : ndarray, shape (pairs,)
        Expected answers.
    met, away : ndarray, shape (respondents, pairs)
        Who compared what, and answers less expected ones, of the respondents simulated.
    share, both : float
        How probable it is that a respondent compares a pair, and both of two.
    effect : float
        Design effect.
    """

    nobs: int
    count: FloatArray
    net: FloatArray
    mean: FloatArray
    met: FloatArray
    away: FloatArray
    share: float
    both: float
    effect: float

    @property
    def _variance(self) -> FloatArray:
        """Variance of a respondent's answers around expected ones, by pair."""
        return np.asarray(self.share * self.effect * (1.0 - self.mean**2))

    def _whole(self, sums: FloatArray, each: FloatArray) -> FloatArray:
        return _of_all(sums, each, len(self.met), self.nobs)

    def by_item(self, off: FloatArray, ends: FloatArray) -> FloatArray:
        """Return the sums over respondents of net times net, of answers less `off`.

        Shape (m, m), given the two items of each pair.
        """
        rest = self.mean - off
        nets, along = (self.away + self.met * rest) @ ends, rest @ ends
        spread = self._variance + (self.share - self.both) * rest**2
        each = (ends.T * spread) @ ends + self.both * np.outer(along, along)
        return self._whole(nets.T @ nets, each)

    def by_pair(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the sums of answers by answers, answers by counts and counts by counts.

        Shape (pairs, pairs) each, as a non-private run keeps them.
        """
        mean, answers = self.mean[:, None], self.away + self.met * self.mean
        counts = np.full((len(mean), len(mean)), self.both)
        np.fill_diagonal(counts, self.share)
        square = mean * counts * self.mean + np.diag(self._variance)
        return (
            self._whole(answers.T @ answers, square),
            self._whole(answers.T @ self.met, mean * counts),
            self._whole(self.met.T @ self.met, counts),
        )


def _of_all(sums: FloatArray, each: FloatArray, some: int, nobs: int) -> FloatArray:
    """Return sums over all respondents, whose errors are as much smaller as they are more.

    Given those over some of them, and what one is expected to add.
    """
    return np.asarray(nobs * each + math.sqrt(nobs / some) * (sums - some * each))


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """A survey, of which any number of fits can be simulated.

    Parameters
    ----------
    design : Design
        Its public facts, with equal comparisons per pair where they are observed.
    plan : Plan
        What a fit releases.
    worths : ndarray, shape (m,)
        The worths that are supposed.
    effect : float
        Design effect of a respondent's answers.

    Notes
    -----
    Of a survey of more than 400 respondents so many are simulated, and errors of their sums are
    scaled to its size. A design effect multiplies the variance of answers around the expected ones
    in all directions alike.
    """

    design: Design
    plan: Plan
    worths: FloatArray
    effect: float

    @property
    def _ends(self) -> FloatArray:
        """The two items of each pair, 1 and -1: shape (pairs, m)."""
        first, second = np.triu_indices(len(self.worths), 1)
        each = np.eye(len(self.worths))
        return np.asarray(each[first] - each[second])

    @property
    def _gain(self) -> float:
        """The mean of what is received of an answer of 1: below 1 where responses are random."""
        return self.plan.number(GAIN) if GAIN in self.plan.settings else 1.0

    def fit(self, number: int) -> tuple[Inference, FloatArray]:
        """Simulate the fit of this number, by random numbers that depend on it alone.

        Returns
        -------
        Inference
            What is inferred from its release.
        ndarray, shape (1 + others, m)
            First-order estimates of the worths: those of this fit, and of others, whose answers and
            noise are other draws from the same distributions, given who compared what.
        """
        answers = self._simulated(number)
        release, noise = self._counted(answers, number)
        equations = score_equations(release)
        fitted = estimate(equations, release)
        if DEPENDENCE in self.plan.parts:
            release = self._with_dependence(release, equations, fitted, answers, number)
        errors = covariance(equations, release, fitted)
        near = self._near(equations, answers, noise, number)
        return Inference(release, equations, fitted, errors), near

    def release(self, number: int) -> tuple[Release, FloatArray]:
        """Simulate what the same fit releases, beside its first-order estimates and others."""
        answers = self._simulated(number)
        release, noise = self._counted(answers, number)
        equations = score_equations(release)
        if DEPENDENCE in self.plan.parts:
            fitted = estimate(equations, release)
            release = self._with_dependence(release, equations, fitted, answers, number)
        return release, self._near(equations, answers, noise, number)

    def _simulated(self, number: int) -> _Answers:
        """Simulate answers."""
        ends, n, rows = self._ends, self.design.nobs, self.design.reach.effective_rows
        pairs = len(ends)
        some = min(n, max(_LEAST, min(_MOST, _CELLS // pairs)))
        mean = self._gain * np.tanh(0.5 * (ends @ self.worths))
        drawn = public_generator("answers", number).random((some, pairs))
        met = np.ones((some, pairs))
        if rows < pairs:
            order = public_generator("pairs asked", number).random((some, pairs)).argsort(axis=1)
            np.put_along_axis(met, order[:, rows:], 0.0, axis=1)
        away = np.where(drawn < 0.5 * (1.0 + mean), 1.0, -1.0) - mean
        away = math.sqrt(self.effect) * met * away
        share, each = rows / pairs, np.ones(pairs)
        both = share * (rows - 1) / max(pairs - 1, 1)
        count = np.rint(_of_all(met.sum(axis=0), share * each, some, n)).clip(min=0.0)
        net = np.rint(_of_all(away.sum(axis=0), 0.0 * each, some, n) + count * mean)
        net = np.clip(net, -count, count)
        return _Answers(n, count, net, mean, met, away, share, both, self.effect)

    def _counted(self, answers: _Answers, number: int) -> tuple[Release, dict[str, FloatArray]]:
        """Return what is released of answers, but for dependence, and its noise."""
        plan, design, count, net = self.plan, self.design, answers.count, answers.net
        first, second = np.triu_indices(len(self.worths), 1)
        if design.pairs is not None and design.pairs.origin == "observed":
            design = replace(design, pairs=PairCounts(first, second, count, "observed"))
        values, noise = dict[str, IntArray](), dict[str, FloatArray]()
        for name, exact in (
            (NET, net @ self._ends),
            (WINS, 0.5 * np.concatenate((count + net, count - net))),
            (PAIR_COUNTS, count),
        ):
            if (part := plan.parts.get(name)) is not None:
                whole = np.rint(exact / (part.step * part.fineness)).astype(np.int64)
                values[name] = draw(part, whole, public_generator(f"noise, {name}", number))
                noise[name] = np.asarray(part.step * (values[name] - part.fineness * whole))
        if MOMENTS[0] in plan.parts:
            sums = (np.rint(each).astype(np.int64).ravel() for each in answers.by_pair())
            values |= dict(zip(MOMENTS, sums, strict=True))
        if WORTHS in plan.parts:
            values[WORTHS], noise[WORTHS] = self._worths(answers, number)
        source: Literal["none", "respondents", "seeded"] = "seeded"
        if GAIN in plan.settings:
            source = "respondents"
        elif math.isinf(plan.epsilon):
            source = "none"
        coin = public_generator("tie break", number).permutation(len(self.worths))
        return Release(plan, design, source, values, tuple(coin.tolist())), noise

    def _worths(self, answers: _Answers, number: int) -> tuple[IntArray, FloatArray]:
        """Return the worths of objective perturbation, and the noise of their scores."""
        noise, m = Perturbation.of(self.plan), len(self.worths)
        first, second = np.triu_indices(m, 1)
        linear = ItemContrasts(PairCounts(first, second, answers.count, "observed"), m)
        loss = EdgeLoss.matching(LOGISTIC_SCORE, linear.pairs.count)
        rng = public_generator(f"noise, {WORTHS}", number)
        target = 0.5 * answers.net @ self._ends
        if noise.scale == 0:
            fitted = fit_ridge(target, linear, noise.gamma, loss).point
            return np.rint(fitted / noise.part.step).astype(np.int64), np.zeros(m)
        moved = -rng.laplace(0.0, noise.scale, m)
        steps = certified_worths(target, -moved, linear, loss, noise, "newton")
        return draw(noise.part, np.array(steps, dtype=np.int64), rng), moved

    def _with_dependence(
        self,
        release: Release,
        equations: ScoreEquations,
        fitted: Estimate,
        answers: _Answers,
        number: int,
    ) -> Release:
        """Add what is released of the dependence of respondents' answers."""
        part, found, ends = self.plan.parts[DEPENDENCE], dict(release.found), self._ends
        design, b = release.design, fitted.coefficients
        expected = round_expected(design, expected_answers(release, b) if design.varied else None)
        first, second = np.triu_indices(len(b), 1)
        off = expected.answers[first, second] / expected.steps
        moments = answers.by_item(off, ends)
        if self.plan.settings[DEPENDENCE] == "worst":
            directions = contrast_directions(equations, release, b, response(equations, fitted))
            contrasts = round_directions(design, directions, expected)
            found[LARGEST] = float(directions.others * contrasts.most)
            weights = expected.steps * contrasts.weights[:, 0, :-1]
            squares = ((weights @ moments) * weights).sum(axis=1)
            away = squares - np.array(contrasts.centre, dtype=np.float64)
            exact = STEPS * np.maximum(away / np.array(contrasts.scale, dtype=np.float64), 0.0)
            exact = exact.max(keepdims=True)
        else:
            square = np.diag(moments)
            exact = square[first] + square[second] - 2.0 * moments[first, second]
            if design.varied:
                found[RESIDUAL] = expected.farthest / expected.steps
                exact = exact / (part.step * found[RESIDUAL] ** 2)
        rng = public_generator(f"noise, {DEPENDENCE}", number)
        values = {**release.values, DEPENDENCE: draw(part, np.floor(exact).astype(np.int64), rng)}
        return replace(release, values=values, found=found)

    def _near(
        self,
        equations: ScoreEquations,
        answers: _Answers,
        noise: dict[str, FloatArray],
        number: int,
    ) -> FloatArray:
        """Return the first-order estimates of the worths, shape (1 + others, m).

        They are the true ones moved by what answers, given who compared what, and noise add to the
        scores, over the true information. Noise of net wins, and that of a perturbed objective, is
        independent of all else, and so is that of pair counts, which is taken as normal in the
        others, as answers are. A comparison too many moves the expected score of its first item by
        half the expected answer.
        """
        ends, rng = self._ends, public_generator("other fits", number)
        half, net = 0.5 * answers.mean, answers.net - answers.count * answers.mean
        by_pair = net * (0.5 / self._gain)
        spread = answers.count * (0.25 - half**2) * (self.effect / self._gain**2)
        if PAIR_COUNTS in noise and NET in noise:
            by_pair = by_pair - half * noise[PAIR_COUNTS]
            spread = spread + equations.count_variance * half**2
        moved, others = by_pair @ ends, rng.standard_normal((_OTHERS, len(ends)))
        others = (others * np.sqrt(spread)) @ ends
        if equations.item_variance > 0:
            moved = moved + (0.5 * noise[NET] if NET in noise else noise[WORTHS])
            size = (_OTHERS, len(self.worths))
            others += equations.item_step * equations.item_law.simulate(size, rng)
        elif equations.edge_law.scale > 0:
            cells = np.concatenate((0.5 - half, -0.5 - half))[:, None] * np.tile(ends, (2, 1))
            moved = moved + noise[WINS] @ cells
            drawn = equations.edge_law.simulate((_OTHERS, len(cells)), rng)
            others += (equations.edge_step * drawn) @ cells
        exact = np.tanh(0.5 * (ends @ self.worths))
        information = (ends.T * (0.25 * answers.count * (1.0 - exact**2))) @ ends
        return self.worths + np.vstack((moved, others)) @ pseudo_inverse(information)
