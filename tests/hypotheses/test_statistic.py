"""What a statistic has to declare before it exists."""

import inspect

import pytest

from privrank.hypotheses.nulls import RandomBit, Statistic
from privrank.plans.samples import Comparison

REQUIRED = {
    Statistic: {
        "name": "largest share",
        "step": 1.0,
        "sensitivity": 1,
        "value": lambda counts, order: int(counts[0]),
        "null": lambda draws: None,
        "blind_to": ("single category",),
        "consistent": None,
    },
    RandomBit: {
        "name": "bit",
        "probability": lambda counts, order: 0.5,
        "blind_to": (),
        "level": None,
        "dealt": False,
    },
    Comparison: {
        "name": "distance",
        "statistic": "tv",
        "form": "pairs",
        "sensitivity": 1.0,
        "blind_to": (),
        "consistent": None,
    },
}


@pytest.mark.parametrize("kind", REQUIRED, ids=lambda kind: kind.__name__)
def test_nothing_is_built_without_what_it_cannot_detect(kind):
    kind(**REQUIRED[kind])
    for name in {"blind_to", "consistent", "level", "dealt"} & set(REQUIRED[kind]):
        assert inspect.signature(kind).parameters[name].default is inspect.Parameter.empty
        rest = {key: value for key, value in REQUIRED[kind].items() if key != name}
        with pytest.raises(TypeError, match=name):
            kind(**rest)


@pytest.mark.parametrize("kind", [Statistic, Comparison], ids=lambda kind: kind.__name__)
def test_what_is_blind_to_something_cannot_be_consistent(kind):
    given = REQUIRED[kind] | {"blind_to": ("single category",), "consistent": "privrank.proof"}
    with pytest.raises(ValueError, match="consistent must be None") as caught:
        kind(**given)
    assert "'single category'" in str(caught.value)
