"""The likelihood of non-private fits, against statsmodels on the rows themselves."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import norm

import privrank as pr

ITEMS = ["a", "b", "c", "d"]
LINKS = {"logit": sm.families.links.Logit(), "probit": sm.families.links.Probit()}


def survey(rows=900, ties=False):
    rng = np.random.default_rng(8)
    pair = np.array([rng.choice(4, 2, replace=False) for _ in range(rows)])
    worth = np.array([0.8, 0.2, -0.1, -0.9])
    group = rng.choice(["f", "m"], rows)
    shift = np.where(group == "m", 0.5, -0.5) * (pair[:, 0] == 2)
    t = worth[pair[:, 0]] - worth[pair[:, 1]] + shift + 0.3
    outcome = np.where(rng.random(rows) < norm.cdf(t / 1.6), 1.0, -1.0)
    if ties:
        outcome[rng.random(rows) < 0.1] = 0.0
    age = rng.integers(20, 60, rows).astype(float)
    named = np.array(ITEMS)[pair]
    return pd.DataFrame(
        {
            "item1": named[:, 0],
            "item2": named[:, 1],
            "outcome": outcome,
            "group": pd.Categorical(group, ["f", "m"]),
            "age": age,
        }
    )


def model(frame, right="1", **arguments):
    if "age" in right:
        arguments["bounds"] = {"age": (20, 60)}
    arguments = {"items": ITEMS, "respondent": None, "design": "public"} | arguments
    return pr.PrivateBTL.from_formula(f"item1 + item2 + outcome ~ {right}", frame, **arguments)


def exact(frame, right="1", **arguments):
    return model(frame, right, **arguments).fit(np.inf, penalty=0)


def reference(frame, right, link):
    """The same model as a regression without intercept, one row of the frame a row of it."""
    step = np.eye(4)[:, 1:]
    place = [[ITEMS.index(name) for name in frame[column]] for column in ("item1", "item2")]
    worths = step[place[0]] - step[place[1]]
    columns = [worths]
    if "group" in right:
        columns.append(worths * (frame["group"] == "m").to_numpy()[:, None])
    if "age" in right:
        columns.append(worths * frame["age"].to_numpy()[:, None])
    if "first" in right:
        columns.append(np.ones((len(frame), 1)))
    wins = (frame["outcome"] + 1) / 2
    family = sm.families.Binomial(LINKS[link])
    return sm.GLM(wins, np.column_stack(columns), family=family).fit()


@pytest.mark.parametrize("link", ["logit", "probit"])
@pytest.mark.parametrize("right", ["1", "group", "group + first", "group + age"])
def test_the_likelihood_is_that_of_statsmodels(link, right):
    frame = survey()
    result, wanted = exact(frame, right, link=link), reference(frame, right, link)
    assert result.llf == pytest.approx(wanted.llf, rel=1e-8)
    assert result.deviance == pytest.approx(wanted.deviance, rel=1e-8)
    assert result.aic == pytest.approx(wanted.aic, rel=1e-8)
    assert result.bic == pytest.approx(wanted.bic_llf, rel=1e-8)
    assert result.df_model == len(wanted.params)
    assert result.df_resid == wanted.df_resid
    assert result.llnull == pytest.approx(900 * np.log(0.5))


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_a_tie_is_half_a_win_to_each(link):
    frame = survey(ties=True)
    won, chance = (frame["outcome"] + 1) / 2, reference(frame, "1", link).fittedvalues
    wanted = (won * np.log(chance) + (1 - won) * np.log(1 - chance)).sum()
    assert exact(frame, ties=True, link=link).llf == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize("link", ["logit", "probit"])
@pytest.mark.parametrize(
    ("wide", "narrow"), [("group", "1"), ("group + first", "group"), ("group + age", "age")]
)
def test_the_likelihood_ratio_is_that_of_statsmodels(link, wide, narrow):
    frame = survey()
    found = exact(frame, wide, link=link).compare_lr_test(exact(frame, narrow, link=link))
    apart = 2 * (reference(frame, wide, link).llf - reference(frame, narrow, link).llf)
    assert found[0] == pytest.approx(apart, abs=1e-5)
    assert found[2] == (1 if "first" in wide else 3)


def test_item_covariates_are_nested_in_free_worths():
    frame = survey()
    numbers = pd.DataFrame({"price": [1.0, 2.0, 4.0, 3.0]}, index=ITEMS)
    priced = exact(frame, item_formula="price", item_data=numbers)
    statistic, pvalue, df = exact(frame).compare_lr_test(priced)
    assert df == 2
    assert statistic > 0
    assert pvalue < 0.05
    # nearly the Wald test of the same hypothesis
    assert statistic == pytest.approx(priced.test_lack_of_fit()["statistic"], rel=0.15)


def test_the_level_is_kept():
    rng, rejected = np.random.default_rng(3), 0
    for _ in range(100):
        frame = survey(300)
        frame["group"] = pd.Categorical(rng.choice(["f", "m"], 300), ["f", "m"])
        frame["outcome"] = rng.choice([-1.0, 1.0], 300)
        rejected += exact(frame, "group").compare_lr_test(exact(frame))[1] <= 0.05
    assert rejected <= 12


def test_what_is_not_nested_is_refused():
    frame = survey()
    other = frame.assign(outcome=-frame["outcome"])
    wide = exact(frame, "group")
    refused = [
        (exact(frame), wide),
        (wide, wide),
        (wide, exact(frame, "first")),
        (exact(frame, "group + first"), exact(frame, "age")),
        (wide, exact(other)),
        (wide, exact(frame.iloc[:-1])),
        (wide, exact(frame, link="probit")),
    ]
    for full, restricted in refused:
        with pytest.raises(ValueError, match="special case of this one's"):
            full.compare_lr_test(restricted)
    shrunk = model(frame).fit(np.inf, penalty=1.0)
    with pytest.raises(ValueError, match="penalty=0"):
        wide.compare_lr_test(shrunk)
    with pytest.raises(ValueError, match="aic needs"):
        _ = shrunk.aic
    assert shrunk.llf < exact(frame).llf
    with pytest.raises(TypeError, match="restricted must be a fit"):
        wide.compare_lr_test("1")


def test_dependent_answers_have_no_likelihood_ratio():
    data = pr.datasets.load_university()
    fits = [
        pr.PrivateBTL.from_formula(
            f"item1 + item2 + outcome ~ {right}",
            data.comparisons,
            items=data.items,
            respondent="respondent",
            max_rows=15,
            ties=True,
            design="public",
        )
        for right in ("first", "1")
    ]
    with pytest.raises(ValueError, match="a respondent gave several"):
        fits[0].fit(np.inf, penalty=0).compare_lr_test(fits[1].fit(np.inf, penalty=0))
    asserted = [fit.fit(np.inf, penalty=0, dependence="none") for fit in fits]
    assert asserted[0].compare_lr_test(asserted[1])[2] == 1


def test_private_fits_say_why_they_have_none():
    result = model(survey()).fit(2.0, rng=np.random.default_rng(1))
    for name in ("llf", "llnull", "deviance", "df_model", "df_resid", "aic", "bic"):
        with pytest.raises(ValueError, match="a private fit has no likelihood"):
            getattr(result, name)
    with pytest.raises(ValueError, match="a private fit has no likelihood"):
        exact(survey(), "group").compare_lr_test(result)
    assert "Likelihood" not in str(result.summary())


def test_net_wins_are_no_likelihood_of_another_link():
    release = exact(survey()).release
    read = pr.PrivateBTL.from_release(release, penalty=0, link="probit")
    with pytest.raises(ValueError, match="needs the wins of every pair"):
        _ = read.llf
    assert "Likelihood" not in str(read.summary())


def test_the_summary_of_a_non_private_fit_shows_it():
    result = exact(survey())
    text = str(result.summary())
    assert f"{result.llf:.2f}" in text
    assert f"{result.aic:.2f}" in text
    assert pr.from_json(result.to_json()).llf == result.llf


def test_what_is_no_fit_is_named_by_its_type():
    fit = pr.PrivateBTL(
        pr.datasets.load_university().comparisons, items=pr.datasets.load_university().items,
        respondent=None, ties=True, design="public",
    ).fit(np.inf, penalty=0)  # fmt: skip
    with pytest.raises(TypeError, match="got DataFrame") as refusal:
        fit.compare_lr_test(fit.pairwise())
    assert "London" not in str(refusal.value)
