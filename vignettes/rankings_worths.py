# %% [markdown]
# # Worths from rankings: is it valid to break them into pairs?
#
# A ranking says of every two items which is the better one, so a set of rankings can be read as paired comparisons, and a Bradley-Terry model gives each item a worth. This is known as rank-breaking, and whoever does it is asked whether it is valid. In short: the worths are right where rankings follow the Plackett-Luce model, if all pairs of a list are taken; and the errors are right only if they know that the pairs of one ranking are not independent. Here they do, because the unit is the respondent, for privacy and for errors alike.
#
# > **This page uses seeded noise**, so that everybody who runs it gets the same page (but for the last section). Whoever knows the seed can take the noise off again: for results to be published, leave `rng=` away, as the last section does.

# %%
import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(1952)

# %% [markdown]
# ## From rankings to worths
#
# The students of the University survey, each with one ranking of six universities. `rankings(ties="shared")` lets universities share a rank; `ties=True` declares that they may. `as_comparisons` makes every pair of a ranking a row, and says whose it is.

# %%
cems = pr.datasets.load_university()
pairs = pr.as_comparisons(cems.rankings(ties="shared"), "rankings", ties=True)
print(len(cems.students), "rankings,", len(pairs), "comparisons")
model = pr.PrivateBTL(pairs, respondent="respondent", max_rows=15, ties=True, design="public")
budget = pr.Budget(epsilon=3.0, unit="respondent")
fit = model.fit(epsilon=1.0, budget=budget, rng=rng)
print(fit.summary())
figure = fit.plot_worth()  # Worths from whole rankings, epsilon 1 for each of them

# %% [markdown]
# Everybody ranked all items, so that all know who compared what, and the design is public. Noise is calibrated to what one whole ranking can change, not to a comparison.
#
# ## Are the worths right?
#
# In the Plackett-Luce model a ranking is chosen from the top. Of the items that are left, $i$ is next with probability $e^{\theta_i}$ over the sum of $e^{\theta_k}$. Take two items $i$ and $j$. At the stage at which the first of the two is chosen, it is $i$ with probability
#
# $$\frac{e^{\theta_i}}{e^{\theta_i} + e^{\theta_j}} ,$$
#
# whatever was chosen before. That is the Bradley-Terry model with the same worths, for every pair. So the fit to all pairs is consistent. It is not the maximum-likelihood fit of Plackett-Luce, which uses a little more of the rankings. (Taking only some pairs by their places, such as neighbours in the ranking, is another matter: which pairs these are depends on the answer, and the worths come out wrong.) With worths that are known:

# %%
true = pd.Series(np.linspace(1.0, -1.0, 6), index=list("abcdef"))
luce = pr.PlackettLuce(true)


def rankings(people):
    return pd.DataFrame(luce.rvs(people, rng), columns=true.index)


def fitted(ranks, epsilon, dependence="auto", listed=6):
    missing, design = ("refuse", "public") if listed == 6 else ("bottom", "private")
    rows = pr.as_comparisons(ranks, "rankings", missing=missing)
    told = listed * (2 * 6 - listed - 1) // 2  # pairs whose order a list tells
    outcome = "outcome" if listed == 6 else "list_outcome"
    unit = {"respondent": "respondent", "max_rows": told}
    worths = pr.PrivateBTL(rows, outcome=outcome, design=design, **unit)
    return worths.fit(epsilon, dependence=dependence, rng=rng)


ranks = rankings(2000)
both = {"true": true, "epsilon 1": fitted(ranks, 1.0).params, "none": fitted(ranks, np.inf).params}
print(pd.DataFrame(both).round(3).to_string())

# %% [markdown]
# ## Are the errors right?
#
# The rows of one ranking hang together: who places an item first prefers it in all of its pairs. Taken as independent (`dependence="none"`, or any program for paired comparisons that is not told whose rows these are), they seem to say more than they do.

# %%
respondents, rows = (fitted(ranks, np.inf, form) for form in ("auto", "none"))
errors = {"respondents": respondents.bse, "independent rows": rows.bse}
print(pd.DataFrame(errors | {"ratio": rows.bse / respondents.bse}).round(3).to_string())

# %% [markdown]
# How often do intervals of either kind, meant to hold in 95 % of samples, hold the difference of two worths?

# %%
level = 0.95
first, second = np.triu_indices(len(true), 1)
apart = true.to_numpy()[first] - true.to_numpy()[second]
probability = 1.0 / (1.0 + np.exp(-apart))
for form in ("auto", "none"):
    held = []
    for _ in range(100):
        table = fitted(rankings(300), np.inf, form).pairwise(alpha=1 - level)
        held.append((table["lower"] <= probability) & (probability <= table["upper"]))
    print(f"{form:5} meant {level:.0%}, found {np.mean(held):.0%}")

# %% [markdown]
# ## The leading three only
#
# If a list ends after three items, the others come after them in an order that nobody knows. `missing="bottom"` makes rows of the pairs whose order a list tells: two items listed, or one listed and one not. The argument above holds for these as well, as the first of two items was chosen at a stage of the list. Which pairs a list tells is part of the answer, so it has to be protected with it: the design is private, and how often each pair was compared is released with noise. The outcome column of such a frame is called `list_outcome`, and with `design="public"` it is refused, since its pair counts would tell, without noise, how often each item was listed.

# %%
top = ranks.where(ranks <= 3)
lists = fitted(top, 1.0, listed=3)
print(lists.summary())
print((lists.params - true).round(3).to_string())

# %% [markdown]
# ## And if rankings follow another model?
#
# Worths are then still defined, as those that fit the pairs best: in a Mallows model, or where respondents are of several minds, they say how often the one of two items comes before the other, as nearly as one number per item can. Their intervals hold for these worths, since the errors are taken from the respondents and not from a model of rankings. [Intervals for worths of rankings](../docs/validation/ranking_worths.md) has measured it. Who wants an order rather than worths has no need for a model: see the vignette on consensus.
#
# ## For publication: secure noise
#
# Without `rng=` the noise comes from a cryptographically secure source. The numbers below differ each time this page is made, and each time they cost another epsilon; a survey of your own is fitted once and the result kept.

# %%
print(model.fit(epsilon=1.0, budget=budget).summary(), budget.summary(), sep="\n\n")
