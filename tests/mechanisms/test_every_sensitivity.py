"""The sensitivity of every statistic that a method of a test names, over all neighbours.

A new key in a table of methods is tried here by itself: all samples of small sizes, all
replacements of one unit, every order of the items.
"""

import itertools
import math
from typing import get_args

import numpy as np
import pytest

from privrank import identity, uniformity
from privrank.hypotheses.nulls import NullModel, Statistic
from privrank.mechanisms.categories import Alternative
from privrank.release.survey import Sample

TABLES = {("choices", name): build for name, build in uniformity._CHOICES.items()}
TABLES |= {("rankings", name): build for name, build in uniformity._RANKINGS.items()}
TABLES["rankings", "plain norm"] = lambda n, m, xi: uniformity._RANKINGS["borda"](n, m, math.inf)
UNIFORMITY = [
    *(("choices", name, build, n, k) for (kind, name), build in TABLES.items()
      if kind == "choices" for n, k in ((2, 2), (5, 2), (4, 3), (3, 4))),
    *(("rankings", name, build, n, m) for (kind, name), build in TABLES.items()
      if kind == "rankings" for n, m in (((2, 3),) if name == "two-sample" else ((2, 3), (3, 3)))),
]  # fmt: skip
NULLS = {
    "choices": NullModel(probabilities=(0.5, 0.3, 0.2)),
    "choices ruled out": NullModel(probabilities=(0.6, 0.4, 0.0)),
    "two choices": NullModel(probabilities=(0.3, 0.7)),
    "rankings": NullModel(),
    "listed rankings": NullModel(probabilities=(0.3, 0.2, 0.2, 0.1, 0.1, 0.1)),
    "Mallows": NullModel(theta=-math.log(0.6), center=(1, 2, 3)),
}


def samples(kind, n, k):
    """All samples of n units, each as a tuple of what every unit answered."""
    answers = range(k) if kind == "choices" else list(itertools.permutations(range(1, k + 1)))
    return itertools.product(answers, repeat=n)


def value(statistic, kind, sample, k, order):
    if kind == "choices":
        data = np.bincount(np.array(sample), minlength=k)
    else:
        data = np.array(sample)
    return statistic.value(data.astype(np.int64), order)


def worst(statistic, kind, n, k):
    """The largest change of the statistic when one unit is replaced."""
    largest = 0
    for order in itertools.permutations(range(k)):
        found = {one: value(statistic, kind, one, k, order) for one in samples(kind, n, k)}
        for one, here in found.items():
            for other in {answer for sample in found for answer in sample[:1]}:
                largest = max(largest, abs(found[(other, *one[1:])] - here))
        if kind == "choices":  # whose statistics know no order
            break
    return largest


@pytest.mark.parametrize(("kind", "name", "build", "n", "k"), UNIFORMITY)
def test_uniformity(kind, name, build, n, k):
    statistic = build(n, k, 1.0)
    largest = worst(statistic, kind, n, k)
    assert 0 < largest <= statistic.sensitivity, (name, largest)


def sample_of(null, n):
    kind = "rankings" if null.center or len(null.probabilities) in (0, 6) else "choices"
    k = 3 if kind == "rankings" else len(null.probabilities)
    return Sample(kind, tuple("abc"[:k]), n, "row", 1)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_listed_rankings_of_two_items(epsilon):
    null, sample = NullModel(probabilities=(0.3, 0.7)), Sample("rankings", ("a", "b"), 3, "row", 1)
    for method in identity._methods(null, sample):
        asked = identity.identity_statistic(null, sample, method, xi=epsilon)
        assert 0 < worst(asked, "rankings", 3, 2) <= asked.sensitivity, method


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("name", NULLS)
def test_identity(name, n):
    null, tried = NULLS[name], 0
    sample = sample_of(null, n)
    for method in identity._methods(null, sample):
        if method == "sigmoid":  # a random bit
            continue
        sided = method == "binary" or (method == "auto" and len(null.probabilities) == 2)
        for alternative in get_args(Alternative) if sided else ("two-sided",):
            asked = identity.identity_statistic(
                null, sample, method, xi=1.0, alternative=alternative
            )
            assert isinstance(asked, Statistic)
            tried += 1
            largest = worst(asked, sample.kind, n, len(sample.items))
            assert largest <= asked.sensitivity, (method, alternative, largest)
    assert tried > 0


def test_a_sensitivity_that_is_too_small_is_found():
    honest = uniformity._CHOICES["tv"](4, 3, 1.0)
    assert worst(honest, "choices", 4, 3) > honest.sensitivity - 1
