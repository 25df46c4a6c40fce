"""Structured random input, one surface of the package at a time.

Whatever a user hands in, there is a result, or one sentence of the package itself before anything
is spent. `make fuzz` tries 100,000 cases of each surface; the suite runs a slice of them, the same
each time. FUZZ=5000 python -m pytest tests/fuzz tries 5,000 others.
"""

import os
import warnings
from collections import Counter
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from searching import CANARY, ODD
from sentences import fault

CASES = int(os.environ.get("FUZZ", "0"))
SLICE = 150
"""Cases of a surface in the suite."""

TAKEN, REFUSED = "taken", "refused"
SLOWEST = timedelta(seconds=60)
"""A case that takes longer hangs: the slowest alone compile loops, a few seconds."""


def explore(surface, check, again=(), cases=SLICE):
    """Check cases of a surface, and `again` those that once failed; some are taken, some refused.

    `check` returns which; it has to find out by itself what must not be.
    """
    for case in again:
        check(case)
    seen = Counter()

    @settings(
        max_examples=CASES or cases,
        deadline=SLOWEST,
        derandomize=not CASES,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(surface)
    def run(case):
        seen[check(case)] += 1

    run()
    print(dict(seen))
    assert min(seen[TAKEN], seen[REFUSED]) > 0.02 * sum(seen.values()), seen


def settled(call, budget=None, kinds=(ValueError, TypeError)):
    """Whether a call returns, or is refused in one sentence that spends and quotes nothing."""
    before = None if budget is None else budget.spendings
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except Exception as error:
        assert isinstance(error, kinds), f"{type(error).__name__}: {error}"
        how = fault(error)
        if how is not None:
            raise AssertionError(how) from error
        assert budget is None or budget.spendings == before, f"spent, then refused: {error}"
        while error is not None:
            assert CANARY not in str(error) and str(ODD) not in str(error), str(error)
            error = error.__cause__ or error.__context__
        return REFUSED
    return TAKEN


def mostly(usual, rare, share=30):
    """Draw from `usual` about so many times as often as from `rare`."""
    # neither end of the range, of which there is more than its share
    return st.integers(0, share).flatmap(lambda k: rare if k == share // 3 else usual)


def of(*values):
    return st.sampled_from(values)


def arguments(**choices):
    """Keyword arguments, of which those drawn as ... are left out."""
    return st.fixed_dictionaries(choices).map(
        lambda drawn: {name: value for name, value in drawn.items() if value is not ...}
    )
