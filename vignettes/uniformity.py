# %% [markdown]
# # Is there any consensus? Tests of uniformity
#
# Before worths and winners comes a plainer question: do the answers differ from what respondents would give who rank by drawing lots? This page asks it of two surveys, without showing whether any one respondent took a side.
#
# > **This page uses seeded noise**, so that everybody who runs it gets the same page. Whoever knows the seed can take the noise off again: for results to be published, leave `rng=` away.

# %%
import numpy as np

import privrank as pr

rng = np.random.default_rng(2021)

# %% [markdown]
# ## One ranking per student
#
# The students of the University survey compared six universities pair by pair. `rankings()` orders the universities of each student by net wins and breaks ties at random. Under the hypothesis that a student tosses a coin for every answer the six are exchangeable, so every order is equally likely and the random ties do no harm. That needs every pair to have been asked: students 1 to 91 had a questionnaire without Paris against Milano, which makes these two land in the middle more often. That is a fact of the design, as public as the questionnaire, and the test is made on the others.

# %%
cems = pr.datasets.load_university()
complete = cems.students.index > 91
ranks = cems.rankings(rng)[complete]
print(ranks.head(3))
print(f"\n{len(ranks)} students; mean ranks\n{ranks.mean().round(2).to_string()}")

# %% [markdown]
# (The mean ranks are shown because this survey was published long ago. With a survey of your own they would be a breach.)
#
# ## The test
#
# The statistic is the length of the sum of all students' rank vectors: long if they point the same way, short if they cancel. Discrete Laplace noise covers what one student can change, and the p-value compares the noisy length with what uniform rankings *plus the same noise* give. So it is valid at any epsilon and any sample size; a small epsilon costs power, never validity.

# %%
budget = pr.Budget(epsilon=2.0, unit="respondent")
test = pr.UniformityTest(ranks, respondent="respondent")
result = test.fit(epsilon=0.5, budget=budget, rng=rng)
print(result.summary())
figure = result.plot_null()

# %% [markdown]
# The hypothesis is rejected: students do not rank at random. All 9,999 simulated data sets behind the null law come from one public sequence, so that whoever has the released statistic finds the same p-value.
#
# ## What could have been found
#
# A test that does not reject says little unless it could have. `detectable_effect` answers in terms of the Mallows model, where a ranking has a probability proportional to $\phi^d$ and $d$ counts the pairs of items it orders differently from a common order; $\phi = 1$ is uniform. It uses public numbers only and costs nothing.

# %%
print(result.detectable_effect(power=0.9))
figure = result.plot_power(replicates=100)

# %% [markdown]
# So with this many students and this epsilon even a slight consensus would have been seen. What this statistic cannot see is disagreement that balances: if half of the students ranked one way and the other half the opposite way, all mean ranks would be equal. With at most six items the omnibus test sees every alternative, at some cost in power against the plain ones:

# %%
omnibus = test.fit(epsilon=0.5, method="omnibus", budget=budget, rng=rng)
print(omnibus.summary())

# %% [markdown]
# ## A smaller survey
#
# In the Immigration survey 98 students compared four statements about foreigners. Three epsilons side by side:

# %%
immigration = pr.datasets.load_immigration()
small = pr.UniformityTest(immigration.rankings(rng), respondent="respondent")
fits = [small.fit(epsilon=e, rng=rng) for e in (0.1, 0.5, np.inf)]
print(pr.summary_col(fits))

# %% [markdown]
# ## Choices of one category
#
# The same question can be asked of a single column with declared categories, here: are the students' sexes balanced? The total variation distance has a confidence interval, which says more than the decision.

# %%
sexes = pr.UniformityTest.from_formula("sex ~ 1", immigration.students)
print(sexes.fit(epsilon=0.5, method="tv", rng=rng).summary())

# %% [markdown]
# ## The ledger

# %%
print(budget.summary())
