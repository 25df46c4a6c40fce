"""Noisy score equations from releases of comparisons, with one constructor per mechanism.

This module has no access to the data.

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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import eye_array, kron

from privrank.bradley_terry.equations import ScoreEquations
from privrank.bradley_terry.linear import Components, item_basis, item_contrasts, linear_predictor
from privrank.bradley_terry.losses import ScoreFunction, loss_bounds
from privrank.bradley_terry.noiseterm import NoiseTerm
from privrank.bradley_terry.paircounts import counts_by_cell, released_counts
from privrank.distributions.links import LOGIT
from privrank.privacy.knorm import NetDistribution
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release import names
from privrank.release.release import Release
from privrank.release.survey import PairCounts
from privrank.util.arrays import FloatArray, readonly

SIMULATION_STEP = 2.0**-20
"""Lattice on which the continuous noise of objective perturbation is simulated."""


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
    read = next(READERS[part] for part in READERS if part in release.parts)
    return read(release)


def _of_worths(release: Release) -> ScoreEquations:
    """Read the worths of objective perturbation through their equations."""
    # at the minimiser X' mu(X theta) + gamma theta = target - w, so this sum is the noisy score
    # with the noise w
    counts = counts_by_cell(release)
    part = release.parts[names.WORTHS]
    gamma = release.plan.number("gamma")
    pairs = counts["pairs"]
    theta = np.asarray(part.step * part.values, dtype=np.float64)
    function = ScoreFunction(release.link, likelihood=loss_bounds(release.link).answers_curve)
    linear = linear_predictor(release.design, pairs)
    score = linear.scores(pairs.count * function.mean(linear.predict(theta))) + gamma * theta
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
        scores = kron(np.full((1, blocks), 0.5), eye_array(m), format="csr")
        return NoiseTerm(noise, step, blocks * m, scores, items=place)
    basis = 0.5 * item_basis(covariates, m).T
    return NoiseTerm(noise, step, m, basis, items=place, vectors=covariates.weights.T)


def _equations(
    release: Release,
    counts: dict[str, Any],
    score: FloatArray,
    terms: dict[str, NoiseTerm] | None = None,
    **more: Any,
) -> ScoreEquations:
    """Return score equations, with the fields that counts and design determine filled in."""
    design = release.design
    linear = linear_predictor(design, counts["pairs"])
    function = ScoreFunction(release.link, ties=design.davidson)
    facts = {"function": function, "covariates": design.covariates} | counts | more
    facts["components"] = Components.of(design, facts.pop("member", None))
    facts["terms"] = (terms or {}) | facts.get("terms", {})
    return ScoreEquations(
        len(design.items), readonly(linear.centred(score)), linear=linear, **facts
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
        scores = kron([[0.5, -0.5]], linear.matrix.T, format="csr")
        both = (kron([[1.0, 1.0]], eye_array(len(half)), format="csr"),)
        ends = np.array([pairs.first, pairs.second])
        items = np.hstack((ends, ends[::-1]))
        noise = NoiseTerm(part.distribution, part.step, wins.size, scores, both, items)
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
    counts = counts_by_cell(release)
    covariates = release.design.covariates
    m = len(release.design.items)
    pairs = counts["pairs"]
    name = names.SIDES if names.SIDES in release.parts else names.NET
    part = release.parts[name]
    if not isinstance(part.distribution, NetDistribution):
        raise ValueError("release must have noise that is drawn for net wins.")
    score: FloatArray = (0.5 * part.step * part.values.astype(np.float64)).reshape(-1, m)
    # half the net wins of all groups together; the first monomial of each group is 1
    half = score[:: 1 if covariates is None else len(covariates.monomials)].sum(axis=0)
    random = pairs.origin == "equal"
    noise = _by_item(release, part.distribution, part.step, part.values.size // m)
    if covariates is None:
        score = half
    else:
        score = np.asarray((covariates.weights.T @ score @ item_basis(covariates, m)).ravel())
        # only the pairs of all groups together are known, not the pairs of each group
        random = random or (covariates.cells > 1 and pairs.origin != "observed")
    if name == names.SIDES:  # losses have a minus sign
        signed = kron([[1.0, -1.0]], eye_array(m), format="csr")
        noise = replace(noise, counts=(*counts["matching"].by_counts, signed))
    terms = {name: noise}
    if names.ORDER_EFFECT in release.parts:
        named = release.parts[names.ORDER_EFFECT]
        score = np.append(score, 0.5 * named.step * named.values[0])
        terms[names.ORDER_EFFECT] = _last(named.laplace, named.step, 0.5, len(score))
    if release.design.davidson:
        tied = release.parts[names.TIES]
        total = float((pairs.count - counts.get("surplus", 0.0)).sum())
        score = np.append(score, _possible_ties(float(tied.values[0]), total, half))
        terms[names.TIES] = _last(tied.laplace, 1.0, 1.0, len(score))
    return _equations(release, counts, score, terms, random_pairs=random)


def _last(noise: DiscreteLaplace, step: float, weight: float, size: int) -> NoiseTerm:
    """Return noise that enters the last of the scores."""
    return NoiseTerm(noise, step, 1, weight * np.eye(size)[:, -1:])


READERS: dict[str, Callable[[Release], ScoreEquations]] = {
    names.WINS: _of_wins,
    names.WORTHS: _of_worths,
    names.SIDES: _of_net,
    names.NET: _of_net,
}
"""The reader of a release that contains a given part; the first match in this order is used."""
