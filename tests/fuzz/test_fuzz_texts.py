"""Texts of all kinds: formulas, protocols, reports and archives, as written, cut, changed, made up.

A changed archive gets a new check, so that what is refused is refused for what it says.
"""

import copy
import json
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from exploring import TAKEN, arguments, explore, mostly, of, settled
from hypothesis import strategies as st
from mutating import with_check
from searching import CANARY, ODD

import privrank as pr
from privrank.local.kinds import protocol_from_json

ITEMS = ["a", "b", "c"]
PLAIN = [None, True, False, 0, 1, -1, 2, 3, 0.5, 1.5, -0.0, 1e300, 5e-324, 10**400, 2**53, 2**63]
PLAIN += [
    "",
    "a",
    "b",
    "x",
    "inf",
    "\ud800",
    "a\nb",
    "laplace",
    [],
    {},
    [[]],
    [0, 0],
    ["a"],
]


FEW = {"items": ITEMS, "respondent": None, "distinct_pairs": False}


def rng(seed=1):
    return np.random.default_rng(seed)


def places(value, path=()):
    """The path to every value of a nested record, to the first three of a list."""
    yield path
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value[:3]) if isinstance(value, list) else inner
    for name, entry in inner:
        yield from places(entry, (*path, name))


@st.composite
def mutated(draw, records, changes=(0, 1, 1, 1, 1, 2, 3)):
    """One of several records, by name, with up to three of its values changed, removed or moved."""
    name = draw(of(*records))
    record = copy.deepcopy(records[name])
    for _ in range(draw(of(*changes))):
        *path, last = draw(st.sampled_from([path for path in places(record) if path]))
        inner = record
        for part in path:
            inner = inner[part]
        how = draw(of("new", "new", "new", "scaled", "removed", "added", "swapped"))
        if how == "removed":
            del inner[last]
        elif how == "scaled" and type(inner[last]) in (int, float):
            with suppress(OverflowError):  # of a whole number beyond all floats
                inner[last] = inner[last] * draw(of(-1, 0, 2, 0.5, 1 + 1e-12, 10**9))
        elif how == "added" and isinstance(inner, list):
            inner.append(copy.deepcopy(inner[last]))
        elif how == "added":
            inner[draw(of("x", "", "link", "values"))] = copy.deepcopy(draw(of(*PLAIN)))
        elif how == "swapped" and isinstance(inner, dict):
            other = draw(st.sampled_from(sorted(inner)))
            inner[last], inner[other] = inner[other], inner[last]
        else:
            inner[last] = copy.deepcopy(draw(of(*PLAIN)))
    return name, record


@st.composite
def cut(draw, text):
    """A text without a part of it, or with another text in its place."""
    start = draw(st.integers(0, len(text)))
    stop = min(len(text), start + draw(of(0, 1, 1, 2, 9, 10**6)))
    return (
        text[:start]
        + draw(of("", "0", '"', "[" * 2000, "NaN", "é", "\0", "9" * 5000))
        + text[stop:]
    )


# --- formulas ---

WORDS = ["a", "b", "g", "age", "first", "item1", "item2", "outcome", "1", "0", "-1", "+", "-", "*"]
WORDS += [
    ":",
    "**",
    "**2",
    "/",
    "|",
    "~",
    "(",
    ")",
    "C(g)",
    "C(",
    "C(g, Sum)",
    "C(g, levels=['u'])",
]
WORDS += ["C(g, levels=['u', 'v'])", "C(g, Treatment('v'))", "C(g, Treatment('w'))", "Q('g')", "Q("]
WORDS += [
    "C(C(g))",
    "C(1)",
    "C(age)",
    "np.log(age)",
    "bs(age, df=3)",
    "center(age)",
    "I(age)",
    "%in%",
]
WORDS += [
    "C(g, levels=range(9))",
    "C(g, 3)",
    "C(g, 1/0)",
    "lambda: 0",
    "g.x",
    "é",
    "'",
    '"',
    "\\",
    "\n",
]
WORDS += [
    "\0",
    "\ud800",
    ",",
    "=",
    "==",
    "[0]",
    "{}",
    "#",
    ";",
    "print",
    "None",
    "True",
    "item 1",
    "$",
]
WORDS += ["C(g, open('x'))", "__import__('os')", "0x", "1e999", "x" * 500, "(" * 200, "a+" * 300]
LONG, GROUPS, AGES = "item1 + item2 + outcome ~", {"g": ["u", "v"]}, {"age": (18, 65)}
FORMULAS = {
    f"{LONG} g": {"levels": GROUPS},
    f"{LONG} C(g) + age": {"levels": GROUPS, "bounds": AGES, "design": "public"},
    f"{LONG} g * age": {"levels": GROUPS, "bounds": AGES, "design": "public", "contest": "first"},
    "item1+item2+outcome ~ 1": {},
    "a + b + c ~ 1": None,
}
TABLE = pd.DataFrame({"item1": ["a", "b"] * 6, "item2": ["b", "c"] * 6, "outcome": [1, -1, -1] * 4})
TABLE = TABLE.assign(g=["u", "v", "v"] * 4, age=[20, 30, 40] * 4, a=1, b=2, c=3)


@st.composite
def formulas(draw):
    """A formula of some words, or a usual one in which some are others, and what it declares."""
    text = draw(of(*FORMULAS))
    facts, words = FORMULAS[text], text.split(" ")
    if draw(of(True, False, False)):
        words = draw(st.lists(of(*WORDS), max_size=9))
    for _ in range(draw(of(0, 0, 1, 1, 2))):
        place = draw(st.integers(0, len(words)))
        words[place : place + draw(of(0, 1, 2))] = [draw(of(*WORDS))]
    if facts and draw(of(True, False, False)):
        facts = draw(
            arguments(
                levels=of(GROUPS, {"g": ["u"]}, {"x": ["u", "v"]}, ["u", "v"], None, ...),
                bounds=of(AGES, {"age": (1, 1)}, {"g": (0, 1)}, {"age": (0, 1e308)}, ...),
                design=of("public", ...),
            )
        )
    # of spaces there is any number, so that there are enough formulas that are taken
    return (" " * draw(st.integers(1, 999))).join(words), facts


# left alone by patsy, or met with errors of its own, once
ONCE = [
    ("C(g, Sum) item1+item2+outcome~1", {}),
    ("item1 + = item2 + outcome ~ = C(g) + age", {}),
    (f"a {LONG} g", {"levels": GROUPS}),
    (f"{LONG} C(g, open('/dev/null'))", {"levels": GROUPS}),
    (f"{LONG} g \n * age", {"levels": GROUPS, "bounds": AGES, "design": "public"}),
]


def test_formulas():
    def fit(case):
        text, facts = case
        budget = pr.Budget(epsilon=1.0)

        def call():
            if facts is None:
                model = pr.PrivateRankAggregation.from_formula(text, TABLE)
            else:
                model = pr.PrivateBTL.from_formula(text, TABLE, **FEW, **facts)
            model.fit(1.0, budget=budget, rng=rng()).to_json()

        return settled(call, budget)

    explore(formulas(), fit, ONCE)


def hypotheses():
    text = st.lists(of("a", "b", "c", "=", ",", "-", "2", "*", "(", ")", "1e999", "é", "x", "'"))
    line = st.tuples(of("", "-2 * ", "1e300 * "), of("a", "b - c", "a + b"), st.floats())
    told = st.lists(line.map("{0[0]}{0[1]} = {0[2]}".format), min_size=1).map(", ".join)
    return mostly(
        st.one_of(text.map(" ".join), told),
        of("a = b", "a = b, b = c", np.eye(3), [[1, -1, 0]], None, 1, [], [0], [[1e999]]),
        2,
    )


def test_hypotheses():
    frame = TABLE.assign(g="u")
    model = pr.PrivateBTL(frame, items=ITEMS, respondent=None, distinct_pairs=False)
    result = model.fit(np.inf)
    explore(hypotheses(), lambda text: settled(lambda: str(result.wald_test(text))))


# --- the local model ---

PROTOCOLS = {
    "sub-ranking": pr.local.SubRanking(ITEMS, 1.0),
    "pairs": pr.local.RandomPairs(ITEMS, 1.0, 2),
    "bits": pr.local.PairBits(ITEMS, 1.0),
    "comparisons": pr.local.Comparisons(ITEMS, 1.0, partial="complete"),
    "adaptive": pr.local.AdaptiveKwikSort(ITEMS, 1.0),
    "vectors": pr.local.DuchiBall(ITEMS, 1.0),
    "totals": pr.local.CapBorda(ITEMS, 1.0),
}
WRITTEN = {name: json.loads(protocol.to_json()) for name, protocol in PROTOCOLS.items()}


@st.composite
def protocols(draw):
    """The text of a protocol and a ranking; the id is mostly the one that its settings have."""
    name, record = draw(mutated(WRITTEN, (0, 0, 0, 1, 2)))
    text = draw(mostly(st.just(json.dumps(record)), cut(json.dumps(WRITTEN[name])), 4))
    names = st.lists(of("a", "b", "c", CANARY, None, 1), max_size=4)
    ranks = st.dictionaries(of("a", "b", "c", CANARY, 1), of(1, 2, 3, 0, ODD, 1.5, None, "1"))
    ranking = draw(
        mostly(of(ITEMS, ["c", "a", "b"]), st.one_of(names, ranks, of(CANARY, *PLAIN)), 2)
    )
    return text, ranking, draw(of(0, 0, 0, 1, None, None, 2, -1, 10**9, 1.5, "0"))


def sealed(text):
    """The text with the id of its settings, where these are a protocol's."""
    try:
        record = json.loads(text)
        kind = type(PROTOCOLS[next(k for k in WRITTEN if WRITTEN[k]["kind"] == record["kind"])])
        settings = {k: record[k] for k in record.keys() - {"privrank", "version", "kind", "id"}}
        return json.dumps({**record, "id": kind(**settings).id})
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration, RecursionError):
        return text


def test_protocols():
    def answer(case):
        text, ranking, assignment = case
        text = sealed(text)

        def call():
            client = pr.local.Client.from_json(text)
            client.explain()
            report = client.randomize(ranking, assignment, "an id")
            tally = client.protocol.tally([report])
            assert tally.n == 1 and protocol_from_json(client.protocol.to_json()) == client.protocol

        return settled(call)

    explore(protocols(), answer)


CELLS = [*PLAIN, ODD, np.nan, 1j, b"0", object(), np.int64(1), pd.NA, pd.NaT, "0", "1"]


@st.composite
def reports(draw):
    name = draw(of(*PROTOCOLS.keys() - {"adaptive"}))
    protocol = PROTOCOLS[name]
    own = {"protocol_id": of(protocol.id), "assignment": of(0, 1), "answer": of(0, 1)}
    cells = {key: mostly(cell, of(*CELLS), 6) for key, cell in own.items()}
    cells["report_id"] = st.one_of(of("one", "two", "one"), st.uuids().map(str), of(*CELLS))
    row = mostly(st.fixed_dictionaries(cells), st.fixed_dictionaries({}, optional=cells), 9)
    rows = draw(st.lists(mostly(row, of(*PLAIN)), max_size=9))
    return name, rows, draw(of("list", "frame", "columns", "one"))


def test_reports():
    def count(case):
        name, rows, form = case

        def call():
            given = rows
            if form != "list" and all(isinstance(row, dict) for row in rows):
                frame = pd.DataFrame(rows, dtype=object)
                with suppress(UnicodeError):  # of pandas, whose text is UTF-8
                    frame = frame.infer_objects()
                given = frame if form == "frame" else frame.to_dict("list")
                given = rows[0] if form == "one" and rows else given
            tally = PROTOCOLS[name].tally(given)
            total = tally.n + sum(tally.rejected.values())
            assert form == "one" or total == len(rows)
            if tally.n:
                pr.PrivateRankAggregation.from_reports(tally).to_json()

        return settled(call)

    explore(reports(), count)


# --- archives ---

RANKS = pd.DataFrame([[1, 2, 3], [3, 2, 1], [1, 3, 2]] * 4, columns=ITEMS)


def saved():
    """The record of a saved result of each kind."""
    formula = "item1 + item2 + outcome ~ g"
    public, groups = FEW | {"design": "public"}, {"levels": {"g": ["u", "v"]}}
    protocol = PROTOCOLS["sub-ranking"]
    rows = protocol.simulate(np.tile(RANKS, (20, 1)), rng())
    tally = protocol.tally(pd.DataFrame(rows))
    fits = {
        "worths": pr.PrivateBTL(TABLE, **FEW).fit(1.0, rng=rng()),
        "gaussian": pr.PrivateBTL(TABLE, **public).fit(1.0, 1e-6, noise="gaussian", rng=rng()),
        "groups": pr.PrivateBTL.from_formula(formula, TABLE, **FEW, **groups).fit(1.0, rng=rng()),
        "non-private": pr.PrivateBTL(TABLE, **FEW).fit(np.inf),
        "top": pr.PrivateTopK(TABLE, 1, **FEW).fit(1.0, rng=rng()),
        "consensus": pr.PrivateRankAggregation(RANKS).fit(1.0, rng=rng()),
        "uniformity": pr.UniformityTest(RANKS).fit(1.0, draws=99, rng=rng()),
        "identity": pr.IdentityTest(TABLE["item1"], [0.3, 0.3, 0.4], categories=ITEMS).fit(
            1.0, draws=99, rng=rng()
        ),
        "closeness": pr.ClosenessTest(RANKS[:6], RANKS[6:]).fit(
            1.0, permutations=19, effect_epsilon=1.0, rng=rng()
        ),
        "reports": pr.PrivateRankAggregation.from_reports(tally),
    }
    large = [pr.PrivateBTL(TABLE, **FEW).fit(4.0, rng=rng(seed)) for seed in (1, 2)]
    texts = {name: fit.to_json() for name, fit in fits.items()}
    texts["pooled"] = pr.pool(large, survey="different").to_json()
    return {name: json.loads(text) for name, text in texts.items()}


@pytest.mark.filterwarnings(
    "ignore::privrank.util.checks.PrivrankWarning", "ignore:The consensus may"
)
def test_archives():
    records = saved()
    for record in records.values():
        del record["check"]

    @st.composite
    def texts(draw):
        name, record = draw(mutated(records))
        text = with_check(record)
        return name, draw(mostly(st.just(text), cut(text), 4))

    def read(case):
        name, text = case

        def call():
            result = pr.from_json(text)
            assert pr.from_json(result.to_json()).to_json() == result.to_json()

        return settled(call, kinds=(ValueError,))

    # what a text says it is was quoted in the refusal, once, of several lines
    once = [
        ("worths", with_check(records["worths"] | said))
        for said in ({"result": "a\nb"}, {"privrank": "9\n9"})
    ]
    explore(texts(), read, once)
    assert read(("worths", with_check(records["worths"]))) == TAKEN
