"""The private Bradley-Terry model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.estimate import estimate
from privrank.bradley_terry.fit import Solver
from privrank.distributions.links import LOGIT, Link, find
from privrank.encode.choices import check_only_choices, encode_tasks, formula_choices, is_choices
from privrank.encode.comparisons import ComparisonColumns, encode_comparisons, formula_columns
from privrank.encode.encoded import Encoded, EncodedChoices
from privrank.local.estimates import release_wins
from privrank.local.tally import Tally
from privrank.mechanisms.comparisons import release_comparisons
from privrank.plans.choice import Dependence, check_will_identify, plan_comparisons
from privrank.plans.comparisons import Method, Noise, Request, plan_fit
from privrank.release.names import SIDES, WORTHS
from privrank.release.release import Release, check_release, fit_error_guard
from privrank.release.survey import Design, DesignKind, Excess, size_of
from privrank.results.btl import BTLResult
from privrank.results.coefficients import fit_warnings
from privrank.results.ledger import Budget
from privrank.util import checks


class PrivateBTL:
    """Bradley-Terry model for paired comparisons under differential privacy.

    P(item1 preferred to item2) = F(worth1 - worth2), with F(t) = 1 / (1 + exp(-t)) unless another
    `link` is chosen. By default a tie counts as half a win for each item. With
    ``ties="davidson"`` ties have a parameter lambda: the probabilities of a win, a tie and a loss
    are proportional to e^(d/2), e^lambda and e^(-d/2), where d is the difference of the worths.
    Missing answers are not counted.

    Parameters
    ----------
    comparisons : data frame
        Comparisons in long form, one row each; pandas, polars, pyarrow, duckdb, dask or any
        other frame that narwhals supports. :func:`privrank.as_comparisons` converts other forms.
        Or choices from publicly offered sets, from :func:`privrank.as_choices`: best, worst, best
        and worst (MaxDiff), or orders. These take `items`, `respondent`, `max_rows` (tasks of a
        respondent) and ``design="public"`` only.
    item1, item2, outcome : str
        Column names. `outcome` is 1 when item1 is preferred, 0 for a tie, -1 when item2 is
        preferred, missing when not answered; recode a 0/1 column x as 2 * x - 1. A 0 is refused
        unless `ties` are declared.
    items : sequence of str, optional
        The items, in the order in which results list them. May be omitted if the frame declares
        the items: a frame from :func:`privrank.as_comparisons`, whose call declared them, or one
        whose item columns have the same polars Enum. Under a public design categorical columns
        also declare the items: all categories that occur.
    respondent : str or None
        The unit of privacy, which has no default. A column (or pandas index level) that identifies
        the respondent of each row: the unit is a respondent with all their rows. None: the unit is
        one comparison, and the guarantee for a respondent with r comparisons is r times epsilon.
    counts : str, optional
        Column with the number of comparisons that a row stands for, 0 included. By default each
        row is one comparison. Each comparison is one row in the unit of privacy and in `max_rows`.
        A frame with a column ``count`` is refused unless an argument uses this column.
    max_rows : int, default 1
        Public bound on the rows of one respondent: the length of the questionnaire, no more. With
        ``respondent=None`` it is not a bound; the summary then states the epsilon of a respondent
        with `max_rows` rows.
    excess : {"refuse", "sample"}, default "refuse"
        How rows beyond the bounds are treated. ``"refuse"`` raises an error if a respondent has
        more than `max_rows` rows, or repeats a pair although `distinct_pairs` rules this out.
        ``"sample"``, under a private design, draws rows in secret and uniformly at random in each
        `fit`: at most `max_rows` answers per respondent and, if pairs are distinct, one answer per
        repeated pair.
    distinct_pairs : bool, default True
        Promise that a respondent compares each pair at most once. Under ``excess="sample"`` the
        draw enforces this bound.
    ties : bool or "davidson", default False
        Recode a 0/1 column x first, as 2 * x - 1, because True reads each 0 as a tie (the
        summary states this coding). Whether the questionnaire allows ties is declared here and
        never inferred from the answers. True counts a tie as half a win for each item, so worths
        describe preferences with ties divided equally. With ``"davidson"`` worths describe the
        preferences of respondents who decide, and the result reports a parameter for ties
        (``tie_parameter``), which is the same in all groups. ``"davidson"`` needs the logit link
        and at most 200 items; it takes covariates of respondents but none of items, and
        :class:`privrank.PrivateTopK` does not use it.
    design : {"private", "public"}, default "private"
        ``"public"``: which respondents compared which pairs was fixed in advance and is public,
        and so is which answers are missing. Lists that omit items are refused, because they do not
        have such a design. ``"private"``: this information is protected as well.
    pair_counts : None, "release", "equal", "proportional", mapping or data frame, optional
        Under a private design, the information about the number of comparisons per pair.
        ``"release"`` (the default) uses a share of epsilon to release these pair counts. A mapping
        ``{(item, item): count}`` or a frame ``item1, item2, count`` declares them. ``"equal"``
        asserts that every unit answered `max_rows` questions (with rows as units: one) and that
        these are spread evenly over the pairs. If this assertion is false, intervals undercover:
        unanswered questions bias the worths towards zero. ``"proportional"``, for at least 4
        items, the logit and no covariates, asserts that opponents were matched at random, given
        how often each item was compared: E n_ij = x_i x_j. It releases the wins and losses of the
        items, which determine the pair counts. Here 5% of epsilon is used for a coefficient, fitted
        with the worths, that lets items far apart in the ranking meet less often. The coefficient
        does not capture matching by categories unrelated to the ranking.
    link : {"logit", "probit"} or Link, default "logit"
        The distribution F: logistic (Bradley and Terry), normal (Thurstone), or a user-defined
        :class:`privrank.Link`. Private fits to counts minimise the matching loss of the link, for
        which the net wins (wins minus losses) suffice; the non-private fit is by maximum
        likelihood.
    weights : str, optional
        Column with the design weight of each unit, which multiplies its answers. Weights need
        ``design="public"`` and must be fixed before any answer. Only their ratios matter. They are
        rounded to 1/256 of the largest, and the noise grows with the largest. Standard errors of
        respondents are those of weighted estimating equations. If rows are units, they are upper
        bounds.
    max_weight : float, optional
        Weights above this number are set to it (trimmed). The summary states how far this can move
        the share of an answer.

    Raises
    ------
    ValueError, TypeError
        If the frame or an argument violates a rule above.

    See Also
    --------
    privrank.as_comparisons : Convert data of other forms to comparisons.
    privrank.as_choices : Convert choices from offered sets.
    privrank.PrivateTopK : Select the k most preferred items, without a model of worths.
    privrank.PrivateRankAggregation : Consensus ranking, from rankings.

    Notes
    -----
    **Choices from sets.** Let v be the worths of the items of an offered set. The best item is i
    with probability proportional to exp(v_i), the worst with exp(-v_i), and best i and worst j
    together with exp(v_i - v_j) (the maxdiff model). Pairs of orders have Bradley-Terry
    probabilities, and standard errors are those of the Plackett-Luce model. The scale of best-worst
    worths depends on the size of the sets. If respondents may leave tasks unanswered, the number of
    answered tasks is released with the totals. The fit expects this share of the totals of all
    tasks.

    **Assumptions.** Independent respondents (if families or classes answer alike, name the family
    or class in `respondent`); weights that were fixed before any answer; ignorable nonresponse
    (whether a question is answered does not depend on the answer); preference probabilities that
    follow the model. With item covariates: item worths that deviate independently from the
    covariate model. If respondents leave tasks unanswered: a task is answered with the same
    probability whatever its set. For the consequences of violations, see
    :doc:`assumptions </assumptions>`.

    **Privacy.** Neighbours replace one unit. `fit` releases noisy integers whose sensitivities are
    proved in :class:`privrank.privacy.sensitivity.UnitSensitivity`; the guarantee is proved in
    :func:`privrank.mechanisms.comparisons.release_comparisons`. Everything in the result is
    computed from that release and public facts. Method ``"counts"`` releases the same counts under
    every link; method ``"objective"`` perturbs the log-likelihood of links whose log-loss has
    bounded slopes (A1), and the matching loss for the probit, which has none
    (:func:`privrank.bradley_terry.fit.loss_bounds`).

    References
    ----------
    Bradley and Terry (1952), https://doi.org/10.2307/2334029. Davidson (1970),
    https://doi.org/10.1080/01621459.1970.10481082. Cai, Chakraborty and Wang (2023),
    Algorithms 1 and 2, with their constants corrected.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> cems = pr.datasets.load_university()
    >>> model = pr.PrivateBTL(cems.comparisons, items=cems.items, respondent="respondent",
    ...                       max_rows=15, ties=True, design="public")
    >>> result = model.fit(epsilon=np.inf, penalty=0)
    >>> print(result.params.round(3).loc["London"])
    0.938

    >>> ties = pr.PrivateBTL(cems.comparisons, items=cems.items, respondent="respondent",
    ...                      max_rows=15, ties="davidson", design="public")
    >>> result = ties.fit(epsilon=np.inf, penalty=0)
    >>> print(result.params.round(3).loc["London"], result.tie_parameter.round(3).loc["estimate"])
    1.071 -1.317
    """

    __slots__ = ("_encoded", "_link")

    def __init__(
        self,
        comparisons: object,
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
        ties: bool | Literal["davidson"] = False,
        design: DesignKind = "private",
        pair_counts: object = None,
        link: str | Link = "logit",
        weights: str | None = None,
        max_weight: float | None = None,
    ) -> None:
        self._link = find(link)
        self._encoded: Encoded | EncodedChoices
        if isinstance(comparisons, Encoded | EncodedChoices):
            self._encoded = comparisons
        elif is_choices(comparisons):
            check_only_choices(
                {
                    "item1": item1 == "item1",
                    "item2": item2 == "item2",
                    "outcome": outcome == "outcome",
                    "counts": counts is None,
                    "excess": excess == "refuse",
                    "distinct_pairs": distinct_pairs is True,
                    "ties": ties is False,
                    "pair_counts": pair_counts is None,
                    "link": self._link == LOGIT,
                    "weights": weights is None,
                    "max_weight": max_weight is None,
                },
                design,
            )
            self._encoded = encode_tasks(
                comparisons, items=items, respondent=respondent, max_rows=max_rows
            )
        else:
            self._encoded = encode_comparisons(
                comparisons,
                ComparisonColumns(
                    item1,
                    item2,
                    outcome,
                    respondent,
                    counts,
                    weights=weights,
                    max_weight=max_weight,
                ),
                items=items,
                max_rows=max_rows,
                excess=excess,
                distinct_pairs=distinct_pairs,
                ties=ties,
                design=design,
                pair_counts=pair_counts,
            )

    @classmethod
    def from_formula(cls, formula: str, data: object, **arguments: Any) -> Self:
        """Build the model from a formula.

        Parameters
        ----------
        formula : str
            ``"item1 + item2 + outcome ~ 1"``, or ``"winner + loser ~ 1"`` for decided comparisons.
            Do not drop ties to obtain decided comparisons: under a public design the remaining
            rows would depend on the answers. Covariates of the units replace the 1:
            ``~ gender + study``; each column of the model matrix changes every worth. Choices from
            offered sets have their answers on the left: ``"best + worst ~ gender"``, ``"best ~
            1"`` or ``"order ~ 1"``.
        data : data frame
            Frame with these columns; covariates are constant within a respondent.
        **arguments
            The other arguments of :class:`PrivateBTL` (``respondent=`` is required), and

            levels : mapping of str to sequence
                Levels of covariates, in the order of the questionnaire; a complete codebook is
                accepted. ``C(study, levels=[...])`` in the formula or a polars Enum declares them
                as well, and under a public design a categorical column.
            bounds : mapping of str to (low, high)
                Bounds of numeric covariates, which need ``design="public"``.
            item_formula, item_data : str, pandas frame
                Item covariates: worths are linear combinations of the columns of
                ``"prestige + city"``, read from a frame whose index names the items.
            contest : str
                Covariates of single comparisons, such as ``"length + first"``: numeric columns
                with the sign for item1, which changes if the items are exchanged (the length of
                the first text minus that of the second). ``first`` is the advantage of the item
                that a row names first, which must not be the winner because of the answer. They
                need ``design="public"`` and must be fixed before the answer is known. Data that do
                not record the order of the items, winners and losers included, are refused
                (:func:`privrank.as_comparisons` lists these forms).

        Returns
        -------
        PrivateBTL

        Notes
        -----
        **Privacy.** Covariates divide the units into groups by their declared levels, and net wins
        are released by group and item. A unit is in one group, so several groups need no more noise
        than a single group (:attr:`privrank.privacy.sensitivity.UnitSensitivity.net_l1`). For
        contest covariates sums of answers times bounded public instruments are released with noise
        of their own (:func:`privrank.privacy.sensitivity.contest_noise`). A numeric
        covariate, scaled to [-1, 1] by its bounds, adds one weighted sum of net wins, and the noise
        grows with the number of such sums. Under a public design the covariates of each unit are
        public. Under a private design the sizes of the groups are released with noise, and so are
        the pair counts of all groups together unless they are declared. Each has a share of
        epsilon.

        Examples
        --------
        How worths differ between the sexes, by the codebook's levels:

        >>> fears = pr.datasets.load_immigration()
        >>> answers = fears.comparisons.merge(fears.students, on="respondent")
        >>> by_sex = pr.PrivateBTL.from_formula(
        ...     "item1 + item2 + outcome ~ sex", answers, respondent="respondent", max_rows=6,
        ...     ties=True, design="public", levels=fears.levels)
        >>> list(by_sex.fit(epsilon=np.inf).params.index[4:6])
        ['sex[T.male]:crimRate', 'sex[T.male]:position']
        """
        link = find(arguments.pop("link", "logit"))
        encoded = formula_choices if is_choices(data) else formula_columns
        return cls(encoded(formula, data, arguments), link=link)

    def __repr__(self) -> str:
        """Show the shape only."""
        return f"<PrivateBTL: {size_of(self._encoded.design)}>"

    def fit(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        method: Method = "auto",
        noise: Noise = "auto",
        penalty: float | Literal["auto"] = "auto",
        solver: Solver = "newton",
        dependence: Dependence = "auto",
        shares: Mapping[str, float] | None = None,
        allow_unidentified: bool = False,
        alpha: float = 0.05,
        budget: Budget | None = None,
        rng: np.random.Generator | None = None,
    ) -> BTLResult:
        """Fit the model under differential privacy.

        The fit uses `epsilon` and `delta` once.

        Parameters
        ----------
        epsilon : float
            Privacy budget of this fit; ``numpy.inf`` for the non-private run.
        delta : float, default 0.0
            Failure probability, in [0, 1); if positive, well below 1 / nobs.
        method : {"auto", "counts", "objective"}
            ``"counts"`` adds integer noise to the net wins; ``"objective"`` perturbs the loss (Cai,
            Chakraborty and Wang, Algorithm 1). ``"auto"`` uses counts under a public design. Under
            a private design it uses the method with the smallest error predicted from public
            numbers. If pair counts are released as well, ``"counts"`` releases net wins or, if that
            is more accurate, a win matrix.
        noise : {"auto", "laplace", "gaussian", "zero-sum-laplace", "permutohedron"}
            Distribution of the noise on the counts. ``"auto"`` selects, from public numbers alone,
            the distribution with the least noise in differences between items; the summary names
            it. For respondents who answer most pairs this is ``"permutohedron"``, noise shaped like
            the changes that one respondent can make (at most 50 items). In most other cases it is
            ``"zero-sum-laplace"`` (at most 200 items). ``"gaussian"`` needs a positive `delta` and
            is an advantage for respondents with many items. A win matrix takes ``"laplace"`` or
            ``"gaussian"``; wins and losses (``pair_counts="proportional"``) take the two Laplace
            distributions.
        penalty : float or "auto"
            Ridge gamma, the term ``gamma |worths|^2 / 2``. A number gives the uncorrected penalised
            worths; ``"auto"`` balances noise and shrinkage and corrects the bias of the ridge.
        solver : {"newton", "lbfgs", "cvxpy"}
            Solver of the convex fit. All agree to 1e-6. ``"cvxpy"`` supports the logit link only.
        dependence : {"auto", "worst", "pairs", "none", "cluster"}
            Adjustment of standard errors for the dependence of one respondent's answers.
            ``"worst"`` uses a share of epsilon to release the largest design effect of any
            contrast, which is applied to all contrasts. ``"pairs"`` releases the second moments of
            all pairs, which give each contrast its own design effect. ``"auto"`` selects, for
            respondents, the option with the shorter predicted intervals, and in the non-private
            fit ``"cluster"``, the cluster-robust covariance. ``"none"`` treats all answers as
            independent; intervals then undercover if respondents differ.
        shares : mapping of str to float, optional
            Shares of epsilon by part of the release. ``"output"`` (default 0.01).
            ``"dependence"`` (default 0.05 to 0.3). ``"ties"`` (default 0.15; none if the noise of
            the net wins protects the number of ties as well). ``"contest"``, ``"pair_counts"`` and
            ``"group_answers"`` (by default the shares with the least error
            predicted from public numbers). ``"opponents"`` (default 0.05), with proportional pair
            counts: a number that shows how often items met items of their own half of the ranking;
            0 omits it.
        allow_unidentified : bool, default False
            Whether to fit although, by public numbers, fewer than half of the worths will probably
            be identified. This happens if pair counts are released and do not exceed their noise.
            By default such a fit is refused before epsilon is used.
        alpha : float, default 0.05
            Significance level of intervals and rank sets.
        budget : Budget, optional
            Ledger from which the fit reserves `epsilon` and `delta` before it draws any noise.
        rng : numpy.random.Generator, optional
            Generator for seeded noise, for studies only; the result states it. None: secure noise.

        Returns
        -------
        BTLResult

        Raises
        ------
        ValueError, TypeError, BudgetExceeded
            Before any budget is spent.
        FitError
            If inference fails after the release. The release is stored in the exception, and
            `from_release` computes the result from it at no additional privacy cost.

        Warns
        -----
        PrivrankWarning
            Before the fit: fewer than half of the worths may be identified. After it: intervals
            are known to undercover; the noisy counts lie outside the range of possible data;
            `delta` is as large as 1 / nobs; or ``penalty=0`` has no finite fit. Warnings depend on
            the release and public facts alone.

        See Also
        --------
        privrank.BTLResult : Results of the fit.
        privrank.contribution_tradeoff : Compare values of `max_rows`.
        privrank.power.BTLPower : Power and sample size.

        Examples
        --------
        >>> result = model.fit(epsilon=1.0, rng=np.random.default_rng(1))
        >>> result.params.round(2).head(3).to_dict()
        {'London': 0.9, 'Paris': 0.26, 'Milano': -0.21}
        """
        epsilon, delta, alpha = checks.check_fit(epsilon, delta, alpha, rng)
        checks.check_choice("method", method, Method)
        checks.check_choice("noise", noise, Noise)
        checks.check_flag("allow_unidentified", allow_unidentified)
        design = self._encoded.design
        check_solver(solver, self._link, design)
        # select what to release, its noise and its shares of epsilon from public numbers
        choice = plan_fit(
            Request(
                design,
                epsilon,
                delta,
                method,
                checks.check_penalty(penalty),
                dependence,
                shares,
                noise,
                self._link,
            )
        )
        plan = plan_comparisons(design, choice, epsilon, delta, by="PrivateBTL")
        check_will_identify(design, plan, allowed=allow_unidentified)
        reader = "PrivateBTL.from_release(error.release)"
        release = release_comparisons(
            self._encoded,
            plan,
            link=self._link,
            solver=solver,
            reader=reader,
            budget=budget,
            rng=rng,
        )
        return fit_error_guard(
            partial(infer, release, penalty=penalty, solver=solver, alpha=alpha, warn=True),
            release,
            reader,
        )

    @staticmethod
    def from_reports(
        tally: Tally,
        *,
        ties: Literal[True, "davidson"] = True,
        link: str | Link = "logit",
        penalty: float | Literal["auto"] = "auto",
        solver: Solver = "newton",
        alpha: float = 0.05,
    ) -> BTLResult:
        """Fit the model to a tally of local reports.

        Parameters
        ----------
        tally : Tally
            Local reports, counted by ``protocol.tally(reports)``. The protocol asks each respondent
            for one pair, such as :class:`privrank.local.Comparisons`, or for the order of a few
            items, :class:`privrank.local.SubRanking`. Orders of at least 3 items can be used for
            up to 50 items. Local reports contain no covariates and no order of presentation.
        ties : True or "davidson"
            How reported ties are treated, if the protocol allows them: as half a win for each item,
            or as answers with a parameter for ties.
        link, penalty, solver, alpha
            See the class and :meth:`fit`.

        Returns
        -------
        BTLResult
            Standard errors combine sampling error and randomised response. The curator adds no
            noise.

        See Also
        --------
        privrank.local.Comparisons : The protocol that asks for one pair.
        privrank.local.SubRanking : The protocol for orders; more accurate from epsilon 1.946 on.

        Notes
        -----
        **Statistic.** Pairs of Plackett-Luce rankings follow the worths of that model, for any
        choice of the subsets that were asked. For other rankings the worths give the best fit to
        the pairs, each pair weighted by how often it was asked. Standard errors, tests and
        intervals account for the dependence between pairs of one local report (proof:
        :func:`privrank.local.estimates.release_wins`). Intervals assume that pairs follow the
        worths. If they do not, for example with opposing groups of respondents, and epsilon is
        large, intervals can be too narrow.

        Examples
        --------
        >>> from privrank.local import Comparisons, SubRanking
        >>> protocol = Comparisons(["tea", "milk"], epsilon=2.0)
        >>> rng = np.random.default_rng(1)
        >>> reports = protocol.simulate(np.array(300 * [[1, 2]] + 100 * [[2, 1]]), rng)
        >>> pr.PrivateBTL.from_reports(protocol.tally(reports)).ranks().to_dict()
        {'tea': 1, 'milk': 2}

        Orders of three items:

        >>> protocol = SubRanking(["tea", "coffee", "milk", "water"], epsilon=3.0, size=3)
        >>> rankings = pr.Mallows(protocol.items, phi=0.6).rvs(800, rng)
        >>> result = pr.PrivateBTL.from_reports(protocol.tally(protocol.simulate(rankings, rng)))
        >>> result.params.round(2).to_dict()
        {'tea': 0.55, 'coffee': 0.25, 'milk': -0.19, 'water': -0.6}
        """
        return infer(
            with_link(release_wins(tally, "PrivateBTL", ties=ties), find(link)),
            penalty=penalty,
            solver=solver,
            alpha=alpha,
            warn=True,
        )

    @staticmethod
    def from_release(
        release: Release,
        *,
        penalty: float | Literal["auto"] = "auto",
        solver: Solver = "newton",
        alpha: float = 0.05,
        link: str | Link | None = None,
    ) -> BTLResult:
        """Fit the model to an existing release, at no additional privacy cost.

        Parameters
        ----------
        release : Release
            The release of a :class:`PrivateBTL` fit, or of a selection with public or declared pair
            counts, such as ``PrivateTopK(...).fit(...).release``.
        penalty, solver, alpha
            See :meth:`fit`.
        link : {"logit", "probit"} or Link, optional
            A link other than the link of the original fit. Released counts can be analysed under
            any link: by the matching loss, or by maximum likelihood if the release contains the
            wins of every pair.

        Returns
        -------
        BTLResult

        See Also
        --------
        privrank.from_json : Rebuild a complete result.

        Examples
        --------
        Use a release of net wins again with another link:

        >>> release = model.fit(epsilon=1.0, rng=np.random.default_rng(1)).release
        >>> probit = pr.PrivateBTL.from_release(release, link="probit", penalty=0)
        >>> probit.params.round(2).head(2).to_dict()
        {'London': 0.55, 'Paris': 0.16}
        """
        check_release(release)
        if link is not None:
            release = with_link(release, find(link))
        return infer(release, penalty=penalty, solver=solver, alpha=alpha, warn=True)


def check_solver(solver: object, link: Link, design: Design) -> None:
    """Refuse an unknown solver, and cvxpy for a loss that it does not support."""
    checks.check_choice("solver", solver, Solver)
    if solver == "cvxpy" and design.davidson:
        raise ValueError(
            "solver='cvxpy' supports the logistic loss only. With ties='davidson' use "
            "solver='newton' or solver='lbfgs'."
        )
    if solver == "cvxpy" and link != LOGIT:
        raise ValueError(
            f"solver='cvxpy' supports the logistic loss only. With link={link.name!r} use "
            f"solver='newton' or solver='lbfgs'."
        )


def with_link(release: Release, link: Link) -> Release:
    """Return the release of counts with another link."""
    if SIDES in release.parts and link != LOGIT:
        raise ValueError(
            "link must be 'logit' for a release with pair_counts='proportional'. Omit link."
        )
    # counts do not depend on the link; objective perturbation minimises the loss of one link
    if WORTHS in release.parts and link != release.link:
        raise ValueError(
            f"link must be {release.link.name!r}, the link of this release: objective perturbation "
            f"released worths, not counts. Fit again, or use method='counts' to release counts."
        )
    if release.design.davidson and link != LOGIT:
        raise ValueError(
            "link must be 'logit' for a release with ties='davidson'. Omit link. For another link, "
            "fit again with ties=True, which counts ties as half wins."
        )
    if release.design.weights is not None and link != LOGIT:
        raise ValueError("link must be 'logit' for a release with weights=. Omit link.")
    return replace(release, link=link)


def infer(
    release: Release,
    *,
    penalty: float | Literal["auto"] = "auto",
    solver: Solver = "newton",
    alpha: float = 0.05,
    warn: bool = False,
) -> BTLResult:
    """Fit the model to a release of comparisons, by post-processing.

    Takes the arguments of :meth:`PrivateBTL.fit`, and whether to emit the warnings of the result.
    The release of objective perturbation fixes its ridge.
    """
    # compute the scores, their information and the worths; covariances follow on request
    if release.design.unknown:
        raise ValueError(
            "release must contain pair counts, but this selection released none. Fit PrivateBTL, "
            "or declare pair_counts for the selection."
        )
    requested = checks.check_penalty(penalty)
    check_solver(solver, release.link, release.design)
    equations = score_equations(release)
    fitted = estimate(equations, release, requested, solver=solver)
    messages = fit_warnings(release, equations, fitted)
    if warn:
        checks.warn(*messages)
    return BTLResult(
        release=release,
        alpha=checks.check_alpha(alpha),
        requested="auto" if requested is None else requested,
        solver=solver,
        estimate=fitted,
        warnings=messages,
    )
