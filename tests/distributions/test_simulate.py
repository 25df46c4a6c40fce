"""Simulated rankings and comparisons follow their models."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from privrank import PlackettLuce, simulate

WORTHS = np.array([0.8, -0.4, 0.0, 1.5])


def test_plackett_luce_pair_probabilities():
    n = 40_000
    ranks = PlackettLuce(WORTHS).rvs(n, np.random.default_rng(1))
    for i, j in itertools.combinations(range(4), 2):
        chance = 1 / (1 + np.exp(WORTHS[j] - WORTHS[i]))
        error = np.sqrt(chance * (1 - chance) / n)
        assert abs((ranks[:, i] < ranks[:, j]).mean() - chance) < 4 * error


def test_plackett_luce_is_chosen_item_by_item():
    n = 40_000
    ranks = PlackettLuce(WORTHS).rvs(n, np.random.default_rng(2))
    observed, expected = [], []
    for order in itertools.permutations(range(4)):
        left, chance = np.exp(WORTHS), 1.0
        for item in order:
            chance *= left[item] / left.sum()
            left[item] = 0.0
        expected.append(n * chance)
        observed.append((np.argsort(ranks, axis=1) == order).all(axis=1).sum())
    assert chisquare(observed, expected).pvalue > 0.001


def test_plackett_luce_ignores_the_level_and_knows_its_items():
    worths = pd.Series(WORTHS, index=list("abcd"))
    model = PlackettLuce(worths)
    assert list(model.items) == list("abcd") and repr(model) == "PlackettLuce(4 items)"
    draws = model.rvs(30, np.random.default_rng(3))
    moved = PlackettLuce(WORTHS + 16).rvs(30, np.random.default_rng(3))
    np.testing.assert_array_equal(draws, moved)
    with pytest.raises(ValueError, match="read-only"):
        model.worths[0] = 1.0


def test_draws_are_batched_without_a_seam(monkeypatch):
    whole = PlackettLuce(WORTHS).rvs(50, np.random.default_rng(1))
    monkeypatch.setattr("privrank.util.arrays.CELLS", 9)
    np.testing.assert_array_equal(PlackettLuce(WORTHS).rvs(50, np.random.default_rng(1)), whole)


def test_ranks_of_scores():
    scores = np.array([[0.1, 3.0, -1.0], [2.0, 1.0, 5.0]])
    assert simulate.ranks_of_scores(scores).tolist() == [[2, 1, 3], [2, 3, 1]]


def test_bradley_terry_win_rates():
    frame = simulate.bradley_terry(WORTHS, repeats=20_000, rng=np.random.default_rng(4))
    assert list(frame.columns) == ["item1", "item2", "outcome"]
    assert set(frame["outcome"]) == {-1, 1}
    rates = frame.groupby(["item1", "item2"])["outcome"].agg(["mean", "size"])
    assert len(rates) == 6 and (rates["size"] == 20_000).all()
    for (i, j), mean in rates["mean"].items():
        chance = 1 / (1 + np.exp(WORTHS[j] - WORTHS[i]))
        error = np.sqrt(chance * (1 - chance) / 20_000)
        assert abs((1 + mean) / 2 - chance) < 4 * error


def test_bradley_terry_share_and_labels():
    worths = pd.Series([0.0, 1.0, 2.0], index=["a", "b", "c"])
    frame = simulate.bradley_terry(worths, repeats=3000, share=0.3, rng=np.random.default_rng(5))
    assert set(frame["item1"]) == {"a", "b"} and set(frame["item2"]) == {"b", "c"}
    assert abs(len(frame) - 2700) < 4 * np.sqrt(9000 * 0.3 * 0.7)


def test_bradley_terry_draws_in_a_fixed_order():
    # the validation tables rest on this stream: first which comparisons are made, then who wins
    frame = simulate.bradley_terry(WORTHS, repeats=2, share=0.5, rng=np.random.default_rng(6))
    rng = np.random.default_rng(6)
    first, second = (np.repeat(side, 2) for side in np.triu_indices(4, 1))
    kept = rng.random(12) < 0.5
    first, second = first[kept], second[kept]
    chance = 1.0 / (1.0 + np.exp(WORTHS[second] - WORTHS[first]))
    outcome = np.where(rng.random(len(first)) < chance, 1, -1)
    expected = pd.DataFrame({"item1": first, "item2": second, "outcome": outcome})
    pd.testing.assert_frame_equal(frame, expected)


def test_entropy_is_fresh_without_a_generator():
    model = PlackettLuce(np.zeros(30))
    assert (model.rvs() != model.rvs()).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PlackettLuce([1.0]), "worths must be one number for each of at least two items"),
        (lambda: PlackettLuce([[1.0, 2.0]]), "worths must be one number for each"),
        (lambda: PlackettLuce(["a", "b"]), "worths must be one number for each item, got list."),
        (lambda: PlackettLuce([0.0, np.nan]), "worths must be finite"),
        (lambda: PlackettLuce(pd.Series([1.0, 2.0], index=["a", "a"])), "a name occurs twice"),
        (lambda: PlackettLuce(WORTHS).rvs(-1), "size must be at least 1"),
        (lambda: PlackettLuce(WORTHS).rvs(1, 7), "got int. Use numpy.random.default_rng"),
        (lambda: simulate.bradley_terry(WORTHS, repeats=0), "repeats must be at least 1"),
        (
            lambda: simulate.bradley_terry(WORTHS, share=0.0),
            r"share must be a number in \(0, 1\]",
        ),
        (lambda: simulate.bradley_terry(WORTHS, share="all"), "share must be a number in"),
        (lambda: simulate.bradley_terry(WORTHS, rng=1), "rng must be None"),
    ],
)
def test_bad_input_is_said_in_one_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        call()
    said = str(caught.value)
    assert said.endswith(".") and "\n" not in said
