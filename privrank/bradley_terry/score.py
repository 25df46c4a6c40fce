"""A release read as noisy score equations of a model of paired comparisons. Sees no data.

Scores are in wins. Without covariates they read ``sum_j n_ij (F(theta_i - theta_j) - 1/2) +
gamma theta_i = net_i / 2``, so noise on `net` enters halved. With covariates row r of the released
statistic is the sum of basis times net wins, and the model matrix is basis times weights. So the
score of column k is weights_k' statistic, on the item basis, halved. Noise follows by the same map.
Under a log-loss that is no matching loss the scores are another function of the worths
(:class:`privrank.bradley_terry.losses.ScoreFunction`).

Where ties have a parameter lambda, the last coefficient, its score equation is ``sum n_ij P(tie) =
ties``, the number of ties T, released with noise. Noise can bring T where there is no fit. It is
cut off at 1/2 and at N - max(|net|_1, 1) / 2, of N comparisons: as many are decided as the net wins
show. That is always done, and never is another model fitted instead, which would estimate something
else whenever the noise says so.

Where wins W and losses L are released, net = W - L, and pair counts follow from the comparisons
a = W + L of each item (:mod:`privrank.bradley_terry.paircounts`). To first order an error in
these moves expected nets f_i = sum_j n_ij g_ij, g = 2 F - 1, by J = (diag f + n o g)
(diag a + n)^-1, with o the product by entries. So noise e_W, e_L of both brings the error
(I - J) e_W - (I + J) e_L; noise e, f of net and a, where these were released by themselves, brings
e - J f. Given a, net wins have the covariance Lap(n) - J (diag a + n) J'. Where beta is fitted a
comparison adds g less what that takes, in all of these formulas.

"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privrank.bradley_terry.components import Components
from privrank.bradley_terry.linear import (
    LinearPredictor,
    bordered,
    item_basis,
    item_contrasts,
    linear_predictor,
)
from privrank.bradley_terry.losses import EdgeLoss, ScoreFunction, loss_bounds
from privrank.bradley_terry.paircounts import Matching, counts_by_cell, released_counts
from privrank.distributions.links import LOGIT
from privrank.privacy.netnoise import NetDistribution
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release import names
from privrank.release.plan import equivalent_variance
from privrank.release.release import Release
from privrank.release.survey import Covariates, PairCounts
from privrank.util.arrays import AnyArray, FloatArray, IntArray, readonly_copy
from privrank.util.solvers import product

SIMULATION_STEP = 2.0**-20
"""Lattice on which the continuous noise of objective perturbation is simulated."""

SURPLUS_STEPS = 3
"""Fits after which comparisons that are too many have been taken off again."""

_NO_NOISE = DiscreteLaplace(0.0)


@dataclass(frozen=True, eq=False)
class ScoreEquations:
    """Noisy scores of the coefficients b, the comparisons behind them, and their noise.

    Without covariates the coefficients are the worths.

    Parameters
    ----------
    items : int
        Number of items m.
    score : ndarray, shape (p,)
        Noisy scores; those of worths are made to sum to zero.
    pairs : PairCounts
        Comparisons per pair used in the fit, with covariates per pattern and pair.
    linear : LinearPredictor
        The map from coefficients to the predictor of each edge.
    function : ScoreFunction
        How the scores depend on the worths.
    covariates : Covariates or None
        The model matrix.
    item_distribution, item_step : Distribution, float
        Noise of each row of scores by item, in steps of `item_step`.
    edge_distribution, edge_step : DiscreteLaplace or DiscreteGaussian, float
        Noise of each cell of the win matrix, zero unless the matrix was released; half the
        difference of a pair's two cells enters its two scores with opposite signs.
    last_distribution, last_step : DiscreteLaplace, float
        Noise of the last score, where that is one of an order effect, or the number of ties.
    surplus : ndarray
        By how much the comparisons of each edge are larger than released; 0 if they are not.
    count_variance : float
        Error variance of each pair count, zero unless they were released; with covariates of their
        sum over the patterns.
    group_answers : ndarray
        Comparisons of each group of respondents, as released and at least one; else empty.
    group_variance : float
        Error variance of each of them.
    output_variance : float
        Variance of noise added to the worths themselves.
    components : Components
        The items between which comparisons are known of, and what these identify.
    random_pairs : bool
        Whether pair counts are expectations, so that the score also varies with who met whom.
    matching : Matching or None
        Who met whom, where the pair counts follow from those of items.
    sides : int
        Numbers of each item whose noise is in its score: 2 where wins, and losses with a minus
        sign, were released.
    response : ndarray
        What responses add to the variance of each edge's score, and ties take off; may be empty.
    answers : tuple of ndarray or None
        Wins and losses of each edge's first item, known exactly: then the coefficients are fitted
        to them by maximum likelihood.
    """

    items: int
    score: FloatArray
    pairs: PairCounts
    linear: LinearPredictor
    function: ScoreFunction
    components: Components
    covariates: Covariates | None = None
    item_distribution: NetDistribution = _NO_NOISE
    item_step: float = 1.0
    edge_distribution: DiscreteLaplace | DiscreteGaussian = _NO_NOISE
    edge_step: float = 1.0
    last_distribution: DiscreteLaplace = _NO_NOISE
    last_step: float = 1.0
    surplus: FloatArray = field(default_factory=lambda: np.zeros(()))
    count_variance: float = 0.0
    group_answers: FloatArray = field(default_factory=lambda: np.zeros(0))
    group_variance: float = 0.0
    output_variance: float = 0.0
    random_pairs: bool = False
    matching: Matching | None = None
    sides: int = 1
    response: FloatArray = field(default_factory=lambda: np.zeros(0))
    answers: tuple[FloatArray, FloatArray] | None = None

    def __post_init__(self) -> None:
        """Take private, read-only copies of what is no other object's."""
        for name in ("score", "surplus", "response", "group_answers"):
            object.__setattr__(self, name, readonly_copy(getattr(self, name), np.float64))

    @property
    def fitted(self) -> ScoreFunction:
        """How the scores that the fit solves depend on the worths."""
        return self.function if self.answers is None else ScoreFunction(self.function.link, True)

    @property
    def estimator(self) -> str:
        """The loss whose minimum the coefficients are, before its ridge."""
        likelihood = self.fitted.likelihood or self.fitted.link == LOGIT
        return "maximum likelihood" if likelihood else "matching loss"

    @property
    def loss(self) -> EdgeLoss:
        """The loss that the fit minimises, less `target`."""
        if self.answers is None:
            return EdgeLoss.matching(self.function, self.count)
        return EdgeLoss.likelihood(self.function.link, *self.answers)

    @property
    def target(self) -> FloatArray:
        """Right-hand side of the score equations of the fit."""
        return self.score if self.answers is None else np.zeros(self.linear.size)

    @property
    def tied(self) -> bool:
        """Whether the last coefficient is a tie parameter."""
        return self.function.ties

    def _by_edge(self, values: AnyArray) -> AnyArray:
        """Return numbers by pair, or one for all, for the edges of the linear predictor."""
        return np.tile(np.broadcast_to(values, len(self.pairs.count)), 3) if self.tied else values

    @property
    def count(self) -> FloatArray:
        """Comparisons of each edge used in the fit."""
        return self._by_edge(np.asarray(self.pairs.count))

    @property
    def pattern(self) -> IntArray:
        """Pattern of covariates of each edge, 0 without covariates."""
        return self._by_edge(self.pairs.first // self.items)

    def scores_by_pattern(self, means: FloatArray) -> FloatArray:
        """Return the scores of all comparisons by pattern, (patterns, p), given means by edge."""
        return self.linear.scores_by(self.pattern, self.count * means)

    @property
    def weights(self) -> FloatArray:
        """Rows of scores by item to columns of the model matrix, shape (R, K)."""
        return np.ones((1, 1)) if self.covariates is None else self.covariates.weights

    @property
    def basis(self) -> FloatArray:
        """The item basis, shape (m, q): worths themselves without covariates."""
        return item_basis(self.covariates, self.items)

    @property
    def ordered(self) -> bool:
        """Whether the last coefficient is an order effect."""
        return self.covariates is not None and self.covariates.ordered

    @property
    def item_variance(self) -> float:
        """Variance of independent noise on the scores that does the same to their differences."""
        alone = equivalent_variance(self.item_distribution, self.sides * self.items)
        return self.sides * self.item_step**2 * alone

    @property
    def last_variance(self) -> float:
        """Variance of the noise of the score of an order effect, or of the number of ties."""
        return self.last_step**2 * self.last_distribution.variance

    def edge_variance(self, square: FloatArray | float) -> FloatArray | float:
        """Return the variance of the noise each pair puts into its two scores, opposite in sign.

        An error in a pair count moves the expected wins by its product with F - 1/2, whose square
        is given.
        """
        cells = 0.5 * self.edge_step**2 * self.edge_distribution.variance
        return cells + self.count_variance * square

    def spread(self, t: FloatArray, function: ScoreFunction | None = None) -> FloatArray:
        """Return the variance of each edge's score of independent answers at predictors t.

        With responses at least what E(y^2) >= |E(y)| leaves.
        """
        function = function or self.function
        exact = np.asarray(self.count * function.variance(t))
        if not len(self.response):
            return exact
        if self.tied:
            return exact + np.maximum(self.response, 0.0)
        mean = np.abs(function.mean(t))
        return np.maximum(exact + self.response, self.pairs.count * mean * (0.5 - mean))

    @property
    def response_covariance(self) -> FloatArray | float:
        """Part of the covariance of the scores that is due to randomised responses, (p, p)."""
        if not len(self.response):
            return 0.0
        return self.linear.information(np.maximum(self.response, 0.0))

    def noise_covariance(self, b: FloatArray) -> FloatArray:
        """Return the covariance of the noise in the scores, shape (p, p), at coefficients b."""
        # the noise of rows and items is independent, and enters the scores by weights and basis
        gram = self.weights.T @ self.weights
        items = product(self.basis.T, self.basis)
        noise = np.asarray(np.kron(self.item_variance * gram, items))
        if self.ordered or self.tied:
            noise = bordered(noise, self.last_variance)
        if self.covariates is None and self.edge_distribution.scale + self.count_variance > 0:
            noise = noise + self.pair_noise(b)
        if (matching := self.matching) is not None:
            noise += matching.noise_covariance(self.function.mean(self.linear.predict(b)))
        return noise

    def pair_noise(self, b: FloatArray) -> FloatArray:
        """Return the covariance of what the noise of pairs puts into the scores, shape (p, p)."""
        if not self.tied:
            squares = self.function.mean(self.linear.predict(b)) ** 2
            return self.linear.information(np.asarray(self.edge_variance(squares)))
        mean = self.pair_means(b)
        return np.asarray(self.count_variance * (mean.T @ mean))

    def pair_means(self, b: FloatArray) -> FloatArray:
        """Return the mean scores of one comparison of each pair, shape (pairs, p).

        With covariates by pattern and pair. Three edges add up to a pair where ties have a
        parameter.
        """
        pair = self._by_edge(np.arange(len(self.pairs.count)))
        return self.linear.scores_by(pair, self.function.mean(self.linear.predict(b)))

    @property
    def noisy(self) -> bool:
        """Whether noise was added to what is released, beside any responses."""
        noises = (self.item_distribution, self.edge_distribution)
        return self.count_variance > 0 or any(noise.variance > 0 for noise in noises)

    @property
    def _released(self) -> FloatArray:
        return np.asarray(self.pairs.count - self.surplus)  # added so that none is below 0

    @property
    def released_count(self) -> FloatArray:
        """Comparisons of each edge as they were released, also where noise put them below 0."""
        return self._by_edge(self._released)

    @property
    def total(self) -> float:
        """Comparisons in all, as released; where noise has left fewer than one, one."""
        return max(float(self._released.sum()), 1.0)

    @property
    def degrees(self) -> FloatArray:
        """Comparisons each item takes part in, as released; without covariates."""
        return (self.linear.worths or self.linear).sizes(self._released)

    @property
    def degree_error(self) -> float:
        """Standard deviation of the noise of :attr:`degrees`; 0 where these are public."""
        alone = 0.0 if self.matching is None else self.matching.variance
        return math.sqrt(alone + (self.items - 1) * self.count_variance)

    @property
    def group_shares(self) -> FloatArray:
        """The share of each group in all comparisons; 1 where none are released by group."""
        answers = self.group_answers if len(self.group_answers) else np.ones(1)
        return np.asarray(answers / answers.sum())

    def group_noise(self, b: FloatArray) -> FloatArray | float:
        """Return what errors of comparisons per group, and of those per pair, do to the scores.

        A comparison more in a cell moves shares of all comparisons from the other cells to this
        one, and each share brings the score that all comparisons would have in its cell. A
        comparison more of a pair raises the expected score of every cell by the cell's share.
        """
        if self.covariates is None or self.group_variance + self.count_variance == 0.0:
            return 0.0
        mean = self.function.mean(self.linear.predict(b))
        share = self.group_shares
        scores = self.scores_by_pattern(mean)
        # the derivative of the scores by the comparisons of each cell
        slopes = (scores / share[:, None] - scores.sum(axis=0)) / self.group_answers.sum()
        noise = self.group_variance * (slopes.T @ slopes)
        if self.count_variance > 0:
            edges = np.arange(len(mean))
            pairs = len(self.pairs.count) // len(share)
            by_pair = self.linear.scores_by(edges % pairs, share[self.pattern] * mean)
            noise = noise + self.count_variance * (by_pair.T @ by_pair)
        return np.asarray(noise)

    def count_noise(self, along: FloatArray, predictors: FloatArray) -> FloatArray:
        """Return what errors of pair counts add to variances of combinations of scores.

        Given those by edge, shape (rows, edges), and predictors. The cells share a pair's error.
        """
        by_edge = along * self.function.mean(predictors)
        if (matching := self.matching) is not None:
            return matching.noise_variances(by_edge)
        edges = 3 if self.tied else 1
        share = self.group_shares
        by_pair = share @ by_edge.reshape(len(along), edges, len(share), -1).sum(axis=1)
        return np.asarray(self.count_variance * (by_pair**2).sum(axis=1))

    @property
    def steps(self) -> int:
        """How many fits the correction of the bias takes: more where counts are too large."""
        return SURPLUS_STEPS if self.surplus.any() else 1

    def surplus_score(self, b: FloatArray) -> FloatArray:
        """Return the expected scores of the comparisons that are too many, at coefficients b."""
        surplus = self._by_edge(self.surplus)
        return self.linear.scores(surplus * self.function.mean(self.linear.predict(b)))

    def surplus_information(self, b: FloatArray) -> FloatArray:
        """Return the slope of :meth:`surplus_score` by the coefficients."""
        curvature = self.function.curvature(self.linear.predict(b))
        return self.linear.information(self._by_edge(self.surplus) * curvature)

    def information(self, b: FloatArray) -> FloatArray:
        """Return the slope of the mean scores by the coefficients, shape (p, p)."""
        return self.linear.information(self.count * self.fitted.curvature(self.linear.predict(b)))


def score_equations(release: Release) -> ScoreEquations:
    """Read a release as noisy score equations.

    Worths of objective perturbation are read through their equations: at the minimiser the score
    equations hold with the noise w on their right-hand side. So their left-hand side, with public
    pair counts, is half a noisy net. The log-loss of other links than the logit is read in the same
    way, its scores being linear about the truth.

    The win matrix of a non-private run, exact and of the pairs met only, is fitted by maximum
    likelihood; for the logit that is what its net wins give. That of randomised responses is read
    by its net wins over the gain of the response. A report r of an answer y in {1, 0, -1} has
    E(r | y) = gain y. So half of r / gain has mean F - 1/2 and variance E(r^2) / (4 gain^2) -
    (F - 1/2)^2 = F (1 - F) + (E(r^2) / gain^2 - 1) / 4. Sampling and response are one draw, and
    this is its variance. E(r^2) is 1 without ties; else it has an unbiased estimate in the share of
    a pair's reports that are no ties.

    Where ties have a parameter, an answer of three is reported with the probability q_a = gain p_a
    + c, c = (1 - gain) / 3. So of n reports (n_a - c n) / gain has the mean n p_a. Net wins and
    ties of these are the scores. Their covariance is that of answers, edge by edge, with
    q_a q_b / gain^2 in the place of p_a p_b. The difference is (c (q_a + q_b) - c^2) / gain^2, of
    which the numbers of reports have an unbiased estimate.
    """
    if names.WINS in release.parts:
        return _of_wins(release)
    counts = counts_by_cell(release)
    if names.WORTHS not in release.parts:
        return _of_net(release, counts)
    # objective perturbation: at the minimiser X' mu(X theta) + gamma theta = target - w, so this
    # sum is the noisy score, and w the noise in it
    part = release.parts[names.WORTHS]
    gamma = release.plan.number("gamma")
    pairs = counts["pairs"]
    theta = np.asarray(part.step * part.values, dtype=np.float64)
    function = ScoreFunction(release.link, likelihood=loss_bounds(release.link).answers_curve)
    linear = linear_predictor(release.design, pairs)
    score = linear.scores(pairs.count * function.mean(linear.predict(theta))) + gamma * theta
    return _equations(
        release,
        counts,
        score,
        function=function,
        item_distribution=DiscreteLaplace(release.plan.number("lambda") / SIMULATION_STEP),
        item_step=SIMULATION_STEP,
        output_variance=part.noise_variance,
    )


def _equations(
    release: Release, counts: dict[str, Any], score: FloatArray, **more: Any
) -> ScoreEquations:
    """Return score equations with what follows from the counts of comparisons and the design."""
    design = release.design
    linear = linear_predictor(release.design, counts["pairs"])
    components = Components.of(design, counts.pop("member", None))
    function = ScoreFunction(release.link, ties=design.davidson)
    facts = {"function": function, "covariates": design.covariates} | more
    m = len(design.items)
    return ScoreEquations(
        m, linear.centred(score), linear=linear, components=components, **counts, **facts
    )


def _of_wins(release: Release) -> ScoreEquations:
    """Read the wins of both items of each pair: of the pairs met, or noisy and of all."""
    design = release.design
    part = release.parts[names.WINS]
    wins: FloatArray = part.step * part.values.reshape(2, -1).astype(np.float64)
    half = 0.5 * (wins[0] - wins[1])
    if design.pairs is None:
        if not isinstance(part.distribution, DiscreteLaplace | DiscreteGaussian):
            raise ValueError("release must have discrete Laplace or Gaussian noise on its wins.")
        # a count is the sum of a pair's two cells
        counts = released_counts(design, wins.sum(axis=0), 2.0 * part.noise_variance)
        score = linear_predictor(design, counts["pairs"]).scores(half)
        noise = {"edge_distribution": part.distribution, "edge_step": part.step}
        return _equations(release, counts, score, **noise)
    linear = linear_predictor(design, design.pairs)
    counts = {"pairs": design.pairs}
    if names.GAIN in release.plan.settings:
        gain = release.plan.number(names.GAIN)
        if design.davidson:
            return _of_reported_ties(release, design.pairs, wins, gain)
        response = 0.25 * (wins.sum(axis=0) / gain**2 - design.pairs.count)
        return _equations(release, counts, linear.scores(half / gain), response=response)
    answers = None if design.covariates is None and release.link == LOGIT else (wins[0], wins[1])
    return _equations(release, counts, linear.scores(half), answers=answers)


def _of_reported_ties(
    release: Release, pairs: PairCounts, wins: FloatArray, gain: float
) -> ScoreEquations:
    """Read numbers of reports; those of neither item are ties (:func:`score_equations`)."""
    tied = pairs.count - wins.sum(axis=0)
    other = (1.0 - gain) / 3.0
    both = np.concatenate((wins[0] + wins[1], wins[0] + tied, tied + wins[1]))
    response = (other * both - other**2 * np.tile(pairs.count, 3)) / gain**2
    contrasts = item_contrasts(pairs, len(release.design.items))
    half = contrasts.scores(0.5 * (wins[0] - wins[1]) / gain)
    ties = float((tied - other * pairs.count).sum()) / gain
    score = np.append(half, _possible_ties(ties, pairs.total, half))
    return _equations(release, {"pairs": pairs}, score, response=response)


def _possible_ties(ties: float, total: float, half: FloatArray) -> float:
    """Return a number of ties, brought to where there is a fit, given half the net wins."""
    most = max(float(np.abs(half).sum()), 0.5)
    return max(min(ties, total - most), 0.5)


def _of_net(release: Release, counts: dict[str, Any]) -> ScoreEquations:
    """Read net wins by item, or with covariates by their rows and item.

    Worths alone are the model with an intercept, whose one row has weight 1. Wins, and losses with
    a minus sign, add up to the net.
    """
    covariates = release.design.covariates
    m = len(release.design.items)
    pairs = counts["pairs"]
    sides = 2 if names.SIDES in release.parts else 1
    part = release.parts[names.SIDES if sides == 2 else names.NET]
    score: FloatArray = (0.5 * part.step * part.values.astype(np.float64)).reshape(-1, m)
    # half the net wins of all groups together, whose first monomials are 1
    half = score[:: 1 if covariates is None else len(covariates.monomials)].sum(axis=0)
    random = pairs.origin == "equal"
    last = {}
    if covariates is None:
        score = half
    else:
        score = np.asarray((covariates.weights.T @ score @ item_basis(covariates, m)).ravel())
        # which pairs each group has compared is known for all groups together at most
        random = random or (covariates.cells > 1 and pairs.origin != "observed")
    if names.ORDER_EFFECT in release.parts:
        named = release.parts[names.ORDER_EFFECT]
        last = {"last_distribution": named.laplace, "last_step": 0.5 * named.step}
        score = np.append(score, last["last_step"] * named.values[0])
    if release.design.davidson:
        tied = release.parts[names.TIES]
        total = float((pairs.count - counts.get("surplus", 0.0)).sum())
        score = np.append(score, _possible_ties(float(tied.values[0]), total, half))
        last = {"last_distribution": tied.laplace}
    if not isinstance(part.distribution, NetDistribution):
        raise ValueError("release must have noise that is drawn for net wins.")
    return _equations(
        release,
        counts,
        score,
        item_distribution=part.distribution,
        item_step=0.5 * part.step,
        sides=sides,
        random_pairs=random,
        **last,
    )
