# %% [markdown]
# # Who prefers what: worths that depend on covariates
#
# The students of the University survey compared six schools abroad. Dittrich, Hatzinger and Katzenbeisser analysed how their preferences depend on what they study and which languages they speak. Here the same questions are asked under differential privacy: one noisy table of net wins by group is published, and all estimates, tests and predictions come from it.
#
# > **This page uses seeded noise**, so that everybody who runs it gets the same page (but for the last section). Whoever knows the seed can take the noise off again: for results to be published, leave `rng=` away, as the last section does.

# %%
import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(77)

# %% [markdown]
# ## A covariate
#
# The comparisons frame needs the covariates beside the answers. Who speaks what is taken as public here (`design="public"`), so columns of categories may say which levels there are; texts, as of a CSV file, need `levels=`, and so does all that is private, as below. Comparisons that `pr.as_comparisons` made have no covariates: [merge them back](../docs/data-in.md).

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
    return pr.PrivateBTL.from_formula(formula, data, **questionnaire, **options)


budget = pr.Budget(epsilon=8.0, unit="respondent")
french = model("french").fit(epsilon=2.0, budget=budget, rng=rng)
print(french.summary())

# %% [markdown]
# The first rows are the worths among those who speak French well, the reference group, and the rows of `french[T.poor]` say how much each worth changes for the others: who speaks little French has less use for Paris. The test of the term asks whether any worth changes; its p-value counts the noise.
#
# ## What it looks like

# %%
figure = french.plot()  # Six universities, among those who speak French and others

# %% [markdown]
# A prediction for a pair of schools is the probability that the first is preferred, plus half that of a tie, with its interval:

# %%
pairs = pd.DataFrame({"item1": ["London"] * 2, "item2": ["Paris"] * 2, "french": ["good", "poor"]})
print(pairs.join(french.predict(pairs)).to_string(index=False))

# %% [markdown]
# ## What a covariate costs
#
# A respondent is in one group only. So net wins by group need no more noise than net wins of everybody, but each group has fewer answers to set against it. The same model at several epsilons, the last without privacy:

# %%
print(pr.summary_col([model("french").fit(epsilon=e, rng=rng) for e in (1.0, 4.0, np.inf)]))

# %% [markdown]
# Several covariates make more and smaller groups. The formula may add them up, which assumes that the effect of the one does not depend on the other, or let them interact:

# %%
both = model("french + study").fit(epsilon=4.0, budget=budget, rng=rng)
print(both.wald_test_terms().round(3).to_string())
crossed = model("french * study").fit(epsilon=np.inf, penalty=0, dependence="cluster")
print(crossed.wald_test_terms().round(3).to_string())

# %% [markdown]
# (The second table is not private. It is the ordinary analysis with cluster-robust errors, shown because this survey was published long ago.)
#
# ## Schools with attributes
#
# Item covariates explain worths by attributes of the items. Does it matter whether a school is in a capital, and whether English is spoken there? The lack of fit says how much of the worths these attributes leave unexplained.

# %%
schools = pd.DataFrame(
    {"capital": [1, 1, 0, 0, 0, 1], "english": [1, 0, 0, 0, 0, 0]}, index=list(cems.items)
)
attributes = model("1", item_formula="capital + english", item_data=schools)
explained = attributes.fit(epsilon=1.0, budget=budget, rng=rng)
print(explained.summary(), end="\n\n")
print(explained.test_lack_of_fit().round(4).to_string())

# %% [markdown]
# ## When the groups themselves are private
#
# Under `design="public"` it is public who has which covariates. With `design="private"` that is protected too: the sizes of the groups and the comparisons per pair are released with noise, for a share of epsilon each, and every group is taken to have compared the pairs in the same proportions. The levels come from the codebook, `levels=`: a column holds those that occur, and whether somebody has a rare one is private now.

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
# Without `rng=` the noise comes from a cryptographically secure source. The numbers below differ each time this page is made, and each time they cost another epsilon.

# %%
print(model("french").fit(epsilon=1.0, budget=budget).summary(), budget.summary(), sep="\n\n")
