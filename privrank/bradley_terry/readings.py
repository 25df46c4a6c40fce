"""Releases of comparisons read as noisy score equations, one constructor per mechanism. No data.

**Ties.** Where ties have a parameter lambda, the last coefficient, its score equation is
``sum n_ij P(tie) = ties``, the number of ties T, released with noise. Noise can bring T where there
is no fit. It is cut off at 1/2 and at N - max(|net|_1, 1) / 2, of N comparisons: as many are
decided as the net wins show. That is always done, and never is another model fitted instead, which
would estimate something else whenever the noise says so.

**Wins and losses.** Where wins W and losses L are released, net = W - L, and pair counts follow
from the comparisons a = W + L of each item (:mod:`privrank.bradley_terry.paircounts`). To first
order an error in these moves expected nets f_i = sum_j n_ij g_ij, g = 2 F - 1, by
J = (diag f + n o g) (diag a + n)^-1, with o the product by entries. So noise e_W, e_L of both
brings the error (I - J) e_W - (I + J) e_L; noise e, f of net and a, where these were released by
themselves, brings e - J f. Given a, net wins have the covariance Lap(n) - J (diag a + n) J'. Where
beta is fitted a comparison adds g less what that takes, in all of these formulas.

**Groups.** An answer more in a group moves shares of all comparisons from the other groups to this
one. A comparison more of a pair adds to every group by the group's share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import eye_array, kron

from privrank.bradley_terry.components import Components
from privrank.bradley_terry.equations import ScoreEquations
from privrank.bradley_terry.linear import item_basis, item_contrasts, linear_predictor
from privrank.bradley_terry.losses import ScoreFunction, loss_bounds
from privrank.bradley_terry.noiseterm import NoiseTerm
from privrank.bradley_terry.paircounts import counts_by_cell, released_counts
from privrank.distributions.links import LOGIT
from privrank.privacy.netnoise import NetDistribution
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
    read = next(READERS[part] for part in READERS if part in release.parts)
    return read(release)


def _of_worths(release: Release) -> ScoreEquations:
    """Read the worths of objective perturbation through their equations."""
    # at the minimiser X' mu(X theta) + gamma theta = target - w, so this sum is the noisy score,
    # and w the noise in it
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

    Without covariates all `blocks` of numbers are one vector, with them each row of the model
    matrix has one.
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
    """Return score equations with what follows from the counts of comparisons and the design."""
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
    """Read numbers of reports; those of neither item are ties (:func:`score_equations`)."""
    tied = pairs.count - wins.sum(axis=0)
    other = (1.0 - gain) / 3.0
    both = np.concatenate((wins[0] + wins[1], wins[0] + tied, tied + wins[1]))
    response = (other * both - other**2 * np.tile(pairs.count, 3)) / gain**2
    half = item_contrasts(pairs, len(release.design.items)).scores(0.5 * (wins[0] - wins[1]) / gain)
    ties = float((tied - other * pairs.count).sum()) / gain
    score = np.append(half, _possible_ties(ties, pairs.total, half))
    return _equations(release, {"pairs": pairs}, score, response=response)


def _possible_ties(ties: float, total: float, half: FloatArray) -> float:
    """Return a number of ties, brought to where there is a fit, given half the net wins."""
    most = max(float(np.abs(half).sum()), 0.5)
    return max(min(ties, total - most), 0.5)


def _of_net(release: Release) -> ScoreEquations:
    """Read net wins by item, or with covariates by their rows and item.

    Worths alone are the model with an intercept, whose one row has weight 1. Wins, and losses with
    a minus sign, add up to the net.
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
    # half the net wins of all groups together, whose first monomials are 1
    half = score[:: 1 if covariates is None else len(covariates.monomials)].sum(axis=0)
    random = pairs.origin == "equal"
    noise = _by_item(release, part.distribution, part.step, part.values.size // m)
    if covariates is None:
        score = half
    else:
        score = np.asarray((covariates.weights.T @ score @ item_basis(covariates, m)).ravel())
        # which pairs each group has compared is known for all groups together at most
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
"""How releases are read that hold a part, in this order."""
