"""Facts of the data, the noise and the privacy guarantee that every summary states."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from privrank.bradley_terry.dependence import effect_bounded, effect_error, released_effect
from privrank.bradley_terry.paircounts import uncounted
from privrank.distributions.links import BUILT_IN
from privrank.plans.choice import deviation, noise_choices
from privrank.privacy.knorm import PermutohedronNoise, ZeroSumLaplace
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release import names
from privrank.release.release import Release, ReleasedPart, distribution_name
from privrank.release.survey import INTERCEPT, MAIN, PARTS, Design, Sample
from privrank.results.claims import ERRORS, said, warned
from privrank.results.tables import statistic_words

# Local mechanisms other than randomised response, by protocol.
_LOCAL = {"Duchi ball": "Duchi's ball mechanism", "cap Borda": "cap mechanism"}

# Shown names of the statistics of comparisons.
_STATISTICS = {
    "objective perturbation": "perturbed objective",
    **{name: spec.words for name, spec in PARTS.items() if spec.main},
}

# Shown names of choices from offered sets: the model, and the statistic.
_CHOICES = {
    "best": ("First Choice", "first choices"),
    "worst": ("Worst Choice", "last choices"),
    "best-worst": ("MaxDiff", "best minus worst"),
    "order": ("Plackett-Luce", "net wins"),
}

# Further statistics of the estimates, released with the main one.
_MORE = {
    names.TIES: "ties",
    names.ITEM_COUNTS: "item counts",
    names.ANSWERED: "answered tasks",
}

# Shown names of the sources of noise.
SOURCES = {
    "secure": "secure (system RNG)",
    "seeded": "seeded (do not publish)",
    "none": "none",
    "respondents": "local randomisation",
}

# Descriptions of the pair counts, by their origin.
_ORIGINS = {
    "observed": "pair counts known",
    "declared": "pair counts declared",
    "equal": "pair counts assumed equal",
    "proportional": "pair counts proportional",
    "unknown": "pair counts unknown",
    "released": "noisy pair counts",
}

# Advise fewer rows per respondent if they are worth at most this many independent rows.
_WORTH_ROWS = 3


@dataclass(frozen=True, slots=True)
class NoiseWords:
    """The noise of a curator in words: distribution, statistic and scale."""

    distribution: str
    statistic: str
    scale: str


def header(
    release: Release,
    *lines: tuple[str, str],
    noise: NoiseWords,
    details: bool,
    covariance: str = "",
) -> tuple[tuple[str, str], ...]:
    """Return the header of a summary, with facts that all summaries share.

    These facts are the data, the privacy unit, the noise, epsilon and delta. `lines` are additional
    lines. The scale of `noise` is shown in details only. `covariance` is the name of the
    covariance.
    """
    survey = release.survey
    mechanism = {"none": "no noise", "respondents": _LOCAL.get(release.mechanism, "")}
    named = [mechanism.get(release.source, noise.distribution) or "randomised response"]
    if details or release.source in ("secure", "seeded"):
        named.append(noise.statistic)
    epsilon = "inf (non-private)" if math.isinf(release.epsilon) else f"{release.epsilon:g}"
    spent = [("Epsilon:", epsilon), ("Delta:", f"{release.delta:g}")]
    if release.local:
        counts = [f"{number:,} {reason}" for reason, number in release.rejected.items() if number]
        spent = [
            ("Epsilon:", f"{epsilon} per respondent and report"),
            ("Local reports rejected:", ", ".join(counts) or "none"),
        ]
    return (
        ("Categories:" if survey.kind == "choices" else "Items:", str(len(survey.items))),
        (f"No. {survey.unit.capitalize()}s:", f"{survey.nobs:,}"),
        ("Privacy unit:", f"{unit_of(release)} (replace one)"),
        *lines,
        ("Mechanism:", ", ".join(filter(None, named))),
        *([("Noise scale:", noise.scale)] if details else []),
        ("Noise:", SOURCES[release.source]),
        *([("Covariance:", covariance)] if covariance else []),
        *spent,
    )


def model_name(release: Release) -> str:
    """Return the name of the model of a release of comparisons, or of choices from sets."""
    offered = release.design.offered
    return release.link.model if offered is None else _CHOICES[offered.answer][0]


def statistic_of(release: Release) -> str:
    """Return the name of the statistic of a release, as it is shown."""
    offered = getattr(release.survey, "offered", None)
    if offered is not None and release.mechanism == names.NET:
        return _CHOICES[offered.answer][1]
    return _STATISTICS.get(release.mechanism, statistic_words(release.mechanism))


def comparison_header(
    release: Release, effect: float, details: bool
) -> tuple[tuple[str, str], ...]:
    """Return the header lines of all summaries of comparisons."""
    weights = release.design.weights
    effective: tuple[tuple[str, str], ...] = ()
    if weights is not None:
        shown = f"{weights.kish:,.0f} (sampling), {weights.effective:,.0f} (noise)"
        effective = (("Effective Units:", shown),)
    origin = "released" if release.design.pairs is None else release.design.pairs.origin
    # net wins, sides or a win matrix; None for objective perturbation
    part = next((release.parts[name] for name in MAIN if name in release.parts), None)
    known = _ORIGINS[origin] if release.design.offered is None else "offered sets known"
    more = [word for name, word in _MORE.items() if name in release.parts]
    lines = header(
        release,
        ("Design:", f"{release.design.kind} ({known})"),
        noise=NoiseWords(
            "Laplace noise" if part is None else noise_name(part, details),
            " and ".join([statistic_of(release), *more]),
            _scales(release, part),
        ),
        details=details,
        covariance=_covariance(release, effect, details),
    )
    return (*effective, *lines)


def offered_lines(release: Release) -> tuple[tuple[str, str], ...]:
    """Return the header lines about offered sets; none for other data."""
    offered = getattr(release.survey, "offered", None)
    if offered is None:
        return ()
    return ("No. Tasks:", f"{offered.tasks:,}"), ("Design:", "public (offered sets known)")


def noise_name(part: ReleasedPart, details: bool) -> str:
    """Return the noise distribution of a released part in words.

    Details give the exact name of the distribution.
    """
    name = distribution_name(part.distribution)
    short = "K-norm" if name in ("permutohedron", "cube") else name.removeprefix("discrete ")
    return f"{name if details else short} noise"


def unit_of(release: Release) -> str:
    """Return the privacy unit; one row of a frame may stand for several comparisons."""
    survey = release.survey
    return row_of(survey) if isinstance(survey, Design) and survey.unit == "row" else survey.unit


def row_of(survey: Design | Sample) -> str:
    """Return the word for a row of a survey."""
    if isinstance(survey, Sample):
        return "row"
    return "comparison" if survey.offered is None else "task"


def _scales(release: Release, part: ReleasedPart | None) -> str:
    """Return the scale of the noise of counts and the sensitivity in words."""
    sensitivity = release.design.sensitivity
    if part is None:
        return f"{release.plan.number('lambda'):.4g}, ridge {release.plan.number('gamma'):.4g}"
    if release.local:
        return f"gain {release.plan.number(names.GAIN):.4g} of a response"
    distribution = part.distribution
    if isinstance(distribution, PermutohedronNoise):
        moved = f"sensitivity {float(sensitivity.net_permutohedra):.4g} permutohedra"
        return f"{part.step / distribution.rate:.4g} ({moved})"
    assert isinstance(distribution, DiscreteLaplace | DiscreteGaussian | ZeroSumLaplace)
    step = part.step
    if release.design.offered is not None:  # in answers, not in steps of the scores
        step /= release.design.step(names.NET, exact=False)
    moved = f"sensitivity {step * part.sensitivity:g}"
    if isinstance(distribution, DiscreteGaussian):
        l2 = (
            sensitivity.win_matrix_l2(ties=False)
            if names.WINS in release.parts
            else sensitivity.net_l2
        )
        moved = f"l2 sensitivity {l2:.4g}"
    return f"{step * distribution.scale:.4g} ({moved})"


def _choice_notes(release: Release) -> list[str]:
    """Return notes on the noise of net wins and on the best alternative."""
    part = release.parts.get(names.NET)
    facts = release.design.covariates
    if part is None or release.source == "none" or (facts is not None and facts.bounds):
        return []
    design = release.design
    # the candidate distributions at these shares, and their standard deviations
    share = part.epsilon / math.fsum(p.epsilon for p in release.parts.values())
    noises = noise_choices(
        design.sensitivity, release.epsilon, release.delta, share, ties=design.davidson
    )
    others = {
        distribution_name(noise.distribution): deviation(noise, len(design.items))
        for noise in noises
    }
    name = distribution_name(part.distribution)
    own = others.pop(name, math.sqrt(part.noise_variance))
    if not others:
        return said("only noise", noise=name, deviation=own)
    best = min(others, key=lambda distribution: others[distribution])
    return said("chosen noise", noise=name, deviation=own, other=others[best], next=best)


def _covariance(release: Release, effect: float, details: bool) -> str:
    if names.MOMENTS[0] in release.parts:
        return "cluster-robust"
    if names.DEPENDENCE not in release.parts:
        # net wins alone have no standard errors where item counts are not known
        return "" if uncounted(release) else "nonrobust (independent answers)"
    if at_most(release):
        return f"design effect at most {released_effect(release):.2f}"
    # the effect is missing if the release identifies no difference
    if math.isfinite(release.found.get(names.LARGEST, math.nan)):
        least = " (least)" if details and effect == 1.0 else ""
        return f"design effect {effect:.2f}{least}"
    pairs = details and names.LARGEST not in release.found
    return "second moments of pairs" if pairs else "clustered by respondent"


def at_most(release: Release) -> bool:
    """Return whether sampling errors are upper bounds.

    They are if the release determines only an upper bound of the design effect.
    """
    # an effect of at most 1 is 1
    return (
        names.LARGEST in release.found
        and release.source != "none"
        and effect_bounded(release)
        and released_effect(release) > 1.0
    )


def sampling_head(releases: Iterable[Release]) -> str:
    """Return the heading of the column of sampling errors or bounds."""
    return "sampling, at most" if any(map(at_most, releases)) else "sampling"


def effect_notes(release: Release) -> list[str]:
    """Return a note if only a bound of the design effect is known."""
    effect = released_effect(release) if at_most(release) else 1.0
    return said("bound on the effect", effect > 1.0, effect=effect)


def interval_notes(key: str, release: Release, level: str) -> list[str]:
    """Return notes on intervals of comparisons (by key) and on outcome codes.

    The header names the dependence within respondents that intervals account for.
    """
    dependent = {names.MOMENTS[0], names.DEPENDENCE} & set(release.parts)
    assumed = not dependent and not release.local and release.survey.unit == "respondent"
    return [
        *said(key, level=level, errors=ERRORS[release.source]),
        *said("independent answers", assumed),
        *outcome_notes(release),
    ]


def outcome_notes(release: Release) -> list[str]:
    """Return notes on the coding of outcomes, if 0 is an outcome, and on weights."""
    coded = said(
        "outcomes of three" if release.design.davidson else "outcomes", release.design.ties
    )
    weights = release.design.weights
    if weights is None:
        return coded
    key = "weights" if weights.max_weight is None else "weights, trimmed"
    return [
        *coded,
        *said(key, column=weights.column, most=weights.max_weight),
        *said("rounded weights", weights.moved >= 0.001, moved=weights.moved),
    ]


def count_notes(release: Release, key: str = "equal counts") -> list[str]:
    """Return notes on assumptions about the pair counts."""
    pairs = release.design.pairs
    return (
        said(key, count=pairs.count[0])
        if pairs is not None and pairs.origin == "equal"
        else said("matched", release.design.matched)
    )


def privacy_notes(release: Release) -> list[str]:
    """Return the notes on the privacy guarantee."""
    survey = release.survey
    epsilon = release.epsilon
    if release.source == "none":
        return said("not private")
    if release.local:
        return said("private reports", epsilon=epsilon)
    unit = unit_of(release)
    if isinstance(survey, Design) and survey.excess == "sample":
        unit = f"{unit} (any number of rows)"
    elif survey.unit == "respondent" and survey.max_rows > 1:
        unit = f"{unit} (up to {survey.max_rows} {row_of(survey)}s)"
    # show more digits at a small epsilon, for which exp(epsilon) is close to 1
    digits = 3 if epsilon >= 0.1 else 6
    return [
        *said(
            "private, delta" if release.delta else "private",
            epsilon=epsilon,
            delta=release.delta,
            unit=unit,
            # a power of ten where exp(epsilon) would overflow
            factor=(
                f"{math.exp(epsilon):.{digits}g}"
                if epsilon < 700
                else f"10^{epsilon / math.log(10.0):.0f}"
            ),
        ),
        *level_notes(release),
    ]


def level_notes(release: Release) -> list[str]:
    """Return notes on epsilon per respondent, if epsilon is per row.

    **Privacy.** An (epsilon, delta)-differentially private release for one row is (r epsilon,
    delta')-differentially private for r rows, with delta' = delta (1 + exp(epsilon) + ... + exp((r
    - 1) epsilon)). The proof replaces the rows one after another.
    """
    survey = release.survey
    if survey.unit != "row":
        return []
    return [
        *said(
            "level, bound" if survey.max_rows > 1 else "level",
            epsilon=release.epsilon,
            row=unit_of(release),
            rows=survey.max_rows,
            total=survey.max_rows * release.epsilon,
        ),
        *said("level, delta", release.delta),
    ]


def comparison_privacy(release: Release, details: bool) -> list[str]:
    """Return the privacy notes of summaries of comparisons.

    Details add the shares of epsilon, and the noise of side releases.
    """
    public = release.design.kind == "public"
    curated = release.source in ("secure", "seeded")
    link = release.link
    protected = "protected answers" if release.design.offered is None else "protected choices"
    if release.design.weights is not None:
        protected = "protected weighted answers"
    notes = [
        *privacy_notes(release),
        *said(
            "protected silence" if release.design.silent else protected,
            curated and public,
        ),
        *said("protected pairs", curated and not public),
        *said("pairs asked", release.local),
        *said(
            "declared link",
            names.WORTHS in release.parts and curated and link not in BUILT_IN,
            link=link.name,
            first=link.kappa1,
            second=link.kappa2,
        ),
    ]
    if not details:
        return notes
    shares = [
        f"{release.parts[name].epsilon / release.epsilon:.0%} for the {spec.words}"
        for name, spec in PARTS.items()
        if not spec.main and name in release.parts and release.parts[name].epsilon
    ]
    notes += said("shares", shares and release.source != "none", shares=", ".join(shares))
    if names.LARGEST in release.found:
        most = release.found[names.CEILING]
        notes += said(
            "released effect", math.isfinite(most), error=effect_error(release), most=most
        )
    return notes + _choice_notes(release)


def sample_privacy(release: Release) -> list[str]:
    """Return the privacy notes of summaries of rankings or choices."""
    if isinstance(release.survey, Design):
        key = "protected choices" if release.survey.covariates is None else "public groups of sets"
        return privacy_notes(release) + said(key, release.source != "none")
    sample = release.sample
    key = "protected sample"
    if sample.private_labels:
        key = "protected groups"
    elif sample.groups:
        key = "protected both" if sample.paired else "public groups"
    return privacy_notes(release) + said(key, release.source != "none", kind=sample.kind)


def cost_notes(release: Release, effect: float, noisy: bool) -> list[str]:
    """Return advice to use fewer rows if answers of a respondent are similar.

    `effect` is the design effect of the answers, and `noisy` whether privacy noise is large
    relative to sampling error. There is no advice if the release does not determine the effect.
    """
    design = release.design
    known = names.LARGEST in release.found and not at_most(release)
    alike = known and _WORTH_ROWS * effect >= design.max_rows > _WORTH_ROWS
    if not (alike and noisy and design.kind == "private"):
        return []
    return said("rows alike", rows=design.max_rows, independent=design.max_rows / effect)


def bound_notes(design: Design) -> list[str]:
    """Return a note on the answers used per respondent, if any were left out."""
    return said(
        "pairs left out" if design.distinct_pairs else "rows left out",
        design.excess != "refuse",
        answers=design.max_rows,
    )


def tie_notes(ranks: pd.Series[Any], key: str = "") -> list[str]:
    """Return notes on items that share a rank and (by key) on their order."""
    tied = [", ".join(map(str, part.index)) for _, part in ranks.groupby(ranks) if len(part) > 1]
    return [
        *said("equal estimates", tied, names="; ".join(tied)),
        *said(key, key and tied),
    ]


def delta_notes(release: Release) -> list[str]:
    """Return a warning if delta is too large for a meaningful guarantee."""
    nobs = release.survey.nobs
    return warned("large delta", release.delta * nobs >= 1, delta=release.delta, nobs=nobs)


def release_facts(release: Release) -> dict[str, str]:
    """Return the public facts of a release for a table of several results."""
    survey = release.survey
    return {
        "epsilon": f"{release.epsilon:g}",
        "delta": f"{release.delta:g}",
        "unit": survey.unit,
        "design" if isinstance(survey, Design) else "data": survey.kind,
        "mechanism": statistic_of(release),
        "noise": release.source,
        "N": f"{survey.nobs:,}",
    }


def caption(release: Release) -> str:
    """Return the guarantee in the words of figure titles."""
    if release.source == "none":
        return "non-private"
    if release.local:
        return f"local model, epsilon = {release.epsilon:g} per report"
    delta = f", delta = {release.delta:.2g}" if release.delta > 0 else ""
    return f"epsilon = {release.epsilon:g}{delta} per {release.survey.unit}"


def title(name: str, release: Release) -> str:
    """Return the title of a summary."""
    if release.local:
        return f"Locally Private {name}"
    return f"{name} (non-private)" if release.source == "none" else f"Private {name}"


def assumptions(release: Release, *more: str) -> list[str]:
    """Return the keys of the assumptions of statements from a release.

    The public facts determine the assumptions on units and nonresponse; `more` are additional keys.
    """
    if release.local:
        single = isinstance(release.survey, Design) or release.mechanism == "comparisons"
        return ["devices", "reporting", *(["assigned"] if single else []), *more]
    if isinstance(release.survey, Design):
        made = {
            "tasks": release.survey.silent,
            "weights": release.survey.weights is not None,
            "contests": bool((release.survey.covariates or INTERCEPT).contest),
        }
        more = (*(key for key, holds in made.items() if holds), *more)
    return ["rows" if release.survey.unit == "row" else "respondents", "answering", *more]
