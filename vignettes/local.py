# %% [markdown]
# # Surveys without a trusted curator: the local model
#
# In the local model no one collects the raw answers, so no one needs to be trusted with them. Each respondent's own device answers a part of the question and sends a randomised report. The degree of randomisation is fixed and public. A single report says little about its sender, but many reports together are informative about the population. This page plans such a survey, collects reports, and compares the precision with a survey that has a trusted curator.
#
# > **This page uses seeded noise** for reproducibility (except in the last section): the respondents are simulated. In a real survey the respondents' devices draw the random numbers.

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
# A protocol specifies what is asked and how the answers are randomised. It is public and contains everything that both sides need. The default protocol asks each respondent for the order of a few randomly selected items. Their number depends on epsilon: the order of more items is more informative but must be hidden among more possible answers.

# %%
items = ["London", "Paris", "Milano", "StGallen", "Barcelona", "Stockholm"]
protocol = pr.local.SubRanking(items, epsilon=2.0)
print(protocol.to_json())
print(f"\neach respondent orders {protocol.size} of {len(items)} items")
truth = protocol.response.favoured_probability
print(f"and gives a true answer with probability {truth:.3f}")

# %% [markdown]
# ## Two reports and their tally
#
# Each respondent's device reads the protocol and makes one report from a ranking, with the best item first. The curator collects the reports in a list and counts them:

# %%
rankings = [items, items[::-1]]  # two respondents
messages = [
    pr.local.Client(protocol).randomize(ranking) for ranking in rankings
]
print(protocol.tally(messages))

# %% [markdown]
# ## Collecting reports
#
# From here on respondents are simulated. Their rankings follow a Plackett-Luce model with worths estimated from a survey of students. The array `opinions` has one column per item, which contains its rank.

# %%
cems = pr.datasets.load_university()
fit = pr.PrivateBTL(
    cems.comparisons,
    items=items,
    respondent="respondent",
    max_rows=15,
    ties=True,
    design="public",
).fit(epsilon=np.inf)
population = pr.PlackettLuce(fit.params)
opinions = population.rvs(4000, rng)
reports = pd.DataFrame(protocol.simulate(opinions, rng))
print(reports.head(3))

# %% [markdown]
# A report contains the identifier of the protocol, the question, the answer and a random identifier of the report. All are numbers that have no meaning without the protocol. During transmission, reports can be lost, sent twice or damaged. The tally counts the valid reports in any order and from any number of files (`tally1 + tally2`), and it states how many were rejected.

# %%
first, second = (
    reports.iloc[:2500],
    reports.iloc[2400:].astype({"answer": object}),
)
second.iloc[-1, 2] = "none"
tally = protocol.tally(first) + protocol.tally(
    second.sample(frac=1.0, random_state=1)
)
print(tally)

# %% [markdown]
# ## The curator's analysis
#
# A tally replaces the data, and no further budget is used, because each answer was randomised on the device. The result object is the usual one. Its standard errors combine sampling error and randomised response.

# %%
order = pr.PrivateRankAggregation.from_reports(tally)
print(order.summary())
# Consensus and 95% rank sets, local model (n = 4,000, epsilon = 2)
figure = order.plot_consensus()

# %% [markdown]
# ## Sample size
#
# A trusted curator adds noise once, to a sum. In the local model every device adds noise, so more respondents are needed. The table shows the mean number of pairs of items that each method orders differently from the population, over repeated surveys:

# %%
true = population.worths.argsort()[::-1].argsort()
upper = np.triu_indices(len(items), 1)


def wrong(result):
    """Return the number of pairs that a consensus orders wrongly."""
    place = result.consensus.loc[items].to_numpy()
    return (
        (place[upper[0]] < place[upper[1]])
        != (true[upper[0]] < true[upper[1]])
    ).sum()


def central(ranks):
    frame = pd.DataFrame(ranks, columns=items)
    return pr.PrivateRankAggregation(frame, respondent=None).fit(
        epsilon=2.0, rng=rng
    )


def local(ranks):
    return pr.PrivateRankAggregation.from_reports(
        protocol.tally(protocol.simulate(ranks, rng))
    )


warnings.simplefilter(
    "ignore", pr.PrivrankWarning
)  # small surveys raise warnings
rows = []
for n in (100, 300, 1000, 3000, 10000):
    samples = [population.rvs(n, rng) for _ in range(40)]
    rows.append(
        [
            n,
            *(
                np.mean([wrong(run(one)) for one in samples])
                for run in (central, local)
            ),
        ]
    )
print(
    pd.DataFrame(
        rows, columns=["respondents", "trusted curator", "local"]
    ).to_string(index=False)
)

# %% [markdown]
# ## Adaptive questions
#
# If respondents answer one after another, the questions can depend on earlier reports. The adaptive protocol asks about pairs whose order is still open, like KwikSort. A curator object issues queries and receives reports, in any order, and some respondents may never answer. Its state can be stored as text (`to_json()`), so an interrupted survey can continue.
#
# The final ranking uses all reports. It can be more accurate than the default if at least two thirds of the population agree on the order of neighbouring items: [see the study](../docs/validation/local_adaptive.md).

# %%
adaptive = pr.local.AdaptiveKwikSort(items, epsilon=2.0)
curator = pr.local.Curator(adaptive, respondents=4000)
crowd = pr.local.Population(adaptive, opinions, rng, dropout=0.1)
while queries := curator.next_queries(500):
    curator.receive(crowd.answer(queries))
    curator = pr.local.Curator.from_json(curator.to_json())
adapted = curator.result()
print(adapted.summary())
# Pairwise fractions from the adaptive protocol, for the pairs asked
figure = adapted.plot_pairwise()

# %% [markdown]
# ## Worths
#
# If you need more than a ranking, the protocol `Comparisons` asks each respondent for the preferred item of one pair. Its tally can be used to fit worths, or to select the top items with `PrivateTopK.from_reports`. [The guide](../docs/local.md) describes the purpose of each protocol.

# %%
paired = pr.local.Comparisons(items, epsilon=2.0)
worths = pr.PrivateBTL.from_reports(
    paired.tally(paired.simulate(opinions, rng))
)
print(worths.summary())

# %% [markdown]
# ## Running the client on a device
#
# The device needs NumPy and this script. Its report uses the secure random number generator of the operating system, so it changes each time this page is built. The client refuses a protocol whose epsilon exceeds its own limit, 8 by default, and explains what a report may reveal. It answers only once. A second answer would be a new random report, and many reports of one person together would reveal the true answer.

# %%
CLIENT = """
import json, sys
from privrank.local.client import Client

protocol, ranking = sys.stdin.read().splitlines()
client = Client.from_json(protocol)
asked = ["Asked for the order of", *client.question]
print(client.explain(), *asked, file=sys.stderr)
print(json.dumps(client.randomize(ranking.split(", "))))
"""
entered = f"{protocol.to_json()}\n{', '.join(items)}\n"
device = subprocess.run(
    [sys.executable, "-c", CLIENT],
    input=entered,
    text=True,
    capture_output=True,
)
print(device.stderr, json.loads(device.stdout), sep="")
