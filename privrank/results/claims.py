"""What summaries say under conditions: sentences by their keys, with named values in braces."""

from __future__ import annotations

from typing import Any

MATCHED = (
    "given how often each item was compared, opponents were matched at random: "
    "E n_ij = x_i x_j for items i and j"
)

CLAIMS = {
    "bound on the effect": "Design effect: at most {effect:.2f}, the release cannot tell whether "
    "it is less. Sampling errors are upper bounds, so that intervals may cover more than stated.",
    "matched": f"This holds if, {MATCHED}.",
    "equal counts": "This holds if the pair counts are as assumed, {count:.4g} for every pair; "
    "answers that are missing pull the {estimate}.",
    "estimator": "Estimator: {estimator}.",
    "perturbed estimator": "Estimator: {estimator}, perturbed.",
    "declared link": "The guarantee takes the declared bounds of link {link!r}, kappa1 = "
    "{first:g} and kappa2 = {second:g}, to hold everywhere.",
    "pairs asked": "Who was asked which pair is not protected.",
    "shares": "Epsilon includes {shares}.",
    "released effect": "The design effect was released with noise of standard error {error:.2g}; "
    "it is taken to be at most {most:.2f}, the most that any answers bring about.",
    "rows alike": "{rows} rows of one respondent count as {independent:.1f} independent ones: see "
    "pr.contribution_tradeoff().",
    "rows left out": "Of every respondent a secret random draw kept at most {kept}; how many it "
    "left out is not said.",
    "large delta": "Warning: delta {delta:g} is no smaller than 1 / nobs, which would allow "
    "publishing one unit outright: use a delta well below it.",
    "level": "Epsilon {epsilon:g} is per {row}, {whole} for a respondent with {several}{delta}.",
    "seeded": "Seeded noise: for studies, examples and tests, not for publication.",
    "idealised": "The privacy of this mechanism assumes idealised arithmetic.",
    # orders
    "shared ranks": "A shared rank counts as half a vote for each order of the two items.",
    "left out below": "An item left out counts as below all listed ones, and tied with others.",
    "left out half": "An item left out counts as half a vote for each order of a pair.",
    "over next": "Over next: fraction of the rankings that place an item before the next one.",
    "pairs unsaid": "Pairs: nothing is said of them; releases='pairs' would release them.",
    "better order": "A better order of the released numbers may exist, by at most {gap:.3g}.",
    "Kemeny share": "Epsilon includes {share:.0%} for the Kemeny score.",
    "errors of reports": "Standard errors hold sampling and random responses together, by how "
    "reports vary; no noise was added to them.",
    "unbiased reports": "Estimates are unbiased, so that they may lie outside of what a fraction "
    "or a Borda score can be; intervals do not.",
    "unasked pairs": "{unasked} of {pairs} pairs were asked of nobody: nothing is said of them.",
    "unasked pairs, scored": "{unasked} of {pairs} pairs were asked of nobody: nothing is said of "
    "them, and Borda scores take them from the other pairs, with a standard error of 1/2.",
    "reports of rankings": "Reports are of whole rankings, and say nothing about single pairs.",
    "not unique": "The Kemeny order is not unique: another one is as good.",
    "not checked unique": "Whether another order is as good as this one was not checked.",
    "unfinished sort": "Warning: the sort is not finished. It has not come to the end with "
    "{unplaced} items, whose places rest on few comparisons.",
    # fits of comparisons
    "no item identified": "Warning: nothing is identified, as the released comparisons {why}: use "
    "a larger epsilon or more comparisons.",
    "no item identified, rows": "Warning: nothing is identified, as the released comparisons "
    "{why}: use a larger epsilon or more comparisons, or a smaller max_rows= "
    "(privrank.contribution_tradeoff compares several).",
    "items not identified": "Warning: not identified: {names}, whose released comparisons {why}. "
    "Worths, win rates and ranks are those among the others.",
    "components": "Warning: the released comparisons fall into components, {names}, as those "
    "between them do not exceed their noise: worths, win rates and ranks hold in each, and how "
    "items of two of them compare is not identified.",
    "tie parameter": "Ties have a parameter (Davidson): win, tie and loss are as e^(d/2) : nu : "
    "e^(-d/2) for the difference d of worths, which is that of answers that decide. Two items of "
    "equal worth tie with probability {probability:.3f}.",
    "nobody ties": "With this much noise it cannot be ruled out that nobody ties.",
    "everybody ties": "With this much noise it cannot be ruled out that everybody ties.",
    "no limit": "Some intervals have no limit on one side or both (inf): no worth there, however "
    "extreme, can be ruled out.",
    "zero of covariates": "Coefficients without a prefix are worths where {names} would be 0.",
    "covariates public": "Who has which covariates is taken as public, as is who compared which "
    "pairs.",
    "order public": "Which item was named first is taken as public, so no answer may have decided "
    "it.",
    "costly counts": "Released pair counts carry more than half of the variance of most "
    f"differences: pair_counts='proportional' does without them if, {MATCHED}.",
    "matching unchecked": "Not checked: whether opponents were matched at random.",
    "matching allowed for": "Allowed for: comparisons of two items g places apart in the released "
    "ranking fall by a factor of exp(-beta g), beta = {beta:.4f} (standard error {error:.4f}).",
    "matching checked": "Checked: whether items met those of their own half of the released "
    "ranking as often as others ({pvalue}). Not checked: any other choice of opponents, such as "
    "categories that cut across the ranking.",
    "matching rejected": "Warning: items did not meet those of their own half of the ranking as "
    "often as pair_counts='proportional' says ({pvalue}), and there are too few comparisons to "
    "allow for it. Worths and intervals may be wrong: leave pair_counts= out.",
    "matching by worth": "Warning: who met whom depends on worth more than intervals can allow "
    "for: beta is {beta:.3f}, and its size is above {most:.3g}. Worths and intervals may be "
    "wrong: leave pair_counts= out.",
    "large ridge": "Warning: the ridge is {most:.3g} times the information in at least one "
    "direction, so shrinkage dominates there and intervals are known to cover less than stated: "
    "use a larger epsilon, fewer covariates or more comparisons.",
    "unfinished": "Warning: the solver stopped before it had reached the minimum to the precision "
    "it works to, so the estimates may be off: use a larger penalty.",
    "uncertain": "Warning: the standard errors cannot be computed in double precision at this "
    "release, so that they, the intervals and the p-values are missing: use a larger penalty or a "
    "larger epsilon.",
    "beyond": "Warning: noise, or unanimous reports, have carried the counts as far as any "
    "answers can, or beyond, so the most extreme worths and their errors rest on the penalty: use "
    "more comparisons, and a larger epsilon if it is small.",
    "item covariates alone": "Warning: the released comparisons do not connect all items, so that "
    "some worths and ranks rest on the item covariates alone.",
    "few respondents": "Warning: with fewer than {fewest} respondents tests reject too often, in "
    "up to 0.08 of surveys at level 0.05. Too few respondents show how the answers of one depend "
    "on each other.",
    "infinite": "Warning: without a penalty the {what} are not finite at this release (an item or "
    "group won or lost all its comparisons); penalty='auto' was used.",
    "hardly identified": "Warning: hardly identified: {names}, whose released comparisons barely "
    "exceed their noise. P-values and intervals beside other items are widened for that, and hold "
    "over all releases rather than among those that identify them.",
    "rough groups": "Warning: the noise of the answers of each group (standard error {error:.3g}) "
    "is large beside the released answers of {groups}, so that statements about these levels are "
    "known to cover less than stated: use a larger epsilon, or merge rare levels.",
    # selections
    "by net wins": "Ranked by net wins: wins less losses.",
    "by wins and losses": "Ranked by win rate, from wins and losses in one draw, the best form by "
    "public numbers.",
    "by nets and counts": "Ranked by win rate, from net wins and item counts, the best form by "
    "public numbers.",
    "met unknown": "How often two items met is not known: gaps allow for as often as they can "
    "have.",
    "uncounted items": "Warning: the numbers of comparisons of {names} do not exceed their noise. "
    "Their win rates and ranks may be any.",
    "opponents uneven": "Warning: items did not meet all opponents equally often, so a higher win "
    "rate may be one against weaker opponents, and equally good items can be separated: order "
    "them by the worths of PrivateBTL.from_release(result.release).",
    "net wins alone": "Ranked by net wins, wins less losses, which got all of epsilon. Nothing "
    "but the set is stated, as it is not known how often each item was compared: target='win "
    "rate' releases that, or pair_counts= declares it.",
    # tests
    "completed": "Ties and missing ranks were completed by a secret draw from H0, given what was "
    "reported; the level holds if what a respondent leaves open depends on their ranking through "
    "what they report only.",
    "completed groups": "Ties and missing ranks were completed once by a secret uniform draw; the "
    "level holds if they come about alike in all groups.",
    "idealised step": "Privacy assumes idealised arithmetic in one step of the p-value.",
    "idealised step, details": "The privacy of this mechanism assumes idealised arithmetic in one "
    "step: the noise is exact but for a rounding that alters the p-value with a probability below "
    "2e-10.",
    "threshold": "H0 is rejected where the statistic reaches the threshold. One that is the "
    "largest of several, each less a public quantile of it, may be negative.",
    "effect": "The effect is the {effect}.",
    "effect with interval": "The effect is the {effect}; with {level} confidence the distance of "
    "the distributions is {within}.",
    "exact interval": "The interval contains 0 if and only if the test does not reject; the "
    "corrected effect leaves out what sampling adds to a distance.",
    "ruled out": "H0 gives probability 0 to {count} of the {nobs} observations: it is rejected "
    "whatever the statistic.",
    "twice": "Warning: respondents may count twice: {releases} have the same public facts. If "
    "they are of one survey, use survey='same'; tallies of reports are better added, tally1 + "
    "tally2, which finds reports that are in both.",
    # pooled results
    "several surveys": "Who answered in several surveys is protected by the sum of their epsilons.",
    "units differ": "Epsilon protects one row in releases of rows, else a respondent's rows.",
}


def said(key: str, holds: object = True, **values: Any) -> list[str]:
    """Return the sentence of this key, with its values, if it holds; else none."""
    return [CLAIMS[key].format(**values)] if holds else []
