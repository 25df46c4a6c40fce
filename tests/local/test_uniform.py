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
from privrank.local.estimates import by_item
from privrank.local.kinds import (
    CapBorda,
    Comparisons,
    DuchiBall,
    PairBits,
    RandomPairs,
    SubRanking,
)
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
    assert asked.root.shape[1] == 3
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
        (RandomPairs(NAMES[:4], 4.0, pairs=2), 15),
        (DuchiBall(NAMES[:4], 4.0), 15),
        (CapBorda(NAMES[:3], 4.0), 10),
    ],
    ids=["bits", "private pairs", "sub-ranking", "random pairs", "two pairs", "ball", "cap"],
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
        "the order of the public pairs only",
        "chi-square on 3 degrees",
    ):
        assert words in " ".join(text.split()), words
    assert result.reject and result.statistic > result.threshold
    again = pr.from_json(result.to_json())
    assert str(again.summary(details=True)) == text
    assert (again.null().values == result.null().values).all()
    assert str(pickle.loads(pickle.dumps(result)).summary(details=True)) == text
    assert result.plot() is not None


def test_other_protocols_are_said_to_see_mean_ranks():
    protocol, rng = SubRanking(NAMES[:5], 2.0), np.random.default_rng(2)
    result = pr.UniformityTest.from_reports(uniform_tally(protocol, 50, rng), draws=99)
    assert "mean ranks alone" in " ".join(str(result.summary()).split())
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
    # of all three pairs two of the eight answers are cycles, which prefer no item
    cycles = RandomPairs(NAMES[:3], 6.0, pairs=3)
    table = by_item(tally_of(cycles, [0] * 8, range(8), [1] * 8)).toarray()
    none = np.flatnonzero(~table.any(axis=1))
    assert len(none) == 2
    with pytest.raises(ValueError, match="reports that prefer an item, .* Collect more reports"):
        test(tally_of(cycles, [0, 0], none, [5, 6]))


WHOLE = [
    RandomPairs(NAMES[:4], 1.0, pairs=2),
    RandomPairs(NAMES[:4], 3.0, pairs=3, method="laplace"),
    DuchiBall(NAMES[:4], 2.0),
    CapBorda(NAMES[:4], 2.0, candidates=16, cap=5),
]


@pytest.mark.parametrize("protocol", WHOLE[:2], ids=repr)
def test_under_uniformity_several_pairs_are_as_likely_as_their_reverse(protocol):
    """By exact probabilities of all answers, which are not those of independent pairs."""
    ranks = list(permutations(range(1, 5)))
    dependent = False
    for assignment in range(protocol.assignments):
        likely = {}
        for digits in product((0, 1), repeat=protocol.digits):
            at = np.arange(protocol.digits), np.array(digits)
            tables = (reported(protocol, rank, assignment)[at] for rank in ranks)
            likely[digits] = sum(np.prod(table) for table in tables) / len(ranks)
        assert sum(likely.values()) == 1
        for digits, probability in likely.items():
            assert likely[tuple(1 - digit for digit in digits)] == probability
            dependent |= probability != Fraction(1, 2**protocol.digits)
    assert dependent


@pytest.mark.parametrize("protocol", WHOLE[2:], ids=repr)
def test_the_reverse_ranking_favours_the_same_values_of_opposite_directions(protocol, monkeypatch):
    ranks, seeds = np.array(list(permutations(range(1, 5)))), np.arange(100, 124)
    drawn = type(protocol).directions
    favoured = protocol.favoured_answers(ranks, seeds)
    other = protocol.favoured_answers(5 - ranks, seeds)
    monkeypatch.setattr(type(protocol), "directions", lambda *given: -drawn(*given))
    assert (protocol.favoured_answers(5 - ranks, seeds) == favoured).all()
    assert (other != favoured).any()


def by_hand(protocol, assignment, answer):
    """What one report adds to the items."""
    w = np.zeros(len(protocol.items))
    if isinstance(protocol, CapBorda):
        w += protocol.directions(np.array([assignment]), np.array([answer]))[0]
        return w - w.mean()
    if isinstance(protocol, DuchiBall):
        pairs = protocol.all_pairs
        votes = (1 - 2 * answer) * protocol.directions(np.array([assignment]))[0]
    else:
        pairs = protocol.asked(np.array([assignment]))[0]
        votes = 1 - 2 * protocol.unpacked(np.array([answer]))[0]
    for (i, j), vote in zip(pairs.tolist(), votes.tolist(), strict=True):
        w[i] += vote
        w[j] -= vote
    return w


@pytest.mark.parametrize("protocol", WHOLE, ids=repr)
def test_the_statistic_of_whole_reports_is_a_form_of_their_sum_and_their_squares(protocol):
    tally = uniform_tally(protocol, 60, np.random.default_rng(3))
    cells = zip(tally.assignment.tolist(), tally.answer.tolist(), strict=True)
    added = np.repeat([by_hand(protocol, *cell) for cell in cells], tally.count, axis=0)
    total, form = added.sum(axis=0), np.linalg.pinv(added.T @ added, rcond=1e-9)
    facts = Asked.of(tally)
    assert facts.whole is not None and facts.root.shape[1] == 3
    assert STEP * facts.statistic == pytest.approx(total @ form @ total, abs=STEP)
    assert np.allclose(facts.net, total)


@pytest.mark.parametrize("protocol", WHOLE, ids=repr)
@pytest.mark.parametrize("count", [[1] * 6, [3, 1, 2, 1, 1, 2]], ids=["single", "repeated"])
def test_draws_of_whole_reports_have_the_distribution_of_all_signs(protocol, count):
    cells = uniform_tally(protocol, 40, np.random.default_rng(4))
    tally = tally_of(protocol, cells.assignment[:6], cells.answer[:6], count)
    added = np.repeat(
        [by_hand(protocol, *cell) for cell in zip(tally.assignment, tally.answer, strict=True)],
        count,
        axis=0,
    )
    form = np.linalg.pinv(added.T @ added, rcond=1e-9)
    signs = np.array(list(product((1, -1), repeat=len(added))))
    sums = signs @ added
    exact = Counter(np.rint((sums @ form * sums).sum(axis=1) / STEP).astype(int).tolist())
    found = Counter(Asked.of(tally).draws(20_000).tolist())
    # values that differ by rounding are one
    values = np.array(sorted(exact | found))
    part = np.concatenate(([0], np.cumsum(np.diff(values) > 2)))
    expected, observed = (
        np.bincount(part, [table[value] for value in values.tolist()]) for table in (exact, found)
    )
    assert len(expected) > 2
    assert chisquare(observed, expected * 20_000 / len(signs)).pvalue > 1e-3


@pytest.mark.parametrize("protocol", WHOLE[:1], ids=repr)
def test_pvalues_of_whole_reports_are_valid_by_enumeration(protocol):
    """All answers to five assignments, each with the share of signs that give as large a value."""
    ranks, assignments = list(permutations(range(1, 5))), [0, 1, 1, 3, 5]
    likely = []
    for assignment in assignments:
        rows = [reported(protocol, rank, assignment).astype(float) for rank in ranks]
        likely.append(np.mean([np.outer(*digits).ravel() for digits in rows], axis=0))
    signs = np.array(list(product((1, -1), repeat=5)))
    pvalues, mass = [], []
    for answers in product(range(4), repeat=5):
        added = np.array([by_hand(protocol, *c) for c in zip(assignments, answers, strict=True)])
        sums = signs @ added
        values = (sums @ np.linalg.pinv(added.T @ added, rcond=1e-9) * sums).sum(axis=1)
        pvalues.append(np.mean(values >= values[0] - 1e-6))
        mass.append(np.prod([table[a] for table, a in zip(likely, answers, strict=True)]))
    pvalues, mass = np.array(pvalues), np.array(mass)
    assert mass.sum() == pytest.approx(1)
    for level in np.unique(pvalues):
        assert mass[pvalues <= level].sum() <= level + 1e-9
    assert mass[pvalues <= 0.5].sum() > 0.3


def test_too_few_whole_reports_show_nothing():
    protocol = DuchiBall(NAMES[:6], 8.0)
    tally = protocol.tally(
        protocol.simulate(np.tile(np.arange(1, 7), (5, 1)), np.random.default_rng(1))
    )
    assert Asked.of(tally).statistic == 5 / STEP
    assert pr.UniformityTest.from_reports(tally, draws=99).pvalue == 1


@pytest.mark.parametrize("protocol", WHOLE, ids=repr)
def test_whole_reports_see_a_consensus(protocol):
    rng = np.random.default_rng(6)
    ranks = pr.Mallows(4, 0.3).rvs(600, rng)
    result = pr.UniformityTest.from_reports(protocol.tally(protocol.simulate(ranks, rng)))
    assert result.pvalue < 0.001
    text = " ".join(str(result.summary(details=True)).split())
    assert "given each report or its reverse" in text and "mean ranks alone" in text
    assert "chi-square on 3 degrees" in text
    again = pr.from_json(result.to_json())
    assert str(again.summary(details=True)) == str(result.summary(details=True))


@pytest.mark.parametrize(
    ("protocol", "n"),
    [
        (RandomPairs(NAMES[:7], 6.0, pairs=3), 100),
        (DuchiBall(NAMES[:6], 4.0), 80),
        (CapBorda(NAMES[:5], 2.0), 60),
    ],
    ids=["three pairs", "ball", "cap"],
)
@pytest.mark.parametrize("camps", [False, True], ids=["uniform", "opposite camps"])
def test_the_level_of_whole_reports_is_kept_and_not_more(protocol, n, camps):
    """Of uniform rankings, and of two opposite orders, which the statistic does not see."""
    rng, pvalues, m = np.random.default_rng(7), [], len(protocol.items)
    for _ in range(200):
        if camps:
            order = np.arange(1, m + 1)
            ranks = np.where(rng.random((n, 1)) < 0.5, order, m + 1 - order)
        else:
            ranks = uniform_rankings(rng, n, m)
        facts = Asked.of(protocol.tally(protocol.simulate(ranks, rng)))
        table = facts.draws(99)
        pvalues.append((1 + (table >= facts.statistic).sum()) / 100)
    for level in (0.05, 0.2, 0.5):
        share, error = np.mean(np.array(pvalues) <= level), np.sqrt(level * (1 - level) / 200)
        assert abs(share - level) <= 3 * error, level
