# %% [markdown]
# # Do these groups agree? Tests of closeness
#
# Women and men, students of one subject and of others: do they rank alike? A permutation test answers this without assumptions on how anybody ranks. What is published here is one number per question, and it is computed so that no single respondent's answers show in it.
#
# The test takes rankings, or choices of one category ([which data come in](../docs/data-in.md)). Whether groups of comparisons agree is tested by `PrivateBTL.from_formula("item1 + item2 + outcome ~ group", ..., levels={"group": [...]})`, whose summary has a test of the group: [covariates](covariates.py).
#
# > **This page uses seeded noise**, so that everybody who runs it gets the same page (but for the last section). Whoever knows the seed can take the noise off again: for results to be published, leave `rng=` away, as the last section does.

# %%
import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(1948)

# %% [markdown]
# ## Two groups of students
#
# The sizes of the groups are public facts and printed: who is in which group is not protected (unless `labels="private"` is asked for), what they answered is.

# %%
cems = pr.datasets.load_university()
data = cems.rankings(rng).join(cems.students)
for column in ("gender", "study"):
    print(data[column].value_counts(sort=False).to_string(), end="\n\n")

# %% [markdown]
# The test re-labels the students at random many times and looks how often the groups then differ as much as they do. Its statistic is the distance of two groups' mean features under a kernel that sees every difference between two distributions of rankings.
#
# With privacy there is a catch: the usual p-value is a rank, and one student can change it. So noise is added to the statistic, and the p-value says how often re-labelled students with the same noise would exceed it. If the groups have the same distribution, this p-value is uniform: exactly, for any sizes. The statistic itself stays secret; beside the p-value it would say more than epsilon allows.
#
# `levels=` lists the groups, as the questionnaire does: a column of text needs it. A pandas categorical, as `study` is here, may do without.

# %%
budget = pr.Budget(epsilon=8.0, unit="respondent")
formula = "London + Paris + Milano + StGallen + Barcelona + Stockholm ~ {}"
gender = pr.ClosenessTest.from_formula(
    formula.format("gender"), data, levels=["female", "male"], respondent="respondent"
)
study = pr.ClosenessTest.from_formula(formula.format("study"), data, respondent="respondent")
print(gender.fit(epsilon=1.0, budget=budget, rng=rng).summary(), end="\n\n")
result = study.fit(epsilon=1.0, effect_epsilon=1.0, budget=budget, rng=rng)
print(result.summary())

# %% [markdown]
# How large is a difference? That is another question, and its answer costs another epsilon: `effect_epsilon=` releases the distance itself with noise of its own, and a confidence interval that contains 0 exactly when the test does not reject. Distances of samples are too large on average, as sampling alone sets two samples apart; the corrected effect takes that off.

# %%
figure = result.plot()  # Distance between the rankings of two groups, with its interval

# %% [markdown]
# ## What epsilon buys
#
# The same question at several epsilons, and without privacy for comparison:

# %%
fits = [study.fit(epsilon=e, rng=rng) for e in (0.5, 2.0, np.inf)]
print(pr.summary_col(fits))

# %% [markdown]
# The noise scale of two groups is that of the smaller one: a student weighs more there. Of more than two groups each is compared with all students, and the noise goes with the number of students.
#
# ## Where they differ
#
# `details_epsilon=` pays for the mean ranks by group, from which statements about each university follow that hold all at once. A test may find a difference that no single statement shows: it adds up what these look at one by one.
#
# `difference` is the mean rank in `group` minus that in `other`: where it is negative, `group` ranks the item better. `clear` says that the interval leaves out 0. (Of choices it is a difference of shares: where it is positive, `group` chooses the category more often.)

# %%
detailed = study.fit(epsilon=1.0, details_epsilon=2.0, budget=budget, rng=rng)
print(detailed.details().round(2).to_string(index=False))
figure = detailed.plot_details()  # Differences of mean ranks, item by item, all at once

# %% [markdown]
# ## Three groups
#
# More groups take the same formula; `levels=` lists all of them. The test compares each with all respondents, and the details each with the others together and with every other. Here are three simulated regions, of which one differs.

# %%
drinks, people = ["tea", "coffee", "juice"], np.random.default_rng(1948)
centers = {"north": [1, 2, 3], "south": [1, 2, 3], "west": [2, 1, 3]}
ranks = [pr.Mallows(drinks, 0.6, center).rvs(300, people) for center in centers.values()]
regions = pd.DataFrame(np.vstack(ranks), columns=drinks)
regions["region"] = np.repeat(list(centers), 300)
three = pr.ClosenessTest.from_formula(
    "tea + coffee + juice ~ region", regions, levels=["north", "south", "west"]
).fit(epsilon=1.0, details_epsilon=2.0, rng=people)
print(three.summary(), end="\n\n")
print(three.details().query("clear").round(2).to_string(index=False))

# %% [markdown]
# ## Choices
#
# One column of categories works alike, if they are declared. Do students of commerce know French as often as others?

# %%
print(pd.crosstab(data["study"], data["french"]), end="\n\n")
french = pr.ClosenessTest.from_formula(
    "french ~ study", data, categories=cems.levels["french"], respondent="respondent"
)
print(french.fit(epsilon=1.0, budget=budget, rng=rng).summary())

# %% [markdown]
# (The cross table is shown because this survey was published long ago. With a survey of your own it would be a breach.)
#
# ## Immigration, by sex
#
# Here the groups are small, and many answers are missing; the rankings made from them are partly random. That can hide a difference, and it makes none as long as both groups leave out questions alike. (The University students of one block were not asked one question; the same proviso holds for them.)

# %%
immigration = pr.datasets.load_immigration()
sexes = immigration.rankings(rng).join(immigration.students)
print(sexes["sex"].value_counts(sort=False).to_string(), end="\n\n")
items = " + ".join(immigration.items)
by_sex = pr.ClosenessTest.from_formula(f"{items} ~ sex", sexes, respondent="respondent")
print(by_sex.fit(epsilon=2.0, rng=rng).summary())

# %% [markdown]
# ## As last year?
#
# What there is of last year decides which test it is:
#
# - Last year's answers, rankings or choices: `pr.ClosenessTest(now, last)`, as for two groups. A Series of choices needs `categories=`.
# - Counts of last year's answers and of this year's: `ClosenessTest.from_counts({"now": {...}, "last": {...}}, categories=[...])`, with the counts by category.
# - Answers of the same people in both years: `respondent="id", paired=True`, with frames of rankings or, for choices, Series with the people as their index: `pr.ClosenessTest(now.set_index("id")["choice"], last.set_index("id")["choice"], categories=[...], respondent="id", paired=True)`.
# - Comparisons of pairs, by other people each year: `PrivateBTL.from_formula("item1 + item2 + outcome ~ year", ...)`, as above, for the rows of both years, with a column that says which.
# - Nothing but shares, of last year or of a census: `IdentityTest`.
#
# Say that 400 students named the university they liked best last year, here by simulation. The test takes two Series, or one frame with a column that says the year:

# %%
last_year = pd.Series([0.45, 0.25, 0.05, 0.08, 0.12, 0.05], index=cems.items)
now = data[list(cems.items)].idxmin(axis=1)
last = pd.Series(rng.choice(cems.items, 400, p=last_year))
two = pr.ClosenessTest(now, last, categories=cems.items)
stacked = pd.concat([now, last], keys=["now", "last"], names=["year"]).reset_index(name="choice")
same = pr.ClosenessTest.from_formula(
    "choice ~ year", stacked, levels=["now", "last"], categories=cems.items
)
print(two, same, same.fit(epsilon=1.0, rng=rng).summary(), sep="\n\n")

# %% [markdown]
# `respondent=` needs a frame, and each respondent is in one group. So ids that restart each year must be made distinct first, such as `"2025-" + id.astype(str)`.
#
# Where there are only the shares, these are an estimate themselves. Computed from last year's answers they are no exact null: `null_nobs=` says from how many answers.

# %%
as_before = pr.IdentityTest(now, last_year, null_nobs=400)
print(as_before.fit(epsilon=1.0, rng=rng).summary())

# %% [markdown]
# With `null_nobs=` two samples are compared, so that the table is that of a test of closeness. Without it the shares are taken as exact, as they are where a theory or a census gives them, and the table is that of a test of identity. Say that a census of all students gives shares of the subjects. (Of rankings, the distribution is a `pr.Mallows` model, or a table of probabilities.)

# %%
census = pr.IdentityTest(data["study"], {"commerce": 0.45, "other": 0.55})
print(census.fit(epsilon=1.0, rng=rng).summary())

# %% [markdown]
# ## For publication: secure noise
#
# Without `rng=` noise and re-labellings come from a cryptographically secure source. The numbers below differ each time this page is made, and each time they cost another epsilon.

# %%
print(gender.fit(epsilon=1.0, budget=budget).summary(), budget.summary(), sep="\n\n")
