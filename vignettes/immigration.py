# %% [markdown]
# # Small samples and missing answers: the Immigration survey
#
# Students compared four negative statements about foreigners and said which of two they found more acceptable. The statements are that foreigners increase crime rates (`crimRate`), take away training positions (`position`), are a burden on the social welfare system (`socBurd`) and threaten our culture (`culture`). The topic is sensitive, the sample is small, and many answers are missing, perhaps not at random. Which conclusions are possible under a privacy guarantee?
#
# > This page uses **seeded noise**, for illustration only (see the last section). Raw counts and non-private fits are shown because the survey has been published.

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
print(len(survey.students), "students,", len(survey.items), "statements")
print(f"{len(outcome)} rows: ", end="")
print(f"{answered.sum()} answers, {(~answered).sum()} missing")
ties = (outcome == 0).sum()
print(f"{ties} ties ({ties / answered.sum():.0%} of the answers)\n")
labels = {1.0: "first", 0.0: "tie", -1.0: "second"}
pair = (
    survey.comparisons["item1"].astype(str)
    + " : "
    + survey.comparisons["item2"].astype(str)
)
pair, outcome = pair.rename("first : second"), outcome.rename("")
counts = pd.crosstab(pair, outcome.map(labels).fillna("missing"), margins=True)
print(
    counts.loc[
        [*pair.unique(), "All"], ["first", "tie", "second", "missing"]
    ].to_string()
)
left_out = (~answered).groupby(survey.comparisons["respondent"]).sum()
print("\nstudents by number of answers left out")
print(left_out.value_counts().sort_index().to_string(header=False))

# %% [markdown]
# A tie counts as half a win for each statement. Because ties are frequent, answers vary less than comparisons without ties. The cluster-robust standard errors of the next table reflect this. The private fits do not, because they assume for every contrast at least the variance of independent answers.
#
# ## Without privacy: two orders
#
# The majority and the worths order `crimRate` and `socBurd` in opposite ways. This is not a contradiction: the worths also use the comparisons with the other two statements, and the difference of the two worths is small relative to its standard error. This survey cannot establish the order of these two statements, with or without privacy.

# %%
data = {
    "items": survey.items,
    "respondent": "respondent",
    "max_rows": 6,
    "ties": True,
}
public = pr.PrivateBTL(survey.comparisons, design="public", **data)
reference = public.fit(epsilon=np.inf, penalty=0, dependence="cluster")
print(reference.summary(), end="\n\n")
print(reference.pairwise().iloc[[1]].round(3).to_string(index=False))

# %% [markdown]
# ## Ties
#
# A quarter of the answers are ties. If a tie counts as half a win for each statement, the worths describe which statement is more acceptable overall, with ties divided equally. With `ties="davidson"` a tie is a separate outcome, and the worths describe which statement is more acceptable to students who see a difference. `tie_parameter` describes how many students see none.

# %%
deciding = pr.PrivateBTL(
    survey.comparisons, design="public", **data | {"ties": "davidson"}
)
exact = deciding.fit(epsilon=np.inf, penalty=0)
print(
    pd.DataFrame(
        {"half wins": reference.params, "davidson": exact.params}
    ).round(3)
)
print(
    exact.pairwise()[["item1", "item2", "win", "tie", "loss"]]
    .round(3)
    .to_string(index=False)
)
apart = reference.params @ exact.params / (reference.params @ reference.params)
print(f"\ndifferences, on the scale of half wins: {apart:.2f}")

# %% [markdown]
# With so many ties the worths of the Davidson model are 1.37 times as far apart. Both models are correct, and a table should state which question it answers. With respondent-level privacy the Davidson model is more expensive here, because the number of ties must also be released and the noise is large relative to 98 students.

# %%
print(
    deciding.fit(epsilon=1.0, rng=np.random.default_rng(1))
    .tie_parameter.round(3)
    .to_string()
)

# %% [markdown]
# ## The private fit with a public design
#
# The unit of privacy is a respondent: the noise protects the answers of each student. `design="public"` assumes that it is known which questions each student left unanswered. Consider this assumption carefully here. In a survey on attitudes to foreigners, nonresponse is a behaviour, and publishing it may reveal something about a person. Under the public design the exact number of answers to each pair is used and is not protected.
#
# If missing answers are ignored, the estimates describe the preferences of students who answered. Suppose students left out the comparisons in which they would have preferred a particular statement. Its worth is then biased, whatever epsilon is.

# %%
budget = pr.Budget(epsilon=3.0, unit="respondent")
fit = public.fit(epsilon=1.0, budget=budget, rng=rng)
print(fit.summary())
# Worths with 95% intervals, Immigration survey (n = 98, epsilon = 1)
figure = fit.plot_worth()

# %% [markdown]
# With so few students and this epsilon the privacy component of the standard errors exceeds the sampling component. The rank sets do not establish the order within a set. The hypothesis that the four statements are equally acceptable can still be tested. The null distribution includes the noise and is simulated, hence the Monte Carlo error in parentheses:

# %%
test = fit.test_homogeneity()
print(f"statistic {test.statistic:.2f}")
print(f"p-value {test.pvalue:.4f} (+- {test.pvalue_error:.4f})\n")
top = pr.PrivateTopK.from_release(fit.release, k=2)
print(top.summary())

# %% [markdown]
# ## Protecting nonresponse: private design
#
# With `design="private"` neighbours may also differ in which questions were answered. The number of answers per pair is then confidential, and it is released with a share of epsilon. If these numbers are public for other reasons, for example from an earlier field report, declare them with `pair_counts=`. This saves the share. Declaring counts taken from the confidential data would breach privacy. Here we declare round numbers that such a report might contain.
#
# If every student answered every pair, you could set `pair_counts="equal"`. Here some did not, and statements with many missing answers would appear more average than they are.

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
formula = "item1 + item2 + outcome ~ 1"  # the same columns, named by a formula
with_declared = pr.PrivateBTL.from_formula(
    formula, survey.comparisons, pair_counts=declared, **data
)
columns = {
    "public": fit,
    "private, released": released.fit(epsilon=1.0, budget=budget, rng=rng),
    "private, declared": with_declared.fit(
        epsilon=1.0, budget=budget, rng=rng
    ),
}
print(
    pd.DataFrame({name: one.params for name, one in columns.items()}).round(3)
)
print("\nstandard errors")
print(pd.DataFrame({name: one.bse for name, one in columns.items()}).round(3))

# %% [markdown]
# Each column contains its own noise. At a very large epsilon the noise is negligible. This provides no privacy but isolates the effect of the assumption about the pair counts:

# %%
asserted = pr.PrivateBTL(survey.comparisons, pair_counts="equal", **data)
with_little_noise = {
    "public": public.fit(epsilon=1e6, rng=rng).params,
    "private, released": released.fit(epsilon=1e6, rng=rng).params,
    "private, declared": with_declared.fit(epsilon=1e6, rng=rng).params,
    "private, equal": asserted.fit(epsilon=1e6, rng=rng).params,
}
print(pd.DataFrame(with_little_noise).round(3))

# %% [markdown]
# With released counts the worths are the same as under the public design. With declared counts they are the same to the extent that the numbers are correct. Counts that are falsely asserted to be equal bias the worths. None of these options recovers the answers of students who left a question out.
#
# ## How much noise is too much
#
# The table shows the privacy component of the standard errors and the sampling component for several values of epsilon, for one draw each. Where `privacy` is well above `sampling`, the table consists mainly of noise. Twice as many respondents would halve the privacy component, like twice the epsilon, and would also reduce the sampling component.

# %%
study = [public.fit(epsilon=e, rng=rng) for e in (0.5, 1.0, 2.0, 4.0)]
rows = [
    [one.epsilon, one.bse_sampling.mean(), one.bse_privacy.mean()]
    for one in study
]
print(
    pd.DataFrame(rows, columns=["epsilon", "sampling", "privacy"])
    .set_index("epsilon")
    .round(3)
)

# %% [markdown]
# ## Limitations and the ledger
#
# - The intervals take sampling errors as normal, with a correction for the skewness of the answers. With about a hundred students this is adequate for worths of this size. For a statement that is rarely preferred, an interval may be infinite on one side.
# - The design effect contains noise too, and in a survey as small as this its noise is not small. It is never below one, and it is the largest value over all differences. Most intervals are therefore wider than necessary.
# - The three fits recorded in the ledger use the whole budget. The fits with a very large epsilon and the fits of the last table were not recorded and would have exceeded it. This is harmless only because the data are published. With confidential data, use simulated answers for such experiments.

# %%
print(budget.summary())
try:
    public.fit(epsilon=0.5, budget=budget)
except pr.BudgetExceeded as refusal:
    print(f"\n{refusal}")

# %% [markdown]
# ## For publication: secure noise
#
# This is the same fit without `rng=`. The noise comes from a cryptographically secure source, and the numbers below change each time the page is built.

# %%
print(
    public.fit(
        epsilon=1.0, budget=pr.Budget(epsilon=1.0, unit="respondent")
    ).summary()
)
