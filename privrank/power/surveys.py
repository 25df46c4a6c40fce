"""Plans of paired-comparison surveys: simulation as counts, and release as in a fit."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from privrank.bradley_terry.losses import answer_probabilities
from privrank.bradley_terry.paircounts import groups_of
from privrank.distributions.links import LOGIT
from privrank.encode.encoded import Encoded, RespondentBlock, RespondentBlocks, sum_by
from privrank.hypotheses.nulls import public_generator
from privrank.hypotheses.simulation import mean_of
from privrank.local.estimates import release_wins
from privrank.local.kinds import Comparisons
from privrank.mechanisms.comparisons import release_comparisons
from privrank.plans.calibration import plan_comparisons
from privrank.plans.choice import Choice, Dependence
from privrank.power.base import DesignPoint, Mode, Power, item_names
from privrank.privacy.accounting import Unit
from privrank.release.plan import Plan
from privrank.release.release import Release
from privrank.release.survey import Design, DesignKind, PairCounts, Ties
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.checks import as_numbers, check_count, is_number

MAX_ANSWERS = 2**22
"""Largest number of answers in a simulated survey; in the local model, of ranks."""


@dataclass(frozen=True, kw_only=True)
class ComparisonPower(Power):
    """Plan of a paired-comparison survey; for the arguments see :class:`BTLPower`.

    Notes
    -----
    **Answers.** A respondent's utility of an item is its worth plus a Gumbel variable, and the
    respondent prefers the item with the larger utility. Preferences then have the Bradley-Terry
    probabilities. The Gumbel variables are the same for all answers of a respondent, which
    therefore agree with one order. So differences of worths vary more than with independent
    answers. With r of all p pairs of m equal items, their variance increases by a factor of
    1 + (m - 2) (r - 1) / (3 (p - 1)), which is (m + 1) / 3 if r = p. If ties have a parameter, an
    answer is a tie with the resulting probability, independently of the utilities; all other
    answers are decided as before.
    """

    items: int | Sequence[str] = field(kw_only=False)
    max_rows: int = 1
    unit: Unit = "respondent"
    design: DesignKind = "private"
    ties: Ties = False
    dependence: Dependence = "auto"
    mode: Mode = "central"

    def __post_init__(self) -> None:
        """Refuse an invalid plan."""
        super().__post_init__()
        check_count("max_rows", self.max_rows, high=self._distinct)
        usual = {
            "unit": "respondent",
            "design": "private",
            "method": "auto",
            "dependence": "auto",
        }
        other = [name for name, value in usual.items() if getattr(self, name, value) != value]
        if self._local and other:
            raise ValueError(
                f"{other[0]} is a setting of the central model. Omit it in the local model, where "
                f"each respondent sends one report."
            )
        if self._local and self.ties == "davidson":
            raise ValueError(
                "ties='davidson' is for the central model, because local reports are analysed as "
                "half wins. Use ties=True in the local model."
            )
        if self.max_rows > 1 and (self._local or self.unit == "row"):
            raise ValueError(
                "max_rows must be 1 in the local model and with unit='row'. Omit max_rows."
            )

    @property
    def _names(self) -> tuple[str, ...]:
        return item_names(self.items)

    @property
    def _distinct(self) -> int:
        """Number of pairs of items."""
        return math.comb(len(self._names), 2)

    @property
    def _tie_parameter(self) -> float | None:
        """The tie parameter of the answers; None without ties."""
        return None

    @property
    def _counted(self) -> str:
        return "comparisons" if self.unit == "row" else "respondents"

    @property
    def _most(self) -> int:
        return MAX_ANSWERS // (len(self._names) if self._local else self.max_rows)

    @abstractmethod
    def _choice(self, design: Design, epsilon: float, delta: float) -> Choice:
        """Return the choice of releases for a fit of such a survey."""

    def _facts(self, nobs: int, epsilon: float) -> Design:
        """Return the public facts of a survey in which all pairs are asked equally often."""
        kind = self.design
        design = Design(self._names, nobs, self.unit, self.max_rows, True, self.ties, kind, None)
        if kind == "private" and math.isfinite(epsilon):
            return design
        pairs = PairCounts.equal(len(self._names), nobs * self.max_rows / self._distinct)
        return replace(design, pairs=replace(pairs, origin="observed"))

    def _planned(self, at: DesignPoint) -> Plan | None:
        """Return the plan for a fit of such a survey; None in the local model."""
        if self._local:
            return None
        design = self._facts(at.nobs, at.epsilon)
        return plan_comparisons(
            design,
            self._choice(design, at.epsilon, at.delta),
            at.epsilon,
            at.delta,
            by="power",
        )

    @abstractmethod
    def _worths(self, effect: float) -> FloatArray:
        """Return the worths of the items at this effect."""

    @abstractmethod
    def _finds(self, release: Release, alpha: float) -> bool:
        """Return whether a fit detects the effect."""

    def _found(self, at: DesignPoint, plan: Plan | None, number: int) -> float:
        """Return 1 if a fit of a simulated survey detects the effect, and 0 if not."""
        release = self._released(at, plan, self._worths(at.effect), number)
        return float(release is not None and self._finds(release, at.alpha))

    def _measure(self, at: DesignPoint, replicates: int) -> tuple[float, float]:
        return mean_of(partial(self._found, at, self._planned(at)), replicates, self.n_jobs, "fits")

    def _released(
        self, at: DesignPoint, plan: Plan | None, worths: FloatArray, number: int
    ) -> Release | None:
        """Simulate a survey and release it; its random numbers depend on its number alone.

        Returns None if the comparisons do not connect all items, because a fit refuses them.
        """
        if plan is None:
            return self._reported(at, worths, public_generator("survey", number))
        answers = np.full(at.nobs, self.max_rows)
        facts = self._facts(at.nobs, at.epsilon)
        encoded = simulated_counts(facts, worths, answers, number, self._tie_parameter)
        return None if encoded is None else simulated_release(encoded, plan, number)

    def _reported(
        self, at: DesignPoint, worths: FloatArray, rng: np.random.Generator
    ) -> Release | None:
        """Return the release of a survey of local reports, each about one pair."""
        protocol = Comparisons(self._names, at.epsilon, ties=bool(self.ties))
        felt = worths + rng.gumbel(size=(at.nobs, len(worths)))
        ranks = (-felt).argsort(axis=1).argsort(axis=1) + 1
        tally = protocol.tally(protocol.simulate(ranks, rng))
        try:
            return release_wins(tally, "power")
        except ValueError:  # a few reports may not connect all items, or may contain only ties
            return None


def simulated_release(encoded: Encoded, plan: Plan, number: int) -> Release:
    """Release the counts of a simulated survey; the noise depends on its number alone."""
    return release_comparisons(
        encoded,
        plan,
        link=LOGIT,
        solver="newton",
        reader="PrivateBTL.from_release(error.release)",
        budget=None,
        # the same for any number of respondents, which makes the power smooth in this number
        rng=public_generator("noise of a survey", number),
    )


def simulated_counts(
    design: Design,
    worths: FloatArray,
    answers: IntArray,
    number: int,
    tie_parameter: float | None,
) -> Encoded | None:
    """Return the counts of a survey; its random numbers depend on its number alone.

    Returns None if its observed pairs do not connect all items.

    Parameters
    ----------
    design : Design
        Public facts of the survey.
    worths : ndarray, shape (m,)
        Worths of the items.
    answers : ndarray of int, shape (respondents,)
        Number of pairs that each respondent answers.
    number : int
        Number of the survey.
    tie_parameter : float or None
        Tie parameter of the answers; None without ties.
    """
    n = len(answers)
    rows = int(answers.max(initial=0))
    m = len(worths)
    first, second = np.triu_indices(m, 1)
    pairs = len(first)
    # each kind of random number has a generator: a smaller survey is a part of a larger one
    questions = _questions(design, n, rows, public_generator("survey, pairs", number))
    orders = public_generator("survey, orders", number)
    given = np.arange(rows) < answers[:, None]
    edge = questions[given]
    person = np.repeat(np.arange(n), answers)
    one = first[edge]
    other = second[edge]
    felt = worths + orders.gumbel(size=(n, m))
    answer = np.where(felt[person, one] > felt[person, other], 1, -1)
    if tie_parameter is not None:
        # ties are independent of the utilities; other answers have the worths' probabilities
        tied = answer_probabilities(worths[first] - worths[second], tie_parameter)[1]
        drawn = public_generator("survey, ties", number).random((n, rows))
        answer = np.where(drawn[given] < tied[edge], 0, answer)
    count = np.bincount(edge, minlength=pairs)
    net = sum_by(edge, answer, pairs)
    if design.pairs is not None and design.pairs.origin == "observed":
        met = count > 0
        observed = PairCounts(first[met], second[met], count[met], "observed")
        if groups_of(observed, m)[0] > 1:
            return None
        design = replace(design, pairs=observed if design.kind == "public" else None)
    parts = None
    if design.unit == "respondent":
        once = np.ones(len(edge), dtype=np.int64)
        pair = (first * m + second)[edge]
        parts = RespondentBlocks(
            (RespondentBlock(np.arange(n, dtype=np.uint64), person, pair, answer, once),)
        )
    return Encoded(
        design,
        (first, second, count, net),
        parts,
        _ties=(answer == 0).sum(keepdims=True),
    )


def _questions(design: Design, some: int, rows: int, rng: np.random.Generator) -> IntArray:
    """Return `rows` pairs for each of `some` respondents, distinct if a fit requires it."""
    pairs = math.comb(len(design.items), 2)
    if design.distinct_pairs:
        return different_pairs(some, rows, pairs, rng)
    return rng.integers(pairs, size=(some, rows))


def different_pairs(some: int, rows: int, pairs: int, rng: np.random.Generator) -> IntArray:
    """Return `rows` different pairs for each of `some` respondents, uniformly over sets.

    Floyd's algorithm draws one of all pairs but the last few, or the first of these if it is taken.
    """
    if rows == pairs:
        return np.tile(np.arange(pairs), (some, 1))
    # after each step the questions are a uniform set of the first `last` + 1 pairs, and no draw is
    # repeated; random numbers are used at a constant rate, which smooth curves need
    drawn = rng.random((some, rows))
    questions = np.empty((some, rows), dtype=np.int64)
    for place in range(rows):
        last = pairs - rows + place
        one = (drawn[:, place] * (last + 1)).astype(np.int64)
        taken = (questions[:, :place] == one[:, None]).any(axis=1)
        questions[:, place] = np.where(taken, last, one)
    return questions


def spread_worths(worths: object, some: int) -> FloatArray:
    """Return `some` assumed worths: as given, or equally spaced over a range."""
    values = as_numbers(worths)
    if is_number(worths):
        # a single worth is in the middle
        values = np.linspace(0.5, -0.5, some) * float(worths) * (some > 1)
    if values is None or values.shape != (some,) or not np.isfinite(values).all():
        raise ValueError(
            f"worths must be one number, the width of their range, or {some} numbers, one for each "
            f"item."
        )
    return values
