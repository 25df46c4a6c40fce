# %% [markdown]
# # MaxDiff: from a CSV export to a report
#
# In a MaxDiff survey (best-worst scaling) each task shows a few items, and the respondent names the best and the worst of them. This page starts from the files that survey tools export and ends with a report that may be published. It reads six usual layouts, fits worths, and states which conclusions the worths permit.
#
# > This page uses **seeded noise**, for illustration only (see the last section). The answers are simulated, so the page may also show fits without privacy.

# %%
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(2026)
folder = Path(mkdtemp())  # for your own survey, a folder that you keep

# %% [markdown]
# ## The files of a survey
#
# The survey is about features of a coffee machine. A plan lists the tasks of each version of the questionnaire, and every respondent is assigned a version. In this plan all features occur equally often in each version. The following cell simulates the plan and the answers, and writes both as CSV files.

# %%
features = ["price", "taste", "easy to clean", "quiet"]
features += ["small", "design", "brand", "app"]
true = np.array([1.0, 0.8, 0.4, 0.1, -0.2, -0.4, -0.6, -1.1])
shows = ["item1", "item2", "item3", "item4"]


def halves():
    return rng.permutation(8).reshape(2, 4)


sets = np.array([[halves() for _ in range(5)] for _ in range(30)])
sets = sets.reshape(30, 10, 4)
version = np.arange(600) % 30
shown = sets[version]
# the pair (best, worst) has the largest difference plus Gumbel noise
apart = true[shown][..., :, None] - true[shown][..., None, :]
apart += rng.gumbel(size=apart.shape)
apart[..., range(4), range(4)] = -np.inf
best, worst = np.divmod(apart.reshape(600, 10, 16).argmax(axis=2), 4)

named = np.array(features)[sets.reshape(300, 4)]
plan = pd.DataFrame(named, columns=shows)
plan.insert(0, "version", np.repeat(np.arange(1, 31), 10))
plan.insert(1, "task", np.tile(np.arange(1, 11), 30))
survey = pd.DataFrame({"id": np.arange(1, 601), "version": version + 1})
for name, place in (("best", best), ("worst", worst)):
    item = np.take_along_axis(shown, place[..., None], axis=2)[..., 0]
    columns = [f"{name}_{task}" for task in range(1, 11)]
    survey[columns] = np.array(features)[item]

plan.to_csv(folder / "plan.csv", index=False)
survey.to_csv(folder / "answers.csv", index=False)
print(plan.head(2).to_string(index=False), end="\n\n")
print(survey.iloc[:2, [0, 1, 2, 3, 12, 13]].to_string(index=False))

# %% [markdown]
# ## Reading the files
#
# `as_choices` returns one row per task, with the items that were offered and the two answers. `{task}` in the name of a column stands for the tasks of the plan. Declare the items yourself, from the questionnaire.

# %%
plan = pd.read_csv(folder / "plan.csv")
survey = pd.read_csv(folder / "answers.csv")
survey_columns = dict(
    offered=plan,
    version="version",
    best="best_{task}",
    worst="worst_{task}",
    items=features,
    respondent="id",
)
tasks = pr.as_choices(survey, **survey_columns)
print(len(tasks), "tasks")
print(tasks[["id", "offered", "offered 1", "best", "worst"]].head(2))

# %% [markdown]
# Other tools export other layouts. The next cell makes five of them from the same answers and reads each of them. All six give the same choices. Make answers that are missing empty cells, not words or codes. Answers may also be positions in the set (`codes="position"`). If one row per item has a single column, which marks the best by 1 and the worst by -1, name it once: `best="choice", codes={"best": 1, "worst": -1}`.

# %%
whole = pd.DataFrame(
    {"id": tasks["id"], "best": tasks["best"], "worst": tasks["worst"]}
).astype({"best": object, "worst": object})
sets = tasks[[f"offered {k}" for k in range(1, 5)]].astype(object)
whole[shows] = sets.to_numpy()
number = {item: k for k, item in enumerate(features, start=1)}
codes = whole.replace(number)
long = whole.assign(task=whole.groupby("id").cumcount())
long = long.melt(["id", "task", "best", "worst"], shows, value_name="item")
long = long.sort_values(["id", "task", "variable"])
for name in ("best", "worst"):
    long[name] = (long["item"] == long[name]).astype(int)
wide = whole.assign(task=whole.groupby("id").cumcount() + 1)
wide = wide.pivot(index="id", columns="task", values=[*shows, "best", "worst"])
wide.columns = [f"{name}_{task}" for name, task in wide.columns]
by_task = {name: name + "_{task}" for name in ("best", "worst")}
texts = whole.assign(items=whole[shows].agg("; ".join, axis=1))
coded = {k: item for item, k in number.items()}
layouts = {
    "one column per item": (whole, {"offered": shows}),
    "columns for each task": (
        wide.reset_index(),
        {"offered": [f"{name}_{{task}}" for name in shows], **by_task},
    ),
    "one row per item": (long, {"offered": "item", "task": "task"}),
    "a list in a cell": (texts, {"offered": "items", "sep": ";"}),
    "codes": (codes, {"offered": shows, "items": coded}),
}
common = {"best": "best", "worst": "worst", "respondent": "id"}
for name, (frame, options) in layouts.items():
    read = pr.as_choices(frame, **({"items": features} | common | options))
    same = all(read[c].equals(tasks[c]) for c in ("id", "best", "worst"))
    print(f"{name:21} the same choices: {same}")

# %% [markdown]
# ## The private fit
#
# The unit of privacy is a respondent with all tasks, and `max_rows` is the number of tasks in the questionnaire. `design="public"` states that the offered sets are public.

# %%
budget = pr.Budget(epsilon=3.0, unit="respondent")
model = pr.PrivateBTL(tasks, respondent="id", max_rows=10, design="public")
fit = model.fit(epsilon=1.0, budget=budget, rng=rng)
print(fit.summary())
# Worths of eight features with 95% intervals (n = 600, epsilon = 1)
figure = fit.plot_worth()

# %% [markdown]
# `coef` is the worth, and worths sum to zero. The interval accounts for sampling error and privacy noise. `rank` is the rank set: the ranks that cannot be rejected, simultaneously for all features. If two rank sets overlap, the order of the two features is not established simultaneously with all others. The p-values below are for single differences, so choose the pair before you see the data:

# %%
print(fit.ranks().to_dict(), end="\n\n")
pairs = fit.pairwise().set_index(["item1", "item2"])
near = list(zip(features[:-1], features[1:], strict=True))
print(pairs.loc[near, ["difference", "std_err", "pvalue"]].round(3))

# %% [markdown]
# ## Which conclusions are possible
#
# - **Order and signs.** A feature with a larger worth is preferred, to the degree that intervals and rank sets establish it. A positive worth is above the mean of the eight features.
# - **Ratios of differences.** The statement that one difference of worths is twice another one does not depend on the scale.
# - **Probabilities within sets of the survey.** `predict` gives the probability that a feature is the best or the worst of a set of the size that was shown.
# - **No comparison of scales.** Do not compare MaxDiff worths with worths from paired comparisons, from first choices, or from sets of another size. The next cell predicts one set. It then fits the first choices of the same respondents, without privacy.

# %%
one_set = pd.DataFrame([["price", "quiet", "small", "app"]])
one_set.columns = [f"offered {k}" for k in range(1, 5)]
print(fit.predict(one_set).round(2).to_string(index=False), end="\n\n")

first = model.fit(epsilon=np.inf, penalty=0).params.rename("best and worst")
alone = pr.PrivateBTL(
    tasks.drop(columns="worst"), respondent="id", max_rows=10, design="public"
).fit(epsilon=np.inf, penalty=0)
table = pd.concat([first, alone.params.rename("best alone")], axis=1)
print(table.round(2))
apart = table.loc["price"] - table.loc["app"]
print("\nprice minus app:", apart.round(2).to_dict())
ratio = (table.loc["price"] - table.loc["quiet"]) / apart
print("price minus quiet, as a share of it:", ratio.round(2).to_dict())

# %% [markdown]
# The scales of the two fits differ, although the respondents are the same. The ratios are similar.
#
# ## Unanswered tasks
#
# By default a task without an answer is refused. Suppose that some respondents stopped before the end. Which tasks are unanswered is then part of their answers: use `unanswered="private"`. Do not drop such respondents or tasks before the fit.

# %%
partly = survey.copy()
rng = np.random.default_rng(23)
last = rng.integers(4, 11, size=len(partly))
for task in range(1, 11):
    partly.loc[last < task, [f"best_{task}", f"worst_{task}"]] = None
try:
    pr.as_choices(partly, **survey_columns)
except ValueError as refusal:
    print(refusal)
unfinished = pr.as_choices(partly, **survey_columns, unanswered="private")
of_answered = pr.PrivateBTL(
    unfinished, respondent="id", max_rows=10, design="public"
)
print(of_answered.fit(epsilon=1.0, rng=np.random.default_rng(6)).summary())

# %% [markdown]
# The summary shows a noisy number of answered tasks. The noise protects this number together with the answers. The fit assumes that all sets are answered equally often. People who skip sets in which they like nothing violate this ([assumptions](../docs/assumptions.md)).
#
# If it was fixed beforehand that some tasks stay unanswered, for example because a server failed, use `unanswered="public"`. The guarantee does not protect which tasks these are.
#
# ## Public and protected facts
#
# - **Protected**: the best and the worst item of every task. With `unanswered="private"` also which tasks were answered.
# - **Public**: the plan, the version of each respondent, and the number of respondents. Respondents who answered nothing count as well, so keep their rows.
# - **Versions are assigned**, at random or in turn. A version that respondents choose, or that depends on an earlier answer, is not public.
# - **Adaptive questionnaires are not public.** If a task shows the winners of earlier tasks, the offered sets reveal answers. No check can detect this, because the data look the same.
#
# ## For publication: secure noise
#
# Without `rng=` the noise comes from a cryptographically secure source. The numbers below change each time this page is built. Fit your own survey once and store the result as JSON, which contains the release but no data. `pr.report` writes one HTML page with the findings, the figures, the guarantee and the ledger ([report and archive results](../docs/reports.md)).

# %%
published = model.fit(epsilon=1.0, budget=budget)
archive = folder / "features.json"
archive.write_text(published.to_json(), encoding="utf-8")
stored = pr.from_json(archive.read_text(encoding="utf-8"))
print(stored.summary())
print("\nsame worths:", stored.params.equals(published.params))
page = pr.report(
    {"How important is each feature?": stored.with_labels({"app": "App"})},
    folder / "features.html",
    title="Features of a coffee machine",
    text="600 respondents answered ten MaxDiff tasks each.",
    budget=budget,
)
print(page.name, "written:", page.stat().st_size // 1000, "kB\n")
print(budget.summary())
