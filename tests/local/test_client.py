"""The respondent's device: what it needs and refuses, and faults that enumeration finds."""

import copy
import dataclasses
import json
import math
import pickle
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from enumerating import distribution, exp, light, loss, rankings, reports

import privrank as pr
from privrank.local import (
    CapBorda,
    Client,
    Comparisons,
    DuchiBall,
    PairBits,
    RandomPairs,
    SubRanking,
    protocol_from_json,
)
from privrank.local.protocols import SubsetResponse, secrets

ROOT = Path(__file__).parents[2]
ITEMS = ("tea", "coffee", "milk", "water")

DEVICE = """
import sys
import numpy

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {"privrank", "numpy", *sys.stdlib_module_names}:
            raise ImportError(name)

sys.meta_path.insert(0, Nothing())
from privrank.local.client import Client
for text in sys.stdin.read().splitlines():
    client = Client.from_json(text)
    report = client.randomize(list(client.protocol.items))
print(*(name for name in sys.modules if name.startswith("privrank.")))
"""


def device(*protocols):
    text = "\n".join(protocol.to_json() for protocol in protocols)
    run = subprocess.run(
        [sys.executable, "-c", DEVICE], input=text, capture_output=True, text=True, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_a_client_needs_numpy_and_the_standard_library_only():
    kinds = (SubRanking, RandomPairs, PairBits, Comparisons, DuchiBall, CapBorda)
    modules = device(*(kind(ITEMS, 1.0) for kind in kinds))
    rooms = {name.split(".")[1] for name in modules}
    assert rooms == {"local", "privacy", "util"}


def test_a_client_asks_and_answers_once():
    client = Client.from_json(SubRanking(ITEMS, 2.5, 2).to_json())
    (asked,) = client.question
    assert client.question == [asked]
    assert set(asked) < set(ITEMS)
    report = client.randomize(list(asked))
    assert set(report) == {"protocol_id", "assignment", "answer", "report_id"}
    assert report["protocol_id"] == client.protocol.id
    assert client.protocol.question(report["assignment"]) == [asked]
    assert json.loads(json.dumps(report)) == report
    with pytest.raises(RuntimeError, match="would spend epsilon again"):
        client.randomize(list(asked))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_client_that_could_answer_twice_is_not_made(again):
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        again(Client(SubRanking(ITEMS, 2.5, 2)))


def test_replacing_parts_of_a_client_makes_no_second_one():
    with pytest.raises(TypeError, match="dataclass"):
        dataclasses.replace(Client(SubRanking(ITEMS, 2.5, 2)))


def test_a_device_refuses_a_protocol_beyond_its_limit():
    """At epsilon 100 all of 200 reports equalled the ranking."""
    for epsilon, limit in ((100.0, {}), (8.1, {}), (2.0, {"max_epsilon": 1.0})):
        text = SubRanking(ITEMS, epsilon, 2).to_json()
        with pytest.raises(ValueError, match=rf"at epsilon {epsilon:g}, .* max_epsilon=.*\. Ask"):
            Client.from_json(text, **limit)
    assert Client.from_json(SubRanking(ITEMS, 8.0, 2).to_json()).protocol.epsilon == 8.0
    Client.from_json(SubRanking(ITEMS, 9.0, 2).to_json(), max_epsilon=9)
    for wrong in (0, -1, math.nan, math.inf, "8", None, True):
        with pytest.raises(ValueError, match=r"max_epsilon must be a number in \(0, inf\)"):
            Client.from_json(text, max_epsilon=wrong)


def test_a_client_says_what_a_report_may_show():
    said = Client(SubRanking(ITEMS, math.log(9.0), 2)).explain()
    assert "with probability 0.90 it agrees with your ranking" in said
    assert "more than 9 times as probable under your ranking as under any other" in said
    said = Client(RandomPairs(ITEMS, 2 * math.log(9.0), 2)).explain()
    assert "with probability 0.90 each of its 2 parts agrees" in said and "than 81 times" in said


def test_ranks_of_what_is_asked_are_enough():
    protocol = SubRanking(ITEMS, 50.0, 2)
    asked = next(a for a in range(protocol.assignments) if protocol.question(a) == [ITEMS[2:]])
    assert protocol.randomize({ITEMS[2]: 4, ITEMS[3]: 3}, asked)["answer"] == 1


def test_a_refused_ranking_is_no_report():
    client = Client(RandomPairs(ITEMS, 1.0, 2))
    with pytest.raises(ValueError, match="twice"):
        client.randomize(["tea", "tea"])
    assert len(client.question) == 2
    client.randomize(list(ITEMS))


def test_the_items_asked_are_enough_where_the_question_came_first():
    protocol = light(SubRanking(ITEMS, 1.0, 2))
    whole = reports(protocol, 3, [("tea", "coffee", "milk", "water")])
    (asked,) = protocol.question(3)
    assert asked == ("tea", "water")
    assert list(reports(protocol, 3, [asked]).values()) == list(whole.values())
    with pytest.raises(ValueError, match="leaves out"):
        protocol.randomize(asked)  # what is asked is not drawn yet
    for protocol in (DuchiBall(ITEMS, 1.0), CapBorda(ITEMS, 1.0)):
        assert protocol.question(3) == [ITEMS]


def test_a_ranking_is_a_sequence_or_a_mapping():
    protocol = light(SubRanking(ITEMS, 1.0, 4))
    wanted = distribution(lambda: protocol.randomize(["milk", "tea", "water", "coffee"])["answer"])
    ranks = {"tea": 2, "coffee": 4, "milk": 1, "water": 3}
    for same in (("milk", "tea", "water", "coffee"), np.array(["milk", "tea", "water", "coffee"])):
        assert distribution(lambda same=same: protocol.randomize(same)["answer"]) == wanted
    for same in (ranks, {name: np.int64(rank) for name, rank in ranks.items()}):
        assert distribution(lambda same=same: protocol.randomize(same)["answer"]) == wanted
    numbers = light(SubRanking([1, 2, 3], 1.0, 3))
    assert numbers.items == ("1", "2", "3")
    assert numbers.randomize([3, 1, 2])["answer"] in range(6)


def mixture(protocol, orders):
    """The mean of the distributions of reports over some complete orders."""
    found = reports(protocol, 0, orders)
    whole = Counter()
    for table in found.values():
        for outcome, probability in table.items():
            whole[outcome] += probability / len(orders)
    return whole


def test_ties_and_gaps_are_completed_at_random():
    protocol = light(SubRanking(("a", "b", "c"), 1.0, 3, partial="complete"))

    def found(ranking):
        def run():
            report = protocol.randomize(ranking, 0)
            return report["assignment"], report["answer"]

        return distribution(run)

    # two share the first place; two are left out; the same with other ranks; nothing is ranked
    tied = [("a", "b", "c"), ("b", "a", "c")]
    assert found({"a": 1, "b": 1, "c": 2}) == mixture(protocol, tied)
    left = [("c", "a", "b"), ("c", "b", "a")]
    assert found(["c"]) == found({"c": 1}) == found({"c": 7}) == mixture(protocol, left)
    assert found([]) == found({}) == mixture(protocol, rankings("abc"))
    whole = {name: found(ranking) for name, ranking in (("t", {"a": 1, "b": 1}), ("l", ["c"]))}
    assert loss(whole | reports(protocol, 0)) == 3


def test_a_tie_is_an_answer_of_its_own_where_it_may_be():
    protocol = light(Comparisons(("a", "b", "c"), 1.0, ties=True), 5, 1)

    def answers(ranking, asked=0):
        return distribution(lambda: protocol.randomize(ranking, asked)["answer"])

    first, tie = answers({"a": 1, "b": 2, "c": 3}), answers({"a": 1, "b": 1, "c": 3})
    assert first == {0: Fraction(5, 7), 1: Fraction(1, 7), 2: Fraction(1, 7)}
    assert tie == {0: Fraction(1, 7), 1: Fraction(1, 7), 2: Fraction(5, 7)}
    assert answers({"b": 4, "a": 4}) == tie
    assert answers(["a", "b"]) == first
    completing = light(Comparisons(("a", "b", "c"), 1.0, ties=True, partial="complete"), 5, 1)
    found = distribution(lambda: completing.randomize(["c"], 0)["answer"])
    assert found == {0: Fraction(3, 7), 1: Fraction(3, 7), 2: Fraction(1, 7)}


WHOLE = list(ITEMS)


def ranked(*ranks):
    return dict(zip(ITEMS, ranks, strict=True))


BAD_RANKINGS = [
    ([*WHOLE[:3], "cocoa"], ValueError, "not one of the protocol's items"),
    ([*WHOLE[:3], None], ValueError, "not one of the protocol's items"),
    ([*WHOLE, "tea"], ValueError, "twice"),
    (WHOLE[:3], ValueError, r"leaves out items of the question, which has 4"),
    ([], ValueError, "leaves out"),
    (dict.fromkeys(WHOLE, 1), ValueError, "same rank"),
    (ranked(1, 2, 3, 5), ValueError, "has a gap. Give the 4 items the ranks 1 to 4"),
    (ranked(0, 1, 2, 3), ValueError, "whole numbers from 1"),
    (ranked(1, 2, 3, 4.0), ValueError, "whole numbers from 1"),
    (ranked(1, 2, 3, None), ValueError, "whole numbers from 1"),
    ("tea", TypeError, "sequence of items, best first, or a mapping"),
    (7, TypeError, "got int"),
    (None, TypeError, "got NoneType"),
    (set(WHOLE), TypeError, "got set"),
    (np.array([WHOLE]), TypeError, "got ndarray"),
]


@pytest.mark.parametrize("ranking, kind, words", BAD_RANKINGS)
def test_a_bad_ranking_is_refused_in_a_sentence(ranking, kind, words):
    for protocol in (SubRanking(ITEMS, 1.0), DuchiBall(ITEMS, 1.0), CapBorda(ITEMS, 1.0)):
        with pytest.raises(kind, match=words) as caught:
            protocol.randomize(ranking)
        assert str(caught.value).startswith("ranking ") and str(caught.value).count(".") <= 3
        assert "cocoa" not in str(caught.value)


BAD_PROTOCOLS = [
    (lambda: SubRanking(ITEMS, 0), r"epsilon must be a number in \[1e-09, 100\]"),
    (lambda: SubRanking(ITEMS, -1.0), "epsilon must be a number in"),
    (lambda: SubRanking(ITEMS, math.nan), "epsilon must be a number in"),
    (lambda: SubRanking(ITEMS, 101), "epsilon must be a number in"),
    (lambda: SubRanking(ITEMS, -math.inf), "epsilon must be a number in"),
    (lambda: SubRanking(ITEMS, math.inf), "epsilon must be a number in .*, got inf"),
    (lambda: SubRanking(ITEMS, "1"), "a number in .*, got '1'"),
    (lambda: SubRanking(ITEMS, True), "a number in .*, got True"),
    (lambda: SubRanking(("tea",), 1.0), "items must hold at least two"),
    (lambda: SubRanking(("tea", "tea"), 1.0), "items must be distinct"),
    (lambda: SubRanking("tea", 1.0), "items must be a sequence"),
    (lambda: SubRanking(("tea", "\ud800"), 1.0), "items must be text, and has half of a surrogate"),
    (lambda: SubRanking(ITEMS, 1.0, 5), "size must be between 2 and 4, got 5"),
    (lambda: SubRanking(ITEMS, 1.0, 1), "size must be between 2 and 4, got 1"),
    (lambda: SubRanking(range(20), 1.0, 9), "size must be between 2 and 8, got 9"),
    (lambda: SubRanking(ITEMS, 1.0, 2.0), "size must be an integer"),
    (lambda: SubRanking(range(3000), 1.0, 7), "more subsets than 63 bits"),
    (lambda: SubRanking(ITEMS, 1.0, partial="drop"), "partial must be one of"),
    (lambda: RandomPairs(ITEMS, 1.0, 0), "pairs must be between 1 and 6, got 0"),
    (lambda: RandomPairs(ITEMS, 1.0, 7), "pairs must be between 1 and 6, got 7"),
    (lambda: RandomPairs(range(20), 1.0, 63), "pairs must be between 1 and 62"),
    (lambda: RandomPairs(ITEMS, 1.0, 1, "gauss"), "method must be one of"),
    (lambda: PairBits(ITEMS, 1.0, 3), "pairs must be between 1 and 2, got 3"),
    (lambda: PairBits(ITEMS, 1.0, "some"), "pairs must be an integer"),
    (lambda: PairBits(range(130), 1.0, "all"), "needs at most 125 items, got 130"),
    (lambda: PairBits(ITEMS, 1.0, 1, "private"), "pairs= is for public pairing"),
    (lambda: PairBits(ITEMS, 1.0, pairing="none"), "pairing must be one of"),
    (lambda: Comparisons(ITEMS, 1.0, ties="yes"), "ties must be True or False"),
    (lambda: CapBorda(("tea", "milk"), 1.0), "items must be three or more"),
    (lambda: CapBorda(ITEMS, 1.0, candidates=1), "candidates must be between 2 and 4096"),
    (lambda: CapBorda(ITEMS, 1.0, candidates=8, cap=8), "cap must be between 1 and 7, got 8"),
]


@pytest.mark.parametrize("make, words", BAD_PROTOCOLS)
def test_a_bad_protocol_is_refused_in_a_sentence(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def changed(**settings):
    return json.dumps({**json.loads(SubRanking(ITEMS, 1.0).to_json()), **settings})


def edited(part, by):
    text = SubRanking(ITEMS, 1.0, 2).to_json()
    assert text.count(part) == 1
    return text.replace(part, by)


BAD_TEXTS = [
    (edited('"size"', '"size": 3, "size"'), "text repeats a member"),
    (edited('"epsilon"', '"epsilon": 100.0, "epsilon"'), "text repeats a member"),
    (edited('"epsilon"', '"epsilo\\u006e": 100.0, "epsilon"'), "text repeats a member"),
    (edited("1.0", "1"), "or writes a number differently"),
    (edited('"size": 2', '"size": null'), "or writes a number differently"),
    (edited("tea", "t\\u0065a").encode(), "text must be the JSON of a protocol"),
    ("nothing", "text must be the JSON of a protocol"),
    ("[1, 2]", "text must be the JSON of a protocol"),
    ("{}", "text must be the JSON of a protocol"),
    (None, "text must be the JSON of a protocol"),
    ("[" * 100_000, "text must be the JSON of a protocol"),
    (changed(version=2), "must be a protocol of version 1"),
    (changed(version=True), "must be a protocol of version 1"),
    (changed(epsilon=10**400), "epsilon must be a number in"),
    (changed(kind="telepathy"), "the kind and the settings"),
    (changed(kind=["sub-ranking"]), "the kind and the settings"),
    (changed(epsilon=2.0), "do not match its id"),
    (changed(size=3), "do not match its id"),
    (changed(items=list(reversed(ITEMS))), "do not match its id"),
    (changed(id="0" * 16), "do not match its id"),
    (changed(epsilon=-1.0), "epsilon must be a number in"),
    (changed(pairs=2), "exactly the kind and the settings of a protocol"),
    (json.dumps({"privrank": "local protocol", "version": 1, "kind": "sub-ranking"}), "settings"),
]


@pytest.mark.parametrize("text, words", BAD_TEXTS)
def test_a_bad_text_is_no_protocol(text, words):
    with pytest.raises(ValueError, match=words):
        protocol_from_json(text)


def test_a_text_may_be_written_in_other_ways_that_change_nothing():
    protocol = SubRanking(("maté", "tea "), 1.0, 2)
    content = json.loads(protocol.to_json())
    backwards = json.dumps(dict(reversed(content.items())), indent=1)
    for text in (protocol.to_json(), backwards, json.dumps(content, separators=(",", ":"))):
        assert protocol_from_json(text.replace("tea", "t\\u0065a")) == protocol


def test_other_arguments_are_checked():
    protocol = SubRanking(ITEMS, 1.0)
    with pytest.raises(ValueError, match="assignment must be between 0 and 5, got 6"):
        protocol.randomize(WHOLE, 6)
    with pytest.raises(TypeError, match="assignment must be an integer"):
        protocol.randomize(WHOLE, "0")
    with pytest.raises(TypeError, match=r"protocol must be of the kind Protocol, got str"):
        Client(protocol.to_json())
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got int"):
        protocol.simulate(np.array([[1, 2, 3, 4]]), 1)
    rng = np.random.default_rng(0)
    for ranks in ([[1, 2, 3]], [1, 2, 3, 4], [[1.0, 2.0, 3.0, 4.0]], "ranks"):
        with pytest.raises(ValueError, match="a column for each of the 4 items"):
            protocol.simulate(ranks, rng)
    for ranks in ([[1, 2, 3, 3]], [[0, 1, 2, 3]], [[1, 2, 3, 5]], [[1, 1, 4, 4]]):
        with pytest.raises(ValueError, match="each of the ranks 1 to 4 once in every row"):
            protocol.simulate(np.array(ranks), rng)
    assert (
        len(Comparisons(ITEMS, 1.0, ties=True).simulate(np.ones((3, 4), int), rng)["answer"]) == 3
    )
    for given in ([6], [-1], [0, 1], [0.0], ["0"], 0, [[0]], [10**30]):
        with pytest.raises(ValueError, match="assignments must be whole numbers, one for each"):
            protocol.simulate(np.array([[1, 2, 3, 4]]), rng, given)
    empty = np.empty((0, 4), dtype=int)
    for each in (protocol, DuchiBall(ITEMS, 1.0), CapBorda(ITEMS, 1.0), RandomPairs(ITEMS, 1.0, 3)):
        assert {len(column) for column in each.simulate(empty, rng).values()} == {0}
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = pr.local.Nothing


# Faults that each spend too much, or waste what they could spend: the measure above finds them.


class FullDigits(RandomPairs):
    """Every pair at the full epsilon."""

    @property
    def response(self):
        return SubsetResponse.at(Fraction(self.epsilon), 2)


class Steered(SubRanking):
    """Asks about what the respondent likes best."""

    def randomize(self, ranking, assignment=None, report_id=None):
        asked = self.asked(np.arange(self.assignments))[:, 0]
        wanted = [self.items.index(ranking[0]) in places for places in asked]
        return super().randomize(ranking, wanted.index(True))


class HalfSent(Comparisons):
    """0 and 1 handed to a randomiser of numbers from -1 to 1: 0 becomes a fair coin."""

    def favoured_answers(self, ranks, assignments):
        before = super().favoured_answers(ranks, assignments)
        return np.where(before == 1, secrets.randbelow(2), before)


def ratio(protocol):
    response = protocol.response
    return Fraction(response.favoured_weight, response.other_weight)


def test_every_digit_at_the_full_epsilon_is_found_out():
    honest, faulty = RandomPairs(ITEMS, 1.0, 3), FullDigits(ITEMS, 1.0, 3)
    assert ratio(honest) ** 3 <= exp(1.0)
    assert ratio(faulty) ** 3 > exp(2.9)
    # the exponent is that of what is drawn
    assert loss(reports(light(RandomPairs(("a", "b", "c"), 1.0, 3)), 0)) == 27


def test_an_assignment_that_depends_on_the_answer_is_found_out():
    assert loss(reports(light(SubRanking(("a", "b", "c"), 1.0, 2)))) == 3
    assert loss(reports(light(Steered(("a", "b", "c"), 1.0, 2)))) is None


def test_zero_and_one_in_a_randomiser_of_minus_one_to_one_waste_half_of_epsilon():
    assert loss(reports(light(Comparisons(("a", "b"), 1.0)))) == 3
    # log((e^epsilon + 1) / 2) is about half of epsilon, and so is the gain
    assert loss(reports(light(HalfSent(("a", "b"), 1.0)))) == 2


def test_a_client_shows_its_protocol():
    protocol = SubRanking(["a", "b", "c", "d"], 1.0, 2)
    assert repr(Client(protocol)) == "<Client of SubRanking: 4 items, epsilon 1>"
