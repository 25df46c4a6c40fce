"""Non-private fits are of maximum likelihood: against statsmodels on the rows themselves."""

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
    right, _, contest = right.partition(", ")
    if contest:
        arguments["contest"] = contest
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
@pytest.mark.parametrize("right", ["1", "group", "group, first", "group + age"])
def test_fits_maximise_the_likelihood(link, right):
    frame = survey()
    result, wanted = exact(frame, right, link=link), reference(frame, right, link)
    np.testing.assert_allclose(result.predict(frame)["probability"], wanted.fittedvalues, rtol=1e-6)


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_a_tie_is_half_a_win_to_each(link):
    frame = survey(ties=True)
    found = exact(frame, ties=True, link=link).predict(frame)["preferred_plus_half_ties"]
    np.testing.assert_allclose(found, reference(frame, "1", link).fittedvalues, rtol=1e-6)
