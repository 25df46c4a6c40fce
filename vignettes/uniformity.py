# %% [markdown]
# # Is there any consensus? Tests of uniformity
#
# Before worths and winners comes a plainer question: do the answers differ from what respondents would give who rank by drawing lots? This page asks it of two surveys, without showing whether any one respondent took a side.
#
# The test takes rankings, or choices of one category ([which data come in](../docs/data-in.md)). Of comparisons of pairs the same question is answered by the line "Test of equal worths" in every summary of `PrivateBTL`: [the University survey](university.py).
#
# > **This page uses seeded noise**, so that everybody who runs it gets the same page (but for the last section). Whoever knows the seed can take the noise off again: for results to be published, leave `rng=` away, as the last section does.

# %%
import numpy as np

import privrank as pr

rng = np.random.default_rng(2021)

# %% [markdown]
# ## One ranking per student
#
# The students of the University survey compared six universities pair by pair. `rankings()` orders the universities of each student by net wins and breaks ties at random, once for all fits on this page. Under the hypothesis that a student tosses a coin for every answer the six are exchangeable, so every order is equally likely and the random ties do no harm. That needs every pair to have been asked. A block of students had a questionnaire without Paris against Milano, which moves these two towards the middle of a ranking. That is a fact of the design, as public as the questionnaire, and the test is made on the others.

# %%
cems = pr.datasets.load_university()
unasked = cems.comparisons.loc[cems.comparisons["outcome"].isna(), "respondent"]
print(f"students {unasked.min()} to {unasked.max()} were not asked one question")
ranks = cems.rankings(rng).drop(unasked)
print(f"{len(ranks)} others; the first three rankings and the mean ranks of all:\n")
print(ranks.head(3), ranks.mean().round(2).to_string(), sep="\n\n")

# %% [markdown]
# (Rankings and mean ranks are shown because this survey was published long ago. With a survey of your own they would be a breach.)
#
# ## The test
#
# The statistic looks at two things. Nine tenths of the level go to the length of the sum of all students' rank vectors: long if they point the same way, short if they cancel. One tenth goes to everything that leaves mean ranks alone: opposite camps, cycles of preferences, items that are placed first or last. Discrete Laplace noise covers what one student can change, and the p-value compares the noisy length with what uniform rankings *plus the same noise* give. So it is valid at any epsilon and any sample size; a small epsilon costs power, never validity.
#
# So the statistic is the larger of two numbers, plus noise. Each is a norm in units of what one student can change, less a quantile of its own under H0, which includes the noise. It may be negative, and mostly is where there is no consensus. H0 is rejected if it is at least `result.threshold`. Other methods subtract nothing.

# %%
budget = pr.Budget(epsilon=2.0, unit="respondent")
test = pr.UniformityTest(ranks, respondent="respondent")
result = test.fit(epsilon=0.5, budget=budget, rng=rng)
print(result.summary())
figure = result.plot()  # A statistic far beyond what uniform rankings give

# %% [markdown]
# The hypothesis is rejected: students do not rank at random. The simulated data sets behind the null distribution come from one public sequence, so that whoever has the released statistic finds the same p-value.
#
# ## What could have been found
#
# A test that does not reject says little unless it could have. `detectable_effect` answers in terms of the Mallows model, where a ranking has a probability proportional to $\phi^d$ and $d$ counts the pairs of items it orders differently from a common order; $\phi = 1$ is uniform. It uses public numbers only and costs nothing.

# %%
print(result.detectable_effect(power=0.9))

# %% [markdown]
# So with this many students and this epsilon even a slight consensus would have been seen. For a handful of items there is another test that counts all orders one by one. It is better where single orders are too frequent, and worse where mean ranks differ:

# %%
omnibus = test.fit(epsilon=0.5, method="omnibus", budget=budget, rng=rng)
print(omnibus.summary())

# %% [markdown]
# ## A smaller survey
#
# In the Immigration survey students compared four statements about foreigners. Three epsilons side by side:

# %%
immigration = pr.datasets.load_immigration()
small = pr.UniformityTest(immigration.rankings(rng), respondent="respondent")
fits = [small.fit(epsilon=e, rng=rng) for e in (0.1, 0.5, np.inf)]
print(pr.summary_col(fits))

# %% [markdown]
# Many answers are missing there, and which pairs a student left out may depend on the student. The rankings made from such answers need not be uniform even if nobody has a preference, so this is an illustration, not a finding.
#
# ## Choices of one category
#
# The same question can be asked of a single column with declared categories, here: are the sexes of these students balanced? With two categories the statistic is the distance of the shares from one half, and a public random number decides at the boundary of the rejection region, which gives the test its level exactly. The interval for the total variation distance says more than the decision and never contradicts it: it holds 0 exactly if the test does not reject.

# %%
sexes = pr.UniformityTest.from_formula(
    "sex ~ 1", immigration.students, categories=immigration.levels["sex"]
)
print(sexes.fit(epsilon=0.5, rng=rng).summary())

# %% [markdown]
# With more categories the default test looks for more than this distance. `effect_epsilon` then pays for an estimate beside it, and the summary's interval again agrees with the test.

# %%
favourite = pr.UniformityTest.from_counts([60, 110, 70, 60], ["tea", "coffee", "juice", "water"])
print(favourite.fit(epsilon=1.0, effect_epsilon=0.5, rng=rng).summary())

# %% [markdown]
# ## Rankings with ties
#
# Who has no preference between two items may give them the same rank. `ties="complete"` draws their order from what is tested, in secret and anew in each fit, which keeps the level also where H0 is not uniform, as long as what a respondent leaves open does not depend on the hidden order.

# %%
shared = cems.rankings(ties="shared").drop(unasked)
tied = pr.UniformityTest(shared, respondent="respondent", ties="complete")
print(tied.fit(epsilon=0.5, rng=rng).summary())

# %% [markdown]
# ## For publication: secure noise
#
# Without `rng=` the noise comes from a cryptographically secure source. The numbers below differ each time this page is made, and each time they cost another epsilon; a survey of your own is tested once and the result kept. Note the line on the noise source in the header, and the ledger of all that was spent on the University students.

# %%
print(test.fit(epsilon=0.5, budget=budget).summary(), budget.summary(), sep="\n\n")
