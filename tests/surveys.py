"""Surveys in variants: very different answers with the same public facts.

Each function returns frames by name. All frames of a survey agree in what DESIGN 3 calls public,
and in as little else as can be. They differ in the answers, in which items, categories and levels
occur, in who is in which group, in how many rows a respondent has where only the bound is public,
in ids, the order of rows, the index, types, other columns, and the library that holds the frame.
Every frame keeps every promise, so none may be refused.
"""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import privrank as pr

ITEMS = ("north", "east", "south", "west")
PAIRS = tuple(itertools.combinations(ITEMS, 2))
ROWS, PEOPLE = 40, 12
LEVELS = {"gender": ["F", "M", "X"], "study": ["arts", "distribution"]}
CATEGORIES = ("red", "green", "blue", "none")


GROUPS = tuple(f"group {k}" for k in range(3))
LISTS = dict.fromkeys(("item1", "item2", "winner", "loser"), ITEMS) | LEVELS
LISTS |= {"choice": CATEGORIES, "group": GROUPS}
"""What the questionnaire offers, by the columns that hold it."""


def plain(frame):
    return frame


def indexed(frame):
    """Rows in another order, an index of names, columns nobody asked for, categories met."""
    frame = learned(frame.sample(frac=1.0, random_state=3))
    frame.index = pd.Index([f"row {k}" for k in range(len(frame))], name="secret")
    return frame.assign(remark="a remark", number=7)


def learned(frame):
    """Answers as categoricals of the values met, as pandas makes them."""
    return frame.astype({name: "category" for name in frame.columns if name in LISTS})


def enums(frames):
    """The same frames with answers as polars Enums, which list all that the questionnaire does."""
    found = {}
    for name, frame in frames.items():
        data = undressed(frame)
        kinds = {column: pl.Enum(LISTS[column]) for column in data if column in LISTS}
        owner = {column: str for column in data if column == "respondent"}
        found[name] = polars(data.astype(dict.fromkeys(kinds, object) | owner)).cast(kinds)
    return found


def nullable(frame):
    """Types with a null of their own, and the columns in another order."""
    frame = frame[list(reversed(frame.columns))].convert_dtypes()
    frame.index = range(1000, 1000 + len(frame))
    return frame


def level(frame):
    """The respondent as a level of the index."""
    return frame.set_index("respondent") if "respondent" in frame else indexed(frame)


def polars(frame):
    return pl.from_pandas(frame.reset_index(drop=True))


def lazy(frame):
    return polars(frame).lazy()


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


def named(frame, names):
    """The same frame with other respondents' ids, in another order of first appearance."""
    renamed = names[frame["respondent"].to_numpy()]
    return frame.assign(respondent=renamed)


NAMES = np.array([f"person {(7 * k) % PEOPLE}" for k in range(PEOPLE)], dtype=object)
MIXED = np.array([k if k % 2 else f"number {k}" for k in range(PEOPLE)], dtype=object)


def comparisons(pairs, outcome, **columns):
    first, second = zip(*pairs, strict=True)
    frame = pd.DataFrame({"item1": first, "item2": second, "outcome": outcome})
    return frame.assign(**columns)


def answers(size, seed=1, choices=(1.0, -1.0, np.nan)):
    return np.random.default_rng(seed).choice(choices, size)


def cycled(size):
    return [PAIRS[k % len(PAIRS)] for k in range(size)]


def with_ties(frames, first, ties):
    """Add what only questionnaires with ties allow; `first` has items named in one order."""
    if not ties:
        return frames
    missing = first["outcome"].isna()
    coded = np.resize([1.0, 1.0, 0.0], len(first))
    return {
        **frames,
        "tied": arrow(first.assign(outcome=np.where(missing, np.nan, 0.0))),
        # as if 0 were a loss
        "wins and ties": first.assign(outcome=np.where(missing, np.nan, coded)),
    }


def private_rows(ties=False):
    """One comparison per row; the pairs and what is missing are private."""
    mixed = comparisons(cycled(ROWS), answers(ROWS))
    one = comparisons([("north", "east")] * ROWS, 1.0)
    apart = comparisons([("west", "south"), ("east", "north")] * (ROWS // 2), -1.0)
    silent = mixed.assign(outcome=np.nan)
    frames = {
        "mixed": mixed,
        "one pair": indexed(one),
        "apart": lazy(apart),
        "silent": polars(silent),
        "one answer": nullable(silent.assign(outcome=[1.0] + [np.nan] * (ROWS - 1))),
    }
    return with_ties(frames, mixed, ties)


def asked(counts, seed=2):
    """Who is asked which pairs, respondent k some `counts[k]` of them."""
    rng = np.random.default_rng(seed)
    people = np.repeat(np.arange(len(counts)), counts)
    pairs = [PAIRS[k] for count in counts for k in rng.permutation(len(PAIRS))[:count]]
    return pairs, people


def private_respondents(ties=False, distinct=True):
    """Up to six comparisons per respondent; how many, which and what is missing are private."""
    pairs, people = asked([6] * PEOPLE)
    full = comparisons(pairs, answers(len(pairs)), respondent=people)
    one = comparisons([("north", "east")] * PEOPLE, 1.0, respondent=np.arange(PEOPLE))
    few, who = asked([1 + k % 6 for k in range(PEOPLE)])
    uneven = comparisons(few, -1.0, respondent=who).sample(frac=1.0, random_state=1)
    frames = {
        "full": full,
        "one each": indexed(named(one, MIXED)),
        "uneven": lazy(named(uneven, NAMES)),
        "silent": level(named(full, NAMES).assign(outcome=np.nan)),
    }
    if not distinct:
        same = comparisons([("west", "north")] * 6 * PEOPLE, 1.0, respondent=people)
        frames["same pair"] = nullable(same)
    return with_ties(frames, full.sort_values("item1"), ties)


def counted(people=False):
    """Rows that stand for several comparisons, or none; the total is public, or who is there."""
    if people:
        who = np.arange(PEOPLE)
        full = private_respondents()["full"]
        at_once = comparisons([("east", "west")] * PEOPLE, 1.0, respondent=who)
        return {
            "one by one": full.assign(times=1),
            "at once": indexed(named(at_once, MIXED)).assign(times=6),
            "not at all": lazy(named(at_once, NAMES).assign(times=0)),
            "some": nullable(full.assign(times=np.resize([0, 1, 0, 2, 0, 3], len(full)))),
        }
    mixed = comparisons(cycled(ROWS), answers(ROWS))
    two = comparisons([("north", "east"), ("south", "west")], [-1.0, np.nan])
    return {
        "one by one": mixed.assign(times=1),
        "at once": indexed(two).assign(times=[ROWS, 0]),
        "half unanswered": polars(two.assign(times=[ROWS // 2] * 2)),
        "some": lazy(mixed.assign(times=np.resize([0, 2], ROWS))),
    }


def public(people=None, ties=False, **columns):
    """Who compared which pairs, in which order named, and what is missing are the same."""
    if people is None:
        pairs = [PAIRS[k] for k in np.random.default_rng(8).integers(0, len(PAIRS), ROWS)]
        skeleton = comparisons(pairs, 1.0, **columns)
    else:
        pairs, people = asked([people - k % 3 for k in range(PEOPLE)])
        each = {name: np.asarray(values)[people] for name, values in columns.items()}
        skeleton = comparisons(pairs, 1.0, respondent=people, **each)
    missing = np.arange(len(skeleton)) % 7 == 3

    def frame(outcome):
        return skeleton.assign(outcome=np.where(missing, np.nan, outcome))

    rename = (lambda frame, names: frame) if people is None else named
    frames = {
        "mixed": frame(answers(len(skeleton), choices=(1.0, -1.0))),
        "won": indexed(rename(frame(1.0), NAMES)),
        "lost": lazy(rename(frame(-1.0), NAMES)),
        "lost in part": level(frame(np.resize([1.0, -1.0, -1.0], len(skeleton)))),
    }
    return with_ties(frames, frame(1.0), ties)


def decided(people=False, fixed=False):
    """Winners and losers; the pairs are private unless `fixed`."""
    size = 6 * PEOPLE if people else ROWS
    pairs = np.array(cycled(size))
    columns = {"respondent": np.repeat(np.arange(PEOPLE), 6)} if people else {}

    def frame(table, rows=slice(None)):
        named_columns = {name: values[rows] for name, values in columns.items()}
        return pd.DataFrame({"winner": table[:, 0], "loser": table[:, 1], **named_columns})

    turned = np.where(answers(size, choices=(True, False))[:, None], pairs, pairs[:, ::-1])
    frames = {"turned": frame(turned), "first": indexed(frame(pairs))}
    if fixed:
        return {**frames, "second": polars(frame(pairs[:, ::-1]))}
    if people:
        rows = np.arange(0, size, 6)
        return {**frames, "one each": polars(frame(pairs[rows * 0], rows))}
    return {**frames, "one pair": polars(frame(pairs[:, ::-1][np.zeros(size, dtype=int)]))}


def grouped(people=None, ties=False):
    """Comparisons with covariates under a private design: who is in which group is private."""
    base = private_rows(ties=ties) if people is None else private_respondents(ties=ties)
    size = ROWS if people is None else PEOPLE
    groups = {
        "mixed": (np.arange(size) % 3, np.arange(size) % 2),
        "one group": (np.zeros(size, dtype=int), np.zeros(size, dtype=int)),
        "no women": (1 + np.arange(size) % 2, np.ones(size, dtype=int)),
        "one apart": (np.arange(size) // (size - 1) * 2, np.arange(size) // (size - 1)),
    }
    frames = {}
    for (name, (gender, study)), dress, key in zip(
        groups.items(), (plain, indexed, lazy, nullable), base, strict=False
    ):
        frame = bare(base[key])
        who = np.arange(len(frame)) if people is None else pd.factorize(frame["respondent"])[0]
        frame["gender"] = np.array(LEVELS["gender"])[gender[who]]
        frame["study"] = np.array(LEVELS["study"])[study[who]]
        frames[name] = dress(frame)
    return frames


def bare(frame):
    """The columns of a comparisons frame as a plain pandas frame."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        frame = frame.to_pandas()
    if "respondent" in frame.index.names:
        frame = frame.reset_index()
    columns = [c for c in ("item1", "item2", "outcome", "respondent") if c in frame]
    plain_frame = frame[columns].reset_index(drop=True)
    return plain_frame.astype({"item1": object, "item2": object})


def described(people=None):
    """Comparisons with covariates under a public design: they are public, and the same."""
    size = ROWS if people is None else PEOPLE
    k = np.arange(size)
    return public(
        people,
        gender=np.array(LEVELS["gender"])[k % 3],
        study=np.array(LEVELS["study"])[k % 2],
        age=18.0 + (k * 11) % 47,
    )


def offered(people=True, places=False, number=PEOPLE, silent=False):
    """Answers to publicly offered sets: who is shown which sets is public, and the same.

    Two versions of a questionnaire have three tasks and one; the last respondent has no task. If
    respondents may be `silent`, this is a task without answers, and so are others.
    """
    versions = (("north", "east", "south"), ("east", "south", "west"), ("north", "west", "south"))
    versions = (versions, (("west", "north", "east"),))
    shown = [(k, task) for k in range(number - 1) for task in versions[k % 4 == 3]]
    who = np.array([k for k, _ in shown])
    facts = {"gender": np.array(LEVELS["gender"])[who % 3], "age": 18.0 + who * 11 % 47}
    sets = pd.DataFrame([task for _, task in shown], columns=["show1", "show2", "show3"])
    table = sets.assign(**facts)
    roles = {"best": "place 1", "worst": "place 3"}
    if places:
        roles = {"places": ["place 1", "place 2", "place 3"]}
    if people:
        table = table.assign(respondent=who)
        roles["respondent"] = "respondent"

    def frame(orders, dress=plain, names=None):
        places = np.take_along_axis(sets.to_numpy(), orders, axis=1)
        answered = table.assign(**{f"place {k}": places[:, k - 1] for k in (1, 2, 3)})
        if silent:
            answered.loc[orders[:, 0] == 1, ["place 1", "place 3"]] = None
        if people:  # one without a task
            last = {"respondent": number - 1, "gender": "F", "age": 30.0}
            last |= dict(zip(sets.columns, versions[0][0], strict=True))
            answered = pd.concat([answered, pd.DataFrame([last])], ignore_index=True)
        if people and names is not None:
            answered = named(answered, names).sample(frac=1.0, random_state=4)
        unanswered = "public" if people else "refuse"
        options = {"items": ITEMS, "unanswered": "private" if silent else unanswered, **roles}
        return pr.as_choices(dress(answered), offered=list(sets.columns), **options)

    size = len(sets)
    every = np.array(list(itertools.permutations(range(3))))
    return {
        "mixed": frame(every[np.random.default_rng(12).integers(0, 6, size)]),
        "as shown": frame(every[np.zeros(size, dtype=int)], names=NAMES),
        "turned": frame(every[np.full(size, 5)], polars),
        "cycled": frame(every[np.arange(size) % 6], arrow),
    }


def rankings(n=30, m=4, seed=4):
    """One complete ranking per row."""
    rng = np.random.default_rng(seed)
    names = [*ITEMS, *(f"item {k}" for k in range(4, m))][:m]
    up = np.arange(1, m + 1)

    def frame(table):
        return pd.DataFrame(np.asarray(table), columns=names)

    return {
        "mixed": frame(rng.permuted(np.tile(up, (n, 1)), axis=1)),
        "constant": indexed(frame(np.tile(up, (n, 1)))),
        "halves": lazy(frame([up if k % 2 else up[::-1] for k in range(n)])),
        "turned": arrow(frame([np.roll(up, k) for k in range(n)])),
        "floats": nullable(frame(np.tile(up[::-1], (n, 1))).astype(float)),
    }


def ranking_respondents(people=20, most=3, partial=False):
    """Up to three rankings per respondent; how many is private."""
    rng = np.random.default_rng(5)
    names = np.array([f"person {(7 * k) % people}" for k in range(people)])
    up = np.arange(1.0, 5.0)

    def frame(each, table):
        who = np.repeat(np.arange(people), each)
        data = pd.DataFrame(table(len(who)), columns=list(ITEMS))
        return data.assign(respondent=who)

    def random(size):
        return rng.permuted(np.tile(up, (size, 1)), axis=1)

    one, three = np.ones(people, dtype=int), np.full(people, most)
    uneven = frame(1 + np.arange(people) % most, lambda size: np.tile(up[::-1], (size, 1)))
    frames = {
        "three each": frame(three, random),
        "one each": indexed(frame(one, lambda size: np.tile(up, (size, 1)))),
        "uneven": lazy(named(uneven.sample(frac=1.0, random_state=2), names)),
        "level": level(named(frame(three, random), names)),
    }
    if partial:
        frames["silent"] = arrow(frame(three, lambda size: np.full((size, 4), np.nan)))
        frames["tied"] = nullable(frame(one, lambda size: np.full((size, 4), 2.5)))
    return frames


def partial_rankings(n=30):
    """One ranking per row, which may have ties and missing items."""
    whole = rankings(n)
    mixed = whole["mixed"].astype(float)
    mixed.iloc[::3, 1] = np.nan
    mixed.iloc[1::3, :2] = 1.5
    return {
        "mixed": mixed,
        "silent": pd.DataFrame(np.full((n, 4), np.nan), columns=list(ITEMS)),
        "tied": polars(pd.DataFrame(np.full((n, 4), 2.5), columns=list(ITEMS))),
        "complete": whole["constant"],
    }


def leading_lists(n=30):
    """One list of the leading items per row, of which the first two may share a rank."""
    mixed = rankings(n)["mixed"].astype(float)
    rows = np.arange(n)[:, None] % 3
    mixed = mixed.mask((rows == 0) & (mixed == 4)).mask((rows == 1) & (mixed <= 2), 1.5)
    return partial_rankings(n) | {"mixed": mixed}


def choices(n=40, k=4, people=None):
    """One chosen category per row, or up to three rows per respondent."""
    names = list(CATEGORIES[:k])
    rng = np.random.default_rng(6)

    def frame(codes, who=None):
        data = pd.DataFrame({"choice": np.array(names, dtype=object)[codes]})
        return data if who is None else data.assign(respondent=who)

    if people is None:
        codes = {
            "mixed": rng.integers(0, k, n),
            "one": np.zeros(n, dtype=int),
            "even": np.arange(n) % k,
            "last": np.where(np.arange(n) == 7, 0, k - 1),
        }
        dresses = (plain, indexed, lazy, arrow)
        return {name: dress(frame(codes[name])) for name, dress in zip(codes, dresses, strict=True)}
    three, uneven = np.repeat(np.arange(people), 3), np.arange(people)
    uneven = np.repeat(uneven, 1 + uneven % 3)
    return {
        "three each": frame(rng.integers(0, k, len(three)), three),
        "one each": indexed(frame(np.zeros(people, dtype=int), np.arange(people))),
        "uneven": lazy(frame(np.full(len(uneven), k - 1), uneven[::-1])),
        "level": level(frame(three % k, three)),
    }


def counts(total=40, k=4):
    """Counts by category of the same sum."""
    names = CATEGORIES[:k]
    one = [total] + [0] * (k - 1)
    even = [total // k] * k
    uneven = [1] * (k - 1) + [total - k + 1]
    return {
        "one": dict(zip(names, one, strict=True)),
        "even": pd.Series(even, index=list(names)),
        "uneven": uneven,
        "unlisted": {names[-1]: total},
    }


def in_groups(frames, sizes, respondent=False):
    """Two or more groups of public sizes; who is in which group of units is public, too."""
    found = {}
    for name, frame in frames.items():
        dress = polars if isinstance(frame, pl.LazyFrame) else plain
        data = undressed(frame)
        if respondent:
            person = pd.factorize(data["respondent"], sort=True)[0]
        else:
            person = np.arange(len(data))
        label = np.repeat([f"group {k}" for k in range(len(sizes))], sizes)
        found[name] = dress(data.assign(group=label[person]))
    return found


def secret_groups(frames, respondent=False):
    """Three groups of private sizes, some of them empty."""
    found = {}
    shares = itertools.cycle(((0.5, 0.5, 0), (0.9, 0.05, 0.05), (0, 1, 0), (0.3, 0.3, 0.4)))
    for (name, frame), share in zip(frames.items(), shares, strict=False):
        data = undressed(frame)
        units = data["respondent"].nunique() if respondent else len(data)
        sizes = np.diff(np.rint(np.cumsum(share) * units).astype(int), prepend=0)
        (found[name],) = in_groups({name: data}, sizes, respondent).values()
    return found


def paired(n=12, chosen=False):
    """Two samples of the same respondents, who answered once in each; who they are is public."""
    found, who = {}, np.array([f"person {k}" for k in range(n)])
    made = choices(2 * n) if chosen else rankings(2 * n)
    for turn, (name, frame) in enumerate(made.items()):
        data = undressed(frame).assign(respondent=np.append(who, np.roll(who, turn)))
        data["group"] = np.repeat(["group 0", "group 1"], n)
        parts = data.iloc[:n], data.iloc[n:].drop(columns="group")
        found[name] = data if chosen else (parts[0].drop(columns="group"), parts[1])
    return found


def undressed(frame):
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame.to_pandas()
    if isinstance(frame, pa.Table):
        return frame.to_pandas()
    return frame.reset_index() if "respondent" in frame.index.names else frame
