# %% [markdown]
# # Before the survey: a plan, a rehearsal, and two hospitals
#
# Two hospitals want to know which of five changes their staff would like best. As employers will read the report, every answer is to be protected. This page plans the survey before anybody is asked, rehearses it on simulated answers, and puts the results of the two hospitals together, which never show each other their data. Plans of tests, of consensus orders and of the local model are in [the guide to planning](../docs/planning.md).
#
# > **This page uses seeded noise**, so that everybody who runs it gets the same page (but for the last section). Whoever knows the seed can take the noise off again: for results to be published, leave `rng=` away, as the last section does. All answers are simulated.

# %%
import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(1927)
changes = ["more staff", "higher pay", "fixed shifts", "longer leave", "training"]

# %% [markdown]
# ## What is to be told apart
#
# Everybody compares all pairs of changes. Two of them are to be told apart if the one is preferred by six out of ten, in four of five such surveys. Their `contrast`, the difference of their worths, is the logit of that. A plan holds what is fixed, and finds what is left out. Plans are for people who have an order of all five in mind and answer by it, which makes the variance of a difference twice that of independent answers.

# %%
facts = {"items": changes, "max_rows": 10, "design": "public"}
plan = pr.power.BTLPower(**facts, replicates=200)
needed = plan.solve_power(epsilon=1.0, contrast=np.log(0.6 / 0.4), power=0.8)
print(needed)

# %% [markdown]
# ## What epsilon buys
#
# The same question at several epsilons (a contrast of .4 is six out of ten); the dashed line is the number without privacy. Where the curve is steep, a little more epsilon saves many respondents; where it is nearly level, it buys nothing that respondents should pay for. Plans simulate fits; figures can do with fewer of them than a number that counts.

# %%
sketch = pr.power.BTLPower(**facts, replicates=50)
figure = sketch.plot_power(
    "epsilon", epsilon=[0.5, 1, 4, np.inf], power=0.8, contrast=0.4
)  # Respondents it takes to tell two items apart, by epsilon

# %% [markdown]
# The other way round, what can so many people find out?

# %%
figure = sketch.plot_power(
    "nobs", nobs=[100, 200, 400], epsilon=[0.5, 1, np.inf], contrast=0.4
)  # Power by respondents, at two epsilons and without privacy

# %% [markdown]
# That one change is the best of all is a claim about four differences at once, and takes more:

# %%
best = pr.power.TopKPower(k=1, **facts)
print(best.solve_power(epsilon=1.0, gap=0.4, power=0.8))

# %% [markdown]
# ## A rehearsal
#
# Fits of simulated answers show whether the plan holds, and what the report will look like. Here everybody has an order of their own, drawn from a Plackett-Luce model, and answers accordingly.

# %%
worths = pd.Series([0.6, 0.2, 0.0, -0.2, -0.6], index=changes)


def fitted(people, worths, epsilon=1.0, **options):
    """Simulate the answers of so many people, and fit worths to them."""
    orders = pd.DataFrame(pr.PlackettLuce(worths).rvs(people, rng), columns=changes)
    answers = pr.as_comparisons(orders, "rankings")
    model = pr.PrivateBTL(
        answers, items=changes, respondent="respondent", max_rows=10, design="public"
    )
    return model.fit(epsilon, **options)


rehearsed = [fitted(int(needed), worths, rng=rng).pairwise().iloc[0] for _ in range(60)]
found = np.mean([pair["lower"] > 0.5 for pair in rehearsed])
error = np.sqrt(found * (1 - found) / len(rehearsed))
print(f"told apart in {found:.2f} of {len(rehearsed)} surveys, +- {error:.2f}")

# %% [markdown]
# ## Two hospitals, one table
#
# Before they fit, the hospitals agree on the same `items=` in the same order: results of other items, or in another order, are not pooled. Each hospital makes a fit of its own and shares the JSON of its result, nothing else. They asked different people, so that each protects its own at the same epsilon.

# %%
city = fitted(300, worths, rng=rng).to_json()
county = fitted(150, worths + pd.Series([-0.2, 0.3, 0, 0, -0.1], changes), rng=rng).to_json()
print(pr.from_json(county).summary())

# %%
pooled = pr.pool([pr.from_json(text) for text in (city, county)], survey="different")
print(pooled.summary())
figure = pooled.plot()  # Worths pooled from two sites, and those of each alone

# %% [markdown]
# Pooled intervals are shorter than those of either site. The test of heterogeneity asks whether the sites differ by more than sampling and noise; a small p-value would mean that the pooled worths are averages of different things.
#
# ## For publication: secure noise
#
# Without `rng=` the noise comes from a cryptographically secure source, and the ledger says what was spent. The numbers below differ each time this page is made.

# %%
budget = pr.Budget(epsilon=1.0, unit="respondent")
print(fitted(300, worths, budget=budget).summary(), budget.summary(), sep="\n\n")
