"""Completed rankings have the null distribution: by enumeration of every draw."""

import math
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.hypotheses.nulls import NullModel
from privrank.mechanisms import samples
from privrank.mechanisms.samples import completed
from privrank.results.claims import CLAIMS

M, PHI, CENTER = 5, 0.6, (3, 1, 5, 2, 4)
ORDERS = np.array(list(permutations(range(1, M + 1))))
MODEL = pr.Mallows(M, PHI, CENTER)
MALLOWS = NullModel(theta=-math.log(PHI), center=CENTER)
PATTERNS = list(product((0, 1), repeat=M - 1))
NAMES = list("abcde")


def places(pattern):
    """The shared place of each rank, where places are told apart only at the 1s of a pattern."""
    return np.concatenate(([1], 1 + np.cumsum(pattern)))


def draws_of(codes):
    """All outcomes of the uniform numbers of one ranking that matter, with their probabilities."""
    ordered = codes[np.argsort(CENTER)]
    sizes = [int((ordered[:j] == ordered[j]).sum()) + 1 for j in range(M)]
    for steps in product(*map(range, sizes)):
        weight, middle = 1.0, []
        for step, size in zip(steps, sizes, strict=True):
            mass = PHI ** np.arange(size) / (PHI ** np.arange(size)).sum()
            weight *= mass[step]
            middle.append(mass[:step].sum() + mass[step] / 2)
        yield middle, weight


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: "".join(map(str, p)))
def test_ties_completed_under_mallows_have_its_distribution(pattern, monkeypatch):
    reported = 2 * places(pattern)[ORDERS - 1]
    rows, uniforms, weights = [], [], []
    for codes, probability in zip(reported, MODEL.pmf(ORDERS), strict=True):
        for middle, weight in draws_of(codes):
            rows.append(codes)
            uniforms.append(middle)
            weights.append(probability * weight)
    monkeypatch.setattr(samples, "draw_uniforms", lambda n, m, rng: np.array(uniforms))
    found = completed(np.array(rows), MALLOWS, None)
    code = {tuple(order): k for k, order in enumerate(ORDERS.tolist())}
    distribution = np.bincount([code[tuple(row)] for row in found.tolist()], weights, len(ORDERS))
    assert np.abs(distribution - MODEL.pmf(ORDERS)).max() < 1e-15
    # and each agrees with what was reported
    worse = np.array(rows)[:, :, None] > np.array(rows)[:, None, :]
    assert (found[:, :, None] > found[:, None, :])[worse].all()


def test_a_draw_at_the_very_end_takes_the_last_possible_order(monkeypatch):
    # a product that was rounded up to the total of the weights
    monkeypatch.setattr(samples, "draw_uniforms", lambda rows, columns, _: np.ones((rows, columns)))
    p = np.array([0.1, 0.4, 0.0, 0.3, 0.2, 0.0])
    orders = samples._chosen(np.zeros((2, 3), dtype=np.int64), p, np.random.default_rng(1))
    assert (orders == samples.orders_of(3)[4]).all()


def test_orders_are_chosen_by_their_probabilities(monkeypatch):
    # one item is not placed: five orders agree with each report, drawn on a fine grid of numbers
    p, grid = MODEL.pmf(ORDERS), 4000
    monkeypatch.setattr(
        samples, "draw_uniforms", lambda n, m, rng: (np.arange(n)[:, None] + 0.5) / n
    )
    for order in ORDERS[::17]:
        codes = np.where(np.arange(M) == 2, 0, 2 * order)
        found = completed(np.tile(codes, (grid, 1)), MALLOWS.tabulated(), None)
        kept, others = np.delete(np.arange(M), 2), np.delete(order, 2)
        agree = (np.argsort(ORDERS[:, kept]) == np.argsort(others)).all(axis=1)
        shares = [(found == each).all(axis=1).mean() for each in ORDERS[agree]]
        assert agree.sum() == M and sum(shares) == pytest.approx(1.0)
        assert np.abs(shares - p[agree] / p[agree].sum()).max() <= 1.0 / grid


def test_reports_that_the_null_rules_out_become_uniform():
    p = np.zeros(len(ORDERS))
    p[0], p[-1] = 0.25, 0.75  # 12345 and 54321 alone
    null, rng = NullModel(probabilities=tuple(p)), np.random.default_rng(5)
    codes = np.tile([2, 2, 4, 6, 6], (3000, 1))
    assert (completed(codes, null, rng) == np.arange(1, 6)).all()
    codes = np.tile([4, 2, 6, 8, 8], (3000, 1))
    found = completed(codes, null, rng)
    assert set(map(tuple, found.tolist())) == {(2, 1, 3, 4, 5), (2, 1, 3, 5, 4)}
    assert abs((found[:, 3] == 4).mean() - 0.5) < 0.03
    free = completed(np.zeros((6000, M), dtype=int), null, rng)
    assert abs((free[:, 0] == 1).mean() - 0.25) < 0.03
    assert len(np.unique(free, axis=0)) == 2


def test_uniform_completion_takes_all_kinds_of_reports():
    rng = np.random.default_rng(6)
    codes = np.tile([0, 4, 4, 2, 12], (12_000, 1))
    found = completed(codes, NullModel(), rng)
    assert (found[:, 3] < found[:, 1]).all() and (found[:, 4] > found[:, 2]).all()
    counts = np.unique(found, axis=0, return_counts=True)[1]
    assert len(counts) == 10 and counts.min() > 1000


def test_a_fit_says_what_it_assumes_and_archives_it():
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(places((1, 0, 1, 0))[MODEL.rvs(60, rng) - 1], columns=NAMES)
    null = pr.Mallows(NAMES, PHI, CENTER)
    test = pr.IdentityTest(frame, null, ties="complete")
    result = test.fit(1.0, draws=199, rng=rng)
    words = " ".join(str(result.summary()).split())
    assert CLAIMS["completed"] in words
    assert str(pr.from_json(result.to_json()).summary()) == str(result.summary())
    formula = " + ".join(NAMES) + " ~ 1"
    again = pr.UniformityTest.from_formula(formula, frame, ties="complete").fit(1.0, draws=199)
    assert again.release.sample.completed
    complete = pr.UniformityTest(pd.DataFrame(ORDERS, columns=NAMES)).fit(1.0, draws=199)
    assert "completed" not in str(complete.summary())


def test_what_cannot_be_completed_is_refused():
    frame = pd.DataFrame(np.tile(np.arange(1.0, 8.0), (4, 1)), columns=list("abcdefg"))
    frame.iloc[0, 3] = np.nan
    with pytest.raises(ValueError, match="at most 6 items"):
        pr.IdentityTest(frame, pr.Mallows(list("abcdefg"), 0.8), missing="complete")
    pr.IdentityTest(frame, pr.Mallows(list("abcdefg"), 1.0), missing="complete")
    with pytest.raises(ValueError, match="for rankings"):
        pr.UniformityTest(pd.Series(["a", "b"]), items=["a", "b"], ties="complete")
    with pytest.raises(ValueError, match="for rankings"):
        choices = pd.DataFrame({"choice": ["a", "b"]})
        pr.UniformityTest.from_formula("choice ~ 1", choices, missing="bottom")
    with pytest.raises(ValueError, match="ties must be one of"):
        pr.UniformityTest(frame, ties="random")
    with pytest.raises(ValueError, match="is incomplete"):
        pr.UniformityTest(frame, ties="complete")
