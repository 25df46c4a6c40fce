"""A slow and plain score test of worths, to check a production implementation against.

It knows the logit link only, without covariates, tie parameter, half wins or noise (epsilon
infinite), and imports nothing of the package. Everything is a sum over single answers, so there
are no tables of pairs and no orientation of pairs to get wrong: an answer between `item1` and
`item2` has the log odds d = b[item1] - b[item2], the residual 1 - F(d) if `item1` won and -F(d) if
it lost (half its net win, less its expectation), and the variance F(d) F(-d).

`python tests/bradley_terry/referencecore.py` prints the studies at the end of this file,
in about five minutes.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, gammainc, gammaincc, logit
from scipy.stats import binom, multinomial, norm, pearson3

FAR = 36.0  # how far from the estimate a p-value is followed


@dataclass(frozen=True)
class Answers:
    """Answers, one per row: `outcome` is 1 where `item1` won, -1 where `item2` did."""

    items: int
    item1: np.ndarray
    item2: np.ndarray
    outcome: np.ndarray
    respondent: np.ndarray | None = None  # None: rows are independent

    def differences(self, values):
        """Return value of item1 less that of item2, per answer; items are the last axis."""
        values = np.asarray(values, dtype=float)
        return values[..., self.item1] - values[..., self.item2]

    def residuals(self, worths):
        """Return half the net win of item1 less its expectation, without cancellation."""
        return self.outcome * expit(-self.outcome * self.differences(worths))

    def variances(self, worths):
        """Return F(1-F) of each answer, without cancellation."""
        odds = self.differences(worths)
        return expit(odds) * expit(-odds)

    def by_respondent(self, values):
        """Sum values of answers over each respondent, or leave them if rows are independent."""
        if self.respondent is None:
            return values
        _, who = np.unique(self.respondent, return_inverse=True)
        return np.bincount(who, weights=values)

    def respondents(self):
        """Return the number of respondents with an answer (or of rows)."""
        rows = np.ones(len(self.outcome))
        return len(self.by_respondent(rows))


# ---------------------------------------------------------------------------------------------
# The information
# ---------------------------------------------------------------------------------------------


def weights(data, worths):
    """Return the symmetric matrix of n_ij F(1-F): the information is its graph's Laplacian."""
    between = np.zeros((data.items, data.items))
    np.add.at(between, (data.item1, data.item2), data.variances(worths))
    return between + between.T


def information(data, worths):
    """Return the sum over answers of F(1-F) (e_i - e_j)(e_i - e_j)'."""
    between = weights(data, worths)
    return np.diag(between.sum(axis=0)) - between


def solve_information(data, worths, right):
    """Return x of mean 0 with information @ x = right, for an identified `right`.

    The pseudo-inverse, except that items are eliminated one by one with no subtraction anywhere in
    the matrix (star to mesh), so that weights of 1e-16 beside weights of 1 keep all their digits;
    `numpy.linalg.pinv` would take them for 0.
    """
    between = weights(data, worths)
    right = np.array(right, dtype=float)
    items = data.items
    degree = np.zeros(items)
    for k in range(items - 1, 0, -1):
        degree[k] = between[k, :k].sum()
        if degree[k] > 0:
            share = between[k, :k] / degree[k]
            between[:k, :k] += np.outer(between[k, :k], share)  # the diagonal is never read
            right[:k] += share * right[k]
    x = np.zeros(items)
    for k in range(1, items):
        if degree[k] > 0:
            x[k] = (right[k] + between[k, :k] @ x[:k]) / degree[k]
    return x - x.mean()


def identified(data, contrast):
    """Whether a contrast sums to 0 within each set of items linked by answers."""
    links = weights(data, np.zeros(data.items)) > 0
    count, part = connected_components(links, directed=False)
    scale = np.abs(contrast).max()
    return all(abs(np.sum(contrast[part == k])) <= 1e-12 * scale for k in range(count))


# ---------------------------------------------------------------------------------------------
# One row: the test
# ---------------------------------------------------------------------------------------------


def null_point(data, worths, contrast, value):
    """Return the fit moved along H^-1 c until c'b = value."""
    step = solve_information(data, worths, contrast)
    return worths + step * (value - contrast @ worths) / (contrast @ step)


def design_effect(data, along, worths, factor=1.0):
    """Return 1 + factor X / I at some worths, at least 1 and at most the Cauchy-Schwarz bound.

    X sums over respondents the products of two *different* answers' residuals, each times its
    weight `along` the contrast: the square of a respondent's total less the single squares.
    """
    if data.respondent is None:
        return 1.0
    variance = data.variances(worths)
    single = along * data.residuals(worths)
    different = np.sum(data.by_respondent(single) ** 2) - np.sum(single**2)
    independent = np.sum(along**2 * variance)
    ceiling = np.sum(data.by_respondent(np.abs(along) * np.sqrt(variance)) ** 2) / independent
    return min(max(1.0 + factor * different / independent, 1.0), ceiling)


def pearson3_tails(z, skewness):
    """Return P(Z > z) and P(Z < z) of a standardised Pearson type III variable.

    With g its skewness, Z = (g / 2) G - 2 / g for G gamma of shape 4 / g^2; for negative g it is
    the mirror image of the one with -g.
    """
    z, skewness = np.broadcast_arrays(np.asarray(z, float), np.asarray(skewness, float))
    g = np.abs(skewness)
    normal = g < 1e-7  # beyond rounding errors of the gamma distribution: no difference
    g = np.where(normal, 1.0, g)
    gamma = np.maximum((np.where(skewness < 0, -z, z) + 2 / g) * 2 / g, 0.0)
    above, below = gammaincc(4 / g**2, gamma), gammainc(4 / g**2, gamma)
    upper = np.where(normal, norm.sf(z), np.where(skewness < 0, below, above))
    lower = np.where(normal, norm.cdf(z), np.where(skewness < 0, above, below))
    return upper, lower


def two_sided(upper, lower):
    """Return 2 min(u, 1 - u)."""
    return np.minimum(2 * np.minimum(upper, lower), 1.0)


def largest_tail(z, skewness):
    """Return the larger of the normal's and the Pearson III's two-sided p."""
    return np.maximum(two_sided(norm.sf(z), norm.cdf(z)), two_sided(*pearson3_tails(z, skewness)))


def parts(data, worths, contrast, value):
    """Return U, I, k3 and the two design effects (at b0; at the fit) of c'b = value."""
    null = null_point(data, worths, contrast, value)
    along = data.differences(solve_information(data, null, contrast))
    variance = data.variances(null)
    score = np.sum(along * data.residuals(null))
    independent = np.sum(along**2 * variance)
    third = np.sum(along**3 * variance * np.tanh(-data.differences(null) / 2))  # 1 - 2F
    n = data.respondents()
    # One respondent alone has no n / (n - 1): whatever is positive goes to the ceiling.
    factor = n / (n - 1) if n > 1 else 1e300
    effects = (
        design_effect(data, along, null),
        design_effect(data, along, worths, factor),
    )
    return score, independent, third, effects


def pvalue(data, worths, contrast, value):
    """Return the two-sided p of c'b = value: the largest of two design effects and two tails."""
    contrast, worths = np.asarray(contrast, float), np.asarray(worths, float)
    if not identified(data, contrast):
        return 1.0
    score, independent, third, effects = parts(data, worths, contrast, value)
    return max(
        float(
            largest_tail(
                score / np.sqrt(effect * independent),
                np.sqrt(effect) * third / independent**1.5,
            )
        )
        for effect in effects
    )


def distances(count=2000):
    """Return 0 and geometrically growing distances out to FAR."""
    return np.concatenate([[0.0], np.geomspace(1e-3, FAR, count)])


def printed(data, worths, contrast, value, count=2000):
    """Return the largest p at or beyond `value`, away from the estimate."""
    contrast, worths = np.asarray(contrast, float), np.asarray(worths, float)
    estimate = contrast @ worths
    signs = [1.0] if value > estimate else [-1.0] if value < estimate else [1.0, -1.0]
    best = 0.0
    for sign in signs:
        # Out to |value| + 36, which is further than 36 from value where value has the other sign.
        reach = (abs(value) + FAR - sign * value) / FAR
        away = distances(count) * reach

        def at(distance, sign=sign):
            return pvalue(data, worths, contrast, value + sign * distance)

        found = np.array([at(distance) for distance in away])
        top = int(found.argmax())
        best = max(best, found[top])
        if 0 < top < len(away) - 1:
            around = (away[top - 1], away[top + 1])
            finer = minimize_scalar(lambda x, at=at: -at(x), bounds=around, method="bounded")
            best = max(best, -finer.fun)
    return best


def interval(data, worths, contrast, alpha, count=2000):
    """Return the hull of {p >= alpha}, infinite where p >= alpha still at distance 36."""
    contrast, worths = np.asarray(contrast, float), np.asarray(worths, float)
    estimate = contrast @ worths
    away = distances(count)
    values = estimate + np.concatenate([-away[:0:-1], away])

    def excess(value):
        return pvalue(data, worths, contrast, value) - alpha

    inside = np.flatnonzero(np.array([excess(value) for value in values]) >= 0)
    if inside.size == 0:
        raise ValueError("no value on the grid has p >= alpha")
    first, last = inside[0], inside[-1]
    lower = -np.inf if first == 0 else brentq(excess, values[first - 1], values[first])
    upper = np.inf if last == len(values) - 1 else brentq(excess, values[last], values[last + 1])
    return lower, upper


# ---------------------------------------------------------------------------------------------
# Several rows: the statistic
# ---------------------------------------------------------------------------------------------


def joint_statistic(data, worths, contrasts, values):
    """Return Q = U' I^-1 U of C b = c; rows of C may depend on each other if they agree."""
    contrasts, worths = np.atleast_2d(np.asarray(contrasts, float)), np.asarray(worths, float)
    steps = np.array([solve_information(data, worths, row) for row in contrasts])
    needed = np.asarray(values, float) - contrasts @ worths
    null = worths + _solve_scaled(contrasts @ steps.T, needed) @ steps
    along = data.differences(np.array([solve_information(data, null, row) for row in contrasts]))
    score = along @ data.residuals(null)
    independent = (along * data.variances(null)) @ along.T
    return float(score @ _solve_scaled(independent, score))


def _solve_scaled(matrix, right):
    """Solve a positive semidefinite system, its diagonal scaled to 1."""
    scale = 1 / np.sqrt(np.diag(matrix))
    inverse = np.linalg.pinv(matrix * np.outer(scale, scale), rcond=1e-12, hermitian=True)
    return scale * (inverse @ (scale * right))


# ---------------------------------------------------------------------------------------------
# A fit, and answers of two items
# ---------------------------------------------------------------------------------------------


def fit(data, ridge=1e-3):
    """Return the worths of least logistic loss plus ridge |b|^2 / 2, by damped Newton steps."""
    worths = np.zeros(data.items)

    def loss(b):
        return np.logaddexp(0, -data.outcome * data.differences(b)).sum() + ridge / 2 * (b @ b)

    for _ in range(200):
        residual = data.residuals(worths)
        gradient = (
            np.bincount(data.item1, residual, data.items)
            - np.bincount(data.item2, residual, data.items)
            - ridge * worths
        )
        step = np.linalg.solve(information(data, worths) + ridge * np.eye(data.items), gradient)
        length = 1.0
        while length > 1e-9 and loss(worths + length * step) > loss(worths):
            length /= 2
        worths = worths + length * step
        if np.abs(gradient).max() < 1e-10:
            break
    return worths - worths.mean()


def two_items(wins, losses, repeats=1, rows=False):
    """Return answers of two items: item 0 wins all `repeats` of `wins` respondents, and so on."""
    outcome = np.repeat([1, -1], [wins * repeats, losses * repeats])
    size = len(outcome)
    who = None if rows else np.repeat(np.arange(wins + losses), repeats)
    return Answers(2, np.zeros(size, int), np.ones(size, int), outcome, who)


PAIR = np.array([1.0, -1.0])


# ---------------------------------------------------------------------------------------------
# Studies: section 10 of the note
# ---------------------------------------------------------------------------------------------


def row_pvalues(wins, n, odds):
    """Return p of two items' log odds by rows, in closed form; it does not depend on the fit."""
    variance = n * expit(odds) * expit(-odds)
    z = (wins * expit(-odds) - (n - wins) * expit(odds)) / np.sqrt(variance)
    return largest_tail(z, np.tanh(-odds / 2) / np.sqrt(variance))


def row_interval(wins, n, alpha):
    """Return the hull of {p >= alpha} of two items' log odds by rows, from the closed form."""
    estimate = logit((wins + 0.1) / (n + 0.2))
    away = distances(1500)
    values = estimate + np.concatenate([-away[:0:-1], away])
    inside = np.flatnonzero(row_pvalues(wins, n, values) >= alpha)

    def excess(value):
        return float(row_pvalues(wins, n, value)) - alpha

    first, last = inside[0], inside[-1]
    lower = -np.inf if first == 0 else brentq(excess, values[first - 1], values[first])
    upper = np.inf if last == len(values) - 1 else brentq(excess, values[last], values[last + 1])
    return lower, upper


def smallest_coverage(n, alpha, between=(0.5, 0.9995)):
    """Return the infimum of the exact coverage over probabilities, and where it is reached.

    Coverage changes smoothly but where a value enters or leaves an interval: its infimum is at an
    end of an interval, taken from the side without it, or inside; a fine grid sees to the latter.
    """
    wins = np.arange(n + 1)
    ends = np.array([row_interval(x, n, alpha) for x in wins])
    odds = np.concatenate([ends.ravel() - 1e-9, ends.ravel() + 1e-9])
    odds = np.concatenate([odds, np.linspace(*logit(between), 2001)])
    odds = odds[(odds >= logit(between[0])) & (odds <= logit(between[1]))]
    inside = (ends[:, :1] <= odds) & (odds <= ends[:, 1:])
    mass = binom.pmf(wins[:, None], n, expit(odds))
    coverage = np.sum(inside * mass, axis=0)
    least = coverage.argmin()
    return coverage[least], expit(odds[least])


def rejected(data, worths, contrast, value, alpha):
    """Whether the printed p is below alpha; it is at least the p at `value`, tried first."""
    return (
        pvalue(data, worths, contrast, value) < alpha
        and printed(data, worths, contrast, value, 200) < alpha
    )


def consistent_rankings(items, n, rng):
    """Return answers of n respondents to all pairs, by a uniformly random ranking of each."""
    pairs = np.array(list(combinations(range(items), 2)))
    places = rng.permuted(np.tile(np.arange(items), (n, 1)), axis=1)
    outcome = np.where(places[:, pairs[:, 0]] < places[:, pairs[:, 1]], 1, -1)
    return Answers(
        items,
        np.tile(pairs[:, 0], n),
        np.tile(pairs[:, 1], n),
        outcome.ravel(),
        np.repeat(np.arange(n), len(pairs)),
    )


def level_of_rankings(items=4, n=8, alpha=0.05, replicates=600, seed=1):
    """Return the rejection rate of each true contrast of two items."""
    rng = np.random.default_rng(seed)
    contrasts = [np.eye(items)[i] - np.eye(items)[j] for i, j in combinations(range(items), 2)]
    total = np.zeros(len(contrasts))
    for _ in range(replicates):
        data = consistent_rankings(items, n, rng)
        worths = fit(data)
        total += [rejected(data, worths, row, 0.0, alpha) for row in contrasts]
    return total / replicates


def answers_of_two(wins, answers):
    """Return two items' answers of respondents of whom each let item 0 win `wins` of `answers`."""
    outcome = np.where(np.arange(answers) < np.asarray(wins)[:, None], 1, -1).ravel()
    zero = np.zeros(len(outcome), int)
    return Answers(2, zero, zero + 1, outcome, np.repeat(np.arange(len(wins)), answers))


def half_alike(p, n, rng, answers=3):
    """Return answers of respondents who repeat one with probability 1/2, else draw each anew."""
    alike = answers * (rng.random(n) < p)
    return answers_of_two(
        np.where(rng.random(n) < 0.5, alike, rng.binomial(answers, p, n)), answers
    )


def thrice(p, n, rng):
    """Return one answer of each respondent, given three times."""
    wins = rng.binomial(n, p)
    return two_items(wins, n - wins, repeats=3)


def level_of_two_items(draw, p, n, alpha=0.05, replicates=600, seed=1):
    """Return the rejection rate of the true log odds."""
    rng = np.random.default_rng(seed)
    count = 0
    for _ in range(replicates):
        data = draw(p, n, rng)
        count += rejected(data, fit(data), PAIR, logit(p), alpha)
    return count / replicates


def exact_level_thrice(p, n, alpha=0.05, ridge=1e-3):
    """Return the exact rejection rate where each respondent repeats one answer three times."""
    level = 0.0
    for wins in range(n + 1):
        data = two_items(wins, n - wins, repeats=3)
        level += binom.pmf(wins, n, p) * rejected(data, fit(data, ridge), PAIR, logit(p), alpha)
    return level


def exact_level_half_alike(p, n, answers=3, alpha=0.05, ridge=1e-3):
    """Return the rejection rate of `half_alike` over counts of respondents with 0, 1, ... wins.

    Counts of probability below 1e-7 are left out; their share is returned too.
    """
    wins = np.arange(answers + 1)
    shares = binom.pmf(wins, answers, p) / 2
    shares[[0, -1]] += np.array([1 - p, p]) / 2
    level, left = 0.0, 1.0
    for cuts in combinations(range(n + answers), answers):  # stars and bars
        counts = np.diff([-1, *cuts, n + answers]) - 1
        mass = multinomial.pmf(counts, n, shares)
        if mass > 1e-7:
            left -= mass
            data = answers_of_two(np.repeat(wins, counts), answers)
            level += mass * rejected(data, fit(data, ridge), PAIR, logit(p), alpha)
    return level, left


def exact_level_of_rankings(n=8, alpha=0.05):
    """Return the rejection rate of equal worths of two of four items, design effect at b0 alone.

    The two have place difference T in a ranking; U is its sum, E I = max(I, sum of T^2), and I is
    2 per respondent: all known from the two sums. Skewness is 0. The effect at the fit is hardly
    ever the larger one and can only lower the rate.
    """
    law = {(0, 0): 1.0}
    for _ in range(n):
        after = {}
        for (total, squares), mass in law.items():
            for step in (-3, -2, -1, 1, 2, 3):
                key = (total + step, squares + step**2)
                after[key] = after.get(key, 0.0) + mass * (4 - abs(step)) / 12
        law = after
    least = -norm.ppf(alpha / 2)
    return sum(
        mass
        for (total, squares), mass in law.items()
        if abs(total) > least * max(squares, 2 * n) ** 0.5
    )


def check_tails():
    """Return the largest relative error of the Pearson III tails, beside scipy.stats.pearson3."""
    worst = 0.0
    for skewness in (-3, -1, -0.3, -0.01, 0.01, 0.3, 1, 3):
        z = np.linspace(-6, 6, 241)
        mine = pearson3_tails(z, skewness)
        for got, wanted in zip(
            mine, (pearson3.sf(z, skewness), pearson3.cdf(z, skewness)), strict=True
        ):
            known = wanted > 1e-12
            worst = max(worst, np.abs(got[known] / wanted[known] - 1).max())
            worst = max(worst, np.abs(got - wanted).max())
    return worst


def main():
    """Print the studies beside what the note says."""
    print(f"Pearson III against scipy: largest error {check_tails():.1e}")
    for rows in (True, False):
        data = two_items(10, 0, rows=rows)
        worths = fit(data)
        ends = expit(interval(data, worths, PAIR, 0.05))
        print(f"10:0, rows {rows}: p {printed(data, worths, PAIR, 0.0):.5f} (.0016),", ends)
    sizes = [*range(6, 31), *range(40, 301, 20)]
    for alpha, said in ((0.05, ".905"), (0.01, ".977"), (0.0033, "level .0080")):
        found = [(*smallest_coverage(n, alpha), n) for n in sizes]
        least, p, n = min(found)
        print(f"coverage, alpha {alpha}: {least:.4f} at p {p:.4f}, n {n} ({said})")
    print("rankings, m 4, n 8:", level_of_rankings(), "(.053)", end=" ")
    print(f"exact {exact_level_of_rankings():.4f}")
    print(f"thrice: {level_of_two_items(thrice, 0.95, 20):.4f} (.020),", end=" ")
    print(f"exact {exact_level_thrice(0.95, 20):.4f}")
    print(f"half alike: {level_of_two_items(half_alike, 0.95, 50):.4f} (.081)")
    for answers in (2, 3):
        exact, left = exact_level_half_alike(0.95, 50, answers)
        print(f"half alike, {answers} answers: exact {exact:.4f}, left out {left:.1e}")


if __name__ == "__main__":
    main()
