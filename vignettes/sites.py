# %% [markdown]
# # Combining sites
#
# Two hospitals asked their staff which of five changes they would like best ([the plan](planning.py)). They do not share their data. This page combines their results: each hospital fits its own model and shares only the JSON of its result. [The pooling guide](../docs/pooling.md) describes other cases, such as several releases of one survey and sites that differ.
#
# > This page uses **seeded noise**, for illustration only (see the last section). All answers are simulated.

# %%
import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(1928)
changes = [
    "more staff",
    "higher pay",
    "fixed shifts",
    "longer leave",
    "training",
]

# %% [markdown]
# ## Two surveys
#
# The answers are simulated: each respondent has an order drawn from a Plackett-Luce model and compares all pairs accordingly. The worths of the two hospitals differ a little.

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


# %% [markdown]
# ## One model at each hospital
#
# Before fitting, the hospitals agree on the same `items=` in the same order, because other results cannot be pooled. Each hospital fits its own model and shares only the JSON of its result. The hospitals asked different people, so each protects its respondents at the same epsilon.

# %%
city = fitted(300, worths, rng=rng).to_json()
county = fitted(
    150, worths + pd.Series([-0.2, 0.3, 0, 0, -0.1], changes), rng=rng
).to_json()
print(pr.from_json(city).summary(), pr.from_json(county).summary(), sep="\n\n")

# %% [markdown]
# ## One table
#
# `survey="different"` states that the hospitals asked different people. If no respondent took part twice, the total epsilon is the larger of the two.

# %%
pooled = pr.pool(
    [pr.from_json(text) for text in (city, county)], survey="different"
)
print(pooled.summary())

# %% [markdown]
# The figure compares the pooled worths with the worths of each hospital:

# %%
# Pooled and site-specific worths with 95% intervals
figure = pooled.plot()

# %% [markdown]
# The pooled intervals are shorter than the intervals of either site. The test of heterogeneity asks whether the sites differ by more than sampling error and noise. A small p-value would mean that the pooled worths are averages of different values.
#
# `effects="random"` estimates the mean over sites that differ. It needs more than two or three sites to be informative.
#
# ## For publication: secure noise
#
# Without `rng=` the noise comes from a cryptographically secure source, and the ledger lists the epsilon used. The numbers below change each time this page is built.

# %%
budget = pr.Budget(epsilon=1.0, unit="respondent")
print(
    fitted(300, worths, budget=budget).summary(), budget.summary(), sep="\n\n"
)
