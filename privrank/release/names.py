"""Names of the parts of a release, and of settings that its inference reads."""

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
CONTEST = "contest"
ANSWERED = "answered tasks"
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
only. The moments and the answers by pair exist in non-private runs and for local reports, which are
public. Scores, their covariance and the reports about items exist in the local model only."""

REJECTED = "rejected, "
"""In the local model, a setting of this name and a reason counts the rejected reports."""

BESIDE_NULL = ("data", "answers behind the null")
"""Group names if a sample is compared with the answers from which a null was estimated."""

UNPLACED = "unplaced"
"""In an adaptive protocol, the setting that counts items that the sort has not yet placed."""

GAIN = "gain"
"""Setting of a win matrix of randomised responses: the mean of a report whose answer is 1."""
