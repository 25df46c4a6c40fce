"""Private tests that two or more samples have the same distribution (closeness)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from privrank.encode.choices import check_only_choices, formula_compared, is_choices
from privrank.encode.encoded import EncodedChoices, EncodedGroups
from privrank.encode.groups import encode_count_tables, encode_samples, groups_of_formula
from privrank.hypotheses.effects import RejectionProbability
from privrank.hypotheses.noisytables import NoisyTable
from privrank.hypotheses.nulls import Order
from privrank.mechanisms.closeness import (
    permuted,
    public_quantiles,
    release_comparison,
    round_up,
    simulated_groups,
    smoothed_pvalue,
)
from privrank.plans.declarations import Gaps, Ties
from privrank.plans.samples import (
    FEWEST,
    MAX_TABLE,
    MOST,
    RELEASED_STEPS,
    Comparison,
    check_scale,
    comparison_of,
    comparison_of_choices,
    method_of,
    plan_comparison,
)
from privrank.privacy.knorm import ZeroSumLaplace
from privrank.published import asz18
from privrank.release.compared import compared_groups
from privrank.release.release import Release, check_release, fit_error_guard
from privrank.release.survey import Design, Plan, Sample, kind_of
from privrank.results.closeness import ClosenessResult
from privrank.results.ledger import Budget
from privrank.results.ranktest import tested_survey
from privrank.util import checks
from privrank.util.arrays import FloatArray, IntArray
from privrank.util.solvers import find_root

ClosenessMethod = Literal[
    "auto", "table", "permutation", "tv", "mmd", "kendall", "pairs", "chi-square", "sigmoid"
]
Labels = Literal["public", "private"]

_CHOICES = ("auto", "table", "permutation", "tv", "pairs", "chi-square", "sigmoid")
_RANKINGS = ("auto", "mmd", "kendall", "pairs")
_PRIVATE = ("auto", "tv", "mmd", "kendall")


class ClosenessTest:
    """Test that groups have the same distribution of rankings (or choices).

    Do women and men have the same preferences? Have the rankings changed since last year?

    Parameters
    ----------
    sample1, sample2 : data frames, arrays of ranks, or Series
        Two samples of rankings, see :class:`privrank.UniformityTest`, or of choices. For more
        than two groups, or one frame with a column of groups, see `from_formula`.
    items : sequence of str, optional
        The item columns. For Series, all categories, which are required; see
        :class:`privrank.UniformityTest`.
    categories : sequence of str, optional
        The same as `items` for Series; the name agrees with `from_formula` and `from_counts`.
    respondent : str, optional
        Column or pandas index level of a frame that identifies the respondent of each row; with
        ``paired=True`` also the index level of a Series. The unit of privacy is then a respondent
        with all their rows. The test uses one of these rows, drawn at random and in secret; of
        choices from offered sets it uses all. A respondent belongs to one group.
    max_rows : int, default 1
        Public bound on the rows of a respondent.
    ties, missing : str, default "refuse"
        See :class:`privrank.UniformityTest`; here orders and ranks are drawn uniformly. The level
        is exact if rankings and the mechanism that makes them tied or incomplete have the same
        distribution in all groups, and only then.
    labels : {"public", "private"}, default "public"
        Whether group membership, and with it the sizes of the groups, is public. With private
        labels only the p-value is released.
    paired : bool, default False
        Whether the two samples are from the same respondents, each with one answer per sample.
        Needs `respondent`, by which rows are matched.

    Raises
    ------
    ValueError, TypeError
        If a sample or an argument violates a rule.

    See Also
    --------
    privrank.IdentityTest : Test that a sample follows a specified distribution.
    privrank.power.ClosenessPower : Power and sample size.

    Notes
    -----
    **Assumptions.** Independent respondents (if families or classes answer alike, name the family
    or class in `respondent`); ignorable nonresponse (whether a question is answered does not depend
    on the answer). For the consequences of violations, see :doc:`assumptions </assumptions>`.

    **Privacy.** Neighbours replace one unit within its group (with ``labels="private"``, in any
    group). A permutation test releases one number: the p-value, computed from a noisy statistic and
    smoothed over the noise. The statistic, its rank among the permuted statistics and their
    quantiles are not released. Proofs: :mod:`privrank.mechanisms.closeness` and
    :mod:`privrank.mechanisms.permutation`; for an effect,
    :func:`privrank.plans.samples.plan_comparison`. ``method="table"`` releases the counts by group
    and category with noise (:func:`privrank.plans.samples.plan_table`).

    **Table of counts.** With few categories, large groups or one small group (see `fit`), choices
    are compared by one noisy table of counts (:mod:`privrank.hypotheses.noisytables`). The p-value,
    the shares, the distance of two groups and all differences are computed from it.

    **Details.** With `details_epsilon` the totals by group are released as well, with a second part
    of the budget (:mod:`privrank.mechanisms.closeness`). The intervals for all items and
    comparisons are simultaneous, whether or not the test rejects, so all differences whose
    intervals exclude 0 may be reported.

    **Choices from offered sets.** Respondents with the same offered sets are compared: their groups
    are permuted. The statistic is the length of the differences between groups in the sums of
    position scores (:mod:`privrank.mechanisms.choices`).

    **Paired samples.** With ``paired=True`` the null hypothesis is that the two answers of a
    respondent are exchangeable. Permutations swap the two answers, and the unit is a respondent
    with both (:mod:`privrank.mechanisms.permutation`).

    **Validity.** If the groups have the same distribution, the p-value of a permutation test is
    uniform up to rounding to the next multiple of 1e-4. This holds exactly for all sizes and
    numbers of permutations, with ties. The level of the test by a noisy table was measured in
    simulations; without noise it is an exact permutation test.

    **Many rankings.** For more than 5,000 rankings of 7 to 100 items the kernel is projected on
    public rankings (:mod:`privrank.mechanisms.permutation`). Validity and privacy do not change,
    and time grows in proportion to the number of rankings. The power against differences that do
    not appear in any pair of items is limited by these public rankings.

    References
    ----------
    Acharya, Sun and Zhang (2018), whose one-bit test is available as ``method="sigmoid"``; Kim and
    Schrab (2023); Gretton et al. (2012).

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> rng = np.random.default_rng(1)
    >>> women, men = pr.Mallows(5, 0.6).rvs(150, rng), pr.Mallows(5, 0.9).rvs(120, rng)
    >>> test = pr.ClosenessTest(women, men)
    >>> test.fit(epsilon=1.0, rng=np.random.default_rng(2)).reject
    True
    """

    __slots__ = ("_encoded",)

    @checks.without_weights
    def __init__(
        self,
        sample1: object,
        sample2: object,
        *,
        items: object = None,
        categories: object = None,
        respondent: str | None = None,
        max_rows: int = 1,
        ties: Ties = "refuse",
        missing: Gaps = "refuse",
        labels: Labels = "public",
        paired: bool = False,
    ) -> None:
        self._encoded: EncodedGroups | EncodedChoices = (
            sample1
            if isinstance(sample1, EncodedGroups | EncodedChoices)
            else encode_samples(
                (sample1, sample2),
                ("sample 1", "sample 2"),
                items=items,
                categories=categories,
                respondent=respondent,
                max_rows=max_rows,
                secret=checks.check_choice("labels", labels, Labels) == "private",
                paired=paired,
                ties=ties,
                missing=missing,
            )
        )

    @classmethod
    @checks.without_weights
    def from_formula(
        cls,
        formula: str,
        data: object,
        *,
        labels: Labels = "public",
        paired: bool = False,
        **arguments: Any,
    ) -> Self:
        """Build the test from a formula with the groups on the right-hand side.

        Parameters
        ----------
        formula : str
            ``"London + Paris + Milano ~ gender"`` for rankings, ``"choice ~ gender"`` for choices.
            For choices from sets the answers, such as ``"best + worst ~ gender"``.
        data : data frame
            Frame with these columns.
        labels : {"public", "private"}, default "public"
            See the class.
        paired : bool, default False
            See the class; every respondent is in both groups.
        **arguments
            `respondent` (required for choices from sets), `max_rows`; `levels`, the groups, which
            may be omitted for public labels in a categorical column; for choices `categories`,
            which are required; for rankings `ties` and `missing`. A polars Enum, or a column of
            True and False, declares its own levels or categories. Public groups without respondents
            are omitted. Choices from sets have public groups, and take `items` instead of
            `categories`.

        Returns
        -------
        ClosenessTest

        Examples
        --------
        >>> import numpy as np
        >>> import privrank as pr
        >>> cems = pr.datasets.load_university()
        >>> data = cems.rankings(np.random.default_rng(1)).join(cems.students)
        >>> test = pr.ClosenessTest.from_formula(
        ...     "London + Paris + Milano + StGallen + Barcelona + Stockholm ~ study",
        ...     data, respondent="respondent")
        >>> test
        <ClosenessTest of rankings: 6 items, groups commerce 111, other 192>
        """
        secret = checks.check_choice("labels", labels, Labels) == "private"
        if is_choices(data):
            check_only_choices({"labels": not secret, "paired": paired is False}, "public")
            return cls(formula_compared(formula, data, arguments), None)
        return cls(groups_of_formula(formula, data, arguments, secret=secret, paired=paired), None)

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, object] | pd.DataFrame, categories: object = None
    ) -> Self:
        """Build the test from counts by category for each group.

        Parameters
        ----------
        counts : mapping of mappings, or DataFrame with one column per group
            How often each category was chosen in each group.
        categories : sequence of str
            All categories; see :meth:`privrank.UniformityTest.from_counts`.

        Returns
        -------
        ClosenessTest

        Examples
        --------
        >>> counts = {"north": {"tea": 120, "milk": 60}, "south": {"tea": 40, "milk": 80}}
        >>> test = pr.ClosenessTest.from_counts(counts, categories=["tea", "milk"])
        >>> test
        <ClosenessTest of choices: 2 items, groups north 180, south 120>
        """
        return cls(encode_count_tables(counts, categories), None)

    def __repr__(self) -> str:
        """Show the shape only."""
        survey = self._encoded.sample
        groups = ", ".join(
            name if size is None else f"{name} {size}"
            for name, size in compared_groups(survey).groups
        )
        return f"<ClosenessTest of {kind_of(survey)}: {len(survey.items)} items, groups {groups}>"

    def fit(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        method: ClosenessMethod = "auto",
        permutations: int = 999,
        effect_epsilon: float | None = None,
        details_epsilon: float | None = None,
        alpha: float = 0.05,
        budget: Budget | None = None,
        rng: np.random.Generator | None = None,
    ) -> ClosenessResult:
        """Run the test under differential privacy.

        The test uses `epsilon` and `delta` once.

        Parameters
        ----------
        epsilon : float
            Privacy budget of the test; ``numpy.inf`` for the ordinary permutation test.
        delta : float, default 0
            Privacy delta.
        method : str, default "auto"
            How groups are compared. For choices, ``"auto"`` is ``"table"``, one noisy table of
            counts, or ``"permutation"``, a permutation test, whichever has more power by public
            numbers. It is the table for at most three categories; for at most six if the smallest
            group has at most two thirds of the mean size; and for a smallest group of at least
            5 k^1.5 / epsilon^2 (k categories; 10 k^1.5 / epsilon^2 for more than six, or for more
            than eight if the smallest group has at most two thirds of the mean size).
            Private labels and pairs have no table. ``"permutation"`` has power against a difference
            in one category and against one spread over many; ``"tv"``, the total variation
            distance, has power against the latter alone; ``"chi-square"`` is available as well. For
            rankings, ``"auto"`` or ``"mmd"`` is a kernel distance, and ``"kendall"`` the same for
            differences of the pairwise fractions alone.

            With more than two groups these methods compare each group with all units, and their
            noise depends on the total number of units. ``"pairs"`` uses the two groups that differ
            most, with noise that depends on the smallest group. It has more power if only a small
            group differs. ``"sigmoid"``, for choices, releases one bit, without a stated level.
            Choices from sets have ``"auto"`` alone, without an effect or details.
        permutations : int, default 999
            Number of permutations of the group labels, or of null tables. Validity and privacy do
            not depend on it.
        effect_epsilon : float, optional
            Additional budget of an effect size: the noisy distance of two groups with an interval.
            It is reserved together with `epsilon`. Not with a table, which has the distance.
        details_epsilon : float, optional
            Additional budget of the details: totals by group, which give simultaneous intervals for
            all differences. It is reserved together with `epsilon`. Not with a table, which has
            the totals.
        alpha : float, default 0.05
            Significance level.
        budget : Budget, optional
            Ledger from which the fit reserves its budget.
        rng : numpy.random.Generator, optional
            Generator for seeded noise and permutations, for studies only. None, the default: both
            are secure.

        Returns
        -------
        ClosenessResult

        Raises
        ------
        ValueError, TypeError, BudgetExceeded
            Before any budget is spent.
        FitError
            If inference fails after the release. The release is stored in the exception, and
            `from_release` computes the result from it at no additional privacy cost.

        See Also
        --------
        privrank.ClosenessResult : Results of the test.
        privrank.power.ClosenessPower : Power and sample size.

        Examples
        --------
        >>> result = test.fit(epsilon=1.0, effect_epsilon=1.0, rng=np.random.default_rng(2))
        >>> result.reject, result.effect > 0
        (True, True)
        """
        epsilon, delta, alpha = checks.check_fit(epsilon, delta, alpha, rng)
        checks.check_choice("method", method, ClosenessMethod)
        checks.check_count("permutations", permutations, low=FEWEST, high=MOST)
        checks.warn_few("permutations", permutations, alpha)
        survey = self._encoded.sample
        sample = compared_groups(survey)
        used = method if isinstance(survey, Design) else method_of(method, sample, epsilon)
        comparison = compare(used, survey)
        if comparison.decision is not None:
            checks.check_noisy(method, epsilon, "auto")
        plan = plan_comparison(
            sample,
            comparison,
            epsilon,
            delta,
            method=used,
            alpha=alpha,
            permutations=permutations,
            effect_epsilon=effect_epsilon,
            details_epsilon=details_epsilon,
        )
        release = release_comparison(
            self._encoded,
            comparison,
            plan,
            # simulated before the budget is spent: the quantiles of the statistic's noise
            public=public_quantiles(comparison, sample, plan.number("scale")),
            budget=budget,
            rng=rng,
        )
        return fit_error_guard(
            partial(self.from_release, release, alpha=alpha),
            release,
            "ClosenessTest.from_release(error.release)",
        )

    @staticmethod
    def from_release(release: Release, *, alpha: float = 0.05) -> ClosenessResult:
        """Compute the test from an existing release, at no additional privacy cost.

        Parameters
        ----------
        release : Release
            The release of a fit of this test.
        alpha : float, default 0.05
            Significance level; one-bit methods keep the level of their fit.

        Returns
        -------
        ClosenessResult

        Examples
        --------
        >>> result = test.fit(epsilon=1.0, rng=np.random.default_rng(2))
        >>> pr.ClosenessTest.from_release(result.release, alpha=0.01).reject
        True
        """
        check_release(release)
        # one-bit methods keep the level of their fit; a p-value can be compared with any level
        level = float(release.plan.settings.get("level", checks.check_alpha(alpha)))
        survey = tested_survey(release)
        known = compared_groups(survey).groups and release.plan.method in _known(survey)
        comparison = compare(release.plan.method, survey) if known else None
        if comparison is None or comparison.name != release.mechanism:
            raise ValueError("release must be of a ClosenessTest, but it is of another model.")
        check_scale(release, comparison)
        return ClosenessResult(
            release=release, alpha=level, asked=comparison, simulation=comparison_rejects
        )


def compare(method: str, sample: Sample | Design) -> Comparison:
    """Return the comparison that `method` computes and releases for such samples.

    Raises an error for methods that do not apply.
    """
    known = _known(sample)
    if isinstance(sample, Design):
        checks.check_choice("method", method, known, kind_of(sample))
        return comparison_of_choices(sample)
    if sample.private_labels and method not in known:
        raise ValueError(
            f"method must be one of {', '.join(map(repr, known))} with labels='private', got "
            f"{method!r}."
        )
    checks.check_choice("method", method, known, sample.kind)
    comparison = comparison_of(method, sample)
    sizes = sample.sizes
    if method != "sigmoid":
        return comparison
    if len(sizes) != 2 or sizes[0] != sizes[1]:
        raise ValueError(
            "method='sigmoid' compares two samples of the same size. Use method='auto'."
        )
    # one bit, whose probability depends on the statistic: it has no p-value and no level
    return replace(
        comparison,
        name="sigmoid bit of chi-square",
        effect=None,
        decision=asz18.closeness_bit(sizes[0], len(sample.items), comparison.sensitivity),
    )


def _known(sample: Sample | Design) -> tuple[str, ...]:
    if isinstance(sample, Design):
        return ("auto",)
    left_out = {"sigmoid", "table"} if sample.paired else set()
    if len(sample.items) > MAX_TABLE:
        left_out = left_out | {"table"}
    known = _CHOICES if sample.kind == "choices" else _RANKINGS
    return tuple(
        name
        for name in known
        if name not in left_out and (name in _PRIVATE or not sample.private_labels)
    )


def rejection_probability(statistics: FloatArray, scale: float, alpha: float) -> float:
    """Return the probability over the noise that the released p-value is at most `alpha`.

    For planning, from the statistics of simulated data.

    Notes
    -----
    **Statistic.** H is strictly decreasing. The p-value, rounded up to a multiple of 1e-4, is
    therefore at most alpha if M_0 is at least m. Here m solves H(m) = a, and a is alpha rounded
    down to a multiple of 1e-4.
    """
    level = math.floor(RELEASED_STEPS * alpha * (1 + 1e-12)) / RELEASED_STEPS
    if scale == 0:
        return float(round_up(smoothed_pvalue(statistics, float(statistics[0]), 0.0)) <= alpha)
    if level == 0.0:
        return 0.0
    margin = scale * (math.log(1.0 / level) + 1.0)
    least = find_root(
        lambda m: smoothed_pvalue(statistics, m, scale) - level,
        float(statistics.min()) - margin,
        float(statistics.max()) + margin,
        xtol=1e-9 * scale,
        rtol=1e-9,
    )
    step = (least - float(statistics[0])) / scale
    tail = 0.5 * math.exp(-abs(step))
    return tail if step > 0 else 1.0 - tail


def comparison_rejects(
    comparison: Comparison, plan: Plan, sample: Sample, alpha: float
) -> RejectionProbability:
    """Return the map from simulated data of all groups to their probability of rejection.

    Given what the comparison releases, its plan and the public facts. The data, counts by category
    or ranks with one row per unit, come with the generator of all that is random in it.
    """
    if comparison.form == "table":
        return partial(_table_rejects, comparison, plan, alpha)
    alone = replace(plan, parts={comparison.part: plan.parts[comparison.part]})
    scale = plan.number("scale")
    public = public_quantiles(comparison, sample, scale)

    def rejects(drawn: tuple[Sequence[IntArray], np.random.Generator], order: Order) -> float:
        groups, rng = drawn
        tables = simulated_groups(groups, sample)
        statistics = permuted(tables, comparison, alone, public, rng)[:, 0]
        if comparison.decision is not None:
            return float(comparison.decision(statistics, alone, rng))
        return rejection_probability(statistics, scale, alpha)

    return rejects


def _table_rejects(
    comparison: Comparison,
    plan: Plan,
    alpha: float,
    drawn: tuple[Sequence[IntArray], np.random.Generator],
    order: Order,
) -> float:
    """Return 1 if the test by a noisy table rejects simulated data of all groups, else 0."""
    groups, rng = drawn
    noise = plan.parts[comparison.part].noise
    assert isinstance(noise, ZeroSumLaplace)
    counts = np.array(groups)
    table = NoisyTable(counts + noise.simulate(len(counts), rng), noise)
    return float(table.pvalue(int(plan.number("permutations"))) <= alpha)
