"""Power of Bradley-Terry fits and of top-k selections.

Surveys of paired comparisons are simulated as counts, and released as in a fit.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, cast

import numpy as np

from privrank import btl, topk
from privrank.bradley_terry.fit import answer_probabilities
from privrank.bradley_terry.paircounts import check_connected, groups_of
from privrank.bradley_terry.predictor import display
from privrank.bradley_terry.scoretests import pvalues
from privrank.distributions.links import LOGIT
from privrank.distributions.simulate import ranks_of_scores
from privrank.encode.choiceforms import planned_sets
from privrank.encode.choices import check_only_choices, questionnaires
from privrank.encode.encoded import (
    Encoded,
    EncodedChoices,
    RespondentBlock,
    RespondentBlocks,
    sum_by,
)
from privrank.hypotheses.effects import mean_of
from privrank.hypotheses.nulls import public_generator
from privrank.local.estimates import release_wins
from privrank.local.kinds import Comparisons
from privrank.mechanisms.comparisons import release_comparisons
from privrank.plans.choice import Choice, Dependence, plan_comparisons, probably_unidentified
from privrank.plans.comparisons import Method, Request, Target, plan_fit, plan_selection
from privrank.plans.declarations import check_ties
from privrank.power.base import DesignPoint, Mode, Power, item_names
from privrank.privacy.accounting import Unit
from privrank.privacy.offered import Answer, position_scores
from privrank.release.release import Release
from privrank.release.survey import Design, DesignKind, PairCounts, Plan, Ties, without_counts
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.checks import as_numbers, check_count, check_items, is_number, refuse_if


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
        of_sets = getattr(self, "offered", None) is not None
        check_count("max_rows", self.max_rows, high=None if of_sets else self._distinct)
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
        refuse_if(
            (
                self._local and self.ties == "davidson",
                "ties='davidson' is for the central model, because local reports are analysed as "
                "half wins. Use ties=True in the local model.",
            ),
            (
                self.max_rows > 1 and (self._local or self.unit == "row"),
                "max_rows must be 1 in the local model and with unit='row'. Omit max_rows.",
            ),
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
        # 2^22 answers of a simulated survey; in the local model, ranks
        return 2**22 // (len(self._names) if self._local else self.max_rows)

    @abstractmethod
    def _choice(self, design: Design, epsilon: float, delta: float) -> Choice:
        """Return the choice of releases for a fit of such a survey."""

    def _facts(self, nobs: int, epsilon: float) -> Design:
        """Return the public facts of a survey in which all pairs are asked equally often."""
        design = Design(
            self._names, nobs, self.unit, self.max_rows, True, self.ties, self.design, None
        )
        if self.design == "private" and math.isfinite(epsilon):
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
            # local reports, each about one pair
            rng = public_generator("survey", number)
            protocol = Comparisons(self._names, at.epsilon, ties=bool(self.ties))
            ranks = ranks_of_scores(worths + rng.gumbel(size=(at.nobs, len(worths))))
            tally = protocol.tally(protocol.simulate(ranks, rng))
            try:
                return release_wins(tally, "power")
            except ValueError:  # a few reports may not connect all items, or may contain only ties
                return None
        facts = self._facts(at.nobs, at.epsilon)
        encoded = (
            simulated_counts(
                facts, worths, np.full(at.nobs, self.max_rows), number, self._tie_parameter
            )
            if facts.offered is None
            else simulated_choices(facts, worths, number)
        )
        return None if encoded is None else simulated_release(encoded, plan, number)


def simulated_release(encoded: Encoded | EncodedChoices, plan: Plan, number: int) -> Release:
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
    rng = public_generator("survey, pairs", number)
    questions = (
        different_pairs(n, rows, pairs, rng)
        if design.distinct_pairs
        else rng.integers(pairs, size=(n, rows))
    )
    given = np.arange(rows) < answers[:, None]
    edge = questions[given]
    person = np.repeat(np.arange(n), answers)
    felt = worths + public_generator("survey, orders", number).gumbel(size=(n, m))
    answer = np.where(felt[person, first[edge]] > felt[person, second[edge]], 1, -1)
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
    parts = RespondentBlocks()
    if design.unit == "respondent":
        block = RespondentBlock(
            np.arange(n, dtype=np.uint64),
            person,
            (first * m + second)[edge],
            answer,
            np.ones(len(edge), dtype=np.int64),
            np.ones(n, dtype=np.int64),
        )
        parts = RespondentBlocks((block,))
    return Encoded(
        design,
        (first, second, count, net),
        parts,
        _ties=(answer == 0).sum(keepdims=True),
    )


def simulated_choices(design: Design, worths: FloatArray, number: int) -> EncodedChoices:
    """Return the choices of a survey; its random numbers depend on its number alone.

    Parameters
    ----------
    design : Design
        Public facts of the survey, with the offered sets.
    worths : ndarray, shape (m,)
        Worths of the items.
    number : int
        Number of the survey.
    """
    offered = design.offered
    assert offered is not None
    totals = []
    for version, units in enumerate(offered.units):
        # the respondents of a version have a generator: a smaller survey is a part of a larger one
        felt = worths + public_generator("survey, sets", number, version).gumbel(
            size=(units, len(worths))
        )
        total = np.zeros(felt.shape, dtype=np.int64)
        for task in offered.versions[version]:
            shown = np.array(offered.sets[task])
            order = shown[np.argsort(-felt[:, shown], axis=1)]
            total[np.arange(units)[:, None], order] += position_scores(offered.answer, len(shown))
        totals.append(total)
    return EncodedChoices(
        design, np.concatenate(totals), np.repeat(np.arange(len(totals)), offered.units)
    )


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
        questions[:, place] = np.where(
            (questions[:, :place] == one[:, None]).any(axis=1), last, one
        )
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


@dataclass(frozen=True, kw_only=True)
class BTLPower(ComparisonPower):
    """Power and sample size for PrivateBTL.

    Parameters
    ----------
    items : int or sequence of str
        The items, or their number.
    max_rows : int, default 1
        Number of comparisons per respondent, of different pairs drawn at random. With `offered`
        leave it out: it is then the largest number of tasks of a version.
    unit : {"respondent", "row"}
        The unit of `nobs` and of privacy; a row is one comparison.
    design, ties
        See :class:`privrank.PrivateBTL`. Under a private design pair counts are released. With
        ``ties="davidson"`` some answers are ties; in all other cases all simulated answers are
        decided.
    tie_rate : float, default 0.1
        Probability that two items of equal worth tie, with ``ties="davidson"``.
    method, dependence
        See :meth:`privrank.PrivateBTL.fit`.
    worths : float or sequence of float, optional
        Worths of the other items, relative to the mean of the two compared items: one for each, or
        one number, the width of a range of equally spaced worths. By default all are at the mean.
    mode : {"central", "local"}
        ``"local"``: local reports of :class:`privrank.local.Comparisons`, one per respondent.
    offered : data frame or mapping, optional
        The plan of a survey of choices from offered sets, in a form that
        :func:`privrank.as_choices` accepts, such as the result of
        :func:`privrank.power.balanced_plan`. Respondents are assigned to its versions in turn. It
        requires ``design="public"`` and the respondent as the unit.
    answer : {"best-worst", "best", "worst", "order"}
        How each task of `offered` is answered.
    replicates : int, default 200
        Number of simulated surveys.
    n_jobs : int, default 1
        Number of processes; -1 for the number of cores. It does not affect the result.

    See Also
    --------
    privrank.PrivateBTL : The model.
    privrank.power.TopKPower : Power and sample size for PrivateTopK.
    privrank.power.balanced_plan : Plans of questionnaires that offer sets of items.

    Notes
    -----
    Complete fits are simulated: answers are drawn, counted, released with the plan and noise of a
    fit, and analysed by the same code. The predictions therefore agree with fits up to the Monte
    Carlo error. A survey whose comparisons do not connect all items counts as no detection, because
    its fit is refused.

    The effect is a ``contrast``: the difference of the two worths on the logit scale. It is
    log(p / (1 - p)) if one item is preferred with probability p. `power` is the fraction of fits
    whose score test rejects a difference of 0, or equivalently whose interval excludes 0. The
    contrast detected with power 1/2 is therefore the half width of intervals.
    `docs/validation/power_models.md` compares the predictions with fits of simulated surveys.

    **Offered sets.** A respondent has the same utilities in all tasks. The best item of a set has
    the largest utility, the worst has the smallest, and an order is by utility. The contrast is the
    difference of the means of two utilities. First choices and orders then follow the model of
    their fits. The worths fitted to worst choices, or to best and worst, have another scale. Two
    equal items also have equal fitted worths, provided that they are shown with the same other
    items equally often.

    Examples
    --------
    >>> import privrank as pr
    >>> plan = pr.power.BTLPower(items=6, max_rows=15, design="public", replicates=100)
    >>> 0.6 < plan.power(nobs=200, epsilon=1.0, contrast=0.4) < 0.9
    True

    Best and worst of each of seven sets of four items:

    >>> sets = pr.power.balanced_plan(items=7, size=4, tasks=7)
    >>> plan = pr.power.BTLPower(items=7, offered=sets, design="public", replicates=50)
    >>> 0.6 < plan.power(nobs=200, epsilon=1.0, contrast=0.5) <= 1
    True
    """

    method: Method = "auto"
    worths: float | Sequence[float] | None = None
    tie_rate: float = 0.1
    offered: object = None
    answer: Answer = "best-worst"

    _named = "contrast"
    caption = "Two items separated by their worths"

    def __post_init__(self) -> None:
        """Refuse an invalid plan."""
        super().__post_init__()
        check_ties(self.ties, decided=False, facts=None)
        if not (is_number(self.tie_rate) and 0 < self.tie_rate < 1):
            raise ValueError(
                "tie_rate must be a probability between 0 and 1: the probability of a tie between "
                "two items of equal worth."
            )
        self._worths(0.0)
        if self.offered is not None:
            self._check_offered()

    def _check_offered(self) -> None:
        """Refuse settings of comparisons, and store the largest number of tasks."""
        check_only_choices(
            {
                "unit": self.unit == "respondent",
                "mode": self.mode == "central",
                "ties": self.ties is False,
                "tie_rate": self.tie_rate == 0.1,
            },
            self.design,
        )
        tasks = int(np.bincount(self._tasks[0]).max())
        if self.max_rows not in (1, tasks):
            raise ValueError(
                f"max_rows must be the largest number of tasks of a version, which is {tasks}. "
                f"Leave it out."
            )
        object.__setattr__(self, "max_rows", tasks)
        every = self._facts(int(self._tasks[0].max()) + 1, math.inf)
        check_connected(cast(PairCounts, every.pairs), every.items)

    @cached_property
    def _tasks(self) -> tuple[IntArray, IntArray]:
        """The version of each task of the plan, and the items of its set."""
        return planned_sets(
            self.offered,
            self._names if is_number(self.items) else check_items(self.items),
            self.answer,
        )

    def _facts(self, nobs: int, epsilon: float) -> Design:
        """Return the public facts; respondents are assigned to versions in turn."""
        design = super()._facts(nobs, epsilon)
        if self.offered is None:
            return design
        version, shown = (part[self._tasks[0] < nobs] for part in self._tasks)
        offered, number = questionnaires(version, np.zeros_like(version), shown, self.answer)
        offered = replace(
            offered, units=tuple(np.bincount(number[np.arange(nobs) % len(number)]).tolist())
        )
        return replace(design, distinct_pairs=False, offered=offered)

    @property
    def _tie_parameter(self) -> float | None:
        if self.ties != "davidson":
            return None
        # for two equal items the tie rate is nu / (2 + nu)
        return math.log(2.0 * self.tie_rate / (1.0 - self.tie_rate))

    def _worths(self, contrast: float) -> FloatArray:
        """Return the worths, beginning with the two compared items."""
        half = 0.5 * abs(contrast)
        return np.concatenate(
            (
                [half, -half],
                spread_worths(0.0 if self.worths is None else self.worths, len(self._names) - 2),
            )
        )

    @property
    def _assumption(self) -> str:
        if self.worths is None:
            return "all other items alike"
        return f"other worths over {self.worths:g}" if is_number(self.worths) else ""

    def _choice(self, design: Design, epsilon: float, delta: float) -> Choice:
        return plan_fit(Request(design, epsilon, delta, self.method, dependence=self.dependence))

    def _measure(self, at: DesignPoint, replicates: int) -> tuple[float, float]:
        plan = self._planned(at)
        if plan is not None and probably_unidentified(self._facts(at.nobs, at.epsilon), plan) > 0.5:
            return 0.0, 0.0  # such a fit is refused
        return super()._measure(at, replicates)

    def _finds(self, release: Release, alpha: float) -> bool:
        """Return whether a fit detects the difference of the first two items."""
        table = display(release.design)
        return bool(pvalues(btl.infer(release)._inference(), table[:1] - table[1:2])[0] <= alpha)

    def _effect_range(self, at: DesignPoint) -> tuple[float, float, float]:
        return 0.5, 1e-3, 6.0  # a preference probability of 0.9975


@dataclass(frozen=True, kw_only=True)
class TopKPower(ComparisonPower):
    """Power and sample size for PrivateTopK.

    Parameters
    ----------
    items : int or sequence of str
        The items, or their number.
    k : int
        Size of the set.
    max_rows, unit, design, ties, mode, replicates, n_jobs
        See :class:`privrank.power.BTLPower`.
    target, dependence
        See :meth:`privrank.PrivateTopK.fit`.
    worths : sequence of float, optional
        Worths of all items, the best first; the gap of the effect replaces their gap below the
        k-th. By default the top k have one worth and the rest another, so all pairs across the gap
        are equally hard to separate.
    aim : {"separated", "right"}
        The event whose probability is the power. ``"separated"``: the correct set is selected and
        its separation p-value is at most `alpha`. ``"right"``: the correct set is selected.

    See Also
    --------
    privrank.PrivateTopK : The selection.

    Notes
    -----
    The effect is a ``gap``: the difference of the worths of the k-th item and the next on the logit
    scale. `power` is the fraction of simulated fits in which the event of `aim` occurs. Answers,
    release, noise and inference are the same as in a fit. `docs/validation/power_models.md`
    compares the predictions with fits of simulated surveys.

    Examples
    --------
    >>> import privrank as pr
    >>> plan = pr.power.TopKPower(items=6, k=2, max_rows=15, design="public", replicates=50)
    >>> 0.4 < plan.power(nobs=300, epsilon=1.0, gap=0.35) < 0.8
    True
    """

    k: int
    target: Target = "auto"
    ties: bool = False
    worths: Sequence[float] | None = None
    aim: Literal["separated", "right"] = "separated"

    _named = "gap"
    caption = "Top {k} {aim}"

    def __post_init__(self) -> None:
        """Refuse an invalid plan."""
        super().__post_init__()
        check_count("k", self.k, high=len(self._names) - 1)
        self._worths(0.0)

    def _worths(self, gap: float) -> FloatArray:
        """Return the worths as stated, the best first, with this gap below the k-th."""
        m = len(self._names)
        worths = np.zeros(m) if self.worths is None else as_numbers(self.worths)
        usable = worths is not None and worths.shape == (m,) and np.isfinite(worths).all()
        if worths is None or not usable or (np.diff(worths) > 0).any():
            raise ValueError(
                f"worths must be {m} numbers in decreasing order, the best item first. Sort them."
            )
        # the top k move together, and so do the others: only the gap between them changes
        worths = worths - worths[self.k]
        worths[: self.k] += gap - worths[self.k - 1]
        return np.asarray(worths - worths.mean())

    @property
    def _assumption(self) -> str:
        return "items alike on either side" if self.worths is None else ""

    def _facts(self, nobs: int, epsilon: float) -> Design:
        return without_counts(super()._facts(nobs, epsilon))

    def _choice(self, design: Design, epsilon: float, delta: float) -> Choice:
        return plan_selection(
            Request(design, epsilon, delta, dependence=self.dependence), self.target
        )

    def _read(self, value: Any) -> float:
        gap = super()._read(value)
        if gap < 0:
            raise ValueError(
                f"gap must not be negative, got {gap:g}: the k-th item is the better one."
            )
        return gap

    def _finds(self, release: Release, alpha: float) -> bool:
        """Return whether a fit selects the best k, and separates them if `aim` requires it."""
        result = topk.infer_topk(release, k=self.k, target=self.target)
        return set(result.selected) == set(result.items[: self.k]) and (
            self.aim == "right" or result.pvalue <= alpha
        )

    def _effect_range(self, at: DesignPoint) -> tuple[float, float, float]:
        return 0.3, 1e-3, 4.0
