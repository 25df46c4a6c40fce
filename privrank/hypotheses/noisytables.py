r"""Tests of equal distributions, and distances, from one noisy table of counts.

The released table has a row for each of G groups of public sizes n_1, ..., n_G, with N their sum,
and a column for each of k categories. Each row is the group's counts plus zero-sum Laplace noise
(:func:`privrank.plans.samples.plan_table`), so it adds up to the size of the group. Let Y be the
table, v the variance of the noise of a cell, and p_x the pooled shares: max(sum_g Y_gx, 1/2) over
all categories, divided by their sum.

**Statistics.** Three statistics detect different departures.

1. *Likelihood ratio*: 2 sum Z log(Z / E) with Z = max(Y, 1/2) and E expected from its margins. It
   detects a category that is rare in one group.
2. *Largest share*: the largest |share in g - share in all other groups| over categories and groups,
   divided by its standard error sqrt(p (1 - p) (1/n_g + 1/n_rest) + v (1/n_g^2 +
   (G - 1)/n_rest^2)). It detects a difference in one category.
3. *Sum of deviations*: for each group, sum_x |Y_gx - (n_g / N) sum_h Y_hx|, standardised by its
   mean and standard deviation over all tables compared; the statistic is the largest of these. It
   detects small differences in many categories.

**P-value.** The three statistics have a rank p-value each, and the smallest of these is ranked
again among the smallest p-values of the null tables. So no correction for three tests is needed.

**Null.** Let the groups have the same distribution. Given the pooled counts C, the table without
noise is multivariate hypergeometric, and the distribution of the noise is known. A p-value from
tables that are drawn in this way, with noise, is valid in finite samples for the true C. C is not
released. It is replaced by the sums of the noisy rows, cut at 0, scaled to N and rounded, once as
they are and once less two standard deviations 2 sqrt(G v) of their noise. The larger of the two
p-values is reported. (The sums alone give counts to categories that nobody chose, and the level
is above 0.05 if all units choose one of three categories.) Without noise both use C itself, and the
test is an exact permutation test.
With noise the level is measured: `docs/validation/closeness_tables.md`.

**Public draws.** The generator of null tables is seeded by the released table. So the p-value is a
function of the release, and two fits have different null tables: the level does not depend on a
single set of them.

**Consistency.** Let the categories, the number of groups, epsilon and the number B of null tables
be fixed, and let all groups grow in proportion. If two groups differ, the shares of the groups
converge to different limits and those of the null tables to equal ones, because the noise of a
share is of order 1 / n. So the likelihood ratio of the table grows in proportion to N, and those of
the null tables remain bounded in probability. The rank p-value of the table is then
1 / (B + 1), the smallest possible. At most three tables can have a smallest p-value of
1 / (B + 1): the largest of each statistic, if there are no ties. So the reported p-value is at most
3 / (B + 1) with probability tending to 1, and the test rejects at every level from there on.

**Distance.** Let T be half the l1 distance of the noisy shares of two groups, theta the total
variation distance of their distributions and s = 1/n_1 + 1/n_2.

- *Upper end.* theta is the difference of the probabilities of one set of categories, and either the
  set or its complement has at most k / 2 categories. T is at least the noisy difference of this
  set, which has a sampling error of variance at most s / 4, assumed normal, and the noise of at
  most k / 2 cells. The upper end is T plus the 1 - alpha / 2 quantile of this error.
- *Lower end.* T is at most theta plus half the l1 norm of the error of the difference. The lower
  end is T minus the 1 - alpha / 2 quantile of this norm, simulated from multinomial samples of the
  noisy shares and noise.

Quantiles are of 9,999 draws. :func:`privrank.hypotheses.interval.zero_rule` then makes the
interval agree with the test.
"""

import math
from dataclasses import dataclass

import numpy as np

from privrank.hypotheses.nulls import FULL, dealt_tables, public_generator, table_key
from privrank.privacy.knorm import ZeroSumLaplace
from privrank.util.arrays import AnyArray, FloatArray, IntArray

_DIGITS = 9
"""Digits to which statistics are compared: equal tables then have equal statistics."""

_TINY = 1e-9
"""Divisor where a standard error is 0 and all differences are 0."""


@dataclass(frozen=True, slots=True)
class NoisyTable:
    """A released table of counts by group and category.

    Parameters
    ----------
    counts : ndarray of int64, shape (G, k)
        Noisy counts; each row adds up to the size of its group.
    noise : ZeroSumLaplace
        Noise of each row.
    """

    counts: IntArray
    noise: ZeroSumLaplace

    def _generator(self, name: str) -> np.random.Generator:
        """Return a generator seeded by the released table, so its draws are public."""
        return public_generator(name, *self.counts.shape, table_key(self.counts.ravel().tolist()))

    @property
    def sizes(self) -> IntArray:
        """Sizes of the groups."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def shares(self) -> FloatArray:
        """Noisy shares by group and category, shape (G, k)."""
        return np.asarray(self.counts / self.sizes[:, None])

    def pvalue(self, draws: int) -> float:
        """Return the p-value of equal distributions, from `draws` null tables at each margin."""
        groups, k = self.counts.shape
        spread = 2.0 * math.sqrt(groups * self.noise.variance)
        rng = self._generator("closeness of tables")
        pvalues = []
        for less in dict.fromkeys((0.0, spread)):
            noise = self.noise.simulate(draws * groups, rng).reshape(draws, groups, k)
            null = dealt_tables(self.sizes, pooled_counts(self.counts, less), draws, rng) + noise
            tables = np.concatenate((self.counts[None], null))
            pvalues.append(rank_pvalue(table_statistics(tables, self.noise.variance)))
        return max(pvalues)

    @property
    def distance(self) -> float:
        """Total variation distance of the noisy shares of two groups."""
        return float(0.5 * np.abs(self.shares[0] - self.shares[1]).sum())

    def distance_ends(self, alpha: float) -> tuple[float, float]:
        """Return the ends of a confidence interval for the distance of two groups.

        They cover every positive distance.
        """
        k = self.counts.shape[1]
        rng = self._generator("distance of tables")
        shares = np.clip(self.shares, 0.0, None)
        shares /= shares.sum(axis=1, keepdims=True)
        half = np.zeros(FULL)
        error = np.zeros((FULL, k))
        for sign, size, share in zip((1, -1), self.sizes, shares, strict=True):
            noise = self.noise.simulate(FULL, rng)
            half += sign * noise[:, : k // 2].sum(axis=1) / size
            error += sign * ((rng.multinomial(size, share, FULL) + noise) / size - share)
        half += 0.5 * math.sqrt((1.0 / self.sizes).sum()) * rng.standard_normal(FULL)
        lower = np.quantile(0.5 * np.abs(error).sum(axis=1), 1.0 - 0.5 * alpha)
        upper = np.quantile(half, 1.0 - 0.5 * alpha)
        return max(self.distance - float(lower), 0.0), min(self.distance + float(upper), 1.0)


def pooled_counts(counts: IntArray, less: float) -> IntArray:
    """Return estimated pooled counts: whole numbers with the total of the table.

    `less` is subtracted from each category. If nothing remains, the counts are equal.
    """
    total = int(counts.sum())
    pooled = np.maximum(counts.sum(axis=0) - less, 0.0)
    pooled = pooled if pooled.sum() > 0 else np.ones(len(pooled))
    scaled = pooled * (total / pooled.sum())
    whole = np.floor(scaled + 1e-9)
    # the largest remainders are rounded up; equal ones in the order of the categories
    most = np.argsort(np.round(whole - scaled, _DIGITS), kind="stable")
    whole[most[: total - int(whole.sum())]] += 1
    return np.asarray(whole, dtype=np.int64)


def table_statistics(tables: AnyArray, variance: float) -> FloatArray:
    """Return the three statistics of noisy tables, shape (draws, 3).

    `variance` is the variance of the noise of a cell; `tables` has shape (draws, G, k).
    """
    sizes = tables[0].sum(axis=1).astype(np.float64)
    total = sizes.sum()
    pooled = tables.sum(axis=1, keepdims=True)
    # 1: likelihood ratio
    positive = np.maximum(tables, 0.5)
    rows = positive.sum(axis=2, keepdims=True)
    expected = rows * positive.sum(axis=1, keepdims=True) / rows.sum(axis=1, keepdims=True)
    ratio = 2.0 * (positive * np.log(positive / expected)).sum(axis=(1, 2))
    # 2: largest share, in standard errors
    p = np.maximum(pooled, 0.5)
    p = p / p.sum(axis=2, keepdims=True)
    own = sizes[:, None]
    others = total - own
    noise = variance * (1.0 / own**2 + (len(sizes) - 1) / others**2)
    spread = np.sqrt(p * (1.0 - p) * (1.0 / own + 1.0 / others) + noise)
    largest = np.abs(tables / own - (pooled - tables) / others) / np.maximum(spread, _TINY)
    # 3: sum of deviations, standardised over all tables
    sums = np.abs(tables - own / total * pooled).sum(axis=2)
    sums = (sums - sums.mean(axis=0)) / np.maximum(sums.std(axis=0), _TINY)
    return np.stack((ratio, largest.max(axis=(1, 2)), sums.max(axis=1)), axis=1)


def rank_pvalue(statistics: FloatArray) -> float:
    """Return the p-value of the first row: its smallest rank p-value, ranked among all rows."""
    exponent = np.abs(statistics).max(axis=0)
    rounded = np.round(statistics / np.where(exponent > 0, exponent, 1.0), _DIGITS)
    least = np.min(
        [np.searchsorted(np.sort(-column), -column, side="right") for column in rounded.T], axis=0
    )
    return float(np.mean(least <= least[0]))
