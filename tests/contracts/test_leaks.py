"""Nothing of the data gets out but the release: canaries, and replay from the archive."""

import copy
import gc
import json
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from searching import CANARY, ODD, has_canary, reachable

import privrank as pr
from privrank.encode.encoded import Encoded, EncodedChoices
from privrank.plans.comparisons import plan_choices
from privrank.privacy.knorm import Radius

# Four items named like anybody's, and a canary in every place a user's frame can hold one.
ITEMS = ("north", "east", "south", "west")
PAIRS = [(a, b) for k, a in enumerate(ITEMS) for b in ITEMS[k + 1 :]]
SEED = 20011998
PEOPLE = 50
PERSON = f"{CANARY}-7731"


def frame_with_canaries():
    rng = np.random.default_rng(5)
    people = np.repeat([f"{CANARY}-{7700 + k}" for k in range(PEOPLE)], len(PAIRS))
    frame = pd.DataFrame(PAIRS * PEOPLE, columns=["item1", "item2"])
    frame.insert(0, "respondent", people)
    frame["outcome"] = rng.choice([1.0, 1.0, 0.0, -1.0, np.nan], len(frame))
    frame["remark"] = f"{CANARY}-remark"
    frame["number"] = ODD
    frame.index = pd.Index([f"{CANARY}-row-{k}" for k in range(len(frame))], name="secret_index")
    frame.attrs["note"] = f"{CANARY}-attribute"
    return frame


FITS = {
    "public": ({"design": "public"}, {}),
    "counts": ({}, {"method": "counts"}),
    "objective": ({}, {"method": "objective"}),
    "win matrix": ({"pair_counts": "release"}, {"method": "counts"}),
    "declared": ({"pair_counts": dict.fromkeys(PAIRS, PEOPLE)}, {}),
    "asserted equal": ({"pair_counts": "equal"}, {"method": "counts"}),
    "asserted proportional": ({"pair_counts": "proportional"}, {"method": "counts"}),
    "non-private": ({"design": "public"}, {"epsilon": np.inf}),
    "non-private, private design": ({}, {"epsilon": np.inf, "dependence": "cluster"}),
}
TOP_FITS = {name: FITS[name] for name in ("public", "counts", "non-private")}
CASES = [("btl", name) for name in FITS] + [("topk", name) for name in TOP_FITS]
CASES += [("choices", name) for name in TOP_FITS]


def choices_of(frame):
    """Best and worst of three items, by the respondents of a frame."""
    first, second = frame["item1"].to_numpy(), frame["item2"].to_numpy()
    third = [next(i for i in ITEMS if i not in pair) for pair in zip(first, second, strict=True)]
    tasks = frame.drop(columns=["item1", "item2", "outcome"]).assign(
        show1=first,
        show2=second,
        show3=third,
        most=np.where(frame["outcome"] > 0, first, second),
        least=third,
    )
    shows = ["show1", "show2", "show3"]
    columns = {"best": "most", "worst": "least", "respondent": "respondent"}
    return pr.as_choices(tasks, offered=shows, items=ITEMS, **columns)


def fitted(kind, name, frame=None, *, rng=True, **extra):
    """A model of the frame with canaries, and its result."""
    options = FITS[name][1]
    arguments = {"items": ITEMS, "respondent": "respondent", "max_rows": 6, "ties": True}
    arguments |= FITS[name][0]
    options = {"epsilon": 1.5, "delta": 1e-6} | options | extra
    frame = frame_with_canaries() if frame is None else frame
    if rng:
        options["rng"] = np.random.default_rng(SEED)
    if kind == "topk":
        options.pop("method", None)
        model = pr.PrivateTopK(frame, 2, **arguments)
    elif kind == "choices":
        facts = {"respondent": "respondent", "max_rows": 6, "design": "public"}
        model = pr.PrivateBTL(choices_of(frame), **facts)
    else:
        model = pr.PrivateBTL(frame, **arguments)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patched:
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        if name == "win matrix":
            # whatever error is predicted for it
            patched.setattr("privrank.btl.plan_fit", win_matrix)
        return model, model.fit(**options)


def win_matrix(request):
    """The best plan of a fit that releases the win matrix."""
    plans = plan_choices(request)
    return next(each for each in plans if each.mechanism == "win matrix")


def texts(result):
    """Everything a result can be turned into, as text."""
    summary = result.summary()
    release = result.release
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        columns = pr.summary_col([result, result])
    return {
        "repr": repr(result),
        "str": str(result),
        "text": summary.as_text(),
        "html": summary.as_html(),
        "latex": summary.as_latex(),
        "csv": summary.as_csv(),
        "markdown": summary.as_markdown(),
        "notebook": result._repr_html_(),
        "json": result.to_json(),
        "frame": result.to_frame().to_csv(),
        "columns": columns.as_text() + columns.as_html() + columns.as_latex(),
        "release repr": repr(release) + str(release),
        "release json": release.to_json(),
        "parts": repr(release.parts) + repr(release.design) + repr(release.design.pairs),
        "pickle": pickle.dumps(result).decode("latin-1"),
        "release pickle": pickle.dumps(release).decode("latin-1"),
        "figure": figure_text(result),
    }


def figure_text(result):
    from matplotlib.text import Text

    return " ".join(text.get_text() for text in result.plot().findobj(Text))


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_no_canary_in_any_output(kind, name):
    _, result = fitted(kind, name)
    for where, text in texts(result).items():
        assert CANARY not in text and "secret_index" not in text, where
        assert str(ODD) not in text and ODD.to_bytes(4, "little").decode("latin-1") not in text
        assert str(SEED) not in text and "MT19937" not in text and "PCG64" not in text, where


def test_the_search_finds_a_canary():
    # the searches above can fail: the canary is found where it is
    text = pickle.dumps(frame_with_canaries()).decode("latin-1")
    assert CANARY in text and ODD.to_bytes(4, "little").decode("latin-1") in text


@pytest.mark.parametrize(("kind", "name"), CASES)
@pytest.mark.parametrize("part", ["model", "result"])
def test_object_graph_leads_to_no_data(kind, name, part):
    frame = frame_with_canaries()
    blocks = [frame["outcome"].to_numpy(), frame["respondent"].to_numpy()]
    model, result = fitted(kind, name, frame)
    result.summary()
    objects = reachable(model if part == "model" else result)
    assert not [item for item in objects if item is frame]
    assert not [item for item in objects if isinstance(item, pd.DataFrame | pd.Series | pd.Index)]
    assert not [item for item in objects if has_canary(item)]
    kinds = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence)
    assert not [item for item in objects if isinstance(item, kinds)]
    # the public distribution of a radius is as long as its noise is wide
    tables = {id(item.weights) for item in objects if isinstance(item, Radius)}
    for array in (item for item in objects if isinstance(item, np.ndarray)):
        assert not any(np.shares_memory(array, block) for block in blocks if block.dtype != object)
        if part == "result":
            # an owner of its memory, which nobody can write to
            assert array.base is None and not array.flags.writeable
            # nothing as long as the list of respondents
            assert array.size < PEOPLE or id(array) in tables
    if part == "result":
        encoded = Encoded | EncodedChoices
        assert not [item for item in objects if isinstance(item, encoded | pr.Budget)]
        assert not [item for item in objects if type(item).__name__.startswith("Private")]


def test_the_walk_finds_what_is_hidden():
    frame = frame_with_canaries()

    class Keeper:
        __slots__ = ("__hidden",)

        def __init__(self, value):
            self.__hidden = value

    assert any(has_canary(item) for item in reachable(Keeper([frame["respondent"].iloc[0]])))
    assert any(item is frame for item in reachable({"a": Keeper(frame)}))
    whole = np.array([1, 2, ODD])
    assert any(has_canary(item) for item in reachable(Keeper(whole[:2])))
    rng = np.random.default_rng(1)
    assert any(isinstance(item, np.random.Generator) for item in reachable(Keeper(rng)))


def test_a_model_survives_its_frame():
    # encode and forget: the frame can be collected while the model lives
    import weakref

    frame = frame_with_canaries()
    alive = weakref.ref(frame)
    model, _ = fitted("btl", "public", frame)
    del frame
    gc.collect()
    assert alive() is None
    assert repr(model) == "<PrivateBTL: 4 items, 50 respondents>"


@pytest.mark.parametrize("kind", ["btl", "topk", "choices"])
def test_an_encoded_prints_its_shape_and_cannot_be_copied(kind):
    model, _ = fitted(kind, "public")
    encoded = model._encoded
    for text in (repr(encoded), str(encoded), f"{encoded}"):
        what = "choices" if kind == "choices" else "comparisons"
        assert text == f"<Encoded {what}: 4 items, 50 units>"
    for call in (pickle.dumps, copy.copy, copy.deepcopy, lambda x: x.__reduce_ex__(2)):
        with pytest.raises(TypeError, match="sensitive"):
            call(encoded)
    for call in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="sensitive"):
            call(model)
    assert not hasattr(encoded, "__dict__") and not hasattr(encoded, "__array__")
    assert not hasattr(model, "__dict__")
    for text in (repr(model), str(model)):
        assert text.startswith("<Private") and "outcome" not in text


def refusals():
    """Calls that fail because of a planted cell, by name."""
    frame = frame_with_canaries()
    people = {"items": ITEMS, "respondent": "respondent", "max_rows": 6}
    mixed = frame.astype({"outcome": object})
    mixed.iloc[3, mixed.columns.get_loc("outcome")] = f"{CANARY}-outcome"
    stranger = frame.astype({"item1": object})
    stranger.iloc[3, stranger.columns.get_loc("item1")] = f"{CANARY}-item"
    nobody = frame.assign(respondent=frame["respondent"].where(frame["respondent"] != PERSON))
    listed = frame.astype({"respondent": object})
    listed.iloc[0, 0] = [f"{CANARY}-list"]
    return {
        "unknown item": (stranger, people),
        "odd outcome": (frame.assign(outcome=float(ODD)), people),
        "outcome of words": (mixed, people),
        "outcome of words, one type": (frame.assign(outcome=f"{CANARY}-outcome"), people),
        "too many rows": (frame, people | {"max_rows": 5}),
        "pair twice": (pd.concat([frame, frame.head(1)]), people | {"max_rows": 7}),
        "itself": (frame.assign(item2="north"), people),
        "ties": (frame, people | {"ties": False}),
        "null respondent": (nobody, people),
        "respondent is a list": (listed, people),
        "items from data": (frame, people | {"items": None}),
        "disconnected": (frame[frame["item1"] == "north"].head(1), people | {"design": "public"}),
        "canaries as items": (frame, people | {"item1": "remark"}),
    }


def arrow_table(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


ENGINES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_arrow(arrow_table(frame)),
    "pyarrow": arrow_table,
}
# a column of mixed types exists in pandas only
MIXED = ("outcome of words", "respondent is a list")


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        (name, engine)
        for engine in ENGINES
        for name in refusals()
        if engine == "pandas" or name not in MIXED
    ],
)
def test_no_canary_in_messages(name, engine):
    frame, arguments = refusals()[name]
    frame = ENGINES[engine](frame)
    with pytest.raises((TypeError, ValueError)) as caught:
        pr.PrivateBTL(frame, **arguments)
    error = caught.value
    while error is not None:
        text = f"{error!s} {error!r} {getattr(error, '__notes__', '')}"
        assert CANARY not in text and str(ODD) not in text
        error = error.__cause__ or error.__context__


def numbers(result):
    """Every number and table a result offers."""
    found = {
        "params": result.params,
        "bse": result.bse,
        "tvalues": result.tvalues,
        "pvalues": result.pvalues,
        "interval": result.conf_int(),
        "interval at another level": result.conf_int(0.2),
        "ranks": result.ranks(),
        "rank sets": result.rank_conf_int(),
        "frame": result.to_frame(),
    }
    if isinstance(result, pr.BTLResult):
        test = result.test_homogeneity()
        found |= {
            "covariance": result.cov_params(),
            "sampling": result.bse_sampling,
            "privacy": result.bse_privacy,
            "pairwise": result.pairwise(),
            "homogeneity": pd.Series([test.statistic, test.pvalue, test.df, test.draws]),
            "settings": pd.Series([result.penalty, result.alpha, result.design_effect]),
        }
        if not result.release.design.scaled_by_sets:
            found |= {"worth": result.worth(), "probabilities": result.probabilities()}
    else:
        found |= {
            "net wins": result.net_wins,
            "separation": pd.Series([result.statistic, result.pvalue, result.k, result.alpha]),
        }
    return found


def same(one, other):
    assert type(one) is type(other)
    expected, found = numbers(one), numbers(other)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        # bit for bit: the same code ran on the same integers
        (pd.testing.assert_frame_equal if value.ndim == 2 else pd.testing.assert_series_equal)(
            found[name], value, check_exact=True, obj=name
        )
    assert str(one.summary()) == str(other.summary())
    assert one.summary().as_html() == other.summary().as_html()
    assert getattr(one, "warnings", ()) == getattr(other, "warnings", ())
    assert one.to_json() == other.to_json()


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_replay_from_the_archive(kind, name):
    # inference runs again on the archived release, so it saw nothing else the first time
    _, result = fitted(kind, name)
    same(pr.from_json(result.to_json()), result)
    same(pickle.loads(pickle.dumps(result)), result)


@pytest.mark.parametrize(
    "options", [{"penalty": 0.5}, {"penalty": 0}, {"alpha": 0.2}, {"solver": "lbfgs"}], ids=str
)
def test_replay_keeps_the_settings(options):
    _, result = fitted("btl", "public", **options)
    same(pr.from_json(result.to_json()), result)


def test_replay_when_the_unpenalised_fit_does_not_exist():
    # the settings that were asked for, not those of the fall-back, have to reach the archive
    frame = frame_with_canaries().assign(outcome=1.0)
    _, result = fitted("btl", "non-private", frame, penalty=0)
    assert result.warnings
    same(pr.from_json(result.to_json()), result)


def equal_release(one, other):
    assert one.to_json() == other.to_json()
    assert (one.mechanism, one.epsilon, one.delta, one.source, one.tie_break) == (
        (other.mechanism, other.epsilon, other.delta, other.source, other.tie_break)
    )
    assert dict(one.plan.settings) == dict(other.plan.settings)
    assert list(one.parts) == list(other.parts)
    for name, part in one.parts.items():
        twin = other.parts[name]
        np.testing.assert_array_equal(part.values, twin.values)
        assert part.values.dtype == twin.values.dtype == np.int64
        assert (part.step, part.distribution, part.sensitivity, part.epsilon) == (
            (twin.step, twin.distribution, twin.sensitivity, twin.epsilon)
        )
    facts = ("items", "nobs", "unit", "max_rows", "distinct_pairs", "ties", "kind")
    for fact in facts:
        assert getattr(one.design, fact) == getattr(other.design, fact)
    if one.design.pairs is None:
        assert other.design.pairs is None
        return
    assert one.design.pairs.origin == other.design.pairs.origin
    for name in ("first", "second", "count"):
        np.testing.assert_array_equal(
            getattr(one.design.pairs, name), getattr(other.design.pairs, name)
        )


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_release_survives_its_archive(kind, name):
    release = fitted(kind, name)[1].release
    text = release.to_json()
    # strict JSON, which has no Infinity
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    equal_release(pr.Release.from_json(text), release)


def test_the_archives_cover_every_origin_and_mechanism():
    releases = [fitted(kind, name)[1].release for kind, name in CASES]
    origins = {None if r.design.pairs is None else r.design.pairs.origin for r in releases}
    assert origins == {None, "observed", "declared", "equal", "proportional", "unknown"}
    assert {r.mechanism for r in releases} == {
        "net wins",
        "wins and losses",
        "win matrix",
        "objective perturbation",
    }
    assert {math.isinf(r.epsilon) for r in releases} == {True, False}
    assert {r.source for r in releases} == {"seeded", "none"}
    assert fitted("btl", "public", rng=False)[1].release.source == "secure"


@pytest.mark.parametrize("kind", ["btl", "topk"])
def test_seeded_noise_says_so_everywhere(kind):
    _, seeded = fitted(kind, "public")
    _, secure = fitted(kind, "public", rng=False)
    assert "do not publish" in str(seeded.summary()) and '"seeded"' in seeded.to_json()
    assert "do not publish" not in str(secure.summary())
    assert "seeded" not in secure.to_json().lower()


def test_the_same_seed_gives_the_same_release_and_another_gives_another():
    first, again = (fitted("btl", "counts")[1].release for _ in range(2))
    other = fitted("btl", "counts", rng=False)[1].release
    assert first.to_json() == again.to_json()
    assert first.to_json() != other.to_json()


def test_ledger_holds_no_data():
    budget = pr.Budget(epsilon=3.0, unit="respondent")
    fitted("btl", "public", budget=budget, delta=0.0)
    for text in (repr(budget), str(budget.summary()), repr(budget.spendings)):
        assert CANARY not in text and str(ODD) not in text
    assert not [item for item in reachable(budget) if has_canary(item)]
    for call in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied"):
            call(budget)
