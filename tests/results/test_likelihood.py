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


def test_private_fits_say_why_they_have_none():
    result = model(survey()).fit(2.0, rng=np.random.default_rng(1))
    for name in ("llf", "llnull", "deviance", "df_model", "df_resid", "aic", "bic"):
        with pytest.raises(ValueError, match="a private fit has no likelihood"):
            getattr(result, name)
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
