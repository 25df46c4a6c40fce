# %% [markdown]
# # Consensus rankings
#
# We want one ranking that represents all students of the University survey, and to know which of its positions are established beyond sampling error and privacy noise. The preferences of each student remain protected.
#
# > This page uses **seeded noise**, for illustration only (see the last section).

# %%
import numpy as np

import privrank as pr

rng = np.random.default_rng(2022)

# %% [markdown]
# ## Rankings with ties
#
# Students compared six universities pair by pair. `rankings(ties="shared")` orders the universities of each student by net wins. Universities with equal net wins share the mean of their ranks. `ties=True` declares that items may share a rank, and each of two tied items receives half a vote.
#
# If cells are missing, `missing=` determines their treatment: `"bottom"` (below all listed items) or `"half"` (half a vote against every other item). Half votes lie between the votes of the two possible orders. They therefore do not increase the sensitivity, and the noise is the same as for complete rankings.

# %%
cems = pr.datasets.load_university()
ranks = cems.rankings(ties="shared")
model = pr.PrivateRankAggregation(ranks, respondent="respondent", ties=True)
print(ranks.head(3))
print(model)

# %% [markdown]
# (Rankings are shown because this survey was published long ago. With confidential data this would breach privacy.)
#
# ## The consensus ranking
#
# There are two possible releases. The first is the sums of ranks (Borda totals). The second is the number of students who rank each university above each other one. From the second, the method computes Kemeny's ranking, which has the fewest disagreements. The default selects the release with the smaller predicted loss, from the numbers of students and universities. On this page `releases="pairs"` requests the second, because we also want results for pairs.
#
# The counts are first shrunk towards values that scores of the universities would explain. The amount depends on the noise level, because a ranking fitted closely to noisy counts also fits the noise.

# %%
budget = pr.Budget(epsilon=6.0, delta=1e-5, unit="respondent")
fit = model.fit(
    epsilon=1.0, delta=1e-6, releases="pairs", budget=budget, rng=rng
)
print(fit.summary())
# Consensus ranking and 95% rank sets (n = 303, epsilon = 1)
figure = fit.plot_consensus()

# %% [markdown]
# The column `ranks` contains the rank set of each university, according to the mean rank over all students. The lower limit is 1 plus the number of universities that are established to rank above it. The upper limit is 6 minus the number established to rank below it. The rank sets have simultaneous coverage of at least 95%, for any distribution of opinions. In the worst case half of the students have the opposite opinion of the other half. The figure shows the rank sets with the consensus ranking.
#
# ## Pairs
#
# The same release provides further results at no additional privacy cost. For every pair the table contains the fraction with its pointwise interval (`lower`, `upper`) and a simultaneous interval. `pairwise()` also shows whether the simultaneous interval excludes one half.

# %%
print(
    fit.pairwise()[
        ["fraction", "lower", "upper", "all_lower", "all_upper"]
    ].round(2)
)
# Share of students who rank the row university above the column one
figure = fit.plot_pairwise()

# %% [markdown]
# ## The default release
#
# Without `releases="pairs"` the default here is to release Borda totals, which need less noise. They provide a ranking and mean ranks with intervals, but no results for the majorities of pairs.

# %%
pure = model.fit(epsilon=1.0, budget=budget, rng=rng)
print(pure.summary())

# %% [markdown]
# ## The effect of epsilon
#
# The table shows Borda scores and rank sets for two values of epsilon, and without privacy in the last column:

# %%
fits = [model.fit(e, rng=rng) for e in (1.0, 4.0, np.inf)]
print(pr.summary_col(fits))

# %% [markdown]
# ## Other methods
#
# Methods from the literature are available for comparison. KwikSort uses a noisy count at each comparison, and the exponential mechanism draws a complete ranking. Both release only a ranking. The table shows the mean number of pairs ordered differently from the non-private consensus, over repeated runs at a small epsilon.

# %%
best = fits[-1].consensus
upper = np.triu_indices(len(best), 1)


def turned(order):
    place = best.loc[list(order)].to_numpy()
    return int((place[upper[0]] > place[upper[1]]).sum())


for method in ("auto", "kwiksort", "kwiksort-hay", "exponential"):
    orders = [model.fit(0.5, method=method, rng=rng).order for _ in range(100)]
    print(f"{method:13}{np.mean([turned(order) for order in orders]):6.2f}")

# %% [markdown]
# ## For publication: secure noise
#
# Without `rng=` the noise comes from a cryptographically secure source. The numbers below change each time this page is built, and each time the fit uses more epsilon. Fit your own survey once and store the result. The ledger contains only the fits that received the budget. Add the epsilon of other fits, such as some fits above, yourself.

# %%
print(
    model.fit(epsilon=1.0, delta=1e-6, budget=budget).summary(),
    budget.summary(),
    sep="\n\n",
)
