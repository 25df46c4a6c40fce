"""Names of the parts of a release, and of settings that its inference reads."""

from __future__ import annotations

NET = "net wins"
WINS = "win matrix"
SIDES = "wins and losses"
WORTHS = "worths"
DEPENDENCE = "dependence"
LARGEST = "largest design effect"
CEILING = "largest design effect of any answers"
RESIDUAL = "largest residual"
PAIR_COUNTS = "pair_counts"
ITEM_COUNTS = "item_counts"
TIES = "ties"
TIE_FLOOR = "floor of ties"
OPPONENTS = "opponents"
DETAILS = "details"
GROUP_ANSWERS = "group_answers"
ORDER_EFFECT = "order_effect"
STATISTIC = "statistic"
DECISION = "decision"
PVALUE = "p-value"
IMPOSSIBLE = "impossible"
EFFECT = "effect"
BOUNDARY = "boundary"
PAIRS = "pairs"
TOTALS = "Borda totals"
SCORE = "Kemeny score"
ORDER = "order"
SCORES = "Borda scores"
COVARIANCE = "covariance of Borda scores"
CONCERNED = "reports about items"
QUERIES = "queries"
FALLBACK = "fallback"
MOMENTS = ("answers by answers", "answers by counts", "counts by counts")
TIE_MOMENTS = ("ties by answers", "ties by counts", "ties by ties")
BY_PAIR = "answers by pair"
"""Names of the parts of a release. The count of impossible observations exists in non-private runs
only, the moments and what goes with them by pair also of reports, which are public; scores, their
covariance and reports about items in the local model."""

REJECTED = "rejected, "
"""In the local model, a setting of this name and a reason counts the rejected reports."""

BESIDE_NULL = ("data", "answers behind the null")
"""The groups where a sample is compared with the answers from which a null was estimated."""

UNPLACED = "unplaced"
"""In an adaptive protocol, the setting that counts items whose place the sort has not found."""

GAIN = "gain"
"""The setting that makes a win matrix one of randomised responses: the mean of a report of 1."""
