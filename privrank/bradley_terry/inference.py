"""Errors, bands and tests of a Bradley-Terry fit, from a release alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privrank.bradley_terry.errors import NoisyErrors
from privrank.bradley_terry.evidence import Evidence, evidence
from privrank.bradley_terry.losses import Reading
from privrank.bradley_terry.optim import differences, laplacian, pull
from privrank.hypotheses.nulltables import public_generator
from privrank.privacy.netnoise import NetLaw
from privrank.release.release import DESIGN_EFFECT, MOMENTS, Release
from privrank.release.survey import PairCounts
from privrank.util.arrays import own
from privrank.util.solvers import inverse, square_root

__all__ = [
    "Covariance",
    "contrast_maxima",
    "contrast_quantile",
    "covariance",
    "design_effect",
    "homogeneity",
    "noisy_errors",
    "rank_sets",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_MOST_BAND_ITEMS = 200
"""Beyond this, bands use the Bonferroni bound instead of simulation, and tests fewer draws."""

MOST_SIMULATED_ITEMS = 50
"""Beyond this, noise is taken as normal in tests and intervals of single differences of worths."""

_BOUND_STEPS = 20_000
"""Quantiles of the Bonferroni bound that stand in for draws."""


@dataclass(frozen=True, slots=True, eq=False)
class Covariance:
    """Covariance of the worths, split into sampling and privacy noise.

    Parameters
    ----------
    sampling, privacy : ndarray, shape (m, m)
        The two parts; their sum is the covariance.
    response : ndarray, shape (m, m)
        The linear map from scores to worths.
    scores : ndarray, shape (m, m)
        Sampling covariance of the scores.
    """

    sampling: FloatArray
    privacy: FloatArray
    response: FloatArray
    scores: FloatArray

    @property
    def total(self) -> FloatArray:
        """Covariance with both sources of error."""
        return self.sampling + self.privacy

    def errors(self, part: Literal["total", "sampling", "privacy"] = "total") -> FloatArray:
        """Return the standard errors of the worths, or one part of them, shape (m,)."""
        return np.asarray(np.sqrt(np.maximum(np.diag(getattr(self, part)), 0.0)))

    def contrast_errors(self) -> FloatArray:
        """Return the standard errors of all differences of two worths, shape (m, m)."""
        variance = np.diag(self.total)
        return np.asarray(
            np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2.0 * self.total, 0.0))
        )


def _centring(items: int) -> FloatArray:
    return np.eye(items) - 1.0 / items


def _contrast_inverse(matrix: FloatArray) -> FloatArray:
    """Return the pseudo-inverse of a matrix whose null space is the constant vector."""
    m = len(matrix)
    centring = _centring(m)
    return np.asarray(centring @ inverse(matrix + np.trace(matrix) / m**2) @ centring)


def covariance(
    facts: Evidence,
    release: Release,
    theta: FloatArray,
    worths: FloatArray,
    gamma: float,
    *,
    corrected: bool,
) -> Covariance:
    """Return the sandwich covariance of the worths.

    With G_1 and G_2 the ridge Hessians at the ridge estimate `theta` and at the corrected `worths`,
    scores move `theta` by G_1^-1 and, when corrected, `worths` by G_2^-1 (I + gamma G_1^-1). Noise
    put on the worths of objective perturbation acts like a score through G_1.
    """
    m = facts.items
    ridge = gamma * _centring(m)
    first = _curvature(facts.estimator, facts.pairs, theta) + ridge
    response = _contrast_inverse(first)
    if corrected:
        second = _curvature(facts.estimator, facts.pairs, worths) + ridge
        response = _contrast_inverse(second) @ (_centring(m) + gamma * response)
    scores = _score_covariance(facts, release, worths)
    noise = laplacian(facts.edge_variance(worths), facts.pairs, m)
    noise[np.diag_indices(m)] += facts.item_variance
    noise = np.asarray(noise + facts.output_variance * (first @ first))
    return Covariance(
        response @ scores @ response.T, response @ noise @ response.T, response, scores
    )


def _curvature(reading: Reading, pairs: PairCounts, worths: FloatArray) -> FloatArray:
    """Return the slope of the mean scores by the worths, shape (m, m)."""
    edges = pairs.count * reading.curvature(differences(worths, pairs))
    return laplacian(edges, pairs, len(worths))


def _independent(reading: Reading, pairs: PairCounts, worths: FloatArray) -> FloatArray:
    """Return the covariance of the scores of independent answers, shape (m, m)."""
    edges = pairs.count * reading.variance(differences(worths, pairs))
    return laplacian(edges, pairs, len(worths))


def _score_covariance(facts: Evidence, release: Release, worths: FloatArray) -> FloatArray:
    """Return the sampling covariance of the scores.

    Independent answers give the Laplacian of n F (1 - F), or of the information for scores of a
    log-loss. Where pair counts are expectations only, each
    comparison is taken as one of a randomly chosen pair: the Laplacian of the second moment n / 4
    less the outer product of the mean score over the number of comparisons; pairs that were in
    fact fixed vary less. For respondents it is multiplied
    by the design effect, or replaced by the cluster-robust moments of a non-private run. A tie
    counts as half a win to each, whose variance is smaller than assumed.
    """
    m = facts.items
    if MOMENTS[0] in release.parts:
        return _cluster_moments(release, facts.pairs, worths, facts.estimator)
    if facts.random_pairs and DESIGN_EFFECT not in release.parts:
        mean = pull(worths, facts.pairs, facts.reading)
        second = laplacian(np.asarray(0.25 * facts.pairs.count), facts.pairs, m)
        return np.asarray(second - np.outer(mean, mean) / facts.pairs.total)
    independent = _independent(facts.estimator, facts.pairs, worths)
    return design_effect(release, facts.pairs, worths) * independent


def _cluster_moments(
    release: Release, pairs: PairCounts, worths: FloatArray, reading: Reading
) -> FloatArray:
    """Return the sum over respondents of score times score, from moments by pair.

    A respondent's score is the sum of half their net wins less expected, times the reading's
    weights.
    """
    edges = len(pairs.first)
    yy, yn, nn = (
        release.parts[name].values.reshape(edges, edges).astype(np.float64) for name in MOMENTS
    )
    t = differences(worths, pairs)
    mean = 2.0 * reading.link.excess(t)
    cross = yn * mean[None, :]
    meat = yy - cross - cross.T + nn * np.outer(mean, mean)
    incidence = 0.5 * reading.weight(t)[:, None] * _incidence(pairs, len(worths))
    return np.asarray(incidence.T @ meat @ incidence)


def _incidence(pairs: PairCounts, items: int) -> FloatArray:
    """Return the signed incidence matrix, shape (edges, m): +1 first item, -1 second."""
    edges = np.arange(len(pairs.first))
    matrix = np.zeros((len(edges), items))
    matrix[edges, pairs.first], matrix[edges, pairs.second] = 1.0, -1.0
    return matrix


def design_effect(release: Release, pairs: PairCounts, worths: FloatArray) -> float:
    """Return the variance of respondents' net wins over that of independent answers, at least 1.

    The released sum over respondents of |net|^2, less nobs times the squared mean net, estimates
    the trace of the net's sampling covariance; independent answers would give 8 sum n F (1 - F).
    The mean net is that of the fitted worths. Where respondents answer different pairs the mean net
    varies and the estimate errs upwards.
    """
    if DESIGN_EFFECT not in release.parts:
        return 1.0
    spread = float(release.parts[DESIGN_EFFECT].values[0])
    reading = Reading(release.link)
    mean_net = 2.0 * pull(worths, pairs, reading)
    independent = 8.0 * float(pairs.count @ reading.variance(differences(worths, pairs)))
    if independent <= 0:
        # worths so far apart that no answer varies: the noise has drowned everything
        return 1.0
    return max(1.0, (spread - float(mean_net @ mean_net) / release.design.nobs) / independent)


def _score_noise(
    facts: Evidence, worths: FloatArray, draws: int, generator: np.random.Generator
) -> FloatArray:
    """Simulate the privacy noise of the scores, shape (draws, m).

    The laws are exact but for errors of released pair counts, which are taken as normal, and the
    noise on the worths of objective perturbation, which is negligible and left out.
    """
    m = facts.items
    noise = np.asarray(
        facts.item_step * facts.item_law.simulate((draws, m), generator), dtype=np.float64
    )
    return noise + _edge_noise(facts, worths, draws, generator)


def _edge_noise(
    facts: Evidence, worths: FloatArray, draws: int, generator: np.random.Generator
) -> FloatArray:
    """Simulate what the noise of pairs does to the scores, shape (draws, m), or none at all."""
    edges = len(facts.pairs.first)
    if facts.edge_law.scale == 0 and facts.count_variance == 0:
        return np.zeros((1, facts.items))
    cells = facts.edge_step * facts.edge_law.simulate((2, draws, edges), generator)
    tilt = np.sqrt(facts.count_variance) * facts.tilt(worths)
    by_edge = 0.5 * (cells[0] - cells[1])
    by_edge = by_edge + tilt * generator.standard_normal((draws, edges))
    return np.asarray(by_edge @ _incidence(facts.pairs, facts.items))


def _draws(items: int) -> int:
    """Return how many errors of all worths are simulated."""
    return 20_000 if items <= 20 else 2_000


def noisy_errors(release: Release, errors: Covariance, worths: FloatArray) -> NoisyErrors:
    """Return the errors of the worths: normal sampling error, and noise by its exact law.

    The noise moves the worths by the linear map of the fit. It comes from a public counter seed,
    and is drawn for the items in the order of their worths, whatever the order they are listed in.
    """
    m = len(worths)
    if release.source == "none" or m > MOST_SIMULATED_ITEMS:
        return NoisyErrors(errors.total)
    facts, place = evidence(release), np.empty(m, dtype=np.int64)
    order = np.argsort(worths, kind="stable")
    place[order] = np.arange(m)
    ends = np.sort((place[facts.pairs.first], place[facts.pairs.second]), axis=0)
    edges = np.lexsort(ends[::-1])
    count, origin = facts.pairs.count[edges], facts.pairs.origin
    sorted_pairs = PairCounts(ends[0, edges], ends[1, edges], count, origin)
    draws = _draws(m) // 2
    noise = facts.item_step * _public_noise(facts.item_law, m, draws)
    generator = public_generator("errors of pairs", m)
    noise = noise + _edge_noise(replace(facts, pairs=sorted_pairs), worths[order], draws, generator)
    return NoisyErrors(errors.sampling, noise[:, place] @ errors.response.T)


@lru_cache(maxsize=4)
def _public_noise(law: NetLaw, items: int, draws: int) -> FloatArray:
    """Return public draws of a law of noise, shape (draws, items), kept for the next test."""
    generator = public_generator("errors of worths", items)
    return own(np.asarray(law.simulate((draws, items), generator)), np.float64)


def contrast_maxima(facts: Evidence, errors: Covariance, worths: FloatArray) -> FloatArray:
    """Return draws of the largest |t| over all differences of two worths.

    Simulated from the normal sampling law plus the noise law with a public counter seed. For many
    items quantiles of Bonferroni's normal bound stand in for draws.
    """
    m = facts.items
    if m > _MOST_BAND_ITEMS:
        levels = (np.arange(_BOUND_STEPS) + 0.5) / _BOUND_STEPS
        return np.asarray(-ndtri(levels / (m * (m - 1))))
    draws = _draws(m)
    generator = public_generator("contrast quantile", m, draws)
    root = errors.response @ square_root(errors.scores)
    first, second = np.triu_indices(m, 1)
    scale = errors.contrast_errors()[first, second]
    largest = np.empty(draws)
    block = max(1, 4_000_000 // len(first))
    for start in range(0, draws, block):
        size = min(block, draws - start)
        draw = generator.standard_normal((size, m)) @ root.T
        draw += _score_noise(facts, worths, size, generator) @ errors.response.T
        largest[start : start + size] = (np.abs(draw[:, first] - draw[:, second]) / scale).max(1)
    return largest


def contrast_quantile(
    facts: Evidence, errors: Covariance, worths: FloatArray, alpha: float
) -> float:
    """Return the 1 - alpha quantile of the largest |t| over all differences of two worths."""
    return float(np.quantile(contrast_maxima(facts, errors, worths), 1.0 - alpha))


def rank_sets(worths: FloatArray, reach: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the lowest and highest rank of each item when gaps beyond `reach` are certain.

    Given worths, shape (m,), and half widths of all differences, shape (m, m): 1 plus the number of
    items surely better, and m minus the number surely worse.
    """
    better = (worths[None, :] - worths[:, None]) > reach
    low = 1 + better.sum(axis=1)
    high = len(worths) - better.sum(axis=0)
    return low.astype(np.int64), high.astype(np.int64)


def homogeneity(facts: Evidence, release: Release, worths: FloatArray) -> tuple[float, FloatArray]:
    """Return the statistic for equal worths and a table of its null law.

    **Statistic.** score' V^+ score with V the covariance of the noisy scores when all worths are
    equal: the score form of the Wald test. The dependence of a respondent's answers is that seen
    at the fit. **Null.** Normal sampling error plus the noise law, from a public counter seed.
    """
    m = facts.items
    draws = 9_999 if m <= _MOST_BAND_ITEMS else 1_999
    zero = np.zeros(m)
    if MOMENTS[0] in release.parts:
        scores = _cluster_moments(release, facts.pairs, worths, facts.reading)
    else:
        effect = design_effect(release, facts.pairs, worths)
        scores = effect * _independent(facts.reading, facts.pairs, zero)
    noise = facts.item_variance * _centring(m)
    noise = noise + laplacian(facts.edge_variance(zero), facts.pairs, m)
    weights = _contrast_inverse(scores + noise)
    generator = public_generator("homogeneity", m, release.design.nobs)
    draw = generator.standard_normal((draws, m)) @ square_root(scores).T
    noise = facts.item_step * _public_noise(facts.item_law, m, draws)
    noise = noise + _edge_noise(facts, zero, draws, generator)
    draw += noise - noise.mean(axis=1, keepdims=True)
    table = np.einsum("ri,ij,rj->r", draw, weights, draw, optimize=True)
    return float(facts.score @ weights @ facts.score), table
