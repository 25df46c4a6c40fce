"""The page on the format: its vectors against the package, and its client, where node runs."""

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
    Comparisons,
    SubRanking,
    protocol_from_json,
    publicdraws,
    responses,
)
from privrank.local.client import KINDS
from privrank.local.tally import Tally

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "local-format.md").read_text(encoding="utf-8")
VECTORS = json.loads(re.search(r"```json\n(.*?)```", PAGE, flags=re.S)[1])
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
  const p = client.read(task.protocol), line = { assignments: p.assignments };
  line.weights = client.weights(p.epsilon).map(String);
  const places = client.asked(p, task.assignment);
  line.question = places.map((place) => p.items[place]);
  line.favoured = client.favoured(p, places.map((place) => task.ranking[p.items[place]]));
  line.answer = client.answer(client.weights(p.epsilon), line.favoured, BigInt(task.draw));
  line.reports = [...Array(task.reports)].map(() =>
    client.report(task.protocol, task.ranking, task.assignment));
  line.below = String(client.below(BigInt(p.assignments)));
  said.push(line);
}
console.log(JSON.stringify(said));
"""


def kind(vector):
    return json.loads(vector["protocol"])["kind"]


def ranks_of(protocol, ranking):
    return np.array([[ranking[item] for item in protocol.items]])


def test_there_is_a_vector_of_every_kind():
    assert {kind(vector) for vector in VECTORS} == set(KINDS)
    table = PAGE.partition("## How answers are numbered")[2].partition("##")[0]
    assert set(re.findall(r"^\| `([^`]+)` \|", table, flags=re.M)) == set(KINDS)
    drawn = {vector["answer"] == sum(vector["favoured"][0]) for vector in VECTORS}
    assert drawn == {True, False}  # there are answers that agree, and others


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: kind(vector))
def test_a_vector_is_what_the_package_does(vector, monkeypatch):
    protocol = protocol_from_json(vector["protocol"])
    assert protocol.to_json() == vector["protocol"]
    assert [protocol.assignments, protocol.answers] == [vector["assignments"], vector["answers"]]
    response = protocol.response
    weights = response.favoured_weight, response.other_weight
    assert [str(weight) for weight in weights] == vector["weights"]
    assert [list(asked) for asked in protocol.question(vector["assignment"])] == vector["question"]
    codes = np.array([vector["assignment"]])
    favoured = protocol.favoured_answers(ranks_of(protocol, vector["ranking"]), codes)[0]
    assert favoured.tolist() == vector["favoured"]
    draws = iter(vector["draws"])

    def below(total):
        assert total == response.total
        return int(next(draws))

    monkeypatch.setattr(responses, "below", below)
    report = protocol.randomize(vector["ranking"], vector["assignment"], "0" * 32)
    assert report == {
        "protocol_id": json.loads(vector["protocol"])["id"],
        "assignment": vector["assignment"],
        "answer": vector["answer"],
        "report_id": "0" * 32,
    }
    assert next(draws, None) is None


def test_public_draws_are_those_of_the_page():
    table = publicdraws._quantiles().astype("<i2").tobytes()
    assert hashlib.sha256(table).hexdigest() in PAGE
    order = " ".join(map(str, publicdraws.permutation(1, 10)))
    assert f"P(1, 10) = {order}." in PAGE


# --- the client in JavaScript ---


def javascript(tasks, folder):
    (folder / "client.mjs").write_text(CLIENT, encoding="utf-8")
    (folder / "device.mjs").write_text(DEVICE, encoding="utf-8")
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
    assert 20 < len(CLIENT.splitlines()) < 70
    assert max(map(len, CLIENT.splitlines())) <= 100


@with_node
def test_the_client_does_what_the_vectors_say(tmp_path):
    vectors = [vector for vector in VECTORS if kind(vector) in IN_JAVASCRIPT]
    tasks = [
        {name: vector[name] for name in ("protocol", "assignment", "ranking")}
        | {"draw": vector["draws"][0], "reports": 1}
        for vector in vectors
    ]
    said = javascript(tasks, tmp_path)
    assert len(said) == len(vectors) >= 4
    for vector, line in zip(vectors, said, strict=True):
        for name in ("assignments", "weights", "answer"):
            assert line[name] == vector[name], name
        assert [line["question"]] == vector["question"]
        assert [[line["favoured"]]] == vector["favoured"]
        assert 0 <= int(line["below"]) < vector["assignments"]


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


@with_node
@pytest.mark.parametrize(
    "change",
    [
        lambda task: task.update(protocol=task["protocol"].replace("1.0", "1.5")),
        lambda task: task.update(protocol=task["protocol"].replace('"version": 1', '"version": 2')),
        lambda task: task["ranking"].pop("water\x7f"),
        lambda task: task["ranking"].update({"tea": 5}),
    ],
)
def test_the_client_refuses(tmp_path, change):
    protocol = SubRanking(ITEMS, 1.0, size=5)
    ranking = {item: place for place, item in enumerate(ITEMS, 1)}
    task = {"protocol": protocol.to_json(), "assignment": 0, "ranking": ranking}
    change(task)
    said = javascript([task | {"draw": "0", "reports": 1}], tmp_path)
    assert "Error: not the protocol" in said or "Error: rank each item once" in said
