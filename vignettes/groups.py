# %% [markdown]
# # Do groups agree? Tests of closeness
#
# Do women and men rank alike, or students of one subject and other students? A permutation test answers this without assumptions about the distribution of the rankings. This page releases one number per question, and the number is differentially private.
#
# The test takes rankings, or choices of one category ([preparing data](../docs/data-in.md)). To compare groups by paired comparisons, use `PrivateBTL.from_formula("item1 + item2 + outcome ~ group", ..., levels={"group": [...]})`, whose summary contains a test of the group: see [covariates](covariates.py). To compare this year with last year or with a census, see [last year or a census](last_year.py).
#
# > This page uses **seeded noise**, for illustration only (see the last section).

# %%
import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(1948)

# %% [markdown]
# ## Two groups of students
#
# The group sizes are public and are printed below. The group of each student is not protected (unless you request `labels="private"`), but the answers are.

# %%
cems = pr.datasets.load_university()
data = cems.rankings(rng).join(cems.students)
for column in ("gender", "study"):
    print(data[column].value_counts(sort=False).to_string(), end="\n\n")

# %% [markdown]
# The test assigns the group labels to the students at random many times. It counts how often the groups then differ at least as much as the observed groups. The statistic is the distance between the mean features of the two groups, under a kernel that detects every difference between two distributions of rankings.
#
# With privacy, the usual permutation p-value cannot be released as it is, because it is a rank that one student can change. Noise is therefore added to the statistic. The p-value is the probability that the statistic of relabelled students, with the same noise, exceeds it. If the groups have the same distribution, this p-value is exactly uniform for any sample sizes. The statistic itself is not released, because together with the p-value it would exceed epsilon.
#
# `levels=` lists the groups as in the questionnaire. Text columns need it. A pandas categorical such as `study` does not.

# %%
budget = pr.Budget(epsilon=8.0, unit="respondent")
formula = "London + Paris + Milano + StGallen + Barcelona + Stockholm ~ {}"
gender = pr.ClosenessTest.from_formula(
    formula.format("gender"),
    data,
    levels=["female", "male"],
    respondent="respondent",
)
study = pr.ClosenessTest.from_formula(
    formula.format("study"), data, respondent="respondent"
)
print(gender.fit(epsilon=1.0, budget=budget, rng=rng).summary(), end="\n\n")
result = study.fit(epsilon=1.0, effect_epsilon=1.0, budget=budget, rng=rng)
print(result.summary())

# %% [markdown]
# The size of a difference is another question, and answering it uses additional epsilon. `effect_epsilon=` releases the distance with separate noise, and a confidence interval that contains 0 if and only if the test does not reject. Sample distances are biased upwards by sampling error; the corrected effect subtracts this bias.

# %%
# Distance between the rankings of two groups with 95% interval
figure = result.plot()

# %% [markdown]
# ## The effect of epsilon
#
# The table shows the same test at several values of epsilon, and without privacy for comparison:

# %%
fits = [study.fit(epsilon=e, rng=rng) for e in (0.5, 2.0, np.inf)]
print(pr.summary_col(fits))

# %% [markdown]
# With two groups the noise scale depends on the size of the smaller group, because one student has more influence there. With more than two groups each group is compared with all students, and the noise scale depends on the total number of students.
#
# ## Differences by item
#
# `details_epsilon=` releases the mean ranks by group. They give simultaneous confidence intervals for each university. The test combines the differences of all items, so it may detect a difference that no single interval shows.
#
# `difference` is the mean rank in `group` minus the mean rank in `other`. If it is negative, `group` prefers the item more. `clear` means that the interval excludes 0. (For choices it is a difference of proportions. If it is positive, `group` chooses the category more often.)

# %%
detailed = study.fit(epsilon=1.0, details_epsilon=2.0, budget=budget, rng=rng)
print(detailed.details().round(2).to_string(index=False))
# Differences in mean rank, simultaneous 95% intervals
figure = detailed.plot_details()

# %% [markdown]
# ## Three groups
#
# With more groups the formula is the same, and `levels=` lists all groups. The test compares each group with all respondents. The details compare each group with the others combined and with every single other group. The example uses three simulated regions, one of which differs.

# %%
drinks, people = ["tea", "coffee", "juice"], np.random.default_rng(1948)
centers = {"north": [1, 2, 3], "south": [1, 2, 3], "west": [2, 1, 3]}
ranks = [
    pr.Mallows(drinks, 0.6, center).rvs(300, people)
    for center in centers.values()
]
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
# The test works in the same way for a column of declared categories. Do students of commerce know French as often as other students?

# %%
print(pd.crosstab(data["study"], data["french"]), end="\n\n")
french = pr.ClosenessTest.from_formula(
    "french ~ study",
    data,
    categories=cems.levels["french"],
    respondent="respondent",
)
print(french.fit(epsilon=1.0, budget=budget, rng=rng).summary())

# %% [markdown]
# (The cross table is shown because this survey was published long ago. With confidential data this would breach privacy.)
#
# ## The Immigration survey, by sex
#
# In this survey the groups are small and many answers are missing, so the rankings are partly random. This can hide a difference, but it creates none if nonresponse is the same in both groups. (One block of the University students was not asked one question; the same assumption applies to them.)

# %%
immigration = pr.datasets.load_immigration()
sexes = immigration.rankings(rng).join(immigration.students)
print(sexes["sex"].value_counts(sort=False).to_string(), end="\n\n")
items = " + ".join(immigration.items)
by_sex = pr.ClosenessTest.from_formula(
    f"{items} ~ sex", sexes, respondent="respondent"
)
print(by_sex.fit(epsilon=2.0, rng=rng).summary())

# %% [markdown]
# ## For publication: secure noise
#
# Without `rng=` the noise and the permutations come from a cryptographically secure source. The numbers below change each time this page is built, and each time the test uses more epsilon.

# %%
print(
    gender.fit(epsilon=1.0, budget=budget).summary(),
    budget.summary(),
    sep="\n\n",
)
