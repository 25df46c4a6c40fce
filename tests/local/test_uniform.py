"""The test of uniformity from reports: its statistic, its null distribution, level and power."""

import pickle
from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import chi2, chisquare

import privrank as pr
from privrank.hypotheses.nulls import uniform_rankings
from privrank.local.protocols_orders import Comparisons, PairBits, RandomPairs, SubRanking
from privrank.local.protocols_vectors import CapBorda, DuchiBall
from privrank.local.tally import Tally
from privrank.local.uniform import STEP, Asked

NAMES = list("abcdefghij")


def tally_of(protocol, assignment, answer, count):
    return Tally(protocol, np.array(assignment), np.array(answer), np.array(count), {}, None, None)


def uniform_tally(protocol, n, rng):
    reports = protocol.simulate(uniform_rankings(rng, n, len(protocol.items)), rng)
    cells = np.column_stack((reports["assignment"], reports["answer"]))
    cells, count = np.unique(cells, axis=0, return_counts=True)
    return tally_of(protocol, *cells.T, count)


def reported(protocol, rank, assignment):
    """Exact probabilities of the digits' values for one ranking, shape (digits, options)."""
    response = protocol.response
    favoured = protocol.favoured_answers(np.array([rank]), np.array([assignment]))[0, :, 0]
    table = np.full((protocol.digits, protocol.options), Fraction(response.other_weight))
    table[np.arange(protocol.digits), favoured] = Fraction(response.favoured_weight)
    return table / response.total


PROTOCOLS = [
    *(SubRanking(NAMES[:m], e, size=s) for e in (0.5, 3.0) for m, s in ((2, 2), (4, 2), (4, 3))),
    SubRanking(NAMES[:4], 1.0, size=4),
    RandomPairs(NAMES[:4], 1.0),
    RandomPairs(NAMES[:4], 2.0, pairs=2, method="laplace"),
    PairBits(NAMES[:4], 1.0),
    PairBits(NAMES[:4], 1.0, pairs="all"),
    PairBits(NAMES[:4], 1.0, pairing="private"),
    Comparisons(NAMES[:3], 1.0),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_under_uniformity_every_digit_is_uniform(protocol):
    m = len(protocol.items)
    ranks = list(permutations(range(1, m + 1)))
    for assignment in range(protocol.assignments):
        mean = sum(reported(protocol, rank, assignment) for rank in ranks) / len(ranks)
        assert (mean == Fraction(1, protocol.options)).all()


def test_digits_about_disjoint_pairs_are_independent():
    protocol = PairBits(NAMES[:4], 1.0, pairs="all")
    joint = np.zeros((2, 2), dtype=object)
    for rank in permutations(range(1, 5)):
        first, second = reported(protocol, rank, 0)
        joint = joint + np.outer(first, second) / Fraction(24)
    assert (joint == Fraction(1, 4)).all()


def test_with_disjoint_pairs_the_statistic_adds_up_squares_over_counts():
    protocol = PairBits(NAMES[:7], 1.0)
    won, lost = np.array([7, 1, 4]), np.array([3, 9, 5])
    tally = tally_of(protocol, [0, 0, 1, 1, 2, 2], [0, 1] * 3, np.column_stack((won, lost)).ravel())
    asked = Asked.of(tally)
    expected = ((won - lost) ** 2 / (won + lost)).sum()
    assert asked.rank == 3
    assert STEP * asked.statistic == pytest.approx(expected, abs=STEP)


def test_with_whole_rankings_the_statistic_is_that_of_friedman():
    protocol, rng = SubRanking(NAMES[:4], 60.0, size=4), np.random.default_rng(1)
    ranks = uniform_rankings(rng, 30, 4)
    tally = protocol.tally(protocol.simulate(ranks, rng))
    sums = ranks.sum(axis=0) - 30 * 2.5
    friedman = 12.0 / (30 * 4 * 5) * (sums**2).sum()
    assert STEP * Asked.of(tally).statistic == pytest.approx(friedman, abs=STEP)


@pytest.mark.parametrize(
    "protocol",
    [SubRanking(NAMES[:3], 1.0, size=3), PairBits(NAMES[:4], 2.0, pairs="all")],
    ids=["orders", "disjoint pairs"],
)
def test_null_draws_have_the_distribution_that_enumeration_gives(protocol):
    """All answers of three reports, with their exact probabilities under uniformity."""
    ranks = list(permutations(range(1, len(protocol.items) + 1)))
    assignments = [0, 0, protocol.assignments - 1]
    exact = Counter()
    each = []
    for assignment in assignments:
        table = np.zeros(protocol.answers)
        for rank in ranks:
            digits = reported(protocol, rank, assignment).astype(float)
            table += np.array([np.prod(values) for values in product(*digits)]) / len(ranks)
        each.append(table)
    whole = tally_of(protocol, assignments, [0, 0, 0], [1, 1, 1])
    asked = Asked.of(whole)
    for answers in product(range(protocol.answers), repeat=3):
        value = Asked.of(tally_of(protocol, assignments, answers, [1, 1, 1])).statistic
        exact[value] += np.prod([table[a] for table, a in zip(each, answers, strict=True)])
    found = Counter(asked.draws(20_000).tolist())
    assert found.keys() <= exact.keys()
    values = sorted(exact)
    observed = np.array([found[value] for value in values])
    expected = 20_000 * np.array([exact[value] for value in values])
    assert chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-3


def test_draws_are_public_and_depend_on_what_was_asked():
    protocol = PairBits(NAMES[:6], 1.0)
    first = Asked.of(tally_of(protocol, [0, 1], [0, 0], [5, 6]))
    again = Asked.of(tally_of(protocol, [0, 0, 1], [0, 1, 1], [2, 3, 6]))
    other = Asked.of(tally_of(protocol, [0, 1], [0, 0], [6, 5]))
    assert (first.draws(50) == again.draws(50)).all()
    assert (first.draws(50)[:20] == first.draws(20)).all()
    assert (first.draws(50) != other.draws(50)).any()


@pytest.mark.parametrize(
    ("protocol", "n"),
    [
        (PairBits(NAMES, 1.0), 25),
        (PairBits(NAMES[:5], 1.0, pairing="private"), 40),
        (SubRanking(NAMES[:5], 2.0), 12),
        (RandomPairs(NAMES[:4], 4.0), 30),
    ],
    ids=["bits", "private pairs", "sub-ranking", "random pairs"],
)
def test_pvalues_are_uniform_under_uniformity_with_few_reports(protocol, n):
    rng, pvalues = np.random.default_rng(5), []
    for _ in range(300):
        tally = uniform_tally(protocol, n, rng)
        asked = Asked.of(tally)
        table = asked.draws(99)
        pvalues.append((1 + (table >= asked.statistic).sum()) / 100)
    for level in (0.05, 0.2, 0.5):
        share, error = np.mean(np.array(pvalues) <= level), np.sqrt(level * (1 - level) / 300)
        assert share <= level + 3 * error
    assert np.mean(np.array(pvalues) <= 0.5) > 0.3


def bits_tally(protocol, n, phi, rng):
    """Reports of n rankings of a Mallows model with a random centre, by the pairs asked alone."""
    m = len(protocol.items)
    model, place = pr.Mallows(m, phi), rng.permutation(m)
    asked = protocol.asked(np.arange(protocol.assignments))[:, 0]
    named = np.array(model.items)[place]
    ahead = [model.pair_probability(*named[pair]) for pair in asked]
    count = rng.multinomial(n, np.full(len(ahead), 1 / len(ahead)))
    first = rng.binomial(count, 0.5 + protocol.gain * (np.array(ahead) - 0.5))
    cells = np.repeat(np.arange(len(ahead)), 2)
    counts = np.column_stack((first, count - first)).ravel()
    return tally_of(protocol, cells, np.tile([0, 1], len(ahead)), counts)


def test_bits_of_a_few_pairs_see_a_weak_consensus_on_a_thousand_items():
    """At the size where BFZ21's half of the items' pairs, m / 2 bits each, sees nothing."""
    protocol = PairBits([str(k) for k in range(1000)], 1 / 3)
    rng = np.random.default_rng(8)
    critical = chi2.ppf(0.95, 8)
    found = []
    for _ in range(60):
        tally = bits_tally(protocol, 300_000, 0.999, rng)
        found.append(STEP * Asked.of(tally).statistic > critical)
    assert np.mean(found) > 0.98
    result = pr.UniformityTest.from_reports(bits_tally(protocol, 300_000, 0.999, rng))
    assert result.reject and result.nobs == 300_000


def test_result_says_local_and_survives_its_archive():
    protocol, rng = PairBits(NAMES[:6], 1.0), np.random.default_rng(4)
    ranks = pr.Mallows(6, 0.5).rvs(800, rng)
    result = pr.UniformityTest.from_reports(protocol.tally(protocol.simulate(ranks, rng)))
    text = str(result.summary(details=True))
    for words in (
        "Locally Private Test of Uniformity",
        "1 per respondent and report",
        "respondents' devices",
        "randomised response",
        "gain 0.4621",
        "the order of the public pairs alone",
        "chi-square on 3 degrees",
    ):
        assert words in text
    assert result.reject and result.statistic > result.threshold
    again = pr.from_json(result.to_json())
    assert str(again.summary(details=True)) == text
    assert (again.null().values == result.null().values).all()
    assert str(pickle.loads(pickle.dumps(result)).summary(details=True)) == text
    assert result.plot() is not None


def test_other_protocols_are_said_to_see_mean_ranks():
    protocol, rng = SubRanking(NAMES[:5], 2.0), np.random.default_rng(2)
    result = pr.UniformityTest.from_reports(uniform_tally(protocol, 50, rng), draws=99)
    assert "mean ranks alone" in str(result.summary())
    assert result.draws == 99


def test_what_cannot_be_tested_is_refused_briefly():
    test = pr.UniformityTest.from_reports
    with pytest.raises(TypeError, match="tally must be a protocol's tally"):
        test({"assignment": [1]})
    ties = Comparisons(NAMES[:3], 1.0, ties=True)
    with pytest.raises(ValueError, match="without ties"):
        test(tally_of(ties, [0], [2], [5]))
    bits = PairBits(NAMES[:4], 1.0)
    with pytest.raises(ValueError, match="at least 1 accepted reports, got 0"):
        test(tally_of(bits, [], [], []))
    with pytest.raises(ValueError, match="draws must be"):
        test(tally_of(bits, [0], [0], [5]), draws=3)
    several = RandomPairs(NAMES[:5], 6.0, pairs=2)
    with pytest.raises(ValueError, match="share no items, .* have 2 random ones"):
        test(tally_of(several, [0, 1], [0, 3], [5, 6]))
    for directions in (DuchiBall(NAMES[:4], 1.0), CapBorda(NAMES[:4], 1.0)):
        with pytest.raises(ValueError, match="collect reports of PairBits"):
            test(tally_of(directions, [0, 1], [0, 1], [5, 6]))
