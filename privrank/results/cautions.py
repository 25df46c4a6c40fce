"""Warnings and limitations of results, with remedies, by their keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Caution:
    """A sentence on a limitation of a result, and a remedy, if there is one."""

    sentence: str
    remedy: str = ""

    @property
    def text(self) -> str:
        """The sentence and the remedy, in the printed order."""
        return f"{self.sentence} {self.remedy}".strip()


_LARGER = "Use a larger epsilon or more comparisons."
_SMALLER_BOUND = (
    "Use a larger epsilon, more comparisons or a smaller max_rows (compare values with "
    "privrank.contribution_tradeoff)."
)
_RELEASED_COUNTS = "Leave pair_counts= out."

WARNINGS = {
    "no item identified": Caution(
        "No differences are identified: the noisy comparison counts are within the noise.", _LARGER
    ),
    "no item identified, rows": Caution(
        "No differences are identified: the noisy comparison counts are within the noise.",
        _SMALLER_BOUND,
    ),
    "rough counts": Caution(
        "No differences are identified: the noisy comparison counts of items are below {times:g} "
        "times the standard error of their noise, or one item is in nearly all comparisons.",
        _LARGER,
    ),
    "rough counts, rows": Caution(
        "No differences are identified: the noisy comparison counts of items are below {times:g} "
        "times the standard error of their noise, or one item is in nearly all comparisons.",
        _SMALLER_BOUND,
    ),
    "items not identified": Caution(
        "Not identified: {names}. Their noisy comparisons with the other items are within the "
        "noise. Worths, win rates and ranks are those among the other items."
    ),
    "items too rough": Caution(
        "Not identified: {names}. Their noisy comparison counts are below {times:g} times the "
        "standard error of their noise, so pair_counts='proportional' does not hold for them. "
        "Worths, win rates and ranks are those among the other items."
    ),
    "components": Caution(
        "The noisy comparisons fall into components, {names}: those between components are within "
        "the noise. Worths, win rates and ranks hold within each component, and differences "
        "between components are not identified."
    ),
    "item covariates alone": Caution(
        "The noisy comparisons do not connect all items, so some worths and ranks depend on the "
        "item covariates alone."
    ),
    "weakly identified": Caution(
        "Weakly identified: {names}. Their noisy comparison counts barely exceed the noise. "
        "P-values and intervals for comparisons with other items are widened accordingly, and "
        "hold over all releases rather than among those that identify these items."
    ),
    "few respondents": Caution(
        "With fewer than {fewest} respondents tests reject too often, in up to 0.08 of surveys at "
        "level 0.05, because the dependence of a respondent's answers is poorly known."
    ),
    "infinite": Caution(
        "Without a penalty the {estimates} are not finite at this release (an item or group won or "
        "lost all its comparisons); penalty='auto' was used."
    ),
    "beyond": Caution(
        "The noisy counts lie on or outside the boundary of possible data, so the most extreme "
        "worths and their standard errors depend on the ridge penalty.",
        "Use more comparisons, or a larger epsilon if it is small.",
    ),
    "unfinished": Caution(
        "The solver stopped before it reached its precision, so the estimates may be inaccurate.",
        "Use a larger penalty.",
    ),
    "uncertain": Caution(
        "The standard errors cannot be computed in double precision at this release, so they, the "
        "intervals and the p-values are missing.",
        "Use a larger penalty or a larger epsilon.",
    ),
    "large ridge": Caution(
        "The ridge penalty is {most:.3g} times the information in at least one direction. "
        "Shrinkage dominates there and intervals undercover.",
        "Use a larger epsilon, fewer covariates or more comparisons.",
    ),
    "rough groups": Caution(
        "The noise of the answers by group (standard error {error:.3g}) is large relative to the "
        "noisy number of answers of {groups}. Intervals for these levels undercover.",
        "Use a larger epsilon, or merge rare levels.",
    ),
    "matching rejected": Caution(
        "Items did not meet opponents of their own half of the ranking as often as "
        "pair_counts='proportional' implies ({pvalue}), and there are too few comparisons to allow "
        "for it. Worths and intervals may be wrong.",
        _RELEASED_COUNTS,
    ),
    "matching by worth": Caution(
        "The choice of opponents depends on worth more than intervals can allow for: beta is "
        "{beta:.3f}, and its size is above {most:.3g}. Worths and intervals may be wrong.",
        _RELEASED_COUNTS,
    ),
    "large delta": Caution(
        "Delta {delta:g} is not smaller than 1 / nobs, which would allow publishing one unit "
        "outright.",
        "Use a delta well below 1 / nobs.",
    ),
    "uncounted items": Caution(
        "The numbers of comparisons of {names} are within their noise. The win rates and ranks of "
        "these items are unknown."
    ),
    "opponents uneven": Caution(
        "Items did not meet all opponents equally often, so a higher win rate may be due to weaker "
        "opponents, and equally good items can be separated.",
        "Order the items by the worths of PrivateBTL.from_release(result.release).",
    ),
    "unfinished sort": Caution(
        "The sort is not finished: it did not complete {unplaced} items, whose ranks depend on few "
        "comparisons."
    ),
    "twice": Caution(
        "Respondents may count twice: {releases} have the same public facts.",
        "If they are of one survey, use survey='same'; add tallies of local reports instead "
        "(tally1 + tally2), which finds reports that are in both.",
    ),
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
    "epsilon. Only the selected set is stated, because it is unknown how often each item was "
    "compared. Release these numbers with target='win rate', or declare them with pair_counts=.",
}


def warned(key: str, holds: object = True, **values: Any) -> list[str]:
    """Return the warning of this key with its values, if it applies."""
    return [f"Warning: {WARNINGS[key].text.format(**values)}"] if holds else []


def limited(key: str, holds: object = True, **values: Any) -> list[str]:
    """Return the limitation of this key with its values, if it applies."""
    return [LIMITS[key].format(**values)] if holds else []
