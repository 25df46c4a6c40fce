# %% [markdown]
# # Comparing with last year or a census
#
# Has the favourite university changed since last year? Do the participants have the same subjects as all students? This page tests whether the distribution of choices or rankings is the same as before, or as in a census.
#
# > This page uses **seeded noise**, for illustration only (see the last section).

# %%
import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(1949)
cems = pr.datasets.load_university()
data = cems.rankings(rng).join(cems.students)

# %% [markdown]
# ## Which test?
#
# Which test to use depends on which data from last year you have:
#
# - **Answers** (rankings or choices): use `pr.ClosenessTest(now, last)`, as for [two groups](groups.py). A Series of choices needs `categories=`.
# - **Counts** for both years: use `ClosenessTest.from_counts({"now": {...}, "last": {...}}, categories=[...])`, with the counts by category.
# - **Answers of the same people** in both years: use `respondent="id", paired=True`, with data frames of rankings or with Series of choices that have the people as index. An example is `pr.ClosenessTest(now.set_index("id")["choice"], last.set_index("id")["choice"], categories=[...], respondent="id", paired=True)`.
# - **Paired comparisons** by different people each year: use `PrivateBTL.from_formula("item1 + item2 + outcome ~ year", ...)`, as for [covariates](covariates.py). The data frame contains the rows of both years and a column for the year.
# - **Proportions only**, from last year or a census: use `IdentityTest`.
#
# ## Answers of both years
#
# Suppose that 400 students named their favourite university last year (simulated here). The test takes two Series, or one data frame with a column for the year:

# %%
last_year = pd.Series([0.45, 0.25, 0.05, 0.08, 0.12, 0.05], index=cems.items)
now = data[list(cems.items)].idxmin(axis=1)
last = pd.Series(rng.choice(cems.items, 400, p=last_year))
two = pr.ClosenessTest(now, last, categories=cems.items)
stacked = pd.concat(
    [now, last], keys=["now", "last"], names=["year"]
).reset_index(name="choice")
same = pr.ClosenessTest.from_formula(
    "choice ~ year", stacked, levels=["now", "last"], categories=cems.items
)
print(two, same, same.fit(epsilon=1.0, rng=rng).summary(), sep="\n\n")

# %% [markdown]
# `respondent=` requires a data frame, and each respondent belongs to one group. If identifiers restart each year, make them distinct first, for example `"2025-" + id.astype(str)`.
#
# ## Proportions of last year
#
# If only proportions are available, they are estimates themselves. Proportions computed from last year's answers are not an exact null hypothesis, so `null_nobs=` gives the number of these answers.

# %%
as_before = pr.IdentityTest(now, last_year, null_nobs=400)
print(as_before.fit(epsilon=1.0, rng=rng).summary())

# %% [markdown]
# With `null_nobs=` two samples are compared, so the table is the table of a test of closeness.
#
# ## A census
#
# Without `null_nobs=` the proportions are treated as exact, for example because they come from a theory or a census. The table is then the table of a test of identity. In the example a census of all students gives the proportions of the subjects. (For rankings, specify the distribution as a `pr.Mallows` model or as a table of probabilities.)

# %%
census = pr.IdentityTest(data["study"], {"commerce": 0.45, "other": 0.55})
print(census.fit(epsilon=1.0, rng=rng).summary())

# %% [markdown]
# ## For publication: secure noise
#
# Without `rng=` the noise comes from a cryptographically secure source, and the ledger lists the epsilon used. The numbers below change each time this page is built.

# %%
budget = pr.Budget(epsilon=1.0, unit="row")
print(
    two.fit(epsilon=1.0, budget=budget).summary(), budget.summary(), sep="\n\n"
)
