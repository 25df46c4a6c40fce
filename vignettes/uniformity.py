# %% [markdown]
# # Is there any agreement? Tests of uniformity
#
# Before we estimate worths, a simpler question arises: do the rankings differ from random ones? This page answers it for two surveys, without revealing the preferences of any respondent.
#
# The test takes rankings, or choices of one category ([preparing data](../docs/data-in.md)). For paired comparisons, the line "Test of equal worths" in every summary of `PrivateBTL` answers the same question: see [the University survey](university.py).
#
# > This page uses **seeded noise**, for illustration only (see the last section).

# %%
import numpy as np

import privrank as pr

rng = np.random.default_rng(2021)

# %% [markdown]
# ## One ranking per student
#
# The students of the University survey compared six universities pair by pair. `rankings()` orders the universities of each student by net wins. It breaks ties at random, once for all fits on this page. Under the hypothesis that all answers of a student are coin tosses, the six universities are exchangeable. Every ranking is then equally likely, and random tie-breaking does no harm.
#
# This argument requires that every pair was asked. One block of students was not asked about Paris and Milano, which moves both universities towards the middle of their rankings. This is a fact of the design and as public as the questionnaire. The test uses the other students.

# %%
cems = pr.datasets.load_university()
unasked = cems.comparisons.loc[
    cems.comparisons["outcome"].isna(), "respondent"
]
print(
    f"students {unasked.min()} to {unasked.max()} were not asked one question"
)
ranks = cems.rankings(rng).drop(unasked)
print(f"{len(ranks)} others; first three rankings and mean ranks of all:\n")
print(ranks.head(3), ranks.mean().round(2).to_string(), sep="\n\n")

# %% [markdown]
# (Rankings and mean ranks are shown because this survey was published long ago. With confidential data this would breach privacy.)
#
# ## The test
#
# The statistic combines two components. The first is the length of the sum of all students' rank vectors, which is large if the rankings agree and small if they cancel. It receives nine tenths of the level. The second receives one tenth and measures departures that leave the mean ranks unchanged: opposite camps, cycles of preferences, and items that are ranked either first or last.
#
# Discrete Laplace noise protects the contribution of each student. The p-value compares the noisy statistic with the distribution for uniform rankings *plus the same noise*. The test is therefore valid for any epsilon and any sample size. A small epsilon reduces power, not validity.
#
# The statistic is the larger of the two components, plus noise. Each component is a norm, in units of the influence of one student, minus a quantile of its null distribution, which includes the noise. The statistic can be negative, and usually is without agreement. H0 is rejected if the statistic is at least `result.threshold`. Other methods subtract nothing.

# %%
budget = pr.Budget(epsilon=2.0, unit="respondent")
test = pr.UniformityTest(ranks, respondent="respondent")
result = test.fit(epsilon=0.5, budget=budget, rng=rng)
print(result.summary())
# Null distribution and observed statistic, uniformity test (epsilon = 0.5)
figure = result.plot()

# %% [markdown]
# The hypothesis is rejected: students do not rank at random. The simulated data sets behind the null distribution use a fixed public sequence of random numbers. Anyone with the released statistic can therefore reproduce the p-value.
#
# ## Detectable effects
#
# A test that does not reject is informative only if it had sufficient power. `detectable_effect` expresses this in terms of the Mallows model. In this model the probability of a ranking is proportional to $\phi^d$, where $d$ is the number of pairs that it orders differently from a central ranking. The value $\phi = 1$ gives the uniform distribution. The method uses only public numbers and has no privacy cost.

# %%
print(result.detectable_effect(power=0.9))

# %% [markdown]
# With this many students and this epsilon the test would have detected even slight agreement. For a small number of items there is another test, which counts all possible rankings individually. It has more power if particular rankings are over-represented and less power if mean ranks differ:

# %%
omnibus = test.fit(epsilon=0.5, method="omnibus", budget=budget, rng=rng)
print(omnibus.summary())

# %% [markdown]
# ## A smaller survey
#
# In the Immigration survey students compared four statements about foreigners. The table shows the test for two values of epsilon and without privacy:

# %%
immigration = pr.datasets.load_immigration()
small = pr.UniformityTest(immigration.rankings(rng), respondent="respondent")
fits = [small.fit(epsilon=e, rng=rng) for e in (0.1, 0.5, np.inf)]
print(pr.summary_col(fits))

# %% [markdown]
# Many answers are missing in this survey, and nonresponse may depend on the student. The rankings from such answers need not be uniform even without preferences. This is an illustration, not a finding.
#
# ## Choices of one category
#
# The same test is available for a single column with declared categories. Here the question is whether the two sexes are equally frequent among these students. With two categories the statistic is the distance of the proportions from one half. A public random number decides at the boundary of the rejection region, so the test has exactly its nominal size. The interval for the total variation distance gives more information than the decision and never contradicts it: it contains 0 if and only if the test does not reject.

# %%
sexes = pr.UniformityTest.from_formula(
    "sex ~ 1", immigration.students, categories=immigration.levels["sex"]
)
print(sexes.fit(epsilon=0.5, rng=rng).summary())

# %% [markdown]
# With more categories the default test uses more than this distance. `effect_epsilon` then releases a separate estimate of the distance, and the interval in the summary again agrees with the test.

# %%
favourite = pr.UniformityTest.from_counts(
    [60, 110, 70, 60], ["tea", "coffee", "juice", "water"]
)
print(favourite.fit(epsilon=1.0, effect_epsilon=0.5, rng=rng).summary())

# %% [markdown]
# ## Rankings with ties
#
# Respondents without a preference between two items may assign the same rank to both. `ties="complete"` draws their order from the null hypothesis, secretly and independently in each fit. The test keeps its size even if H0 is not uniform, provided that the ties of a respondent do not depend on the hidden order.

# %%
shared = cems.rankings(ties="shared").drop(unasked)
tied = pr.UniformityTest(shared, respondent="respondent", ties="complete")
print(tied.fit(epsilon=0.5, rng=rng).summary())

# %% [markdown]
# ## For publication: secure noise
#
# Without `rng=` the noise comes from a cryptographically secure source. The numbers below change each time this page is built, and each time the test uses more epsilon. Run the test once on your own survey and store the result. Note the source of the noise in the header, and the ledger of the total epsilon used for the University students.

# %%
print(
    test.fit(epsilon=0.5, budget=budget).summary(),
    budget.summary(),
    sep="\n\n",
)
