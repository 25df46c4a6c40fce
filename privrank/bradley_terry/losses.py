"""The two losses of a link, and the score functions that belong to them.

Let y be the outcome of a comparison (1, 1/2 for a tie, or 0) and t the difference of worths.

- **Matching loss:** int_0^t F - y t, with slope F - y and curvature F'. For the logit it is the
  log-loss. Net wins are sufficient for it under every link, and the slope has mean 0 at the true
  worths. The minimiser is therefore consistent. Its sandwich covariance is H^-1 J H^-1, where H and
  J are the Laplacians of F' and F (1 - F).
- **Log-loss:** -y log F(t) - (1 - y) log F(-t), with slope k(t) (F - y) and
  k = F' / (F (1 - F)). Its minimiser is the maximum likelihood estimate, with information
  i = F'^2 / (F (1 - F)). It needs the wins of every pair.

**Ties** (Davidson 1970, https://doi.org/10.1080/01621459.1970.10481082). The probabilities of win,
tie and loss are proportional to e^(d/2), e^lambda and e^(-d/2), where d is the difference of
worths. The loss is the log-loss, for which net wins and the number of ties are sufficient. Its
information is a sum over pairs of answers. Each pair contributes the product of the two
probabilities times the squared difference of the exponents. Each pair of items therefore has three
edges, at t = d (win or loss), d/2 - lambda (win or tie) and d/2 + lambda (tie or loss). The
products of probabilities are their curvatures.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from privrank.distributions.links import LOGIT, Antiderivatives, Link
from privrank.privacy.sensitivity import LOGISTIC, LossBounds
from privrank.util.arrays import FloatArray, IntArray

LOGIT_MEAN_CURVATURE = 0.18234
"""E F'(t) for logistic F and t normal(0, 2), 0.4% above the exact 0.18158.

Archived releases were planned with this number. They can be reproduced as long as it is unchanged.
"""

_NORMAL = np.polynomial.hermite_e.hermegauss(101)
"""Nodes and weights of Gauss-Hermite quadrature for the normal density, not normalised."""


@dataclass(frozen=True, slots=True)
class ScoreFunction:
    """The mean, slope and variance of scores as functions of the difference t, per comparison.

    Scores of the matching loss are half net wins, with mean F - 1/2, slope F' and variance
    F (1 - F). Scores of the log-loss are linear to first order around the true worths, where both
    their slope and their variance are the information i. They are therefore treated as sums with
    mean int_0^t i.

    Parameters
    ----------
    link : Link
        The link.
    likelihood : bool
        Whether the scores belong to the log-loss instead of the matching loss.
    ties : bool
        Whether ties have a parameter. If they do, arguments and returned values belong to the
        three edges of each pair.
    """

    link: Link
    likelihood: bool = False
    ties: bool = False

    def mean(self, t: FloatArray) -> FloatArray:
        """Return the mean score at t."""
        if self.ties:
            won, tied, lost = answer_probabilities(*worths_and_ties(t))
            # half net wins from the first edge, ties from the difference of the others
            return np.concatenate((0.5 * (won - lost), -0.5 * tied, 0.5 * tied), axis=-1)
        return _information(self.link).first(t) if self.likelihood else self.link.excess(t)

    def integral(self, t: FloatArray) -> FloatArray:
        """Return the integral of `mean` from 0; with ties, one third of it for each edge."""
        if self.ties:
            d, tie = worths_and_ties(t)
            whole = np.logaddexp(np.logaddexp(0.5 * d, -0.5 * d), tie)
            return np.concatenate((whole, whole, whole), axis=-1) / 3.0
        return _information(self.link).second(t) if self.likelihood else self.link.integral(t)

    def curvature(self, t: FloatArray) -> FloatArray:
        """Return the slope of `mean`."""
        if self.ties:
            won, tied, lost = answer_probabilities(*worths_and_ties(t))
            return np.concatenate((won * lost, won * tied, tied * lost), axis=-1)
        density = self.link.density(t)
        return np.asarray(density * self.weight(t)) if self.likelihood else density

    def variance(self, t: FloatArray) -> FloatArray:
        """Return the variance of the score of an untied answer."""
        return self.curvature(t) if self.likelihood or self.ties else self.link.exact.variance(t)

    def weight(self, t: FloatArray) -> FloatArray:
        """Return the weight of half a net win in the score: 1, or F' / (F (1 - F))."""
        if not self.likelihood:
            return np.ones_like(t)
        ratio = self.link.exact.ratio
        return np.asarray(ratio(t) + ratio(-t))

    @property
    def estimator(self) -> str:
        """The name of the estimator with these scores, without its ridge."""
        return "maximum likelihood" if self.likelihood or self.link == LOGIT else "matching loss"

    @property
    def most(self) -> float:
        """Largest score of a won comparison: the maximum of the mean score minus the slope.

        For the matching loss, with slope F - 1, this difference is the constant 1/2. For the
        log-loss it depends on t.
        """
        return _most(self.link) if self.likelihood else 0.5

    @property
    def spread(self) -> float:
        """Standard deviation of worths for planning; probabilities then vary as for the logit."""
        return 0.25 / float(self.link.density(0.0))

    @property
    def mean_curvature(self) -> float:
        """Mean curvature of a comparison over worths of this spread."""
        return LOGIT_MEAN_CURVATURE if self.link == LOGIT else _mean(self, "curvature")

    @property
    def mean_variance(self) -> float:
        """Mean variance of a comparison over worths of this spread."""
        return LOGIT_MEAN_CURVATURE if self.link == LOGIT else _mean(self, "variance")

    @property
    def mean_square(self) -> float:
        """Mean of the squared mean score of a comparison over worths of this spread."""
        return 0.25 - LOGIT_MEAN_CURVATURE if self.link == LOGIT else _mean(self, "mean", 2)


LOGISTIC_SCORE = ScoreFunction(LOGIT)


def worths_and_ties(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the differences of worths and lambda, by pair, from the t of its three edges."""
    pairs = t.shape[-1] // 3
    return t[..., :pairs], 0.5 * (t[..., 2 * pairs :] - t[..., pairs : 2 * pairs])


def edges_of(difference: FloatArray, tie: FloatArray) -> FloatArray:
    """Return the t of the three edges of each pair: the inverse of :func:`worths_and_ties`."""
    half = 0.5 * difference
    return np.concatenate((difference, half - tie, half + tie), axis=-1)


def answer_probabilities(
    difference: FloatArray, tie: FloatArray | float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the probabilities of win, tie and loss, given the difference of worths and lambda."""
    half = 0.5 * difference
    top = np.maximum(np.abs(half), tie)  # subtracted to avoid overflow
    won = np.exp(half - top)
    tied = np.exp(tie - top)
    lost = np.exp(-half - top)
    total = won + tied + lost
    return won / total, tied / total, lost / total


@cache
def _information(link: Link) -> Antiderivatives:
    # the information falls like F' and is negligible where upsets have this probability squared
    return Antiderivatives(ScoreFunction(link, likelihood=True).curvature, 1.5 * link.exact.far)


@cache
def _most(link: Link) -> float:
    t = np.linspace(-link.exact.far, link.exact.far, 4001)
    return float((_information(link).first(t) + link.exact.ratio(t)).max())


@cache
def _mean(score: ScoreFunction, name: str, power: int = 1) -> float:
    # the difference of two normal worths has twice their variance
    nodes, weights = _NORMAL
    values = getattr(score, name)(math.sqrt(2.0) * score.spread * nodes)
    return float(weights @ values**power / weights.sum())


@dataclass(frozen=True, slots=True)
class EdgeLoss:
    """A convex loss summed over pairs, each a function of the pair's difference of worths.

    Parameters
    ----------
    value : callable
        The summed loss at the differences, shape (edges,).
    slope, curvature : callable
        Its first and second derivative by each difference.
    size : ndarray, shape (edges,)
        Upper bounds of the slopes.
    accuracy : float
        Largest error of a computed slope, in unit roundoffs of its bound.
    far : float
        Difference of worths of a compared pair beyond which a fit without a ridge is treated as
        infinite.
    """

    value: Callable[[FloatArray], float] = field(repr=False)
    slope: Callable[[FloatArray], FloatArray] = field(repr=False)
    curvature: Callable[[FloatArray], FloatArray] = field(repr=False)
    size: FloatArray
    accuracy: float
    far: float

    @classmethod
    def matching(cls, score: ScoreFunction, count: FloatArray | IntArray) -> EdgeLoss:
        """Return the loss whose slopes are the mean scores of `count` comparisons."""
        exact = score.link.exact
        most = max(1.0, exact.steepest) if score.likelihood else 1.0
        return cls(
            lambda t: float(count @ score.integral(t)),
            lambda t: np.asarray(count * score.mean(t)),
            lambda t: np.asarray(count * score.curvature(t)),
            np.asarray(most * count, dtype=np.float64),
            exact.accuracy + 8.0 * score.ties,
            exact.far,
        )

    @classmethod
    def likelihood(cls, link: Link, won: FloatArray, lost: FloatArray) -> EdgeLoss:
        """Return the log-loss of wins and losses of each pair's first item, ties half of each."""
        exact = link.exact
        # if u has no bound nothing private is fitted, and sizes are used in the stopping rule only
        most = exact.steepest if math.isfinite(exact.steepest) else 1.0
        return cls(
            lambda t: -float(won @ exact.log_cdf(t) + lost @ exact.log_cdf(-t)),
            lambda t: np.asarray(lost * exact.ratio(-t) - won * exact.ratio(t)),
            lambda t: np.asarray(won * exact.curvature(t) + lost * exact.curvature(-t)),
            max(1.0, most) * (won + lost),
            # two products and a difference
            exact.accuracy + 2.0,
            exact.far,
        )

    @property
    def straight(self) -> float:
        """Difference of worths beyond which slopes are their limits.

        log F is concave, F(0) = 1/2 and F(-far) = e^-28. At 25 far the distribution has therefore
        fallen below the least tail of a link, 1e-290. Beyond it the computed slopes are constant.
        """
        return 25.0 * self.far

    def moved(self, offset: FloatArray, radius: float) -> EdgeLoss:
        """Return the loss as a function of the differences minus an offset.

        The remaining worths are bounded by `radius` times ``far``. Beyond ``straight`` the loss is
        a line. The offset is therefore clipped at a size from which no remaining difference reaches
        back into the curved part.

        Rounding the offset, the remainder and their sum t moves t by 2 u |t| and 8 u radius far.
        The curvature times |t| is below the bound of the slope. The curvature times far / 28, the
        unit of a distribution with exponential tails, is below this bound as well. The slope
        therefore moves by at most 2 + 2^8 radius unit roundoffs of its bound.
        """
        end = self.straight + 8.0 * radius * self.far
        offset = np.clip(offset, -end, end)
        return replace(
            self,
            value=lambda t: self.value(t + offset),
            slope=lambda t: self.slope(t + offset),
            curvature=lambda t: self.curvature(t + offset),
            accuracy=self.accuracy + 2.0 + 2.0**8 * radius,
        )


def loss_bounds(link: Link) -> LossBounds:
    """Return the constants of the loss that objective perturbation minimises under a link.

    This is the log-loss if A1 bounds its slope, and the matching loss if not. The slope F - y of
    the matching loss lies in [-1, 1] and changes by 1 with the answer. Its curvature F' does not
    depend on the answer.
    """
    if link == LOGIT:
        return LOGISTIC
    if math.isinf(link.kappa1):
        return LossBounds("matching loss", 1.0, 1.0, link.exact.peak)
    exact = link.exact
    return LossBounds("log-likelihood", exact.steepest, link.kappa1, link.kappa2, exact.asymmetry)
