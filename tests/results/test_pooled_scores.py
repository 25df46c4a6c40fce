"""Pooled worths are tested by scores: intervals and p-values agree, and ends may be infinite."""

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import helmert
from scipy.stats import norm

import privrank as pr
from privrank.bradley_terry.scoretests import intervals
from privrank.results.claims import CLAIMS
from privrank.results.pooling import combine, worth_source

pytestmark = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")

ITEMS = list("abcde")
WORTHS = np.linspace(0.9, -0.9, 5)
FIRST, SECOND = np.triu_indices(5, 1)
PAIRS = np.eye(5)[FIRST] - np.eye(5)[SECOND]


def survey(seed, people=150, rows=6, ties=0.0, spread=1.0):
    rng = np.random.default_rng(seed)
    pair = np.argsort(rng.random((people, 10)), axis=1)[:, :rows].ravel()
    apart = spread * (WORTHS[FIRST[pair]] - WORTHS[SECOND[pair]]) + rng.logistic(size=len(pair))
    outcome = np.sign(np.where(np.abs(apart) < ties, 0.0, apart)).astype(int)
    names = np.array(ITEMS)
    return pd.DataFrame(
        {
            "respondent": np.repeat(np.arange(people), rows),
            "item1": names[FIRST[pair]],
            "item2": names[SECOND[pair]],
            "outcome": outcome,
        }
    )


PERSON = {"items": ITEMS, "respondent": "respondent", "max_rows": 6}
ROW = {"items": ITEMS, "respondent": None}
KINDS = {
    "public rows": (ROW | {"design": "public"}, {}, 0.0),
    "rows": (ROW, {}, 0.0),
    "people": (PERSON | {"design": "public"}, {}, 0.0),
    "people, pairs": (PERSON | {"design": "public"}, {"dependence": "pairs"}, 0.0),
    "Davidson": (PERSON | {"design": "public", "ties": "davidson"}, {}, 0.4),
    "proportional": (ROW | {"pair_counts": "proportional"}, {}, 0.0),
}


def fits(kind, epsilons=(0.7, 2.0), same=True, spread=1.0):
    given, options, ties = KINDS[kind]
    frames = [survey(3 if same else k, ties=ties, spread=spread) for k in range(len(epsilons))]
    pairs = enumerate(zip(frames, epsilons, strict=True))
    return [
        pr.PrivateBTL(frame, **given).fit(epsilon, rng=np.random.default_rng(k), **options)
        for k, (frame, epsilon) in pairs
    ]


@pytest.mark.parametrize("same", [True, False], ids=["same", "different"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_interval_leaves_zero_out_where_the_pvalue_says_so(kind, same):
    result = pr.pool(fits(kind, same=same), survey="same" if same else "different")
    for alpha in (0.05, 0.01, 0.2):
        limits = result.conf_int(alpha)
        outside = (limits["lower"] > 0) | (limits["upper"] < 0)
        assert (outside == (result.pvalues < alpha)).all()
        pairs = result.pairwise(alpha)
        middle = 0.5
        outside = (pairs["lower"] > middle) | (pairs["upper"] < middle)
        assert (outside == (pairs["pvalue"] < alpha)).all()
    assert np.allclose(2.0 * norm.sf(result.tvalues.abs()), result.pvalues)
    assert (np.sign(result.tvalues) == np.sign(result.params)).all()


@pytest.mark.parametrize("kind", ["public rows", "rows", "people", "Davidson"])
def test_one_release_alone_is_tested_nearly_as_by_itself(kind):
    (fit,) = fits(kind, (2.0,))
    inference = fit._inference()
    source = worth_source(inference)
    spread = inference.equations.function.spread
    alone = combine([source], np.zeros((1, 4)), same=False, spread=spread)
    rows = PAIRS @ np.asarray(np.linalg.pinv(helmert(5)))
    found = alone.limits(rows, np.zeros(len(rows), dtype=int), 0.05)
    padded = np.pad(PAIRS, ((0, 0), (0, len(inference.fitted.coefficients) - 5)))
    wanted = intervals(inference, padded, 0.05)
    width = np.subtract(*wanted[::-1])
    for side in range(2):
        assert np.abs(found[side] - wanted[side]).max() < 0.12 * width.max()


def test_unanimous_surveys_have_no_upper_limit():
    """Ten wins of ten, with hardly any noise: exactly .002, by scores .0016."""
    two = []
    for wins in (4, 6):
        frame = pd.DataFrame({"item1": ["a"] * wins, "item2": ["b"] * wins, "outcome": [1] * wins})
        model = pr.PrivateBTL(frame, items=["a", "b"], respondent=None, design="public")
        two.append(model.fit(40.0, rng=np.random.default_rng(wins)))
    result = pr.pool(two, survey="different")
    pair = result.pairwise().iloc[0]
    assert pair["pvalue"] == pytest.approx(2.0 * norm.sf(np.sqrt(10.0)), rel=0.02)
    assert pair["upper"] == 1.0 and pair["lower"] > 0.6
    assert "inf" in str(result.summary())


def test_a_pooled_table_says_what_is_asserted_of_pair_counts():
    text = " ".join(str(pr.pool(fits("proportional"), survey="same").summary()).split())
    assert text.count(CLAIMS["matched"]) == 1
    assert "matched" not in str(pr.pool(fits("rows"), survey="same").summary())
