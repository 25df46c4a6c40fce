"""The page on the format and its vectors: against the package, and its client, where node runs."""

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from privrank.local import (
    AdaptiveKwikSort,
    Client,
    Comparisons,
    SubRanking,
    kinds,
    protocol_from_json,
)
from privrank.local.kinds import KINDS
from privrank.local.tally import Tally

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "local-format.md").read_text(encoding="utf-8")
KIT = json.loads((ROOT / "docs" / "local-vectors.json").read_text(encoding="utf-8"))
VECTORS, REFUSED = KIT["accept"], KIT["refuse"]
CLIENT = re.search(r"```js\n(.*?)```", PAGE, flags=re.S)[1]
IN_JAVASCRIPT = ("sub-ranking", "comparisons", "adaptive")
ITEMS = ("tea", 'the "good" maté', "milk\t", "\U0001f375", "water\x7f")
# Without node the client of the page is not run; the vectors of the page are, in any case.
NODE = shutil.which("node")
with_node = pytest.mark.skipif(NODE is None, reason="node is not installed: its client is not run")

DEVICE = """
import * as client from "./client.mjs";
import { readFileSync } from "node:fs";
const said = [];
for (const task of JSON.parse(readFileSync(0))) {
  const p = client.read(task.protocol, 100), line = { assignments: String(p.assignments) };
  line.weights = client.weights(p.epsilon).map(String);
  const assignment = BigInt(task.assignment), places = client.asked(p, assignment);
  line.question = places.map((place) => p.items[place]);
  line.favoured = client.favoured(p, places.map((place) => task.ranking[p.items[place]]));
  line.answer = client.answer(client.weights(p.epsilon), line.favoured, BigInt(task.draw));
  line.reports = [...Array(task.reports)].map(() =>
    client.report(task.protocol, task.ranking, assignment, task.report_id));
  line.below = String(client.below(p.assignments));
  said.push(line);
}
console.log(JSON.stringify(said));
"""

READER = """
import { read } from "./client.mjs";
import { readFileSync } from "node:fs";
console.log(JSON.stringify(JSON.parse(readFileSync(0)).map((text) => {
  try {
    return (read(text), "accepted");
  } catch (error) {
    return String(error);
  }
})));
"""


def kind(vector):
    return json.loads(vector["protocol"])["kind"]


def ranks_of(protocol, ranking):
    return np.array([[ranking.get(item, 99) for item in protocol.items]])


def test_there_is_a_vector_of_every_kind():
    assert {kind(vector) for vector in VECTORS} == set(KINDS)
    table = PAGE.partition("## 4. Numbering of answers")[2].partition("##")[0]
    assert set(re.findall(r"^\| `([^`]+)` \|", table, flags=re.M)) == set(KINDS)
    drawn = {int(vector["answer"]) == sum(vector["favoured"][0]) for vector in VECTORS}
    assert drawn == {True, False}  # there are answers that agree, and others


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["about"])
def test_a_vector_is_what_the_package_does(vector, monkeypatch):
    protocol = Client.from_json(vector["protocol"]).protocol
    assert json.loads(protocol.to_json()) == json.loads(vector["protocol"])
    numbers = [str(protocol.assignments), str(protocol.answers)]
    assert numbers == [vector["assignments"], vector["answers"]]
    response = protocol.response
    weights = response.favoured_weight, response.other_weight
    assert [str(weight) for weight in weights] == vector["weights"]
    assignment = int(vector["assignment"])
    assert [list(asked) for asked in protocol.question(assignment)] == vector["question"]
    ranks = ranks_of(protocol, vector["ranking"])
    favoured = protocol.favoured_answers(ranks, np.array([assignment]))[0]
    assert favoured.tolist() == vector["favoured"]
    draws = iter(vector["draws"])

    def below(total):
        assert total == response.total
        return int(next(draws))

    monkeypatch.setattr("secrets.randbelow", below)
    report = protocol.randomize(vector["ranking"], assignment, "0" * 32)
    assert report == {
        "protocol_id": json.loads(vector["protocol"])["id"],
        "assignment": assignment,
        "answer": int(vector["answer"]),
        "report_id": "0" * 32,
    }
    assert next(draws, None) is None


@pytest.mark.parametrize("vector", REFUSED, ids=lambda vector: vector["reason"])
def test_the_package_refuses(vector):
    with pytest.raises((TypeError, ValueError)) as caught:
        Client.from_json(vector["protocol"])
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_every_reason_to_refuse_is_given_once():
    for member in ("reason", "protocol"):
        assert len({vector[member] for vector in REFUSED}) == len(REFUSED) > 100
    assert max(int(vector["assignments"]) for vector in VECTORS) > 2**53


def test_public_draws_are_those_of_the_page():
    table = kinds._quantiles().astype("<i2").tobytes()
    assert hashlib.sha256(table).hexdigest() in PAGE
    order = " ".join(map(str, kinds.permutation(1, 10)))
    assert f"P(1, 10) = {order}." in " ".join(PAGE.split())


# --- the client in JavaScript ---


def javascript(tasks, folder, program=DEVICE, client=CLIENT):
    (folder / "client.mjs").write_text(client, encoding="utf-8")
    (folder / "device.mjs").write_text(program, encoding="utf-8")
    run = subprocess.run(
        [NODE, "device.mjs"],
        input=json.dumps(tasks),
        capture_output=True,
        text=True,
        cwd=folder,
        encoding="utf-8",
    )
    return json.loads(run.stdout) if run.returncode == 0 else run.stderr


def test_the_client_is_short():
    assert 20 < len(CLIENT.splitlines()) < 110
    assert max(map(len, CLIENT.splitlines())) <= 100


@with_node
def test_the_client_does_what_the_vectors_say(tmp_path):
    vectors = [vector for vector in VECTORS if kind(vector) in IN_JAVASCRIPT]
    tasks = [
        {name: vector[name] for name in ("protocol", "assignment", "ranking")}
        | {"draw": vector["draws"][0], "reports": 1, "report_id": kind(vector)}
        for vector in vectors
    ]
    said = javascript(tasks, tmp_path)
    assert len(said) == len(vectors) >= 4
    for vector, line in zip(vectors, said, strict=True):
        assert str(line["answer"]) == vector["answer"]
        for name in ("assignments", "weights"):
            assert line[name] == vector[name], name
        assert [line["question"]] == vector["question"]
        assert [[line["favoured"]]] == vector["favoured"]
        assert 0 <= int(line["below"]) < int(vector["assignments"])
        (report,) = line["reports"]
        assert report["assignment"] == vector["assignment"]
        assert report["report_id"] == kind(vector)
        tally = protocol_from_json(vector["protocol"]).tally([report])
        assert tally.assignment.tolist() == [int(vector["assignment"])]


@with_node
@pytest.mark.parametrize("epsilon", [0.0001, 0.7, 2.0, 8.0, 33.3])
def test_other_protocols_names_and_orders(tmp_path, epsilon):
    protocols = [
        SubRanking(ITEMS, epsilon, size=4),
        Comparisons(ITEMS, epsilon, ties=True),
        AdaptiveKwikSort(ITEMS, epsilon, shuffle=3),
    ]
    rng, tasks = np.random.default_rng(2), []
    for protocol in protocols:
        for assignment in range(protocol.assignments):
            ranking = {item: int(k) for item, k in zip(ITEMS, rng.permutation(5) + 1, strict=True)}
            task = {"protocol": protocol.to_json(), "assignment": assignment, "draw": "0"}
            tasks.append(task | {"ranking": ranking, "reports": 0})
    for task, line in zip(tasks, javascript(tasks, tmp_path), strict=True):
        protocol = protocol_from_json(task["protocol"])
        response = protocol.response
        weights = [str(response.favoured_weight), str(response.other_weight)]
        assert line["weights"] == weights
        assert [tuple(line["question"])] == protocol.question(task["assignment"])
        ranks, codes = ranks_of(protocol, task["ranking"]), np.array([task["assignment"]])
        assert [[[line["favoured"]]]] == protocol.favoured_answers(ranks, codes).tolist()


@with_node
def test_reports_of_the_client_are_counted_and_have_the_right_probabilities(tmp_path):
    protocol = SubRanking(ITEMS, 1.0, size=3)
    ranking = {item: place for place, item in enumerate(ITEMS, 1)}
    task = {"protocol": protocol.to_json(), "assignment": 4, "ranking": ranking, "draw": "0"}
    (line,) = javascript([task | {"reports": 4000}], tmp_path)
    tally = Tally.of(protocol, line["reports"])
    assert tally.n == 4000 and not any(tally.rejected.values())
    expected = np.full(6, 4000 * (1 - protocol.response.favoured_probability) / 5)
    expected[line["favoured"]] = 4000 * protocol.response.favoured_probability
    counts = np.zeros(6)
    counts[tally.answer] = tally.count
    assert ((counts - expected) ** 2 / expected).sum() < 25.7  # probability 1e-4 beyond, 5 df


def refused(folder, texts, client=CLIENT):
    """For each text, why the client refuses it, or that it does not."""
    return javascript(texts, folder, READER, client)


@with_node
def test_the_client_refuses_what_the_vectors_say(tmp_path):
    said = refused(tmp_path, [vector["protocol"] for vector in REFUSED])
    for vector, line in zip(REFUSED, said, strict=True):
        # by a check of its own, or by that of JSON, not by an accident
        assert line.startswith(("Error: ", "SyntaxError: ")), vector["reason"]


@with_node
def test_the_client_accepts_the_kinds_that_it_knows(tmp_path):
    said = refused(tmp_path, [vector["protocol"] for vector in VECTORS])
    unknown = "Error: not a kind that this client knows"
    assert said == ["accepted" if kind(vector) in IN_JAVASCRIPT else unknown for vector in VECTORS]


# A check of the client, a line that lacks it, and the text that is accepted without it. The first
# reads epsilon as the page once did: its first occurrence is hashed, and the last one is used.
FAULTS = [
    (
        "decimal(epsilon), size",
        '/"epsilon":([^,}]+)/.exec(written)[1], size',
        "epsilon is repeated: 1 first, then 8, under the id for 1",
    ),
    ("epsilon <= limit", "true", "epsilon is above the limit of 8"),
    ("limit = 8) {\n  const published", "limit = 100) {\n  const published", "epsilon is 100"),
    ("epsilon >= 1e-9", "epsilon > 0", "epsilon is below 1e-9"),
    ("SETTINGS.get(kind)", 'SETTINGS.get(kind) ?? "size"', "kind is unknown"),
    ("assignments < 2n ** 63n", "true", "there are 2^63 assignments or more"),
    ("published.version === 1", "true", "version is 2"),
    ("items.map(visible)", "items", "two items differ in spaces alone"),
    ('["refuse", "complete"].includes(published.partial)', "true", "partial is another word"),
    ("members.length === 8", "true", "a member is added that no kind has"),
    ("Math.min(8, items.length)", "items.length", "size is above 8"),
    ('typeof ties === "boolean"', "true", "ties are a number"),
    ("number < 2n ** 63n", "true", "shuffle is 2^63"),
    ('hashed.digest("hex").slice(0, 16) === id', "true", "the id is that of another protocol"),
]
UNTIGHT = "written === `{${members.map(member)}}`"


@with_node
@pytest.mark.parametrize("check, fault, reason", FAULTS)
def test_a_client_without_a_check_accepts_a_text_that_it_has_to_refuse(
    tmp_path, check, fault, reason
):
    assert CLIENT.count(check) == CLIENT.count(UNTIGHT) == 1
    client = CLIENT.replace(check, fault)
    if reason.startswith("epsilon is repeated"):
        client = client.replace(UNTIGHT, "true")
    (text,) = (vector["protocol"] for vector in REFUSED if vector["reason"] == reason)
    assert refused(tmp_path, [text], client) == ["accepted"]


@with_node
@pytest.mark.parametrize(
    "change",
    [
        lambda task: task["ranking"].pop("water\x7f"),
        lambda task: task["ranking"].update({"tea": 5}),
        lambda task: task["ranking"].update({"tea": 0.5}),
        lambda task: task.update(assignment=1),
        lambda task: task.update(assignment=-1),
    ],
)
def test_the_client_refuses(tmp_path, change):
    protocol = SubRanking(ITEMS, 1.0, size=5)
    ranking = {item: place for place, item in enumerate(ITEMS, 1)}
    task = {"protocol": protocol.to_json(), "assignment": 0, "ranking": ranking}
    change(task)
    said = javascript([task | {"draw": "0", "reports": 1}], tmp_path)
    assert "Error: no assignment of this protocol" in said or "Error: rank each item once" in said


@with_node
def test_the_client_sends_the_id_of_an_adaptive_query_or_nothing(tmp_path):
    protocol = AdaptiveKwikSort(ITEMS, 1.0)
    ranking = {item: place for place, item in enumerate(ITEMS, 1)}
    task = {"protocol": protocol.to_json(), "assignment": 0, "ranking": ranking, "draw": "0"}
    assert "Error: a query of an adaptive protocol" in javascript([task | {"reports": 1}], tmp_path)
