# %% [markdown]
# # Which order do they agree on? A consensus ranking
#
# A set of rankings asks for one order that stands for all, and for an answer to the question which of its places are more than sampling error and noise. This page finds both for the students of the University survey, without showing what any one of them prefers.
#
# > **This page uses seeded noise**, so that everybody who runs it gets the same page (but for the last section). Whoever knows the seed can take the noise off again: for results to be published, leave `rng=` away, as the last section does.

# %%
import numpy as np

import privrank as pr

rng = np.random.default_rng(2022)

# %% [markdown]
# ## Rankings with ties
#
# Students compared six universities pair by pair. `rankings(ties="shared")` orders the universities of each student by net wins; those with equally many share the mean of their places. `ties=True` declares that items may share a rank: two that do get half a vote each. (Where cells are missing, `missing=` says what that means: `"bottom"`, below all listed items, or `"half"`, half a vote against any other.) Such a vote lies between those of the two orders, so it moves no count by more than a complete ranking does, and the noise stays the same.

# %%
cems = pr.datasets.load_university()
ranks = cems.rankings(ties="shared")
model = pr.PrivateRankAggregation(ranks, respondent="respondent", ties=True)
print(ranks.head(3))
print(model)

# %% [markdown]
# (Rankings are shown because this survey was published long ago. With a survey of your own they would be a breach.)
#
# ## The consensus
#
# The default predicts, from the numbers of students and universities, which release an order loses least by: the sums of ranks (Borda totals), or how many students place each university before each other one, from which it takes the order with the fewest disagreements, Kemeny's. `releases="pairs"` asks for the second, because this page wants to say something about pairs. The counts are first shrunk towards what scores of the universities would explain, as far as the noise calls for it, since an order that fits noisy counts best fits their noise, too.

# %%
budget = pr.Budget(epsilon=6.0, delta=1e-5, unit="respondent")
fit = model.fit(epsilon=1.0, delta=1e-6, releases="pairs", budget=budget, rng=rng)
print(fit.summary())
figure = fit.plot_consensus()  # Consensus of 303 students, with the ranks of each item

# %% [markdown]
# The column `ranks` says which ranks a university can have, by the mean rank that all students would give it. It is 1 plus the number of universities that are surely before it, up to 6 minus the number surely after it. All these intervals hold at once at the level of 95 %, whatever the students' opinions are like: in the worst case half of them think the opposite of the others. The figure draws them beside the order.
#
# ## Pair by pair
#
# The same release says more, at no cost: every pair's fraction with its interval (`lower`, `upper`), with an interval that holds for all pairs at once, and whether that one excludes one half.

# %%
print(fit.pairwise()[["fraction", "lower", "upper", "all_lower", "all_upper"]].round(2))
figure = fit.plot_pairwise()  # Share of students who place the row before the column

# %% [markdown]
# ## By default
#
# Without `releases="pairs"` the default releases Borda totals here, which need less noise. They give an order and mean ranks with their intervals, and say nothing about the majorities of pairs.

# %%
pure = model.fit(epsilon=1.0, budget=budget, rng=rng)
print(pure.summary())

# %% [markdown]
# ## What epsilon buys
#
# Borda scores and ranks at three epsilons, the last without privacy:

# %%
fits = [model.fit(e, rng=rng) for e in (1.0, 4.0, np.inf)]
print(pr.summary_col(fits))

# %% [markdown]
# ## Other methods
#
# Methods of the literature are there to compare with: KwikSort, which asks for a noisy count at each comparison, and the exponential mechanism, which draws a whole order. They release an order alone. How many pairs do they order otherwise than the consensus without privacy, on average over a number of runs at a small epsilon?

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
# Without `rng=` the noise comes from a cryptographically secure source. The numbers below differ each time this page is made, and each time they cost another epsilon; a survey of your own is asked once and the result kept. The ledger has what was reserved from it: a fit that is given no budget, as some above, is for the reader to add.

# %%
print(model.fit(epsilon=1.0, delta=1e-6, budget=budget).summary(), budget.summary(), sep="\n\n")
