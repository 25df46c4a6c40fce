"""What is taken without more ado: names with dots, flags, coded categories, lists, polars."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privrank as pr

ANSWERS = pd.DataFrame(
    {
        "tech.equip": [1, 2, 1, 2, 3],
        "who.asked": pd.Categorical(list("abaab")),
        "smokes": [True, False, True, True, False],
    }
)
RANKS = pd.DataFrame({"a": [1, 2, 3, 2], "b": [2, 1, 1, 3], "c": [3, 3, 2, 1]})
TWO = pl.Series("x", ["u", "v", "u"])


def pvalue(test):
    return test.fit(np.inf, method="tv").pvalue


@pytest.mark.parametrize("respondent", [None, "name.of"])
def test_names_with_dots_need_no_quotes(respondent):
    data = ANSWERS.assign(**{"name.of": range(5)})
    unit = {"categories": [1, 2, 3]}
    if respondent is not None:
        unit["respondent"] = respondent
    plain = pr.UniformityTest.from_formula("tech.equip ~ 1", data, **unit)
    quoted = pr.UniformityTest.from_formula("Q('tech.equip') ~ 1", data, **unit)
    assert pvalue(plain) == pvalue(quoted)
    for right in ("who.asked", "Q('who.asked')"):
        test = pr.ClosenessTest.from_formula(f"tech.equip ~ {right}", data, **unit)
        assert "a 3, b 2" in repr(test)
    ranks = RANKS.rename(columns={"a": "a.x", "b": "b.y.z"})
    assert "3 items" in repr(pr.UniformityTest.from_formula("a.x + b.y.z + c ~ 1", ranks))
    with pytest.raises(ValueError, match="plain columns on its left"):
        pr.UniformityTest.from_formula("np.log(a) + b ~ 1", RANKS)


@pytest.mark.parametrize("name", ["Straße ~ ^", "a|b", "50% off_deal", "x + y", "it's: a-b*c/d"])
def test_quoted_names_may_hold_any_character(name):
    ranks = RANKS.rename(columns={"a": name}).assign(who=pd.Categorical(list("uvuv")))
    named = pr.UniformityTest.from_formula(f'Q("{name}") + b + c ~ 1', ranks)
    assert named.fit(1.0, draws=19).release.sample.items == (name, "b", "c")
    test = pr.ClosenessTest.from_formula(f'b + Q("{name}") + c ~ who', ranks)
    assert "groups u 2, v 2" in repr(test)
    frame = pd.DataFrame({"one": ["p", "q"] * 20, name: ["q", "r"] * 20})
    frame = frame.assign(won=[1, -1, -1, 1, 1] * 8)
    model = pr.PrivateBTL.from_formula(
        f'one + Q("{name}") + won ~ old',
        frame.assign(old=["no", "no", "yes", "yes"] * 10),
        items=list("pqr"),
        respondent=None,
        levels={"old": ["no", "yes"]},
    )
    assert model.fit(np.inf).release.design.covariates.formula == "old"


def test_a_name_that_needs_quotes_is_told_so():
    for formula in ("`50% off` + b ~ 1", "Q(50% off) + b ~ 1"):
        with pytest.raises(ValueError, match=r"not Python names as Q\('...'\)"):
            pr.UniformityTest.from_formula(formula, RANKS)


def test_covariates_may_have_dots():
    frame = pd.DataFrame({"item1": ["p", "q"] * 20, "item2": ["q", "r"] * 20})
    frame = frame.assign(outcome=[1, -1, -1, 1] * 10, **{"is.old": ["no", "yes"] * 20})
    fit = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ is.old",
        frame,
        items=list("pqr"),
        respondent=None,
        levels={"is.old": ["no", "yes"]},
    ).fit(5.0, rng=np.random.default_rng(1))
    assert "is.old" in str(fit.summary())


@pytest.mark.parametrize("kind", ["bool", "boolean", "polars"])
def test_flags_declare_their_two_values(kind):
    data = pl.from_pandas(ANSWERS[["smokes"]]) if kind == "polars" else ANSWERS
    if kind == "boolean":
        data = data.astype({"smokes": "boolean"})
    test = pr.IdentityTest.from_formula("smokes ~ 1", data, {"False": 0.5, "True": 0.5})
    assert test.fit(np.inf).release.sample.items == ("False", "True")
    if kind != "polars":
        assert "False 2, True 3" in repr(
            pr.ClosenessTest.from_formula("tech.equip ~ smokes", data, categories=[1, 2, 3])
        )


def test_lists_of_ranks_are_rankings():
    same = pr.UniformityTest(RANKS).fit(np.inf, draws=99)
    for data in (RANKS.to_numpy().tolist(), tuple(map(tuple, RANKS.to_numpy()))):
        assert pr.UniformityTest(data).fit(np.inf, draws=99).statistic == same.statistic
    for text in (RANKS.astype(str), RANKS.astype("category")):
        with pytest.raises(TypeError, match="must hold ranks.*leave it out with items="):
            pr.UniformityTest(text)


def test_whole_rankings_have_one_name_in_both_conversions():
    data = RANKS[:3]
    for form in ("ranks", "rankings"):
        assert pr.as_rankings(data, form).equals(pr.as_rankings(data))
        assert pr.as_comparisons(data, form).equals(pr.as_comparisons(data, "rankings"))
        with pytest.raises(ValueError, match="pairs= belongs to form='wide'"):
            pr.as_comparisons(data, form, pairs={"a": ("a", "b")})


def test_choices_come_as_series_lists_and_arrays():
    for data, declared in (
        (TWO.cast(pl.Enum(["u", "v"])), None),
        (TWO.cast(pl.Categorical), ["u", "v"]),
        (TWO.to_list(), ["u", "v"]),
        (TWO.to_numpy(), ["u", "v"]),
    ):
        test = pr.IdentityTest(data, "uniform", categories=declared)
        assert pvalue(test) == 1.0 and repr(test) == "<IdentityTest of choices: 2 items, 3 rows>"
    for data in (TWO, TWO.cast(pl.Categorical)):
        with pytest.raises(ValueError, match=r"categories=\[\.\.\.\]"):
            pr.UniformityTest(data)


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([["a", "b"], ["b", "a"]], TypeError, "as_rankings"),
        ([[1, 2, 3], [2, 1]], TypeError, "data frame"),
        (["a", "b", "a"], TypeError, "data frame"),
        ([], TypeError, "data frame"),
    ],
)
def test_what_is_not_clear_is_refused(data, error, words):
    with pytest.raises(error, match=words) as caught:
        pr.UniformityTest(data)
    assert str(caught.value).count(". ") < 3


def test_too_few_draws_are_warned_of():
    test = pr.UniformityTest(RANKS)
    with pytest.warns(pr.PrivrankWarning, match="draws=19 cannot reject at level 0.01") as caught:
        test.fit(1.0, draws=19, alpha=0.01)
    assert caught[0].filename == __file__ and "Use at least 99" in str(caught[0].message)
    pair = pr.ClosenessTest(RANKS, RANKS)
    with pytest.warns(pr.PrivrankWarning, match="permutations=19 cannot reject at level 0.02"):
        pair.fit(1.0, permutations=19, alpha=0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        test.fit(1.0, draws=19)
        pr.UniformityTest.from_counts([3, 9], ["a", "b"]).fit(1.0, draws=19, alpha=0.01)
