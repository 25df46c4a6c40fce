"""Objects that users meet say in plain words that they cannot be changed."""

import copy
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import privrank as pr

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "0.1.0").glob("*.json"))
OTHERS = {
    "mallows": pr.Mallows(4, 0.8),
    "plackett-luce": pr.PlackettLuce([0.0, 1.0]),
    "survey": pr.datasets.load_immigration(),
}
pytestmark = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")


def results():
    for path in GOLDEN:
        if path.stem not in ("protocol", "tally"):
            yield pr.from_json(path.read_text(encoding="utf-8"))


def reached(root):
    """Yield the frozen dataclasses of the package among the public attributes of a result."""
    seen, left = set(), [root]
    while left:
        one = left.pop()
        if isinstance(one, Mapping):
            left += one.values()
        elif isinstance(one, tuple | list):
            left += one
        elif is_dataclass(one) and id(one) not in seen:
            seen.add(id(one))
            yield one
            left += one.parts.values() if isinstance(one, pr.Release) else ()
            left += [getattr(one, part.name) for part in fields(one) if part.name[0] != "_"]


def assert_frozen(thing):
    for name in ("epsilon", fields(thing)[0].name, "no_such_name"):
        for change in (lambda n=name: setattr(thing, n, 5), lambda n=name: delattr(thing, n)):
            with pytest.raises(FrozenInstanceError) as caught:
                change()
            text = str(caught.value)
            assert text.startswith(f"{type(thing).__name__} objects are immutable"), text
            assert repr(name) in text and "super" not in text and "from_release" in text


def test_results_and_all_they_hold_are_immutable():
    kinds = set()
    for result in results():
        for thing in (*reached(result), result.summary()):
            if type(thing) not in kinds and hasattr(type(thing), "__slots__"):
                assert_frozen(thing)
                kinds.add(type(thing))
    names = {kind.__name__ for kind in kinds}
    assert names >= {"BTLResult", "PooledResult", "Release", "Plan", "Design", "Sample"}
    assert names >= {
        "ReleasedPart",
        "Table",
        "DiscreteLaplace",
        "DiscreteGaussian",
        "PermutohedronNoise",
    }


@pytest.mark.parametrize("name", OTHERS)
def test_other_public_objects_are_immutable(name):
    assert_frozen(OTHERS[name])


def test_entries_of_a_ledger_are_immutable():
    budget = pr.Budget(epsilon=1.0, unit="row")
    budget.reserve("a fit", 0.5, 0.0, unit="row")
    assert_frozen(budget.spendings[0])


def test_frozen_objects_are_still_copied_and_archived():
    result = next(results())
    text = str(result.summary())
    for again in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert str(again.summary()) == text
    changed = replace(result.release.plan, method="other")
    assert changed.method == "other" and np.isfinite(changed.epsilon)
