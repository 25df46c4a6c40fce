# %% [markdown]
# # Worths from rankings
#
# A ranking determines which of any two items is better, so a set of rankings can be analysed as paired comparisons, and a Bradley-Terry model gives each item a worth. This method is known as rank-breaking. Is it valid?
#
# In short, worth estimates are consistent under the Plackett-Luce model if all pairs of each ranking are used. Standard errors are valid only if they account for the correlation between pairs from the same ranking. On this page they do, because the respondent is both the unit of privacy and the cluster.
#
# > This page uses **seeded noise**, for illustration only (see the last section).

# %%
import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(1952)

# %% [markdown]
# ## From rankings to worths
#
# Each student of the University survey has one ranking of six universities. `rankings(ties="shared")` allows shared ranks, and `ties=True` declares them. `as_comparisons` converts every pair of a ranking into a row, with the identifier of the respondent.

# %%
cems = pr.datasets.load_university()
pairs = pr.as_comparisons(cems.rankings(ties="shared"), "rankings", ties=True)
print(len(cems.students), "rankings,", len(pairs), "comparisons")
model = pr.PrivateBTL(
    pairs, respondent="respondent", max_rows=15, ties=True, design="public"
)
budget = pr.Budget(epsilon=3.0, unit="respondent")
fit = model.fit(epsilon=1.0, budget=budget, rng=rng)
print(fit.summary())
# Worths from complete rankings with 95% intervals (epsilon = 1)
figure = fit.plot_worth()

# %% [markdown]
# All students ranked all items. It is therefore known which pairs each student compared, and the design is public. The noise is calibrated to the influence of a complete ranking, not of a single comparison.
#
# ## Are the worths consistent?
#
# In the Plackett-Luce model a ranking is chosen from the top. Among the remaining items, $i$ is next with probability $e^{\theta_i}$ divided by the sum of $e^{\theta_k}$. Consider two items $i$ and $j$. At the stage at which the first of the two is chosen, it is $i$ with probability
#
# $$\frac{e^{\theta_i}}{e^{\theta_i} + e^{\theta_j}} ,$$
#
# whatever was chosen before. For every pair this is the Bradley-Terry model with the same worths, so the fit to all pairs is consistent. It is not the maximum-likelihood fit of the Plackett-Luce model, which is slightly more efficient.
#
# (The argument does not hold if pairs are selected by rank, such as neighbours in the ranking. The selection then depends on the answer, and the worths are biased.) The following example uses known worths:

# %%
true = pd.Series(np.linspace(1.0, -1.0, 6), index=list("abcdef"))
luce = pr.PlackettLuce(true)


def rankings(people):
    return pd.DataFrame(luce.rvs(people, rng), columns=true.index)


def fitted(ranks, epsilon, dependence="auto", listed=6):
    missing, design = (
        ("refuse", "public") if listed == 6 else ("bottom", "private")
    )
    rows = pr.as_comparisons(ranks, "rankings", missing=missing)
    most_pairs = (
        listed * (2 * 6 - listed - 1) // 2
    )  # pairs whose order a list determines
    outcome = "outcome" if listed == 6 else "list_outcome"
    unit = {"respondent": "respondent", "max_rows": most_pairs}
    worths = pr.PrivateBTL(rows, outcome=outcome, design=design, **unit)
    return worths.fit(epsilon, dependence=dependence, rng=rng)


ranks = rankings(2000)
both = {
    "true": true,
    "epsilon 1": fitted(ranks, 1.0).params,
    "none": fitted(ranks, np.inf).params,
}
print(pd.DataFrame(both).round(3).to_string())

# %% [markdown]
# ## Are the standard errors valid?
#
# Rows from one ranking are correlated: a respondent who ranks an item first prefers it in all of its pairs. If the rows are treated as independent, the standard errors are too small. This is the case for `dependence="none"`, and for any software for paired comparisons that does not know the respondents.

# %%
respondents, rows = (fitted(ranks, np.inf, form) for form in ("auto", "none"))
errors = {"respondents": respondents.bse, "independent rows": rows.bse}
print(
    pd.DataFrame(errors | {"ratio": rows.bse / respondents.bse})
    .round(3)
    .to_string()
)

# %% [markdown]
# The next simulation compares the coverage of both kinds of intervals, with nominal level 95%, for the difference of two worths:

# %%
level = 0.95
first, second = np.triu_indices(len(true), 1)
apart = true.to_numpy()[first] - true.to_numpy()[second]
probability = 1.0 / (1.0 + np.exp(-apart))
for form in ("auto", "none"):
    covered = []
    for _ in range(100):
        table = fitted(rankings(300), np.inf, form).pairwise(alpha=1 - level)
        covered.append(
            (table["lower"] <= probability) & (probability <= table["upper"])
        )
    print(f"{form:5} nominal {level:.0%}, coverage {np.mean(covered):.0%}")

# %% [markdown]
# ## Top-three lists
#
# If a list contains only the top three items, the order of the other items is unknown. `missing="bottom"` uses the pairs whose order the list determines: two listed items, or one listed and one unlisted item. The argument above applies to these pairs, because the first of the two items was chosen at a stage of the list.
#
# Which pairs a list determines is part of the answer, so it must be protected. The design is therefore private, and the pair counts are released with noise. The outcome column of such a data frame is called `list_outcome`. With `design="public"` it is refused, because exact pair counts would reveal how often each item was listed.

# %%
top = ranks.where(ranks <= 3)
lists = fitted(top, 1.0, listed=3)
print(lists.summary())
print((lists.params - true).round(3).to_string())

# %% [markdown]
# ## Other models of rankings
#
# Under other models the worths are still defined as the best fit to the pairs. Examples are Mallows models and populations with several groups of opinions. The worths then describe how often one item is ranked above another, as closely as one number per item permits. Intervals cover these worths, because standard errors are computed from the respondents and not from a model of rankings ([study](../docs/validation/ranking_worths.md)). If you need only a ranking, use a [consensus ranking](consensus.py), which requires no model.
#
# ## For publication: secure noise
#
# Without `rng=` the noise comes from a cryptographically secure source. The numbers below change each time this page is built, and each time the fit uses more epsilon. Fit your own survey once and store the result.

# %%
print(
    model.fit(epsilon=1.0, budget=budget).summary(),
    budget.summary(),
    sep="\n\n",
)
