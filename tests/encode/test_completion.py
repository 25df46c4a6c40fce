"""What messages advise for ties and missing items, followed: the tests keep their level."""

import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import privrank as pr

ITEMS = list("abcd")
MODEL = pr.Mallows(ITEMS, phi=0.6)
FLAT = pr.Mallows(ITEMS, phi=1.0)
ORDERS = np.array(list(permutations(range(1, 5))))
TABLE = pd.DataFrame(ORDERS, columns=ITEMS).assign(probability=MODEL.pmf(ORDERS))
REPLICATES, LEVEL = 100, 0.05
MOST = LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / REPLICATES)


def with_ties(ranks, rng, share=0.5):
    """Ranks in which each two neighbouring places are one with this probability."""
    merged = rng.random((len(ranks), 3)) < share
    place = 1 + np.cumsum(np.column_stack((np.zeros(len(ranks)), ~merged)), axis=1)
    return pd.DataFrame(np.take_along_axis(place, ranks - 1, axis=1), columns=ITEMS)


def with_gaps(ranks, rng, share=0.5):
    """Ranks of the leading one, two or four items: the more the smaller the share."""
    told = np.where(rng.random(len(ranks)) < share, rng.integers(1, 3, len(ranks)), 4)
    return pd.DataFrame(np.where(ranks <= told[:, None], ranks, np.nan), columns=ITEMS)


SPOIL = {"ties": with_ties, "gaps": with_gaps}
RANDOM = {"ties": {"ties": "random"}, "gaps": {"missing": "bottom"}}


def at_random(frame, fault, rng):
    return pr.as_rankings(frame, **RANDOM[fault], rng=rng)


def type_one_error(fault, model, test, n=100):
    rejected = []
    for seed in range(REPLICATES):
        rng = np.random.default_rng(seed)
        frame = SPOIL[fault](model.rvs(n, rng), rng)
        rejected.append(test(frame, rng).fit(5.0, rng=rng).reject)
    return np.mean(rejected)


TESTS = {
    "uniformity": (pr.UniformityTest, "test"),
    "uniformity by formula": (
        lambda frame: pr.UniformityTest.from_formula("a + b + c + d ~ 1", frame),
        "test",
    ),
    "identity, uniform": (lambda frame: pr.IdentityTest(frame, "uniform"), "test"),
    "identity, phi = 1": (lambda frame: pr.IdentityTest(frame, FLAT), "test"),
    "identity, Mallows": (lambda frame: pr.IdentityTest(frame, MODEL), "test"),
    "identity, table": (lambda frame: pr.IdentityTest(frame, TABLE), "test"),
    "identity by formula": (
        lambda frame: pr.IdentityTest.from_formula("a + b + c + d ~ 1", frame, MODEL),
        "test",
    ),
    "closeness": (lambda frame: pr.ClosenessTest(frame, frame), "closeness"),
    "closeness, second": (
        lambda frame: pr.ClosenessTest(pd.DataFrame(ORDERS, columns=ITEMS), frame),
        "closeness",
    ),
    "closeness by formula": (
        lambda frame: pr.ClosenessTest.from_formula(
            "a + b + c + d ~ g", frame.assign(g=["x", "y"] * (len(frame) // 2)), levels=["x", "y"]
        ),
        "closeness",
    ),
    "consensus": (pr.PrivateRankAggregation, "consensus"),
    "consensus by formula": (
        lambda frame: pr.PrivateRankAggregation.from_formula("a + b + c + d ~ 1", frame),
        "consensus",
    ),
}


@pytest.mark.parametrize("fault", ["ties", "gaps"])
@pytest.mark.parametrize("name", TESTS)
def test_every_class_says_what_is_valid_for_it(name, fault):
    build, purpose = TESTS[name]
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="every row of rankings") as caught:
        build(SPOIL[fault](MODEL.rvs(40, rng), rng))
    text = str(caught.value)
    assert ("at random" in text) == (purpose == "closeness")
    assert ("in the same way in all groups" in text) == (purpose == "closeness")
    assert ("from H0" in text) == (purpose == "test")
    drawn = {"ties": "ties='complete'", "gaps": "missing='complete'"}[fault]
    assert (drawn in text) == (purpose != "consensus")
    declared = {"ties": "ties=True", "gaps": "missing='half'"}[fault]
    assert (declared in text) == (purpose == "consensus")
    assert text.count(". ") < 3 and text.endswith(".") and "\n" not in text


COMPLETE = {"ties": {"ties": "complete"}, "gaps": {"missing": "bottom"}}


@pytest.mark.parametrize("fault", ["ties", "gaps"])
@pytest.mark.parametrize("null", ["uniform", MODEL, TABLE], ids=["uniform", "Mallows", "table"])
def test_a_test_completes_from_its_null_and_random_orders_will_not_do(null, fault):
    def own(frame, rng):
        return pr.IdentityTest(frame, null, **COMPLETE[fault])

    def random(frame, rng):
        return pr.IdentityTest(at_random(frame, fault, rng), null)

    model = FLAT if null is not MODEL and null is not TABLE else MODEL
    assert type_one_error(fault, model, own) <= MOST
    assert (type_one_error(fault, model, random) <= MOST) == (model is FLAT)


@pytest.mark.parametrize("fault", ["ties", "gaps"])
def test_random_completion_is_valid_for_groups_with_the_same_gaps_alone(fault):
    rejected = {0.5: [], 0.0: []}
    for seed in range(REPLICATES):
        rng = np.random.default_rng(seed)
        one, other = MODEL.rvs(100, rng), MODEL.rvs(100, rng)
        for share, found in rejected.items():
            frames = [SPOIL[fault](one, rng), SPOIL[fault](other, rng, share)]
            test = pr.ClosenessTest(*frames, **COMPLETE[fault])
            found.append(test.fit(5.0, permutations=99, rng=rng).reject)
    assert np.mean(rejected[0.5]) <= MOST < np.mean(rejected[0.0])


@pytest.mark.parametrize("fault", ["ties", "gaps"])
def test_a_consensus_takes_them_as_they_are(fault):
    rng = np.random.default_rng(0)
    frame = SPOIL[fault](MODEL.rvs(400, rng), rng)
    fit = pr.PrivateRankAggregation(frame, ties=True, missing="half").fit(5.0, rng=rng)
    assert fit.order == tuple(ITEMS)
