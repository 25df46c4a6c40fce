# %% [markdown]
# # A private leaderboard from a log of votes
#
# Visitors of a website see the answers of two models and vote for the better one, as often as they like. The log contains the identity of each voter, and a voter's questions and preferences are confidential. This page turns such a log into a ranking with confidence intervals. The guarantee protects all votes of a voter, however many. A log with public facts about each vote, such as the lengths of the two texts, can be fitted with [style control](../docs/contests.md).
#
# > This page uses **seeded noise**, for illustration only (see the last section). The log is simulated, so results can be compared with the true values.

# %%
from collections import Counter

import numpy as np
import polars as pl

import privrank as pr

rng = np.random.default_rng(2027)

# %% [markdown]
# ## The log
#
# Activity is very unequal: the number of votes per voter roughly follows Zipf's distribution. The share of the k-th most active voter is nearly proportional to one over k. A vote is a tie if the two answers are about equally good.

# %%
voters, votes = 50_000, 1_000_000
models = [f"model {k:02d}" for k in range(1, 61)]
quality = np.sort(rng.normal(0.0, 0.9, len(models)))[::-1]
share = 1.0 / np.arange(1, voters + 1) ** 0.8
share /= share.sum()

voter = rng.choice(voters, votes, p=share)
left = rng.integers(len(models), size=votes)
right = (left + rng.integers(1, len(models), size=votes)) % len(models)
better = quality[left] - quality[right] + rng.logistic(size=votes)
vote = np.select([better > 0.3, better < -0.3], ["left", "right"], "tie")
name = pl.Series(models)
log = pl.DataFrame(
    {"voter": voter, "left": name[left], "right": name[right], "vote": vote}
)
print(log.head(3))

# %% [markdown]
# ## The number of votes per voter
#
# The guarantee needs a bound on the influence of one voter. A very large bound requires too much noise; excluding voters above a small bound would discard most of the data. With `excess="sample"` each fit uses a secret random sample of `max_rows` votes from every voter with more votes. A small bound discards votes, and a large bound requires more noise. The best bound can be found before the log is opened, from public numbers. Here these are the numbers of votes and voters, which the site publishes, and Zipf's distribution. Do not use a count from the log itself, because a bound chosen in this way would reveal information about the voters.

# %%
number = np.maximum(np.round(votes * share), 1).astype(int)
activity = Counter(
    number.tolist()
)  # {30: 100} means 100 voters with 30 votes each
planned = {"items": models, "distinct_pairs": False, "for_epsilon": 1.0}
tradeoff = pr.contribution_tradeoff(
    activity,
    **planned,
    pair_counts="proportional",
    worths=3.0,
    bounds=[1, 5, 10, 20],
    replicates=3,
)
print(tradeoff.round(3))

# %% [markdown]
# These are simulated fits, for models whose worths have a range of 3. The standard error of a difference, `std_err`, has two components: variation between samples of voters and variation between draws of the noise. `error` is its Monte Carlo standard error. We use the bound with the smallest `std_err`.
#
# If nothing is known about a log, use a small bound, because a large one adds more noise than data. Compare bounds of one to five with `pr.contribution_tradeoff`, for several guesses of the activity. With few votes per pair a log may identify nothing at any bound. Fewer models need fewer votes, and so does `pair_counts="proportional"` where its assumption holds. At most `max_rows` votes per voter are counted, so the ranking reflects voters rather than votes and is not dominated by the most active voters.
#
# ## The fit
#
# The columns keep their names, and the values of `vote` are recoded to 1, 0 and -1. `ties=True` declares ties, which count as half a win for both models. Pairs can occur repeatedly (`distinct_pairs=False`). It is not public which pairs a voter compared, so the design is private, the default. The guarantee then also protects how often two models met. (If the log contains winners and losers and no ties, a formula suffices: `PrivateBTL.from_formula("winner + loser ~ 1", log, items=..., respondent="voter", ...)`. With ties, convert it first with `pr.as_comparisons(log, "winner-loser", ...)`: see [preparing data](../docs/data-in.md).)
#
# By default the pair counts are released with noise, one for each pair of the sixty models. Here the site drew the two models of each question at random, and `pair_counts="proportional"` declares this: given how often each model was shown, its opponents were matched at random. The wins and losses of each model are then sufficient. Many sites match strong models with strong ones, and the fit corrects for this to some extent (see below). Do not declare proportional counts if the site matches models by category.

# %%
max_rows = int(tradeoff["std_err"].idxmin())
answer = pl.col("vote").replace_strict({"left": 1, "tie": 0, "right": -1})
declared = {
    "item1": "left",
    "item2": "right",
    "outcome": "vote",
    "items": models,
    "respondent": "voter",
    "max_rows": max_rows,
    "excess": "sample",
    "distinct_pairs": False,
    "ties": True,
}
votes_cast = log.with_columns(answer)
model = pr.PrivateBTL(votes_cast, **declared, pair_counts="proportional")
budget = pr.Budget(epsilon=3.5, unit="respondent")
fit = model.fit(epsilon=1.0, budget=budget, rng=rng)


def head(result, lines):
    """Print the first lines of the long summary of sixty items."""
    print(*str(result.summary()).splitlines()[:lines], "...", sep="\n")


head(fit, 24)

# %% [markdown]
# A twentieth of epsilon was used to release one more number: how often models met opponents from their own half of the board. From this number the fit estimates how much less often distant models meet, and corrects for it. The notes below the table report the result, and what such a number cannot detect. The fit would warn if opponents were matched very closely by strength.

# %%
text = " ".join(str(fit.summary()).split())
print(text[text.index("Allowed for:") : text.index("[4] Privacy:")])

# %% [markdown]
# How much precision does the declaration gain? The next table compares the fit with a fit that uses released pair counts. Errors are relative to the true values, up to the factor by which ties shrink them:

# %%
released = pr.PrivateBTL(votes_cast, **declared).fit(
    epsilon=1.0, budget=budget, rng=rng
)
true = quality - quality.mean()
for one in (fit, released):
    scale = (one.params @ true) / (true @ true)
    off = np.sqrt(np.mean((one.params - scale * true) ** 2))
    pairs = one.release.design.pairs
    print(f"pair counts {pairs.origin if pairs else 'released'}: ", end="")
    print(f"root mean square error {off:.3f}, ", end="")
    print(f"mean standard error {one.bse.mean():.3f}")

# %% [markdown]
# Ties shrink all differences of worths by about the same factor. The order does not change.
#
# ## Interpretation of epsilon for a voter
#
# The unit of privacy is the voter, not the vote. Suppose someone knows the votes of all other voters and assigns even odds to the two possible votes of one voter. After seeing the leaderboard, whatever it shows, the odds can be at most as follows:

# %%
odds = np.exp(fit.epsilon)
after = odds / (1 + odds)
print(f"{odds:.1f} to 1, or a probability of {after:.2f} instead of 0.5")

# %% [markdown]
# A guarantee for single votes would appear better and protect less. With `respondent=None` and the same epsilon, a voter with ten votes has ten times epsilon, and the most active voters have practically no protection.
#
# ## Which models differ
#
# The column `rank` contains the rank sets, which are simultaneous for all models. The next lines count the pairs of models whose simultaneous interval excludes one half.

# %%
pairs = fit.pairwise(simultaneous=True)
apart = ((pairs["lower"] > 0.5) | (pairs["upper"] < 0.5)).to_numpy()
first, second = np.triu_indices(len(models), 1)
place = fit.params.rank(ascending=False).to_numpy()
for near, far in ((1, 1), (2, 5), (6, 15), (16, 59)):
    here = (np.abs(place[first] - place[second]) >= near) & (
        np.abs(place[first] - place[second]) <= far
    )
    print(f"{near:2} to {far:2} ranks apart on the board: ", end="")
    print(f"{apart[here].mean():.2f} of pairs are separated")

# %% [markdown]
# Neighbours on the board are not separated, and distant models are all separated. The log is simulated, so the intervals can be checked. In what fraction of pairs does the better model have the larger worth, among the separated pairs and among the other pairs?

# %%
# models are numbered by quality, best first
right_way = fit.params.to_numpy()[first] > fit.params.to_numpy()[second]
print(f"separated: {right_way[apart].mean():.3f}")
print(f"others: {right_way[~apart].mean():.3f}")
# Worths of 60 models with 95% intervals (50,000 voters, epsilon = 1)
figure = fit.plot_worth()

# %% [markdown]
# ## The effect of epsilon
#
# Next we compare half of the epsilon, the fit above, and a fit without privacy, all with the same bound on votes. With privacy, one released design effect (the largest over all differences, see the header) inflates all sampling errors. Without privacy each standard error accounts separately for the correlation of a voter's votes, so sampling errors are smaller.

# %%
half = model.fit(epsilon=0.5, budget=budget, rng=rng)
for one in (half, fit, model.fit(epsilon=np.inf, rng=rng)):
    parts = one.bse_sampling.mean(), one.bse_privacy.mean()
    print(f"epsilon {one.epsilon}: standard errors: ", end="")
    print(f"sampling {parts[0]:.3f}, privacy {parts[1]:.3f}")
head(half, 16)

# %% [markdown]
# ## For publication: secure noise
#
# Without `rng=` both the noise and the sample of votes come from a cryptographically secure source. The board below changes each time this page is built, and each time the fit uses more epsilon. Fit your own log once and store the result.

# %%
# The declaration was checked above, so this fit uses the share of the check
# for the worths.
published = model.fit(epsilon=1.0, budget=budget, shares={"opponents": 0})
head(published, 16)
print(budget.summary())
