# %% [markdown]
# # Planning a survey
#
# Two hospitals want to know which of five changes their staff would like best. Because the employer will read the report, every answer must be protected. This page plans the survey of one hospital and tests the plan on simulated answers. [Combining sites](sites.py) combines the results of both. [The planning guide](../docs/planning.md) covers tests, consensus rankings and the local model.
#
# > This page uses **seeded noise**, for illustration only (see the last section). All answers are simulated.

# %%
import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(1927)
changes = [
    "more staff",
    "higher pay",
    "fixed shifts",
    "longer leave",
    "training",
]

# %% [markdown]
# ## The effect to be detected
#
# All respondents compare all pairs of changes. Suppose that six out of ten respondents prefer the first of two changes. The survey should detect this difference with a probability (power) of four in five. The argument `contrast` is the difference of the two worths, here the logit of six out of ten.
#
# A plan stores the fixed quantities and solves for the missing one. It assumes that respondents have an order of all five changes in mind and answer accordingly. The variance of a difference is then twice the variance under independent answers.

# %%
facts = {"items": changes, "max_rows": 10, "design": "public"}
plan = pr.power.BTLPower(**facts, replicates=200)
needed = plan.solve_power(epsilon=1.0, contrast=np.log(0.6 / 0.4), power=0.8)
print(needed)

# %% [markdown]
# ## The effect of epsilon
#
# The figure answers the same question for several values of epsilon. The value `contrast=0.4` corresponds to six out of ten, and the dashed line is the sample size without privacy. Where the curve is steep, a slightly larger epsilon saves many respondents. Where it is nearly flat, a larger epsilon only weakens the guarantee. Power is computed by simulation; plots need fewer replicates than the final sample size.

# %%
sketch = pr.power.BTLPower(**facts, replicates=50)
# Sample size for power 0.8 by epsilon; dashed: no privacy
figure = sketch.plot_power(
    "epsilon", epsilon=[0.5, 1, 4, np.inf], power=0.8, contrast=0.4
)

# %% [markdown]
# Conversely, which power do given sample sizes have?

# %%
# Power by sample size for epsilon = 0.5, 1 and infinity
figure = sketch.plot_power(
    "nobs", nobs=[100, 200, 400], epsilon=[0.5, 1, np.inf], contrast=0.4
)

# %% [markdown]
# The claim that one change is the best of all concerns four differences simultaneously and needs a larger sample:

# %%
best = pr.power.TopKPower(k=1, **facts)
print(best.solve_power(epsilon=1.0, gap=0.4, power=0.8))

# %% [markdown]
# ## A rehearsal
#
# Fits of simulated answers show whether the plan is adequate and what the report will contain. Here each respondent has an order drawn from a Plackett-Luce model and answers accordingly.

# %%
worths = pd.Series([0.6, 0.2, 0.0, -0.2, -0.6], index=changes)


def fitted(people, worths, epsilon=1.0, **options):
    """Simulate the answers of this many people and fit worths."""
    orders = pd.DataFrame(
        pr.PlackettLuce(worths).rvs(people, rng), columns=changes
    )
    answers = pr.as_comparisons(orders, "rankings")
    model = pr.PrivateBTL(
        answers,
        items=changes,
        respondent="respondent",
        max_rows=10,
        design="public",
    )
    return model.fit(epsilon, **options)


rehearsed = [
    fitted(int(needed), worths, rng=rng).pairwise().iloc[0] for _ in range(60)
]
found = np.mean([pair["lower"] > 0.5 for pair in rehearsed])
error = np.sqrt(found * (1 - found) / len(rehearsed))
print(
    f"power {found:.2f} in {len(rehearsed)} simulated surveys, +- {error:.2f}"
)

# %% [markdown]
# The report of such a survey will contain this table:

# %%
print(fitted(int(needed), worths, rng=rng).summary())

# %% [markdown]
# ## For publication: secure noise
#
# Without `rng=` the noise comes from a cryptographically secure source, and the ledger lists the epsilon used. The numbers below change each time this page is built.

# %%
budget = pr.Budget(epsilon=1.0, unit="respondent")
print(
    fitted(300, worths, budget=budget).summary(), budget.summary(), sep="\n\n"
)
