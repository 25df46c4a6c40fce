"""Notes, warnings and limitations of results: sentences by key, with named values in braces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# Assumptions of a statement, in the order in which summaries list them. ``docs/assumptions.md``
# describes the consequences of each violation, and what to do about it.
ASSUMPTIONS = {
    "respondents": "independent respondents",
    "rows": "independent rows",
    "devices": "independent respondents",
    "answering": "ignorable nonresponse (whether a question is answered does not depend on the "
    "answer)",
    "tasks": "a task is answered with the same probability whatever its set",
    "weights": "the weights were fixed before any answer",
    "contests": "the contest covariates were fixed before any answer, and act linearly",
    "reporting": "whether a local report arrives does not depend on its content",
    "assigned": "pairs were assigned, not chosen by respondents",
    "model": "preference probabilities follow the {model} model",
    "linear": "item worths deviate independently from the covariate model",
    "null": "the null distribution is known without error (if it was estimated, use null_nobs=)",
    "null worths": "the null worths are known without error",
    "surveys": "all surveys share the same parameters (if not, use effects='random') and no "
    "respondent took part twice",
    "drawn": "surveys are independent and no respondent took part twice",
    "sample": "the results describe these rankings only",
}

# The parts of standard errors, by the source of the noise and for pooled results.
ERRORS = {
    "secure": "sampling error and privacy noise",
    "seeded": "sampling error and privacy noise",
    "none": "sampling error",
    "respondents": "sampling error and randomised response",
    "same": "the one sampling error of the survey and privacy noise",
    "different": "the sampling error of every survey and privacy noise",
}

CLAIMS = {
    "assumptions": 'Assumptions: {listed}. See "Assumptions" in the documentation.',
    # estimates and intervals of comparisons
    "worths": "Worths sum to zero. Intervals are pointwise {level} confidence intervals and "
    "account for {errors}; rank sets have simultaneous {level} coverage.",
    "worths of components": "Worths sum to zero within each component (items that the released "
    "comparisons connect). Intervals are pointwise {level} confidence intervals and account for "
    "{errors}; rank sets have simultaneous {level} coverage.",
    "coefficients": "Intervals are pointwise {level} confidence intervals and account for "
    "{errors}.",
    "scale of sets": "Order, signs and ratios of worths may be interpreted. Their scale depends on "
    "the size of the offered sets, so compare it with no other answers.",
    "centred": "Item covariates are centred.",
    "sum to zero": "The coefficients of each design column sum to zero over the items.",
    "win rates": "Intervals are pointwise {level} confidence intervals of the win rates against "
    "the opponents met and account for {errors}; rank sets have simultaneous {level} coverage.",
    "net wins": "Intervals are pointwise {level} confidence intervals of the expected net wins "
    "against the opponents met and account for {errors}; rank sets have simultaneous {level} "
    "coverage.",
    "independent answers": "Standard errors treat a respondent's answers as independent.",
    "outcomes": "Outcomes are coded 1 (first item preferred), 0 (tie, counted as half a win each) "
    "and -1 (second item preferred).",
    "weights": "Answers are weighted by {column}.",
    "weights, trimmed": "Answers are weighted by {column}, at most {most:g}.",
    "rounded weights": "Trimming and rounding of the weights move the weighted share of an answer "
    "that all give by at most {moved:.2g}.",
    "outcomes of three": "Outcomes are coded 1 (first item preferred), 0 (tie) and -1 (second item "
    "preferred).",
    "tie parameter": "Ties follow the Davidson model: the probabilities of win, tie and loss are "
    "proportional to e^(d/2), nu and e^(-d/2) for a difference d of worths, and worths refer to "
    "answers without a tie. Two items of equal worth tie with probability {probability:.3f}.",
    "tie parameters": "Each release has its own tie parameter; worths refer to answers without a "
    "tie.",
    "estimator": "Estimates are by {estimator}.",
    "perturbed estimator": "Estimates are by perturbed {estimator}.",
    "zero of covariates": "Coefficients without a prefix are worths at {names} = 0{group}.",
    "lack of fit": "Lack of fit of the item covariates: Monte Carlo {pvalue}. Estimated standard "
    "deviation of the items about the covariate model: {listed}. Standard errors include it, and t "
    "quantiles have the {freedom} degrees of freedom that the items leave for it.",
    "groups": "Noisy number of answers by group: {groups}. All groups are assumed to have compared "
    "the pairs in the same proportions.",
    "costly counts": "The noise of released pair counts is more than half of the variance of most "
    "differences. pair_counts='proportional' avoids it, but assumes that opponents were matched at "
    "random given how often each item was compared: E n_ij = x_i x_j for items i and j.",
    "rows alike": "{rows} rows of one respondent count as {independent:.1f} independent ones: see "
    "pr.contribution_tradeoff().",
    "rows left out": "Randomly selected answers were used, at most {answers} per respondent. The "
    "number of omitted answers is not published.",
    "pairs left out": "Randomly selected answers were used, at most {answers} per respondent (one "
    "per pair). The number of omitted answers is not published.",
    "equal estimates": "Items with equal ranks, in the declared order: {names}.",
    "equal estimates, order": "A public random permutation decides between them in `order`.",
    "equal estimates, selection": "A public random order decided which of them are selected.",
    # tests of comparisons
    "score tests": "P-values and intervals are by score tests; standard errors describe the "
    "estimates.",
    "worth tests": "P-values are from two-sided score tests of worth = 0 (the mean).",
    "worth tests, Wald": "P-values are from two-sided Wald tests of worth = 0 (the mean).",
    "coefficient tests": "P-values are from two-sided score tests of coefficient = 0.",
    "tests of terms": "Joint tests of terms (Monte Carlo): {tests}.",
    "equal worths": "Test that all worths are equal: statistic = {statistic:.2f}, df = {df}, "
    "{pvalue}.",
    "equal worths, components": "Test that all worths are equal within each component: statistic = "
    "{statistic:.2f}, df = {df}, {pvalue}.",
    "equal worths, identified": "Test that the worths of the {count} identified items are equal: "
    "statistic = {statistic:.2f}, df = {df}, {pvalue}.",
    "equal worths, unknown": "No test of equal worths: the noisy comparisons do not identify any "
    "difference.",
    "separated": "The selected set is separated from the other items at the {level} level (gap to "
    "rank {rank}: {gap}; {pvalue}; H0: an omitted item is at least as good as a selected one).",
    "not separated": "The selected set is not separated from the other items at the {level} level "
    "(gap to rank {rank}: {gap}; {pvalue}; H0: an omitted item is at least as good as a selected "
    "one).",
    "separation": "H1: the selected items have the {k} highest values.",
    "wider ranks": "Rank sets, simultaneous for all pairs, may extend beyond rank {k}.",
    # assumptions of comparisons
    "matched": "Opponents are assumed to be matched at random given how often each item was "
    "compared: E n_ij = x_i x_j for items i and j.",
    "equal counts": "Every pair is assumed to have {count:.4g} comparisons; missing answers pull "
    "the worths towards zero.",
    "equal counts, win rates": "Every pair is assumed to have {count:.4g} comparisons; missing "
    "answers pull the win rates towards one half.",
    "matching unchecked": "Not checked: whether opponents were matched at random.",
    "matching allowed for": "Allowed for: comparisons of two items g ranks apart in the released "
    "ranking decrease by a factor of exp(-beta g), beta = {beta:.4f} (standard error {error:.4f}).",
    "matching checked": "Checked: whether items met opponents of their own half of the released "
    "ranking as often as others ({pvalue}). Not checked: any other choice of opponents, such as "
    "categories that cut across the ranking.",
    # privacy
    "private": "Privacy: {epsilon:g}-differential privacy for replacing one {unit}: no output "
    "becomes more than exp({epsilon:g}) = {factor} times as likely.",
    "private, delta": "Privacy: ({epsilon:g}, {delta:g})-differential privacy for replacing one "
    "{unit}: up to a probability of {delta:g}, no output becomes more than exp({epsilon:g}) = "
    "{factor} times as likely.",
    "private reports": "Privacy: each local report is {epsilon:g}-differentially private. Answers "
    "were randomised on the respondents' devices, so no curator needs to be trusted with them. The "
    "epsilons of several reports of one respondent add up.",
    "not private": "Not private (epsilon = inf). Do not publish if the data are confidential.",
    "protected answers": "Protected: the answers. Public: who answered which pairs.",
    "protected weighted answers": "Protected: the answers. Public: who answered which pairs, and "
    "the weights.",
    "protected choices": "Protected: the answers. Public: which sets were offered to whom, and "
    "which were answered.",
    "public groups of sets": "Protected: the answers. Public: the group and the offered sets of "
    "each respondent.",
    "protected silence": "Protected: the answers, and which tasks were answered. Public: which "
    "sets were offered to whom.",
    "protected pairs": "Protected: the answers and who compared which pairs.",
    "pairs asked": "Public: which pair was asked.",
    "protected sample": "Protected: the {kind}.",
    "protected groups": "Protected: the {kind} and group membership.",
    "public groups": "Protected: the {kind}. Public: group membership.",
    "protected both": "Protected: both {kind} of a respondent.",
    "covariates public": "Also public: the covariate values.",
    "contests": "Coefficients of items are for equal {names}, and those of {names} refer to the "
    "item in the first column of a comparison. The column 'without' has the coefficients of items "
    "in the model without {names}, from the same release.",
    "contests public": "Also public: the contest covariates of each comparison, which must not "
    "depend on the answer.",
    "level": "Epsilon applies to one {row}; a respondent with r {row}s has epsilon = r x "
    "{epsilon:g}.",
    "level, bound": "Epsilon applies to one {row}; a respondent with up to {rows} {row}s has "
    "epsilon up to {total:g}.",
    "level, delta": "The delta of such a respondent is also larger.",
    "declared link": "The guarantee assumes that the declared bounds of link {link!r}, kappa1 = "
    "{first:g} and kappa2 = {second:g}, hold everywhere.",
    "shares": "Epsilon includes {shares}.",
    "released effect": "The design effect was released with noise of standard error {error:.2g}; "
    "at most {most:.2f}, the largest possible value, is assumed.",
    "chosen noise": "Noise: {noise}. Differences between items vary as if each item's net wins had "
    "independent noise of standard deviation {deviation:.4g}; it would be {other:.4g} with "
    "{next}, the best of the others.",
    "only noise": "Noise: {noise}, the only distribution that applies. Differences between items "
    "vary as if each item's net wins had independent noise of standard deviation {deviation:.4g}.",
    "seeded": "Seeded noise: do not publish.",
    "idealised": "The privacy proof assumes exact real-valued arithmetic.",
    "idealised step": "The privacy proof assumes exact real-valued noise in one step; the "
    "discretised noise changes the p-value with probability below 2e-10.",
    # orders
    "Borda": "Borda scores are mean numbers of items ranked below, with pointwise {level} "
    "intervals.",
    "Borda, sample": "Borda scores are mean numbers of items ranked below, with pointwise {level} "
    "intervals for the sample.",
    "Borda, sets": "Borda scores are win rates in the offered sets times the number of other "
    "items, with pointwise {level} intervals. They are mean numbers of items ranked below if sets "
    "were assigned at random or show all pairs equally often.",
    "bounds": "Standard errors are upper bounds.",
    "rank sets": "Rank sets are by Borda score, have simultaneous {level} coverage and order "
    "{known} of {pairs} pairs.",
    "shared ranks": "A shared rank counts as half a vote for each order of the two items.",
    "left out below": "Unlisted items count as ranked below all listed items and tied with each "
    "other.",
    "left out half": "An unlisted item counts as half a vote for each order of a pair.",
    "over next": "P(before next): fraction of rankings that place the item above the next one.",
    "pairs unsaid": "Pairwise fractions were not released (use releases='pairs').",
    "better order": "An order with a lower Kemeny score, by at most {gap:.3g}, may exist for the "
    "released numbers.",
    "minorities": "P(before next) is below 1/2 in some rows: {rule}'s order need not follow every "
    "majority.",
    "minorities, shrunken": "P(before next) is below 1/2 in some rows: an order of shrunken "
    "fractions need not follow every majority.",
    "majorities": "The order follows the majorities of pairs, so Borda scores rise in some rows.",
    "Kemeny score": "Kemeny score: a ranking differs from the consensus on an estimated "
    "{score:.3f} of {pairs} pairs on average ({level} interval {low:.3f} to {high:.3f}).",
    "Kemeny share": "Epsilon includes {share:.0%} for the Kemeny score.",
    "errors of reports": "Standard errors combine sampling error and randomised response, by the "
    "variation of the reports.",
    "unbiased reports": "Estimates are unbiased and may lie outside the possible range of a "
    "fraction or a Borda score; intervals do not.",
    "unasked pairs": "{unasked} of {pairs} pairs were never asked, and nothing is stated about "
    "them.",
    "unasked pairs, scored": "{unasked} of {pairs} pairs were never asked. Nothing is stated about "
    "them, and Borda scores take them from the other pairs, with a standard error of 1/2.",
    "reports of rankings": "Local reports are of whole rankings; nothing is stated about single "
    "pairs.",
    "not unique": "The Kemeny order is not unique: another order is as good.",
    "not checked unique": "Whether another order is as good as this one was not checked.",
    # selections
    "by net wins": "Items are ranked by net wins (wins minus losses).",
    "by wins and losses": "Items are ranked by win rate, from wins and losses released together. "
    "This form was chosen by its predicted noise, which depends on public numbers only.",
    "by nets and counts": "Items are ranked by win rate, from net wins and item counts. The choice "
    "of this form depends on the options and on public numbers only.",
    "met unknown": "How often two items met is unknown; gaps allow for the largest possible "
    "number.",
    # tests
    "hypotheses": "H0: {null} H1: {alternative}",
    "same distribution": "H0: {null}. H1: at least one distribution differs.",
    "exchangeable": "H0: {null}. H1: they are not.",
    "compared": "Groups: {groups}.",
    "compared by column": "Groups by {column}: {groups}.",
    "same questionnaire": "Compared are the {alike:,} of {nobs:,} respondents whose offered sets "
    "another group had as well. The order of tasks and items must not matter, or not depend on the "
    "group.",
    "answers behind the null": "The {nobs:,} {unit}s are {own:,} of the sample and {behind:,} for "
    "the answers from which the null was estimated.",
    "rejected": "H0 is rejected at the {level} level ({basis}).",
    "not rejected": "H0 is not rejected at the {level} level ({basis}).",
    "bit rejected": "H0 is rejected by the released bit.",
    "bit not rejected": "H0 is not rejected by the released bit.",
    "decision alone": "This method releases the decision without a p-value; another draw may "
    "decide otherwise.",
    "bit": "The bit is not a test of a stated level: its error probabilities depend on the numbers "
    "of units and categories.",
    "bit differs": "The released bit indicates that the distributions differ.",
    "bit does not differ": "The released bit indicates no difference of the distributions.",
    "by lot": "One randomly selected row per respondent was used.",
    "by lot alone": "One randomly selected row per respondent was used; the p-value would differ "
    "with another selection.",
    "noise": "The p-value accounts for the privacy noise and would differ with another noise draw.",
    "noise and lot": "The p-value accounts for the privacy noise and would differ with another "
    "draw of the noise or of the rows.",
    "responses": "The p-value accounts for the randomised responses and would differ with another "
    "draw of them.",
    "responses and lot": "The p-value accounts for the randomised responses and would differ with "
    "another draw of them or of the rows.",
    "boundary": "A public random number, U = {boundary:.3f}, decides at the boundary, so the level "
    "is exact.",
    "no evidence": "Failure to reject is not evidence for H0; detectable_effect() gives the effect "
    "that this design detects.",
    "no evidence, private labels": "Failure to reject is not evidence for H0; "
    "pr.power.ClosenessPower gives the effect that a test of groups of assumed sizes detects.",
    "no evidence, sets": "Failure to reject is not evidence for H0; to find the effect that this "
    "design detects, simulate answers by worths of interest.",
    "no evidence, pairs": "Failure to reject is not evidence for H0; to find the effect that this "
    "design detects, simulate pairs of answers.",
    "completed": "Ties and missing ranks were completed by a secret draw from H0, given the "
    "reported parts. The level assumes that which parts a respondent leaves open depends on the "
    "ranking only through the reported parts (missing at random).",
    "completed groups": "Ties and missing ranks were completed once by a secret uniform draw. The "
    "level assumes that they arise in the same way in all groups.",
    "threshold": "H0 is rejected if the statistic reaches the threshold. A statistic that is the "
    "largest of several, each less a public quantile, may be negative.",
    "distance": "The total variation distance from H0 is estimated at {effect:.3f}; {level} "
    "interval {interval}.",
    "distance, released": "The total variation distance from H0 is estimated at {effect:.3f}, "
    "released with epsilon {epsilon:.4g}; {level} interval {interval}.",
    "effect": "Effect: {distance} of the samples.",
    "effect, released": "Effect: {distance} of the samples, released with epsilon {epsilon:.4g}.",
    "interval of the effect": "The {level} interval of the distance of the distributions is "
    "{interval}.",
    "exact interval": "The interval contains 0 if and only if the test does not reject. The "
    "corrected effect subtracts what sampling error adds to a distance.",
    "differences": "Differences of {measure} by group: {count} statements with simultaneous "
    "{level} coverage, whether or not H0 is rejected.",
    "differences, released": "Differences of {measure} by group, released with epsilon "
    "{epsilon:.4g}: {count} statements with simultaneous {level} coverage, whether or not H0 is "
    "rejected.",
    "shares by group": "Shares are counts divided by the size of the group, in percent. The "
    "{count} differences by group have simultaneous {level} intervals; one is called clear if its "
    "interval excludes 0 and H0 is rejected.",
    "shares by group, released": "Shares are noisy counts divided by the size of the group, in "
    "percent. The {count} differences by group have simultaneous {level} intervals; one is called "
    "clear if its interval excludes 0 and H0 is rejected.",
    "distance of shares": "Distance: total variation distance of the two groups. Its {level} "
    "interval contains 0 if and only if the test does not reject.",
    "null tables": "The p-value is that of an exact permutation test.",
    "null tables, released": "The p-value is the larger of two, from tables with noise that are "
    "drawn under H0 at two estimates of the pooled counts. Its level was measured in simulations.",
    "no clear difference": "No difference is clear.",
    "one more difference": "1 more is clear: see details().",
    "more differences": "{left} more are clear: see details().",
    "ruled out": "H0 gives probability 0 to {count:,} of the {nobs:,} observations, so it is "
    "rejected whatever the statistic.",
    "consistent": "The test is consistent against all alternatives: its power tends to 1 as the "
    "number of units grows.",
    "consistent, groups": "The test is consistent against all alternatives: its power tends to 1 "
    "as both groups grow.",
    # pooled results
    "pooled worths": "Intervals are pointwise {level} confidence intervals of worths that sum to "
    "zero and account for {errors}; rank sets have simultaneous {level} coverage.",
    "pooled scores": "Intervals are pointwise {level} confidence intervals of Borda scores and "
    "account for {errors}.",
    "mean worths": "Intervals are pointwise {level} confidence intervals of mean worths over all "
    "surveys that these represent. They account for the choice of surveys (Student's t, {freedom} "
    "df) and for {errors}; rank sets have simultaneous {level} coverage.",
    "mean scores": "Intervals are pointwise {level} confidence intervals of mean Borda scores over "
    "all surveys that these represent. They account for the choice of surveys (Student's t, "
    "{freedom} df) and for {errors}.",
    "pooled worth tests": "P-values are from two-sided tests of worth = 0 (the mean).",
    "score means": "P-values are from two-sided tests of Borda score = {mean:g} (the mean).",
    "Q of releases": "Q tests that the releases differ by their noise alone.",
    "Q of surveys": "Q tests that all surveys share the same parameters.",
    "Q of items": "Q refers to the item that differs most clearly; its p-value is adjusted.",
    "Q of pairs": "Q refers to the pair that differs most clearly; its p-value is adjusted.",
    "several surveys": "A respondent of several surveys is protected by the sum of their epsilons.",
    "units differ": "Epsilon protects one row in releases of rows, and all rows of a respondent in "
    "the others.",
    "pooled": "{name}: epsilon {epsilon:g}, {nobs:,} {unit}s, weight {weight:.2f}.",
    # ledgers
    "composition": "Basic composition: epsilons and deltas add up.",
    "concentrated": "If their sizes were fixed in advance, these fits together are private at "
    "epsilon {epsilon:.4g}, delta {delta:g} (zero-concentrated composition); the remaining budget "
    "is by basic composition.",
    "two accounts": "Fits without delta add their epsilons to at most {pure:g}. Fits with a delta "
    "add their rho (zero-concentrated privacy) to at most {rho:g}, worth epsilon {rest:g} at delta "
    "{delta:g}; their own deltas do not count.",
    "both accounts": "All fits together are private at epsilon {epsilon:g}, delta {delta:g}, "
    "however each was chosen. The amounts spent so far are not a guarantee by themselves.",
    # several results
    "errors in parentheses": "Standard errors in parentheses account for sampling error and "
    "privacy noise.",
}

_LARGER = "Use a larger epsilon or more comparisons."
_SMALLER_BOUND = (
    "Use a larger epsilon, more comparisons or a smaller max_rows (compare values with "
    "privrank.contribution_tradeoff)."
)
_RELEASED_COUNTS = "Leave pair_counts= out."

# Warnings, each with a remedy, if there is one.
WARNINGS = {
    "no item identified": "No differences are identified: the noisy comparison counts are within "
    "the noise. " + _LARGER,
    "no item identified, rows": "No differences are identified: the noisy comparison counts are "
    "within the noise. " + _SMALLER_BOUND,
    "rough counts": "No differences are identified: the noisy comparison counts of items are "
    "below {times:g} times the standard error of their noise, or one item is in nearly all "
    "comparisons. " + _LARGER,
    "rough counts, rows": "No differences are identified: the noisy comparison counts of items "
    "are below {times:g} times the standard error of their noise, or one item is in nearly all "
    "comparisons. " + _SMALLER_BOUND,
    "items not identified": "Not identified: {names}. Their noisy comparisons with the other "
    "items are within the noise. Worths, win rates and ranks are those among the other items.",
    "items too rough": "Not identified: {names}. Their noisy comparison counts are below "
    "{times:g} times the standard error of their noise, so pair_counts='proportional' does not "
    "hold for them. Worths, win rates and ranks are those among the other items.",
    "components": "The noisy comparisons fall into components, {names}: those between components "
    "are within the noise. Worths, win rates and ranks hold within each component, and "
    "differences between components are not identified.",
    "item covariates alone": "The noisy comparisons do not connect all items, so some worths and "
    "ranks depend on the item covariates alone.",
    "weakly identified": "Weakly identified: {names}. Their noisy comparison counts barely exceed "
    "the noise. P-values and intervals for comparisons with other items are widened accordingly, "
    "and hold over all releases rather than among those that identify these items.",
    "few respondents": "With fewer than {fewest} respondents tests reject too often, in up to "
    "0.08 of surveys at level 0.05, because the dependence of a respondent's answers is poorly "
    "known.",
    "repeated questions": "With fewer than {fewest} respondents who may answer a question "
    "repeatedly, tests reject too often if few respondents dissent, in up to 0.085 of surveys at "
    "level 0.05.",
    "infinite": "Without a penalty the {estimates} are not finite at this release (an item or "
    "group won or lost all its comparisons); penalty='auto' was used.",
    "beyond": "The noisy counts lie on or outside the boundary of possible data, so the most "
    "extreme worths and their standard errors depend on the ridge penalty. Use more comparisons, "
    "or a larger epsilon if it is small.",
    "unfinished": "The solver stopped before it reached its precision, so the estimates may be "
    "inaccurate. Use a larger penalty.",
    "uncertain": "Not all standard errors can be computed in double precision at this release, so "
    "some standard errors, intervals or p-values are missing. Use a larger penalty or a larger "
    "epsilon.",
    "large ridge": "The ridge penalty is {most} times the information in at least one direction. "
    "Shrinkage dominates there, and intervals with a finite end undercover. Use a larger epsilon, "
    "more comparisons or (in a regression) fewer covariates.",
    "rough groups": "The noise of the answers by group (standard error {error:.3g}) is large "
    "relative to the noisy number of answers of {groups}. Intervals for these levels undercover. "
    "Use a larger epsilon, or merge rare levels.",
    "matching rejected": "Items did not meet opponents of their own half of the ranking as often "
    "as pair_counts='proportional' implies ({pvalue}), and there are too few comparisons to allow "
    "for it. Worths and intervals may be wrong. " + _RELEASED_COUNTS,
    "matching by worth": "The choice of opponents depends on worth more than intervals can allow "
    "for: beta is {beta:.3f}, and its size is above {most:.3g}. Worths and intervals may be "
    "wrong. " + _RELEASED_COUNTS,
    "large delta": "Delta {delta:g} is not smaller than 1 / n = 1 / {nobs:,}, which would allow "
    "publishing one unit outright. Use a delta well below 1 / n.",
    "uncounted items": "The numbers of comparisons of {names} are within their noise. The win "
    "rates and ranks of these items are unknown.",
    "opponents uneven": "Items did not meet all opponents equally often, so a higher win rate may "
    "be due to weaker opponents, and equally good items can be separated. Order the items by the "
    "worths of PrivateBTL.from_release(result.release).",
    "unfinished sort": "The sort is not finished: it did not complete {unplaced} items, whose "
    "ranks depend on few comparisons.",
    "twice": "Respondents may count twice: {releases} have the same public facts. If they are of "
    "one survey, use survey='same'; add tallies of local reports instead (tally1 + tally2), which "
    "finds reports that are in both.",
}

# Limitations of results without an error in the result; they are notes, not warnings.
LIMITS = {
    "bound on the effect": "Design effect: at most {effect:.2f}; the release cannot show whether "
    "it is smaller. Sampling standard errors are upper bounds, so intervals may be conservative.",
    "no limit": "Some intervals are unbounded (inf): no worth on that side, however extreme, can "
    "be ruled out.",
    "nobody ties": "With this much noise it cannot be ruled out that ties have probability 0.",
    "everybody ties": "With this much noise it cannot be ruled out that ties have probability 1.",
    "net wins alone": "Items are ranked by net wins (wins minus losses), which used all of "
    "epsilon. No intervals, tests or rank sets are given, because it is unknown how often each "
    "item was compared. Release these numbers with target='win rate', or declare them with "
    "pair_counts=.",
}

# A clear difference, by the kind of the sample and the sign of the difference.
STATEMENTS = {
    ("choices", False): "{group} chooses {item} less often than {other}, by {size:.1f} percentage "
    "points ({low:.1f} to {high:.1f})",
    ("choices", True): "{group} chooses {item} more often than {other}, by {size:.1f} percentage "
    "points ({low:.1f} to {high:.1f})",
    ("rankings", False): "{group} ranks {item} higher than {other}, by {size:.2f} ranks "
    "({low:.2f} to {high:.2f})",
    ("rankings", True): "{group} ranks {item} lower than {other}, by {size:.2f} ranks "
    "({low:.2f} to {high:.2f})",
}

_SAID = CLAIMS | LIMITS


def said(key: str, holds: object = True, **values: Any) -> list[str]:
    """Return the sentence of this key with its values, if it applies."""
    return [_SAID[key].format(**values)] if holds else []


def warned(key: str, holds: object = True, **values: Any) -> list[str]:
    """Return the warning of this key with its values, if it applies."""
    return [f"Warning: {WARNINGS[key].format(**values)}"] if holds else []


def percent(alpha: float) -> str:
    """Return a level in the format of sentences."""
    return f"{100.0 * alpha:g}%"


def assumed(keys: Iterable[str], model: str = "Bradley-Terry") -> list[str]:
    """Return the sentence that lists assumptions, by their keys and the name of the model."""
    named = set(keys)
    if named & {"respondents", "rows"}:
        named.discard("devices")
    listed = [clause for key, clause in ASSUMPTIONS.items() if key in named]
    return said("assumptions", listed="; ".join(listed).format(model=model))
