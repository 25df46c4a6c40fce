"""Private top-k selection by win rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from privrank.bradley_terry.equations import (
    degree_error,
    released_degrees,
    score_equations,
)
from privrank.bradley_terry.paircounts import FEW, uncounted
from privrank.bradley_terry.winrates import design_effects
from privrank.btl import PrivateBTL
from privrank.encode.choices import check_orders, formula_choices, is_choices
from privrank.encode.comparisons import formula_columns
from privrank.encode.encoded import Encoded, EncodedChoices
from privrank.local.estimates import release_wins
from privrank.local.tally import Tally
from privrank.mechanisms.comparisons import release_comparisons
from privrank.plans.choice import Dependence, plan_comparisons
from privrank.plans.comparisons import Noise, Request, Target, plan_selection
from privrank.release.names import NET, SIDES, WORTHS
from privrank.release.release import Release, check_release, fit_error_guard
from privrank.release.survey import DesignKind, Excess, size_of, weight_unit, without_counts
from privrank.results.ledger import Budget
from privrank.results.topk import TopKResult, identified_notes
from privrank.util import checks
from privrank.util.arrays import readonly_copy


class PrivateTopK:
    """Select the k most preferred items under differential privacy.

    Items are ranked by win rate: the fraction of its comparisons that an item wins, with ties as
    half a win. Alternatively they are ranked by net wins (wins minus losses), which give the same
    order if all items are compared equally often. The set, the intervals, the rank sets and the
    separation p-value are all computed from one release by item. The number of comparisons per
    pair is never released.

    Parameters
    ----------
    comparisons : data frame
        Comparisons in long form; see :class:`privrank.PrivateBTL`. Or orders of publicly offered
        sets, from :func:`privrank.as_choices`, whose pairs are the comparisons.
    k : int
        Size of the set, fixed in advance; at most one less than the number of items.
    item1, item2, outcome, items, respondent, counts, max_rows, excess, distinct_pairs, ties, design
        See :class:`privrank.PrivateBTL`. `respondent`, the unit of privacy, has no default.
    pair_counts : None, "equal", mapping or data frame, optional
        Declared number of comparisons per pair under a private design; see
        :class:`privrank.PrivateBTL`. A selection does not need them.
    weights, max_weight : str, float, optional
        Public design weights; see :class:`privrank.PrivateBTL`.

    Raises
    ------
    ValueError, TypeError
        If the frame or an argument violates a rule.

    See Also
    --------
    privrank.PrivateBTL : Bradley-Terry model for the same data.
    privrank.power.TopKPower : Power and sample size.

    Notes
    -----
    **Assumptions.** Independent respondents (if families or classes answer alike, name the family
    or class in `respondent`); ignorable nonresponse (whether a question is answered does not depend
    on the answer). For the consequences of violations, see :doc:`assumptions </assumptions>`.
    **Privacy.** One comparison moves the integer net wins by at most 4 in l1 under replacement or
    reversal, a respondent by :attr:`privrank.privacy.sensitivity.UnitSensitivity.net_l1`, with
    and :class:`~privrank.privacy.sensitivity.UnitSensitivity` has bounds in other norms. Noise
    calibrated to these bounds (:func:`privrank.privacy.sensitivity.net_noise`) protects the
    complete vector. The joint vector of wins and losses has the noise of
    :func:`privrank.privacy.sensitivity.side_noise`. The comparisons per item have the noise of
    :func:`privrank.privacy.sensitivity.item_noise`, for a share of epsilon. The order, the set and
    every interval are therefore post-processing, for any k.

    References
    ----------
    Cai, Chakraborty and Wang (2023), Algorithm 2. The privacy loss of one-shot selection grows with
    k; releasing the noisy vector avoids this.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> cems = pr.datasets.load_university()
    >>> model = pr.PrivateTopK(cems.comparisons, k=2, items=cems.items, respondent="respondent",
    ...                        max_rows=15, ties=True, design="public")
    >>> model.fit(epsilon=np.inf).selected
    ('London', 'Paris')
    """

    __slots__ = ("_encoded", "_k")

    def __init__(
        self,
        comparisons: object,
        k: int,
        *,
        item1: str = "item1",
        item2: str = "item2",
        outcome: str = "outcome",
        items: object = None,
        respondent: str | None = checks.UNSTATED,
        counts: str | None = None,
        max_rows: int = 1,
        excess: Excess = "refuse",
        distinct_pairs: bool = True,
        ties: bool = False,
        design: DesignKind = "private",
        pair_counts: object = None,
        weights: str | None = None,
        max_weight: float | None = None,
    ) -> None:
        _check_declared(pair_counts, ties)
        encoded = PrivateBTL(
            comparisons,
            item1=item1,
            item2=item2,
            outcome=outcome,
            items=items,
            respondent=respondent,
            counts=counts,
            max_rows=max_rows,
            excess=excess,
            distinct_pairs=distinct_pairs,
            ties=ties,
            design=design,
            pair_counts=pair_counts,
            weights=weights,
            max_weight=max_weight,
        )._encoded
        check_orders(encoded.design, "PrivateTopK")
        self._encoded = replace(encoded, design=without_counts(encoded.design))
        self._k = checks.check_count("k", k, high=len(encoded.design.items) - 1)

    @classmethod
    def from_formula(cls, formula: str, data: object, k: int, **arguments: Any) -> Self:
        """Build the selection from a formula.

        See :meth:`privrank.PrivateBTL.from_formula`.

        Parameters
        ----------
        formula : str
            ``"item1 + item2 + outcome ~ 1"``, or ``"winner + loser ~ 1"`` for decided comparisons,
            or ``"order ~ 1"`` for orders of offered sets.
        data : data frame
            Frame with these columns.
        k : int
            Size of the set.
        **arguments
            The other arguments of :class:`PrivateTopK`; ``respondent=`` is required.

        Returns
        -------
        PrivateTopK

        Examples
        --------
        >>> model = pr.PrivateTopK.from_formula(
        ...     "item1 + item2 + outcome ~ 1", cems.comparisons, k=2, respondent="respondent",
        ...     items=cems.items, max_rows=15, ties=True, design="public")
        >>> model
        <PrivateTopK: k = 2, 6 items, 303 respondents>
        """
        _check_declared(arguments.get("pair_counts"), arguments.get("ties", False))
        encode = formula_choices if is_choices(data) else formula_columns
        encoded: Encoded | EncodedChoices = encode(formula, data, arguments)
        if encoded.design.covariates is not None:
            raise ValueError(
                "formula must have '~ 1' on its right-hand side, because the selection has no "
                "covariates. To select within groups, fit each group separately."
            )
        return cls(encoded, k)

    def __repr__(self) -> str:
        """Show the shape only."""
        return f"<PrivateTopK: k = {self._k}, {size_of(self._encoded.design)}>"

    def fit(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        target: Target = "auto",
        noise: Noise = "auto",
        dependence: Dependence = "auto",
        shares: Mapping[str, float] | None = None,
        alpha: float = 0.05,
        budget: Budget | None = None,
        rng: np.random.Generator | None = None,
    ) -> TopKResult:
        """Select the items under differential privacy.

        The fit uses `epsilon` and `delta` once.

        Parameters
        ----------
        epsilon, delta, noise, dependence, shares, alpha, budget, rng
            See :meth:`privrank.PrivateBTL.fit`. A share for ``"item_counts"``, the comparisons of
            each item, releases them in addition to the net wins.
        target : {"auto", "net wins", "win rate"}, default "auto"
            The statistic by which items are ranked. ``"net wins"``, under a private design without
            declared pair counts, uses all of epsilon for the net wins. It suits random samples of
            pairs, in which all items are compared equally often up to chance. The result then
            consists of the set alone. ``"win rate"`` releases the wins and losses of each item, or
            its net wins and comparisons if public numbers predict less noise for these, as for
            respondents who answer most pairs. ``"auto"`` uses win rates if the comparisons of each
            item are public or declared, or if their expected number is at least ten times the
            standard deviation of their noise. In all other cases it uses net wins.

        Returns
        -------
        TopKResult

        Raises
        ------
        ValueError, TypeError, BudgetExceeded
            Before any budget is spent.
        FitError
            If inference fails after the release. The release is stored in the exception, and
            `from_release` computes the result from it at no additional privacy cost.

        See Also
        --------
        privrank.TopKResult : Results of the selection.
        privrank.power.TopKPower : Power and sample size.

        Examples
        --------
        >>> result = model.fit(epsilon=1.0, rng=np.random.default_rng(1))
        >>> result.selected, bool(result.pvalue < 0.05)
        (('London', 'Paris'), True)
        """
        epsilon, delta, alpha = checks.check_fit(epsilon, delta, alpha, rng)
        checks.check_choice("noise", noise, Noise)
        checks.check_choice("target", target, Target)
        design = self._encoded.design
        choice = plan_selection(
            Request(design, epsilon, delta, dependence=dependence, shares=shares, noise=noise),
            target,
        )
        reader = f"PrivateTopK.from_release(error.release, k={self._k}, target={target!r})"
        release = release_comparisons(
            self._encoded,
            plan_comparisons(design, choice, epsilon, delta, by=f"PrivateTopK (k = {self._k})"),
            link=choice.link,
            solver="newton",
            reader=reader,
            budget=budget,
            rng=rng,
        )
        return fit_error_guard(
            partial(infer_topk, release, k=self._k, target=target, alpha=alpha, warn=True),
            release,
            reader,
        )

    @staticmethod
    def from_reports(
        tally: Tally, k: int, *, target: Target = "auto", alpha: float = 0.05
    ) -> TopKResult:
        """Select the items from a tally of local reports.

        Parameters
        ----------
        tally : Tally
            Local reports, counted by ``protocol.tally(reports)``. The protocol asks each respondent
            for one pair, such as :class:`privrank.local.Comparisons`, or for the order of a few
            items, :class:`privrank.local.SubRanking`.
        k : int
            Size of the set. For a valid separation p-value it must not depend on the reports.
        target : {"auto", "net wins", "win rate"}, default "auto"
            The statistic by which items are ranked; ``"auto"`` is the win rate.
        alpha : float, default 0.05
            Significance level.

        Returns
        -------
        TopKResult

        Examples
        --------
        >>> from privrank.local import Comparisons
        >>> protocol = Comparisons(["tea", "coffee", "milk"], epsilon=2.0)
        >>> rankings = pr.Mallows(3, phi=0.4).rvs(900, np.random.default_rng(1))
        >>> tally = protocol.tally(protocol.simulate(rankings, np.random.default_rng(2)))
        >>> pr.PrivateTopK.from_reports(tally, k=1).selected
        ('tea',)
        """
        return infer_topk(
            release_wins(tally, "PrivateTopK"), k=k, target=target, alpha=alpha, warn=True
        )

    @staticmethod
    def from_release(
        release: Release, k: int, *, target: Target = "auto", alpha: float = 0.05
    ) -> TopKResult:
        """Select the items from an existing release, at no additional privacy cost.

        Parameters
        ----------
        release : Release
            The release of a fit that released counts, such as ``PrivateBTL(...).fit(...).release``.
        k : int
            Size of the set. For a valid separation p-value it must not depend on the release.
        target : {"auto", "net wins", "win rate"}, default "auto"
            The statistic by which items are ranked; ``"auto"`` is the win rate if the release
            determines it.
        alpha : float, default 0.05
            Significance level.

        Returns
        -------
        TopKResult

        Examples
        --------
        The release of a Bradley-Terry fit suffices for a selection:

        >>> worths = pr.PrivateBTL(cems.comparisons, items=cems.items, respondent="respondent",
        ...                        max_rows=15, ties=True, design="public")
        >>> fit = worths.fit(epsilon=1.0, rng=np.random.default_rng(1))
        >>> pr.PrivateTopK.from_release(fit.release, k=2).selected
        ('London', 'Paris')
        """
        return infer_topk(release, k=k, target=target, alpha=alpha, warn=True)


def _check_declared(pair_counts: object, ties: object) -> None:
    """Refuse arguments for pair counts and tie parameters, which a selection does not use."""
    if isinstance(ties, str) and ties == "davidson":
        raise ValueError(
            "ties='davidson' is for PrivateBTL; a selection has no tie parameter. Use ties=True, "
            "which counts a tie as half a win for each item."
        )
    checks.check_flag("ties", ties)
    if isinstance(pair_counts, str) and pair_counts in ("release", "proportional"):
        raise ValueError(
            f"pair_counts={pair_counts!r} is for the worths of PrivateBTL; a selection needs no "
            f"pair counts. Omit pair_counts."
        )


def _check_read(release: Release, target: object) -> None:
    """Refuse a release from which no selection can be computed."""
    check_release(release)
    checks.refuse_if(
        (
            WORTHS in release.parts,
            "release must contain net wins or a win matrix, but objective perturbation releases "
            "only worths. Fit with method='counts'.",
        ),
        (
            release.design.covariates is not None,
            "release must be from a model without covariates. Fit one with '~ 1' as the right-hand "
            "side.",
        ),
    )
    check_orders(release.design, "PrivateTopK")
    checks.check_choice("target", target, Target)
    if uncounted(release) and target == "win rate":
        raise ValueError(
            "target='win rate' needs a release with the comparisons of each item, but this one "
            "contains net wins alone. Omit target."
        )


def infer_topk(
    release: Release,
    *,
    k: int,
    target: Target = "auto",
    alpha: float = 0.05,
    warn: bool = False,
) -> TopKResult:
    """Compute the selection from a release: post-processing, at no privacy cost.

    `warn`: whether to emit a warning for items whose comparisons do not exceed their noise.

    Notes
    -----
    **Statistic.** Let s be half the net wins of an item, and a its number of comparisons. Its win
    rate is 1/2 + s / a. If items are ranked by net wins, a is the mean number of comparisons for
    all items. If the comparisons were released with noise, an item with at most four standard
    deviations of this noise is not identified: four standard deviations replace a, and the result
    makes no statement about the item.
    """
    _check_read(release, target)
    if release.design.davidson:  # net wins do not depend on how ties are counted
        release = replace(release, survey=replace(release.design, ties=True))
    facts = score_equations(release)
    size = checks.check_count("k", k, high=facts.items - 1)
    few = FEW * degree_error(facts)
    degrees = np.maximum(released_degrees(facts), max(few, 1.0))
    # the statistic by which items are ranked, divided by its scale
    by_net = target == "net wins" or uncounted(release)
    scale = np.full(facts.items, degrees.mean()) if by_net else degrees
    part = release.parts.get(NET, release.parts.get(SIDES))
    score = facts.score
    if part is not None:  # as released, because the score of the equations is centred to sum 0
        unit = weight_unit(release.design)
        score = 0.5 * unit * part.step * part.values.reshape(-1, facts.items).sum(axis=0)
    estimate = 0.5 + score / scale
    effects = design_effects(facts, release, estimate, degrees, scale)
    apart = (released_degrees(facts) <= few) | uncounted(release)
    effects[apart[:, None] | apart] = np.inf
    if facts.matching is None:  # no differences between items that pair counts do not connect
        effects[~facts.components.together & ~np.eye(facts.items, dtype=bool)] = np.inf
    result = TopKResult(
        release=release,
        k=size,
        alpha=checks.check_alpha(alpha),
        target="net wins" if by_net else "win rate",
        estimate=readonly_copy(estimate, np.float64),
        degrees=readonly_copy(degrees, np.float64),
        scale=readonly_copy(scale, np.float64),
        effects=readonly_copy(effects, np.float64),
    )
    if warn:
        checks.warn(*identified_notes(result))
    return result
