"""The private Bradley-Terry model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from privrank.bradley_terry.estimate import estimate
from privrank.bradley_terry.fit import Solver
from privrank.bradley_terry.readings import score_equations
from privrank.distributions.links import LOGIT, Link, find
from privrank.encode.comparisons import ComparisonColumns, encode_comparisons, formula_columns
from privrank.encode.encoded import Encoded
from privrank.local.estimates import release_wins
from privrank.local.tally import Tally
from privrank.mechanisms.comparisons import release_comparisons
from privrank.plans.calibration import plan_comparisons
from privrank.plans.choice import Dependence
from privrank.plans.comparisons import Method, Noise, Request, plan_fit
from privrank.plans.identified import check_will_identify
from privrank.release.names import SIDES, WORTHS
from privrank.release.release import Release, check_release, fit_error_guard
from privrank.release.survey import Design, DesignKind, Excess, size_of
from privrank.results.btl import BTLResult
from privrank.results.ledger import Budget
from privrank.results.worthtable import fit_warnings
from privrank.util import checks


class PrivateBTL:
    """Bradley-Terry model of paired comparisons under differential privacy.

    P(item1 preferred to item2) = F(worth1 - worth2), with F(t) = 1 / (1 + exp(-t)) unless another
    `link` is chosen. A tie counts as half a win to each, or has a parameter of its own: with
    ``ties="davidson"`` win, tie and loss are as e^(d/2) : e^lambda : e^(-d/2), d the difference of
    worths. A missing answer does not count at all.

    This holds if respondents are independent of each other (else respondent= names their family
    or class), who answers does not depend on the answer, and pairs follow the worths. With item
    covariates, items scatter about a line of their covariates independently of each other. What
    comes about otherwise: :doc:`assumptions </assumptions>`.

    Parameters
    ----------
    comparisons : data frame
        Long comparisons, one row per comparison; pandas, polars, pyarrow, duckdb, dask or any
        other frame that narwhals supports. :func:`privrank.as_comparisons` converts other forms.
    item1, item2, outcome : str
        Column names. `outcome` is 1 when item1 is preferred, 0 for a tie, -1 when item2 is
        preferred, missing when not answered; recode a 0/1 column x as 2 * x - 1. A 0 is refused
        unless `ties` are declared.
    items : sequence of str, optional
        The items, in the order of the report. May be left out where the frame declares them: one of
        :func:`privrank.as_comparisons`, whose call did, or with item columns of one polars Enum.
        Under a public design categoricals do, too, which hold the values that occur.
    respondent : str or None
        Whom epsilon protects; there is no default. The column (or pandas index level) that says who
        answered: the unit of privacy is a respondent with all their rows. None: the unit is one
        comparison, and a respondent with r of them is protected at r times epsilon only.
    counts : str, optional
        Column with how many comparisons a row stands for, 0 included; by default every row is one.
        Each of these comparisons is a row to the unit of privacy and to `max_rows`. A frame with a
        column ``count`` is refused unless something uses it.
    max_rows : int, default 1
        Public bound on the rows of one respondent: the length of the questionnaire, no more. With
        ``respondent=None`` it bounds nothing, and the summary says what epsilon means for a
        respondent with so many.
    excess : {"refuse", "sample"}, default "refuse"
        What becomes of rows beyond the bounds. ``"refuse"``: a frame in which a respondent has more
        than `max_rows` rows, or repeats a pair that `distinct_pairs` promises only once, is an
        error. ``"sample"``, under a private design: each `fit` keeps a secret, uniformly random
        choice of `max_rows` answers of every respondent with more, and one of each repeated pair
        where pairs are distinct.
    distinct_pairs : bool, default True
        Promise that a respondent compares each pair at most once; a bound that the draw keeps under
        ``excess="sample"``.
    ties : bool or "davidson", default False
        Recode a 0/1 column x first, as 2 * x - 1: with True each 0 is read as a tie, as the summary
        says. Whether the questionnaire allows ties: declared, never inferred from the answers. True
        counts a tie as half a win to each, so that worths say who would be preferred, ties divided.
        ``"davidson"`` gives ties a parameter: worths say who is preferred by those who decide, and
        the result says how probable a tie is (``tie_parameter``), which is the same in all groups.
        It takes the logit, covariates of respondents but none of items, at most 200 items, and no
        selection by :class:`privrank.PrivateTopK`.
    design : {"private", "public"}, default "private"
        ``"public"``: who compared which pairs, missing answers included, was fixed in advance and
        is public; not so with lists that leave items out, which are refused. ``"private"``: it is
        protected too.
    pair_counts : None, "release", "equal", "proportional", mapping or data frame, optional
        Under a private design, what is known of the comparisons per pair. ``"release"`` (the
        default) spends a share of epsilon on them. A mapping ``{(item, item): count}`` or a frame
        ``item1, item2, count`` declares them. ``"equal"`` asserts that every unit answered
        `max_rows` questions (a row: one) spread evenly over the pairs. Where that is not so
        intervals do not cover: unanswered questions pull the worths towards zero.
        ``"proportional"``, for 4 items or more, the logit and no covariates, asserts that opponents
        were matched at random, given how often each item was compared: E n_ij = x_i x_j. Wins and
        losses of the items are released, and the pair counts follow. 5 % of epsilon pay for a
        coefficient of how much less often items meet that are far apart in the ranking, which is
        fitted with the worths; categories that cut across the ranking are not seen.
    link : {"logit", "probit"} or Link, default "logit"
        The distribution F: logistic (Bradley and Terry), normal (Thurstone), or a
        :class:`privrank.Link` of your own. Private fits to counts minimise its matching loss, for
        which net wins are enough; the non-private fit is by maximum likelihood.

    Raises
    ------
    ValueError, TypeError
        If the frame or an argument breaks a rule above.

    See Also
    --------
    privrank.as_comparisons : Brings data of another form into that of comparisons.
    privrank.PrivateTopK : The k most preferred items, without a model of worths.
    privrank.PrivateRankAggregation : A consensus of whole rankings.

    Notes
    -----
    **Privacy.** Neighbours replace one unit. `fit` releases noisy integers whose sensitivities are
    proved in :class:`privrank.privacy.sensitivity.UnitSensitivity`; the guarantee is proved in
    :func:`privrank.mechanisms.comparisons.release_comparisons`. Everything in the result is
    computed from that release and public facts. Method ``"counts"`` releases the same counts under
    every link; method ``"objective"`` perturbs the log-likelihood of links whose log-loss has
    bounded slopes (A1), and the matching loss for the probit, which has none
    (:func:`privrank.bradley_terry.losses.loss_bounds`).

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

    @checks.without_weights
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
    ) -> None:
        self._link = find(link)
        if isinstance(comparisons, Encoded):
            self._encoded = comparisons
        else:
            self._encoded = encode_comparisons(
                comparisons,
                ComparisonColumns(item1, item2, outcome, respondent, counts),
                items=items,
                max_rows=max_rows,
                excess=excess,
                distinct_pairs=distinct_pairs,
                ties=ties,
                design=design,
                pair_counts=pair_counts,
            )

    @classmethod
    @checks.without_weights
    def from_formula(cls, formula: str, data: object, **arguments: Any) -> Self:
        """Build the model from a formula.

        Parameters
        ----------
        formula : str
            ``"item1 + item2 + outcome ~ 1"``, or ``"winner + loser ~ 1"`` for decided comparisons.
            Do not drop ties to get there: under a public design which rows remain would depend on
            the answers. In the place of 1, covariates of the units, as ``~ gender + study``: each
            column of the model matrix changes every worth. ``first`` is the advantage of the item
            that a row names first. This order is public, and must be fixed before the answer is
            known: frames whose form does not know it (:func:`privrank.as_comparisons`), winners and
            losers among them, are refused.
        data : data frame
            Frame with these columns; covariates are constant within a respondent.
        **arguments
            The other arguments of :class:`PrivateBTL`, ``respondent=`` among them, which has no
            default, and

            levels : mapping of str to sequence
                Levels of covariates, in the order of the questionnaire; a whole codebook will do.
                Also ``C(study, levels=[...])`` in the formula, a polars Enum, and under a public
                design a categorical column declare them.
            bounds : mapping of str to (low, high)
                Bounds of numeric covariates, which need ``design="public"``.
            item_formula, item_data : str, pandas frame
                Item covariates: worths are linear combinations of the columns of
                ``"prestige + city"``, read from a frame whose index names the items.

        Returns
        -------
        PrivateBTL

        Notes
        -----
        **Privacy.** Covariates cut the units into groups by their declared levels, and net wins are
        released by group and item. A unit is in one group, so this costs no more noise than one
        group does (:attr:`privrank.privacy.sensitivity.UnitSensitivity.net_l1`). A numeric
        covariate, scaled to [-1, 1] by its bounds, multiplies net wins once more, and the noise
        with the number of such sums. Under a public design it is public who has which covariates.
        Under a private one the sizes of the groups are released with noise, and so are the pair
        counts of all groups together unless they are declared. Each has a share of epsilon.

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
        return cls(formula_columns(formula, data, arguments), link=link)

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
        """Spend `epsilon` once and return the fit.

        Parameters
        ----------
        epsilon : float
            Privacy budget of this fit; ``numpy.inf`` for the non-private run.
        delta : float, default 0.0
            Failure probability, in [0, 1); well below 1 / nobs if not 0.
        method : {"auto", "counts", "objective"}
            ``"counts"`` adds integer noise to the net wins, ``"objective"`` perturbs the
            loss (Cai, Chakraborty and Wang, Algorithm 1). ``"auto"`` takes counts under a
            public design, otherwise what predicts the smallest error from public numbers. Counts
            whose pair counts are released too are net wins or, where that is better, a win matrix.
        noise : {"auto", "laplace", "gaussian", "zero-sum-laplace", "permutohedron"}
            Distribution of the noise on the counts. ``"auto"`` takes the one that moves differences
            between items least, by public numbers alone, and the summary says which. For
            respondents who answer most pairs that is ``"permutohedron"``, noise shaped like what
            one of them can change (at most 50 items). Otherwise it mostly is
            ``"zero-sum-laplace"`` (at most 200 items). ``"gaussian"`` needs a `delta`, and pays for
            respondents with many items. A win matrix takes ``"laplace"`` or ``"gaussian"``, wins
            and losses (``pair_counts="proportional"``) the two Laplace distributions.
        penalty : float or "auto"
            Ridge gamma, the term ``gamma |worths|^2 / 2``. A number gives the raw penalised
            worths; ``"auto"`` balances noise and shrinkage and corrects the bias of the ridge.
        solver : {"newton", "lbfgs", "cvxpy"}
            Solver of the convex fit; all agree to 1e-6. ``"cvxpy"`` knows the logit only.
        dependence : {"auto", "worst", "pairs", "none", "cluster"}
            How standard errors allow for the dependence of one respondent's answers. ``"worst"``
            spends a share of epsilon on the largest design effect of any contrast, which then
            counts for all of them; ``"pairs"`` on the second moments of all pairs, which tell where
            it lies. ``"auto"`` takes, for respondents, the one that is predicted to give the
            shorter intervals, and ``"cluster"``, the cluster-robust covariance, in the non-private
            run. ``"none"`` takes all answers as independent: intervals then cover too little
            wherever respondents differ.
        shares : mapping of str to float, optional
            Shares of epsilon for ``"output"`` and ``"order_effect"`` (by default .01 and .15), for
            ``"dependence"`` (.05 to .3), for ``"ties"`` (.15, or nothing where net wins pay for
            them), and for ``"pair_counts"`` and ``"group_answers"`` (those that predict the least
            error from public numbers). With proportional pair counts the number that shows
            how often items met those of their own half of the ranking, ``"opponents"``, takes .05;
            0 leaves it out.
        allow_unidentified : bool, default False
            Whether to spend where less than half of the worths will probably be identified, by
            public numbers: where pair counts are released, and do not exceed their noise. Such a
            fit is refused otherwise.
        alpha : float, default 0.05
            Significance level of intervals and rank sets.
        budget : Budget, optional
            Ledger to reserve from before anything is drawn.
        rng : numpy.random.Generator, optional
            Seeded noise for studies; the result says so. None draws secure noise.

        Returns
        -------
        BTLResult

        Raises
        ------
        ValueError, TypeError, BudgetExceeded
            With a short message, before any budget is spent.
        FitError
            If numerics fail after that: holds the release, which `from_release` reads for nothing.

        Warns
        -----
        PrivrankWarning
            Before spending, where less than half of the worths may remain unidentified. After it
            where intervals are known to undercover, noise has carried the counts beyond what
            answers can give, `delta` is as large as 1 / nobs, or ``penalty=0`` has no finite fit.
            All of it is said from the release and public facts.

        See Also
        --------
        privrank.BTLResult : What is returned.
        privrank.contribution_tradeoff : How many answers of each respondent to take.
        privrank.power.BTLPower : What a fit will detect.

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
        # from public numbers: what to release, its noise and its shares
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
        read = partial(infer, release, penalty=penalty, solver=solver, alpha=alpha, warn=True)
        return fit_error_guard(read, release, reader)

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
        """Fit the model to reports of the local model, which their respondents have randomised.

        Parameters
        ----------
        tally : Tally
            Of a protocol that asks for one pair each, such as :class:`privrank.local.Comparisons`,
            or for the order of a few items, :class:`privrank.local.SubRanking`:
            ``protocol.tally(reports)``. Orders of 3 items and more are read for up to 50 items.
            Reports hold no covariates and no order of naming.
        ties : True or "davidson"
            What reported ties are, if the protocol has any: half a win to each, or answers with a
            parameter of their own.
        link, penalty, solver, alpha
            As of the class and in :meth:`fit`.

        Returns
        -------
        BTLResult
            Standard errors hold sampling and the noise of the responses; the curator adds none.

        See Also
        --------
        privrank.local.Comparisons : The protocol of reports of one pair.
        privrank.local.SubRanking : That of orders, which say more from an epsilon of 1.946 on.

        Notes
        -----
        **Statistic.** Pairs of Plackett-Luce rankings follow the worths of that model, in whatever
        subset they were asked. For other rankings the worths fit the pairs best, each pair with the
        weight of how often it was asked. Standard errors, tests and intervals allow for the
        dependence of the pairs of one report (proof:
        :func:`privrank.local.estimates.release_wins`). Intervals suppose that pairs follow the
        worths. Where they do not, as with camps, and epsilon is large, they can be too narrow.

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
        release = with_link(release_wins(tally, "PrivateBTL", ties=ties), find(link))
        return infer(release, penalty=penalty, solver=solver, alpha=alpha, warn=True)

    @staticmethod
    def from_release(
        release: Release,
        *,
        penalty: float | Literal["auto"] = "auto",
        solver: Solver = "newton",
        alpha: float = 0.05,
        link: str | Link | None = None,
    ) -> BTLResult:
        """Fit the model to a release that was paid for already; nothing more is spent.

        Parameters
        ----------
        release : Release
            From any fit of worths to the same comparisons, or a selection whose pair counts are
            public or declared, such as ``PrivateTopK(...).fit(...).release``.
        penalty, solver, alpha
            As in :meth:`fit`.
        link : {"logit", "probit"} or Link, optional
            Another link than the release was made for. Counts can be read under any: by the
            matching loss, or by maximum likelihood if the release is the wins of every pair.

        Returns
        -------
        BTLResult

        See Also
        --------
        privrank.from_json : Reads a whole result.

        Examples
        --------
        A release of net wins is read again, under another link and for nothing:

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
    """Refuse an unknown solver, and cvxpy for a loss that it cannot state."""
    checks.check_choice("solver", solver, Solver)
    if solver == "cvxpy" and design.davidson:
        raise ValueError(
            "solver='cvxpy' minimises the logistic loss only: use solver='newton' or 'lbfgs' for "
            "ties='davidson'."
        )
    if solver == "cvxpy" and link != LOGIT:
        raise ValueError(
            f"solver='cvxpy' minimises the logistic loss only: use solver='newton' or 'lbfgs' for "
            f"link={link.name!r}."
        )


def with_link(release: Release, link: Link) -> Release:
    """Return a release of counts to be read under another link."""
    if SIDES in release.parts and link != LOGIT:
        raise ValueError(
            "link must stay 'logit' for a release with pair_counts='proportional': leave link= out."
        )
    # counts are the same under every link; perturbed worths minimise the loss of one
    if WORTHS in release.parts and link != release.link:
        raise ValueError(
            f"link must stay {release.link.name!r} for a release of objective perturbation, whose "
            f"worths were fitted under it: fit again, or release counts with method='counts'."
        )
    if release.design.davidson and link != LOGIT:
        raise ValueError(
            "link must be left out for a release with ties='davidson', which is a model of the "
            "logit: fit again with ties=True to read half wins under another link."
        )
    return replace(release, link=link)


def infer(
    release: Release,
    *,
    penalty: float | Literal["auto"] = "auto",
    solver: Solver = "newton",
    alpha: float = 0.05,
    warn: bool = False,
) -> BTLResult:
    """Fit the model to a release of any fit of comparisons: post-processing, nothing is spent.

    Given the arguments of :meth:`PrivateBTL.fit`, of which the ridge of objective perturbation is
    fixed by its release, and whether to emit the result's warnings.
    """
    # scores and their information, then worths that solve them; covariances come when asked for
    if release.design.unknown:
        raise ValueError(
            "release must hold pair counts, and a selection has released none: fit PrivateBTL, or "
            "declare pair_counts= for the selection."
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
