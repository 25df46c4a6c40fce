# %% [markdown]
# # Analysing paired comparisons: the University survey
#
# Students of a business university in Vienna compared six European universities pair by pair. For each pair they said at which university they would rather spend time abroad. How strongly is each university preferred, and which two lead? How precise are the answers if no student's responses may be inferred from the results? This page starts from a CSV file and ends with a report that may be published.
#
# > This page uses **seeded noise**, for illustration only (see the last section). The page also shows raw counts and a non-private fit. This is acceptable because the survey was published long ago. With confidential data it would breach privacy.

# %%
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(1998)

# %% [markdown]
# ## The data
#
# The survey is a CSV file with one row per question: the respondent, the two universities and the outcome. The outcome is 1 if the first university was preferred, 0 for a tie, and -1 if the second one was preferred. An empty cell means that there is no answer. The file is in the folder `data/` of the source. To analyse your own survey, read your own file. Other layouts are converted first ([preparing data](../docs/data-in.md)).

# %%
data = Path("data") if Path("data").exists() else Path("../data")
answers = pd.read_csv(data / "university.csv")
print(answers.head(3).to_string(index=False))

# the items are public and come from the questionnaire, not from the answers
items = ["London", "Paris", "Milano", "StGallen", "Barcelona", "Stockholm"]

# %%
outcome = answers["outcome"]
people = answers["respondent"].nunique()
print(f"{people} students, {len(items)} universities, {len(answers)} rows\n")
labels = {1: "first", 0: "tie", -1: "second"}
pair = (answers["item1"] + " : " + answers["item2"]).rename("first : second")
kind = outcome.map(labels).fillna("missing").rename("")
counts = pd.crosstab(pair, kind, margins=True)
columns = ["first", "tie", "second", "missing"]
print(counts.loc[[*pair.unique(), "All"], columns].to_string())
missing = answers.loc[outcome.isna(), "respondent"]
first, last = missing.min(), missing.max()
print(f"\nmissing: respondents {first} to {last}, one answer each")

# %% [markdown]
# A tie ("undecided") counts as half a win for each side. You must declare that ties can occur (`ties=True`), because a 0 is refused by default. The published analyses use a parameter for ties (see below) and covariates. All missing answers belong to one pair and to one block of consecutive respondents, as if the question had been missing from their questionnaires. Paris and Milano therefore took part in fewer comparisons than the others, and raw win counts are not comparable. A model of the observed comparisons is.
#
# Two versions of the data are in use. In the article of 1998 all answers to Barcelona against Stockholm were reversed by mistake. The corrigendum of 2001 corrected this, and the file contains the corrected version. Other copies still contain the mistake. The second column shows its effect on the worths:

# %%
data = dict(
    items=items,
    respondent="respondent",
    max_rows=15,
    ties=True,
    design="public",
)
model = pr.PrivateBTL(answers, **data)
reference = model.fit(epsilon=np.inf, penalty=0, dependence="cluster")
article = pr.datasets.load_university("1998").comparisons
mistaken = pr.PrivateBTL(article, **data).fit(epsilon=np.inf, penalty=0)
both = {"2001": reference.params, "1998": mistaken.params}
print(pd.DataFrame(both).round(3))

# %% [markdown]
# ## The model and the non-private reference
#
# In the Bradley-Terry model each university has a worth $\theta_i$, and
#
# $$P(i \text{ is preferred to } j) = \frac{1}{1 + \exp(\theta_j - \theta_i)} .$$
#
# Only differences of worths are identified, so worths are reported with sum zero. A student answers up to fifteen questions, and the answers of one student are correlated. The reference therefore uses cluster-robust standard errors. It is the ordinary maximum-likelihood fit, `epsilon=np.inf`:

# %%
print(reference.summary())

# %% [markdown]
# ## Privacy unit and design
#
# The unit of privacy is a **respondent** with all rows, of which there are at most `max_rows`. Two data sets $D$ and $D'$ are neighbours if one results from the other by replacing the answers of one student. A fit $M$ with epsilon $\varepsilon$ guarantees that for any two neighbours and any set $S$ of results
#
# $$P(M(D) \in S) \le e^{\varepsilon} \, P(M(D') \in S) .$$
#
# `design="public"` states that it is public which questions each student was asked, including missing answers. The pattern of the missing answers makes this assumption credible here. The guarantee does not cover the fact that a student took part, the number of students, the number of comparisons of each pair, or facts about the population. It is weaker for groups: two friends who always agree have only a guarantee of twice epsilon.
#
# ## The private fit
#
# The budget is the ledger of this survey. Each fit reserves its epsilon there before noise is drawn.

# %%
budget = pr.Budget(epsilon=5.0, unit="respondent")
fit = model.fit(epsilon=1.0, budget=budget, rng=rng)
print(fit.summary())
# Worths of six universities with 95% intervals (n = 303, epsilon = 1)
figure = fit.plot_worth()

# %% [markdown]
# How to read the table:
#
# - `coef` is the worth, and `std err` is its standard error. The next two columns are the components of the standard error. `sampling` refers to variation between samples of the same size, and `privacy` to variation between draws of the noise. The squares of the two components add up to the square of the standard error.
# - The design effect in the header is the factor by which the correlation of a student's answers inflates the sampling variance. It is the largest value over all differences between universities, so every interval is valid. A share of epsilon was used to release it. Without it, intervals would be too narrow for universities on which students disagree.
# - `P>|z|` is the p-value of a score test that the worth is zero, the mean of all worths. `z` is the normal quantile with the same p-value. It is not `coef` divided by `std err`, because the score test uses the variance under the null hypothesis. The interval excludes zero if and only if the p-value is below `alpha`.
# - `rank` is the rank set: the ranks that cannot be rejected, simultaneously for all universities. If two rank sets overlap, the order of the two universities is not established, whatever the order of the rows.
#
# Comparison with the reference:

# %%
error = {"error / privacy": (fit.params - reference.params) / fit.bse_privacy}
print(
    pd.DataFrame(
        {"private": fit.params, "reference": reference.params} | error
    ).round(3)
)

# %% [markdown]
# The reference uses the same students, so the two columns differ only by privacy noise. The last column divides this difference by the `privacy` component of the standard error. A difference between two universities is more informative than a single worth. It implies the probability that the first university is preferred, plus half the probability of a tie:

# %%
print(fit.pairwise().drop(columns="std_err").round(3).to_string(index=False))
# Probability that the row university is preferred (ties count half)
figure = fit.plot_pairwise()

# %% [markdown]
# ## Ties
#
# There are two ways to treat ties. Half a win to each university answers one question: which university would be preferred if undecided students were divided equally? With `ties="davidson"` a tie is a separate outcome, and the worths answer another question: which university do students prefer if they decide? The probabilities of win, tie and loss are then proportional to $e^{d/2}$, $e^{\lambda}$ and $e^{-d/2}$, where $d$ is the difference of two worths. This model also estimates the probability of a tie. The table shows both models without privacy, and the second model with privacy:

# %%
tied = data | {"ties": "davidson"}
deciding = pr.PrivateBTL(answers, **tied).fit(epsilon=np.inf, penalty=0)
private = pr.PrivateBTL(answers, **tied).fit(
    epsilon=1.0, budget=budget, rng=np.random.default_rng(1970)
)
readings = {
    "half wins": reference,
    "davidson": deciding,
    "davidson, epsilon 1": private,
}
print(
    pd.DataFrame({name: one.params for name, one in readings.items()}).round(3)
)
apart = (
    reference.params @ deciding.params / (reference.params @ reference.params)
)
print(f"\nwithout noise differences are {apart:.2f} times as large", end=" ")
print("as with half wins")
tied_share = (outcome == 0).sum() / outcome.notna().sum()
print(f"ties are {tied_share:.1%} of the answers")
parameters = {
    "no noise": deciding.tie_parameter,
    "epsilon 1": private.tie_parameter,
}
print(pd.DataFrame(parameters).round(3))
columns = ["item1", "item2", "win", "tie", "loss"]
print(private.pairwise().loc[:2, columns].round(3).to_string())

# %% [markdown]
# The order is the same. In the Davidson model the worths are 1.14 times as far apart, because half wins pull the preference probabilities towards one half. Use half wins for a decision that affects all students, including undecided ones. Use the Davidson model to describe students who have a preference and to estimate how many do not. The Davidson model also releases the number of ties, which uses 15% of epsilon here.
#
# ## The top two
#
# The release contains noisy net wins, from which the top two follow at no additional privacy cost. The number two was chosen before the results were known, and the p-value for the separation of the set requires this.

# %%
top = pr.PrivateTopK.from_release(fit.release, k=2)
print(top.summary())
# Win rates with 95% intervals; the selected top two in red
figure = top.plot()

# %% [markdown]
# ## The effect of epsilon
#
# Two more fits are recorded in the ledger. The non-private fit is shown for comparison. The second table contains the components of the standard errors, averaged over the universities.

# %%
less, more = (model.fit(epsilon=e, budget=budget, rng=rng) for e in (0.5, 2.0))
print(pr.summary_col([less, fit, more, model.fit(epsilon=np.inf)]), end="\n\n")
rows = [
    [one.epsilon, one.bse_sampling.mean(), one.bse_privacy.mean()]
    for one in (less, fit, more)
]
print(
    pd.DataFrame(rows, columns=["epsilon", "sampling", "privacy"])
    .set_index("epsilon")
    .round(3)
)

# %% [markdown]
# The privacy component of a standard error is proportional to $1/\varepsilon$ and to $1/n$. The sampling component is proportional to $1/\sqrt{n}$ and does not depend on epsilon. Once the privacy component is the smaller one, a larger epsilon improves precision little. The sampling components of the private fits differ by noise: each fit releases its own design effect, and the smaller epsilon, the noisier it is.
#
# ## Comparisons as the unit of privacy
#
# With `respondent=None` the unit is a single comparison. The noise is much smaller at the same epsilon, but a student is then protected only at `max_rows` times epsilon. To protect students in this way, epsilon must be divided by the number of rows. The noise is then larger than in the fit above, which is calibrated to the actual influence of one student. A fit of single comparisons also treats the answers of one student as independent, so its sampling errors are too small. A ledger for respondents refuses such a fit (see the message below the table).

# %%
by_row = pr.PrivateBTL(answers, **data | {"respondent": None})
rows = [
    by_row.fit(epsilon=1.0, rng=rng),
    by_row.fit(epsilon=1 / 15, rng=rng),
    fit,
]
units = [
    [one.release.design.unit, one.epsilon, one.bse_privacy.mean()]
    for one in rows
]
table = pd.DataFrame(units, columns=["unit", "epsilon", "privacy std err"])
table["epsilon of a student"] = table["epsilon"] * table["unit"].map(
    {"row": 15, "respondent": 1}
)
print(table.round(3).to_string(index=False))
try:
    by_row.fit(epsilon=0.1, budget=budget, rng=rng)
except ValueError as refusal:
    print(f"\n{refusal}")

# %% [markdown]
# ## For publication: secure noise
#
# Without `rng=` the noise comes from a cryptographically secure source. The numbers below change each time this page is built, and each time the fit uses more epsilon. Fit your own survey once and store the result as JSON, which contains the release but no data. Reading the JSON reproduces the result at no additional privacy cost. Note the source of the noise in the header.

# %%
published = model.fit(epsilon=0.5, budget=budget)
folder = Path(mkdtemp())  # for your own survey, a folder that you keep
archive = folder / "universities.json"
archive.write_text(published.to_json(), encoding="utf-8")
stored = pr.from_json(archive.read_text(encoding="utf-8"))
print(stored.summary())
print("\nsame worths:", stored.params.equals(published.params))

# %% [markdown]
# ### The report
#
# `pr.report` writes one HTML page that may be published. It states the findings in words and contains the tables, the figures and the privacy guarantee. It ends with the ledger, which lists the total epsilon used for the students. The page contains only what the results state and the text given here ([report and archive results](../docs/reports.md)).

# %%
shown = {"StGallen": "St. Gallen"}
top = pr.PrivateTopK.from_release(stored.release, k=2)
chapters = {
    "How strongly is each university preferred?": stored.with_labels(shown),
    "Which two universities lead?": top.with_labels(shown),
}
page = pr.report(
    chapters,
    folder / "universities.html",
    title="Where students would rather spend time abroad",
    text="303 students compared six universities pair by pair.",
    budget=budget,
)
print(page.name, "written:", page.stat().st_size // 1000, "kB\n")
print(budget.summary())
