"""What is not declared is refused in the same words, whatever occurs (DESIGN 3): for every class.

Each model of the catalogue is built once more without what its call declares, on pandas
categoricals of the values met. Surveys with the same public facts then have to be refused alike, or
to show the same facts, which are those that names of columns, a null or public labels declare.
"""

import warnings
from dataclasses import replace
from functools import cache

import pytest
import surveys
from catalogue import CATALOGUE

import privrank as pr
from privrank.encode import frames

DECLARATIONS = ("items", "categories", "levels")
CASES = {name: case for name, case in CATALOGUE.items() if case.first}
UNASKED = ["remark", "number"]
PAIRS = ({"item1", "item2"}, {"winner", "loser"})


def met(frame):
    """The frame with answers as categoricals of the values met, and columns in one order."""
    data = surveys.undressed(frame).drop(columns=UNASKED, errors="ignore")
    data = data.astype({name: object for name in data.columns if name in surveys.LISTS})
    kinds = surveys.learned(data).dtypes
    for pair in PAIRS:
        for name in pair & set(data.columns):
            kinds[name] = surveys.learned(data[list(pair)].stack().to_frame("item1")).dtypes.iloc[0]
    return data.astype(kinds)[sorted(data.columns)]


def outcome(case, variant, left_out):
    """The public facts of a model whose call does not declare something, or why there is none."""
    kept = {key: value for key, value in case.arguments.items() if key not in left_out}
    frame = case.frames[variant]
    if not case.counted:
        frame = tuple(map(met, frame)) if isinstance(frame, tuple) else met(frame)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pr.PrivrankWarning)
            model = replace(case, arguments=kept, frames={variant: frame}).build(variant)
    except (ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"
    encoded = model._encoded
    return repr(getattr(encoded, "design", None) or encoded.sample)


def outcomes(case):
    """What all variants of a case lead to, by what is left out of the call."""
    declared = [name for name in DECLARATIONS if name in case.arguments]
    return {
        left_out: {outcome(case, variant, left_out) for variant in case.frames}
        for left_out in {tuple(declared), *((name,) for name in declared)}
    }


def differing(found):
    return {left_out: known for left_out, known in found.items() if len(known) > 1}


@cache
def found(name):
    return outcomes(CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_what_occurs_decides_nothing(name):
    assert not differing(found(name))


def test_most_models_ask_for_a_declaration():
    refused = [name for name in CASES if "must be declared" in str(found(name))]
    assert len(refused) > 0.4 * len(CASES)
    assert {CASES[name].model.__name__ for name in refused} == {
        "PrivateBTL", "PrivateTopK", "UniformityTest", "IdentityTest", "ClosenessTest",
    }  # fmt: skip


LEARNED = (
    "BTL of people, d",
    "groups of rows, d",
    "uniform choices of",
    "secret groups, m",
    "winners",
)


@pytest.mark.parametrize("start", LEARNED)
def test_learned_values_are_seen(start, monkeypatch):
    case = next(case for name, case in CASES.items() if name.startswith(start))

    declared = frames.declared_categories

    def learned(frame, column, **_):
        return declared(frame, column, public=True)

    monkeypatch.setattr(frames, "declared_categories", learned)
    assert differing(outcomes(case))
