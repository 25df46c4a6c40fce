"""KwikSort with live respondents: privacy of a whole run, its order, interruptions, bad reports."""

import json
import math
import os
from decimal import Decimal
from fractions import Fraction
from itertools import count, pairwise, permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import privrank as pr
from privrank.consensus.orders import kwiksort
from privrank.consensus.statements import binomial_lower
from privrank.local import (
    AdaptiveKwikSort,
    Client,
    Curator,
    Population,
    SubRanking,
    protocol_from_json,
    protocols,
)
from privrank.local.curator import divided, mean_comparisons
from privrank.release.names import UNPLACED

ABC = ("a", "b", "c")


def people(m, phi, n, seed=1):
    return pr.Mallows(m, phi).rvs(n, np.random.default_rng(seed))


def named(m):
    return [f"item {k}" for k in range(m)]


def rows(reports):
    return pd.DataFrame(reports).to_dict("records")


def report(query, answer):
    return {name: query[name] for name in ("protocol_id", "assignment", "report_id")} | {
        "answer": answer
    }


@pytest.fixture
def same_ids(monkeypatch):
    """Ids of queries that are the same in every run; calling it says which comes next."""

    def begin(start=0):
        numbers = count(start)
        monkeypatch.setattr(
            protocols.secrets, "token_hex", lambda size: f"{7919 * next(numbers):032x}"
        )

    begin()
    return begin


# --- privacy


def transcripts(protocol, respondents):
    """All runs in which everybody answers: the queries and the answers, in order."""
    stack = [(Curator(protocol, respondents).to_json(), ())]
    while stack:
        state, past = stack.pop()
        asked = Curator.from_json(state).next_queries(1)
        if not asked:
            yield past
            continue
        for answer in (0, 1):
            curator = Curator.from_json(state)
            (query,) = curator.next_queries(1)
            curator.receive([report(query, answer)])
            stack.append((curator.to_json(), (*past, (query["assignment"], answer))))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_run_is_private_for_each_respondent(epsilon):
    protocol = AdaptiveKwikSort(named(4), epsilon, shuffle=5)
    response, n = protocol.response, 5
    runs = list(transcripts(protocol, n))
    # what is asked fourth depends on what was answered before
    assert len({run[3][0] for run in runs if len(run) > 3}) > 1
    rankings = np.array([(1, 2, 3, 4), (4, 3, 2, 1), (3, 1, 4, 2)])
    weights = {}
    for pair in range(protocol.assignments):
        favoured = protocol.favoured_answers(rankings, np.full(len(rankings), pair))[:, 0, 0]
        for (k, value), answer in product(enumerate(favoured), (0, 1)):
            weight = response.favoured_weight if value == answer else response.other_weight
            weights[k, pair, answer] = Fraction(weight, response.total)
    ratio, largest = Fraction(response.favoured_weight, response.other_weight), Fraction(0)
    assert math.log(ratio) == pytest.approx(epsilon, rel=1e-14)
    found = {}
    for data in product(range(len(rankings)), repeat=n):
        found[data] = [
            math.prod(weights[who, *step] for who, step in zip(data, run, strict=False))
            for run in runs
        ]
        assert sum(found[data]) == 1
    for data, replaced, other in product(found, range(n), range(len(rankings))):
        neighbour = (*data[:replaced], other, *data[replaced + 1 :])
        largest = max(largest, *map(Fraction.__truediv__, found[data], found[neighbour]))
    assert largest == ratio


def test_a_device_answers_a_query_once_and_needs_its_two_items_only():
    protocol = AdaptiveKwikSort(named(5), epsilon=2.0)
    curator = Curator(protocol, respondents=50)
    (query,) = curator.next_queries(1)
    client = Client.from_json(protocol.to_json())
    asked = query["assignment"], query["report_id"]
    with pytest.raises(ValueError, match="report_id must be given"):
        client.randomize(query["items"], query["assignment"])
    with pytest.raises(TypeError, match="report_id must be a text"):
        client.randomize(query["items"], query["assignment"], 7)
    made = client.randomize(query["items"], *asked)
    assert made["assignment"] == query["assignment"] and made["answer"] in (0, 1)
    with pytest.raises(RuntimeError, match="has made its report"):
        client.randomize(query["items"], *asked)
    assert curator.receive(made) == {"accepted": 1}
    with pytest.raises(ValueError, match="assignment must be given"):
        protocol.randomize(named(5))
    with pytest.raises(ValueError, match="assignment must be given"):
        Client(protocol).randomize(named(5))


# --- the order


def test_rounds_make_the_order_that_kwiksort_makes():
    rng = np.random.default_rng(3)
    for m in (2, 3, 6, 11):
        for _ in range(20):
            pairs = rng.random((m, m))  # with cycles
            pivots = rng.permutation(m)
            groups, seen = (tuple(pivots.tolist()),), []
            while len(groups) < m:
                rows = [(item, pivot) for pivot, *others in groups for item in others]
                seen += [tuple(sorted(row)) for row in rows]
                item, pivot = np.array(rows).T
                groups = divided(groups, pairs[item, pivot] > pairs[pivot, item])
            order = [item for group in groups for item in group]
            assert order == kwiksort(pairs, pivots).tolist()
            assert len(seen) == len(set(seen))  # no pair is compared twice
            assert {tuple(sorted(pair)) for pair in pairwise(order)} <= set(seen)


def test_mean_comparisons_is_that_of_random_pivots():
    def counted(items, pivots):
        if len(items) < 2:
            return 0
        pivot = next(p for p in pivots if p in items)
        below, above = [i for i in items if i < pivot], [i for i in items if i > pivot]
        return len(items) - 1 + counted(below, pivots) + counted(above, pivots)

    for m in (2, 3, 5):
        means = [counted(range(m), pivots) for pivots in permutations(range(m))]
        assert mean_comparisons(m) == pytest.approx(np.mean(means))


def test_clear_majorities_make_their_order():
    m, n = 9, 3000
    protocol = AdaptiveKwikSort(named(m), epsilon=8.0, shuffle=2)
    curator = Curator(protocol, n)
    centre = np.random.default_rng(4).permutation(m) + 1
    ranks = pr.Mallows(m, 0.2, center=centre).rvs(n, np.random.default_rng(5))
    Population(protocol, ranks, np.random.default_rng(6)).run(curator)
    result = curator.result()
    assert curator.finished and result.release.plan.number(UNPLACED) == 0
    assert result.order == tuple(named(m)[k] for k in np.argsort(centre))
    # nearly everybody who could be asked was asked
    assert n - 30 <= result.nobs == curator.handed <= n


def test_pivots_and_hand_outs_are_public():
    protocol = AdaptiveKwikSort(named(12), 1.0, shuffle=7)
    again = protocol_from_json(protocol.to_json())
    assert again == protocol and again.id == protocol.id
    assert sorted(protocol.pivots) == list(range(12))
    assert (AdaptiveKwikSort(named(12), 3.0, shuffle=7).pivots == protocol.pivots).all()
    assert (AdaptiveKwikSort(named(12), 1.0, shuffle=8).pivots != protocol.pivots).any()
    first, second = (Curator(protocol, 300).next_queries(40) for _ in "12")
    ids = {query["report_id"] for query in first + second}
    assert len(ids) == 80 and all(len(name) == 32 for name in ids)
    assert [{**query, "report_id": ""} for query in first] == [
        {**query, "report_id": ""} for query in second
    ]
    asked = [query["assignment"] for query in first]
    assert asked != sorted(asked)
    assert max(map(asked.count, asked)) - min(map(asked.count, asked)) <= 1


def test_fractions_are_unbiased_and_intervals_exact():
    trials, level = 12, 0.9
    hits = np.arange(trials + 1)
    low = binomial_lower(hits, trials - hits, (1 - level) / 2)
    high = 1 - low[::-1]
    for p in np.linspace(0, 1, 41):
        mass = binom.pmf(hits, trials, p)
        assert mass[(low <= p) & (p <= high)].sum() >= level - 1e-12
    protocol = AdaptiveKwikSort(ABC, 1.0)
    p = 0.8  # share of the population with the first item before the second
    seen = 0.5 + protocol.gain * (p - 0.5)
    curator = Curator(protocol, 100)
    expected = 0.0
    for k in hits:
        curator._given[:], curator._first[:] = 0, 0
        curator._given[1], curator._first[1] = trials, k
        result = curator.result()
        pairs = result.pairwise().set_index(["item1", "item2"])
        assert pairs["fraction"].notna().sum() == 1
        row = pairs.loc[("a", "c") if ("a", "c") in pairs.index else ("c", "a")]
        assert row["all_lower"] <= min(max(row["fraction"], 0), 1) <= row["all_upper"]
        expected += binom.pmf(k, trials, seen) * result.fraction_frame().loc["a", "c"]
    assert expected == pytest.approx(p)


# --- interruptions and reports that are none


def steps(protocol, n, resume, seed=11):
    """A run with dropouts and late answers; the state goes through JSON at every step if asked."""
    population = Population(
        protocol, people(7, 0.6, n), np.random.default_rng(seed), dropout=0.2, late=0.2
    )
    curator = Curator(protocol, n)
    while True:
        curator = Curator.from_json(curator.to_json()) if resume else curator
        queries = curator.next_queries(9)
        curator = Curator.from_json(curator.to_json()) if resume else curator
        if not queries:
            break
        for row in rows(population.answer(queries)):
            curator.receive(row)
            curator = Curator.from_json(curator.to_json()) if resume else curator
    curator.receive(population.answer([]))
    return curator


def test_a_run_that_is_killed_at_every_step_ends_where_the_other_does(same_ids):
    protocol = AdaptiveKwikSort(named(7), 3.0, shuffle=1)
    whole = steps(protocol, 250, resume=False)
    same_ids()
    broken = steps(protocol, 250, resume=True)
    assert whole.to_json() == broken.to_json()
    assert str(whole.result().summary()) == str(broken.result().summary())
    assert 0.7 * whole.handed < whole.answered < 0.9 * whole.handed


def test_the_state_holds_counts_and_no_answers():
    protocol = AdaptiveKwikSort(named(7), 3.0)
    curator = Curator(protocol, 200)
    queries = curator.next_queries()
    reports = [report(query, 1) for query in queries]
    unused = json.loads(curator.to_json())["waiting"]
    assert sorted(unused.values()) == sorted(query["assignment"] for query in queries)
    curator.receive(reports)
    text = curator.to_json()
    assert not any(row["report_id"] in text for row in reports)
    state = json.loads(text)
    assert sum(state["counts"][1]) == len(reports)
    # sorted, so that nothing ties an id that is used to a pair or an answer
    assert state["used"] == sorted(unused) and state["waiting"] == {}
    # and yet one that comes again is found
    later = Curator.from_json(text)
    assert later.receive(reports[:3]) == {"accepted": 0, "repeated id": 3}


def test_spoilt_reports_are_counted_and_change_nothing(same_ids):
    protocol = AdaptiveKwikSort(named(6), 2.0, shuffle=3)
    other = AdaptiveKwikSort(named(6), 2.5, shuffle=3)
    n, ranks = 600, people(6, 0.5, 600)
    clean, spoilt = Curator(protocol, n), Curator(protocol, n)
    first, second = (Population(protocol, ranks, np.random.default_rng(8)) for _ in "12")
    rng, expected = (
        np.random.default_rng(9),
        dict.fromkeys(
            ("another protocol", "malformed", "out of range", "repeated id", "not asked for"), 0
        ),
    )
    while queries := clean.next_queries():
        same_ids(spoilt.handed)
        assert spoilt.next_queries() == queries
        good = rows(first.answer(queries))
        assert rows(second.answer(queries)) == good
        clean.receive(good)
        unasked = np.flatnonzero(spoilt._asked == 0)
        bad = {
            "another protocol": [{**good[0], "protocol_id": other.id, "report_id": "f" * 32}],
            "malformed": [{**good[0], "answer": None}, {"answer": 1, "protocol_id": protocol.id}],
            "out of range": [{**good[0], "assignment": 15, "report_id": "e" * 32}],
            "repeated id": [good[0], good[-1]],
            "not asked for": [
                {**good[0], "assignment": int(pair), "report_id": os.urandom(16).hex()}
                for pair in unasked[:1]
            ],
        }
        mixed = [row for spoilt_rows in bad.values() for row in spoilt_rows] + good
        spoilt.receive([mixed[k] for k in rng.permutation(len(mixed))])
        for reason, spoilt_rows in bad.items():
            expected[reason] += len(spoilt_rows)
    assert spoilt.rejected == expected
    assert clean.result().order == spoilt.result().order
    pd.testing.assert_frame_equal(clean.result().pairwise(), spoilt.result().pairwise())
    assert "Local reports rejected" in str(spoilt.result().summary())


def test_a_pair_gets_no_more_answers_than_it_was_handed_out():
    protocol = AdaptiveKwikSort(named(6), 2.0)
    curator = Curator(protocol, 300)
    (query,) = curator.next_queries(1)
    other = (query["assignment"] + 1) % protocol.assignments
    bad = [{**report(query, 0), "report_id": f"{k:032x}"} for k in range(50)]
    bad += [{**report(query, 0), "assignment": other}]
    for one in bad:
        assert curator.receive(one) == {"accepted": 0, "not asked for": 1}
    # of two that differ none counts, and the query is open still
    assert curator.receive([report(query, 0), report(query, 1)]) == {
        "accepted": 0,
        "repeated id": 2,
    }
    assert curator.receive([*bad, report(query, 0)]) == {
        "accepted": 0,
        "repeated id": 2,
        "not asked for": 50,
    }
    assert curator.receive([*bad[:-1], report(query, 0)]) == {"accepted": 1, "not asked for": 50}
    assert curator.receive([report(query, 1)]) == {"accepted": 0, "repeated id": 1}


def test_one_sender_cannot_fill_a_round():
    protocol = AdaptiveKwikSort(named(6), 1.0)
    curator = Curator(protocol, 2000)
    queries = curator.next_queries()
    forged = [{**report(query, 0), "report_id": os.urandom(16).hex()} for query in queries]
    assert curator.receive(forged) == {"accepted": 0, "not asked for": len(queries)}
    honest = [protocol.randomize(named(6), q["assignment"], q["report_id"]) for q in queries]
    assert curator.receive(honest) == {"accepted": len(queries)}


SENSELESS = [
    [1],
    None,
    "text",
    {"answer": 10**400},
    {"assignment": -(10**400)},
    {"report_id": "\ud800"},
    {"answer": Decimal("sNaN")},
    {"report_id": Decimal("sNaN")},
    {"report_id": [1]},
]


def test_nothing_in_a_list_stops_the_count():
    protocol = AdaptiveKwikSort(named(6), 2.0)
    curator = Curator(protocol, 300)
    queries = curator.next_queries(len(SENSELESS))
    rows = [
        {**report(query, 0), **row} if isinstance(row, dict) else row
        for query, row in zip(queries, SENSELESS, strict=True)
    ]
    for row in rows:
        assert curator.receive([row])["accepted"] == 0
    again = Curator.from_json(curator.to_json())
    assert sum(again.rejected.values()) == len(rows)
    assert again.receive([*rows, *(report(query, 0) for query in queries)])["accepted"] == len(rows)


def test_nobody_answers_or_too_few():
    protocol = AdaptiveKwikSort(named(6), 2.0)
    curator = Curator(protocol, 20)
    while curator.next_queries(4):
        pass
    result = curator.result()
    unplaced = result.release.plan.number(UNPLACED)
    assert (curator.handed, result.nobs, unplaced) == (20, 0, 6)
    assert sorted(result.order) == named(6)
    assert "not finished" in str(result.summary())
    # answers that come when nobody is left to ask still divide the lists
    curator = Curator(protocol, 20)
    Population(protocol, people(6, 0.1, 20), np.random.default_rng(1), dropout=0.5).run(curator)
    assert sorted(curator.result().order) == named(6)
    assert 0 < curator.answered < 20


def test_arguments():
    protocol = AdaptiveKwikSort(ABC, 1.0)
    with pytest.raises(ValueError, match="respondents must be at least 3, .* got 2"):
        Curator(protocol, 2)
    with pytest.raises(TypeError, match="protocol must be of the kind AdaptiveKwikSort"):
        Curator(pr.local.SubRanking(ABC, 1.0), 20)
    with pytest.raises(ValueError, match="shuffle must be"):
        AdaptiveKwikSort(ABC, 1.0, shuffle=-1)
    with pytest.raises(ValueError, match="k must be"):
        Curator(protocol, 20).next_queries(0)
    with pytest.raises(ValueError, match="reports must have the columns"):
        Curator(protocol, 20).receive({"answer": [1], "assignment": [1]})
    with pytest.raises(ValueError, match="dropout must be"):
        Population(protocol, people(3, 0.5, 5), np.random.default_rng(1), dropout=1.0)
    few = Population(protocol, people(3, 0.5, 5), np.random.default_rng(1))
    with pytest.raises(ValueError, match="ranks has no column"):
        Population(protocol, pd.DataFrame([[1, 2, 3]]), np.random.default_rng(1))
    with pytest.raises(ValueError, match="people who were not asked before"):
        few.answer(Curator(protocol, 20).next_queries())
    good = json.loads(Curator(protocol, 20).to_json())
    for spoilt in ({"groups": [[0, 0, 1]]}, {"handed": 5}, {"counts": [[9] * 3] * 3}):
        with pytest.raises(ValueError, match="this one was changed"):
            Curator.from_json(json.dumps({**good, **spoilt}))
    with pytest.raises(ValueError, match="text must be JSON that to_json"):
        Curator.from_json("{")
    with pytest.raises(ValueError, match="text must be JSON that to_json"):
        Curator.from_json("[" * 100_000)


def test_archives_that_no_run_has_are_refused():
    protocol = AdaptiveKwikSort(named(5), 1.0)
    curator = Curator(protocol, 100)
    queries = curator.next_queries(30)
    curator.receive([report(query, 0) for query in queries[:20]])
    good = json.loads(curator.to_json())
    assert Curator.from_json(json.dumps(good)).to_json() == curator.to_json()
    for name in good.keys() - {"check"}:
        for value in (None, -5, "x", [1], [[1]], {"x": 1}):
            with pytest.raises(ValueError, match="this one was changed"):
                Curator.from_json(json.dumps({**good, name: value}))
    # what another kind of archive holds
    tally = SubRanking(named(5), 1.0).tally([])
    with pytest.raises(ValueError, match="text must be JSON that to_json"):
        Curator.from_json(tally.to_json())


def test_the_result_is_an_aggregation_of_pairs():
    protocol = AdaptiveKwikSort(named(6), 2.0)
    curator = Curator(protocol, 300)
    Population(protocol, people(6, 0.5, 300), np.random.default_rng(3), late=0.2).run(curator)
    curator.receive([{"protocol_id": "another"}])
    result = curator.result(alpha=0.1)
    assert result.release.local and result.epsilon == 2.0 and result.nobs == curator.answered
    assert result.release.rejected["another protocol"] == 1
    again = pr.from_json(result.to_json())
    assert type(again).__name__ == "AggregationResult"
    assert (again.to_json(), again.alpha) == (result.to_json(), 0.1)
    pd.testing.assert_frame_equal(again.pairwise(), result.pairwise())
    pd.testing.assert_frame_equal(again.to_frame(), result.to_frame())
    text = " ".join(str(result.summary()).split())
    assert "gain" not in text and "gain" in str(again.summary(details=True))
    asked = int((result.release.values["pair_counts"] > 0).sum())
    assert f"{15 - asked} of 15 pairs were never asked, and nothing is stated about them." in text
    with pytest.raises(ValueError, match="adaptive releases no Borda scores, which"):
        result.borda()
    column = str(pr.summary_col([result, again], names=["now", "later"]))
    assert result.order[0] in column
    result.plot_pairwise()
    (axes,) = result.plot().axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [f"{k + 1}  {item}" for k, item in enumerate(result.order)]
    nobody = Curator(protocol, 20).result()
    nobody.plot()
    assert pr.from_json(nobody.to_json()).order == nobody.order
    with pytest.raises(ValueError, match="consensus rankings of local reports"):
        pr.pool([result, nobody], survey="different")
    # a release of votes is read again like any other
    release = pr.Release.from_json(result.release.to_json())
    assert pr.PrivateRankAggregation.from_release(release).order == result.order


def test_the_order_of_all_answers_loses_less_than_the_sort():
    m, n, rng = 8, 1500, np.random.default_rng(12)
    ranks, lost = pr.Mallows(m, 0.7).rvs(n, rng), []
    for shuffle in range(40):
        protocol = AdaptiveKwikSort(named(m), 1.0, shuffle=shuffle)
        curator = Curator(protocol, n)
        Population(protocol, ranks, rng).run(curator)
        whole = [named(m).index(item) for item in curator.result().order]
        lost.append([disagreements(order) for order in (whole, curator.sorted_places())])
    whole, sort = np.mean(lost, axis=0)
    assert whole < sort < 3.0


def disagreements(order):
    """Pairs that an order places otherwise than 0, 1, 2, ..."""
    return sum(first > second for k, first in enumerate(order) for second in order[k + 1 :])
