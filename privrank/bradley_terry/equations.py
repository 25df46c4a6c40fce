"""Noisy score equations of a model of paired comparisons, computed from a release.

Scores are measured in wins. Without covariates the equations are
``sum_j n_ij (F(theta_i - theta_j) - 1/2) + gamma theta_i = net_i / 2``, so noise on `net` enters
halved. With covariates row r of the released statistic is the sum of basis times net wins, and the
model matrix is basis times weights. The score of column k is therefore half of weights_k'
statistic, on the item basis. The noise is transformed by the same map. For a log-loss that is not a
matching loss the scores are another function of the worths
(:class:`privrank.bradley_terry.fit.ScoreFunction`).

**Noise.** A released number enters the scores in two ways only: directly, or through the numbers of
comparisons on which expected scores depend. To first order the noise z of a part of the release
(:class:`NoiseTerm`) moves the scores at b by M(b) z, with

    M(b) = scores - mean_scores(b)' counts,

where row c of mean_scores(b), shape (cells, p), is the expected score of one answer in cell c. The
covariance is v M M' for noise of variance v, and simulated errors are M z.

**Ties.** The tie parameter lambda, if there is one, is the last coefficient. Its score equation is
``sum n_ij P(tie) = ties``, with the number of ties T released with noise. Noise can move T to a
value for which there is no fit. T is therefore clipped to the range from 1/2 to
N - max(|net|_1, 1) / 2, where N is the number of comparisons: the net wins show that at least
|net|_1 / 2 comparisons were decided. The same model is fitted whether or not T is clipped, because
a choice of model by the noise would change the estimand.

**Wins and losses.** If wins W and losses L are released, net = W - L, and pair counts follow from
the number of comparisons a = W + L of each item (:mod:`privrank.bradley_terry.paircounts`). To
first order, an error in a moves the expected net wins f_i = sum_j n_ij g_ij, with g = 2 F - 1, by
J = (diag f + n o g) (diag a + n)^-1, where o is the entrywise product. Noise e_W and e_L of W and L
therefore causes the error (I - J) e_W - (I + J) e_L. If net and a are released directly with noise
e and f, the error is e - J f. Given a, net wins have the covariance Lap(n) - J (diag a + n) J'. If
beta is fitted, g is replaced in these formulas by g minus the effect of a comparison through beta.

**Groups.** One more answer in a group moves shares of all comparisons from the other groups to this
group. One more comparison of a pair adds to every group in proportion to the group's share.

Each mechanism has a constructor of the equations (:data:`READERS`). This module has no access to
the data.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from operator import matmul
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, kron

from privrank.bradley_terry.choices import even_scores, score_function
from privrank.bradley_terry.fit import ScoreFunction, loss_bounds
from privrank.bradley_terry.linear import LinearPredictor, item_contrasts
from privrank.bradley_terry.paircounts import (
    Matching,
    answered_share,
    pair_counts,
    released_counts,
    released_tasks,
)
from privrank.bradley_terry.predictor import (
    Components,
    item_basis,
    linear_predictor,
    with_instruments,
)
from privrank.distributions.links import LOGIT
from privrank.hypotheses.tails import public_noise, simulated
from privrank.privacy.knorm import NetDistribution
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release import names
from privrank.release.release import Release
from privrank.release.survey import (
    INTERCEPT,
    Covariates,
    PairCounts,
    equivalent_variance,
    weight_unit,
)
from privrank.release.weights import Weights
from privrank.util.arrays import (
    AnyArray,
    FloatArray,
    IntArray,
    own_arrays,
    readonly_copy,
)
from privrank.util.solvers import dense, product

SIMULATION_STEP = 2.0**-20
"""Lattice on which the continuous noise of objective perturbation is simulated."""

MIN_GROUP = 1.0
"""Least number of answers of a group; smaller released numbers are raised to it."""

Map = Any
"""A linear map for which ``rows @ map`` is defined: an array, or a sparse array."""


@dataclass(frozen=True, eq=False)
class NoiseTerm:
    """The noise of one part of a release, as independent vectors of k numbers.

    Parameters
    ----------
    distribution : Noise or None
        Distribution of a vector, in steps; None for standard normal numbers.
    step : float
        The step of the lattice.
    size : int
        The number k of entries of a vector.
    scores : Map, shape (p, k), or None
        The map from the numbers to the scores that they enter directly; None if there is none.
    counts : sequence of Map, or None
        The map from the numbers to the comparisons of the cells, shape (cells, k), as factors of a
        product. The empty sequence is the identity. None if the numbers do not enter comparisons.
    items : ndarray of int64, shape (1 or 2, l), or None
        The item of each number, the winner and loser of each cell, or the two items of each pair.
        The k numbers are k / l such blocks. Public draws are assigned to the items in the order of
        their worths.
    vectors : ndarray, shape (K, vectors)
        Weights of the vectors in each column of a model matrix; scores are ordered by column.
    additional : bool
        Whether the noise is one of the normal errors of the scores that are not simulated.
    """

    distribution: Any
    step: float
    size: int
    scores: Map = None
    counts: Sequence[Map] | None = None
    items: IntArray | None = None
    vectors: FloatArray = field(default_factory=lambda: np.ones((1, 1)))
    additional: bool = False

    def __post_init__(self) -> None:
        """Take private, read-only copies of the arrays, because results keep them."""
        own_arrays(self)

    @property
    def by_pair(self) -> bool:
        """Whether the numbers belong to pairs of items."""
        return self.items is not None and len(self.items) == 2

    @property
    def variance(self) -> float:
        """Variance of independent numbers whose differences have the variance of this noise."""
        if self.distribution is None:
            return self.step**2
        return self.step**2 * equivalent_variance(self.distribution, self.size)

    @property
    def score_variance(self) -> float:
        """Variance of the noise of each score, if the numbers enter all scores alike."""
        return self.variance * float((self.scores**2).sum() / self.scores.shape[0])

    def public(self, draws: int, place: IntArray) -> FloatArray:
        """Return public draws that do not depend on the order in which items are listed.

        They belong to the items at these places.
        """
        drawn = public_noise(self.distribution, self.size, draws, len(place) * self.by_pair)
        if self.items is None:
            return drawn
        ends = place[self.items]
        # numbers that enter scores have a sign, which depends on the order of the two items
        turned = (ends[0] > ends[-1]) & (self.scores is not None)
        rank = np.argsort(np.lexsort((ends.max(axis=0), ends.min(axis=0), turned)))
        return drawn.take(np.add.outer(np.arange(0, self.size, len(rank)), rank).ravel(), axis=1)


_NO_NOISE = NoiseTerm(DiscreteLaplace(0.0), 2.0, 1, np.full((1, 1), 0.5))


@dataclass(frozen=True, eq=False)
class ScoreEquations:
    """Noisy scores of the coefficients b, the comparisons that they are based on, and their noise.

    Without covariates the coefficients are the worths.

    Parameters
    ----------
    items : int
        Number of items m.
    score : ndarray, shape (p,)
        Noisy scores; the scores of worths are centred to sum to zero.
    pairs : PairCounts
        Comparisons per pair used in the fit, with covariates per pattern and pair.
    linear : LinearPredictor
        The map from coefficients to the predictor of each edge.
    function : ScoreFunction
        How the scores depend on the worths.
    components : Components
        The connected components of the items, and the coefficients that they identify.
    covariates : Covariates or None
        The model matrix.
    terms : mapping of str to NoiseTerm
        The noise of each part of the release that moves the scores.
    surplus : ndarray
        Number of comparisons of each cell in `pairs` minus the released number.
    group_answers : ndarray
        Released numbers of comparisons of the groups of respondents, at least one each; empty if
        none were released.
    random_pairs : bool
        Whether pair counts are expectations. The scores then vary with the pairs as well.
    matching : Matching or None
        The matching of opponents, if the pair counts follow from the counts of the items.
    response : ndarray
        Change of the variance of each edge's score due to randomised responses, which increase it,
        and ties, which lower it; may be empty.
    answers : tuple of ndarray or None
        Exact wins and losses of each edge's first item, if they are known. The coefficients are
        then fitted to them by maximum likelihood.
    weights : Weights or None
        Design weights, by which comparisons and scores are multiplied.
    """

    items: int
    score: FloatArray
    pairs: PairCounts
    linear: LinearPredictor
    function: ScoreFunction
    components: Components
    covariates: Covariates | None = None
    terms: Mapping[str, NoiseTerm] = field(default_factory=dict)
    surplus: FloatArray = field(default_factory=lambda: np.zeros(()))
    group_answers: FloatArray = field(default_factory=lambda: np.zeros(0))
    random_pairs: bool = False
    matching: Matching | None = None
    response: FloatArray = field(default_factory=lambda: np.zeros(0))
    answers: tuple[FloatArray, FloatArray] | None = None
    weights: Weights | None = None

    def __post_init__(self) -> None:
        """Take private, read-only copies of the arrays, because results keep them."""
        for record in filter(None, (self, self.linear, self.linear.worths, self.matching)):
            own_arrays(record)

    @property
    def fitted(self) -> ScoreFunction:
        """How the scores that the fit solves depend on the worths."""
        return self.function if self.answers is None else ScoreFunction(self.function.link, True)

    @property
    def tied(self) -> bool:
        """Whether the last coefficient is a tie parameter."""
        return self.function.ties

    @property
    def contests(self) -> int:
        """Number of the last coefficients that are those of contest covariates."""
        return len((self.covariates or INTERCEPT).contest)

    def by_edge(self, cells: AnyArray) -> AnyArray:
        """Return numbers by cell, or a single number, for the edges of the linear predictor."""
        return np.tile(np.broadcast_to(cells, len(self.pairs.count)), 3) if self.tied else cells

    @property
    def count(self) -> FloatArray:
        """Comparisons of each edge used in the fit."""
        return self.by_edge(np.asarray(self.pairs.count))

    @property
    def released(self) -> FloatArray:
        """Released comparisons of each cell, including numbers that noise has made negative."""
        return np.asarray(self.pairs.count - self.surplus)

    def information(self, b: FloatArray) -> FloatArray:
        """Return the derivative of the mean scores by the coefficients, shape (p, p)."""
        return self.linear.information(self.count * self.fitted.curvature(self.linear.predict(b)))

    def spread(self, t: FloatArray, function: ScoreFunction | None = None) -> FloatArray:
        """Return the variance of each edge's score of independent answers at predictors t.

        With randomised responses it is at least the bound that follows from E(y^2) >= |E(y)|.
        """
        function = function or self.function
        if self.weights is not None and self.weights.by_row:
            t = np.zeros_like(t)  # the largest variance
        exact = np.asarray(self.by_edge(self.pairs.squared) * function.variance(t))
        if not len(self.response):
            return exact
        if self.tied:
            return exact + np.maximum(self.response, 0.0)
        mean = np.abs(function.mean(t))
        return np.maximum(exact + self.response, self.pairs.count * mean * (0.5 - mean))

    def mean_scores(self, b: FloatArray) -> Map:
        """Return the expected scores of one answer of each cell, shape (cells, p).

        Three edges add up to a cell where ties have a parameter.
        """
        return self.linear.scores_by(
            self.by_edge(np.arange(len(self.pairs.count))),
            self.function.mean(self.linear.predict(b)),
        )

    @property
    def by_item(self) -> NoiseTerm:
        """The noise of the scores of items; each score contains half of one or two numbers."""
        parts = (names.NET, names.SIDES, names.WORTHS)
        return next((self.terms[part] for part in parts if part in self.terms), _NO_NOISE)

    def variance(self, part: str) -> float:
        """Return the variance of the noise of each number of a part; 0 if it is not a term."""
        return self.terms[part].variance if part in self.terms else 0.0

    @property
    def count_variance(self) -> float:
        """Error variance of each released pair count, summed over cells if there are covariates."""
        return self.variance(names.PAIR_COUNTS) + 2.0 * self.variance(names.WINS)

    def noise_covariance(
        self, b: FloatArray, terms: Sequence[NoiseTerm] | None = None
    ) -> FloatArray:
        """Return the covariance of the scores due to noise at coefficients b, shape (p, p).

        `terms` are the included terms, by default all terms that are simulated.
        """
        if terms is None:
            terms = [term for term in self.terms.values() if not term.additional]
        covariance = np.zeros((len(b), len(b)))
        for term, moved in _moves(self, b, terms):
            gram = (
                product(moved, moved.T) if isinstance(moved, np.ndarray) else dense(moved @ moved.T)
            )
            part = term.variance * np.kron(term.vectors @ term.vectors.T, gram)
            covariance[: len(part), : len(part)] += part
        return covariance

    def simulate_noise(
        self,
        b: FloatArray,
        draws: int,
        terms: Sequence[NoiseTerm],
        fit: FloatArray,
        generator: np.random.Generator,
    ) -> FloatArray:
        """Draw errors of the scores due to noise at coefficients b, shape (draws, p).

        Without covariates the draws are public and are assigned to the items in the order of the
        worths of a fit.
        """
        place = np.argsort(np.argsort(fit[: self.items], kind="stable"))
        errors = np.zeros((draws, len(b)))
        for term, moved in _moves(self, b, terms):
            lattice = term.step * moved.T
            for row in term.vectors.T:
                # one vector at a time keeps memory independent of their number
                if self.covariates is None:
                    drawn = term.public(draws, place)
                else:
                    drawn = simulated(term.distribution, (draws, term.size), generator)
                errors[:, : len(row) * lattice.shape[1]] += np.kron(row, drawn @ lattice)
        return errors

    def count_noise(self, along: FloatArray, predictors: FloatArray) -> FloatArray:
        """Return the part of variances of combinations of scores due to errors of pair counts.

        `along` are the weights of the scores by edge, shape (rows, edges).
        """
        by_edge = along * self.function.mean(predictors)
        rows = by_edge.reshape(len(along), -1, len(self.pairs.count)).sum(axis=1)
        noise = np.zeros(len(along))
        for part, term in self.terms.items():
            if term.counts is not None and part != names.GROUP_ANSWERS:
                noise += term.variance * (dense(reduce(matmul, term.counts, rows)) ** 2).sum(axis=1)
        return noise


def _moves(
    facts: ScoreEquations, b: FloatArray, terms: Sequence[NoiseTerm]
) -> Iterator[tuple[NoiseTerm, Map]]:
    """Yield terms with their M at coefficients b, shape (p, k)."""
    mean = None
    for term in terms:
        moved = term.scores
        if term.counts is not None:
            # the noise is symmetric, so the overall sign of counts alone does not matter
            mean = facts.mean_scores(b).T if mean is None else mean
            through = reduce(matmul, term.counts, mean)
            moved = through if moved is None else moved - through
        yield term, moved


def pair_noise(facts: ScoreEquations, b: FloatArray) -> FloatArray:
    """Return the covariance of the scores due to the noise of pairs of items, shape (p, p)."""
    return facts.noise_covariance(b, [term for term in facts.terms.values() if term.by_pair])


def scores_by_pattern(facts: ScoreEquations, b: FloatArray) -> FloatArray:
    """Return the expected scores of all comparisons by covariate pattern, shape (patterns, p)."""
    means = facts.count * facts.function.mean(facts.linear.predict(b))
    return dense(facts.linear.scores_by(facts.by_edge(facts.pairs.first // facts.items), means))


def released_degrees(facts: ScoreEquations) -> FloatArray:
    """Return the released number of comparisons of each item, for models without covariates."""
    return (facts.linear.worths or facts.linear).sizes(facts.released)


def degree_error(facts: ScoreEquations) -> float:
    """Return the standard deviation of the noise of these numbers; 0 if they are public."""
    pairs = (facts.items - 1) * facts.count_variance
    return float(np.sqrt(pairs if facts.matching is None else facts.matching.variance))


def released_total(facts: ScoreEquations) -> float:
    """Return the released total number of comparisons, at least one."""
    return max(float(facts.released.sum()), 1.0)


@lru_cache(maxsize=4)
def score_equations(release: Release) -> ScoreEquations:
    """Read a release as noisy score equations.

    Worths of objective perturbation are read through their score equations, which hold at the
    minimiser with the noise w on the right-hand side. The left-hand side, with public pair counts,
    is therefore half a noisy net. The log-loss of links other than the logit is read in the same
    way, because its scores are linear about the truth.

    The exact win matrix of a non-private run, which contains the compared pairs only, is fitted by
    maximum likelihood. For the logit its net wins give the same fit. The win matrix of randomised
    responses is read as its net wins divided by the gain of the response. A local report r of an
    answer y in {1, 0, -1} has E(r | y) = gain y. Half of r / gain therefore has mean F - 1/2 and
    variance E(r^2) / (4 gain^2) - (F - 1/2)^2 = F (1 - F) + (E(r^2) / gain^2 - 1) / 4. This is the
    joint variance of sampling and response. Without ties E(r^2) is 1. With ties the share of a
    pair's local reports that are not ties is an unbiased estimate of it.

    If ties have a parameter, one of three answers is reported, with the probabilities
    q_a = gain p_a + c, where c = (1 - gain) / 3. For n local reports (n_a - c n) / gain therefore
    has mean n p_a. The scores are the net wins and ties computed from these numbers. Their
    covariance is the covariance of the answers, edge by edge, with q_a q_b / gain^2 instead of
    p_a p_b. The difference is (c (q_a + q_b) - c^2) / gain^2, for which the numbers of local
    reports give an unbiased estimate.
    """
    reader = next((READERS[part] for part in READERS if part in release.parts), None)
    if reader is None:
        raise ValueError(
            f"release must be from PrivateBTL or PrivateTopK, but it is of {release.mechanism}. "
            "Use from_release of the class that made it."
        )
    return reader(release)


def _counts(release: Release) -> dict[str, Any]:
    """Return :func:`pair_counts` with the terms of their noise.

    Errors of counts are treated as normal. Noise of the items' comparisons has a term if it is
    apart from the noise of net wins.
    """
    counts = dict(pair_counts(release))
    terms = {}
    if names.PAIR_COUNTS in release.parts:
        deviation = np.sqrt(release.parts[names.PAIR_COUNTS].noise_variance)
        ends = np.array([counts["pairs"].first, counts["pairs"].second])
        terms[names.PAIR_COUNTS] = NoiseTerm(None, deviation, ends[0].size, counts=(), items=ends)
    if names.ANSWERED in release.parts:
        # one more answered task adds its share to every set, and to the totals at equal worths
        added = counts["pairs"].count[:, None] / released_tasks(release)
        even = even_scores(release.design)
        terms[names.ANSWERED] = NoiseTerm(
            release.parts[names.ANSWERED].laplace,
            1.0,
            1,
            None if isinstance(even, float) else (even.mean() - even.T) / release.design.tasks,
            counts=(added,),
        )
    if (matching := counts.get("matching")) is not None:
        terms[names.OPPONENTS] = NoiseTerm(
            matching.noise, 1.0, 1, counts=(matching.slopes[:, None],)
        )
        if names.ITEM_COUNTS in release.parts:
            terms[names.ITEM_COUNTS] = NoiseTerm(
                None, np.sqrt(matching.variance), len(matching.by_items), counts=matching.by_counts
            )
    return counts | {"terms": terms}


def _counts_by_cell(release: Release) -> dict[str, Any]:
    """Return comparisons per pattern and pair, and per cell, with their errors.

    Under a private design the comparisons per cell are released; the comparisons per pair are
    released too unless they are declared. All cells are assumed to compare the pairs in the same
    proportions.
    """
    counts = _counts(release)
    covariates = release.design.covariates
    pairs = counts["pairs"]
    if covariates is None or pairs.origin == "observed":
        return counts
    cells = covariates.cells
    answers = np.ones(cells)
    terms = {}
    if cells > 1:
        part = release.parts[names.GROUP_ANSWERS]
        answers = np.maximum(part.step * part.values, MIN_GROUP)
    # edges cell by cell; each pair's comparisons are divided by the shares of the cells
    shift = np.repeat(np.arange(cells) * len(release.design.items), len(pairs.first))
    share = answers / answers.sum()
    counts["pairs"] = PairCounts(
        np.tile(pairs.first, cells) + shift,
        np.tile(pairs.second, cells) + shift,
        np.asarray(np.kron(share, pairs.count), dtype=np.float64),
        pairs.origin,
    )
    if "surplus" in counts:
        counts["surplus"] = np.kron(share, counts["surplus"])
        terms[names.PAIR_COUNTS] = replace(
            counts["terms"][names.PAIR_COUNTS],
            counts=(kron(share[:, None], eye_array(len(pairs.count)), format="csr"),),
            additional=True,
        )
    if cells > 1:
        # one more answer in a cell moves shares of all comparisons from the other cells to it
        moves = (
            kron(np.diag(share), pairs.count[:, None], format="csr"),
            (np.diag(1.0 / share) - 1.0) / answers.sum(),
        )
        terms[names.GROUP_ANSWERS] = NoiseTerm(
            None, np.sqrt(part.noise_variance), cells, counts=moves, additional=True
        )
    return counts | {"group_answers": answers, "terms": terms}


def _of_worths(release: Release) -> ScoreEquations:
    """Read the worths of objective perturbation through their equations."""
    # at the minimiser X' mu(X theta) + gamma theta = target - w, so this sum is the noisy score
    # with the noise w
    counts = _counts_by_cell(release)
    part = release.parts[names.WORTHS]
    pairs = counts["pairs"]
    theta = np.asarray(part.step * part.values, dtype=np.float64)
    function = ScoreFunction(release.link, likelihood=loss_bounds(release.link).answers_curve)
    linear = linear_predictor(release.design, pairs)
    score = (
        linear.scores(pairs.count * function.mean(linear.predict(theta)))
        + release.plan.number("gamma") * theta
    )
    noise = DiscreteLaplace(release.plan.number("lambda") / SIMULATION_STEP)
    terms = {names.WORTHS: _by_item(release, noise, 2.0 * SIMULATION_STEP, 1)}
    return _equations(release, counts, score, terms, function=function)


def _by_item(release: Release, noise: NetDistribution, step: float, blocks: int) -> NoiseTerm:
    """Return noise of numbers of items that enter the scores halved.

    Without covariates all `blocks` of numbers form one vector. With covariates there is one vector
    for each row of the model matrix.
    """
    covariates = release.design.covariates
    m = len(release.design.items)
    place = np.arange(m)[None]
    if covariates is None:
        # half of the identity, once for each block
        size = blocks * m
        rows = np.arange(size).reshape(blocks, m).T.ravel(), np.arange(0, size + 1, blocks)
        scores = csr_array((np.full(size, 0.5), *rows), (m, size))
        return NoiseTerm(noise, step, size, scores, items=place)
    return NoiseTerm(
        noise,
        step,
        m,
        0.5 * item_basis(covariates, m).T,
        items=place,
        vectors=covariates.weights.T,
    )


def _equations(
    release: Release,
    counts: dict[str, Any],
    score: FloatArray,
    terms: dict[str, NoiseTerm] | None = None,
    **more: Any,
) -> ScoreEquations:
    """Return score equations, with the fields that counts and design determine filled in."""
    design = release.design
    linear = more.pop("linear", None) or linear_predictor(design, counts["pairs"])
    facts = {"function": score_function(design, release.link)} | counts | more
    facts["components"] = Components.of(design, facts.pop("member", None))
    facts["terms"] = (terms or {}) | facts.get("terms", {})
    return ScoreEquations(
        len(design.items),
        readonly_copy(linear.centred(score)),
        linear=linear,
        covariates=design.covariates,
        weights=design.weights,
        **facts,
    )


def _of_wins(release: Release) -> ScoreEquations:
    """Read the wins of both items of each pair: exact for compared pairs, or noisy for all."""
    design = release.design
    part = release.parts[names.WINS]
    wins: FloatArray = part.step * part.values.reshape(2, -1).astype(np.float64)
    half = 0.5 * (wins[0] - wins[1])
    if design.pairs is None:
        if not isinstance(part.distribution, DiscreteLaplace | DiscreteGaussian):
            raise ValueError("release must have discrete Laplace or Gaussian noise on its wins.")
        # a count is the sum of a pair's two cells
        counts = released_counts(design, wins.sum(axis=0), 2.0 * part.noise_variance)
        pairs = counts["pairs"]
        linear = linear_predictor(design, pairs)
        ends = np.array([pairs.first, pairs.second])
        noise = NoiseTerm(
            part.distribution,
            part.step,
            wins.size,
            kron([[0.5, -0.5]], linear.matrix.T, format="csr"),
            counts=(kron([[1.0, 1.0]], eye_array(len(half)), format="csr"),),
            items=np.hstack((ends, ends[::-1])),
        )
        return _equations(release, counts, linear.scores(half), {names.WINS: noise})
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
    """Read numbers of local reports, ties included (:func:`score_equations`)."""
    tied = pairs.count - wins.sum(axis=0)
    other = (1.0 - gain) / 3.0
    both = np.concatenate((wins[0] + wins[1], wins[0] + tied, tied + wins[1]))
    response = (other * both - other**2 * np.tile(pairs.count, 3)) / gain**2
    half = item_contrasts(pairs, len(release.design.items)).scores(0.5 * (wins[0] - wins[1]) / gain)
    ties = float((tied - other * pairs.count).sum()) / gain
    score = np.append(half, _possible_ties(ties, pairs.total, half))
    return _equations(release, {"pairs": pairs}, score, response=response)


def _possible_ties(ties: float, total: float, half: FloatArray) -> float:
    """Return the number of ties, clipped to values with a fit, given half the net wins."""
    most = max(float(np.abs(half).sum()), 0.5)
    return max(min(ties, total - most), 0.5)


def _of_net(release: Release) -> ScoreEquations:
    """Read net wins by item, or with covariates by row of the covariates and item.

    A model without covariates is the model with an intercept only, whose single row has weight 1.
    Released wins, and losses with a minus sign, add up to net wins.
    """
    counts = _counts_by_cell(release)
    covariates = release.design.covariates
    m = len(release.design.items)
    pairs = counts["pairs"]
    name = names.SIDES if names.SIDES in release.parts else names.NET
    part = release.parts[name]
    if not isinstance(part.distribution, NetDistribution):
        raise ValueError("release must have noise that is drawn for net wins.")
    step = part.step * weight_unit(release.design)
    score: FloatArray = (0.5 * step * part.values.astype(np.float64)).reshape(
        -1, m
    ) - answered_share(release) * even_scores(release.design)
    # half the net wins of all groups together; the first monomial of each group is 1
    half = score[:: 1 if covariates is None else len(covariates.monomials)].sum(axis=0)
    noise = _by_item(release, part.distribution, step, part.values.size // m)
    if covariates is None:
        score = half
    else:
        score = np.asarray((covariates.weights.T @ score @ item_basis(covariates, m)).ravel())
    if name == names.SIDES:  # losses have a minus sign
        counted = (*counts["matching"].by_counts, kron([[1.0, -1.0]], eye_array(m), format="csr"))
        noise = replace(noise, counts=counted)
    terms = {name: noise}
    linear = None
    if names.CONTEST in release.parts:
        linear, score, terms[names.CONTEST] = _with_sums(release, pairs, score)
    if release.design.davidson:
        tied = release.parts[names.TIES]
        total = float((pairs.count - counts.get("surplus", 0.0)).sum())
        score = np.append(score, _possible_ties(float(tied.values[0]), total, half))
        terms[names.TIES] = NoiseTerm(tied.laplace, 1.0, 1, np.eye(len(score))[:, -1:])
    # of several groups only the pairs of all of them together are known, not the pairs of each
    random = pairs.origin == "equal" or (
        covariates is not None and covariates.cells > 1 and pairs.origin != "observed"
    )
    return _equations(release, counts, score, terms, random_pairs=random, linear=linear)


def _with_sums(
    release: Release, pairs: PairCounts, score: FloatArray
) -> tuple[LinearPredictor, FloatArray, NoiseTerm]:
    """Return the linear predictor with instruments, and the scores with their sums and noise."""
    sums = release.parts[names.CONTEST]
    linear, moved = with_instruments(release.design, pairs)
    score = np.append(score, (moved @ sums.values)[len(score) :])
    return linear, score, NoiseTerm(sums.distribution, sums.step, len(sums.values), moved)


READERS: dict[str, Callable[[Release], ScoreEquations]] = {
    names.WINS: _of_wins,
    names.WORTHS: _of_worths,
    names.SIDES: _of_net,
    names.NET: _of_net,
}
"""The reader of a release that contains a given part; the first match in this order is used."""
