"""A release read as noisy score equations of a model with covariates, and its fit. Sees no data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privrank.bradley_terry.errors import NoisyErrors
from privrank.bradley_terry.evidence import net_law
from privrank.bradley_terry.linear import blocks, edge_matrix, fit_linear, item_basis
from privrank.bradley_terry.losses import EdgeLoss, Reading
from privrank.hypotheses.nulltables import public_generator
from privrank.privacy.netnoise import equivalent_variance
from privrank.release.covariates import Covariates
from privrank.release.release import (
    DESIGN_EFFECT,
    GROUP_SIZES,
    MOMENTS,
    NET,
    ORDER_EFFECT,
    WINS,
    Release,
)
from privrank.release.survey import Design, PairCounts
from privrank.util.arrays import own
from privrank.util.solvers import inverse, pseudo_inverse, rank, solve, square_root

__all__ = ["Equations", "Estimate", "draw_errors", "equations", "estimate", "noisy_errors", "wald"]

FloatArray = NDArray[np.float64]

LEAST_GROUP = 0.02
"""Share of an even group's units below which a released group size says nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Equations:
    """Noisy score equations of the coefficients b, and the comparisons behind them.

    Parameters
    ----------
    covariates : Covariates
        The linear predictor; its `units` are public or released.
    target : ndarray, shape (p,)
        Right-hand side.
    matrix : ndarray, shape (edges, p)
        The matrix E of the predictor.
    pairs : PairCounts
        Comparisons per pattern and pair.
    noise : ndarray, shape (p, p)
        Covariance of the noise in the target.
    size_variance : float
        Error variance of the group sizes.
    prior : ndarray, shape (p, p)
        The ridge of penalty 1: worths of standard deviation 1 in every cell.
    ridge : ndarray, shape (p, p)
        The ridge that balances noise and shrinkage.
    information : ndarray, shape (p, p)
        Information at worths of standard deviation 1, from public numbers.
    reading : Reading
        How scores depend on worths.
    loss : EdgeLoss
        What is minimised.
    """

    covariates: Covariates
    target: FloatArray
    matrix: FloatArray
    pairs: PairCounts
    noise: FloatArray
    size_variance: float
    prior: FloatArray
    ridge: FloatArray
    information: FloatArray
    reading: Reading
    loss: EdgeLoss

    @property
    def count(self) -> FloatArray:
        """Comparisons per edge."""
        return np.asarray(self.pairs.count, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Coefficients with their errors.

    Parameters
    ----------
    first : ndarray, shape (p,)
        Ridge estimate.
    coefficients : ndarray, shape (p,)
        Reported estimate: corrected for the bias of the ridge, if that was asked for.
    sampling, privacy : ndarray, shape (p, p)
        The two parts of the covariance.
    response : ndarray, shape (p, p)
        The linear map from the target to the coefficients.
    scores : ndarray, shape (p, p)
        Sampling covariance of the target.
    design_effect : float
        Variance inflation from dependent answers of one respondent.
    converged : bool
        Whether the fits ended by the rule of :func:`privrank.util.newton.minimise`.
    """

    first: FloatArray
    coefficients: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    response: FloatArray
    scores: FloatArray
    design_effect: float
    converged: bool

    def __post_init__(self) -> None:
        """Take private, read-only copies."""
        for name in ("first", "coefficients", "sampling", "privacy", "response", "scores"):
            object.__setattr__(self, name, own(getattr(self, name), np.float64))


def _covariates(design: Design) -> Covariates:
    if design.covariates is None:
        raise ValueError("release must be of a model with covariates.")
    return design.covariates


def equations(release: Release) -> Equations:
    """Read a release as score equations.

    Row r of the released statistic, R in all, is the sum of basis times net wins; the model matrix
    is basis times weights, so that the target of column k is weights_k' statistic, on the item
    basis, halved (scores are in wins). Noise follows by the same map. The ridge is P + V J^-1 P
    for the prior P, noise V and information J of the columns: for one group it is 1 plus noise over
    information.

    The non-private run of another link than the logit holds the wins of every pair met instead:
    their log-loss takes the place of the target, and there is no noise.
    """
    design = release.design
    covariates, pairs, size_variance = _groups(release)
    m = len(design.items)
    basis = item_basis(covariates, m)
    weights = covariates.weights
    likelihood = WINS in release.parts
    reading = Reading(release.link, likelihood)
    matrix = edge_matrix(covariates, pairs, m)
    if likelihood:
        won, lost = release.parts[WINS].step * release.parts[WINS].values.reshape(2, -1)
        loss = EdgeLoss.likelihood(release.link, won, lost)
        worths, variance = np.zeros((weights.shape[1], basis.shape[1])), 0.0
    else:
        part = release.parts[NET]
        rows = 0.5 * part.step * part.values.reshape(covariates.rows, m)
        loss = EdgeLoss.matching(reading, pairs.count)
        worths = weights.T @ rows @ basis
        variance = 0.25 * part.step**2 * equivalent_variance(net_law(part), m)
    gram, items = weights.T @ weights, basis.T @ basis
    noise = np.asarray(variance * np.kron(gram, items))

    size = np.bincount(pairs.first // m, pairs.count, minlength=covariates.patterns)
    z = covariates.matrix
    curvature = reading.mean_curvature
    per_contrast = curvature * 2.0 / (m - 1)
    information = per_contrast * (z.T @ (size[:, None] * z))
    prior = np.asarray(len(gram) / covariates.rows / reading.spread**2 * gram)
    ridge = prior + variance * gram @ pseudo_inverse(information) @ prior
    prior = np.asarray(np.kron(prior, items))
    ridge = np.asarray(np.kron(0.5 * (ridge + ridge.T), items))
    target = worths.ravel()
    if covariates.ordered:
        named = release.parts[ORDER_EFFECT]
        target = np.append(target, 0.0 if likelihood else 0.5 * named.step * named.values[0])
        extra = 0.25 * named.noise_variance
        alone = 1.0 / reading.spread**2
        noise, prior = _bordered(noise, extra), _bordered(prior, alone)
        ridge = _bordered(ridge, alone * (1.0 + extra / (curvature * pairs.total)))
    return Equations(
        covariates=covariates,
        target=np.asarray(target),
        matrix=matrix,
        pairs=pairs,
        noise=noise,
        size_variance=size_variance,
        prior=prior,
        ridge=ridge,
        information=np.asarray(matrix.T @ ((curvature * pairs.count)[:, None] * matrix)),
        reading=reading,
        loss=loss,
    )


def _bordered(block: FloatArray, corner: float) -> FloatArray:
    wider = np.zeros((len(block) + 1, len(block) + 1))
    wider[:-1, :-1] = block
    wider[-1, -1] = corner
    return wider


def _groups(release: Release) -> tuple[Covariates, PairCounts, float]:
    """Return the covariates with their units, comparisons per pattern and pair, and size errors.

    Under a private design the units per cell are released; their sum is public. With noise of
    variance v and true sizes that vary by tau^2, the size closest to the truth is the mean plus
    tau^2 / (tau^2 + v) of the noisy deviation, with error variance tau^2 v / (tau^2 + v), as for
    released pair counts; tau^2 is at least that of chance. Every cell is taken to compare the pairs
    in the same proportions.
    """
    design = release.design
    covariates, pairs = _covariates(design), design.pairs
    if pairs is None:
        raise ValueError("release must hold pair counts, or its design must.")
    if pairs.origin == "observed":
        return covariates, pairs, 0.0
    cells, m = covariates.cells, len(design.items)
    size, variance = np.full(cells, design.nobs / cells), 0.0
    if cells > 1:
        part = release.parts[GROUP_SIZES]
        noisy = part.step * part.values
        away = noisy - noisy.mean()
        # units that fall into cells by chance vary at least so much
        chance = design.nobs / cells * (1.0 - 1.0 / cells)
        spread = max(chance, float(away @ away) / (cells - 1) - part.noise_variance)
        kept = spread / (spread + part.noise_variance) if part.noise_variance > 0 else 1.0
        variance = kept * part.noise_variance
        size = np.maximum(size + kept * away, LEAST_GROUP * design.nobs / cells)
        size = size * (design.nobs / size.sum())
    shift = np.repeat(np.arange(cells) * m, len(pairs.first))
    by_cell = PairCounts(
        np.tile(pairs.first, cells) + shift,
        np.tile(pairs.second, cells) + shift,
        np.repeat(size / design.nobs, len(pairs.first)) * np.tile(pairs.count, cells),
        pairs.origin,
    )
    return replace(covariates, units=size), by_cell, variance


def estimate(
    facts: Equations, release: Release, ridge: FloatArray, *, corrected: bool
) -> Estimate | None:
    """Fit the coefficients, or return None if no finite fit exists.

    The covariance is the sandwich of :func:`privrank.bradley_terry.inference.covariance`: with G_1
    and G_2 the ridge Hessians at the first and the corrected estimate, the target moves the first
    by G_1^-1 and the second by G_2^-1 (I + ridge G_1^-1).
    """
    fit = fit_linear(facts.target, facts.matrix, facts.loss, ridge)
    if not fit.finite:
        return None
    first = fit.point
    response = inverse(_hessian(facts, first) + ridge)
    b, converged = first, fit.converged
    if corrected:
        again = facts.target + ridge @ first
        last = fit_linear(again, facts.matrix, facts.loss, ridge, first)
        b, converged = last.point, converged and last.converged
        second = _hessian(facts, b) + ridge
        response = solve(second, np.eye(len(b)) + ridge @ response)
    effect = _design_effect(facts, release, b)
    scores = _scores(facts, release, b, effect)
    noise = facts.noise + _size_noise(facts, release, b)
    return Estimate(
        first=first,
        coefficients=b,
        sampling=np.asarray(response @ scores @ response.T),
        privacy=np.asarray(response @ noise @ response.T),
        response=np.asarray(response),
        scores=scores,
        design_effect=effect,
        converged=converged,
    )


def _hessian(facts: Equations, b: FloatArray) -> FloatArray:
    weight = facts.count * facts.reading.curvature(facts.matrix @ b)
    return np.asarray(facts.matrix.T @ (weight[:, None] * facts.matrix))


def _independent(facts: Equations, b: FloatArray) -> FloatArray:
    """Return the variance of each edge's score if answers are independent."""
    return np.asarray(facts.count * facts.reading.variance(facts.matrix @ b))


def _design_effect(facts: Equations, release: Release, b: FloatArray) -> float:
    """Return the variance of respondents' net wins over that of independent answers, at least 1.

    As :func:`privrank.bradley_terry.inference.design_effect`, the mean net being that of each
    pattern.
    """
    if DESIGN_EFFECT not in release.parts:
        return 1.0
    m = len(release.design.items)
    t, answers = facts.matrix @ b, Reading(release.link)
    mean = 2.0 * facts.count * answers.pull(t)
    kind = facts.covariates.kinds
    kinds = int(kind.max()) + 1
    start = kind[facts.pairs.first // m] * m
    net = np.bincount(start + facts.pairs.first % m, mean, minlength=kinds * m)
    net -= np.bincount(start + facts.pairs.second % m, mean, minlength=kinds * m)
    units = np.ones(kinds)
    units[kind] = np.maximum(facts.covariates.units, 1.0)
    explained = float(((net.reshape(-1, m) ** 2).sum(axis=1) / units).sum())
    independent = 8.0 * float(facts.count @ answers.variance(t))
    if independent <= 0:
        return 1.0
    spread = float(release.parts[DESIGN_EFFECT].values[0])
    return max(1.0, (spread - explained) / independent)


def _scores(facts: Equations, release: Release, b: FloatArray, effect: float) -> FloatArray:
    """Return the sampling covariance of the target.

    As in :mod:`privrank.bradley_terry.inference`: cluster-robust moments of a non-private run;
    independent answers times the design effect; where pair counts are expectations only, the second
    moment of randomly chosen pairs less the mean's outer product by pattern.
    """
    matrix, count = facts.matrix, facts.count
    if MOMENTS[0] in release.parts:
        return _cluster_moments(facts, release, b)
    if facts.pairs.origin == "equal" and DESIGN_EFFECT not in release.parts:
        second = matrix.T @ ((0.25 * count)[:, None] * matrix)
        pattern = facts.pairs.first // len(release.design.items)
        pulls = np.zeros((facts.covariates.patterns, matrix.shape[1]))
        np.add.at(pulls, pattern, (count * facts.reading.pull(matrix @ b))[:, None] * matrix)
        total = np.bincount(pattern, count, minlength=len(pulls))
        return np.asarray(second - pulls.T @ (pulls / np.maximum(total, 1e-12)[:, None]))
    weight = _independent(facts, b)
    return np.asarray(effect * (matrix.T @ (weight[:, None] * matrix)))


def _cluster_moments(facts: Equations, release: Release, b: FloatArray) -> FloatArray:
    """Return the sum over respondents of score times score, block by block of edges."""
    t = facts.matrix @ b
    mean = 2.0 * release.link.excess(t)
    scores = (0.5 * facts.reading.weight(t))[:, None] * facts.matrix
    total = np.zeros((len(b), len(b)))
    start = 0
    for part in blocks(release.design, facts.pairs):
        size = part.stop - part.start
        yy, yn, nn = (
            release.parts[name].values[start : start + size**2].reshape(size, size).astype(float)
            for name in MOMENTS
        )
        start += size**2
        cross = yn * mean[None, part]
        meat = yy - cross - cross.T + nn * np.outer(mean[part], mean[part])
        here = scores[part]
        total += here.T @ meat @ here
    return total


def _size_noise(facts: Equations, release: Release, b: FloatArray) -> FloatArray:
    """Return what errors of the group sizes do to the equations.

    A unit more in a cell raises the expected score by that cell's mean score; the errors have equal
    variance and sum to zero.
    """
    if facts.size_variance == 0.0:
        return np.zeros_like(facts.noise)
    pattern = facts.pairs.first // len(release.design.items)
    pulls = np.zeros((facts.covariates.patterns, len(b)))
    mean = facts.count * facts.reading.pull(facts.matrix @ b)
    np.add.at(pulls, pattern, mean[:, None] * facts.matrix)
    each = pulls / np.maximum(facts.covariates.units, 1e-12)[:, None]
    each = each - each.mean(axis=0)
    return np.asarray(facts.size_variance * (each.T @ each))


def _noise(
    facts: Equations, release: Release, draws: int, generator: np.random.Generator
) -> FloatArray:
    """Simulate the noise of the target by its exact law, errors of group sizes left out."""
    m = len(release.design.items)
    covariates = facts.covariates
    part, basis = release.parts[NET], item_basis(covariates, m)
    worths = np.zeros((draws, len(covariates.columns), basis.shape[1]))
    for row in covariates.weights:
        # one group's noise at a time, so that memory does not grow with their number
        scores = 0.5 * part.step * net_law(part).simulate((draws, m), generator) @ basis
        worths += row[None, :, None] * scores[:, None, :]
    noise = worths.reshape(draws, -1)
    if covariates.ordered:
        named = release.parts[ORDER_EFFECT]
        first = 0.5 * named.step * named.laplace.simulate((draws, 1), generator)
        noise = np.column_stack((noise, first))
    return np.asarray(noise)


def noisy_errors(facts: Equations, fitted: Estimate, release: Release, draws: int) -> NoisyErrors:
    """Return the errors of the coefficients: normal, and noise by its exact law.

    Errors of group sizes are taken as normal.
    """
    if release.source == "none":
        return NoisyErrors(fitted.sampling + fitted.privacy)
    generator = public_generator("errors of coefficients", len(fitted.coefficients))
    noise = _noise(facts, release, draws, generator) @ fitted.response.T
    rest = fitted.privacy - fitted.response @ facts.noise @ fitted.response.T
    return NoisyErrors(fitted.sampling + rest, noise)


def draw_errors(
    facts: Equations, fitted: Estimate, release: Release, draws: int, label: str
) -> FloatArray:
    """Simulate errors of the coefficients, shape (draws, p), from a public counter seed.

    Normal sampling error, and noise by its exact law, errors of group sizes as normal.
    """
    generator = public_generator(label, len(fitted.coefficients), draws)
    sized = facts.size_variance > 0
    normal = fitted.scores
    draw = generator.standard_normal((draws, len(normal))) @ square_root(normal).T
    if release.source != "none":
        draw += _noise(facts, release, draws, generator)
    out = draw @ fitted.response.T
    if sized:
        # what the privacy part holds beyond the noise of the target itself
        rest = fitted.privacy - fitted.response @ facts.noise @ fitted.response.T
        out += generator.standard_normal(out.shape) @ square_root(rest).T
    return np.asarray(out)


def wald(
    contrast: FloatArray, coefficients: FloatArray, covariance: FloatArray, errors: FloatArray
) -> tuple[float, int, FloatArray]:
    """Return the Wald statistic of contrast b = 0, its degrees of freedom, and its null table.

    Parameters
    ----------
    contrast : ndarray, shape (r, p)
        Rows to be tested jointly.
    coefficients, covariance : ndarray, shapes (p,) and (p, p)
        Estimate and its covariance.
    errors : ndarray, shape (draws, p)
        Simulated errors of the coefficients.
    """
    middle = contrast @ covariance @ contrast.T
    inverse = pseudo_inverse(middle)
    value = contrast @ coefficients
    null = errors @ contrast.T
    table = np.einsum("dr,rs,ds->d", null, inverse, null, optimize=True)
    return float(value @ inverse @ value), rank(middle), np.asarray(table)
