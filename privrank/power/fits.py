"""Fits of paired comparisons that are simulated whole: answers, release and inference.

All from public numbers and from worths that are supposed. What simulated respondents answer goes
the way of a fit: its plan, its noise, and the code that reads a release. So what these fits say on
average is what fits say, up to the Monte Carlo error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privrank.bradley_terry.dependence import contrast_directions, expected_answers
from privrank.bradley_terry.estimate import Estimate, covariance, estimate, response
from privrank.bradley_terry.fit import fit_ridge
from privrank.bradley_terry.inference import Inference
from privrank.bradley_terry.linear import ItemContrasts
from privrank.bradley_terry.losses import LOGISTIC_SCORE, EdgeLoss
from privrank.bradley_terry.score import ScoreEquations, score_equations
from privrank.hypotheses.nulls import public_generator
from privrank.hypotheses.tails import simulated
from privrank.mechanisms.dependence import round_directions, round_expected
from privrank.mechanisms.objective import certified_worths
from privrank.mechanisms.spend import draw
from privrank.plans.dependence import STEPS
from privrank.release.names import (
    CEILING,
    DEPENDENCE,
    GAIN,
    LARGEST,
    MOMENTS,
    NET,
    PAIR_COUNTS,
    RESIDUAL,
    WINS,
    WORTHS,
)
from privrank.release.plan import Perturbation, Plan
from privrank.release.release import Release
from privrank.release.survey import Design, PairCounts, groups_of
from privrank.util.solvers import pseudo_inverse

__all__ = ["Fits"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_ANSWERS, _EACH, _LEAST = 2**15, 20, 100
"""Answers that are simulated of a larger survey, in all and of each pair, and respondents."""

_OTHERS = 64
"""Draws of other answers and noise."""


@dataclass(frozen=True, slots=True, eq=False)
class _Answers:
    """The answers of a simulated survey.

    Parameters
    ----------
    nobs : int
        Respondents of the survey.
    ends : csr_array, shape (pairs, m)
        The two items of each pair, 1 and -1.
    count, decided, net : ndarray, shape (pairs,)
        Comparisons, those that are no ties, and wins less losses of the first item.
    mean : ndarray, shape (pairs,)
        Expected answers.
    asked : ndarray of int, shape (respondents, rows)
        Pairs that the respondents simulated compared.
    away : ndarray, shape (respondents, rows)
        Their answers less expected ones.
    effect : float
        Design effect.
    """

    nobs: int
    ends: csr_array
    count: FloatArray
    decided: FloatArray
    net: FloatArray
    mean: FloatArray
    asked: IntArray
    away: FloatArray
    effect: float

    @property
    def share(self) -> float:
        """How probable it is that a respondent compares a pair."""
        return float(self.asked.shape[1] / len(self.mean))

    @property
    def both(self) -> float:
        """How probable it is that a respondent compares both of two pairs."""
        return float(self.share * (self.asked.shape[1] - 1) / max(len(self.mean) - 1, 1))

    @property
    def _variance(self) -> FloatArray:
        """Variance of a respondent's answers around expected ones, by pair."""
        return np.asarray(self.share * self.effect * (1.0 - self.mean**2))

    def _table(self, values: FloatArray) -> csr_array:
        """Return numbers by respondent and row as a table of respondents and pairs."""
        some, rows = self.asked.shape
        starts = rows * np.arange(some + 1)
        return csr_array((values.ravel(), self.asked.ravel(), starts), (some, len(self.mean)))

    def _whole(self, one: csr_array, other: csr_array, each: FloatArray) -> FloatArray:
        """Return the sum over all respondents of a row times a row, which is expected to be so."""
        return _of_all((one.T @ other).toarray(), each, len(self.asked), self.nobs)

    def by_item(self, off: FloatArray) -> FloatArray:
        """Return the sums over respondents of net times net, of answers less `off`: (m, m)."""
        rest = self.mean - off
        nets, along = self._table(self.away + rest[self.asked]) @ self.ends, rest @ self.ends
        spread = self._variance + (self.share - self.both) * rest**2
        each = _by_item(self.ends, spread) + self.both * np.outer(along, along)
        return self._whole(nets, nets, each)

    def by_pair(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the sums of answers by answers, answers by counts and counts by counts.

        Shape (pairs, pairs) each, of the pairs met, as a non-private run keeps them.
        """
        kept = self.count > 0
        met = self._table(np.ones_like(self.away))[:, kept]
        answers = self._table(self.away + self.mean[self.asked])[:, kept]
        mean, variance = self.mean[kept], self._variance[kept]
        counts = np.full((len(mean), len(mean)), self.both)
        np.fill_diagonal(counts, self.share)
        square = np.outer(mean, mean) * counts + np.diag(variance)
        return (
            self._whole(answers, answers, square),
            self._whole(answers, met, mean[:, None] * counts),
            self._whole(met, met, counts),
        )


def _by_item(ends: csr_array, weights: FloatArray) -> FloatArray:
    """Return the sum over pairs of their two ends times these, weighted: shape (m, m)."""
    return np.asarray((ends.T @ ends.multiply(weights[:, None])).toarray())


def _different(some: int, rows: int, pairs: int, rng: np.random.Generator) -> IntArray:
    """Return so many different pairs for each of some respondents, all sets alike.

    Floyd's algorithm: one of all pairs but the last few, or the first of these if it is taken.
    """
    drawn, asked = rng.random((some, rows)), np.empty((some, rows), dtype=np.int64)
    for place in range(rows):
        last = pairs - rows + place
        one = (drawn[:, place] * (last + 1)).astype(np.int64)
        taken = (asked[:, :place] == one[:, None]).any(axis=1)
        asked[:, place] = np.where(taken, last, one)
    return asked


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
    Of a survey with many more answers than pairs some respondents are simulated, and errors of
    their sums are scaled to its size. A design effect multiplies the variance of answers around the
    expected ones in all directions alike.
    """

    design: Design
    plan: Plan
    worths: FloatArray
    effect: float

    @property
    def _gain(self) -> float:
        """The mean of what is received of an answer of 1: below 1 where responses are random."""
        return self.plan.number(GAIN) if GAIN in self.plan.settings else 1.0

    @property
    def _tied(self) -> float:
        """How probable it is that a random response is a tie, none being true."""
        return (1.0 - self._gain) / 3.0 if self.design.ties else 0.0

    def fit(self, number: int) -> tuple[Inference | None, FloatArray]:
        """Simulate the fit of this number, by random numbers that depend on it alone.

        Returns
        -------
        Inference or None
            What is inferred from its release; None of comparisons that do not connect all items,
            which a fit refuses.
        ndarray, shape (1 + others, m)
            First-order estimates of the worths: those of this fit, and of others, whose answers and
            noise are other draws from the same distributions, given who compared what.
        """
        answers = self._simulated(number)
        release, noise = self._counted(answers, number)
        equations = score_equations(release)
        near = self._near(equations, answers, noise, number)
        if not _connected(release.design):
            return None, near
        fitted = estimate(equations, release)
        if DEPENDENCE in self.plan.parts:
            release = self._with_dependence(release, equations, fitted, answers, number)
        errors = covariance(equations, release, fitted)
        return Inference(release, equations, fitted, errors), near

    def release(self, number: int) -> tuple[Release | None, FloatArray]:
        """Simulate what the same fit releases, beside its first-order estimates and others."""
        answers = self._simulated(number)
        release, noise = self._counted(answers, number)
        equations = score_equations(release)
        near = self._near(equations, answers, noise, number)
        if not _connected(release.design):
            return None, near
        if DEPENDENCE in self.plan.parts:
            fitted = estimate(equations, release)
            release = self._with_dependence(release, equations, fitted, answers, number)
        return release, near

    def _simulated(self, number: int) -> _Answers:
        """Simulate answers."""
        m, n, rows = len(self.worths), self.design.nobs, self.design.sensitivity.effective_rows
        first, second = np.triu_indices(m, 1)
        pairs, tied = len(first), self._tied
        some = min(n, max(_LEAST, max(_ANSWERS, _EACH * pairs) // rows))
        mean = self._gain * np.tanh(0.5 * (self.worths[first] - self.worths[second]))
        asked = _different(some, rows, pairs, public_generator("pairs asked", number))
        drawn = public_generator("answers", number).random((some, rows))
        won = 0.5 * (1.0 - tied + mean[asked])
        answer = np.where(drawn < won, 1.0, np.where(drawn < won + tied, 0.0, -1.0))
        away = math.sqrt(self.effect) * (answer - mean[asked])
        share, each = rows / pairs, np.ones(pairs)

        def total(values: NDArray[Any]) -> FloatArray:
            return np.asarray(np.bincount(asked.ravel(), values.ravel(), pairs), dtype=np.float64)

        count = np.rint(_of_all(total(answer**0), share * each, some, n)).clip(min=0.0)
        ties = np.rint(_of_all(total(answer == 0.0), share * tied * each, some, n))
        ends = (np.tile([1.0, -1.0], pairs), np.column_stack((first, second)).ravel())
        return _Answers(
            nobs=n,
            ends=csr_array((*ends, 2 * np.arange(pairs + 1)), (pairs, m)),
            count=count,
            decided=count - ties.clip(0.0, count),
            net=_of_all(total(away), 0.0 * each, some, n) + count * mean,
            mean=mean,
            asked=asked,
            away=away,
            effect=self.effect,
        )

    def _counted(self, answers: _Answers, number: int) -> tuple[Release, dict[str, FloatArray]]:
        """Return what is released of answers, but for dependence, and its noise."""
        plan, design, count, net = self.plan, self.design, answers.count, answers.net
        wins = 0.5 * np.stack((answers.decided + net, answers.decided - net))
        if design.pairs is not None and design.pairs.origin == "observed":
            met = count > 0
            first, second = (each[met] for each in np.triu_indices(len(self.worths), 1))
            design = replace(design, pairs=PairCounts(first, second, count[met], "observed"))
            wins = wins[:, met]
        values, noise = dict[str, IntArray](), dict[str, FloatArray]()
        for name, exact in ((NET, net @ answers.ends), (WINS, wins.ravel()), (PAIR_COUNTS, count)):
            if (part := plan.parts.get(name)) is not None:
                whole = np.rint(exact / (part.step * part.fineness)).astype(np.int64)
                values[name] = draw(part, whole, public_generator(f"noise, {name}", number))
                noise[name] = np.asarray(part.step * (values[name] - part.fineness * whole))
        if MOMENTS[0] in plan.parts:
            # rounded at random, so that small sums are right on average
            rng = public_generator("rounding", number)
            for name, sums in zip(MOMENTS, answers.by_pair(), strict=True):
                values[name] = np.floor(sums + rng.random(sums.shape)).astype(np.int64).ravel()
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
        target = 0.5 * answers.net @ answers.ends
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
        part, found = self.plan.parts[DEPENDENCE], dict(release.found)
        design, b = release.design, fitted.coefficients
        expected = round_expected(design, expected_answers(release, b) if design.varied else None)
        first, second = np.triu_indices(len(b), 1)
        off = expected.answers[first, second] / expected.steps
        moments = answers.by_item(off)
        if self.plan.settings[DEPENDENCE] == "worst":
            directions = contrast_directions(equations, release, b, response(equations, fitted))
            contrasts = round_directions(design, directions, expected)
            found[LARGEST] = float(directions.others * contrasts.most)
            found[CEILING] = float(directions.others * contrasts.ceiling)
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
        independent of all else, and so is that of pair counts. A comparison too many moves the
        expected score of its first item by half the expected answer.
        """
        rng, half = public_generator("other fits", number), 0.5 * answers.mean
        net = np.vstack((answers.net, self._other_nets(answers, rng)))
        by_pair = (net - answers.count * answers.mean) * (0.5 / self._gain)
        if PAIR_COUNTS in noise and NET in noise:
            part = self.plan.parts[PAIR_COUNTS]
            assert part.noise is not None
            others = simulated(part.noise, (_OTHERS, len(half)), rng)
            by_pair -= half * np.vstack((noise[PAIR_COUNTS], part.step * others))
        if equations.edge_distribution.scale > 0:
            drawn = equations.edge_distribution.simulate((_OTHERS, noise[WINS].size), rng)
            first, second = np.hsplit(np.vstack((noise[WINS], equations.edge_step * drawn)), 2)
            by_pair += first * (0.5 - half) - second * (0.5 + half)
        moved = by_pair @ answers.ends
        if equations.item_variance > 0:
            own = 0.5 * noise[NET] if NET in noise else noise[WORTHS]
            others = simulated(equations.item_distribution, (_OTHERS, len(self.worths)), rng)
            moved += np.vstack((own, equations.item_step * others))
        exact = answers.mean / self._gain
        information = _by_item(answers.ends, 0.25 * answers.count * (1.0 - exact**2))
        return np.asarray(self.worths + moved @ pseudo_inverse(information))

    def _other_nets(self, answers: _Answers, rng: np.random.Generator) -> FloatArray:
        """Return other wins less losses, of as many comparisons: shape (others, pairs)."""
        size = (_OTHERS, len(answers.mean))
        count = answers.count.astype(np.int64)
        decided = rng.binomial(count, 1.0 - self._tied, size) if self._tied else count
        won = rng.binomial(decided, 0.5 * (1.0 + answers.mean / (1.0 - self._tied)), size)
        expected = answers.count * answers.mean
        return np.asarray(expected + math.sqrt(self.effect) * (2.0 * won - decided - expected))


def _connected(design: Design) -> bool:
    """Return whether comparisons that are observed connect all items, as a fit requires."""
    if design.pairs is None or design.pairs.origin != "observed":
        return True
    return groups_of(design.pairs, len(design.items))[0] == 1
