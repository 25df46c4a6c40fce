"""Cluster-robust errors of win rates and their differences: what the summary says is computed."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t

import privrank as pr

ITEMS = ("a", "b", "c", "d")
PAIRS = list(itertools.combinations(ITEMS, 2))


def survey(n, seed, missing=0.0, camps=0.0, rest=0.0):
    """Respondents whose worths of a and b move against each other; c and d have `rest`."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-camps, camps], n)
    worth = np.column_stack((side, -side, np.full((n, 2), rest)))
    rows = []
    for person in range(n):
        for i, j in itertools.combinations(range(4), 2):
            if rng.random() < missing:
                continue
            won = rng.random() < 1 / (1 + np.exp(worth[person, j] - worth[person, i]))
            rows.append((person, ITEMS[i], ITEMS[j], 1.0 if won else -1.0))
    return pd.DataFrame(rows, columns=["respondent", "item1", "item2", "outcome"])


def model(frame, kind=pr.PrivateTopK, **arguments):
    named = {"k": 2} if kind is pr.PrivateTopK else {}
    return kind(
        frame,
        items=ITEMS,
        respondent="respondent",
        ties=False,
        **{"design": "public", "max_rows": 6} | named | arguments,
    )


def by_hand(frame):
    """Win rates and their covariance, a respondent's answers being one draw of ratios."""
    wins, met = (pd.DataFrame(0.0, frame["respondent"].unique(), list(ITEMS)) for _ in range(2))
    for row in frame.itertuples():
        met.loc[row.respondent, [row.item1, row.item2]] += 1
        wins.loc[row.respondent, row.item1 if row.outcome == 1 else row.item2] += 1
    rate = wins.sum() / met.sum()
    moved = ((wins - met * rate) / met.sum()).to_numpy()
    n = len(moved)
    return rate.to_numpy(), moved.T @ moved * n / (n - 1)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("design", ["public", "private"])
def test_errors_of_win_rates_are_those_of_whole_respondents(missing, design):
    frame = survey(40, 1, missing, camps=1.0)
    result = model(frame, design=design).fit(np.inf, dependence="cluster")
    rate, covariance = by_hand(frame)
    np.testing.assert_allclose(result.params, rate)
    np.testing.assert_allclose(result.bse, np.sqrt(np.diag(covariance)))
    assert "cluster-robust" in str(result.summary())
    independent = model(frame, design=design).fit(np.inf, dependence="none")
    assert "independent answers" in str(independent.summary())
    assert not np.allclose(independent.bse, result.bse, rtol=0.02)


def test_a_difference_has_an_error_of_its_own():
    # camps disagree on a against b alone: no average over items sees it
    frame = survey(300, 2, camps=2.0)
    result = model(frame, k=1).fit(np.inf, dependence="cluster")
    rate, covariance = by_hand(frame)
    n = result.nobs
    for i, j in itertools.permutations(range(4), 2):
        gap = abs(rate[i] - rate[j])
        centred = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
        error = np.sqrt(centred * (n - 1) / n + gap**2 / n)
        found = result._all_gap_pvalues()[i, j]
        assert found == pytest.approx(2 * t(n - 1).sf(gap / error))
    # the p-value of the set is that of its least certain pair
    order = np.argsort(-rate)
    pairs = result._all_gap_pvalues()[order[0], order[1:]]
    assert result.pvalue == pytest.approx(max(pairs))
    plain = model(frame, k=1).fit(np.inf, dependence="none")
    robust, naive = (norm.isf(fit._all_gap_pvalues()[0, 1] / 2) for fit in (result, plain))
    assert 1.5 * robust < naive


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_a_fit_of_worths_and_a_selection_have_the_same_errors(link):
    frame = survey(40, 3, missing=0.2, camps=1.0)
    worths = model(frame, pr.PrivateBTL, link=link).fit(np.inf, dependence="cluster")
    selected = model(frame).fit(np.inf, dependence="cluster")
    again = pr.PrivateTopK.from_release(worths.release, k=2)
    for name in ("params", "bse", "pvalues"):
        np.testing.assert_allclose(getattr(again, name), getattr(selected, name), rtol=1e-9)
    np.testing.assert_allclose(again.bse, np.sqrt(np.diag(by_hand(frame)[1])))
    assert again.pvalue == pytest.approx(selected.pvalue)
    assert "cluster-robust" in str(again.summary())
    # and the other way round, as no number of the moments is lost
    back = pr.PrivateBTL.from_release(selected.release)
    assert "cluster-robust" in str(back.summary())
    rebuilt = pr.from_json(again.to_json())
    np.testing.assert_array_equal(rebuilt.bse, again.bse)


def test_few_respondents_of_one_mind_are_no_proof():
    rows = [(person, *pair, 1.0) for person in range(3) for pair in PAIRS]
    frame = pd.DataFrame(rows, columns=["respondent", "item1", "item2", "outcome"])
    result = model(frame).fit(np.inf, dependence="cluster")
    assert result.pvalue == pytest.approx(2 * t(2).sf(np.sqrt(3)))
    assert str(result.summary())
    alone = model(frame[frame["respondent"] == 0]).fit(np.inf, dependence="cluster")
    assert alone.pvalue > 0.3 and np.isfinite(alone.conf_int().to_numpy()).all()


def test_the_separation_of_camps_keeps_its_level():
    # a and b lead, tied on average, and respondents disagree on them
    rejected, plain = [], []
    for seed in range(200):
        frame = survey(60, 100 + seed, camps=2.0, rest=-2.0)
        built = model(frame, k=1)
        rejected.append(built.fit(np.inf, dependence="cluster").pvalue <= 0.05)
        plain.append(built.fit(np.inf, dependence="none").pvalue <= 0.05)
    assert np.mean(rejected) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert np.mean(plain) > 0.1


def fits(frame, **options):
    """Results of every class that can name cluster-robust errors."""
    frame = frame.assign(side=np.where(frame["respondent"] % 2, "x", "y"))
    shared = {"distinct_pairs": False, "max_rows": 12}
    by_side = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ side",
        frame,
        items=ITEMS,
        respondent="respondent",
        ties=False,
        design="public",
        levels={"side": ["x", "y"]},
        **shared,
    )
    selected = model(frame, **shared).fit(np.inf, **options)
    worths = model(frame, pr.PrivateBTL, **shared).fit(np.inf, penalty=1e-9, **options)
    return {
        "worths": worths,
        "coefficients": by_side.fit(np.inf, penalty=1e-9, **options),
        "win rates": selected,
        "win rates of worths": pr.PrivateTopK.from_release(worths.release, k=2),
        "worths of win rates": pr.PrivateBTL.from_release(selected.release, penalty=1e-9),
    }


def test_who_says_cluster_robust_learns_nothing_from_an_answer_given_twice():
    frame = survey(60, 5, camps=0.7)
    twice = pd.concat([frame, frame])
    once, again = (fits(each, dependence="cluster") for each in (frame, twice))
    naive, more = (fits(each, dependence="none") for each in (frame, twice))
    for name, result in again.items():
        assert "cluster-robust" in str(result.summary()), name
        np.testing.assert_allclose(result.bse, once[name].bse, rtol=1e-6, err_msg=name)
        assert "cluster-robust" not in str(more[name].summary()), name
        np.testing.assert_allclose(more[name].bse, naive[name].bse / np.sqrt(2), rtol=1e-6)
