"""Worths from rankings: pairs of lists against maximum likelihood for Plackett-Luce."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privrank as pr

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "reference" / "plackett_luce.json").read_text(encoding="utf-8")
)
ITEMS = list("01234")


def lists(listed):
    """The rankings of the reference, items beyond the leading ones missing."""
    orders = [[ITEMS.index(item) for item in order] for order in REFERENCE["orders"]]
    ranks = np.argsort(orders, axis=1) + 1.0
    return pd.DataFrame(ranks, columns=ITEMS).where(ranks <= listed)


def fit(listed, **arguments):
    whole = listed == len(ITEMS)
    missing, design = ("refuse", "public") if whole else ("bottom", "private")
    outcome = "outcome" if whole else "list_outcome"
    pairs = pr.as_comparisons(lists(listed), "rankings", missing=missing)
    rows = listed * (2 * len(ITEMS) - listed - 1) // 2
    unit = {"respondent": "respondent", "max_rows": rows}
    model = pr.PrivateBTL(pairs, outcome=outcome, design=design, **unit)
    return model.fit(np.inf, penalty=0, **arguments)


@pytest.mark.parametrize(("name", "listed"), [("complete", 5), ("leading three", 3)])
def test_pairs_of_lists_agree_with_the_likelihood_of_whole_lists(name, listed):
    worths, errors = (np.array(REFERENCE[name][what]) for what in ("worths", "errors"))
    result = fit(listed)
    pairs = result.pairwise()
    first, second = np.triu_indices(len(ITEMS), 1)
    differences = result.params.to_numpy()[first] - result.params.to_numpy()[second]
    apart = np.abs(differences - (worths[first] - worths[second]))
    assert (apart < np.hypot(errors, pairs["std_err"])).all()
    # both use the same lists, so they are much closer than that; pairs use less of them
    assert (apart < 0.75 * errors).all()
    assert (pairs["std_err"] > 0.95 * errors).all() and (pairs["std_err"] < 1.4 * errors).all()


@pytest.mark.parametrize("listed", [5, 3])
def test_rows_taken_as_independent_claim_more_than_rankings_say(listed):
    respondents, rows = fit(listed), fit(listed, dependence="none")
    pd.testing.assert_series_equal(respondents.params, rows.params)
    assert (rows.bse < 0.85 * respondents.bse).all()
