# %% [markdown]
# # Collecting preferences without collecting answers
#
# Nobody has to be trusted with answers that nobody holds. In the local model every respondent's own device answers a part of the question, at random to a degree that is fixed and public, and sends that. No single report says much about the person behind it; many of them say a lot about all. This page plans such a survey, collects, and asks what it costs beside a survey whose answers somebody holds.
#
# > **This page uses seeded noise**: the respondents are simulated, so that everybody who runs it gets the same page (but for the last section). In a survey of your own the randomness is that of the respondents' devices.

# %%
import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd

import privrank as pr

rng = np.random.default_rng(2020)

# %% [markdown]
# ## A planned survey
#
# A protocol says what is asked, and how at random the answers are. It is all that both sides need, and public. The default asks everybody for the order of a few items, chosen by lot and not by anybody; how many is decided by epsilon, since the order of more items says more and has to be hidden among more.

# %%
items = ["London", "Paris", "Milano", "StGallen", "Barcelona", "Stockholm"]
protocol = pr.local.SubRanking(items, epsilon=2.0)
print(protocol.to_json())
print(f"\neach orders {protocol.size} of {len(items)} items")
print(f"and answers truly with probability {protocol.response.favoured_probability:.3f}")

# %% [markdown]
# ## Two reports, and their tally
#
# Each respondent's device reads the protocol and makes one report of a ranking, the best item first. The curator puts the reports that arrive into a list and counts them:

# %%
rankings = [items, items[::-1]]  # of two respondents
messages = [pr.local.Client(protocol).randomize(ranking) for ranking in rankings]
print(protocol.tally(messages))

# %% [markdown]
# ## What arrives
#
# From here on respondents are simulated. Their orders scatter around worths that were once estimated from a survey of students, with a column of the file for each item and the rank in it.

# %%
cems = pr.datasets.load_university()
fit = pr.PrivateBTL(
    cems.comparisons, items=items, respondent="respondent", max_rows=15, ties=True, design="public"
).fit(epsilon=np.inf)
population = pr.PlackettLuce(fit.params)
opinions = population.rvs(4000, rng)
reports = pd.DataFrame(protocol.simulate(opinions, rng))
print(reports.head(3))

# %% [markdown]
# A report holds the protocol's id, what was asked, the answer and a random id of its own, in numbers that mean nothing without the protocol. On the way some are lost, sent twice or damaged. The tally counts what is there, in any order and from any number of files (`tally1 + tally2`), and says what it rejected.

# %%
first, second = reports.iloc[:2500], reports.iloc[2400:].astype({"answer": object})
second.iloc[-1, 2] = "none"
tally = protocol.tally(first) + protocol.tally(second.sample(frac=1.0, random_state=1))
print(tally)

# %% [markdown]
# ## The curator's report
#
# A tally takes the place of the data, and there is nothing to spend: each answer was paid for where it was given. The result is the usual one. Its standard errors hold both what sampling and what the random answers add.

# %%
order = pr.PrivateRankAggregation.from_reports(tally)
print(order.summary())
figure = order.plot_consensus()  # Consensus of answers randomised on 4,000 devices

# %% [markdown]
# ## What it takes
#
# A trusted curator adds noise once, to a sum; here everybody does. So the local model needs more people. How many pairs of items do the two order otherwise than the population, on average over a number of surveys?

# %%
true = population.worths.argsort()[::-1].argsort()
upper = np.triu_indices(len(items), 1)


def wrong(result):
    """The number of pairs that a consensus has the wrong way round."""
    place = result.consensus.loc[items].to_numpy()
    return ((place[upper[0]] < place[upper[1]]) != (true[upper[0]] < true[upper[1]])).sum()


def central(ranks):
    frame = pd.DataFrame(ranks, columns=items)
    return pr.PrivateRankAggregation(frame, respondent=None).fit(epsilon=2.0, rng=rng)


def local(ranks):
    return pr.PrivateRankAggregation.from_reports(protocol.tally(protocol.simulate(ranks, rng)))


warnings.simplefilter("ignore", pr.PrivrankWarning)  # each small survey says that it is one
rows = []
for n in (100, 300, 1000, 3000, 10000):
    samples = [population.rvs(n, rng) for _ in range(40)]
    rows.append([n, *(np.mean([wrong(run(one)) for one in samples]) for run in (central, local))])
print(
    pd.DataFrame(rows, columns=["respondents", "trusted curator", "local"]).to_string(index=False)
)

# %% [markdown]
# ## One at a time
#
# If respondents come one after the other, what is asked can depend on what was answered before: a pair that the answers so far leave open, in the manner of KwikSort. A curator hands out queries and takes answers, in any order and with people who never answer. Its state can be kept as text (`to_json()`), so that a run goes on where it was interrupted. The order is that of all answers together. Where neighbours in it are placed alike by two thirds of the population or more, it can lose less than that of the default; [adaptive KwikSort against the default](../docs/validation/local_adaptive.md) has both.

# %%
adaptive = pr.local.AdaptiveKwikSort(items, epsilon=2.0)
curator = pr.local.Curator(adaptive, respondents=4000)
crowd = pr.local.Population(adaptive, opinions, rng, dropout=0.1)
while queries := curator.next_queries(500):
    curator.receive(crowd.answer(queries))
    curator = pr.local.Curator.from_json(curator.to_json())
adapted = curator.result()
print(adapted.summary())
figure = adapted.plot_pairwise()  # Fractions of the pairs that were asked, after queries

# %% [markdown]
# ## Worths
#
# Where the order is not enough, `Comparisons` asks everybody for the preferred item of one pair. Its tally is read as worths, or by `PrivateTopK.from_reports` as the leading items. [The guide](../docs/local.md) says what each protocol is for.

# %%
paired = pr.local.Comparisons(items, epsilon=2.0)
worths = pr.PrivateBTL.from_reports(paired.tally(paired.simulate(opinions, rng)))
print(worths.summary())

# %% [markdown]
# ## A device in earnest
#
# The device needs NumPy and this script. Its answer is random by the secure source of the operating system, so it differs each time this page is made. It refuses a protocol whose epsilon is above its own limit, 8 by default, and says what a report may show. It answers once: who is asked again gives another answer, and many answers of one person would add up to the true one.

# %%
CLIENT = """
import json, sys
from privrank.local.client import Client

protocol, ranking = sys.stdin.read().splitlines()
client = Client.from_json(protocol)
print(client.explain(), "Asked for the order of", *client.question, file=sys.stderr)
print(json.dumps(client.randomize(ranking.split(", "))))
"""
entered = f"{protocol.to_json()}\n{', '.join(items)}\n"
device = subprocess.run(
    [sys.executable, "-c", CLIENT], input=entered, text=True, capture_output=True
)
print(device.stderr, json.loads(device.stdout), sep="")
