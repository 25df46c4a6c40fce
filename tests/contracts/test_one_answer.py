"""One hypothesis has one answer: on every surface of a fit, at every epsilon, for every model."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from catalogue import CATALOGUE
from scipy.special import ndtr

import privrank as pr
from privrank.bradley_terry import scoretests

pytestmark = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")

MODELS = {name: case for name, case in CATALOGUE.items() if case.model is pr.PrivateBTL}
EPSILONS = (0.2, 1.0, 4.0, np.inf)


def fit(case, epsilon):
    options = dict(case.options)
    if np.isinf(epsilon):  # what is about noise says nothing there
        for name in ("method", "noise", "delta", "shares", "solver"):
            options.pop(name, None)
    rng = np.random.default_rng(5)
    model = case.build(next(iter(case.frames)))
    return replace(case, options=options).fit(model, epsilon=epsilon, rng=rng)


def surfaces_agree(result):
    """Check that all surfaces of a fit say the same of single coefficients and of pairs."""
    names = [str(name) for name in result.params.index]
    table, known = result.to_frame(), result.params.notna().to_numpy()
    table.index = table.index.astype(str)
    table = table.loc[names]
    single = result.t_test(np.eye(len(names)))
    pvalues, tvalues = np.atleast_1d(single.pvalue), single.tvalue
    np.testing.assert_allclose(result.pvalues.to_numpy()[known], pvalues[known], rtol=1e-9)
    np.testing.assert_allclose(table["pvalue"].to_numpy()[known], pvalues[known], rtol=1e-9)
    np.testing.assert_allclose(2 * ndtr(-abs(tvalues)), pvalues, rtol=1e-6)
    np.testing.assert_allclose(result.tvalues.to_numpy()[known], tvalues[known], rtol=1e-9)
    assert np.isfinite(pvalues).all() and (pvalues[~known] == 1).all()
    for alpha in (0.05, 0.01, 0.05 / len(names)):
        limits = single.conf_int(alpha)
        assert not np.isnan(limits).any()
        outside = (limits[:, 0] > 0) | (limits[:, 1] < 0)
        np.testing.assert_array_equal(outside, pvalues < alpha)
        own = result.conf_int(alpha).to_numpy()
        np.testing.assert_allclose(own[known], limits[known], rtol=1e-9)
    tidy = result.tidy().set_index("term").loc[names]
    np.testing.assert_allclose(tidy["p_value"].to_numpy()[known], pvalues[known], rtol=1e-9)
    pick = int(np.argmax(known))
    alone = result.test(np.eye(len(names))[pick])
    assert alone.pvalue == pytest.approx(pvalues[pick], rel=1e-6)
    # a row that is there twice is one row
    twice = result.wald_test(np.eye(len(names))[[pick, pick]])
    identified = int(known[pick])
    assert (twice.df, twice.pvalue) == (identified, pytest.approx(pvalues[pick], rel=1e-6))
    assert alone.zvalue == pytest.approx(tvalues[pick])


def pairs_agree(result):
    """Check that pairs are the same in every table, and that a joint test has one p-value."""
    items, table = [str(item) for item in result.items], result.pairwise()
    m = len(items)
    first, second = np.triu_indices(m, 1)
    apart = np.eye(m)[first] - np.eye(m)[second]
    pvalues = table["pvalue"].to_numpy()
    if result.release.design.covariates is None:
        np.testing.assert_allclose(result.t_test(apart).pvalue, pvalues, rtol=1e-9)
        one = result.test(apart[0])
        assert one.pvalue == pytest.approx(pvalues[0], rel=1e-9)
        outside = (table["lower"] > 0.5) | (table["upper"] < 0.5)
        np.testing.assert_array_equal(outside, pvalues < result.alpha)
        # rows of a hypothesis may be combined in any way
        rows, mixed = apart[: m - 1], np.tril(np.ones((m - 1, m - 1))) @ apart[: m - 1]
        first, second = result.test(rows), result.test(mixed)
        assert first.pvalue == pytest.approx(second.pvalue, abs=2e-4) and first.df == second.df
        equal = result.test_homogeneity()
        assert equal.pvalue == pytest.approx(first.pvalue, abs=2e-4)
        if first.df == m - 1:
            assert first.contains(first.weights @ result.estimate.coefficients)
    np.testing.assert_array_equal(np.isfinite(pvalues), True)
    np.testing.assert_array_equal(table[["lower", "upper"]].notna(), True)
    equal = result.test_homogeneity()
    assert 0 < equal.pvalue <= 1 and equal.df <= m - 1
    assert (equal.df == 0) == (equal.pvalue == 1.0 and np.isnan(equal.statistic))


# the few rows of these have all their answers in one group, which only noise hides
UNTOLD = {("groups of rows" + more, np.inf) for more in (", defaults", ", crossed, defaults")}
UNTOLD |= {("groups of rows, tie parameter, defaults", np.inf)}


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", [name for name, case in MODELS.items() if case.first])
def test_surfaces_of_a_fit_agree(name, epsilon):
    if (name, epsilon) in UNTOLD:
        with pytest.raises(ValueError, match="cannot be estimated separately"):
            fit(MODELS[name], epsilon)
        return
    result = fit(MODELS[name], epsilon)
    surfaces_agree(result)
    pairs_agree(result)


@pytest.mark.parametrize("name", [name for name, case in MODELS.items() if not case.first])
def test_surfaces_agree_whatever_the_options(name):
    result = fit(MODELS[name], MODELS[name].options.get("epsilon", 1.0))
    surfaces_agree(result)
    pairs_agree(result)


def test_a_test_that_answers_by_another_rule_is_found(monkeypatch):
    result = without_noise(answers())
    right = scoretests.intervals
    monkeypatch.setattr(
        "privrank.results.hypotheses.intervals",
        lambda inference, rows, alpha: right(inference, rows, 2 * alpha),
    )
    with pytest.raises(AssertionError):
        surfaces_agree(result)


def answers(people=40, items=4, each=6):
    rng = np.random.default_rng(3)
    first, second = np.triu_indices(items, 1)
    own = np.linspace(0.8, -0.8, items) + rng.normal(size=(people, items))
    won = rng.random((people, len(first))) < 1 / (1 + np.exp(own[:, second] - own[:, first]))
    return pd.DataFrame(
        {
            "item1": np.tile(first, people),
            "item2": np.tile(second, people),
            "outcome": np.where(won, 1, -1).ravel(),
            "who": np.repeat(np.arange(people), len(first)),
        }
    )


FACTS = {"respondent": "who", "max_rows": 6, "design": "public"}


def without_noise(frame, items=range(4), **facts):
    return pr.PrivateBTL(frame, items=list(items), **FACTS | facts).fit(np.inf)


def test_neither_labels_nor_the_order_of_rows_or_items_change_an_answer():
    frame = answers()
    result = without_noise(frame)
    pairs = result.pairwise().set_index(["item1", "item2"])
    other = without_noise(frame.sample(frac=1.0, random_state=1), items=[2, 0, 3, 1])
    moved = other.pairwise()
    for row in moved.itertuples():
        key = tuple(sorted((row.item1, row.item2)))
        assert row.pvalue == pytest.approx(pairs.loc[key, "pvalue"], rel=1e-6)
    assert other.test_homogeneity().pvalue == result.test_homogeneity().pvalue
    limits = other.conf_int().loc[result.conf_int().index]
    np.testing.assert_allclose(limits, result.conf_int(), atol=1e-5)


def test_one_answer_of_each_respondent_is_a_row():
    frame = answers().iloc[::6].assign(item2=[1, 2, 3, 1] * 10)
    people, rows = without_noise(frame, max_rows=1), without_noise(frame, respondent=None)
    np.testing.assert_allclose(people.pvalues, rows.pvalues, rtol=1e-6)
    np.testing.assert_allclose(people.conf_int(), rows.conf_int(), atol=0.01)
    assert people.test_homogeneity().pvalue == rows.test_homogeneity().pvalue


def test_an_empty_group_is_refused_and_an_empty_category_is_the_whole_line():
    frame = answers().assign(group=lambda rows: np.where(rows["who"] % 2, "a", "b"))
    model = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ 1 + group",
        frame,
        items=list(range(4)),
        levels={"group": ["a", "b", "nobody"]},
        **FACTS | {"design": "private"},
    )
    with pytest.raises(ValueError, match="levels that no respondent has"):
        model.fit(np.inf)
    fitted = model.fit(4.0, rng=np.random.default_rng(1))
    limits = fitted.pairwise(at={"group": "nobody"})[["lower", "upper"]]
    assert (limits["lower"] < 0.1).all() and (limits["upper"] > 0.9).all()


def test_what_is_not_identified_is_the_whole_line():
    apart = pd.DataFrame(
        {
            "item1": ["a"] * 300 + ["c"] * 300,
            "item2": ["b"] * 300 + ["d"] * 300,
            "outcome": ([1, 1, -1] * 100) * 2,
        }
    )
    model = pr.PrivateBTL(apart, items=list("abcd"), respondent=None, pair_counts="release")
    result = model.fit(4.0, rng=np.random.default_rng(1))
    assert len(result.components) == 2
    across = result.t_test("a = c")
    assert float(across.pvalue) == 1.0 and np.isnan(across.effect[0])
    np.testing.assert_array_equal(across.conf_int(), [[-np.inf, np.inf]])
    both = result.test("a = c, a = b")  # of two equations one is identified
    assert both.df == 1 and both.pvalue == pytest.approx(float(result.t_test("a = b").pvalue))
    nothing = result.test("a = c")
    assert (nothing.df, nothing.pvalue) == (0, 1.0)
    assert result.test_homogeneity().df == 2
    table = result.pairwise().set_index(["item1", "item2"]).loc[("a", "c")]
    assert (table["pvalue"], table["lower"], table["upper"]) == (1.0, 0.0, 1.0)


def test_equations_that_contradict_each_other_are_refused():
    result = without_noise(answers())
    with pytest.raises(ValueError, match="contradicts itself"):
        result.test([[1.0, -1.0, 0.0, 0.0], [2.0, -2.0, 0.0, 0.0]], [0.0, 1.0])
