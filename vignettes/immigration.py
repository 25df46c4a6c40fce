# %% [markdown]
# # Few respondents, missing answers: the Immigration survey with a privacy guarantee
#
# Students compared four negative statements about foreigners and said which of two they found more acceptable: that foreigners increase crime rates (`crimRate`), take away training positions (`position`), are a burden on the social welfare system (`socBurd`), threaten our culture (`culture`). The topic is sensitive, the sample small, many answers are missing, and perhaps not by chance. What can be said under a privacy guarantee, and what is better left unsaid?
#
# > **This page uses seeded noise**, so that it can be reproduced (but for the last section). That is no protection: for results to be published, leave `rng=` away. Raw counts and non-private fits appear here only because the survey is published already.

# %%
import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(2011)

# %% [markdown]
# ## The data

# %%
survey = pr.datasets.load_immigration()
outcome = survey.comparisons["outcome"]
answered = outcome.notna()
print(f"{len(survey.students)} students, {len(survey.items)} statements, {len(outcome)} rows")
print(f"{answered.sum()} answers, {(~answered).sum()} missing")
print(f"{(outcome == 0).sum()} ties ({(outcome == 0).sum() / answered.sum():.0%} of the answers)\n")
labels = {1.0: "first", 0.0: "tie", -1.0: "second"}
pair = survey.comparisons["item1"].astype(str) + " : " + survey.comparisons["item2"].astype(str)
pair, outcome = pair.rename("first : second"), outcome.rename("")
counts = pd.crosstab(pair, outcome.map(labels).fillna("missing"), margins=True)
print(counts.loc[[*pair.unique(), "All"], ["first", "tie", "second", "missing"]].to_string())
left_out = (~answered).groupby(survey.comparisons["respondent"]).sum()
print("\nstudents by number of answers left out")
print(left_out.value_counts().sort_index().to_string(header=False))

# %% [markdown]
# A tie counts as half a win for each statement. Ties being this frequent, the answers vary less than decided comparisons would. The cluster-robust standard errors of the next table see that; the private fits do not: they take no contrast to vary less than under independent answers.
#
# ## Without privacy: two orders
#
# The majority decides `crimRate` against `socBurd` the other way round than the worths do. There is no contradiction: the worths weigh all comparisons, those with the two other statements as well, and the difference between the two is small beside its standard error. The order of the first two is not something this survey can settle, with or without privacy.

# %%
data = {"items": survey.items, "respondent": "respondent", "max_rows": 6, "ties": True}
public = pr.PrivateBTL(survey.comparisons, design="public", **data)
reference = public.fit(epsilon=np.inf, penalty=0, dependence="cluster")
print(reference.summary(), end="\n\n")
print(reference.pairwise().iloc[[1]].round(3).to_string(index=False))

# %% [markdown]
# ## What a tie is taken for
#
# A quarter of the answers are ties. As half a win to each they say that the two statements are equally acceptable to the student, and the worths answer: which statement is more acceptable on the whole, ties divided? With `ties="davidson"` they are answers of their own, and the worths answer: which is more acceptable to those who see a difference? `tie_parameter` says how many see none.

# %%
deciding = pr.PrivateBTL(survey.comparisons, design="public", **data | {"ties": "davidson"})
exact = deciding.fit(epsilon=np.inf, penalty=0)
print(pd.DataFrame({"half wins": reference.params, "davidson": exact.params}).round(3))
print(exact.pairwise()[["item1", "item2", "win", "tie", "loss"]].round(3).to_string(index=False))
apart = reference.params @ exact.params / (reference.params @ reference.params)
print(f"\ndifferences, on the scale of half wins: {apart:.2f}")

# %% [markdown]
# With so many ties the second worths are 1.37 times as far apart. Neither is wrong; a table should say which question it answers. Under a guarantee for respondents the second costs more here: the number of ties is released, too, and a hundred students hide it badly.

# %%
print(deciding.fit(epsilon=1.0, rng=np.random.default_rng(1)).tie_parameter.round(3).to_string())

# %% [markdown]
# ## The private fit, design public
#
# The unit is a respondent: the noise hides what any one of the students answered. `design="public"` takes as known which questions each student left unanswered. That deserves a pause here. In a survey on attitudes to foreigners, not to answer is a behaviour, and publishing it may reveal something about a person. Under the public design the exact number of answers to each pair is used and is not protected. Also, ignoring the missing answers estimates the preferences of those who answered; if students left out just the comparisons in which they would have sided with one statement, its worth is biased, and no amount of epsilon repairs that.

# %%
budget = pr.Budget(epsilon=3.0, unit="respondent")
fit = public.fit(epsilon=1.0, budget=budget, rng=rng)
print(fit.summary())
figure = fit.plot_worth()  # A hundred respondents: more noise than sampling error

# %% [markdown]
# With so few students and this epsilon the privacy part of the standard errors exceeds the sampling part, and the rank sets leave the order inside a set open. That the four statements are equally acceptable can still be tested; the null distribution contains the noise and is simulated, hence the error in parentheses:

# %%
test = fit.test_homogeneity()
print(f"statistic {test.statistic:.2f}, p-value {test.pvalue:.4f} (+- {test.pvalue_error:.4f})\n")
top = pr.PrivateTopK.from_release(fit.release, k=2)
print(top.summary())

# %% [markdown]
# ## Protecting who answered: design private
#
# With `design="private"` a neighbour may differ in which questions were answered, too. Then the number of answers per pair is confidential, and it is released with a share of epsilon. If it is public from elsewhere, for instance from a field report written before, it can be declared with `pair_counts=`, which saves that share. Declaring counts taken from the confidential data would be a breach. Here we declare round numbers as such a report might state them. Who is certain that every student answered every pair may say `pair_counts="equal"`; here some did not, so that the statements with many missing answers would look more average than they are.

# %%
declared = {
    ("crimRate", "position"): 90,
    ("crimRate", "socBurd"): 90,
    ("crimRate", "culture"): 85,
    ("position", "socBurd"): 80,
    ("position", "culture"): 80,
    ("socBurd", "culture"): 80,
}
released = pr.PrivateBTL(survey.comparisons, **data)
formula = "item1 + item2 + outcome ~ 1"  # the same columns, named in a formula
told = pr.PrivateBTL.from_formula(formula, survey.comparisons, pair_counts=declared, **data)
columns = {
    "public": fit,
    "private, released": released.fit(epsilon=1.0, budget=budget, rng=rng),
    "private, declared": told.fit(epsilon=1.0, budget=budget, rng=rng),
}
print(pd.DataFrame({name: one.params for name, one in columns.items()}).round(3))
print("\nstandard errors")
print(pd.DataFrame({name: one.bse for name, one in columns.items()}).round(3))

# %% [markdown]
# Each column has noise of its own. With epsilon so large that the noise all but vanishes, which protects nobody and serves to show the arithmetic, what is assumed of the counts stands alone:

# %%
asserted = pr.PrivateBTL(survey.comparisons, pair_counts="equal", **data)
with_little_noise = {
    "public": public.fit(epsilon=1e6, rng=rng).params,
    "private, released": released.fit(epsilon=1e6, rng=rng).params,
    "private, declared": told.fit(epsilon=1e6, rng=rng).params,
    "private, equal": asserted.fit(epsilon=1e6, rng=rng).params,
}
print(pd.DataFrame(with_little_noise).round(3))

# %% [markdown]
# Released counts give the worths of the public design, declared ones as far as the numbers are right; counts that are asserted to be equal, and are not, do not. None of them brings back what students who left a question out would have said.
#
# ## How much noise is too much
#
# The privacy part of the standard errors at several values of epsilon, beside the sampling part, seen in one draw each. Where `privacy` is well above `sampling`, the table mostly shows noise. Twice as many respondents would halve the privacy part just as twice the epsilon does, and would shorten the sampling part as well.

# %%
study = [public.fit(epsilon=e, rng=rng) for e in (0.5, 1.0, 2.0, 4.0)]
rows = [[one.epsilon, one.bse_sampling.mean(), one.bse_privacy.mean()] for one in study]
print(pd.DataFrame(rows, columns=["epsilon", "sampling", "privacy"]).set_index("epsilon").round(3))

# %% [markdown]
# ## Limits, and the ledger
#
# - The intervals take sampling errors as normal, and as skewed as answers are. With about a hundred students this is fair for worths of this size; for a statement that hardly anybody prefers an interval may have no end on one side.
# - The design effect is a noisy number as well, and in a survey as small as this its noise is not small. It is never taken below one, and it is the largest of all differences: most of the intervals are wider than they would have to be.
# - The three fits that were entered in the ledger are the whole budget; the fits of the arithmetic and of the last table were left out of it and would have overdrawn it. That is harmless because the data are published. With confidential data it is not: try such things on simulated answers.

# %%
print(budget.summary())
try:
    public.fit(epsilon=0.5, budget=budget)
except pr.BudgetExceeded as refusal:
    print(f"\n{refusal}")

# %% [markdown]
# ## For publication: secure noise
#
# The same fit without `rng=`: the noise comes from a cryptographically secure source and the numbers below differ each time the page is made.

# %%
print(public.fit(epsilon=1.0, budget=pr.Budget(epsilon=1.0, unit="respondent")).summary())
