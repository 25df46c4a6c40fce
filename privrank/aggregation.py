"""Private rank aggregation: a consensus ranking with rank confidence sets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from privrank.consensus.released import statements_of, with_order
from privrank.consensus.statements import Target
from privrank.distributions.links import LOGIT
from privrank.encode.choices import (
    check_only_choices,
    check_orders,
    encode_tasks,
    formula_tested,
    is_choices,
)
from privrank.encode.encoded import EncodedChoices, EncodedSample
from privrank.encode.frames import check_rows
from privrank.encode.samples import encode_rankings, ranks_by_name, sample_of_formula
from privrank.local.estimates import release_consensus
from privrank.local.protocols import check_generator
from privrank.local.tally import Tally
from privrank.mechanisms.comparisons import release_comparisons
from privrank.mechanisms.samples import release_aggregation
from privrank.plans.aggregation import (
    AggregationMethod,
    Releases,
    cautions,
    plan_aggregation,
    plan_orders,
)
from privrank.plans.declarations import Missing
from privrank.published import agkm22
from privrank.release.names import ORDER
from privrank.release.release import Release, check_release, fit_error_guard
from privrank.release.survey import Setting, size_of
from privrank.results.aggregation import AggregationResult
from privrank.results.ledger import Budget
from privrank.util import checks
from privrank.util.arrays import readonly_copy

ReportsMethod = Literal["auto", "kwiksort"]


class PrivateRankAggregation:
    """Consensus ranking under differential privacy.

    Which order agrees best with all rankings, and which of its ranks are established?

    Parameters
    ----------
    rankings : data frame or ndarray of shape (n, m)
        A rankings frame: one row per ranking, one column per item, cells the ranks 1 (best) to m.
        They are complete and without ties unless `ties` and `missing` allow exceptions.
        :func:`privrank.as_rankings` converts other forms. Or orders of offered sets, from
        :func:`privrank.as_choices`.
    items : sequence of str, optional
        The item columns; by default every column except `respondent`.
    respondent : str, optional
        Column, or pandas index level, that identifies the respondent of each row. The unit of
        privacy is then a respondent with all their rows, whose mean is one vote on every pair.
        Required for orders of offered sets, where every order is a vote on its pairs: a column, or
        None if each order is a unit.
    max_rows : int, default 1
        Public bound on the rows of a respondent; at most 10 for rankings.
    ties : bool, default False
        Whether items may share a rank (public). A shared rank is half a vote for each order of the
        two items.
    missing : {"bottom", "half"}, optional
        The meaning of a missing cell (public). ``"bottom"``: the item is below all items that the
        ranking lists, and tied with the other unlisted items (a top-5 list). ``"half"``:
        nothing is known about the item, which is half a vote for each order of this and any other
        item; the pairwise fractions of an item that many rankings omit are then close to one half.
        By default missing cells are refused.

    Raises
    ------
    ValueError, TypeError
        If the frame or an argument violates a rule.

    See Also
    --------
    privrank.as_rankings : Convert lists, orders and ties to ranks.
    privrank.UniformityTest : Test that all rankings are equally likely.
    privrank.pool : Pool several consensus rankings.
    privrank.kemeny_score : Evaluate an order, without privacy.

    Notes
    -----
    **Assumptions.** Independent respondents (if families or classes answer alike, name the family
    or class in `respondent`); ignorable nonresponse (whether a question is answered does not depend
    on the answer). With ``target="sample"`` none of this is assumed: pairs and scores then describe
    these rankings only. For the consequences of violations, see
    :doc:`assumptions </assumptions>`.

    **Privacy.** Neighbours replace one unit; the number of units is public. All results are
    computed from noisy pair counts, noisy Borda totals, or one order; see
    :mod:`privrank.mechanisms.samples`.

    **Statistic.** By default the statistic with the least predicted loss is released; the
    prediction depends on the numbers of items and units, epsilon and delta
    (:mod:`privrank.plans.aggregation`). The first candidate is the counts of all pairs, shrunken to
    a degree that depends on the noise (:mod:`privrank.consensus.orders`); the consensus is the
    order with the fewest disagreements (Kemeny's). The second is Borda totals, which need less
    noise and give an order by mean rank.

    **Orders of offered sets.** It is public which items were offered to whom. The first candidate
    is then the numbers of orders that place one item before another, by pair, if every two items
    were offered together. The second is net wins by item, whose order is by win rate. Statements
    are in :mod:`privrank.consensus.released`. They are valid whatever the dependence of the orders
    of a respondent is, and wide if a respondent orders many sets. :class:`privrank.PrivateBTL`
    measures the dependence instead.

    References
    ----------
    Alabi, Ghazi, Kumar and Manurangsi (2022), https://arxiv.org/abs/2112.14652; Hay, Elagina and
    Miklau (2017); Yan, Li and Liu (2020), https://arxiv.org/abs/1908.04486.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> rankings = pr.Mallows(["tea", "coffee", "milk"], phi=0.6).rvs(400, np.random.default_rng(1))
    >>> model = pr.PrivateRankAggregation(rankings, items=["tea", "coffee", "milk"])
    >>> model.fit(epsilon=1.0, rng=np.random.default_rng(2)).order
    ('tea', 'coffee', 'milk')
    """

    __slots__ = ("_encoded",)

    @checks.without_weights
    def __init__(
        self,
        rankings: object,
        *,
        items: object = None,
        respondent: str | None = checks.UNSTATED,
        max_rows: int = 1,
        ties: bool = False,
        missing: Missing | None = None,
    ) -> None:
        self._encoded: EncodedSample | EncodedChoices
        if isinstance(rankings, EncodedSample | EncodedChoices):
            self._encoded = rankings
        elif is_choices(rankings):
            check_only_choices({"ties": not ties, "missing": missing is None}, "public")
            self._encoded = encode_tasks(
                rankings, items=items, respondent=respondent, max_rows=max_rows
            )
        else:
            self._encoded = encode_rankings(
                rankings,
                items=items,
                respondent=None if respondent is checks.UNSTATED else respondent,
                max_rows=max_rows,
                ties=ties,
                missing=missing,
                purpose="consensus",
            )
        check_orders(self._encoded.sample, "PrivateRankAggregation")

    @classmethod
    @checks.without_weights
    def from_formula(
        cls,
        formula: str,
        data: object,
        *,
        ties: bool = False,
        missing: Missing | None = None,
        **arguments: Any,
    ) -> Self:
        """Build the model from a formula with the item columns.

        Parameters
        ----------
        formula : str
            ``"London + Paris + Milano ~ 1"``, or ``"order ~ 1"`` for orders of offered sets.
        data : data frame
            Frame with these columns.
        ties : bool, default False
            Whether items may share a rank.
        missing : {"bottom", "half"}, optional
            The meaning of a missing cell.
        **arguments
            `respondent` and `max_rows`.

        Returns
        -------
        PrivateRankAggregation

        Examples
        --------
        >>> import pandas as pd
        >>> ranks = pd.DataFrame({"tea": [1, 2, 1], "coffee": [2, 1, 3], "milk": [3, 3, 2]})
        >>> model = pr.PrivateRankAggregation.from_formula("tea + coffee + milk ~ 1", ranks)
        >>> model.fit(epsilon=np.inf).order
        ('tea', 'coffee', 'milk')
        """
        if is_choices(data):
            check_only_choices({"ties": not ties, "missing": missing is None}, "public")
            return cls(formula_tested(formula, data, arguments))
        arguments |= {"ties": ties, "missing": missing}
        encoded = sample_of_formula(formula, data, arguments, "consensus")
        if encoded.sample.kind != "rankings":
            raise ValueError(
                f"formula must name at least two item columns on its left-hand side, got "
                f"{formula!r}. Write 'a + b + c ~ 1'."
            )
        return cls(encoded)

    def __repr__(self) -> str:
        """Show the shape only."""
        return f"<PrivateRankAggregation: {size_of(self._encoded.sample)}>"

    def fit(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        method: AggregationMethod = "auto",
        releases: Releases = "auto",
        score_share: float = 0.0,
        target: Target = "population",
        alpha: float = 0.05,
        budget: Budget | None = None,
        rng: np.random.Generator | None = None,
    ) -> AggregationResult:
        """Compute the consensus under differential privacy.

        The fit uses `epsilon` and `delta` once.

        Parameters
        ----------
        epsilon : float
            Privacy budget to spend; ``numpy.inf`` for the non-private consensus.
        delta : float, default 0
            Privacy delta. A small positive value, such as 1e-6, permits Gaussian noise. This has
            much less noise than Laplace noise for about 20 items or more; the sorting methods gain
            for about 5 items or more. ``"pairs-laplace"`` and ``"exponential"`` gain little and
            refuse a positive delta.
        method : str, default "auto"
            ``"auto"``: the least predicted loss among pair counts and Borda totals, each with
            either kind of noise; the order of pair counts is Kemeny's order after shrinkage.
            ``"kemeny"``: Kemeny's order of the noisy pair counts without shrinkage. ``"borda"``:
            the order of noisy Borda totals, which gives no information about single pairs. For
            comparison, for rankings only: ``"pairs-laplace"``, ``"kwiksort"``, ``"kwiksort-hay"``
            and, for at most 20 items, ``"exponential"``; the last three release an order alone.
            Non-private only: ``"copeland"`` and ``"local-search"``.
        releases : {"auto", "pairs"}
            With ``"pairs"``, method ``"auto"`` releases pair counts even if Borda totals have less
            predicted loss. Pair counts are needed for pairwise fractions.
        score_share : float, default 0
            Share of the budget for the Kemeny score of the consensus, 0 or 0.05 to 0.5. The score
            needs independent noise, because the order is fitted to the noise of the counts.
        target : {"population", "sample"}
            The target of intervals: the population from which the units were drawn, or these units.
        alpha : float, default 0.05
            One minus the confidence level.
        budget : Budget, optional
            Ledger from which the fit reserves its budget.
        rng : numpy.random.Generator, optional
            Generator for seeded noise, for studies only. None, the default: secure noise.

        Returns
        -------
        AggregationResult

        Raises
        ------
        ValueError, TypeError, BudgetExceeded
            Before any budget is spent.
        FitError
            If inference fails after the release. The release is stored in the exception, and
            `from_release` computes the result from it at no additional privacy cost.

        See Also
        --------
        privrank.AggregationResult : Results of the aggregation.
        privrank.power.AggregationPower : Expected accuracy of a design.

        Examples
        --------
        >>> result = model.fit(epsilon=1.0, rng=np.random.default_rng(2))
        >>> result.rank_conf_int()
                lower  upper
        item
        tea         1      1
        coffee      2      2
        milk        3      3
        """
        epsilon, delta, alpha = checks.check_fit(epsilon, delta, alpha, rng)
        checks.check_choice("method", method, AggregationMethod)
        checks.check_choice("releases", releases, Releases)
        checks.check_choice("target", target, Target)
        reader = "PrivateRankAggregation.from_release(error.release)"
        if isinstance(self._encoded, EncodedChoices):
            release = release_comparisons(
                self._encoded,
                plan_orders(
                    self._encoded.design, epsilon, delta, method, score_share, releases=releases
                ),
                link=LOGIT,
                solver="newton",
                reader=reader,
                budget=budget,
                rng=rng,
            )
        else:
            plan = plan_aggregation(
                self._encoded.sample,
                epsilon,
                delta,
                method,
                score_share,
                releases=releases,
                partial=self._encoded.partial,
                declared=_declared(self._encoded),
            )
            release = release_aggregation(
                self._encoded, plan, budget=budget, rng=rng, find=agkm22.finder(plan)
            )
        return fit_error_guard(
            partial(_warned, release, alpha=alpha, target=target), release, reader
        )

    @staticmethod
    def from_release(
        release: Release, *, alpha: float = 0.05, target: Target = "population"
    ) -> AggregationResult:
        """Compute the result from an existing release, at no additional privacy cost.

        Parameters
        ----------
        release : Release
            The release of a fit of this class.
        alpha : float, default 0.05
            One minus the confidence level.
        target : {"population", "sample"}
            The target of intervals; see :meth:`fit`.

        Returns
        -------
        AggregationResult

        Examples
        --------
        >>> result = model.fit(epsilon=1.0, rng=np.random.default_rng(2))
        >>> pr.PrivateRankAggregation.from_release(result.release, target="sample").order
        ('tea', 'coffee', 'milk')
        """
        check_release(release)
        checks.check_choice("target", target, Target)
        # pairwise fractions and scores for any method; every release of this class has an order
        stated = statements_of(release)
        release = with_order(release, stated)
        if ORDER not in release.parts:
            raise ValueError(
                f"release must contain an order and be from PrivateRankAggregation, but it is of "
                f"{release.mechanism}."
            )
        return AggregationResult(
            release=release,
            alpha=checks.check_alpha(alpha),
            target=target,
            places=readonly_copy(release.parts[ORDER].values, np.int64),
            stated=stated,
        )

    @staticmethod
    def from_reports(
        tally: Tally,
        *,
        method: ReportsMethod = "auto",
        alpha: float = 0.05,
        target: Target = "population",
        rng: np.random.Generator | None = None,
    ) -> AggregationResult:
        """Estimate the consensus from a tally of local reports.

        Parameters
        ----------
        tally : Tally
            Local reports, counted by ``protocol.tally(reports)``. The protocol asks each respondent
            for a random part of their ranking. Reports of :class:`privrank.local.Comparisons` must
            have no ties, and reports of :class:`privrank.local.PairBits` must be of private pairs.
        method : {"auto", "kwiksort"}
            Algorithm for the order; all other results are the same. ``"kwiksort"`` (for comparison)
            is LDP-KwikSort: KwikSort by the majorities of the estimated pairwise fractions.
        alpha : float, default 0.05
            One minus the confidence level.
        target : {"population", "sample"}
            The target of intervals. The intervals are valid for both targets, because fractions and
            scores vary less among the respondents themselves.
        rng : numpy.random.Generator, optional
            Generator for the pivots of ``"kwiksort"`` and the order of equal items. By default both
            follow a public random order, which is the same for all surveys with the same number of
            items.

        Returns
        -------
        AggregationResult

        Raises
        ------
        ValueError, TypeError
            If the tally or an argument violates a rule, or if ``"kwiksort"`` is applied to reports
            without information about pairs.

        See Also
        --------
        privrank.local.SubRanking : Protocol in which each respondent ranks some of the items.

        Notes
        -----
        **Privacy.** Each local report is epsilon-differentially private
        (:class:`privrank.local.protocols.SubsetResponse`). All computations from the reports are
        post-processing.

        **Statistic.** Either unbiased pairwise fractions and Kemeny's order of them, shrunken to a
        degree that depends on sampling error and randomised response; or Borda scores and their
        order (:mod:`privrank.local.estimates`). For KwikSort see
        :func:`privrank.consensus.orders.kwiksort`.

        References
        ----------
        Yan, Li and Liu (2020), Algorithm 1, as corrected: https://arxiv.org/abs/1908.04486.

        Examples
        --------
        >>> from privrank.local import SubRanking
        >>> protocol = SubRanking(["tea", "coffee", "milk"], epsilon=4.0)
        >>> tally = protocol.tally(protocol.simulate(rankings, np.random.default_rng(3)))
        >>> pr.PrivateRankAggregation.from_reports(tally).order
        ('tea', 'coffee', 'milk')
        >>> pr.PrivateRankAggregation.from_reports(tally, method="kwiksort").order
        ('tea', 'coffee', 'milk')
        """
        checks.check_choice("method", method, ReportsMethod)
        if rng is not None:
            check_generator(rng)
        return _warned(
            release_consensus(tally, "EB-Kemeny" if method == "auto" else "KwikSort", rng),
            alpha=alpha,
            target=target,
        )


def _warned(release: Release, *, alpha: float, target: Target) -> AggregationResult:
    """Compute the result of a new release, and emit warnings about its accuracy."""
    checks.warn(*cautions(release))
    return PrivateRankAggregation.from_release(release, alpha=alpha, target=target)


def _declared(encoded: EncodedSample) -> dict[str, Setting]:
    """Return the declared treatment of ties and missing items, for the record."""
    declared: dict[str, Setting] = {"ties": True} if encoded.ties else {}
    return declared if encoded.missing is None else {**declared, f"missing {encoded.missing}": True}


def kendall_distance(order: Sequence[str], rankings: object) -> pd.Series[int]:
    """Return the number of item pairs that each ranking orders differently.

    This function is not private: it adds no noise and uses no budget. It evaluates an order on
    rankings that may be shown to readers of the result, such as simulated or published rankings.

    Parameters
    ----------
    order : sequence of str
        The items, best first, such as the `order` of a result.
    rankings : data frame
        One row per ranking and one column per item of `order`. Cells contain the ranks 1 (best) to
        m, each once. Other columns are ignored.

    Returns
    -------
    Series
        The Kendall distance of each ranking to the order, 0 to m (m - 1) / 2. The index is the
        index of a pandas frame; for other frames it is the row number.

    Raises
    ------
    ValueError, TypeError
        If the items or the ranks are invalid. Ties and missing ranks are refused.

    See Also
    --------
    privrank.kemeny_score : The mean of these distances.
    privrank.as_rankings : Convert other forms, break ties and complete rankings.

    References
    ----------
    Kendall (1938), https://doi.org/10.1093/biomet/30.1-2.81; the distance K of Alabi, Ghazi, Kumar
    and Manurangsi (2022), https://arxiv.org/abs/2112.14652.

    Examples
    --------
    >>> import pandas as pd
    >>> import privrank as pr
    >>> ranks = pd.DataFrame({"tea": [1, 2, 3], "coffee": [2, 1, 2], "milk": [3, 3, 1]})
    >>> pr.kendall_distance(["tea", "coffee", "milk"], ranks).to_list()
    [0, 1, 3]
    """
    from privrank.kernels.rankings import kendall_to_center

    items = [str(item) for item in checks.check_items(order, "order")]
    ranks = ranks_by_name(rankings, items, "rankings")
    best = np.arange(1, len(items) + 1)
    check_rows(len(ranks), "rankings")
    if not (np.sort(ranks, axis=1) == best).all():
        raise ValueError(
            f"rankings must contain each of the ranks 1 to {len(items)} once in every row, one for "
            f"each item of order. Break ties and complete rankings beforehand with "
            f"privrank.as_rankings."
        )
    return pd.Series(
        kendall_to_center(np.ascontiguousarray(ranks), best),
        index=rankings.index if isinstance(rankings, pd.DataFrame) else None,
        name="distance",
    )


def kemeny_score(order: Sequence[str], rankings: object) -> float:
    """Return the mean Kendall distance of rankings to an order.

    This function is not private: it adds no noise and uses no budget. For a private score, fit
    with `score_share`.

    Parameters
    ----------
    order : sequence of str
        The items, best first.
    rankings : data frame
        Rankings, see :func:`privrank.kendall_distance`. Every row has the same weight.

    Returns
    -------
    float
        Number of item pairs, 0 to m (m - 1) / 2, that a ranking orders differently, averaged over
        the rankings. An order with the smallest score is a Kemeny order.

    Raises
    ------
    ValueError, TypeError
        See :func:`privrank.kendall_distance`.

    See Also
    --------
    privrank.kendall_distance : The distance of each ranking.
    privrank.AggregationResult.kemeny_score : The private score, with equal weights of units.

    References
    ----------
    The cost K of Alabi, Ghazi, Kumar and Manurangsi (2022), which is a mean over rankings as well,
    https://arxiv.org/abs/2112.14652.

    Examples
    --------
    >>> import pandas as pd
    >>> import privrank as pr
    >>> ranks = pd.DataFrame({"tea": [1, 2, 3], "coffee": [2, 1, 2], "milk": [3, 3, 1]})
    >>> round(pr.kemeny_score(["tea", "coffee", "milk"], ranks), 3)
    1.333
    """
    return float(kendall_distance(order, rankings).mean())
