"""Bradley-Terry inference from a release: estimate, errors, bands. Sees no data.

Scores are in wins: the score equations read
``sum_j n_ij (F(theta_i - theta_j) - 1/2) + gamma theta_i = net_i / 2``, so noise on `net` enters
halved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from privrank.noise import DiscreteLaplace
from privrank.nulls import public_generator
from privrank.optim import curvature, laplacian, pull
from privrank.release import (
    DESIGN_EFFECT,
    MOMENTS,
    NET,
    PAIR_COUNTS,
    WINS,
    WORTHS,
    PairCounts,
    Release,
)

__all__ = [
    "Covariance",
    "Evidence",
    "bias_correction",
    "contrast_quantile",
    "covariance",
    "default_ridge",
    "design_effect",
    "evidence",
    "homogeneity",
    "nominal_information",
    "rank_sets",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MEAN_CURVATURE = 0.18234
"""E F'(t) for logistic F and t normal(0, 2): worths with standard deviation 1."""

SIMULATION_STEP = 2.0**-20
"""Lattice on which the continuous noise of objective perturbation is simulated."""

_MOST_BAND_ITEMS = 200
"""Beyond this, simultaneous bands use the Bonferroni bound instead of simulation."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A release read as noisy score statistics.

    Parameters
    ----------
    score : ndarray, shape (m,)
        Half the noisy net wins, made to sum to zero.
    pairs : PairCounts
        Comparisons per pair used in the fit.
    item_law, item_step : DiscreteLaplace, float
        Noise of each score before centring, in steps of `item_step`.
    edge_law, edge_step : DiscreteLaplace, float
        Noise of each cell of the win matrix, zero unless the matrix was released.
    count_variance : float
        Noise variance of each pair count, zero unless they were released.
    output_variance : float
        Variance of noise added to the worths themselves.
    random_pairs : bool
        Whether pair counts are expectations, so that the score also varies with who met whom.
    """

    score: FloatArray
    pairs: PairCounts
    item_law: DiscreteLaplace
    item_step: float
    edge_law: DiscreteLaplace
    edge_step: float
    count_variance: float
    output_variance: float
    random_pairs: bool

    @property
    def items(self) -> int:
        """Number of items."""
        return len(self.score)

    @property
    def item_variance(self) -> float:
        """Noise variance of each score before centring."""
        return self.item_step**2 * self.item_law.variance

    def edge_variance(self, theta: FloatArray) -> FloatArray:
        """Return the variance of the noise each pair puts into its two scores, opposite in sign."""
        p = _win_probability(theta, self.pairs)
        cells = self.edge_step**2 * self.edge_law.variance * ((1 - p) ** 2 + p**2)
        return np.asarray(cells + self.count_variance * (p - 0.5) ** 2)


def _win_probability(theta: FloatArray, pairs: PairCounts) -> FloatArray:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * (theta[pairs.first] - theta[pairs.second])))


_NO_NOISE = DiscreteLaplace(0.0)


def evidence(release: Release) -> Evidence:
    """Read a release as noisy scores; the worths of objective perturbation through their equations.

    At the minimiser the score equations hold with the noise w on their right-hand side, so that
    their left-hand side, with public pair counts, is half a noisy net.
    """
    design = release.design
    m = len(design.items)
    pairs = design.pairs
    count_variance = 0.0
    if PAIR_COUNTS in release.parts:
        part = release.parts[PAIR_COUNTS]
        first, second = np.triu_indices(m, 1)
        pairs = PairCounts(first, second, np.maximum(part.values, 0), "released")
        count_variance = part.noise_variance
    item_law, item_step = _NO_NOISE, 1.0
    edge_law, edge_step = _NO_NOISE, 1.0
    output_variance = 0.0
    score: FloatArray
    if WINS in release.parts:
        part = release.parts[WINS]
        wins = part.step * part.values.reshape(2, -1)
        first, second = np.triu_indices(m, 1)
        pairs = PairCounts(first, second, np.maximum(wins.sum(axis=0), 0), "released")
        half = 0.5 * (wins[0] - wins[1])
        score = np.zeros(m)
        np.add.at(score, first, half)
        np.subtract.at(score, second, half)
        edge_law, edge_step = part.law, part.step
    elif NET in release.parts:
        part = release.parts[NET]
        score = 0.5 * part.values.astype(np.float64)
        item_law, item_step = part.law, 0.5 * part.step
    else:
        part = release.parts[WORTHS]
        assert pairs is not None
        theta = np.asarray(part.step * part.values, dtype=np.float64)
        score = pull(theta, pairs) + release.constants["gamma"] * theta
        scale = release.constants["lambda"]
        item_law, item_step = DiscreteLaplace(scale / SIMULATION_STEP), SIMULATION_STEP
        output_variance = part.noise_variance
    assert pairs is not None
    return Evidence(
        score=score - score.mean(),
        pairs=pairs,
        item_law=item_law,
        item_step=item_step,
        edge_law=edge_law,
        edge_step=edge_step,
        count_variance=count_variance,
        output_variance=output_variance,
        random_pairs=pairs.origin == "equal" and NET in release.parts,
    )


def nominal_information(items: int, total: float) -> float:
    """Return the information per contrast of `total` comparisons spread over all pairs.

    A connected design with equal counts has all non-zero Laplacian eigenvalues equal to
    2 total / (m - 1), here times the mean curvature for worths of standard deviation 1.
    """
    return MEAN_CURVATURE * 2.0 * total / (items - 1)


def default_ridge(information: float, score_noise_variance: float) -> float:
    """Return the ridge that balances noise and shrinkage for worths of standard deviation 1.

    For a contrast with information I and score variance I + v, the mean squared error
    (I + v + gamma^2) / (I + gamma)^2 is smallest at gamma = 1 + v / I.
    """
    return 1.0 + score_noise_variance / information


def bias_correction(
    theta: FloatArray, pairs: PairCounts, gamma: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the corrected worths, the inverse Hessian, and the map from scores to worths.

    The ridge pulls the minimiser towards zero by about gamma H^-1 theta; adding that back gives
    worths whose linear response to the scores is K = (I + gamma H^-1) H^-1.
    """
    m = len(theta)
    centring = np.eye(m) - 1.0 / m
    hessian = laplacian(curvature(theta, pairs), pairs, m)
    # the constant direction is made regular; no score has a part in it
    inverse = np.linalg.inv(hessian + gamma * centring + np.full((m, m), 1.0 / m))
    inverse = centring @ inverse @ centring
    shift = centring + gamma * inverse
    return shift @ theta, inverse, shift @ inverse


@dataclass(frozen=True, slots=True, eq=False)
class Covariance:
    """Covariance of the worths, split into sampling and privacy noise, and its square root.

    Parameters
    ----------
    sampling, privacy : ndarray, shape (m, m)
        The two parts; their sum is the covariance.
    response : ndarray, shape (m, m)
        The map from scores to worths.
    score_covariance : ndarray, shape (m, m)
        Sampling covariance of the scores.
    """

    sampling: FloatArray
    privacy: FloatArray
    response: FloatArray
    score_covariance: FloatArray

    @property
    def total(self) -> FloatArray:
        """Covariance with both sources of error."""
        return self.sampling + self.privacy

    def contrast_errors(self) -> FloatArray:
        """Return the standard errors of all differences of two worths, shape (m, m)."""
        variance = np.diag(self.total)
        return np.asarray(
            np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2.0 * self.total, 0.0))
        )


def score_covariance(
    facts: Evidence, release: Release, theta: FloatArray, worths: FloatArray
) -> FloatArray:
    """Return the sampling covariance of the scores.

    Independent answers give the Laplacian of n F'; where pair counts are expectations only, the
    second moment n / 4, which also covers randomly chosen pairs. For respondents it is multiplied
    by the design effect, or replaced by the cluster-robust moments of a non-private run. A tie
    counts as half a win to each, whose variance is smaller than assumed.
    """
    m = facts.items
    if MOMENTS[0] in release.parts:
        return _cluster_moments(release, facts.pairs, theta, m)
    weights = curvature(theta, facts.pairs)
    if facts.random_pairs and DESIGN_EFFECT not in release.parts:
        weights = 0.25 * facts.pairs.count
    return design_effect(release, facts.pairs, theta, worths) * laplacian(weights, facts.pairs, m)


def _cluster_moments(
    release: Release, pairs: PairCounts, theta: FloatArray, items: int
) -> FloatArray:
    """Return the sum over respondents of score times score, from moments by pair."""
    edges = len(pairs.first)
    yy, yn, nn = (
        release.parts[name].values.reshape(edges, edges).astype(np.float64) for name in MOMENTS
    )
    mean = 2.0 * _win_probability(theta, pairs) - 1.0
    cross = yn * mean[None, :]
    meat = yy - cross - cross.T + nn * np.outer(mean, mean)
    incidence = np.zeros((items, edges))
    incidence[pairs.first, np.arange(edges)] = 0.5
    incidence[pairs.second, np.arange(edges)] = -0.5
    return incidence @ meat @ incidence.T


def design_effect(
    release: Release, pairs: PairCounts, theta: FloatArray, worths: FloatArray
) -> float:
    """Return the variance of respondents' net wins over that of independent answers, at least 1.

    The released sum over respondents of |net|^2, less nobs times the squared mean net, estimates
    the trace of the net's sampling covariance; independent answers would give 8 sum n F'. The mean
    net is that of the fitted worths. Where respondents answer different pairs the mean net varies
    and the estimate errs upwards.
    """
    if DESIGN_EFFECT not in release.parts:
        return 1.0
    spread = float(release.parts[DESIGN_EFFECT].values[0])
    mean_net = 2.0 * pull(worths, pairs)
    independent = 8.0 * float(curvature(theta, pairs).sum())
    return max(1.0, (spread - float(mean_net @ mean_net) / release.design.nobs) / independent)


def covariance(
    facts: Evidence, release: Release, theta: FloatArray, gamma: float, *, corrected: bool
) -> Covariance:
    """Return the sandwich covariance of the worths at the ridge estimate `theta`."""
    m = facts.items
    worths, inverse, response = bias_correction(theta, facts.pairs, gamma)
    shift = np.eye(m) - 1.0 / m + gamma * inverse
    if not corrected:
        response, shift = inverse, np.eye(m) - 1.0 / m
    meat = score_covariance(facts, release, theta, worths)
    noise = facts.item_variance * np.eye(m) + laplacian(facts.edge_variance(theta), facts.pairs, m)
    privacy = response @ noise @ response.T + facts.output_variance * shift @ shift.T
    return Covariance(response @ meat @ response.T, privacy, response, meat)


def _score_noise(
    facts: Evidence, theta: FloatArray, draws: int, generator: np.random.Generator
) -> FloatArray:
    """Simulate the privacy noise of the scores, shape (draws, m)."""
    m, edges = facts.items, len(facts.pairs.first)
    noise: FloatArray = facts.item_step * facts.item_law.simulate((draws, m), generator)
    if facts.edge_law.scale > 0:
        p = _win_probability(theta, facts.pairs)
        cells = facts.edge_step * facts.edge_law.simulate((2, draws, edges), generator)
        pull_up = (1 - p) * cells[0] - p * cells[1]
        incidence = np.zeros((edges, m))
        incidence[np.arange(edges), facts.pairs.first] = 1.0
        incidence[np.arange(edges), facts.pairs.second] = -1.0
        noise = noise + pull_up @ incidence
    return np.asarray(noise)


def _square_root(matrix: FloatArray) -> FloatArray:
    values, vectors = eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def contrast_quantile(
    facts: Evidence, errors: Covariance, theta: FloatArray, alpha: float
) -> float:
    """Return the 1 - alpha quantile of the largest |t| over all differences of two worths.

    Simulated from the normal sampling law plus the exact noise law with a public counter seed; the
    Bonferroni normal bound for many items.
    """
    from scipy.stats import norm

    m = facts.items
    if m > _MOST_BAND_ITEMS:
        return float(norm.isf(alpha / (m * (m - 1))))
    draws = 20_000 if m <= 20 else 2_000
    generator = public_generator("contrast quantile", m, draws)
    root = errors.response @ _square_root(errors.score_covariance)
    scale = errors.contrast_errors()
    first, second = np.triu_indices(m, 1)
    scale = scale[first, second]
    largest = np.empty(draws)
    block = max(1, 4_000_000 // len(first))
    for start in range(0, draws, block):
        size = min(block, draws - start)
        worths = generator.standard_normal((size, m)) @ root.T
        worths += _score_noise(facts, theta, size, generator) @ errors.response.T
        gaps = np.abs(worths[:, first] - worths[:, second]) / scale
        largest[start : start + size] = gaps.max(axis=1)
    return float(np.quantile(largest, 1.0 - alpha))


def rank_sets(worths: FloatArray, reach: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the lowest and highest rank of each item when gaps beyond `reach` are certain.

    Given worths, shape (m,), and half widths of all differences, shape (m, m): 1 plus the number of
    items surely better, and m minus the number surely worse.
    """
    better = (worths[None, :] - worths[:, None]) > reach
    low = 1 + better.sum(axis=1)
    high = len(worths) - better.sum(axis=0)
    return low.astype(np.int64), high.astype(np.int64)


def homogeneity(
    facts: Evidence, release: Release, theta: FloatArray, worths: FloatArray, draws: int = 9_999
) -> tuple[float, FloatArray]:
    """Return the statistic for equal worths and a table of its null law.

    **Statistic.** score' V^+ score with V the covariance of the noisy scores when all worths are
    equal: the score form of the Wald test. The dependence of a respondent's answers is that seen
    at the fit. **Null.** Normal sampling error plus the exact noise law, from a public counter
    seed.
    """
    m = facts.items
    zero = np.zeros(m)
    centring = np.eye(m) - 1.0 / m
    if MOMENTS[0] in release.parts:
        meat = _cluster_moments(release, facts.pairs, theta, m)
    else:
        effect = design_effect(release, facts.pairs, theta, worths)
        meat = effect * laplacian(curvature(zero, facts.pairs), facts.pairs, m)
    noise = facts.item_variance * centring
    noise = noise + laplacian(facts.edge_variance(zero), facts.pairs, m)
    inverse = np.linalg.inv(meat + noise + np.full((m, m), 1.0 / m))
    inverse = centring @ inverse @ centring
    generator = public_generator("homogeneity", m, release.design.nobs)
    scores = generator.standard_normal((draws, m)) @ _square_root(meat).T
    scores += _score_noise(facts, zero, draws, generator) @ centring
    table = np.einsum("ri,ij,rj->r", scores, inverse, scores, optimize=True)
    return float(facts.score @ inverse @ facts.score), table


def contrast_information(theta: FloatArray, pairs: PairCounts) -> float:
    """Return the average information per contrast at `theta`, from public pair counts."""
    return 2.0 * float(curvature(theta, pairs).sum()) / (len(theta) - 1)
