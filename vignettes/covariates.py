# %% [markdown]
# # Comparing subgroups with covariates
#
# The students of the University survey compared six schools abroad. Dittrich, Hatzinger and Katzenbeisser analysed how their preferences depend on their subject and their language skills. This page asks the same questions under differential privacy. One noisy table of net wins by group is released, and all estimates, tests and predictions are computed from it.
#
# > This page uses **seeded noise**, for illustration only (see the last section).

# %%
import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(77)

# %% [markdown]
# ## A covariate
#
# The data frame of comparisons must also contain the covariates. Language skills are treated as public here (`design="public"`), so a categorical column may define the levels. Text columns (for example from a CSV file) and private covariates need `levels=`, as shown below. Data frames from `pr.as_comparisons` contain no covariates, so [merge them first](../docs/data-in.md).

# %%
cems = pr.datasets.load_university()
data = cems.comparisons.merge(cems.students.reset_index(), on="respondent")
questionnaire = {
    "items": cems.items,
    "respondent": "respondent",
    "max_rows": 15,
    "ties": True,
    "design": "public",
}


def model(covariates, **options):
    formula = f"item1 + item2 + outcome ~ {covariates}"
    return pr.PrivateBTL.from_formula(
        formula, data, **questionnaire, **options
    )


budget = pr.Budget(epsilon=8.0, unit="respondent")
french = model("french").fit(epsilon=2.0, budget=budget, rng=rng)
print(french.summary())

# %% [markdown]
# The first rows are the worths of students with good French, the reference group. The rows of `french[T.poor]` are the differences for students with poor French. Among students with poor French, Paris has a smaller worth. The test of the term asks whether any worth differs, and its p-value accounts for the noise.
#
# ## The worths of both groups

# %%
# Worths by knowledge of French (good, poor), 95% intervals (epsilon = 2)
figure = french.plot()

# %% [markdown]
# A prediction for a pair of schools is the probability that the first school is preferred, plus half the probability of a tie, with its interval:

# %%
pairs = pd.DataFrame(
    {
        "item1": ["London"] * 2,
        "item2": ["Paris"] * 2,
        "french": ["good", "poor"],
    }
)
print(pairs.join(french.predict(pairs)).to_string(index=False))

# %% [markdown]
# ## The privacy cost of a covariate
#
# Each respondent belongs to one group only. Net wins by group therefore need no more noise than overall net wins, but each group has fewer answers. The table compares the same model at several values of epsilon, and without privacy in the last column:

# %%
print(
    pr.summary_col(
        [model("french").fit(epsilon=e, rng=rng) for e in (1.0, 4.0, np.inf)]
    )
)

# %% [markdown]
# Several covariates define more and smaller groups. The formula can be additive, which assumes that the effect of one covariate does not depend on the other, or include interactions:

# %%
both = model("french + study").fit(epsilon=4.0, budget=budget, rng=rng)
print(both.wald_test_terms().round(3).to_string())
crossed = model("french * study").fit(
    epsilon=np.inf, penalty=0, dependence="cluster"
)
print(crossed.wald_test_terms().round(3).to_string())

# %% [markdown]
# (The second table is not private. It is the ordinary analysis with cluster-robust standard errors, shown because this survey was published long ago.)
#
# ## Attributes of the schools
#
# Item covariates explain worths by attributes of the items. Does it matter whether a school is in a capital, and whether English is spoken there? The test of lack of fit asks whether these attributes explain the worths completely.

# %%
schools = pd.DataFrame(
    {"capital": [1, 1, 0, 0, 0, 1], "english": [1, 0, 0, 0, 0, 0]},
    index=list(cems.items),
)
attributes = model("1", item_formula="capital + english", item_data=schools)
explained = attributes.fit(epsilon=1.0, budget=budget, rng=rng)
print(explained.summary(), end="\n\n")
print(explained.test_lack_of_fit().round(4).to_string())

# %% [markdown]
# ## Private groups
#
# Under `design="public"` the covariates of each respondent are public. `design="private"` protects them too. The group sizes and the comparisons per pair are released with noise, each for a share of epsilon. All groups are assumed to compare the pairs in the same proportions.
#
# The levels come from the codebook (`levels=`) and not from the column. A column contains only the levels that occur, and whether a student has a rare level is now private.

# %%
guarded = pr.PrivateBTL.from_formula(
    "item1 + item2 + outcome ~ french",
    data,
    **questionnaire | {"design": "private", "levels": cems.levels},
)
print(guarded.fit(epsilon=4.0, rng=rng).wald_test_terms().round(3).to_string())

# %% [markdown]
# ## For publication: secure noise
#
# Without `rng=` the noise comes from a cryptographically secure source. The numbers below change each time this page is built, and each time the fit uses more epsilon.

# %%
print(
    model("french").fit(epsilon=1.0, budget=budget).summary(),
    budget.summary(),
    sep="\n\n",
)
