"""Plans of the releases of rank aggregations, from public numbers alone.

The release of votes with the smallest predicted loss is chosen. The sorts and draws of the papers
release only an order.
"""

import math
from collections.abc import Mapping
from functools import cache
from typing import Literal

import numpy as np

from privrank.consensus.orders import Rule
from privrank.consensus.released import noise_of_scores, vote_weights
from privrank.hypotheses.tails import difference_variance
from privrank.plans.choice import noise_choices
from privrank.privacy.accounting import (
    gaussian_scale,
    integer_scale,
    lattice_scale,
    pure_epsilon,
    split,
)
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise, permutohedron_moment
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.privacy.sensitivity import RankingSensitivity
from privrank.release.names import (
    COVARIANCE,
    FALLBACK,
    NET,
    ORDER,
    PAIR_COUNTS,
    PAIRS,
    QUERIES,
    SCORE,
    TOTALS,
)
from privrank.release.release import Release
from privrank.release.survey import (
    QUIET,
    Design,
    Noise,
    NoiseRequest,
    PartPlan,
    Plan,
    Sample,
    Setting,
    plan_parts,
)
from privrank.util.checks import is_number, quoted

Kind = Literal["cube pairs", "Gaussian pairs", "Laplace pairs", "K-norm totals", "Gaussian totals"]

PAIR_KINDS: tuple[Kind, ...] = ("cube pairs", "Gaussian pairs")
TIE = 2e-4
TIE_SHARE = 0.05
"""Predicted excesses tie if they differ by less than 0.02% of all pairs, or by less than 5%.

If majorities disagree with the scores, Borda's order loses more than that compared with Kemeny's,
at any epsilon (0.04% on the SUSHI survey). Simulated losses are far below predicted losses."""

AHEAD = 5e-3
"""Predicted excess by which Gaussian totals must be better than pairs with at most 1.22 times their
noise, (3 m / (2 (m + 1)))^(1/2). Where that is little, Kemeny's order of shrunken pairs loses as
much on average over models: more where rankings agree little, far less where they agree much, which
no public number tells. Where it is more, noise hides whether they agree
(docs/validation/aggregation_orders.md)."""

LARGEST_ROWS = 10
"""Rankings per respondent: their weights are whole numbers of 1 / lcm(1..max_rows), 1 / 2520."""


def unit_steps(sample: Sample, partial: bool = False) -> int:
    """Return the lattice steps of one unit: lcm(1..max_rows) for respondents, 1 for rows.

    If rankings may be partial it is twice as many, and half votes are then whole numbers of steps.
    """
    halves = 2 if partial else 1
    if sample.unit == "row":
        return halves
    if sample.max_rows > LARGEST_ROWS:
        raise ValueError(
            f"max_rows must be at most {LARGEST_ROWS} for rank aggregation, got "
            f"{sample.max_rows}: average over fewer rankings of each respondent, drawn at random."
        )
    return halves * math.lcm(*range(1, sample.max_rows + 1))


def totals_scale(items: int, epsilon: float, delta: float, steps: int) -> tuple[float, int]:
    """Return the scale of Gaussian noise in Borda totals, and their fineness.

    Notes
    -----
    **Privacy.** A unit adds to the totals `steps` times a point of the permutohedron, and their sum
    is a whole number of steps. Two points of it are at most as far apart as two opposite rankings,
    whose squared distance is m (m^2 - 1) / 3
    (:class:`privrank.privacy.sensitivity.RankingSensitivity`). So the totals are a vector of m
    whole numbers with l2 sensitivity steps (m (m^2 - 1) / 3)^(1/2), as
    :func:`privrank.privacy.accounting.integer_scale` needs it, and nothing else about their lattice
    enters.
    """
    return integer_scale(epsilon, delta, steps * RankingSensitivity(items).borda_l2, items)


def predicted_excesses(
    sample: Sample, epsilon: float, delta: float, share: float = 0.0
) -> dict[Kind, float]:
    """Return the predicted excess of each release from which an order can be computed.

    The excess is a share of all pairs. `share` is the part of the budget for the Kemeny score. The
    excess is inf for Gaussian noise without a delta.

    Notes
    -----
    **Statistic.** Normal noise of standard deviation s reverses a majority of 1/2 + d with
    probability Phi(-d / s), at a loss of 2 d. The expected loss is at most 0.34 s. An order by
    scores reverses a pair if the noise of the difference of its two Borda scores is larger than
    this difference. With mean fractions 1/2 + d_i of all items the difference is m d, so s is the
    standard deviation of the noise divided by n m. The result is an upper guide, because most pairs
    are not at the worst d.
    """
    m = len(sample.items)
    sensitivity = RankingSensitivity(len(sample.items))
    pure = pure_epsilon(epsilon, delta) * (1.0 - share)
    main = epsilon * (1.0 - share)
    pairs = sensitivity.pairs_l1
    variances: dict[Kind, float] = {
        "cube pairs": 2 * m * (pairs + 1) * (pairs + 2) / 3 / pure**2,
        "Laplace pairs": 4 * m * pairs**2 / pure**2,
        "Gaussian pairs": 2 * m * _gaussian(main, delta, sensitivity.pairs_l2),
        "K-norm totals": 2 * m / (m - 1) * (4.0 * permutohedron_moment(m) * (m + 1)) / pure**2,
        "Gaussian totals": 2 * _gaussian(main, delta, sensitivity.borda_l2),
    }
    return {kind: excess_of(variance, sample) for kind, variance in variances.items()}


@cache
def _gaussian(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the variance of Gaussian noise; inf without delta."""
    return gaussian_scale(epsilon, delta, sensitivity) ** 2 if delta > 0.0 else math.inf


def excess_of(variance: float, sample: Sample) -> float:
    """Return the predicted excess, given the noise variance of a difference of two totals."""
    return 0.34 * math.sqrt(variance) / (sample.nobs * len(sample.items))


def choose(kinds: tuple[Kind, ...], excesses: dict[Kind, float]) -> Kind:
    """Return the release with the least predicted excess, or pairs if they tie with it.

    Pairs tie with Gaussian totals up to `AHEAD`, and with all others up to `TIE` and `TIE_SHARE`.
    """
    others = [kind for kind in kinds if kind != "Gaussian totals"]
    least = min(excesses[kind] for kind in others)
    most = max(least + TIE, (1 + TIE_SHARE) * least)
    if "Gaussian totals" in kinds:
        most = min(most, excesses["Gaussian totals"] + AHEAD)
    tied = [kind for kind in others if kind in PAIR_KINDS and excesses[kind] < most]
    return min(tied or kinds, key=lambda kind: excesses[kind])


LARGEST_EXPONENTIAL = 20
"""Items of the exponential mechanism, whose sampler holds 2^m numbers."""


def sort_cap(items: int) -> int:
    """Return a number of queries that a sort rarely exceeds: (5/2) m log m, or all pairs.

    Consistent answers need the largest number of queries, because they produce the most unequal
    lists. For up to 60 items one sort in 900,000 exceeds the number, by the exact distribution for
    random pivots. Such a sort is replaced (:mod:`privrank.published.agkm22`) and is as private as
    any other sort.
    """
    return min(items * (items - 1) // 2, math.ceil(2.5 * items * math.log(items)))


def _plan_published(
    m: int, steps: int, epsilon: float, delta: float, method: str, settings: dict[str, Setting]
) -> Plan:
    """Fix cap and scales of a sort, or the rate of ``"exponential"``, from public numbers.

    Queries have Laplace noise or, with a delta, Gaussian noise if it has the smaller variance. The
    proofs for both are in :mod:`privrank.published.agkm22`.
    """
    xi = pure_epsilon(epsilon, delta)
    pairs = RankingSensitivity(m).pairs_l1
    if method == "exponential":
        if m > LARGEST_EXPONENTIAL:
            raise ValueError(
                f"method='exponential' draws an order of at most {LARGEST_EXPONENTIAL} items, got "
                f"{m}: use method='auto'."
            )
        if delta:
            raise ValueError(
                "method='exponential' does not benefit from a delta. Leave delta out, or use "
                "method='auto'."
            )
        # exp(-rate score) with scores that move by pairs * steps: rate = xi / (2 sensitivity), a
        # little less, so rounding never spends more than xi
        settings["rate"] = math.nextafter(xi, 0.0) / (2 * pairs * steps) * (1.0 - 1e-12)
        return plan_of(
            "exponential mechanism", epsilon, delta, {ORDER: PartPlan(None, 0, xi)}, settings
        )
    hay = method == "kwiksort-hay"
    # for Hay et al. (m - 1) log2 m, rounded up, at most all pairs
    settings["cap"] = q = min(pairs, math.ceil((m - 1) * math.log2(m))) if hay else sort_cap(m)
    # a sort with a cap of all pairs always ends and needs no fallback; the paper's share of a half
    # makes the queries twice as noisy
    shares = {} if hay or q == pairs else {FALLBACK: 0.05}
    # the smaller noise; Gaussian noise uses all of delta, so its epsilon is not increased
    gaussian = _gaussian(epsilon, delta, math.sqrt(q)) < 2.0 * (q / xi) ** 2
    total = epsilon if gaussian else xi
    epsilons = {QUERIES: total} if hay else split(total, shares, QUERIES)
    noises: dict[str, Noise] = {
        name: DiscreteLaplace.calibrate((q if name == QUERIES else pairs) * steps, share)
        for name, share in epsilons.items()
    }
    rho = None
    if gaussian:
        scale = _pairs_scale(epsilons[QUERIES], delta, q, steps)
        noises[QUERIES] = DiscreteGaussian(scale)
        rho = 0.5 * q * (steps / scale) ** 2 + 0.5 * epsilons.get(FALLBACK, 0.0) ** 2
    parts = {name: PartPlan(noise, steps, epsilons[name]) for name, noise in noises.items()}
    parts[ORDER] = PartPlan(None, 0, total)
    return plan_of(
        "KwikSort with a random rest" if hay else "KwikSort", epsilon, delta, parts, settings, rho
    )


AggregationMethod = Literal[
    "auto",
    "kemeny",
    "borda",
    "pairs-laplace",
    "kwiksort",
    "kwiksort-hay",
    "exponential",
    "copeland",
    "local-search",
]

PUBLISHED = ("kwiksort", "kwiksort-hay", "exponential")
"""Methods of the papers, which release only an order."""

Releases = Literal["auto", "pairs"]
_KINDS: dict[str, tuple[Kind, ...]] = {
    "auto": (*PAIR_KINDS, "K-norm totals", "Gaussian totals"),
    "kemeny": PAIR_KINDS,
    "borda": ("K-norm totals", "Gaussian totals"),
    "pairs-laplace": ("Laplace pairs",),
}
"""What each method may release."""

_NO_PAIRS = "method={} releases no pairs. Leave out releases='pairs', or use method='auto'."

MIN_SHARE = 0.05
LARGEST_SHARE = 0.50
"""Bounds of the share of the Kemeny score, if it is requested."""


def plan_aggregation(
    sample: Sample,
    epsilon: float,
    delta: float,
    method: AggregationMethod,
    share: float = 0.0,
    *,
    releases: Releases = "auto",
    partial: bool = False,
    declared: Mapping[str, Setting] | None = None,
) -> Plan:
    """Plan a rank aggregation from public numbers, or raise an error.

    `share` is the share of epsilon of the Kemeny score. ``releases="pairs"`` restricts `auto` to
    releases from which statements about single pairs follow. `partial` rankings may have ties and
    missing items; `declared` contains the declarations about these, for the record.

    Notes
    -----
    **Statistic.** `auto` chooses the release with the least :func:`predicted_excesses`. A larger
    epsilon or delta increases none of these, because every release without delta is also possible
    with delta. By this prediction it cannot lead to a worse release. In case of a tie
    (:func:`privrank.plans.aggregation.choose`) pairs are released, because they contain more
    information, and their Kemeny order is correct if majorities disagree with the scores.
    """
    if not is_number(share) or not (share == 0 or MIN_SHARE <= share <= LARGEST_SHARE):
        raise ValueError(
            f"score_share must be 0 or a number in [{MIN_SHARE:g}, {LARGEST_SHARE:g}], got "
            f"{quoted(share)}."
        )
    share = float(share)
    if releases == "pairs" and method in ("borda", *PUBLISHED):
        raise ValueError(_NO_PAIRS.format(repr(method)))
    steps = unit_steps(sample, partial)
    m = len(sample.items)
    settings: dict[str, Setting] = {"steps": steps, **(declared or {})}
    # the non-private run of a paper's method is one of our algorithms
    if math.isinf(epsilon):
        return _plan_plain(m, steps, delta, method, settings)
    if method in PUBLISHED:
        if share:
            raise ValueError(
                f"method={method!r} releases only an order. Leave out score_share, or use "
                "method='auto'."
            )
        return _plan_published(m, steps, epsilon, delta, method, settings)
    if method in ("copeland", "local-search"):
        raise ValueError(
            f"method={method!r} is for the non-private run, epsilon=numpy.inf: use method='auto'."
        )
    sensitivity = RankingSensitivity(m)
    kinds = PAIR_KINDS if releases == "pairs" and method == "auto" else _KINDS[method]
    kind = choose(kinds, predicted_excesses(sample, epsilon, delta, share))
    # the score is pure; Gaussian noise uses all of delta, so its epsilon is not increased
    main = PAIRS if "pairs" in kind else TOTALS
    whole = epsilon if "Gaussian" in kind else pure_epsilon(epsilon, delta)
    epsilons = split(whole, {SCORE: share} if share else {}, main)
    part = _main_part(kind, m, steps, epsilons[main], delta)
    parts = {main: part, ORDER: PartPlan(None, 0, 0.0)}
    if share:
        most = sensitivity.pairs_l1 * steps
        parts[SCORE] = PartPlan(
            DiscreteLaplace.calibrate(most, epsilons[SCORE]), most, epsilons[SCORE], 1.0 / steps
        )
        settings["score share"] = share
    rho = None
    if isinstance(part.noise, DiscreteGaussian):
        moved = sensitivity.pairs_l2 if main == PAIRS else part.fineness * sensitivity.borda_l2
        rho = 0.5 * (moved * steps / part.noise.scale) ** 2 + 0.5 * epsilons.get(SCORE, 0.0) ** 2
    kemeny: Rule = "EB-Kemeny" if method == "auto" else "Kemeny"
    return plan_of(kemeny if main == PAIRS else "Borda", epsilon, delta, parts, settings, rho)


def plan_orders(
    design: Design,
    epsilon: float,
    delta: float,
    method: AggregationMethod,
    share: float = 0.0,
    *,
    releases: Releases = "auto",
) -> Plan:
    """Plan the aggregation of orders of offered sets from public numbers, or raise an error.

    The arguments are those of :func:`plan_aggregation`. The plan has no order yet, which is
    computed from the released numbers.

    Notes
    -----
    **Statistic.** Votes on pairs are released if every two items were shown together, and if their
    predicted excess ties with that of net wins or is smaller. Both have the noise of
    :func:`privrank.release.survey.plan_parts`.
    """
    if method not in ("auto", "kemeny", "borda") or share or delta:
        raise ValueError(
            "method must be 'auto', 'kemeny' or 'borda' for orders of offered sets, without "
            "score_share and delta. Leave these arguments out."
        )
    if releases == "pairs" and method == "borda":
        raise ValueError(_NO_PAIRS.format(repr(method)))
    counts, _ = vote_weights(design, True)
    paired = np.count_nonzero(counts) == counts.size - len(counts)
    wanted = releases == "pairs" or method == "kemeny"
    if wanted and not paired:
        raise ValueError(
            "rankings must show every two items together in some set for votes on all pairs. Use "
            "method='borda', whose scores are computed from win rates."
        )
    # net wins have the least noise of those that protect them; votes on pairs choose theirs
    quietest = noise_choices(design.sensitivity, epsilon, delta)[0].name
    parts = {
        name: plan_parts(design, NoiseRequest({name: epsilon}, delta, quietest))[name]
        for name in (PAIRS, NET)
    }
    votes, nets = (_excess_of_orders(part, name, design) for name, part in parts.items())
    ahead = paired and votes <= max(nets + TIE, (1 + TIE_SHARE) * nets)
    main = PAIRS if wanted or (method == "auto" and ahead) else NET
    kemeny = "EB-Kemeny" if method == "auto" else "Kemeny"
    rule = kemeny if main == PAIRS else "Borda"
    return plan_of(rule, epsilon, delta, {main: parts[main]}, {}, 0.5 * epsilon**2)


def _excess_of_orders(part: PartPlan, name: str, design: Design) -> float:
    """Return the predicted excess of votes on pairs, or of net wins, of orders of offered sets."""
    assert part.noise is not None
    _, weights = vote_weights(design, name == PAIRS)
    _, mixed = noise_of_scores(weights, name == PAIRS, part.noise)
    mean = float(mixed[np.triu_indices(len(mixed), 1)].mean())
    return 0.34 * part.step * math.sqrt(part.noise.variance * mean) / len(mixed)


def plan_of(
    rule: str,
    epsilon: float,
    delta: float,
    parts: Mapping[str, PartPlan],
    settings: Mapping[str, Setting],
    rho: float | None = None,
) -> Plan:
    """Return the plan of an order that this rule determines."""
    named = ((PAIRS, "pair counts, "), (TOTALS, "Borda totals, "), (NET, "net wins, "))
    noun = "".join(words for name, words in named if name in parts)
    return Plan("PrivateRankAggregation", noun + rule, rule, epsilon, delta, parts, settings, rho)


_pairs_scale = cache(lattice_scale)


def _main_part(kind: Kind, m: int, steps: int, epsilon: float, delta: float) -> PartPlan:
    """Return the plan of the pair counts or the Borda totals."""
    pairs = RankingSensitivity(m).pairs_l1
    if kind == "Gaussian totals":
        scale, fine = totals_scale(m, epsilon, delta, steps)
        moved = fine * steps * RankingSensitivity(m).borda_linf
        return PartPlan(DiscreteGaussian(scale), moved, epsilon, 1.0 / (fine * steps), fine)
    if kind == "K-norm totals":
        body = PermutohedronNoise.calibrate(m, epsilon, steps)
        # this noise multiplies by its fineness itself
        return PartPlan(body, body.fineness * steps, epsilon, 1.0 / (body.fineness * steps))
    noise: Noise
    if kind == "Gaussian pairs":
        noise = DiscreteGaussian(_pairs_scale(epsilon, delta, pairs, steps))
    elif kind == "cube pairs":
        noise = CubeNoise.calibrate(pairs, steps, epsilon)
    elif delta:
        raise ValueError(
            "method='pairs-laplace' does not benefit from a delta. Leave delta out, or use "
            "method='kemeny'."
        )
    else:
        noise = DiscreteLaplace.calibrate(pairs * steps, epsilon)
    return PartPlan(noise, steps, epsilon, 1.0 / steps)


def _plan_plain(
    m: int, steps: int, delta: float, method: AggregationMethod, settings: Mapping[str, Setting]
) -> Plan:
    """Plan the non-private run: exact pair counts, and the requested order."""
    rules: dict[str, Rule] = {
        "auto": "Kemeny",
        "kemeny": "Kemeny",
        "borda": "Borda",
        "copeland": "Copeland",
        "local-search": "local search",
        "kwiksort": "KwikSort",
    }
    if method not in rules:
        raise ValueError(
            f"method={method!r} adds noise and needs a finite epsilon: use method='kemeny' for the "
            f"non-private run."
        )
    # the score uses no epsilon here
    names = {PAIRS: steps, SCORE: RankingSensitivity(m).pairs_l1 * steps}
    parts = {name: PartPlan(QUIET, moved, math.inf, 1.0 / steps) for name, moved in names.items()}
    parts[ORDER] = PartPlan(None, 0, 0.0)
    return plan_of(rules[method], math.inf, delta, parts, settings)


def predicted_excess(release: Release) -> float | None:
    """Return the predicted disagreements beyond the least, as a share of all pairs.

    The prediction uses public numbers, like :func:`predicted_excesses`. It is None without noise
    and for releases of an order alone. The Kemeny order of pairs without shrinkage, and the order
    of KwikSort, follow the noise of each pair. In the local model the mean variance of the
    differences of two Borda scores includes sampling error. So does the variance of a pair, to
    which it adds at most 1/2.
    """
    if math.isinf(release.epsilon):
        return None
    if not release.local and isinstance(release.survey, Design):
        name = PAIRS if PAIRS in release.parts else NET
        return _excess_of_orders(release.plan.parts[name], name, release.survey)
    sample = release.sample
    if release.local:
        if COVARIANCE not in release.parts:  # an adaptive protocol
            return None
        if release.plan.method == "KwikSort":
            counts = np.maximum(release.parts[PAIR_COUNTS].values, 1e-9)
            spread = np.sqrt(release.plan.number("square") / counts) / release.plan.number("gain")
            return float(np.minimum(0.17 * spread, 0.5).mean())
        errors = release.parts[COVARIANCE]
        m = len(sample.items)
        covariance = errors.step * errors.values.reshape(m, m)
        differences = 2.0 * (m * np.trace(covariance) - covariance.sum()) / (m * (m - 1))
        return excess_of(sample.nobs**2 * float(differences), sample)
    pairs = PAIRS in release.parts
    part = release.parts.get(PAIRS if pairs else TOTALS)
    if part is None:
        return None
    if pairs and release.plan.method != "EB-Kemeny":
        return 0.34 * math.sqrt(part.noise_variance) / sample.nobs
    assert isinstance(
        part.distribution, DiscreteLaplace | DiscreteGaussian | CubeNoise | PermutohedronNoise
    )
    return excess_of(
        part.step**2 * difference_variance(part.distribution, len(sample.items), pairs), sample
    )


def cautions(release: Release) -> tuple[str, ...]:
    """Return the cautions about a release, from public numbers alone.

    Notes
    -----
    **Privacy.** Take m! unanimous data sets, one per order. A pure mechanism that finds the order
    of each with probability above 1/2 gives, on any one of them, each of the others at least
    exp(-epsilon n) / 2. So epsilon n must be at least about log m! (packing).
    """
    m = len(release.survey.items)
    n = release.survey.nobs
    unit = release.survey.unit
    epsilon = release.epsilon
    notes = []
    if release.delta == 0.0 and epsilon * n < math.lgamma(m + 1):
        notes.append(
            f"Too few {unit}s: epsilon times their number is {epsilon * n:.3g}, and "
            f"below {math.lgamma(m + 1):.3g} (the logarithm of {m}!) no pure epsilon-private "
            f"method can find the order of {m} items."
        )
    excess = predicted_excess(release)
    if excess is not None and excess > 0.01:
        notes.append(
            f"The consensus may disagree with the rankings on {min(excess, 0.5):.1%} more of all "
            f"pairs than the best possible order. Use more {unit}s or a larger epsilon."
        )
    return tuple(notes)
