"""Names of the parts of a release, and of settings that its inference reads."""

from __future__ import annotations

NET = "net wins"
WINS = "win matrix"
SIDES = "wins and losses"
WORTHS = "worths"
DEPENDENCE, LARGEST = "dependence", "largest design effect"
CEILING = "largest design effect of any answers"
RESIDUAL = "largest residual"
PAIR_COUNTS, ITEM_COUNTS = "pair_counts", "item_counts"
TIES, TIE_FLOOR = "ties", "floor of ties"
OPPONENTS = "opponents"
DETAILS = "details"
GROUP_ANSWERS, ORDER_EFFECT = "group_answers", "order_effect"
STATISTIC, DECISION, PVALUE, IMPOSSIBLE = "statistic", "decision", "p-value", "impossible"
EFFECT, BOUNDARY = "effect", "boundary"
PAIRS, TOTALS, SCORE, ORDER = "pairs", "Borda totals", "Kemeny score", "order"
SCORES, COVARIANCE = "Borda scores", "covariance of Borda scores"
CONCERNED = "reports about items"
QUERIES = "queries"
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
