"""A release read as noisy score statistics of a model of paired comparisons. Sees no data.

Scores are in wins: the score equations read
``sum_j n_ij (F(theta_i - theta_j) - 1/2) + gamma theta_i = net_i / 2``, so noise on `net` enters
halved. Under a log-loss that is no matching loss they are read by another function of the worths
(:class:`privrank.bradley_terry.losses.Reading`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.losses import LOGISTIC_READING, EdgeLoss, Reading, loss_bounds
from privrank.bradley_terry.optim import differences, pull
from privrank.distributions.links import LOGIT
from privrank.privacy.netnoise import NetLaw, equivalent_variance
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release.release import NET, PAIR_COUNTS, WINS, WORTHS, Part, Release
from privrank.release.survey import Design, PairCounts

__all__ = ["Evidence", "attainable", "default_ridge", "evidence", "net_law", "nominal_information"]

FloatArray = NDArray[np.float64]

SIMULATION_STEP = 2.0**-20
"""Lattice on which the continuous noise of objective perturbation is simulated."""

TRUSTED_TOTAL = 0.1
"""Relative error of the released total below which it replaces the public nominal total."""

LEAST_TOTAL = 0.01
"""Share of the nominal total below which released counts say nothing."""

_NO_NOISE = DiscreteLaplace(0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Noisy scores, the comparisons behind them, and the laws of their noise.

    Parameters
    ----------
    score : ndarray, shape (m,)
        Half the noisy net wins, made to sum to zero.
    pairs : PairCounts
        Comparisons per pair used in the fit.
    item_law, item_step : Law, float
        Noise of the scores before centring, in steps of `item_step`.
    edge_law, edge_step : DiscreteLaplace or DiscreteGaussian, float
        Noise of each cell of the win matrix, zero unless the matrix was released; half the
        difference of a pair's two cells enters its two scores with opposite signs.
    count_variance : float
        Error variance of each pair count, zero unless they were released.
    output_variance : float
        Variance of noise added to the worths themselves.
    random_pairs : bool
        Whether pair counts are expectations, so that the score also varies with who met whom.
    reading : Reading
        How the scores depend on the worths.
    answers : tuple of ndarray or None
        Wins and losses of each pair's first item, known exactly: then the worths are fitted to them
        by maximum likelihood.
    """

    score: FloatArray
    pairs: PairCounts
    item_law: NetLaw = _NO_NOISE
    item_step: float = 1.0
    edge_law: DiscreteLaplace | DiscreteGaussian = _NO_NOISE
    edge_step: float = 1.0
    count_variance: float = 0.0
    output_variance: float = 0.0
    random_pairs: bool = False
    reading: Reading = LOGISTIC_READING
    answers: tuple[FloatArray, FloatArray] | None = None

    @property
    def estimator(self) -> Reading:
        """How the scores that the fit solves depend on the worths."""
        return self.reading if self.answers is None else Reading(self.reading.link, True)

    @property
    def loss(self) -> EdgeLoss:
        """The loss that the fit minimises, less `target`."""
        if self.answers is None:
            return EdgeLoss.matching(self.reading, self.pairs.count)
        return EdgeLoss.likelihood(self.reading.link, *self.answers)

    @property
    def target(self) -> FloatArray:
        """Right-hand side of the score equations of the fit."""
        return self.score if self.answers is None else np.zeros(self.items)

    @property
    def items(self) -> int:
        """Number of items."""
        return len(self.score)

    @property
    def item_variance(self) -> float:
        """Variance of independent noise on the scores that does the same to their differences."""
        return self.item_step**2 * equivalent_variance(self.item_law, self.items)

    def edge_variance(self, worths: FloatArray) -> FloatArray:
        """Return the variance of the noise each pair puts into its two scores, opposite in sign.

        An error in a pair count moves the expected wins by its product with F - 1/2.
        """
        cells = 0.5 * self.edge_step**2 * self.edge_law.variance
        return np.asarray(cells + self.count_variance * self.tilt(worths) ** 2)

    def tilt(self, worths: FloatArray) -> FloatArray:
        """Return the mean score of one comparison of each pair."""
        return self.reading.pull(differences(worths, self.pairs))


def evidence(release: Release) -> Evidence:
    """Read a release as noisy scores.

    Worths of objective perturbation are read through their equations: at the minimiser the score
    equations hold with the noise w on their right-hand side, so that their left-hand side, with
    public pair counts, is half a noisy net. The log-loss of other links than the logit is read in
    the same way, its scores being linear near the truth.

    The win matrix of a non-private run, exact and of the pairs met only, is fitted by maximum
    likelihood; for the logit that is what its net wins give.
    """
    design = release.design
    if design.covariates is not None:
        raise ValueError(
            "release must be of a model without covariates: fit one with '~ 1' on the right."
        )
    m = len(design.items)
    matching = Reading(release.link)
    if WINS in release.parts:
        part = release.parts[WINS]
        wins = part.step * part.values.reshape(2, -1)
        if design.pairs is not None:
            net = np.zeros(m)
            np.add.at(net, design.pairs.first, 0.5 * (wins[0] - wins[1]))
            np.subtract.at(net, design.pairs.second, 0.5 * (wins[0] - wins[1]))
            answers = None if release.link == LOGIT else (wins[0], wins[1])
            return Evidence(net, design.pairs, reading=matching, answers=answers)
        # a count is the sum of a pair's two cells
        pairs, count_variance = _shrunk(design, wins.sum(axis=0), 2.0 * part.noise_variance)
        half = 0.5 * (wins[0] - wins[1])
        score = np.zeros(m)
        np.add.at(score, pairs.first, half)
        np.subtract.at(score, pairs.second, half)
        return Evidence(
            score - score.mean(),
            pairs,
            edge_law=_cell_law(part),
            edge_step=part.step,
            count_variance=count_variance,
            reading=matching,
        )
    pairs, count_variance = _pair_counts(release)
    if NET in release.parts:
        part = release.parts[NET]
        score = 0.5 * part.step * part.values.astype(np.float64)
        return Evidence(
            score - score.mean(),
            pairs,
            item_law=net_law(part),
            item_step=0.5 * part.step,
            count_variance=count_variance,
            random_pairs=pairs.origin == "equal",
            reading=matching,
        )
    part = release.parts[WORTHS]
    theta = np.asarray(part.step * part.values, dtype=np.float64)
    reading = Reading(release.link, likelihood=loss_bounds(release.link).answers_curve)
    score = pull(theta, pairs, reading) + release.plan.number("gamma") * theta
    return Evidence(
        score - score.mean(),
        pairs,
        item_law=DiscreteLaplace(release.plan.number("lambda") / SIMULATION_STEP),
        item_step=SIMULATION_STEP,
        count_variance=count_variance,
        output_variance=part.noise_variance,
        reading=reading,
    )


def net_law(part: Part) -> NetLaw:
    """Return the law of noise on net wins, or refuse another."""
    if not isinstance(part.law, NetLaw):
        raise ValueError("release must have noise that is drawn for net wins.")
    return part.law


def _cell_law(part: Part) -> DiscreteLaplace | DiscreteGaussian:
    if not isinstance(part.law, DiscreteLaplace | DiscreteGaussian):
        raise ValueError("release must have discrete Laplace or Gaussian noise on its win matrix.")
    return part.law


def _pair_counts(release: Release) -> tuple[PairCounts, float]:
    """Return the public or released comparisons per pair and the error variance of each."""
    if PAIR_COUNTS in release.parts:
        part = release.parts[PAIR_COUNTS]
        return _shrunk(release.design, part.values.astype(np.float64), part.noise_variance)
    if release.design.pairs is None:
        raise ValueError("release must hold pair counts, or its design must.")
    return release.design.pairs, 0.0


def _shrunk(design: Design, noisy: FloatArray, variance: float) -> tuple[PairCounts, float]:
    """Return released pair counts shrunk towards their mean, and their error variance.

    With noise of this variance v and true counts that vary by tau^2, the count closest to the
    truth is the mean plus tau^2 / (tau^2 + v) of the noisy deviation, with error variance
    tau^2 v / (tau^2 + v); tau^2 is estimated by the excess of the noisy counts' variance over v.
    The mean is the released one where its noise is small against the nominal, else the nominal.
    """
    first, second = np.triu_indices(len(design.items), 1)
    edges = len(noisy)
    mean = design.nominal_total / edges
    if np.sqrt(variance / edges) <= TRUSTED_TOTAL * mean:
        mean = float(noisy.mean())
    spread = max(0.0, float(np.mean((noisy - mean) ** 2)) - variance)
    kept = spread / (spread + variance) if variance > 0 else 1.0
    count = np.maximum(mean + kept * (noisy - mean), 0.0)
    if count.sum() < LEAST_TOTAL * design.nominal_total:
        # noise has left no comparisons at all: fall back on the nominal number
        count = np.full(edges, design.nominal_total / edges)
    return PairCounts(first, second, count, "released"), kept * variance


def attainable(score: FloatArray, pairs: PairCounts, reading: Reading = LOGISTIC_READING) -> bool:
    """Return whether any answers could have such scores, by a necessary condition.

    For the k best-scoring items the scores add up to at most half the comparisons that leave the
    group, or to the reading's largest score for each; noise can carry them beyond. For net wins on
    a complete design with equal counts the condition is also sufficient (Landau).
    """
    order = np.argsort(-score)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    near = np.minimum(place[pairs.first], place[pairs.second])
    far = np.maximum(place[pairs.first], place[pairs.second])
    # a pair is cut by the groups that hold its better item only
    steps = np.bincount(near, pairs.count, minlength=len(order))
    leaving = np.cumsum(steps - np.bincount(far, pairs.count, minlength=len(order)))[:-1]
    return bool((np.cumsum(score[order])[:-1] < reading.most * leaving).all())


def nominal_information(items: int, total: float, reading: Reading = LOGISTIC_READING) -> float:
    """Return the information per contrast of `total` comparisons spread over all pairs.

    A connected design with equal counts has all non-zero Laplacian eigenvalues equal to
    2 total / (m - 1), here times the mean curvature for worths of the reading's spread.
    """
    return reading.mean_curvature * 2.0 * total / (items - 1)


def default_ridge(
    information: float, score_noise_variance: float, reading: Reading = LOGISTIC_READING
) -> float:
    """Return the ridge that balances noise and shrinkage for worths of the reading's spread s.

    For a contrast with curvature I, sampling variance r I and score noise v, the mean squared error
    (r I + v + gamma^2 s^2) / (I + gamma)^2 is smallest at gamma = (r + v / I) / s^2; r = 1 for the
    logit, where s = 1, and for log-losses.
    """
    variance = reading.mean_variance / reading.mean_curvature
    return (variance + score_noise_variance / information) / reading.spread**2
