"""Rankings and choices: bad input is refused in one sentence, good input is alike in any frame."""

import copy
import operator
import pickle
import re
from collections import Counter

import dask.dataframe
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from scipy.stats import chisquare
from sentences import refused_briefly

import privrank as pr
from privrank.encode.samples import encode_choices, encode_counts, encode_data, encode_rankings
from privrank.mechanisms import samples as mechanism
from privrank.privacy.draws import draw_bit
from privrank.privacy.noise import DiscreteLaplace, draw_one_each

CANARY = "CANARY"
GOOD = pd.DataFrame(
    {
        "who": [f"{CANARY}-{k}" for k in (0, 0, 1, 2)],
        "a": [1, 2, 3, 1],
        "b": [2, 3, 1, 2],
        "c": [3, 1, 2, 3],
    }
)
CHOICES = pd.DataFrame({"who": GOOD["who"], "choice": ["x", "y", "x", "z"]})


def ranks(frame=GOOD, **arguments):
    return pr.UniformityTest(frame, **{"items": list("abc")} | arguments)


def people(frame=GOOD, **arguments):
    return ranks(frame, **{"respondent": "who", "max_rows": 2} | arguments)


def formula(text="choice ~ 1", frame=CHOICES, **arguments):
    if "choice" in text:
        arguments = {"categories": list("xyzw")} | arguments
    return pr.UniformityTest.from_formula(text, frame, **arguments)


def counts(table, categories=("x", "y")):
    return pr.UniformityTest.from_counts(table, categories)


def cell(value, column="a"):
    """The good frame with its first cell of a column changed."""
    frame = GOOD.astype({column: object})
    frame.loc[0, column] = value
    return frame.infer_objects()


BAD = {
    "a tie": (lambda: ranks(cell(2)), ValueError, ["1 to 3 at most once", "ties='complete'"]),
    "half ranks": (lambda: ranks(cell(1.5)), ValueError, ["tie", "ties='complete'"]),
    "incomplete": (lambda: ranks(cell(np.nan)), ValueError, ["incomplete", "missing="]),
    "a score": (lambda: ranks(cell(7731)), ValueError, ["1 (best) to 3", "Recode"]),
    "rank zero": (lambda: ranks(cell(0)), ValueError, ["1 (best) to 3"]),
    "infinite": (lambda: ranks(cell(np.inf)), ValueError, ["1 (best) to 3"]),
    "words": (lambda: ranks(cell(CANARY)), TypeError, ["'a'", "1 (best) to 3", "as_rankings"]),
    "booleans": (lambda: ranks(GOOD.assign(a=True)), TypeError, ["'a'", "ranks"]),
    "an item that is no column": (
        lambda: ranks(items=["a", "b", "d"]),
        ValueError,
        ["'d'", "items="],
    ),
    "too few columns named": (lambda: ranks(items=["a", "b"]), ValueError, ["1 (best) to 2"]),
    "one item": (
        lambda: pr.UniformityTest(GOOD[["a"]]),
        ValueError,
        ["at least two items", "from_formula"],
    ),
    "an item named twice": (lambda: ranks(items=["a", "a"]), ValueError, ["distinct"]),
    "columns named twice": (
        lambda: pr.UniformityTest(GOOD.set_axis(["who", "a", "a", "c"], axis=1)),
        ValueError,
        ["unique column names"],
    ),
    "the respondent is an item": (
        lambda: ranks(respondent="a"),
        ValueError,
        ["items=", "respondent=", "different"],
    ),
    "no such respondent": (lambda: ranks(respondent="whom"), ValueError, ["'whom'"]),
    "respondent no name": (lambda: ranks(respondent=["who"]), TypeError, ["respondent", "list"]),
    "all columns, with one of words": (
        lambda: pr.UniformityTest(GOOD),
        TypeError,
        ["'who'", "items=[...]"],
    ),
    "no rows": (lambda: ranks(GOOD.head(0)), ValueError, ["at least one row"]),
    "one row": (lambda: ranks(GOOD.head(1)), ValueError, ["at least two units", "got 1"]),
    "one respondent": (lambda: people(GOOD.head(2)), ValueError, ["at least two units"]),
    "too many rows": (lambda: people(max_rows=1), ValueError, ["max_rows=1"]),
    "nobody's row": (lambda: people(cell(None, "who")), ValueError, ["'who'", "every row"]),
    "a list": (lambda: pr.UniformityTest([1, 2]), TypeError, ["data frame", "list"]),
    "names for another array": (
        lambda: ranks(np.array([[1, 2], [2, 1]])),
        ValueError,
        ["2 columns", "has 3 names"],
    ),
    "undeclared categories": (
        lambda: formula(categories=None),
        ValueError,
        ["categories must be declared"],
    ),
    "another category": (
        lambda: formula(categories=["x", "y"]),
        ValueError,
        ["'choice'", "not listed in categories"],
    ),
    "no choice": (
        lambda: formula(frame=CHOICES.assign(choice=CHOICES["choice"].where([True] * 3 + [False]))),
        ValueError,
        ["'choice'", "missing"],
    ),
    "one category": (lambda: formula(categories=["x"]), ValueError, ["at least two"]),
    "no such column": (lambda: formula("chosen ~ 1"), ValueError, ["'chosen'"]),
    "groups": (lambda: formula("choice ~ who"), ValueError, ["'~ 1'", "ClosenessTest"]),
    "an argument of the other kind": (
        lambda: formula("a + b + c ~ 1", GOOD, categories=["a"]),
        TypeError,
        ["respondent"],
    ),
    "negative counts": (lambda: counts({"x": 3, "y": -1}), ValueError, ["counts", "at least 0"]),
    "half counts": (lambda: counts({"x": 3.5, "y": 1}), ValueError, ["whole numbers"]),
    "missing counts": (lambda: counts({"x": 3, "y": np.nan}), ValueError, ["whole numbers"]),
    "counts of what": (
        lambda: counts({"x": 1, "y": 2}, None),
        ValueError,
        ["categories must be declared"],
    ),
    "counts too short": (lambda: counts([1, 2], list("xyz")), TypeError, ["each of the 3"]),
    "counts beyond whole numbers": (
        lambda: counts({"x": 10**20, "y": 3}),
        ValueError,
        ["add up to at most 1,000,000,000,000"],
    ),
    "counts of words": (lambda: counts({"x": CANARY, "y": 1}), TypeError, ["one number for each"]),
    "an undeclared count": (
        lambda: counts({"x": 3, "y": 1}, ["x", "z"]),
        ValueError,
        ["declared categories"],
    ),
    "too few choices": (lambda: counts({"x": 1, "y": 0}), ValueError, ["two units"]),
    "counts no counts": (lambda: counts(3), TypeError, ["counts", "a sequence"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_briefly(case):
    build, kind, words = BAD[case]
    error = refused_briefly(build, kind, words)
    assert CANARY not in str(error) and "7731" not in str(error)
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)


def engines(frame):
    yield "pandas", frame
    yield "nullable", frame.convert_dtypes()
    yield "arrow-backed", frame.convert_dtypes(dtype_backend="pyarrow")
    yield "polars", pl.from_pandas(frame)
    yield "lazy polars", pl.from_pandas(frame).lazy()
    yield "pyarrow", pyarrow.Table.from_pandas(frame, preserve_index=False)
    yield "duckdb", duckdb.from_df(frame)
    yield "dask", dask.dataframe.from_pandas(frame, npartitions=2)


def by_name(part):
    rows = [part.cells[part.person == each].tolist() for each in range(len(part.name))]
    return [(name, str(own)) for name, own in zip(part.name.tolist(), rows, strict=True)]


@pytest.mark.filterwarnings("ignore")
def test_every_engine_encodes_alike():
    frame = GOOD.astype({"who": str})
    seen = set()
    for _, native in engines(frame):
        encoded = encode_rankings(native, items=list("abc"), respondent="who", max_rows=2)
        assert (
            encoded.sample
            == encode_rankings(frame, items=list("abc"), respondent="who", max_rows=2).sample
        )
        # engines may order respondents differently
        seen.add(tuple(sorted(encoded._people.total(by_name, operator.add))))
    assert len(seen) == 1


def test_choices_and_counts_agree():
    column = encode_choices(CHOICES, "choice", categories=list("xyzw"))
    table = encode_counts({"x": 2, "y": 1, "z": 1, "w": 0}, list("xyzw"))
    assert column.sample == table.sample
    np.testing.assert_array_equal(column._rows, table._rows)
    listed = encode_counts([2, 1, 1, 0], list("xyzw"))
    part = encode_counts({"z": 1, "x": 2, "y": 1}, list("xyzw"))
    np.testing.assert_array_equal(listed._rows, table._rows)
    np.testing.assert_array_equal(part._rows, table._rows)
    series = encode_counts(CHOICES["choice"].value_counts(), list("xyzw"))
    np.testing.assert_array_equal(series._rows, table._rows)
    # what nobody chose may be left out, even if that is all but one
    np.testing.assert_array_equal(encode_counts({"z": 4}, list("xyzw"))._rows, [0, 0, 4, 0])
    for counts in ({"z": 4, "v": 1}, pd.Series([2, 2], index=["z", "z"])):
        with pytest.raises(ValueError, match="counts must name declared categories"):
            encode_counts(counts, list("xyzw"))


def test_index_level_array_and_order_of_columns():
    indexed = GOOD.set_index("who")
    one = encode_rankings(indexed, respondent="who", max_rows=2)
    assert one.sample.nobs == 3 and one.sample.unit == "respondent"
    assert encode_rankings(indexed).sample.nobs == 4
    assert encode_rankings(indexed).sample.max_rows == 1
    assert encode_data(indexed).sample.max_rows == 1
    assert encode_data(CHOICES["choice"], items=list("xyzw")).sample.max_rows == 1
    assert encode_choices(CHOICES, "choice", categories=list("xyzw")).sample.max_rows == 1
    array = encode_rankings(indexed.to_numpy())
    assert array.sample.items == ("0", "1", "2")
    np.testing.assert_array_equal(array._rows, indexed.to_numpy())
    swapped = encode_rankings(indexed, items=["c", "a", "b"])
    np.testing.assert_array_equal(
        mechanism.one_row_each(swapped, None)._rows, indexed[["c", "a", "b"]].to_numpy()
    )


@pytest.mark.parametrize(
    "encoded", [encode_rankings(GOOD, items=list("abc")), encode_counts([2, 2], list("xy"))]
)
def test_encoded_samples_are_not_copied_or_shown(encoded):
    assert re.fullmatch(r"<Encoded \w+: \d items, 4 units>", repr(encoded))
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="sensitive"):
            act(encoded)


@pytest.mark.parametrize("rng", [None, np.random.default_rng(5)])
def test_one_row_per_respondent_is_drawn_uniformly_and_independently(rng):
    frame = pd.DataFrame({"who": [0, 0, 1, 1, 1], "a": [1, 2, 1, 2, 1], "b": [2, 1, 2, 1, 2]})
    frame["c"] = 3
    frame.loc[4, ["a", "b", "c"]] = [3, 2, 1]
    encoded = encode_rankings(frame, items=list("abc"), respondent="who", max_rows=3)
    kept = Counter(
        tuple(map(tuple, mechanism.tabulated(mechanism.one_row_each(encoded, rng)).tolist()))
        for _ in range(6000)
    )
    assert len(kept) == 6
    assert chisquare(list(kept.values())).pvalue > 1e-5


def test_choices_of_respondents_are_counted_once_each():
    encoded = encode_choices(
        CHOICES, "choice", categories=list("xyzw"), respondent="who", max_rows=2
    )
    tables = Counter(
        tuple(
            mechanism.tabulated(mechanism.one_row_each(encoded, np.random.default_rng(k))).tolist()
        )
        for k in range(400)
    )
    assert tables.keys() == {(2, 0, 1, 0), (1, 1, 1, 0)}
    assert min(tables.values()) > 140


def test_secure_positions_and_bits_follow_their_distribution():
    sizes = np.repeat([1, 2, 3, 5], 20_000)
    drawn = draw_one_each(sizes, None).reshape(4, -1)
    for size, row in zip((1, 2, 3, 5), drawn, strict=True):
        seen = np.bincount(row, minlength=size)
        assert len(seen) == size and (size == 1 or chisquare(seen).pvalue > 1e-6)
    assert sum(draw_bit(0.3, None) for _ in range(20_000)) == pytest.approx(6000, abs=5.5 * 65)
    assert draw_bit(0.0, None) == 0 and draw_bit(1.0, None) == 1


def test_positions_beyond_the_last_complete_run_are_drawn_again(monkeypatch):
    # of the 2^63 words the last 2^63 mod 3 would favour the first positions
    words = iter([2**63 - 1, 7])
    monkeypatch.setattr(
        "os.urandom", lambda size: (next(words) << 1).to_bytes(8, "little") * (size // 8)
    )
    assert (2**63) % 3 == 2 and draw_one_each(np.array([3]), None).tolist() == [7 % 3]


@pytest.mark.parametrize("scale", [0.0, 0.4, 3.0, 250.0])
def test_tail_of_the_noise_sums_its_mass(scale):
    distribution = DiscreteLaplace(scale)
    span = np.arange(-20_000, 20_001)
    mass = distribution.pmf(span)
    for k in (-300, -3, -1, 0, 1, 2, 40):
        assert distribution.tail(np.array(k)) == pytest.approx(
            mass[span >= k].sum(), rel=1e-9, abs=1e-300
        )
