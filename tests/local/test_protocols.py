"""All protocols by exact enumeration: privacy, tightness, unbiased estimates, and the samplers."""

import hashlib
import json
import math
import re
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from enumerating import exp, light, loss, rankings, reports
from scipy.stats import chisquare

import privrank as pr
from privrank.local import (
    AdaptiveKwikSort,
    CapBorda,
    Comparisons,
    Curator,
    DuchiBall,
    PairBits,
    Population,
    RandomPairs,
    SubRanking,
    kinds,
    protocol_from_json,
)
from privrank.local.kinds import SCALE, best_size, pair_factor

SEEDS = [0, 1, 2**32 - 1]


def named(m):
    return tuple("abcdefghij"[:m])


def asking(m, epsilon):
    """Every protocol that asks for orders, with every size and number of pairs."""
    items, pairs = named(m), math.comb(m, 2)
    yield from (SubRanking(items, epsilon, size) for size in range(2, m + 1))
    yield from (RandomPairs(items, epsilon, number) for number in range(1, pairs + 1))
    yield from (RandomPairs(items, epsilon, number, "laplace") for number in range(1, pairs + 1))
    yield from (PairBits(items, epsilon, number) for number in range(1, m // 2 + 1))
    yield PairBits(items, epsilon, "all")
    yield PairBits(items, epsilon, pairing="private")
    yield from (Comparisons(items, epsilon, ties) for ties in (False, True))
    yield AdaptiveKwikSort(items, epsilon)


def sending(m, epsilon):
    """Every protocol that sends a direction."""
    items = named(m)
    yield DuchiBall(items, epsilon)
    if m > 2:
        yield CapBorda(items, epsilon, candidates=8)
        yield from (CapBorda(items, epsilon, candidates=5, cap=cap) for cap in range(1, 5))


def everything(m, epsilon):
    yield from asking(m, epsilon)
    yield from sending(m, epsilon)


def assignments_of(protocol):
    return SEEDS if protocol.assignments > 1000 else range(protocol.assignments)


def held_by(protocol):
    """Every ranking that a respondent can hold, as ranks: with ties if they are answers."""
    m = len(protocol.items)
    if protocol.keeps_ties:
        return np.array(list(product(range(1, m + 1), repeat=m)))
    return np.array(list(permutations(range(1, m + 1))))


def numerators(protocol, assignment):
    """P(answer | ranking) for all of them, over the common denominator total^digits."""
    ranks = held_by(protocol)
    favoured = protocol.favoured_answers(ranks, np.full(len(ranks), assignment))
    assert favoured.shape == (len(ranks), protocol.digits, protocol.favoured)
    response, whole = protocol.response, np.ones((len(ranks), 1), dtype=object)
    for digit in range(protocol.digits):
        weights = np.full((len(ranks), protocol.options), response.other_weight, dtype=object)
        np.put_along_axis(weights, favoured[:, digit], response.favoured_weight, axis=1)
        whole = (whole[:, :, None] * weights[:, None, :]).reshape(len(ranks), -1)
    assert whole.shape[1] == protocol.answers
    assert (whole.sum(axis=1) == response.total**protocol.digits).all()
    return whole


@pytest.mark.parametrize("epsilon", [0.01, 1 / 3, 1.0, 2.5, 8.0])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_likelihood_ratio_is_at_most_and_up_to_exp_epsilon(m, epsilon):
    checked = 0
    for protocol in everything(m, epsilon):
        largest = Fraction(1)
        for assignment in assignments_of(protocol):
            table = numerators(protocol, assignment)
            for column in table.T:
                largest = max(largest, Fraction(max(column), min(column)))
        assert largest <= exp(epsilon), protocol
        achieved = exp(epsilon)
        if getattr(protocol, "method", "randomized") == "laplace":
            achieved = (2 * exp(Fraction(epsilon) / (2 * protocol.digits)) - 1) ** protocol.digits
        assert largest > achieved * (1 - Fraction(1, 2**40)), protocol
        checked += 1
    assert checked >= 9


@pytest.mark.parametrize("m", [2, 3, 4])
def test_reports_are_drawn_as_the_weights_say(m):
    checked = 0
    for protocol in map(light, everything(m, 1.0)):
        queried = isinstance(protocol, AdaptiveKwikSort)  # the curator says what is asked
        given = assignments_of(protocol) if queried or protocol.assignments > 1000 else [None]
        draws = protocol.response.total**protocol.digits * math.factorial(m)
        if draws * min(protocol.assignments, 6) > 4_000:
            continue
        checked += 1
        for assignment in given:
            found = reports(protocol, assignment)
            if not isinstance(protocol, CapBorda):
                assert loss(found) == 3**protocol.digits
            asked = range(protocol.assignments) if assignment is None else [assignment]
            whole = protocol.response.total**protocol.digits * len(asked)
            for one in asked:
                held, table = held_by(protocol).tolist(), numerators(protocol, one)
                for ranking in rankings(protocol.items):
                    row = held.index([ranking.index(name) + 1 for name in protocol.items])
                    for answer, number in enumerate(table[row]):
                        assert found[ranking][one, answer] == Fraction(number, whole)
    assert checked >= 8


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_votes_over_the_gain_are_unbiased_exactly(m, epsilon):
    for protocol in asking(m, epsilon):
        response = protocol.response
        gain = Fraction(response.favoured_weight - response.other_weight, response.total)
        assert protocol.gain == pytest.approx(float(gain), rel=1e-12)
        ranks = held_by(protocol)
        votes = np.zeros((len(ranks), m, m), dtype=object)
        times = np.zeros((m, m), dtype=int)
        for assignment in range(protocol.assignments):
            asked = protocol.asked(np.array([assignment]))[0]
            table = numerators(protocol, assignment)
            values = protocol.unpacked(np.arange(protocol.answers))
            for digit, places in enumerate(asked):
                grid = np.ix_(places, places)
                times[grid] += ~np.eye(protocol.width, dtype=bool)
                signs = protocol.signs[values[:, digit]].astype(object)
                expected = np.tensordot(table, signs, axes=(1, 0))
                for row in range(len(ranks)):
                    votes[row][grid] += expected[row]
        truth = np.sign(ranks[:, None, :] - ranks[:, :, None])
        whole = response.total**protocol.digits
        for row in range(len(ranks)):
            for i, j in product(range(m), repeat=2):
                assert Fraction(votes[row, i, j], whole) == gain * int(
                    truth[row, i, j] * times[i, j]
                )


@pytest.mark.parametrize("m", [3, 4, 7])
def test_assignments_ask_about_all_pairs_alike(m):
    items = named(m)
    full = [SubRanking(items, 1.0, size) for size in range(2, m + 1)]
    full += [RandomPairs(items, 1.0, number) for number in range(1, math.comb(m, 2) + 1)]
    full += [PairBits(items, 1.0, pairing="private"), Comparisons(items, 1.0)]
    for protocol in full:
        asked = protocol.asked(np.arange(protocol.assignments)).reshape(-1, protocol.width)
        assert (np.diff(asked, axis=1) > 0).all()
        if isinstance(protocol, SubRanking):
            assert len({tuple(row) for row in asked}) == math.comb(m, protocol.width)
        times = np.zeros((m, m), dtype=int)
        for row in asked:
            times[np.ix_(row, row)] += 1
        assert len(set(times[np.triu_indices(m, 1)])) == 1
    for number in range(1, m // 2 + 1):
        places = PairBits(items, 1.0, number).asked(np.arange(number)).ravel()
        assert len(set(places)) == 2 * number


def test_values_are_the_places_of_orders_in_lexicographic_order():
    protocol = SubRanking(named(4), 1.0, 3)
    for value, order in enumerate(permutations(range(3))):
        ranks = np.empty((1, 4), dtype=int)
        ranks[0, list(order)] = [2, 3, 4]
        ranks[0, 3] = 1
        assert protocol.asked(np.array([0])).tolist() == [[[0, 1, 2]]]
        assert protocol.favoured_answers(ranks, np.array([0])).tolist() == [[[value]]]
        for before, after in ((0, 1), (0, 2), (1, 2)):
            assert protocol.signs[value, order[before], order[after]] == 1
            assert protocol.signs[value, order[after], order[before]] == -1
    bits = Comparisons(("a", "b"), 1.0, ties=True)
    assert bits.signs[:, 0, 1].tolist() == [1, -1, 0]
    assert bits.signs[:, 1, 0].tolist() == [-1, 1, 0]


def test_large_numbers_of_items_are_asked_about():
    protocol = SubRanking([f"item {place}" for place in range(1000)], 9.0)
    assert protocol.size > 5
    asked = protocol.asked(np.array([0, protocol.assignments - 1]))[:, 0]
    assert asked[0].tolist() == list(range(protocol.size))
    assert asked[1].tolist() == list(range(1000 - protocol.size, 1000))
    rng = np.random.default_rng(3)
    drawn = protocol.assign(50, rng)
    numbers = [
        sum(math.comb(c, j) for j, c in enumerate(row, 1))
        for row in protocol.asked(drawn)[:, 0].tolist()
    ]
    assert numbers == drawn.tolist()


def test_the_size_follows_epsilon():
    for smaller, threshold in ((2, 1.946), (3, 4.142), (4, 6.244)):
        assert best_size(threshold - 2e-3, 10) == smaller
        assert best_size(threshold + 2e-3, 10) == smaller + 1
        assert SubRanking(named(10), threshold + 2e-3).size == smaller + 1
    # at e^epsilon = 7 both have the same variance
    low, high = (pair_factor(math.log(7), size) * (size + 1) / 3 for size in (2, 3))
    assert low == pytest.approx(high, rel=1e-12)
    assert SubRanking(named(3), 8.0).size == 3
    # methods by criterion of pairs
    for smaller, threshold in ((2, 1.496), (3, 3.650), (4, 5.727)):
        below, above = pair_factor(threshold, smaller), pair_factor(threshold, smaller + 1)
        assert below == pytest.approx(above, rel=2e-3)


@pytest.mark.parametrize("epsilon", [0.7, 3.0])
def test_simulated_reports_have_the_exact_distribution(epsilon):
    rng = np.random.default_rng(5)
    n = 20_000
    for protocol in asking(3, epsilon):
        ranks = np.tile([2, 3, 1], (n, 1))
        found = protocol.simulate(ranks, rng)
        row = held_by(protocol).tolist().index([2, 3, 1])
        expected = np.concatenate(
            [numerators(protocol, one)[row] for one in range(protocol.assignments)]
        ).astype(float)
        counts = np.bincount(
            found["assignment"] * protocol.answers + found["answer"], minlength=len(expected)
        )
        assert chisquare(counts, expected / expected.sum() * n).pvalue > 1e-4, protocol
        assert set(found["protocol_id"]) == {protocol.id}
        assert len(set(found["report_id"])) == n


@pytest.mark.parametrize("m, candidates", [(3, 6), (4, 16), (5, 9)])
def test_directions_are_unbiased_over_their_seeds(m, candidates):
    rng, n = np.random.default_rng(m), 100_000
    ranks = np.tile(rng.permutation(m) + 1, (n, 1))
    votes = DuchiBall(named(m), 2.0)
    found = votes.simulate(ranks, rng)
    along = votes.directions(found["assignment"]) * (1 - 2 * found["answer"])[:, None]
    first, second = votes.all_pairs.T
    near(along / SCALE / votes.gain, np.where(ranks[0][first] < ranks[0][second], 1.0, -1.0))

    scores = CapBorda(named(m), 2.0, candidates)
    found = scores.simulate(ranks, rng)
    along = scores.directions(found["assignment"], found["answer"])
    truth = (m + 1) / 2 - ranks[0]
    assert np.square(truth).sum() == pytest.approx(m * (m * m - 1) / 12)
    near(along / SCALE / scores.gain, truth / np.linalg.norm(truth))


def near(estimates, truth):
    error = estimates.mean(axis=0) - truth
    standard = estimates.std(axis=0) / math.sqrt(len(estimates))
    assert (np.abs(error) < 4 * standard + 1e-3).all()


def test_the_cap_mechanism_has_the_variance_of_its_limit():
    # F of methods for Borda scores: 2 (m + 1) / (3 m (m - 1) gain^2), published for PrivUnit
    for m, epsilon, limit in ((10, 1.0, 4.43), (10, 4.0, 0.35), (45, 1.0, 4.27), (45, 2.0, 1.10)):
        protocol = CapBorda([f"item {place}" for place in range(m)], epsilon)
        factor = 2 * (m + 1) / (3 * m * (m - 1) * protocol.gain**2)
        assert limit * 0.98 < factor < limit * 1.04


PAGE = (Path(__file__).parents[2] / "docs" / "local.md").read_text(encoding="utf-8")


def test_the_page_has_the_variances_of_borda_scores():
    items, pairs, m = named(10), 45, 10

    def factors(epsilon):
        sub, ball, cap = (kind(items, epsilon) for kind in (SubRanking, DuchiBall, CapBorda))
        yield (sub.size + 1) / 3 / (math.comb(sub.size, 2) * sub.gain**2)
        for number, method in ((1, "randomized"), (2, "randomized"), (1, "laplace")):
            yield 1 / (number * RandomPairs(items, epsilon, number, method).gain ** 2)
        yield 1 / (pairs * ball.gain) ** 2
        yield 2 * (m + 1) / (3 * m * (m - 1) * cap.gain**2)

    (block,) = re.findall(r"\| 0\.5 \|.*\n.*\n((?:\|.*\n)+)", PAGE)
    cells = [[float(cell) for cell in row.split("|")[2:-1]] for row in block.splitlines()]
    wanted = np.array([list(factors(epsilon)) for epsilon in (0.5, 1.0, 2.0, 4.0)]).T
    assert np.abs(np.array(cells) - wanted).max() < 0.0051


def test_more_than_one_pair_pays_from_where_it_is_said():
    for fewer, threshold in ((1, 3.057), (2, 5.320)):
        below, above = (
            RandomPairs(named(10), threshold, number).gain ** 2 * number
            for number in (fewer, fewer + 1)
        )
        assert below == pytest.approx(above, rel=1e-3)


def test_the_best_cap_is_the_best():
    protocol = CapBorda(named(6), 1.5, candidates=24)
    gains = [CapBorda(named(6), 1.5, candidates=24, cap=cap).gain for cap in range(1, 24)]
    assert 1 + int(np.argmax(gains)) == protocol.cap


def test_json_rebuilds_the_same_protocol():
    ids = set()
    for epsilon in (0.1, 1.0, 3.0):
        for protocol in everything(4, epsilon):
            again = protocol_from_json(protocol.to_json())
            assert again == protocol
            assert again.id == protocol.id == json.loads(protocol.to_json())["id"]
            assert hash(again) == hash(protocol)
            ids.add(protocol.id)
    # SubRanking(2), RandomPairs(1) and the like ask the same and still are different protocols
    assert len(ids) == 3 * len(list(everything(4, 1.0)))
    assert SubRanking(named(4), 1, partial="complete").id != SubRanking(named(4), 1.0).id
    assert SubRanking(named(4), 1).id == SubRanking(list(named(4)), 1.0).id


def test_ids_and_public_draws_are_the_same_everywhere():
    # a change of these makes published protocols and their reports unreadable: it needs a version
    items = named(4)
    ids = [kind(items, 1.0).id for kind in (SubRanking, RandomPairs, DuchiBall)]
    assert ids == ["a3dd05095e1faf33", "a1a59d1a0dc04f99", "5128c334640e18b5"]
    ids = [kind(items, 1.0).id for kind in (CapBorda, PairBits, Comparisons)]
    assert ids == ["9ff0371e874c0d59", "3cd569a97cf416e2", "52c924564b76497c"]
    order = [[1, 2], [0, 2], [0, 1], [1, 3], [2, 3], [0, 3]]
    assert RandomPairs(items, 1.0).asked(np.arange(6))[:, 0].tolist() == order
    drawn = DuchiBall(named(3), 1.0).directions(np.array([7]))
    assert drawn.tolist() == [[174488, -1009694, 222673]]
    drawn = CapBorda(items, 1.0).directions(np.array([7]), np.array([3]))
    assert drawn.tolist() == [[595980, 398519, -710742, -283458]]
    table = hashlib.sha256(kinds._quantiles().astype("<i2").tobytes()).hexdigest()
    assert table.startswith("9d3456d114aad5a1")


def test_ranks_that_are_no_numbers_are_not_simulated():
    ranks = pd.DataFrame({"a": ["first"], "b": [2], "c": [3]})
    with pytest.raises(TypeError, match=r"^ranks must hold numbers in the column of every item"):
        pr.local.Comparisons(["a", "b", "c"], 1.0).simulate(ranks, np.random.default_rng(1))


def test_simulation_is_fast_enough_for_studies():
    rng = np.random.default_rng(0)
    ranks = rng.permuted(np.tile(np.arange(1, 11), (5000, 1)), axis=1)
    found = pr.local.SubRanking(named(10), 1.0).simulate(ranks, rng)
    assert {name: len(column) for name, column in found.items()} == dict.fromkeys(
        ("protocol_id", "assignment", "answer", "report_id"), 5000
    )


FRAMES = {
    "pandas": lambda table: table,
    "whole floats": lambda table: table.astype({"a": float, "b": "Int64"}),
    "polars": lambda table: pl.DataFrame(table.to_dict("list")),
    "lazy": lambda table: pl.LazyFrame(table.to_dict("list")),
}


@pytest.mark.parametrize("engine", FRAMES)
def test_columns_of_a_data_frame_are_taken_by_their_names(engine):
    ranks = pr.Mallows(list("abcd"), 0.5).rvs(30, np.random.default_rng(1))
    table = pd.DataFrame(ranks, columns=list("abcd"))[list("dbca")].assign(who="x")
    for protocol in (SubRanking(list("abcd"), 4.0), Comparisons(list("abcd"), 4.0, ties=True)):
        found = protocol.simulate(FRAMES[engine](table), np.random.default_rng(2))
        expected = protocol.simulate(ranks, np.random.default_rng(2))
        assert found["answer"].tolist() == expected["answer"].tolist()


def test_a_population_is_of_the_same_people_in_any_order_of_columns():
    protocol, reports = AdaptiveKwikSort(list("abc"), 4.0), []
    ranks = pr.Mallows(list("abc"), 0.5).rvs(40, np.random.default_rng(1))
    table = pd.DataFrame(ranks, columns=list("abc"))
    queries = Curator(protocol, 30).next_queries(20)
    for given in (ranks, table, table[list("cab")]):
        people = Population(protocol, given, np.random.default_rng(2))
        reports.append(people.answer(queries)["answer"].tolist())
    assert reports[0] == reports[1] == reports[2]


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (lambda table: table.rename(columns={"c": "see"}), ValueError, "no column 'c'. Give its"),
        (lambda table: table.set_axis(range(3), axis=1), ValueError, "no column 'a'. Give its"),
        (lambda table: table.astype(str), TypeError, "must hold numbers in the column of every"),
        (lambda table: table.replace(3, np.nan), ValueError, "must be whole numbers in a data"),
        (lambda table: table - 1, ValueError, "each of the ranks 1 to 3 once in every row"),
        (lambda table: table["a"], ValueError, "must be whole numbers in a data"),
    ],
)
def test_other_frames_are_refused(spoil, error, words):
    table = pd.DataFrame([[1, 2, 3], [3, 1, 2]], columns=list("abc"))
    with pytest.raises(error, match=words) as caught:
        SubRanking(list("abc"), 1.0).simulate(spoil(table), np.random.default_rng(1))
    assert str(caught.value).count(". ") <= 2
