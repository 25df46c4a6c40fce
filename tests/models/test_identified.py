"""What a private design does not identify is named, never ranked, and leaves the rest alone."""

import warnings

import numpy as np
import pandas as pd
import pytest

import privrank as pr
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.scoretests import shares
from privrank.results.claims import CLAIMS

quiet = pytest.mark.filterwarnings("ignore::privrank.PrivrankWarning")

ITEMS = list("abcdef")
WORTHS = np.linspace(1.0, -1.0, 6)
ALONE = [(i, j) for i in range(6) for j in range(i + 1, 5)]
HALVES = [(i, j) for i in range(6) for j in range(i + 1, 6) if (i < 3) == (j < 3)]
PEOPLE = 400


def survey(pairs, seed, rows=6, true=WORTHS):
    """Of 400 respondents each answers so many of these pairs; no other pair is compared."""
    rng = np.random.default_rng(seed)
    asked = rng.permuted(np.tile(np.arange(len(pairs)), (PEOPLE, 1)), axis=1)[:, :rows]
    first, second = np.array(pairs)[asked.ravel()].T
    won = rng.random(len(first)) < 1.0 / (1.0 + np.exp(true[second] - true[first]))
    return pd.DataFrame(
        {
            "respondent": np.repeat(np.arange(PEOPLE), asked.shape[1]),
            "item1": np.array(ITEMS)[first],
            "item2": np.array(ITEMS)[second],
            "outcome": np.where(won, 1.0, -1.0),
            "group": np.repeat(np.arange(PEOPLE) % 2, asked.shape[1]).astype(str),
        }
    )


UNIT = {"items": ITEMS, "respondent": "respondent", "max_rows": 6}


def worths(pairs, seed, epsilon=2.0, formula="1", unit=UNIT, **options):
    model = pr.PrivateBTL.from_formula(
        f"item1 + item2 + outcome ~ {formula}", survey(pairs, seed), **unit
    )
    return model.fit(epsilon, rng=np.random.default_rng(seed + 1000), **options)


def said(result):
    return " ".join(str(result.summary()).split())


def covered(fit):
    """Which identified pairs' intervals hold the true probability, all of them finite."""
    table = fit.pairwise().dropna()
    places = [[ITEMS.index(name) for name in table[side]] for side in ("item1", "item2")]
    true = 1.0 / (1.0 + np.exp(WORTHS[places[1]] - WORTHS[places[0]]))
    assert np.isfinite(table[["difference", "lower", "upper"]].to_numpy(float)).all()
    return ((table["lower"] <= true) & (true <= table["upper"])).to_numpy()


@quiet
def test_an_item_that_nobody_compared_is_never_ranked_and_always_named():
    """And the others are covered as they are in a survey without it."""
    held = []
    for seed in range(40):
        fit = worths(ALONE, seed)
        assert np.isnan([fit.params["f"], fit.ranks()["f"], fit.bse["f"]]).all()
        assert fit.conf_int().loc[list("abcde")].notna().all(axis=None)
        assert seed > 5 or "Not identified: f." in said(fit)
        held.append(covered(fit))
    assert {each.size for each in held} == {10}
    # what was hardly identified has wider intervals
    assert 0.93 <= np.mean(held) <= 0.99


@quiet
def test_two_parts_that_nobody_compared_are_never_ranked_together():
    held = []
    for seed in range(40):
        fit = worths(HALVES, seed)
        assert fit.components == (("a", "b", "c"), ("d", "e", "f"))
        text = said(fit) if seed < 6 else "{a, b, c} and {d, e, f} of 3 "
        assert "{a, b, c} and {d, e, f}" in text and " of 3 " in text
        assert sorted(fit.ranks()) == [1, 1, 2, 2, 3, 3]
        held.append(covered(fit))
    assert {each.size for each in held} == {6}
    assert 0.93 <= np.mean(held) <= 0.97


@quiet
def test_comparisons_too_few_to_identify_a_difference_do_not_bias_those_that_are_identified():
    """Net wins hold answers across components: a fit without these pairs was off by -.43."""
    chain, apart, errors = [(k, k + 1) for k in range(5)], 2.0 * WORTHS, []
    for seed in range(120):
        frame = survey(chain, seed, 5, apart).query("respondent < 300")
        unit = {"items": ITEMS, "respondent": "respondent", "max_rows": 5}
        fit = pr.PrivateBTL(frame, **unit).fit(1.0, rng=np.random.default_rng(seed + 1000))
        off = fit.params - pd.Series(apart, ITEMS)
        for part in fit.components if len(fit.components) > 1 else ():
            if len(part) > 1:
                errors.append((off[part[0]] - off[part[-1]]) / (len(part) - 1))
    assert len(errors) > 150
    assert abs(np.mean(errors)) < 3.0 * np.std(errors) / np.sqrt(len(errors))


@pytest.fixture(scope="module")
def alone():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return worths(ALONE, 1)


def test_the_fit_warns():
    with pytest.warns(pr.PrivrankWarning, match="Not identified: f. Their noisy comparisons"):
        worths(ALONE, 1)
    with pytest.warns(pr.PrivrankWarning, match="fall into components, {a, b, c} and {d, e, f}"):
        worths(HALVES, 1)


def test_every_statement_leaves_the_item_out(alone):
    text = said(alone)
    assert "f not identified not identified" in text and " of 5 " in text
    assert "Test that the worths of the 5 identified items are equal: " in text
    for table in (alone.summary().as_html(), alone.summary().as_latex()):
        assert table.count("not identified") >= 2
    assert alone.summary().as_markdown().count("not identified") >= 2
    assert alone.params.drop("f").sum() == pytest.approx(0.0)
    assert alone.worth().drop("f").sum() == pytest.approx(1.0) and np.isnan(alone.worth()["f"])
    assert alone.rank_conf_int().drop("f").max(axis=None) <= 5
    pairs = alone.pairwise(simultaneous=True)
    with_f = (pairs["item1"] == "f") | (pairs["item2"] == "f")
    shown = ["difference", "std_err", "probability"]
    assert pairs.loc[with_f, shown].isna().all(axis=None) and with_f.sum() == 5
    assert (pairs.loc[with_f, ["lower", "upper", "pvalue"]] == [0.0, 1.0, 1.0]).all(axis=None)
    assert pairs.loc[~with_f].notna().all(axis=None)
    asked = pd.DataFrame({"item1": ["a", "a"], "item2": ["b", "f"]})
    predicted = alone.predict(asked)
    assert list(predicted["probability"].isna()) == [False, True]
    assert list(predicted.loc[1, ["lower", "upper"]]) == [0.0, 1.0]
    assert np.isnan(alone.probabilities().loc["a", "f"])
    assert alone.quasi_se().drop("f").notna().all(axis=None)
    assert alone.cov_params().loc["f"].isna().all()
    frame = alone.to_frame()
    assert (
        frame.index[-1] == "f"
        and frame.loc["f"].drop(["lower", "upper", "pvalue", "z"]).isna().all()
    )
    assert list(frame.loc["f", ["lower", "upper", "pvalue"]]) == [-np.inf, np.inf, 1.0]
    assert alone.t_test("a = e").pvalue < 0.001
    across = alone.t_test("a = f")
    assert float(across.pvalue) == 1.0 and np.isinf(across.conf_int()).all()
    assert (alone.wald_test("a = f").df, alone.wald_test("a = f").pvalue) == (0, 1.0)
    alone.plot()
    alone.plot_pairwise()


def test_the_archive_says_the_same(alone):
    again = pr.from_json(alone.to_json())
    assert str(again.summary()) == str(alone.summary())
    pd.testing.assert_frame_equal(again.to_frame(), alone.to_frame())


@quiet
@pytest.mark.parametrize(
    ("unit", "options"),
    [
        (UNIT, {"method": "objective"}),
        (UNIT, {"method": "counts", "penalty": 0}),
        (UNIT, {"dependence": "pairs", "method": "counts"}),
        ({"items": ITEMS, "respondent": None}, {}),
    ],
)
def test_every_mechanism_names_it(unit, options):
    fit = worths(ALONE, 2, unit=unit, **options)
    assert np.isnan(fit.params["f"]) and fit.conf_int().drop("f").abs().max(axis=None) < 3
    assert fit.components == (tuple("abcde"), ("f",)) and covered(fit).mean() > 0.7
    assert fit.design_effect < 5


@quiet
def test_coefficients_of_covariates_name_it():
    unit = UNIT | {"levels": {"group": ["0", "1"]}}
    fit = worths(ALONE, 3, 4.0, "group", unit)
    missing = fit.params.index[fit.params.isna()]
    assert list(missing) == ["f", "group[T.1]:f"]
    assert np.isfinite(fit.conf_int().drop(missing).to_numpy()).all()
    assert fit.worths().set_index("item").loc["f", "worth"].isna().all()
    assert fit.test_homogeneity().df == 4 and list(fit.wald_test_terms()["df"]) == [4, 4]
    assert np.isnan(fit.ranks({"group": "1"})["f"]) and "Not identified: f" in said(fit)
    assert "ridge" not in " ".join(fit.warnings)
    # wherever it is in the list
    moved = worths(ALONE, 3, 4.0, "group", unit | {"items": ITEMS[::-1]})
    assert list(moved.params.index[moved.params.isna()]) == ["f", "group[T.1]:f"]
    # covariates of items tell where such an item is, and the summary on what that rests
    data = pd.DataFrame({"size": [5.0, 4, 3, 2, 1, 2.5]}, index=ITEMS)
    fit = worths(ALONE, 3, 4.0, unit=UNIT | {"item_formula": "size", "item_data": data})
    assert fit.params.notna().all() and "depend on the item covariates alone" in said(fit)


@quiet
def test_a_selection_says_nothing_of_an_item_that_is_not_identified(alone):
    for k in range(1, 6):
        top = pr.PrivateTopK.from_release(alone.release, k=k)
        assert len(top.selected) == k
        assert np.isnan(top.params["f"]) and np.isfinite(top.params.drop("f")).all()
        assert tuple(top.conf_int().loc["f"]) == (0.0, 1.0)
        assert tuple(top.rank_conf_int().loc["f"]) == (1, 6)
        # it may be any, so that no set is separated from it, nor with it
        assert top.pvalue == 1.0 and top.membership()["f"] == "open"
        assert "comparisons of f are within their noise" in said(top)
        assert str(pr.from_json(top.to_json()).summary()) == str(top.summary())
    assert "did not meet all opponents" not in said(pr.PrivateTopK.from_release(alone.release, 2))
    top.plot()


@quiet
def test_a_selection_across_parts_is_never_separated():
    frame = pd.DataFrame({"item1": ["a", "c"] * 200, "item2": ["b", "d"] * 200})
    frame["outcome"] = np.where(np.arange(400) % 10 < 9, 1, -1)
    options = {"items": list("abcd"), "respondent": None, "design": "private"}
    for seed in range(5):
        fit = pr.PrivateBTL(frame, **options).fit(2.0, rng=np.random.default_rng(seed))
        with pytest.warns(pr.PrivrankWarning, match=r"components, \{a, b\} and \{c, d\}"):
            top = pr.PrivateTopK.from_release(fit.release, 2)
        assert top.pvalue == 1.0 and (top.rank_conf_int().to_numpy() == [[1, 3], [2, 4]] * 2).all()
        text = " ".join(str(top.summary()).split())
        assert "components, {a, b} and {c, d}" in text and "is not separated" in text
        assert "Order the items by the worths" not in text


def test_where_noise_leaves_nothing_nothing_is_said():
    fit = worths(ALONE[:3], 4, 0.01)
    assert fit.params.isna().all() and (fit.pairwise()["pvalue"] == 1.0).all()
    assert "No differences are identified" in said(fit) and fit.test_homogeneity().df == 0
    assert CLAIMS["equal worths, unknown"] in said(fit)
    fit.plot()


@quiet
def test_such_fits_are_not_pooled(alone):
    with pytest.raises(ValueError, match=r"^results must identify all differences of worths"):
        pr.pool([alone, worths(ALONE, 1, 1.0)], survey="same")


def test_a_survey_that_compares_all_items_is_as_it_was():
    pairs = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    for seed in range(10):
        fit = worths(pairs, seed)
        assert fit.components == (tuple(ITEMS),) and fit.ranks().dtype == np.int64
        assert "identified" not in said(fit) and np.isfinite(fit.params).all()


@quiet
def test_hardly_identified_items_are_named():
    """Wherever p-values are divided, and nowhere else; the interval agrees with the p-value."""
    rng = np.random.default_rng(1)
    often = pd.DataFrame(
        {"item1": np.repeat(["a", "a", "b"], 300), "item2": np.repeat(["b", "c", "c"], 300)}
    )
    rarely = pd.DataFrame({"item1": ["d"] * 40, "item2": np.resize(["a", "b", "c"], 40)})
    frame = pd.concat([often, rarely], ignore_index=True)
    frame["outcome"] = rng.choice([1, -1], len(frame))
    model, found = pr.PrivateBTL(frame, items=list("abcd"), respondent=None), []
    for seed in range(12):
        fit = model.fit(1.0, method="counts", rng=np.random.default_rng(seed))
        divided = shares(score_equations(fit.release), np.array([[1.0, 0.0, 0.0, -1.0]]))[0] < 1.0
        words = [said for said in fit.warnings if "Weakly identified: d." in said]
        assert bool(words) == divided
        found.append(divided)
        if divided:
            assert words[0] in fit.to_frame().attrs["warnings"]
            table = fit.pairwise().set_index(["item1", "item2"])
            outside = (table["lower"] > 0.5) | (table["upper"] < 0.5)
            assert (outside == (table["pvalue"] < 0.05)).all()
    assert 0 < sum(found) < 12
