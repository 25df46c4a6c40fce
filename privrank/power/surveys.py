"""A survey of paired comparisons before it runs: its public facts, and what a fit would release."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Literal

from privrank.local.protocols import LARGEST_EPSILON, Asking
from privrank.local.protocols_orders import Comparisons, RandomPairs, SubRanking
from privrank.plans.calibration import plan_comparisons
from privrank.plans.choice import Choice
from privrank.power import base
from privrank.power.base import Point, Range
from privrank.power.stated import names_of
from privrank.privacy.budget import Unit
from privrank.release.names import GAIN, WINS
from privrank.release.plan import QUIET, PartPlan, Plan
from privrank.release.survey import Design, DesignKind, PairCounts
from privrank.util.checks import (
    SMALLEST_EPSILON,
    check_choice,
    check_count,
    check_flag,
    is_number,
    quoted,
)

if TYPE_CHECKING:
    from privrank.power.comparisons import BTLPower
    from privrank.power.selection import TopKPower

__all__ = [
    "Answers",
    "Mode",
    "PairsKnown",
    "Survey",
    "check_protocol",
    "item_names",
    "least_and_most",
    "survey_of",
]

Mode = Literal["central", "local"]
PairsKnown = Literal["release", "equal"]
Answers = Literal["usual", "rankings", "independent"]


@dataclass(frozen=True, slots=True)
class Survey:
    """The public facts of a survey of paired comparisons, but for the number of units.

    Parameters
    ----------
    items : tuple of str
        The items.
    rows : int
        Comparisons that each unit makes, of different pairs.
    unit : {"respondent", "row"}
        What one unit is.
    kind : {"private", "public"}
        Whether who compared which pairs is public.
    pair_counts : {"release", "equal"}
        What is known of the comparisons per pair under a private design.
    ties : bool
        Whether ties are allowed.
    effect : float
        Design effect of a respondent's answers.
    protocol : Asking or None
        Of reports in the local model.
    """

    items: tuple[str, ...]
    rows: int
    unit: Unit
    kind: DesignKind
    pair_counts: PairsKnown
    ties: bool
    effect: float
    protocol: Asking | None

    @property
    def units(self) -> str:
        """What is counted."""
        return "comparisons" if self.unit == "row" else "respondents"

    @property
    def assumes(self) -> str:
        """What an answer says of the dependence of a respondent's answers, where there may be."""
        return f"design effect {self.effect:.3g}" if self.rows > 1 else ""

    def design(self, nobs: int, epsilon: float) -> Design:
        """Return the public facts of so many units, pairs asked for equally often."""
        items, ties, public = self.items, self.ties, self.kind == "public"
        design = Design(items, nobs, self.unit, self.rows, True, ties, self.kind, None)
        pairs = PairCounts.equal(len(items), nobs * self.rows / design.sensitivity.pairs)
        if public or math.isinf(epsilon):
            return replace(design, pairs=replace(pairs, origin="observed"))
        return replace(design, pairs=pairs) if self.pair_counts == "equal" else design

    def planned(
        self, at: Point, choose: Callable[[Design, float, float], Choice]
    ) -> tuple[Design, Plan]:
        """Return the public facts of a survey at a point, and what a fit of it releases."""
        if self.protocol is not None:
            return self._reports(at)
        design = self.design(at.nobs, at.epsilon)
        choice = choose(design, at.epsilon, at.delta)
        return design, plan_comparisons(design, choice, at.epsilon, at.delta, by="power")

    def _reports(self, at: Point) -> tuple[Design, Plan]:
        """Return the same of reports of the local model."""
        if at.delta > 0:
            raise ValueError(
                "delta must be 0 in the local model, whose reports are pure: leave it out."
            )
        assert self.protocol is not None
        protocol = replace(self.protocol, epsilon=at.epsilon)
        pairs = PairCounts.equal(len(self.items), at.nobs / len(protocol.all_pairs))
        pairs = replace(pairs, origin="observed")
        ties = protocol.options > 2
        design = Design(self.items, at.nobs, "respondent", 1, True, ties, "public", pairs)
        parts, settings = {WINS: PartPlan(QUIET, 0, 0.0)}, {GAIN: protocol.gain}
        return design, Plan("power", protocol.kind, "", at.epsilon, 0.0, parts, settings)


def survey_of(asked: BTLPower | TopKPower) -> Survey:
    """Return the survey that is asked about, or refuse."""
    for name, value, literal in (
        ("unit", asked.unit, Unit),
        ("design", asked.design, DesignKind),
        ("pair_counts", asked.pair_counts, PairsKnown),
        ("mode", asked.mode, Mode),
    ):
        check_choice(name, value, literal)
    items = item_names(asked.items)
    rows = check_count("max_rows", asked.max_rows, high=len(items) * (len(items) - 1) // 2)
    protocol = asked.protocol
    if protocol is None and asked.mode == "local":
        protocol = Comparisons(items, 1.0, ties=asked.ties)
    if protocol is not None:
        check_protocol(protocol, asked.items, asked.ties)
        _check_local(asked)
    if asked.unit == "row" and asked.dependence not in ("auto", "none"):
        raise ValueError(
            "dependence is that of the answers of a respondent: leave it out where a row is the "
            "unit."
        )
    if rows > 1 and (protocol is not None or asked.unit == "row"):
        raise ValueError(
            "max_rows must be 1 in the local model and where a row is the unit: leave it out."
        )
    ties = check_flag("ties", asked.ties)
    unit, kind, known = asked.unit, asked.design, asked.pair_counts
    if kind == "public" and known == "equal":
        raise ValueError(
            "pair_counts must be left out when design='public': the observed counts are public "
            "then."
        )
    effect = _design_effect(asked.answers, len(items), rows)
    return Survey(items, rows, unit, kind, known, ties, effect, protocol)


def _design_effect(answers: object, items: int, rows: int) -> float:
    """Return how many times as much answers vary as independent ones, or refuse.

    Of complete rankings, all orders alike, two comparisons with a common item, each of +-1 with the
    common item first, have the covariance 1/3. A difference of two nets meets 2 m (m - 2) / 3 of
    it beside the variance 2 m, if all p pairs are asked; of r pairs drawn, both of two are asked
    with probability (r - 1) / (p - 1) given the one. So the design effect is
    1 + (m - 2) (r - 1) / (3 (p - 1)), which is (m + 1) / 3 where all pairs are asked. The usual one
    is half way from independent answers to that.
    """
    if isinstance(answers, str):
        check_choice("answers", answers, Answers)
        pairs = items * (items - 1) // 2
        more = (items - 2) * (rows - 1) / (3.0 * max(pairs - 1, 1))
        return 1.0 + {"independent": 0.0, "usual": 0.5, "rankings": 1.0}[answers] * more
    if not is_number(answers) or not 1 <= answers <= rows:
        raise ValueError(
            f"answers must be 'usual', 'rankings', 'independent', or a design effect between 1, "
            f"that of independent answers, and max_rows, that of a respondent's answers which all "
            f"say the same, here {rows}: got {quoted(answers)}."
        )
    return float(answers)


def item_names(items: object) -> tuple[str, ...]:
    """Return the names of at least two items, or of so many."""
    names = names_of(items)
    check_count("items", len(names), low=2)
    return names


def _check_local(asked: BTLPower | TopKPower) -> None:
    """Refuse settings of the central model where reports are planned."""
    usual = {"unit": "respondent", "design": "private", "pair_counts": "release"}
    usual |= {"method": "auto", "dependence": "auto"}
    if other := [name for name, value in usual.items() if getattr(asked, name, value) != value]:
        raise ValueError(
            f"{other[0]} is a setting of the central model: leave it out in the local one, where "
            f"each respondent gives one report."
        )


def check_protocol(protocol: object, items: object, ties: bool) -> None:
    """Refuse what is no protocol of single pairs of these items, or so many, and of ties if any."""
    kinds = Comparisons | RandomPairs | SubRanking
    if not isinstance(protocol, kinds) or protocol.width != 2 or protocol.digits != 1:
        raise TypeError(
            "protocol must ask each respondent for one of all pairs, as privrank.local.Comparisons "
            "does: leave it out and use mode='local'."
        )
    names, theirs = item_names(items), set(protocol.items)
    named = not isinstance(items, Integral)
    if len(theirs) != len(names) or (named and set(names) != theirs):
        raise ValueError(
            f"protocol must be of the {len(names)} items of the plan: make it with the same items."
        )
    if ties and not protocol.keeps_ties:
        raise ValueError(
            "protocol must allow ties where ties=True: use Comparisons(..., ties=True), or leave "
            "ties out."
        )


def least_and_most(name: str, local: bool) -> Range:
    """Return where a number of units, or an epsilon, is looked for."""
    if name == "nobs":
        return Range(200.0, 2.0, 1e8)
    if local:
        return Range(1.0, SMALLEST_EPSILON, LARGEST_EPSILON)
    return Range(1.0, base.SMALLEST, base.LARGEST)
