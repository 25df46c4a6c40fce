"""A slice of `make audit`: losses of a few claims, and planted faults, which have to be caught."""

import sys
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "validation"))

import audit
import audit_losses

SOME = audit.known()[::4]
PLANTED = [claim for often, claim in audit.faults() if not often]


@pytest.mark.parametrize("claim", SOME, ids=str)
def test_a_computed_loss_is_what_is_claimed(claim):
    loss, noise = audit_losses.computed(claim, seeds=1)
    assert 0.0 < loss <= claim.epsilon * (1 + audit.ROOM) and noise


@pytest.mark.parametrize(
    "more",
    [{"design": "public"}, {"pair_counts": "equal"}, {}],
    ids=["public", "equal", "released"],
)
def test_nets_ties_and_their_second_moments_lose_no_more_together(more):
    """Of a whole fit, over every respondent who wins, loses, ties or does not answer."""
    answers = audit.THREE if "design" in more else list(product((1, 0, None, -1), repeat=3))
    answers = [one for one in answers if any(answer is not None for answer in one)]
    options = {"method": "counts", "noise": "laplace", "dependence": "pairs"}
    people = partial(audit.worths, **audit.TIED, **more)
    claim = audit.Claim("ties", "respondent", "laplace", people, answers, options)
    loss, noise = audit_losses.computed(claim, seeds=1)
    assert 0.7 < loss <= claim.epsilon * (1 + audit.ROOM) and noise


@pytest.mark.parametrize("protocol", audit.LOCAL, ids=lambda protocol: type(protocol).__name__)
def test_a_report_loses_what_is_claimed(protocol):
    assert 0.3 < audit_losses.reported(protocol) <= protocol.epsilon * (1 + audit.ROOM)


@pytest.mark.parametrize("claim", PLANTED, ids=str)
def test_a_planted_fault_is_caught(claim):
    loss, _ = audit_losses.computed(claim, seeds=1)
    assert loss > 1.1 * claim.epsilon
    if claim.fault is not None:  # without it there is nothing to catch
        honest = replace(claim, fault=None)
        assert audit_losses.computed(honest, seeds=1)[0] <= claim.epsilon * (1 + audit.ROOM)


def bound(loss, runs=4000, seed=1):
    """The bound from bits that are told apart by a loss."""
    rng, likely = np.random.default_rng(seed), np.exp(loss) / (1 + np.exp(loss))
    one, other = rng.random((2, runs, 1)) < np.array([[[likely]], [[1 - likely]]])
    return audit_losses.bound_of(one.astype(float), other.astype(float), 0.0)


def test_a_bound_is_below_the_loss_and_near_it():
    found = np.array([bound(1.0, seed=seed) for seed in range(50)])
    assert found.max() < 1.0 and found.mean() > 0.85


def test_a_measured_fault_is_caught_and_honest_noise_is_not():
    (fault,) = (claim for often, claim in audit.faults() if claim.name == "half the noise")
    for claim, caught in ((fault, True), (replace(fault, fault=None), False)):
        rng = np.random.default_rng(1)
        pairs = [audit_losses.observed(rng, claim) for _ in range(800)]
        one, other = (np.array(side) for side in zip(*pairs, strict=True))
        assert (audit_losses.bound_of(one, other, 0.0) > claim.epsilon) == caught
