"""What earlier versions saved is read for good: results of every kind, and their ledgers.

`tests/golden/make_golden.py` has made the files, one folder for each version. What a later version
saves is refused, and the refusal names it.
"""

import json
import math
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mutating import changed, with_check

import privrank as pr
from privrank import archive as archives

GOLDEN = Path(__file__).parents[1] / "golden"
ARCHIVES = sorted(path.relative_to(GOLDEN) for path in GOLDEN.glob("*/*.txt"))
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")

pytestmark = pytest.mark.filterwarnings(
    "ignore::privrank.util.checks.PrivrankWarning", "ignore:The consensus may"
)


def read(path):
    return (GOLDEN / path).read_text(encoding="utf-8").strip()


def same(text, other):
    """Whether two texts say the same, numbers up to what processors and libraries add otherwise."""
    one, two = (NUMBER.findall(each) for each in (text, other))
    near = [math.isclose(float(a), float(b), rel_tol=0.01) for a, b in zip(one, two, strict=False)]
    return NUMBER.sub("#", text) == NUMBER.sub("#", other) and all(near)


def test_every_kind_of_result_is_among_them():
    kinds = {json.loads(read(path.with_suffix(".json"))).get("result") for path in ARCHIVES}
    assert kinds - {None} >= set(archives._REBUILD)
    pooled = [path for path in ARCHIVES if path.stem == "pooled"]
    assert "results" in json.loads(read(pooled[0].with_suffix(".json")))
    assert len(ARCHIVES) >= 20


@pytest.mark.parametrize("path", ARCHIVES, ids=str)
def test_a_saved_result_is_read_and_has_the_numbers_it_had(path):
    text = read(path.with_suffix(".json"))
    result = pr.from_json(text)
    assert same("\n".join("\t".join(row) for row in result.summary().rows).strip(), read(path))
    again, record = json.loads(result.to_json()), json.loads(text)
    assert again.get("release") == record.get("release")


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("*.*.*")), ids=lambda path: path.name)
def test_a_saved_tally_and_its_protocol_are_read(folder):
    protocol = pr.local.protocol_from_json(read(folder / "protocol.json"))
    tally = type(protocol.tally([])).from_json(read(folder / "tally.json"))
    assert tally.protocol == protocol and tally.n == 400 and len(protocol.id) == 16


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/*.ledger")), ids=lambda path: path.name)
def test_a_ledger_is_opened_and_goes_on(path, tmp_path):
    own = shutil.copy(path, tmp_path)
    budget = pr.Budget(own)
    assert (budget.epsilon, budget.delta, budget.unit) == (4.0, 1e-5, "respondent")
    assert budget.label == "drinks" and budget.left == (2.5, 9e-6)
    assert [(line.by, line.epsilon) for line in budget.spendings] == [
        ("PrivateBTL", 1.0),
        ("PrivateBTL", 0.5),
    ]
    budget.reserve("a later fit", 2.5, 0.0, unit="respondent")
    with pytest.raises(pr.BudgetExceeded):
        pr.Budget(own).reserve("one more", 0.1, 0.0, unit="respondent")


# --- a later version ---


def saved(name="worths"):
    record = json.loads(read(Path(pr.__version__) / f"{name}.json"))
    del record["check"]
    return record


@pytest.mark.parametrize("version", ["0.2.0", "1.0", "12.1.dev3"])
def test_a_result_of_a_later_version_is_refused_by_name(version):
    with pytest.raises(ValueError, match=f"written by privrank {version}, but this is"):
        pr.from_json(with_check(saved() | {"privrank": version}))


@pytest.mark.parametrize("version", ["0.1.7", "0.0.9", "0.1"])
def test_results_of_other_versions_are_read(version):
    assert pr.from_json(with_check(saved() | {"privrank": version})).nobs == 20


def test_a_release_of_a_later_form_is_refused_by_name():
    record = changed(saved(), ["release", "schema"], "privrank-release/3")
    with pytest.raises(ValueError, match="of the form 'privrank-release/3', but this version"):
        pr.from_json(with_check(record))
    with pytest.raises(ValueError, match="of the form 'privrank-release/3', but this version"):
        pr.Release.from_json(with_check(record["release"]))


def test_a_ledger_of_a_later_version_is_refused_by_name(tmp_path):
    own = shutil.copy(GOLDEN / pr.__version__ / "drinks.ledger", tmp_path)
    with closing(sqlite3.connect(own)) as connection:
        connection.execute("UPDATE survey SET format = 'privrank ledger 4'")
        connection.commit()
    with pytest.raises(ValueError, match="is a 'privrank ledger 4', and this version"):
        pr.Budget(own)


def test_a_protocol_of_a_later_version_is_refused_by_name():
    record = json.loads(read(Path(pr.__version__) / "protocol.json"))
    with pytest.raises(ValueError, match="a protocol of version 1, and it has another version"):
        pr.local.protocol_from_json(json.dumps(record | {"version": 2}))
