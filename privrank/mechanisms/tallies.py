"""The sensitive counts of paired comparisons, read from an encoded data set.

Exact integers, or their whole-number multiples. These values may not leave the mechanisms that add
noise to them.

If the encoder did not bound the rows, a secret, uniformly random choice of at most `max_rows` rows
of each respondent is used.

**Dependence.** Two statistics measure the dependence of the answers of one respondent.

*Pairs*: the sums over respondents of (net_i - net_j)^2, one for each pair i < j. If ties have a
parameter, the sum of T^2 is added, where T is a respondent's number of ties.

*Worst*: the largest design effect of many contrasts. The contrasts are computed from what the fit
has already released. They are therefore public, like everything that is computed from them alone.

If respondents compared different pairs, and the choice of pairs is random, nets are computed from
answers minus their expectations under the fit (:class:`Expected`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from privrank.bradley_terry import dependence, predictor
from privrank.bradley_terry.paircounts import check_connected
from privrank.encode.coding import distinct_codes
from privrank.encode.encoded import Encoded, RespondentBlock, sum_by
from privrank.privacy.draws import draw_key, draw_rows
from privrank.privacy.sensitivity import INSTRUMENT_STEPS
from privrank.release.names import (
    BY_PAIR,
    CONTEST,
    GROUP_ANSWERS,
    ITEM_COUNTS,
    MOMENTS,
    NET,
    PAIR_COUNTS,
    SIDES,
    TIE_MOMENTS,
    TIES,
    WINS,
)
from privrank.release.survey import (
    FINE,
    INTERCEPT,
    STEPS,
    Covariates,
    Design,
    PairCounts,
    squared_units,
    weight_unit,
)
from privrank.util.arrays import FloatArray, IntArray, Rng, Words, batches

_DENSE = 0.02
"""Share of pairs that respondents answer from which products of dense matrices are faster."""


def observed_pairs(encoded: Encoded) -> PairCounts:
    """Return the comparisons per pair; sensitive under a private design."""
    first, second, count, _ = encoded._pairs
    seen = count > 0
    return PairCounts(first[seen], second[seen], count[seen], "observed")


def observed_design(encoded: Encoded, *, always: bool) -> Design:
    """Return the design of a non-private run, with observed pair counts unless declared.

    Statistics by observed pair `always` need observed counts.
    """
    design = encoded.design
    if design.weights is not None:
        return design
    if design.pairs is not None and design.pairs.origin == "declared" and not always:
        return design
    pairs = observed_pairs(encoded)
    check_connected(pairs, design.items)
    if design.covariates is None:
        return replace(design, pairs=pairs)
    assert encoded._units is not None  # with covariates they are counted
    described = replace(design.covariates, units=encoded._units)
    design = replace(design, pairs=pairs, covariates=described)
    predictor.check_identified(design)
    return design


def net_wins(encoded: Encoded) -> IntArray:
    """Return wins minus losses per item, or per row of covariates and item; sensitive."""
    first, second, _, net = encoded._pairs
    facts = encoded.design.covariates or INTERCEPT
    m = len(encoded.design.items)
    kind, examples = np.unique(facts.kinds, return_index=True)
    shift = facts.kinds[first // m] * m
    first, second = (sum_by(shift + end % m, net, len(kind) * m) for end in (first, second))
    return (facts.basis[examples].T @ (first - second).reshape(-1, m)).ravel()


def item_counts(encoded: Encoded) -> IntArray:
    """Return the comparisons of each item; sensitive."""
    first, second, count, _ = encoded._pairs
    m = len(encoded.design.items)
    return sum_by(first, count, m) + sum_by(second, count, m)


def wins_and_losses(encoded: Encoded) -> IntArray:
    """Return wins of the items, and losses with a minus sign, in halves if tied; sensitive."""
    net = net_wins(encoded)
    compared = item_counts(encoded)
    doubled = np.concatenate((net + compared, net - compared))
    return doubled if encoded.design.ties else doubled // 2


def observed_wins(encoded: Encoded) -> IntArray:
    """Return wins plus ties' halves, doubled, of the first and the second item of each pair met.

    Shape (2, edges), pairs as in :func:`observed_pairs`; sensitive.
    """
    _, _, count, net = encoded._pairs
    seen = count > 0
    return np.stack((count[seen] + net[seen], count[seen] - net[seen]))


def contest_sums(encoded: Encoded) -> IntArray:
    """Return the sums of answers times the instruments of contest covariates; sensitive."""
    _, _, count, net = encoded._pairs
    return np.asarray(net[count > 0] @ predictor.instruments_of(encoded.design).steps)


def group_answers(encoded: Encoded) -> IntArray:
    """Return the comparisons of each group; sensitive."""
    facts = encoded.design.covariates or INTERCEPT
    first, _, count, _ = encoded._pairs
    return sum_by(facts.cell[first // len(encoded.design.items)], count, facts.cells)


def win_matrix(encoded: Encoded) -> IntArray:
    """Return the wins of each pair's first and second items, in halves if tied; sensitive."""
    _, _, count, net = encoded._pairs
    cells = np.zeros((2, encoded.design.sensitivity.pairs), dtype=np.int64)
    cells[:, _pair_numbers(encoded)] = count + net, count - net
    return (cells if encoded.design.ties else cells // 2).ravel()


def _pair_numbers(encoded: Encoded) -> IntArray:
    """Return the positions of pairs (i, j), i < j, among all pairs in lexicographic order."""
    m = len(encoded.design.items)
    first, second, *_ = encoded._pairs
    low = first % m
    return np.asarray(low * (2 * m - low - 1) // 2 + second % m - low - 1)


STATISTICS: dict[str, Callable[[Encoded], IntArray]] = {
    CONTEST: contest_sums,
    GROUP_ANSWERS: group_answers,
    ITEM_COUNTS: item_counts,
    NET: net_wins,
    PAIR_COUNTS: lambda encoded: sum_by(
        _pair_numbers(encoded), encoded._pairs[2], encoded.design.sensitivity.pairs
    ),
    SIDES: wins_and_losses,
    TIES: lambda encoded: encoded._ties,
    WINS: win_matrix,
}
"""The exact integer statistics of the first stage, by part (:mod:`privrank.release.survey`)."""


def same_half(encoded: Encoded, halves: IntArray) -> IntArray:
    """Return the comparisons within two halves of the items minus those between them; sensitive.

    Notes
    -----
    **Privacy.** The halves are public numbers of -1, 0 or 1 by item, which depend on the
    respondents only through earlier releases. Given the halves, whatever these are, the sensitivity
    is :attr:`privrank.privacy.sensitivity.UnitSensitivity.opponents_l1`.
    """
    first, second, count, _ = encoded._pairs
    return np.array([count @ (halves[first] * halves[second])])


def observed_moments(encoded: Encoded) -> dict[str, IntArray]:
    """Return the non-private second moments over respondents of answers and counts by pair.

    With covariates, one block of pairs for each combination of their values, one after the other.
    """
    runs = predictor.edge_runs(encoded.design, observed_pairs(encoded))
    codes = _codes(encoded)[encoded._pairs[2] > 0]
    ties = encoded.design.davidson
    moments = encoded._parts.total(partial(_second_moments, codes=codes, runs=runs, ties=ties))
    answers = encoded._parts.total(partial(_answers_by_pair, codes=codes))
    return dict(zip(MOMENTS + TIE_MOMENTS * ties, moments, strict=True)) | {BY_PAIR: answers}


def _answers_by_pair(part: RespondentBlock, codes: IntArray) -> IntArray:
    """Return wins minus losses of one part by compared pair, then answers other than ties.

    Answers are multiplied by the squares of design weights, as in their variances.
    """
    place = np.searchsorted(codes, part.pair)
    weight = part.weight[part.person].astype(np.int64)
    both = (weight * part.net, weight * (part.count - part.tied))
    return np.concatenate([sum_by(place, values, len(codes)) for values in both])


def _second_moments(
    part: RespondentBlock, codes: IntArray, runs: Sequence[slice], *, ties: bool
) -> IntArray:
    """Return the moments of one part, given the compared pairs and the blocks they belong to."""
    place = part.person, np.searchsorted(codes, part.pair)
    shape = len(part.name), len(codes)
    answers, counts = (csr_array((x, place), shape=shape) for x in (part.net, part.count))
    both = [(answers, answers), (answers, counts), (counts, counts)]
    if ties:
        tied = csr_array((part.tied, place), shape=shape)
        both += [(tied, answers), (tied, counts), (tied, tied)]
    return np.stack(
        [np.concatenate([_product(a[:, run], b[:, run]).ravel() for run in runs]) for a, b in both]
    )


def _product(a: Any, b: Any) -> IntArray:
    """Return the exact product a'b of sparse matrices of whole numbers far below 2^53.

    Both have their entries at the same places.
    """
    if a.nnz < _DENSE * a.shape[0] * a.shape[1]:
        return np.asarray((a.T @ b).toarray())
    return np.asarray(np.rint(a.toarray().T.astype(float) @ b.toarray()).astype(np.int64))


def _codes(encoded: Encoded) -> IntArray:
    """Return numbers of compared pairs (:class:`privrank.encode.encoded.RespondentBlock`)."""
    m = len(encoded.design.items)
    return encoded._pairs[0] * m + encoded._pairs[1] % m


def sample_rows(encoded: Encoded, rng: Rng) -> Encoded:
    """Return the counts of the rows that are kept; data with no rows to draw from are unchanged.

    For every respondent with more than `max_rows` answers, `max_rows` of them are drawn, with equal
    probability for all sets. If pairs are declared distinct, one answer of each pair is drawn
    first. Draws are independent between respondents, no respondent is lost, and only the counts of
    the draw are kept.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one respondent with all their rows, however many. Let
    M be a mechanism with a guarantee for respondents who keep both bounds, at most `max_rows` rows
    and, where declared, distinct pairs; that is what every plan is calibrated to. Let k be the key
    of this fit. Whatever it is, and whatever its hash does, the kept rows of a respondent are a
    function of k, their own rows and their name (:func:`privrank.privacy.draws.draw_rows`). They
    are no function of other respondents, the order of rows, the part that they are in or the number
    of parts. So if one is replaced, even by one of another name or part, the rows kept under k are
    neighbours that keep the bounds. Hence P(M in S | k) <= exp(epsilon) P(M' in S | k) + delta. The
    distribution of k does not depend on the data, so the mean over k has the same bound, and the
    guarantee is unchanged. Zero-concentrated privacy is unchanged as well, because the Renyi
    divergence of two mixtures with equal weights is at most the largest divergence of their parts.
    A second stage that measures the same kept rows is part of M.
    The draw is secret: knowledge of which rows are kept would be a further output. The number of
    respondents does not change. The proof does not require hashes without collisions: respondents
    are distinguished by their names, and two respondents with equal hashes remain two.

    **Statistic.** No respondent has more weight than `max_rows` answers. All answers of a
    respondent have equal weight; if pairs are declared distinct, all their pairs have equal weight.
    """
    if not encoded._loose:
        return encoded
    design = encoded.design
    parts = encoded._parts.then(
        partial(_bounded, most=design.max_rows, distinct=design.distinct_pairs, key=draw_key(rng))
    )
    count, net = parts.total(partial(_counted, codes=_codes(encoded)))
    return Encoded(
        design,
        (*encoded._pairs[:2], count, net),
        parts,
        encoded._units,
        _ties=parts.total(lambda part: part.tied.sum(keepdims=True)),
    )


def _bounded(part: RespondentBlock, most: int, distinct: bool, key: Words) -> RespondentBlock:
    """Return a part with the rows that are kept."""
    names = part.name[part.person]
    size = part.count
    # first one answer of each pair, then as many as the bound allows of what is left
    if distinct:
        # a number for the respondent and the pair of each entry, in ascending order
        steps = (np.diff(column, prepend=-1) != 0 for column in (part.person, part.pair))
        cell = np.cumsum(np.logical_or(*steps))
        size = draw_rows(cell, size, 1, (names, part.pair), key)
    size = draw_rows(part.person, size, most, (names, np.full_like(names, 2**64 - 1)), key)
    some = np.flatnonzero(size)
    return RespondentBlock(
        part.name,
        part.person[some],
        part.pair[some],
        part.sign[some],
        size[some].astype(part.size.dtype),
        part.weight,
    )


def _counted(part: RespondentBlock, codes: IntArray) -> IntArray:
    """Return the comparisons, and wins minus losses of the first item, by pair."""
    met, place = distinct_codes(part.pair, int(codes[-1]) + 1)
    counts = np.zeros((2, len(codes)), dtype=np.int64)
    counts[:, np.searchsorted(codes, met)] = [
        sum_by(place, values, len(met)) for values in (part.count, part.net)
    ]
    return counts


_FINEST = 10
"""Weights of items are whole numbers of up to this many bits."""

_MAX_SORTED = 50
"""Items up to which the answers that reach farthest along a contrast are found one by one."""

_MAX_WEIGHTS = 2**20
"""Number of weights up to which these answers are found one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """Expected answers by pair, in whole numbers.

    Parameters
    ----------
    answers : ndarray of int64, shape (m, m)
        Expected outcome of each item against each other, in steps; zero if nothing is subtracted.
    steps : int
        Steps in a decided answer.
    ties : ndarray of int64, shape (m, m), or None
        Expected ties of each two items, in steps, if ties have a parameter.
    """

    answers: IntArray
    steps: int = 1
    ties: IntArray | None = None

    @property
    def farthest(self) -> int:
        """Largest distance of an answer from its expectation, in steps."""
        return self.steps + int(np.abs(self.answers).max())


def round_expected(
    design: Design, expected: FloatArray | None, ties: FloatArray | None = None
) -> Expected:
    """Round expected answers and ties to whole numbers, as fine as exact sums of squares permit.

    Expected answers are zero if nothing is subtracted.
    """
    none = np.zeros((len(design.items), len(design.items)), dtype=np.int64)
    if expected is None or not np.isfinite(expected).all():
        return Expected(none, ties=none if design.davidson else None)
    room = 2.0**23 / (np.sqrt(design.nobs) * design.sensitivity.effective_rows)
    steps = 2 ** int(np.clip(np.log2(room), 0, _FINEST - 3))
    tied = None if ties is None else np.rint(steps * ties).astype(np.int64)
    return Expected(np.rint(steps * expected).astype(np.int64), steps, tied)


@dataclass(frozen=True, slots=True, eq=False)
class Contrasts:
    """Contrasts in whole numbers, with the scales and bounds of their statistic.

    Parameters
    ----------
    weights : ndarray of int64, shape (contrasts, kinds, m + more)
        Weights of the net wins of the items, and of ties or the sums of contest covariates, by kind
        of respondent.
    farthest : ndarray of int64, shape (contrasts,)
        Bound of the size of one respondent's weighted sum.
    scale : list of int
        Divisor of the sum of squares, at least the square of `farthest`.
    centre : list of int
        Number that is subtracted from the sum of squares.
    most : float
        Design effect that corresponds to STEPS per respondent, at least the largest possible one.
    ceiling : float
        Largest design effect that answers of respondents with these covariates can have. For sums
        of r answers it is at most r (Cauchy-Schwarz inequality), whichever pairs they compare.
    tie_floor : float
        Ratio of the variance by which the sum of the tie parameter is divided to its variance under
        independent answers; 1 without ties.
    """

    weights: IntArray
    farthest: IntArray
    scale: list[int]
    centre: list[int]
    most: float
    ceiling: float
    tie_floor: float = 1.0


def round_directions(
    design: Design, directions: dependence.Directions, expected: Expected
) -> Contrasts:
    """Round contrasts to whole numbers, and bound the contribution of one respondent to each.

    One respondent answers at most `rows` pairs. An answer adds its contrast's difference of the two
    items, with either sign, times the largest distance of the answer from its expectation. The sum
    is at most the sum of the `rows` largest of these, or `rows` times the largest if pairs may
    repeat. A design weight multiplies the sum, so the bound is multiplied by the largest weight.

    If ties have a parameter and are rare, the sum for this parameter can be much larger, relative
    to its value under independent answers, than the sum of any contrast of worths. The noise would
    then hide the contrasts of worths. Therefore its variance is increased until its sum is
    relatively no larger than theirs.
    """
    # as fine as sums of squares over all respondents keep to 60 bits
    rows = design.sensitivity.effective_rows
    room = 2**60 / max(squared_units(design), 1)
    widest = 4.0 + INSTRUMENT_STEPS * len((design.covariates or INTERCEPT).contest)
    bits = max(4, min(_FINEST, int(np.log2(np.sqrt(room) / (widest * rows * expected.farthest)))))
    parts = directions.weights, directions.independent, directions.explained
    usable = all(np.isfinite(part).all() for part in parts) and bool(directions.weights.any())
    weights = directions.weights if usable else np.zeros_like(directions.weights)
    size = np.abs(weights).max(axis=(1, 2))
    factor = np.where(size > 0, 2.0**bits / np.where(size > 0, size, 1.0), 0.0)
    whole = np.rint(factor[:, None, None] * weights).astype(np.int64)
    reached = design.sensitivity.weight * _max_deviation(design, whole, expected)
    farthest = reached.max(axis=1)
    # the net wins of respondents are in steps of their weights
    factor = factor * expected.steps / weight_unit(design)
    # the value of Q under independent answers, in the units of whole weights; never below 1e-6 of
    # the largest square, because a scale must exist
    squares = [int(far) ** 2 for far in farthest]
    units = np.where(usable, directions.independent, 0.0)
    units = np.maximum(factor**2 * units / design.nobs, 1e-12)
    units = np.maximum(units, [1e-6 * square for square in squares])
    floor = 1.0
    if expected.ties is not None and len(squares) > 1:
        others = max(square / unit for square, unit in zip(squares[:-1], units[:-1], strict=True))
        floor = max(squares[-1] / max(others, 1e-6) / units[-1], 1.0)
        units[-1] *= floor
    # the largest sum of squares over respondents of these kinds
    together = (reached.astype(float) ** 2 @ directions.units) / design.nobs
    ceiling = min(float((together / units).max()), float(rows))
    most = max(square / unit for square, unit in zip(squares, units, strict=True))
    scale = [
        max(square, int(np.ceil(unit * most)), 1)
        for square, unit in zip(squares, units, strict=True)
    ]
    centre = [round(number) for number in factor**2 * np.where(usable, directions.explained, 0.0)]
    most, ceiling = (most, min(most, ceiling)) if usable else (np.nan, np.nan)
    return Contrasts(whole, farthest, scale, centre, most, ceiling, floor)


def _max_deviation(design: Design, weights: IntArray, expected: Expected) -> IntArray:
    """Return the largest contribution of a respondent by contrast and kind, or a bound of it."""
    if expected.ties is not None:
        return _farthest_with_ties(design, weights, expected, expected.ties)
    m = len(design.items)
    items = weights[:, :, :m]
    # an answer adds at most the largest instrument times each weight
    named = INSTRUMENT_STEPS * np.abs(weights[:, :, m:]).sum(axis=2)
    rows = design.sensitivity.effective_rows
    widest = expected.farthest * (items.max(axis=2) - items.min(axis=2) + named)
    if not design.distinct_pairs:
        return np.asarray(rows * widest)
    if m > _MAX_SORTED or weights.size > _MAX_WEIGHTS:
        # the sum of all differences, by how often each weight is the larger one and the smaller
        every = (
            np.sort(items, axis=2) @ (2 * np.arange(m) - (m - 1)) + design.sensitivity.pairs * named
        )
        return np.asarray(np.minimum(expected.farthest * every, rows * widest))
    # one by one, as among answers that may be ties, with no weight on a tie
    untied = np.concatenate((items, np.zeros_like(items[:, :, :1])), axis=2)
    reached = _farthest_with_ties(design, untied, expected, np.zeros_like(expected.answers))
    return np.asarray(reached + rows * expected.farthest * named)


def _farthest_with_ties(
    design: Design, weights: IntArray, expected: Expected, ties: IntArray
) -> IntArray:
    """Return the largest contribution of answers that may be ties, by contrast and kind.

    **Privacy.** An answer to the pair (i, j) adds, in steps s, either s (a_i - a_j) or its
    negative, or s a_T if it is a tie, minus its expectation e (a_i - a_j) + p a_T. Its contribution
    is therefore at most the largest of these three in absolute value, which is
    max(|a_i - a_j|, |a_T|) if nothing is subtracted. A respondent adds at most the `rows` largest
    of these, or `rows` times the largest if pairs may repeat.
    """
    first, second = np.triu_indices(len(ties), 1)
    rows = design.sensitivity.effective_rows
    out = np.zeros(weights.shape[:2], dtype=np.int64)
    mean = expected.answers[first, second]
    tied = ties[first, second]
    steps = expected.steps
    for block in batches(len(weights), 3 * len(first) * weights.shape[1]):
        here = weights[block]
        apart = here[:, :, first] - here[:, :, second]
        tie = here[:, :, -1:]
        taken = mean * apart + tied * tie
        reach = np.maximum(steps * np.abs(apart) + np.abs(taken), np.abs(steps * tie - taken))
        if design.distinct_pairs:
            reach = np.sort(reach, axis=2)[:, :, len(first) - min(rows, len(first)) :]
            out[block] = reach.sum(axis=2)
        else:
            out[block] = rows * reach.max(axis=2)
    return out


def largest_design_effect(encoded: Encoded, contrasts: Contrasts, expected: Expected) -> int:
    """Return the largest design effect of the contrasts, in lattice steps; sensitive.

    Notes
    -----
    **Statistic.** Y = max_p floor(STEPS (Q_p - centre_p) / scale_p), or 0 if that is less, where
    Q_p is the sum over respondents of the square of weights_p'net. **Privacy.** Given the
    contrasts, replacing one respondent moves Q_p by at most farthest_p^2, the largest possible
    square, because squares are not negative. This is at most scale_p, so the fraction moves by at
    most STEPS, a whole number, and so do its floor and the largest of all floors. Hence the
    sensitivity is STEPS, whatever was released before. Contrasts, bounds, centres and expected
    answers depend on the respondents only through earlier releases.
    """
    total = np.zeros(len(contrasts.scale), dtype=np.int64)
    for kind, moments in enumerate(_moments(encoded, expected)):
        weights = contrasts.weights[:, kind]
        # whole numbers below 2^53 are exact in floats, whose products are fast
        largest = np.abs(weights).sum(axis=1).max() * int(np.abs(moments).max())
        number = np.float64 if largest < 2**53 else np.int64
        products = weights.astype(number) @ moments.astype(number)
        total += (products.astype(np.int64) * weights).sum(axis=1)
    sides = zip(total.tolist(), contrasts.centre, contrasts.scale, strict=True)
    return max(0, *(STEPS * (square - centre) // scale for square, centre, scale in sides))


def pair_moments(encoded: Encoded, expected: Expected | None = None) -> IntArray:
    """Return the sums over respondents of (net_i - net_j)^2, for all pairs i < j; sensitive.

    If ties have a parameter, the sum of squared numbers of ties is the last one. If expected
    answers are subtracted, the unit is 1 / FINE of the square of the largest distance of an answer
    from its expectation, and sums are rounded down.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one respondent. All sums are one release, with the l1
    sensitivity of :meth:`privrank.privacy.sensitivity.UnitSensitivity.moments_l1`. Expected answers
    and ties depend on the respondents only through earlier releases. After they are subtracted, an
    answer is at most c = `farthest` steps in either direction, and adds to ties at most as many
    steps as a decided answer has. So sums of squares move by at most c^2 times the sensitivity with
    ``expected=True``. Multiplied by FINE / c^2 they move by at most FINE times this sensitivity;
    rounding down adds less than 1 for each number, and the sum is whole.
    """
    moments = _moments(encoded, expected or round_expected(encoded.design, None)).sum(axis=0)
    first, second = np.triu_indices(len(encoded.design.items), 1)
    square = np.diag(moments)
    total = np.asarray(square[first] + square[second] - 2 * moments[first, second])
    if encoded.design.davidson:
        total = np.append(total, square[-1])
    if expected is None:
        return total
    unit = expected.farthest**2
    return np.array([FINE * number // unit for number in total.tolist()], dtype=np.int64)


def _moments(encoded: Encoded, expected: Expected) -> IntArray:
    """Return the sums over respondents of net times net, shape (kinds, m + q, m + q); sensitive.

    The unit is a step of the expected answers, which are subtracted. The last q entries of a
    respondent's net are sums of answers times instruments, or ties, if the model has them.
    """
    design = encoded.design
    facts = design.covariates or INTERCEPT
    beside = None
    if facts.contest:
        codes = _codes(encoded)[encoded._pairs[2] > 0]
        beside = codes, predictor.instruments_of(design).steps
    return encoded._parts.total(
        partial(_moments_of, m=len(design.items), facts=facts, expected=expected, beside=beside)
    )


def _moments_of(
    part: RespondentBlock,
    m: int,
    facts: Covariates,
    expected: Expected,
    beside: tuple[IntArray, IntArray] | None,
) -> IntArray:
    """Return the sums of one part, given the numbers of pairs and their instruments, if any."""
    pattern, place = np.divmod(part.pair.astype(np.int64), m * m)
    first, second = np.divmod(place, m)
    net = expected.steps * part.net - expected.answers[first, second] * part.count
    kind = facts.kinds[pattern]
    named = []
    if beside is not None:
        codes, steps = beside
        named = [*(steps[np.searchsorted(codes, part.pair)].T * net)]
    if expected.ties is not None:
        named = [expected.steps * part.tied - expected.ties[first, second] * part.count]
    kinds = int(facts.kinds.max()) + 1
    size = m + len(named)
    out = np.zeros((kinds, size, size), dtype=np.int64)
    # nets of the respondents of one kind after another, and their products
    rows = np.tile(part.person, 2 + len(named))
    columns = np.concatenate(
        (first, second, *(np.full(len(net), m + k) for k in range(len(named))))
    )
    values = np.concatenate((net, -net, *named))
    for index in range(kinds):
        here = np.tile(kind == index, 2 + len(named))
        nets = csr_array((values[here], (rows[here], columns[here])), shape=(len(part.name), size))
        out[index] = _product(nets, nets)
    return out
