"""Archives of results: any change of what they say is refused in one sentence."""

import json

import numpy as np
import pandas as pd
import pytest
from mutating import changed

import privrank as pr
from privrank.release.archived import archive, read_archive

ITEMS = ["a", "b", "c"]
RANKS = pd.DataFrame([[1, 2, 3], [3, 2, 1], [1, 3, 2]] * 20, columns=ITEMS)


def consensus(seed):
    return pr.PrivateRankAggregation(RANKS).fit(1.0, rng=np.random.default_rng(seed))


@pytest.fixture(scope="module")
def result():
    return consensus(1)


def places(value, path=()):
    """The path to everything that an archive holds."""
    if path:
        yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    for name, each in value.items() if isinstance(value, dict) else ():
        yield from places(each, (*path, name))


@pytest.mark.parametrize("read", [pr.from_json, pr.Release.from_json])
def test_a_changed_archive_is_refused(read, result):
    writer = result if read is pr.from_json else result.release
    record = json.loads(writer.to_json())
    for path in places({name: each for name, each in record.items() if name != "check"}):
        for new in (None, -1, "x", [], {}, True, 1e300):
            text = json.dumps(changed(record, path, new))
            if json.loads(text) == record:
                continue
            with pytest.raises(ValueError, match=r"this one was changed. Pass the text as .*\.$"):
                read(text)
    with pytest.raises(ValueError, match="changed"):
        read(json.dumps(record | {"more": 1}))
    with pytest.raises(ValueError, match="changed"):
        read(json.dumps(record | {"check": "0"}))


@pytest.mark.parametrize(
    "text", ["", "5", "null", "[]", "{}", '{"check": 1', None, 5, b"\xff", "[" * 100_000, RANKS]
)
def test_what_is_no_archive_is_refused(text):
    for read in (pr.from_json, pr.Release.from_json):
        with pytest.raises(ValueError, match=r"text must be JSON that to_json\(\) wrote\. .*\.$"):
            read(text)


def test_the_same_numbers_are_the_same_archive(result):
    record = json.loads(result.to_json())
    other = dict(reversed(record.items()))
    # a whole number has no point where other software wrote it
    whole = json.dumps(other, indent=2).replace("1.0,", "1,")
    assert whole != json.dumps(other, indent=2)
    pd.testing.assert_frame_equal(pr.from_json(whole).to_frame(), result.to_frame())


def test_a_record_and_its_archive():
    record = {"a": [1, 2.5, {"b": None}], "c": "text"}
    assert read_archive(archive(record)) == record


def test_pooled_archives_are_checked_as_a_whole_and_one_by_one(result):
    record = json.loads(pr.pool([result, consensus(2)], survey="same").to_json())
    for path, new in ((("settings", "survey"), "different"), (("results", 0, "check"), "0")):
        with pytest.raises(ValueError, match="this one was changed"):
            pr.from_json(json.dumps(changed(record, path, new)))
    inside = changed(record, ("results", 0, "release", "epsilon"), 0.5)
    del inside["check"]
    with pytest.raises(ValueError, match="this one was changed"):
        pr.from_json(archive(inside))


def test_a_bound_by_which_a_guarantee_of_rows_is_converted_is_read_back():
    rows = pr.datasets.load_university()
    fit = pr.PrivateBTL(rows.comparisons, items=rows.items, respondent=None, max_rows=15, ties=True)
    again = pr.from_json(fit.fit(1.0).to_json())
    ranks = rows.rankings().reset_index(drop=True)
    test = pr.UniformityTest(ranks, max_rows=3).fit(1.0)
    assert "epsilon up to 7.5" not in (said := " ".join(str(again.summary()).split()))
    assert "a respondent with up to 15 comparisons has epsilon up to 15" in said
    assert pr.from_json(test.to_json()).release.sample.max_rows == 3
