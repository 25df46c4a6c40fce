"""Private rank aggregation: a consensus order, and which places of it are certain."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from privrank.consensus.intervals import Target
from privrank.consensus.statements import statements_of
from privrank.encode.encoded import EncodedSample
from privrank.encode.frames import check_rows
from privrank.encode.samples import encode_rankings, ranks_by_name, sample_of_formula
from privrank.local.estimates import release_consensus
from privrank.local.protocols import check_generator
from privrank.local.tally import Tally
from privrank.mechanisms.aggregation import release_aggregation
from privrank.plans.aggregation import (
    AggregationMethod,
    Releases,
    cautions,
    plan_aggregation,
)
from privrank.plans.nullmodel import Missing
from privrank.published import agkm22
from privrank.release.names import ORDER
from privrank.release.plan import Setting
from privrank.release.release import Release, check_release, fit_error_guard
from privrank.release.survey import size_of
from privrank.results.aggregation import AggregationResult
from privrank.results.ledger import Budget
from privrank.util import checks
from privrank.util.arrays import readonly_copy

ReportsMethod = Literal["auto", "kwiksort"]


class PrivateRankAggregation:
    """A consensus order of rankings under differential privacy.

    Which order agrees best with everybody's ranking, and which of its places are certain?

    This holds if respondents are independent of each other (else respondent= names their family
    or class) and who answers does not depend on the answer. What comes about otherwise:
    :doc:`assumptions </assumptions>`. With ``target="sample"`` what is said of pairs and
    scores is said of these rankings alone.

    Parameters
    ----------
    rankings : data frame or ndarray of shape (n, m)
        A rankings frame: one row per ranking, one column per item, cells the ranks 1 (best) to m.
        They are complete and without ties unless `ties` and `missing` say otherwise.
        `privrank.as_rankings` makes one of other forms.
    items : sequence of str, optional
        The item columns; by default every column but the respondent's.
    respondent : str, optional
        Column, or pandas index level, that names the respondent of each row. The unit of privacy
        is then a respondent with all their rows, whose mean counts as one vote on every pair.
    max_rows : int, default 1
        Public bound on the rows of a respondent, at most 10.
    ties : bool, default False
        Whether items may share a rank, which then is half a vote for each order of the two; public.
    missing : {"bottom", "half"}, optional
        What a missing cell means; public. ``"bottom"``: the item is below all that the ranking
        lists, and tied with the others it leaves out, as in a list of the five best. ``"half"``:
        nothing is known of the item, half a vote for each order of it and any other; an item that
        many leave out then is at about one half against all. By default no cell may be missing.

    Raises
    ------
    ValueError, TypeError
        If the frame or an argument breaks a rule.

    See Also
    --------
    privrank.as_rankings : Brings lists, orders and ties into the form of ranks.
    privrank.UniformityTest : Whether there is any consensus.
    privrank.pool : Several consensuses as one.
    privrank.kemeny_score : Appraises an order, without privacy.

    Notes
    -----
    **Privacy.** Neighbours replace one unit; the number of units is public. Everything comes from
    noisy pair counts, noisy Borda totals, or one order; see :mod:`privrank.mechanisms.aggregation`.

    **Statistic.** The default releases what is predicted to lose least at these numbers of items
    and units and this epsilon and delta (:mod:`privrank.plans.aggregation`). That may be the counts
    of all pairs, which are shrunken as far as noise explains them
    (:mod:`privrank.consensus.rules`); the consensus is the order with the fewest disagreements
    (Kemeny's). Or it is Borda totals, whose noise is less, for an order by mean rank.

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
        respondent: str | None = None,
        max_rows: int = 1,
        ties: bool = False,
        missing: Missing | None = None,
    ) -> None:
        if isinstance(rankings, EncodedSample):
            self._encoded = rankings
        else:
            self._encoded = encode_rankings(
                rankings,
                items=items,
                respondent=respondent,
                max_rows=max_rows,
                ties=ties,
                missing=missing,
                purpose="consensus",
            )

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
        """Build the model from a formula that names the item columns.

        Parameters
        ----------
        formula : str
            ``"London + Paris + Milano ~ 1"``.
        data : data frame
            Frame with these columns.
        ties : bool, default False
            Whether items may share a rank.
        missing : {"bottom", "half"}, optional
            What a missing cell means.
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
        arguments |= {"ties": ties, "missing": missing}
        encoded = sample_of_formula(formula, data, arguments, "consensus")
        if encoded.sample.kind != "rankings":
            raise ValueError(
                f"formula must name at least two item columns on its left, got {formula!r}: write "
                f"'a + b + c ~ 1'."
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
        """Spend `epsilon` once and return the consensus.

        Parameters
        ----------
        epsilon : float
            Privacy budget to spend; ``numpy.inf`` for the non-private consensus.
        delta : float, default 0
            Privacy delta. A small one, such as 1e-6, makes Gaussian noise possible, which is much
            less from about 20 items on, and for the sorts less from about 5. ``"pairs-laplace"``
            and ``"exponential"``, which gain next to nothing by it, refuse one.
        method : str, default "auto"
            ``"auto"``: the least predicted loss among pair counts with either kind of noise, and
            Kemeny's order of them shrunken, and Borda totals with either kind of noise.
            ``"kemeny"``: Kemeny's order of the noisy counts as they are. ``"borda"``: the order of
            noisy Borda totals, which says nothing about single pairs. To compare with:
            ``"pairs-laplace"``, ``"kwiksort"``, ``"kwiksort-hay"`` and, for at most 20 items,
            ``"exponential"``; the last three release an order alone. Non-private only:
            ``"copeland"`` and ``"local-search"``.
        releases : {"auto", "pairs"}
            ``"pairs"`` has ``"auto"`` release pair counts, for statements about pairs, also where
            Borda totals would lose less.
        score_share : float, default 0
            Share of the budget for the Kemeny score of the consensus, 0 or 0.05 to 0.5. The score
            needs noise of its own, as the order fits the noise of the counts it was found in.
        target : {"population", "sample"}
            What intervals are about: the population the units were drawn from, or these units.
        alpha : float, default 0.05
            One minus the confidence level.
        budget : Budget, optional
            Ledger to reserve from.
        rng : numpy.random.Generator, optional
            Seeded noise for studies; None, the default, is secure noise.

        Returns
        -------
        AggregationResult

        Raises
        ------
        ValueError, TypeError, BudgetExceeded
            With a short message, before any budget is spent.
        FitError
            If numerics fail after that: holds the release, which `from_release` reads for nothing.

        See Also
        --------
        privrank.AggregationResult : What is returned.
        privrank.power.AggregationPower : How far an order will be from the best one.

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

        read = partial(_warned, release, alpha=alpha, target=target)
        return fit_error_guard(read, release, "PrivateRankAggregation.from_release(error.release)")

    @staticmethod
    def from_release(
        release: Release, *, alpha: float = 0.05, target: Target = "population"
    ) -> AggregationResult:
        """Read a release that was paid for already; nothing more is spent.

        Parameters
        ----------
        release : Release
            From a fit of this class.
        alpha : float, default 0.05
            One minus the confidence level.
        target : {"population", "sample"}
            What intervals are about.

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
        # of pairs and scores, by whichever release; without an order it is none of ours
        stated = statements_of(release)
        if ORDER not in release.parts:
            raise ValueError(
                f"release must hold an order, as PrivateRankAggregation makes it, and this one is "
                f"of {release.mechanism}."
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
        """Estimate the consensus from reports of a local protocol, which nobody holds raw.

        Parameters
        ----------
        tally : Tally
            Reports as ``protocol.tally(reports)`` counts them, of a protocol that asks everybody
            for a random part of their ranking. Those of :class:`privrank.local.Comparisons` have
            to be without ties, those of :class:`privrank.local.PairBits` of private pairs.
        method : {"auto", "kwiksort"}
            How the order is found; all else is the same. ``"kwiksort"``, to compare with, is that
            of LDP-KwikSort, KwikSort by the majorities of the estimated fractions of pairs.
        alpha : float, default 0.05
            One minus the confidence level.
        target : {"population", "sample"}
            What intervals are about. They hold for both alike: among the respondents themselves
            fractions and scores vary less.
        rng : numpy.random.Generator, optional
            Draws the pivots of ``"kwiksort"``, and the order of equal items. If it is left out,
            both are a public random order, the same for all surveys of as many items.

        Returns
        -------
        AggregationResult

        Raises
        ------
        ValueError, TypeError
            If the tally or an argument breaks a rule, and for ``"kwiksort"`` of reports that say
            nothing about pairs.

        See Also
        --------
        privrank.local.SubRanking : A protocol of such reports.

        Notes
        -----
        **Privacy.** Every report is epsilon-private by itself
        (:class:`privrank.local.responses.SubsetResponse`); all that is computed from them is
        post-processing.

        **Statistic.** See :mod:`privrank.local.estimates`: unbiased fractions of pairs and Kemeny's
        order of them, shrunken as far as sampling and response explain them; or Borda scores and
        the order of these. For KwikSort see :func:`privrank.consensus.orders.kwiksort`.

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
        release = release_consensus(tally, "EB-Kemeny" if method == "auto" else "KwikSort", rng)
        return _warned(release, alpha=alpha, target=target)


def _warned(release: Release, *, alpha: float, target: Target) -> AggregationResult:
    """Read a new release, and warn of what limits it."""
    checks.warn(*cautions(release))
    return PrivateRankAggregation.from_release(release, alpha=alpha, target=target)


def _declared(encoded: EncodedSample) -> dict[str, Setting]:
    """Return what was declared of shared ranks and of missing items, for the record."""
    declared: dict[str, Setting] = {"ties": True} if encoded.ties else {}
    return declared if encoded.missing is None else {**declared, f"missing {encoded.missing}": True}


def kendall_distance(order: Sequence[str], rankings: object) -> pd.Series[int]:
    """Return how many pairs of items each ranking orders otherwise than an order does.

    This is not private: there is no noise, and no budget is spent. It appraises an order on
    rankings that readers of the result may see themselves, such as simulated or published ones.

    Parameters
    ----------
    order : sequence of str
        The items, best first, such as the `order` of a result.
    rankings : data frame
        One row per ranking and a column for each item of `order` with its rank, 1 (best) to m,
        each of them once. Other columns are left out.

    Returns
    -------
    Series
        The Kendall distance of each ranking to the order, 0 to m (m - 1) / 2, by the index of a
        pandas frame, else by row.

    Raises
    ------
    ValueError, TypeError
        If the items or the ranks are none. Ties and missing ranks are refused, too.

    See Also
    --------
    privrank.kemeny_score : The mean of these distances.
    privrank.as_rankings : Breaks ties and completes rankings.

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
            f"every row of rankings must hold each of the ranks 1 to {len(items)}, one for each "
            f"item of order, once. Break ties and complete rankings before, with "
            f"privrank.as_rankings."
        )
    index = rankings.index if isinstance(rankings, pd.DataFrame) else None
    return pd.Series(
        kendall_to_center(np.ascontiguousarray(ranks), best), index=index, name="distance"
    )


def kemeny_score(order: Sequence[str], rankings: object) -> float:
    """Return the mean Kendall distance of rankings to an order.

    This is not private: there is no noise, and no budget is spent. A private score is that of a fit
    with `score_share`.

    Parameters
    ----------
    order : sequence of str
        The items, best first.
    rankings : data frame
        Rankings as :func:`privrank.kendall_distance` takes them. Every row counts alike.

    Returns
    -------
    float
        Pairs of items, 0 to m (m - 1) / 2, that a ranking orders otherwise, on average over the
        rankings. An order with the least score is a Kemeny order.

    Raises
    ------
    ValueError, TypeError
        As :func:`privrank.kendall_distance` does.

    See Also
    --------
    privrank.kendall_distance : The distance of each ranking.
    privrank.AggregationResult.kemeny_score : That of a consensus with noise, units alike.

    References
    ----------
    The cost K of Alabi, Ghazi, Kumar and Manurangsi (2022), a mean over rankings as well,
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
