"""With one seed the random order of the items is the same whatever the data are."""

import warnings

import numpy as np
import pytest
from catalogue import CATALOGUE

import privrank as pr


def orders(case):
    """The random order of every variant of a case, of fits with the same seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [case.fit(case.build(name), rng=np.random.default_rng(7)) for name in case.frames]
    return {tuple(fit.release.tie_break) for fit in fits}


@pytest.mark.parametrize("name", CATALOGUE)
def test_equal_public_facts_and_seeds_have_one_order(name):
    assert len(orders(CATALOGUE[name])) == 1


def test_many_answers_are_dealt_from_a_stream_of_their_own():
    """Numbers of a kind are drawn where there are too many respondents to be shuffled."""
    seen = set()
    for first in (50_000, 90_000, 99_999):
        groups = {g: {"x": first, "y": 100_000 - first, "z": 5} for g in "ab"}
        test = pr.ClosenessTest.from_counts(groups, categories=list("xyz"))
        fit = test.fit(1.0, method="tv", permutations=39, rng=np.random.default_rng(3))
        seen.add(tuple(fit.release.tie_break))
    assert len(seen) == 1
