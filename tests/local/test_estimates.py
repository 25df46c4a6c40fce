"""Estimates from reports: unbiased by exact expectation, and covariances by full enumeration."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import binom, t

import privrank as pr
from privrank.consensus.released import statements_of
from privrank.consensus.statements import PairVotes, RandomReports
from privrank.local import CapBorda, Comparisons, DuchiBall, PairBits, RandomPairs, SubRanking
from privrank.local.estimates import Votes, release_consensus
from privrank.local.tally import Tally, fixed_point
from privrank.results.claims import CLAIMS

ITEMS = list("abcd")
ORDERS = np.array(list(permutations(range(1, 5))))
# a distribution of rankings that no scores describe, with a cycle of majorities
WEIGHTS = np.array([7, 1, 2, 9, 3, 1, 1, 4, 2, 8, 1, 1, 6, 2, 1, 5, 1, 1, 2, 1, 9, 1, 3, 1])

ASKING = [
    SubRanking(ITEMS, 0.5, size=2),
    SubRanking(ITEMS, 1.0, size=3),
    SubRanking(ITEMS, 3.0, size=4),
    RandomPairs(ITEMS, 1.0),
    RandomPairs(ITEMS, 2.0, pairs=3),
    RandomPairs(ITEMS, 4.0, pairs=2, method="laplace"),
    Comparisons(ITEMS, 1.5),
    PairBits(ITEMS, 0.7, pairing="private"),
]
NAMES = [f"{p.kind} {p.width} {p.digits} {p.epsilon}" for p in ASKING]


def true_pairs(weights=WEIGHTS):
    before = ORDERS[:, :, None] < ORDERS[:, None, :]
    return np.tensordot(weights / weights.sum(), before, 1)


def every_cell(protocol, counts=None):
    """A tally with each assignment and answer, so often as `counts` says or once."""
    shape = (protocol.assignments, protocol.answers)
    assignment, answer = np.indices(shape)
    counts = np.ones(shape) if counts is None else counts
    values = (part.ravel() for part in (assignment, answer, counts))
    return Tally(protocol, *values, {}, None, None)


def probabilities(protocol, weights=WEIGHTS, orders=ORDERS):
    """Exact probabilities of the answers to each assignment, rankings drawn by their weights."""
    response, table = protocol.response, []
    for assignment in range(protocol.assignments):
        row = [Fraction(0)] * protocol.answers
        asked = np.full(len(orders), assignment)
        favoured = protocol.favoured_answers(orders, asked)[:, :, 0]
        digits = protocol.unpacked(np.arange(protocol.answers))
        for truth, weight in zip(favoured, weights.tolist(), strict=True):
            for answer, votes in enumerate(digits):
                each = Fraction(1)
                for a, b in zip(votes.tolist(), truth.tolist(), strict=True):
                    top = response.favoured_weight if a == b else response.other_weight
                    each *= Fraction(top, response.total)
                row[answer] += each * Fraction(weight, int(weights.sum()))
        table.append(row)
    return table


def parted(tally, rows):
    """Some of the combinations of a tally, without ids."""
    cells = (values[rows] for values in (tally.assignment, tally.answer, tally.count))
    return Tally(tally.protocol, *cells, {}, None, None)


@pytest.mark.parametrize("protocol", ASKING, ids=NAMES)
def test_votes_are_unbiased_by_exact_expectation(protocol):
    votes = Votes.of(every_cell(protocol), protocol)
    shape = (protocol.assignments, protocol.answers, -1)
    first, second, vote = (part.reshape(shape) for part in (votes.first, votes.second, votes.vote))
    response = protocol.response
    gain = Fraction(response.favoured_weight - response.other_weight, response.total)
    pairs = np.tensordot(WEIGHTS, 2 * (ORDERS[:, :, None] < ORDERS[:, None, :]) - 1, 1)
    for assignment, row in enumerate(probabilities(protocol)):
        assert sum(row) == 1
        for k in range(vote.shape[2]):
            i, j = first[assignment, 0, k], second[assignment, 0, k]
            assert i < j
            expected = sum(p * int(v) for p, v in zip(row, vote[assignment, :, k], strict=True))
            assert expected == gain * Fraction(int(pairs[i, j]), int(WEIGHTS.sum()))
    assert float(gain) == protocol.gain


@pytest.mark.parametrize("protocol", ASKING, ids=NAMES)
@pytest.mark.parametrize("uneven", [False, True])
def test_expected_counts_give_the_truth_and_the_exact_covariance(protocol, uneven):
    rng = np.random.default_rng(4)
    n = 10**8 * (rng.integers(1, 20, protocol.assignments) if uneven else 5 + 0 * np.arange(99))
    likely = np.array([[float(p) for p in row] for row in probabilities(protocol)])
    counts = np.rint(likely * n[: len(likely), None]).astype(np.int64)
    stated = statements_of(release_consensus(every_cell(protocol, counts)))
    true = true_pairs() + 0.5 * np.eye(4)
    np.testing.assert_allclose(stated.fractions, true, atol=1e-7)
    np.testing.assert_allclose(stated.scores, true.sum(axis=1) - 0.5, atol=1e-6)

    # the covariance between reports of what they add to the scores, by enumeration
    votes = Votes.of(every_cell(protocol), protocol)
    shape = (protocol.assignments, protocol.answers, -1)
    first, second, vote = (part.reshape(shape) for part in (votes.first, votes.second, votes.vote))
    weight = 0.5 / protocol.gain / np.where(stated.pairs.counts > 0, stated.pairs.counts, 1)
    expected = np.zeros((4, 4))
    for a in range(protocol.assignments):
        added = np.zeros((protocol.answers, 4))
        for k in range(vote.shape[2]):
            i, j = first[a, 0, k], second[a, 0, k]
            added[:, i] += weight[i, j] * vote[a, :, k]
            added[:, j] -= weight[i, j] * vote[a, :, k]
        rest = added - likely[a] @ added
        expected += counts[a].sum() * (likely[a][:, None] * rest).T @ rest
    np.testing.assert_allclose(stated.covariance, expected, rtol=1e-5, atol=1e-7 * expected.max())
    # a fraction is one binomial: sampling and response together
    f = 0.5 + protocol.gain * (true - 0.5)
    np.fill_diagonal(f, 0.0)
    with np.errstate(invalid="ignore"):
        binomial = np.sqrt(f * (1 - f) / stated.pairs.counts) / protocol.gain
    seen = stated.pairs.counts > 0
    np.testing.assert_allclose(
        stated.fraction_errors("population")[seen], binomial[seen], rtol=1e-6
    )


@pytest.mark.parametrize("size", [2, 3, 4])
def test_errors_of_a_subranking_go_together(size):
    protocol = SubRanking(ITEMS, 0.3, size=size)
    counts = np.full((protocol.assignments, protocol.answers), 10**7)
    stated = statements_of(release_consensus(every_cell(protocol, counts)))
    n, pairs = counts.sum(), 6
    separate = 3 * pairs / (4 * protocol.gain**2 * n * size * (size - 1) / 2)
    np.testing.assert_allclose(np.diag(stated.covariance), separate * (size + 1) / 3, rtol=1e-6)
    # of two scores as of all: their sum is fixed
    np.testing.assert_allclose(stated.covariance.sum(axis=1), 0, atol=1e-6 * separate)


@pytest.mark.parametrize("protocol", [DuchiBall(ITEMS, 2.0), CapBorda(ITEMS, 2.0)])
def test_directions_give_the_truth_and_the_spread_between_samples(protocol):
    rng = np.random.default_rng(8)
    ranks = ORDERS[rng.choice(24, 16_000, p=WEIGHTS / WEIGHTS.sum())]
    tally = protocol.tally(protocol.simulate(ranks, rng))
    stated = statements_of(release_consensus(tally))
    true = true_pairs() + 0.5 * np.eye(4)
    scores = true.sum(axis=1) - 0.5
    assert (np.abs(stated.scores - scores) < 4 * stated.score_errors("population")).all()
    if stated.fractions is not None:
        off = np.abs(stated.fractions - true)[np.triu_indices(4, 1)]
        assert (off < 4 * stated.fraction_errors("population")[np.triu_indices(4, 1)]).all()
    found = []
    for part in np.array_split(rng.permutation(len(tally.count)), 200):
        found.append(statements_of(release_consensus(parted(tally, part))).scores)
    spread = np.cov(np.array(found).T) / 200
    np.testing.assert_allclose(spread, stated.covariance, atol=0.25 * stated.covariance.max())
    assert np.abs(stated.covariance.sum(axis=0)).max() < 1e-3 * stated.covariance.max()


def test_pairs_that_nobody_was_asked_about():
    protocol = RandomPairs(ITEMS, 3.0)
    tally = every_cell(protocol, 50 * np.ones((6, 2), dtype=int))
    kept = tally.assignment != 2
    left = Tally(
        protocol,
        *(part[kept] for part in (tally.assignment, tally.answer, tally.count)),
        {},
        None,
        None,
    )
    i, j = protocol.asked(np.array([2]))[0, 0]
    release = release_consensus(left)
    stated = statements_of(release)
    assert np.isnan(stated.fractions[i, j]) and np.isnan(stated.fractions).sum() == 2
    assert stated.fraction_errors("population")[i, j] == np.inf
    for together in (False, True):
        low, high = stated.fraction_bounds(0.05, "population", together)
        assert low[i, j] == 0 and high[i, j] == 1
        others = ~np.isnan(stated.fractions) & ~np.eye(4, dtype=bool)
        assert (high - low)[others].max() < 1
    # an unknown fraction has a standard error of 1/2 in both scores, and the errors of the others
    asked = 1 / (4 * protocol.gain**2 * 100)
    assert stated.covariance[i, i] == pytest.approx(2 * asked * 1.5**2 + 0.25, rel=0.01)
    assert stated.covariance[i, j] == pytest.approx(-0.25)
    fit = pr.PrivateRankAggregation.from_release(release)
    text = " ".join(str(fit.summary()).split())
    assert "1 of 6 pairs were never asked" in text
    assert fit.pairwise()["fraction"].isna().sum() == 1
    assert not fit.pairwise()["separated"].any()
    fit.plot_pairwise()


def test_items_that_reports_do_not_connect_are_refused():
    protocol = RandomPairs(ITEMS, 1.0)
    tally = protocol.tally(protocol.simulate(ORDERS, np.random.default_rng(1)))
    some = protocol.asked(tally.assignment)[:, 0]
    kept = ~(some == 0).any(axis=1)
    left = Tally(
        protocol,
        *(part[kept] for part in (tally.assignment, tally.answer, tally.count)),
        {},
        None,
        None,
    )
    with pytest.raises(ValueError, match="never"):
        release_consensus(left)


@pytest.mark.parametrize(
    "protocol",
    [
        Comparisons(ITEMS, 1.0, ties=True),
        PairBits(ITEMS, 1.0, pairs=2),
        PairBits(ITEMS, 1.0, pairs="all"),
    ],
    ids=repr,
)
def test_protocols_for_other_questions_are_refused(protocol):
    tally = protocol.tally(protocol.simulate(ORDERS, np.random.default_rng(1)))
    with pytest.raises(ValueError, match="without ties, .* For a consensus use SubRanking"):
        release_consensus(tally)


def test_single_pairs_are_read_alike_whichever_protocol_asks_them():
    """The same answers to the same pairs, whose assignments have other numbers."""
    asking = (
        RandomPairs(ITEMS, 1.0),
        Comparisons(ITEMS, 1.0),
        PairBits(ITEMS, 1.0, pairing="private"),
    )
    counts = np.random.default_rng(3).integers(1, 40, (6, 2))
    fits = []
    for protocol in asking:
        pairs = protocol.asked(np.arange(6))[:, 0]
        assert (pairs[:, 0] < pairs[:, 1]).all()
        place = [protocol.all_pairs.tolist().index(pair) for pair in pairs.tolist()]
        fits.append(pr.PrivateRankAggregation.from_reports(every_cell(protocol, counts[place])))
    for fit in fits[1:]:
        assert fit.to_frame().equals(fits[0].to_frame())
        assert fit.pairwise().equals(fits[0].pairwise())
        np.testing.assert_array_equal(fit.stated.covariance, fits[0].stated.covariance)
    # by hand: fractions of votes, the gain undone
    share, gain = counts[0, 0] / counts[0].sum(), np.tanh(0.5)
    assert fits[1].fractions[0, 1] == pytest.approx((share - 0.5) / gain + 0.5)


def test_intervals_of_votes_are_those_of_proportions():
    from statsmodels.stats.proportion import proportion_confint

    counts, ahead = np.array([40, 7, 300]), np.array([25, 7, 140])
    pairs = PairVotes.of(2 * ahead - counts, counts, 1.0)
    up = np.triu_indices(3, 1)
    for together, level in ((True, 0.05 / 3), (False, 0.05)):
        low, high = pairs.bounds(0.05, together)
        expected = proportion_confint(ahead, counts, level, method="beta")
        np.testing.assert_allclose([low[up], high[up]], expected)
        np.testing.assert_allclose((low + high.T)[up], 1.0)
    # the error is that of two votes more for either order, also where all votes are alike
    more = (ahead + 2) / (counts + 4)
    np.testing.assert_allclose(pairs.errors[up], np.sqrt(more * (1 - more) / counts))
    # other votes: all means from which theirs is no farther than z standard deviations
    net, square = np.array([3.0, -1.5, 20.0]), 0.3
    low, high = (2 * end[up] - 1 for end in PairVotes.of(net, counts, 1.0, square).bounds(0.05, 0))
    for end in (low, high):
        variance = (square - end**2) / counts
        np.testing.assert_allclose(np.abs(net / counts - end) / np.sqrt(variance), 1.959964)


@pytest.mark.parametrize("gain", [0.2, 0.46, 0.96])
def test_intervals_of_pairs_cover_by_enumeration(gain):
    """At least as often as they say, and not much more often from some votes on."""
    p = np.linspace(0, 1, 201)
    seen = 0.5 + gain * (p - 0.5)
    covered = []
    for n in range(1, 61):
        ahead = np.arange(n + 1)
        pairs = [PairVotes.of(np.array([2 * a - n]), np.array([n]), gain) for a in ahead]
        assert all(one.errors[0, 1] > 0 for one in pairs)
        mass = binom.pmf(ahead[:, None], n, seen)
        ends = [[end[0, 1] for end in one.bounds(0.05, False)] for one in pairs]
        low, high = np.array(ends).T[..., None]
        covered.append((mass * ((low <= p) & (p <= high))).sum(axis=0))
    exact = np.array(covered)
    assert exact.min() >= 0.95 - 1e-9
    assert exact.mean(axis=1)[20:].max() < 0.98


@pytest.mark.parametrize("protocol", ASKING, ids=NAMES)
def test_a_report_has_at_most_one_vote_on_a_pair(protocol):
    pairs = np.sort(Votes.of(every_cell(protocol), protocol).pair, axis=1)
    assert (np.diff(pairs, axis=1) > 0).all()


@pytest.mark.parametrize(
    "protocol",
    [SubRanking(list("abc"), 2.0, size=2), SubRanking(list("abc"), 4.0, size=3)],
    ids=["pairs", "triples"],
)
def test_the_expected_covariance_is_no_smaller_than_that_of_scores(protocol):
    """By enumeration of all answers to a few assignments, whatever their numbers."""
    three = np.array(list(permutations(range(1, 4))))
    weights = np.array([9, 1, 1, 1, 0, 4])
    likely = np.array([[float(p) for p in row] for row in probabilities(protocol, weights, three)])
    designs = [(0, 1, 2), (0, 0, 0, 1, 1)] if protocol.width == 2 else [(0,), (0, 0), (0, 0, 0)]
    for design in designs:
        scores, claimed, mass = [], [], []
        for answers in product(range(protocol.answers), repeat=len(design)):
            tally = Tally(
                protocol, np.array(design), np.array(answers), np.ones(len(design)), {}, None, None
            )
            votes = Votes.of(tally, protocol)
            ahead, behind = votes.numbers(1), votes.numbers(-1)
            pairs = PairVotes.of(ahead - behind, ahead + behind, protocol.gain)
            claimed.append(votes.covariance(pairs))
            scores.append(np.nan_to_num(pairs.fractions).sum(axis=1))
            mass.append(np.prod(likely[list(design), list(answers)]))
        mass, scores = np.array(mass), np.array(scores)
        rest = scores - mass @ scores
        exact, expected = (mass[:, None] * rest).T @ rest, np.tensordot(mass, claimed, 1)
        assert mass.sum() == pytest.approx(1)
        assert np.linalg.eigvalsh(expected - exact).min() > -1e-12
        assert np.trace(expected) < 3 * np.trace(exact)


@pytest.mark.parametrize("protocol", [SubRanking(ITEMS, 3.0, size=3), RandomPairs(ITEMS, 1.0, 3)])
def test_reports_that_concern_two_items_are_counted(protocol):
    tally = protocol.tally(protocol.simulate(ORDERS, np.random.default_rng(2)))
    asked = np.repeat(protocol.asked(tally.assignment), tally.count, axis=0).reshape(24, -1)
    stated = statements_of(release_consensus(tally))
    for i, j in product(range(4), repeat=2):
        assert stated.concerned[i, j] == ((asked == i) | (asked == j)).any(axis=1).sum()


def test_intervals_are_by_students_t():
    covariance = np.array([[2.0, -1.0, -1.0], [-1.0, 2.0, -1.0], [-1.0, -1.0, 2.0]]) / 100
    concerned = np.array([[1, 4, 4], [4, 3, 4], [4, 4, 9]])
    stated = RandomReports(np.array([1.0, -3.0, 1.9]), covariance, concerned, None)
    low, high = stated.score_bounds(0.05, "population")
    half = t.ppf(0.975, 8) * 0.02**0.5
    # one report has no error that could be estimated, and no score is below 0 or above 2
    np.testing.assert_allclose([low, high], [[0, 0, 1.9 - half], [2, 0, 2]])
    gaps = stated.certain_gaps(0.05, "population", 6)
    np.testing.assert_allclose(gaps[0, 1:], t.ppf(1 - 0.025 / 3, 3) * 0.06**0.5)
    assert np.isfinite(gaps).all() and (gaps == gaps.T).all()


def test_unanimous_rankings_are_no_certain_scores():
    protocol = SubRanking(ITEMS, 8.0)
    tally = protocol.tally(protocol.simulate(np.tile(ORDERS[0], (20, 1)), np.random.default_rng(0)))
    fit = pr.PrivateRankAggregation.from_reports(tally)
    borda = fit.borda()
    assert (borda["lower"] <= [3, 2, 1, 0]).all() and (borda["upper"] >= [3, 2, 1, 0]).all()
    assert borda["std_err"].min() > 0.03 and fit.pairwise()["std_err"].min() > 0.01
    text = " ".join(str(fit.summary()).split())
    assert CLAIMS["unbiased reports"] in text


def test_fixed_point_numbers_are_exact_to_fifty_bits():
    numbers = np.array([[1e-9, -3.25], [0.1, 7.0]])
    whole, step = fixed_point(numbers)
    np.testing.assert_allclose(whole * step, numbers.ravel(), rtol=0, atol=8 * 2.0**-50)
    assert fixed_point(np.zeros(2))[0].tolist() == [0, 0]
