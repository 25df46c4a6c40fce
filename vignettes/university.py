# %% [markdown]
# # Where to study abroad: the University survey with a privacy guarantee
#
# Students of a business university in Vienna said, pair by pair, at which of six European universities they would rather spend time abroad. How strongly is each of them preferred, which two lead, and how well are the answers to these questions known once no single student's answers may show in the results?
#
# > **This page uses seeded noise**, so that everybody who runs it gets the same page (but for the last section). Whoever knows the seed can take the noise off again: for results to be published, leave `rng=` away, as the last section does. The page also shows raw counts and a non-private fit. It may, because this survey was published long ago; with a survey of your own these would be breaches.

# %%
import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(1998)

# %% [markdown]
# ## The data

# %%
cems = pr.datasets.load_university()
outcome = cems.comparisons["outcome"]
print(len(cems.students), "students,", len(cems.items), "universities,", len(outcome), "rows\n")
labels = {1.0: "first", 0.0: "tie", -1.0: "second"}
pair = cems.comparisons["item1"].astype(str) + " : " + cems.comparisons["item2"].astype(str)
pair, outcome = pair.rename("first : second"), outcome.rename("")
counts = pd.crosstab(pair, outcome.map(labels).fillna("missing"), margins=True)
print(counts.loc[[*pair.unique(), "All"], ["first", "tie", "second", "missing"]].to_string())
missing = cems.comparisons.loc[outcome.isna(), "respondent"]
print(f"\nmissing: respondents {missing.min()} to {missing.max()}, one answer each")

# %% [markdown]
# A tie ("undecided") counts as half a win for each side; that there can be ties is declared (`ties=True`), for a 0 would otherwise be refused. The published analyses have a parameter for ties instead, which is below, and covariates. All missing answers belong to one pair and to one block of consecutive respondents, as if their questionnaires had lacked the question. So Paris and Milano took part in fewer comparisons than the others, and their raw win counts are not on the same footing; a model of the comparisons that were made is.
#
# Two versions of the data are in use. In the article of 1998 every answer to Barcelona against Stockholm was reversed by mistake; the corrigendum of 2001 put it right, and `load_university()` gives the corrected version. Other copies in circulation still have the mistake, so it is worth knowing what it does to the worths (second column):

# %%
data = dict(items=cems.items, respondent="respondent", max_rows=15, ties=True, design="public")
model = pr.PrivateBTL(cems.comparisons, **data)
reference = model.fit(epsilon=np.inf, penalty=0, dependence="cluster")
mistaken = pr.PrivateBTL(pr.datasets.load_university("1998").comparisons, **data)
both = {"2001": reference.params, "1998": mistaken.fit(epsilon=np.inf, penalty=0).params}
print(pd.DataFrame(both).round(3))

# %% [markdown]
# ## The model, and the reference without privacy
#
# In the Bradley-Terry model each university has a worth $\theta_i$, and
#
# $$P(i \text{ is preferred to } j) = \frac{1}{1 + \exp(\theta_j - \theta_i)} .$$
#
# Only differences of worths are identified; they are reported with sum zero. A student answers up to fifteen questions, and answers of one student depend on each other, so the standard errors of the reference are the cluster-robust ones. This is ordinary maximum likelihood, `epsilon=np.inf`:

# %%
print(reference.summary())

# %% [markdown]
# ## What is to be protected
#
# The unit is a **respondent** with all their rows, of which there are at most `max_rows`. Two data sets $D$ and $D'$ are neighbours if one is the other with one student's answers replaced. A fit $M$ with epsilon $\varepsilon$ guarantees that for any two neighbours and any set $S$ of results
#
# $$P(M(D) \in S) \le e^{\varepsilon} \, P(M(D') \in S) .$$
#
# `design="public"` says that who was asked what, missing answers included, is known to all. Given what the missing answers look like, this is credible here. What the guarantee does not cover: that a student took part, the number of students, the number of comparisons of each pair, and what is true of students at large. For groups it weakens: two friends who always agree are protected at twice epsilon.
#
# ## The private fit
#
# The budget is the ledger of this survey. Each fit reserves its epsilon there before noise is drawn.

# %%
budget = pr.Budget(epsilon=5.0, unit="respondent")
fit = model.fit(epsilon=1.0, budget=budget, rng=rng)
print(fit.summary())
figure = fit.plot_worth()  # Worths of six universities with 95 % intervals, epsilon 1

# %% [markdown]
# How to read the table:
#
# - `coef` is the worth, `std err` its standard error. The two columns after it are the parts of the standard error: `sampling` is what another sample of as many students would change, `privacy` what another draw of the noise would change. Their squares add up to the square of the whole.
# - The design effect is the factor by which the dependence of a student's answers inflates the sampling variance: the largest of all differences between universities, so that every interval is long enough. It stands in the header, released for a share of epsilon; without it the intervals of the universities that divide the students would be too short.
# - `P>|z|` is the p-value of a score test: that the worth is zero, the mean of all. `z` is the normal quantile that says the same, not `coef` over `std err`, as the scores are judged by the variance they have if that is true. The interval leaves out zero exactly where the p-value is below .05.
# - `rank` is the set of ranks that cannot be ruled out, for all universities at once. Where two sets overlap, the order of the two is open, whatever the order of the rows suggests.
#
# Against the reference:

# %%
error = {"error / privacy": (fit.params - reference.params) / fit.bse_privacy}
print(pd.DataFrame({"private": fit.params, "reference": reference.params} | error).round(3))

# %% [markdown]
# The reference was computed from the same students, so only the noise sets the two apart, and the privacy part of the standard error is the yardstick (last column). A difference between two universities is more telling than a worth, and so is what it implies: the probability that the first is preferred, plus half that of a tie.

# %%
print(fit.pairwise().drop(columns="std_err").round(3).to_string(index=False))
figure = fit.plot_pairwise()  # Probability that the row is preferred, plus half that of a tie

# %% [markdown]
# ## What a tie is taken for
#
# Half a win to each university answers one question: who would be preferred if the students who are undecided were divided equally? With `ties="davidson"` a tie is an answer of its own, and the worths answer another: who is preferred by those who decide? Win, tie and loss are as $e^{d/2} : e^{\lambda} : e^{-d/2}$ for the difference $d$ of two worths, so that it can be told how probable a tie is, too. Both readings without privacy, and the second with it:

# %%
tied = data | {"ties": "davidson"}
deciding = pr.PrivateBTL(cems.comparisons, **tied).fit(epsilon=np.inf, penalty=0)
private = pr.PrivateBTL(cems.comparisons, **tied).fit(
    epsilon=1.0, budget=budget, rng=np.random.default_rng(1970)
)
readings = {"half wins": reference, "davidson": deciding, "davidson, epsilon 1": private}
print(pd.DataFrame({name: one.params for name, one in readings.items()}).round(3))
apart = reference.params @ deciding.params / (reference.params @ reference.params)
print(f"\nwithout noise differences are {apart:.2f} times those of half wins")
print(f"ties are {(outcome == 0).sum() / outcome.notna().sum():.1%} of the answers")
print(
    pd.DataFrame({"no noise": deciding.tie_parameter, "epsilon 1": private.tie_parameter}).round(3)
)
print(private.pairwise().loc[:2, ["item1", "item2", "win", "tie", "loss"]].round(3).to_string())

# %% [markdown]
# The order is the same, and the worths of those who decide are 1.14 times as far apart: dividing ties pulls every pair towards one half. Which reading a report needs depends on what is to be said. For a decision that everybody has to live with, undecided students included, it is the half wins; for what students think who have an opinion, and how many have none, it is the second. That one releases the number of ties as well, which takes .15 of epsilon here.
#
# ## The leading two
#
# The same release holds noisy net wins, from which the top two follow at no further cost. That there are two places was decided before looking; the p-value for the separation of the set needs that.

# %%
top = pr.PrivateTopK.from_release(fit.release, k=2)
print(top.summary())
figure = top.plot()  # Win rates, and in red the selected two

# %% [markdown]
# ## What epsilon buys
#
# Two more fits are entered in the ledger; the non-private one stands beside them for comparison. Below, the parts of the standard errors, averaged over the universities.

# %%
less, more = (model.fit(epsilon=e, budget=budget, rng=rng) for e in (0.5, 2.0))
print(pr.summary_col([less, fit, more, model.fit(epsilon=np.inf)]), end="\n\n")
rows = [[one.epsilon, one.bse_sampling.mean(), one.bse_privacy.mean()] for one in (less, fit, more)]
print(pd.DataFrame(rows, columns=["epsilon", "sampling", "privacy"]).set_index("epsilon").round(3))

# %% [markdown]
# The privacy part of a standard error falls like $1/\varepsilon$ (and with more students like $1/n$), the sampling part only with more students, like $1/\sqrt{n}$. Past the point where the privacy part is the smaller one, more epsilon buys little. That the sampling parts of the private fits differ from each other is noise, too: each has a design effect of its own, and the smaller epsilon, the noisier it is.
#
# ## A guarantee for comparisons is not one for students
#
# With `respondent=None` the unit is a single comparison. The noise looks far smaller at the same epsilon, but a student is then protected only at `max_rows` times epsilon. To protect a student that way, epsilon must be divided by the number of rows, and then the noise is larger than that of the fit above, which counts what a student can really change. Such a fit also takes the answers of one student for independent, so that its sampling errors are too small. A ledger of respondents refuses it (below the table).

# %%
by_row = pr.PrivateBTL(cems.comparisons, **data | {"respondent": None})
rows = [by_row.fit(epsilon=1.0, rng=rng), by_row.fit(epsilon=1 / 15, rng=rng), fit]
units = [[one.release.design.unit, one.epsilon, one.bse_privacy.mean()] for one in rows]
table = pd.DataFrame(units, columns=["unit", "epsilon", "privacy std err"])
table["epsilon of a student"] = table["epsilon"] * table["unit"].map({"row": 15, "respondent": 1})
print(table.round(3).to_string(index=False))
try:
    by_row.fit(epsilon=0.1, budget=budget, rng=rng)
except ValueError as refusal:
    print(f"\n{refusal}")

# %% [markdown]
# ## Ledger and archive
#
# All that was spent on the students is in the ledger. A result is archived as JSON; it holds the release and no way back to the data, and gives the same result again without spending.

# %%
print(budget.summary())
print("\nsame worths:", pr.from_json(fit.to_json()).params.equals(fit.params))

# %% [markdown]
# ## For publication: secure noise
#
# Without `rng=` the noise comes from a cryptographically secure source. The numbers below differ each time this page is made, and each time they cost another epsilon; a survey of your own is fitted once and the result kept. Note the line on the noise source in the header.

# %%
print(model.fit(epsilon=0.5, budget=budget).summary())
