"""Public facts equal, everything visible equal (DESIGN 3): a guard for every public class.

Noise is replaced by constants (:mod:`constantnoise`). Then surveys with the same public facts and
very different answers (:mod:`surveys`) have to look the same in every fit of the catalogue: text,
HTML, LaTeX, JSON, frames, attributes, warnings, errors, the ledger.
"""

import importlib
import inspect
import pkgutil
import typing
import warnings
from dataclasses import replace
from functools import partial

import dask.dataframe
import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from catalogue import CATALOGUE
from constantnoise import SOURCES, VOLUMES, distributions, hold_still
from searching import reachable
from visible import differences, everything, said, stored

import privrank as pr
from privrank import btl, closeness, identity, privacy, uniformity
from privrank.bradley_terry import fit
from privrank.consensus import statements
from privrank.distributions.links import BUILT_IN
from privrank.encode import frames
from privrank.encode.encoded import Encoded, EncodedChoices
from privrank.mechanisms import categories
from privrank.plans import aggregation as rankplan
from privrank.plans import choice, declarations
from privrank.plans import comparisons as plan
from privrank.privacy import draws, noise
from privrank.release import survey as design
from privrank.release.survey import PairCounts

NAMES = list(CATALOGUE)
ERROR = "['error']"
# Of each class of results one fit, of which figures and long simulations are looked at, too.
LONG = (
    "BTL of people, defaults",
    "groups of people, defaults",
    "top of rows, defaults",
    "consensus of rows, method auto",
    "uniform choices, method auto, draws 199",
    "two samples, method auto, permutations 39",
)
ZERO_SUM = "groups of rows, method counts, noise zero-sum-laplace"
UNIFORM = "uniform rankings, method laplace, draws 199"
NON_PRIVATE = {"cluster", "copeland", "local-search"}


def view(case, variant, look, **more):
    """What a user sees who fits this case to this variant of its survey."""
    shown = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            shown["model"] = case.build(variant)
            shown["budget"] = pr.Budget(epsilon=9.0, delta=0.1, unit=unit(case))
            shown["result"] = case.fit(shown["model"], budget=shown["budget"], **more)
        except Exception as error:
            shown["error"] = f"{type(error).__name__}: {error}"
        found = look(shown)
    return found | {"warnings": repr(said(caught))}


def unit(case):
    return "row" if case.arguments.get("respondent") is None else "respondent"


def leaks(case, volume="quiet", *, turn=0, slow=False):
    """Where two variants of a case look different, with both texts; and errors, in any variant.

    All variants are compared by what they store. For the first fit of a model one of them, which
    takes turns, is compared by all that can be called as well.
    """
    first, *others = case.frames
    looks = {stored: others}
    if case.first:
        looks[partial(everything, slow=slow)] = [others[turn % len(others)]]
    with pytest.MonkeyPatch.context() as patch:
        hold_still(patch, volume)
        for look, variants in looks.items():
            seen = view(case, first, look)
            for variant in variants:
                other = view(case, variant, look)
                if errors := [text for text in (seen.get(ERROR), other.get(ERROR)) if text]:
                    return {f"{variant}: error": errors}
                if found := differences(seen, other):
                    return {f"{variant}: {where}": texts for where, texts in found.items()}
    return {}


@pytest.mark.parametrize("name", NAMES)
def test_equal_public_facts_look_equal(name):
    number, volume = NAMES.index(name), list(VOLUMES)[NAMES.index(name) % len(VOLUMES)]
    found = leaks(CATALOGUE[name], volume, turn=number, slow=name in LONG)
    assert not found, list(found.items())[:3]


LAZY = {
    "polars": lambda table: pl.from_arrow(table).lazy(),
    "duckdb": duckdb.from_arrow,
    "dask": lambda table: dask.dataframe.from_pandas(table.to_pandas(), npartitions=3),
}


def as_table(frame):
    """A frame of any engine as an Arrow table, whose columns have one type each."""
    if isinstance(frame, pd.DataFrame):
        frame = frame.reset_index([name for name in frame.index.names if name is not None])
        mixed = [name for name in frame if frame[name].dtype == object]
        texts = {name: frame[name].map(str, na_action="ignore") for name in mixed}
        return pa.Table.from_pandas(frame.assign(**texts), preserve_index=False)
    return nw.from_native(frame).lazy().collect("pyarrow").to_native()


ON_ENGINES = (
    "BTL of rows, defaults",
    "BTL of people, defaults",
    "BTL of people, dependence pairs",
    "BTL of drawn rows, defaults",
    "groups of people, defaults",
    "top of people, defaults",
)


@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
@pytest.mark.parametrize("name", ON_ENGINES)
@pytest.mark.parametrize("engine", LAZY)
def test_equal_public_facts_look_equal_on_engines(engine, name, monkeypatch):
    # frames of a survey are small: batches are smaller, so that there are parts
    monkeypatch.setattr(frames, "BATCH", 50)
    monkeypatch.setattr(frames, "PARTS", 5)
    case = CATALOGUE[name]
    lazy = {variant: LAZY[engine](as_table(frame)) for variant, frame in case.frames.items()}
    found = leaks(replace(case, frames=lazy))
    assert not found, list(found.items())[:3]


def wrap(patch, module, name, change):
    """Hand what `module.name` returns for an encoded data set through `change`, with the data."""
    original = getattr(module, name)

    def leaky(encoded, *arguments, **options):
        return change(encoded, original(encoded, *arguments, **options))

    patch.setattr(module, name, leaky)


def raw_counts(patch):
    def change(encoded, release):
        each = (1.0 + encoded._pairs[2].sum()) / 6.0
        survey = replace(release.survey, pairs=PairCounts.equal(4, each))
        return replace(release, survey=survey)

    wrap(patch, btl, "release_comparisons", change)


def raw_warning(patch):
    def change(encoded, release):
        if abs(encoded._pairs[3]).sum() > 30:
            warnings.warn("answers are one-sided.", pr.PrivrankWarning, stacklevel=2)
        return release

    wrap(patch, btl, "release_comparisons", change)


def iterations(patch):
    def change(encoded, release):
        counted = {"iterations": float(len(encoded._pairs[0]))}
        return replace(release, found={**release.found, **counted})

    wrap(patch, btl, "release_comparisons", change)


def refusal(patch):
    def change(encoded, release):
        if not encoded._pairs[2].any():
            raise ValueError("nobody has answered.")
        return release

    wrap(patch, btl, "release_comparisons", change)


def first_row(patch):
    def change(encoded, release):
        return replace(
            release, tie_break=tuple(np.argsort(encoded._people.held[0].cells[0]).tolist())
        )

    wrap(patch, uniformity, "release_sample", change)


def favourites(patch):
    def change(encoded, release):
        order = np.argsort(-encoded._totals.sum(axis=0))
        return replace(release, tie_break=tuple(order.tolist()))

    wrap(patch, btl, "release_comparisons", change)


def rows_as_respondents(patch):
    def change(frame, encoded):
        design = replace(encoded.design, nobs=len(encoded._parts.held[0].person))
        return replace(encoded, design=design)

    wrap(patch, btl, "encode_comparisons", change)


def pairs_met(patch):
    patch.setattr(pr.PrivateBTL, "__repr__", lambda self: f"{len(self._encoded._pairs[0])} pairs")


def forgotten_noise(patch):
    def calibrate(cls, sensitivity, epsilon):
        return cls(0.0)

    patch.setattr(noise.DiscreteLaplace, "calibrate", classmethod(calibrate))


def forgotten_smoothing(patch):
    patch.setattr("privrank.plans.samples.smoothing_scale", lambda reach, epsilon: 0.0)


def certain_bit(patch):
    def probability(m, alpha, count, ranks, order):
        return float(ranks[:, 0].mean() > 2)

    patch.setattr("privrank.published.bfz21._reject_by_buckets", probability)


def values_met(patch):
    def met(frame, column, **public):
        values = frames.collect(frames.open_frame(frame, "data"), [column])[column]
        return tuple(sorted(set(values)))

    patch.setattr(frames, "declared_categories", met)


PLANTED = {
    "standard errors from raw pair counts": (raw_counts, "BTL of rows, defaults"),
    "a warning from raw answers": (raw_warning, "BTL of rows, method objective"),
    "how much there was to count": (iterations, "BTL of people, defaults"),
    "an error that depends on answers": (refusal, "BTL of people, method counts"),
    "an order of items from the first row": (first_row, UNIFORM),
    "an order of items from all answers": (favourites, "choices of people, defaults"),
    "respondents counted by rows": (rows_as_respondents, "BTL of people, defaults"),
    "a model that prints the pairs it met": (pairs_met, "BTL of people, defaults"),
    "answers of groups without noise": (
        forgotten_noise,
        "groups of rows, method counts, noise zero-sum-laplace",
    ),
    "a p-value without noise": (forgotten_smoothing, "two samples, method mmd, permutations 39"),
    "categories that are the values met": (
        values_met,
        "secret Enums, method auto, permutations 39",
    ),
    "levels that are the values met": (values_met, "groups of Enums, defaults"),
    "a bit that is certain": (certain_bit, "uniform rankings, bits, method bucket, epsilon 4.0"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_leak_is_seen(name, monkeypatch):
    plant, fit = PLANTED[name]
    case = replace(CATALOGUE[fit], first=True)
    assert not leaks(case)
    plant(monkeypatch)
    assert leaks(case)


@pytest.mark.parametrize("name", [name for name in NAMES if CATALOGUE[name].first])
def test_a_result_holds_no_data(name):
    # with real noise: neither the arrays of the encoded data, nor copies of them, nor a generator
    case = CATALOGUE[name]
    rng = np.random.default_rng(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        model = case.build(next(iter(case.frames)))
        result = case.fit(model, rng=rng)
    encoded = model._encoded
    public = arrays(getattr(encoded, "design", None) or encoded.sample)
    secret = {id(thing) for thing in arrays(encoded)} - {id(thing) for thing in public}
    assert secret
    data = contents(private(encoded)) - contents(public)
    kinds = (np.random.Generator, np.random.BitGenerator, np.random.SeedSequence)
    kinds = (*kinds, pd.DataFrame, pd.Series, pd.Index, pr.Budget, case.model, type(encoded))
    for thing in reachable(result):
        assert not isinstance(thing, kinds)
        if isinstance(thing, np.ndarray):
            assert id(thing) not in secret and thing.base is None
            assert thing.size < 4 or not contents([thing]) & data


def arrays(thing):
    return [found for found in reachable(thing) if isinstance(found, np.ndarray)]


def contents(found):
    numbers = [thing for thing in found if thing.dtype != object]
    return {(thing.shape, thing.astype(float).tobytes()) for thing in numbers}


def private(encoded):
    """The arrays of encoded data that hold answers."""
    if isinstance(encoded, Encoded):
        return [*arrays(encoded._parts), *encoded._pairs[2:]]
    if isinstance(encoded, EncodedChoices):
        return [encoded._totals]
    parts = getattr(encoded, "_parts", (encoded,))
    return [found for part in parts for found in (part._rows, *arrays(part._people))]


def chosen(name, models):
    """The values of an option among the cases of some models, defaults included."""
    found = set()
    for case in CATALOGUE.values():
        if case.model in models:
            defaults = {}
            for method in (case.model.__init__, case.model.fit):
                parameters = inspect.signature(method).parameters
                defaults |= {key: value.default for key, value in parameters.items()}
            value = {**defaults, **case.arguments, **case.options}.get(name)
            found.add(value if isinstance(value, str) else None)
    return found


TESTS = (pr.UniformityTest, pr.IdentityTest, pr.ClosenessTest)
PARTIAL = (("ties", declarations.Ties), ("missing", declarations.Gaps))
PAIRED = (pr.PrivateBTL, pr.PrivateTopK)
OPTIONS = [
    ("method", plan.Method, PAIRED[:1]),
    ("noise", plan.Noise, PAIRED[:1]),
    ("noise", plan.Noise, PAIRED[1:]),
    ("dependence", choice.Dependence, PAIRED[:1]),
    ("solver", fit.Solver, PAIRED[:1]),
    ("design", design.DesignKind, PAIRED[:1]),
    ("design", design.DesignKind, PAIRED[1:]),
    ("excess", design.Excess, PAIRED[:1]),
    ("excess", design.Excess, PAIRED[1:]),
    ("pair_counts", declarations.PairCountChoice, PAIRED[:1]),
    ("method", rankplan.AggregationMethod, (pr.PrivateRankAggregation,)),
    ("target", statements.Target, (pr.PrivateRankAggregation,)),
    ("method", uniformity.UniformityMethod, (pr.UniformityTest,)),
    ("method", identity.IdentityMethod, (pr.IdentityTest,)),
    ("alternative", categories.Alternative, (pr.IdentityTest,)),
    *((name, kind, (model,)) for name, kind in PARTIAL for model in TESTS),
    ("method", closeness.ClosenessMethod, (pr.ClosenessTest,)),
    ("labels", closeness.Labels, (pr.ClosenessTest,)),
]


@pytest.mark.parametrize(("name", "known", "models"), OPTIONS)
def test_the_catalogue_has_every_value_of_every_option(name, known, models):
    assert set(typing.get_args(known)) - NON_PRIVATE <= chosen(name, models)


def test_the_catalogue_has_every_link():
    assert {link.name for link in BUILT_IN} <= chosen("link", (pr.PrivateBTL,))


# Names of columns, and what every case is given or has no bearing on one fit.
EXEMPT = {"self", "comparisons", "rankings", "data", "sample1", "sample2", "item1", "item2"}
EXEMPT |= {"outcome", "epsilon", "budget", "rng", "alternative"}


def public_classes():
    return [getattr(pr, name) for name in pr.__all__ if hasattr(getattr(pr, name), "from_formula")]


@pytest.mark.parametrize("model", public_classes())
def test_the_catalogue_has_every_class_argument_and_constructor(model):
    cases = [case for case in CATALOGUE.values() if case.model is model]
    given = {name for case in cases for name in (*case.arguments, *case.options)}
    asked = {*inspect.signature(model).parameters, *inspect.signature(model.fit).parameters}
    assert asked - EXEMPT <= given | {"alpha", "delta"}
    assert {case.formula is not None for case in cases} == {True, False}
    assert any(case.counted for case in cases) == hasattr(model, "from_counts")
    assert {unit(case) for case in cases} == {"row", "respondent"}


def test_every_random_source_and_every_distribution_is_held_still():
    sources = {name for name in vars(noise) | vars(draws) if name.startswith(("draw_", "secret_"))}
    assert sources == SOURCES.keys()
    drawing = {
        kind
        for found in pkgutil.iter_modules(privacy.__path__, "privrank.privacy.")
        for kind in vars(importlib.import_module(found.name)).values()
        if isinstance(kind, type) and hasattr(kind, "draw") and kind.__name__ != "Radius"
    }
    # a distribution of noise that releases can hold: its name is in _NOISES of release/release.py
    assert drawing == set(distributions())


def test_the_variants_differ():
    # without the constants the same surveys give other releases
    for name in ("BTL of people, defaults", "consensus of rows, method kemeny", UNIFORM):
        case = CATALOGUE[name]
        found = {
            tuple(case.fit(case.build(one), epsilon=1e6).release.to_json() for _ in range(4))
            for one in case.frames
        }
        assert len(found) == len(case.frames)
