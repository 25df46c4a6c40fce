# %% [markdown]
# # A private leaderboard: a million votes, and voters without a bound
#
# Visitors of a site are shown the answers of two models and vote for the better one, as often as they like. The log holds who voted, and what a person asks and prefers is nobody else's business. This page goes from such a log to a ranking with intervals that protects every voter with all their votes, however many.
#
# > **This page uses seeded noise**, so that everybody who runs it gets the same page (but for the last section). Whoever knows the seed can take the noise off again: for results to be published, leave `rng=` away, as the last section does. The log is simulated, so that the page may look at what is true.

# %%
from collections import Counter

import numpy as np
import polars as pl

import privrank as pr

rng = np.random.default_rng(2027)

# %% [markdown]
# ## The log
#
# Activity is very unequal: a voter's share of the votes falls with their place among voters by activity nearly like Zipf's one over the place. A vote ties where the two answers are about as good.

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
log = pl.DataFrame({"voter": voter, "left": name[left], "right": name[right], "vote": vote})
print(log.head(3))

# %% [markdown]
# ## How many votes of a voter count
#
# The guarantee needs a bound on what one voter can change. A bound that nobody reaches would make the noise drown the answers; refusing voters beyond a small one would empty the log. With `excess="sample"` each fit keeps `max_rows` votes of every voter with more, chosen at random and never told. A small bound throws votes away, a large one needs more noise. Which is best can be said before the log is opened, from public numbers: here the numbers of votes and voters, which the site tells its visitors, and Zipf's rule for the rest. A count of the log itself must not be used: a bound that is chosen by it tells something of the voters.

# %%
number = np.maximum(np.round(votes * share), 1).astype(int)
activity = Counter(number.tolist())  # as {1: 4000, 30: 100} says: 100 voters with 30 votes each
planned = {"items": models, "distinct_pairs": False, "for_epsilon": 1.0}
tradeoff = pr.contribution_tradeoff(
    activity, **planned, pair_counts="proportional", worths=3.0, bounds=[1, 5, 10, 20], replicates=3
)
print(tradeoff.round(3))

# %% [markdown]
# Whole fits were simulated, of models whose worths are spread over a range of 3. The error of a difference, `std_err`, has two parts, what another sample of voters would change and what other noise would change; `error` is its Monte Carlo standard error. The bound with the least of both is taken. Where nothing is known of a log, take a small one, as a large one brings more noise than rows: one to five, compared by `pr.contribution_tradeoff` for guesses of the activity. A log of few votes for each pair may identify nothing at any bound: fewer models, or `pair_counts="proportional"` where it holds, need less. From a voter with more votes no more than that count, so that the ranking is one by voters rather than by votes: the busiest of them cannot make it.
#
# ## The fit
#
# The columns keep their names; the answers in `vote` are recoded to 1, 0 and -1. `ties=True` declares that there are ties, each half a win to both. (A log with the winner and the loser of each vote, and no ties, is shorter: `PrivateBTL.from_formula("winner + loser ~ 1", log, items=..., respondent="voter", ...)`. With ties it goes through `pr.as_comparisons(log, "winner-loser", ...)` first: [which data come in](../docs/data-in.md).) Pairs can come again (`distinct_pairs=False`). Who voted on what is not public, so the design is private, as it is by default: how often two models met is protected, too.
#
# By default these numbers are released with noise, one for each pair of the sixty models. But the site drew the two models of a question at random. `pair_counts="proportional"` declares that: given how often each model was shown, its opponents were matched at random. Then wins and losses of each model are enough. Where a site lets strong models meet strong ones, as many do, the fit allows for some of it, as seen below; where it does so by categories of models, this must not be declared.

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
    """Print the first lines of a summary; all sixty items make it long."""
    print(*str(result.summary()).splitlines()[:lines], "...", sep="\n")


head(fit, 24)

# %% [markdown]
# A twentieth of epsilon was spent on one more number: how often models met those of their own half of the board. From it the fit estimates how much less often models meet that are far apart on the board, and allows for it. The lines below the table say what was found, and what such a number cannot show. If opponents were matched by strength very closely the fit would warn.

# %%
text = " ".join(str(fit.summary()).split())
print(text[text.index("Allowed for:") : text.index("Test of equal")])

# %% [markdown]
# What did the declaration save? The same fit with released pair counts, and the errors of both beside what is true, up to the scale that ties shrink:

# %%
released = pr.PrivateBTL(votes_cast, **declared).fit(epsilon=1.0, budget=budget, rng=rng)
true = quality - quality.mean()
for one in (fit, released):
    scale = (one.params @ true) / (true @ true)
    off = np.sqrt(np.mean((one.params - scale * true) ** 2))
    print(
        f"pair counts {one.release.design.pairs.origin if one.release.design.pairs else 'released'}: "
        f"root mean square error {off:.3f}, mean standard error {one.bse.mean():.3f}"
    )

# %% [markdown]
# Ties draw worths together, and shrink all differences by about the same factor; the order stays what it is.
#
# ## What epsilon means for a voter
#
# The unit is the voter, not the vote. Somebody who knows all other voters and gives even odds on how this one voted can, after seeing the whole leaderboard, give no better odds than these, whichever way it came out:

# %%
odds = np.exp(fit.epsilon)
print(f"{odds:.1f} to 1, or a probability of {odds / (1 + odds):.2f} in the place of 0.5")

# %% [markdown]
# A guarantee for single votes would look better and protect less: with `respondent=None` and the same epsilon a voter with ten votes could be told at ten times epsilon, and the busiest ones are not protected at all.
#
# ## Which models can be told apart
#
# The column `rank` holds the ranks that a model can have, for all models at once, and so do the intervals that the next lines count.

# %%
pairs = fit.pairwise(simultaneous=True)
apart = ((pairs["lower"] > 0.5) | (pairs["upper"] < 0.5)).to_numpy()
first, second = np.triu_indices(len(models), 1)
place = fit.params.rank(ascending=False).to_numpy()
for near, far in ((1, 1), (2, 5), (6, 15), (16, 59)):
    here = (np.abs(place[first] - place[second]) >= near) & (
        np.abs(place[first] - place[second]) <= far
    )
    print(
        f"{near:2} to {far:2} places apart on the board: {apart[here].mean():.2f} of pairs are told apart"
    )

# %% [markdown]
# Neighbours on the board stay open, models far apart are all told apart. As the log was simulated, the intervals can be checked: in how many pairs does the better model have the larger worth, among those told apart and among the rest?

# %%
# models are numbered by quality, best first
right_way = fit.params.to_numpy()[first] > fit.params.to_numpy()[second]
print(f"told apart: {right_way[apart].mean():.3f}, the rest: {right_way[~apart].mean():.3f}")
figure = fit.plot_worth()  # Sixty models by a million votes, every voter protected

# %% [markdown]
# ## What epsilon buys
#
# Half of it, beside the fit above and the one without privacy, all from votes bounded in the same way. With privacy the sampling errors of all lines are inflated by one released design effect, the largest of any difference, which the header states; without it each line has an error of its own that allows for the dependence of a voter's votes, so that sampling errors are smaller there:

# %%
half = model.fit(epsilon=0.5, budget=budget, rng=rng)
for one in (half, fit, model.fit(epsilon=np.inf, rng=rng)):
    parts = one.bse_sampling.mean(), one.bse_privacy.mean()
    print(
        f"epsilon {one.epsilon}: standard errors by sampling {parts[0]:.3f}, by noise {parts[1]:.3f}"
    )
head(half, 16)

# %% [markdown]
# ## For publication: secure noise
#
# Without `rng=` the noise, and the choice of the votes that count, come from a cryptographically secure source. The board below differs each time this page is made, and each time it costs another epsilon; a log of your own is fitted once and the result kept.

# %%
# what was declared has been checked above, and the share of the check goes to the worths
published = model.fit(epsilon=1.0, budget=budget, shares={"opponents": 0})
head(published, 16)
print(budget.summary())
