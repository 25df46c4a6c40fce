"""What every summary says about the data, the noise and the guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from privrank.bradley_terry.dependence import effect_bounded, effect_error, released_effect
from privrank.bradley_terry.paircounts import uncounted
from privrank.distributions.links import BUILT_IN, LOGIT
from privrank.plans.choice import deviation, noise_choices
from privrank.privacy.knorm import PermutohedronNoise
from privrank.privacy.netnoise import ZeroSumLaplace
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release import names
from privrank.release.parts import MAIN, PARTS
from privrank.release.release import Release, ReleasedPart, distribution_name
from privrank.release.survey import Design
from privrank.results.claims import said
from privrank.results.tables import statistic_words
from privrank.util.checks import check_flag

# What comparisons release, in words; the names of mechanisms are among the details.
_RELEASED = {
    "objective perturbation": "noise in the loss",
    **{name: f"noise on {spec.words}" for name, spec in PARTS.items() if spec.main},
}

# What devices do that do not answer by randomised response, by the protocol.
_LOCAL = {"Duchi ball": "Duchi's ball mechanism", "cap Borda": "cap mechanism"}

# Rows of a respondent that say more than a third as much as independent ones are worth their noise.
_WORTH_ROWS = 3

_SIDE_RELEASES = tuple((name, spec.words) for name, spec in PARTS.items() if not spec.main)

# What a statement may rest on, by a word for it, in the order in which they are said: summaries and
# docstrings take their lines from here. ``docs/assumptions.md`` says of each what comes about where
# it does not hold, with its number, and what to do then.
CATALOGUE = {
    "respondents": "respondents are independent of each other (else respondent= names their family "
    "or class)",
    "rows": "rows are independent of each other (else respondent= names person, family or class)",
    "devices": "respondents are independent of each other",
    "answering": "who answers does not depend on the answer",
    "reporting": "whether a report arrives does not depend on what it is about",
    "assigned": "pairs were assigned, not chosen",
    "model": "pairs follow the worths",
    "linear": "items scatter about a line of their covariates independently of each other",
    "null": "H0, taken as exact, is known without error (else null_nobs=)",
    "surveys": "all surveys have equal values (else effects='random') and nobody answered in two",
    "drawn": "surveys are independent of each other and nobody answered in two",
    "sample": "it is read as said of these rankings alone",
}


def header(
    release: Release,
    *lines: tuple[str, str],
    noise: tuple[str, str, str],
    details: bool,
    row: str = "row",
    errors: str = "",
) -> tuple[tuple[str, str], ...]:
    """Return the header of every summary: data, unit, its own lines, noise, budget.

    Given the noise that a curator adds in words, and among its `details` by its names, with its
    scale; what a row is called (one of a frame may stand for several comparisons), and what
    `errors` hold.
    """
    check_flag("details", details)
    kind = release.survey.kind
    unit = release.survey.unit
    return (
        ("Categories:" if kind == "choices" else "Items:", str(len(release.survey.items))),
        (f"No. {unit.capitalize()}s:", str(release.survey.nobs)),
        ("Neighbours:", f"replace one {row if unit == 'row' else unit}"),
        *lines,
        ("Mechanism:", mechanism_words(release, noise[0])),
        *([("Released:", noise[1]), ("Noise scale:", noise[2])] if details else []),
        ("Noise source:", noise_source(release)),
        *([("Std. errors:", errors)] if errors else []),
        *spent(release),
    )


def comparison_header(
    release: Release, effect: float, details: bool
) -> tuple[tuple[str, str], ...]:
    """Return the header lines every summary of comparisons shares, given its design effect."""
    check_flag("details", details)
    origin = "released" if release.design.pairs is None else release.design.pairs.origin
    counts = "assumed equal" if origin == "equal" else origin
    return header(
        release,
        ("Design:", f"{release.design.kind}, pair counts {counts}"),
        noise=(*_mechanism(release), _scales(release)),
        details=details,
        row="comparison",
        errors=_errors(release, effect, details),
    )


def mechanism_words(release: Release, noise: str) -> str:
    """Return the mechanism in words, given those for noise that a curator adds."""
    if release.local:
        return _LOCAL.get(release.mechanism, "randomised response")
    return "no noise" if release.source == "none" else noise


def noise_source(release: Release) -> str:
    """Return where the noise came from, in the words of a summary."""
    return {
        "secure": "secure (operating system)",
        "seeded": "SEEDED, not for publication",
        "none": "none (non-private)",
        "respondents": "respondents' devices",
    }[release.source]


def spent(release: Release) -> tuple[tuple[str, str], ...]:
    """Return the header lines of epsilon and delta."""
    if release.local:
        counts = [f"{number} {reason}" for reason, number in release.rejected.items() if number]
        return (
            ("Epsilon:", f"{release.epsilon:g} per respondent and report"),
            ("Rejected reports:", ", ".join(counts) or "none"),
        )
    epsilon = "inf (non-private)" if math.isinf(release.epsilon) else f"{release.epsilon:g}"
    return ("Epsilon:", epsilon), ("Delta:", f"{release.delta:g}")


def _mechanism(release: Release) -> tuple[str, str]:
    """Return the noise in words, and the mechanism by its names."""
    ties = " and ties" if names.TIES in release.parts else ""
    words = _RELEASED.get(release.mechanism, f"noise on {release.mechanism}")
    named = release.mechanism + ties
    part = _counts(release)
    if release.source in ("secure", "seeded"):
        named += f", {'Laplace' if part is None else distribution_name(part.distribution)}"
    return "noise on wins, losses and ties" if ties else words, named


def _counts(release: Release) -> ReleasedPart | None:
    """Return the net wins, the sides or the win matrix; None for objective perturbation."""
    counts = (release.parts.get(name) for name in MAIN)
    return next((part for part in counts if part is not None), None)


def _scales(release: Release) -> str:
    """Return the scale of the noise, and the sensitivity that it is calibrated to."""
    part = _counts(release)
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
    moved = f"sensitivity {part.step * part.sensitivity:g}"
    if isinstance(distribution, DiscreteGaussian):
        cells = names.WINS in release.parts
        l2 = sensitivity.win_matrix_l2(ties=False) if cells else sensitivity.net_l2
        moved = f"l2 sensitivity {l2:.4g}"
    return f"{part.step * distribution.scale:.4g} ({moved})"


def _choice_notes(release: Release) -> list[str]:
    """Return how far the noise of net wins moves an item, beside the best other distribution."""
    part = release.parts.get(names.NET)
    facts = release.design.covariates
    if part is None or release.source == "none" or (facts is not None and facts.bounds):
        return []
    design = release.design
    m = len(release.design.items)
    # the distributions that a fit chooses from at these shares, and what they would have done
    share = part.epsilon / math.fsum(p.epsilon for p in release.parts.values())
    noises = noise_choices(
        design.sensitivity, release.epsilon, release.delta, share, ties=design.davidson
    )
    others = {distribution_name(noise.distribution): deviation(noise, m) for noise in noises}
    name = distribution_name(part.distribution)
    own = others.pop(name, math.sqrt(part.noise_variance))
    best = sorted(others, key=lambda distribution: others[distribution])
    beside = (
        f"; it would be {others[best[0]]:.4g} with {best[0]}, the best of the others"
        if best
        else ", the only distribution that applies"
    )
    return [
        f"Noise: {name}. Differences between items vary as if each item's net wins had independent "
        f"noise of standard deviation {own:.4g}{beside}."
    ]


def _errors(release: Release, effect: float, details: bool) -> str:
    if names.MOMENTS[0] in release.parts:
        return "cluster-robust"
    if names.DEPENDENCE not in release.parts:
        # net wins alone have no standard errors where item counts are not known
        return "" if uncounted(release) else "independent answers"
    if at_most(release):
        return f"design effect at most {released_effect(release):.2f}"
    if names.LARGEST in release.found and math.isfinite(effect):
        least = " (least)" if details and effect == 1.0 else ""
        return f"design effect {effect:.2f}{least}"
    pairs = details and names.LARGEST not in release.found
    return "second moments of pairs" if pairs else "clustered by respondent"


def at_most(release: Release) -> bool:
    """Return whether sampling errors are upper bounds, as only one of their effect is known."""
    released = names.LARGEST in release.found and release.source != "none"
    # an effect of at most 1 is 1
    return released and effect_bounded(release) and released_effect(release) > 1.0


def sampling_head(releases: Iterable[Release]) -> str:
    """Return the heading of the column of sampling errors, which may be bounds."""
    return "sampling, at most" if any(map(at_most, releases)) else "sampling"


def effect_notes(release: Release) -> list[str]:
    """Return what follows where the release shows no more of the design effect than a bound."""
    effect = released_effect(release) if at_most(release) else 1.0
    return said("bound on the effect", effect > 1.0, effect=effect)


def allowance(release: Release) -> str:
    """Return what errors allow for; the header says which dependence of answers is in them."""
    if release.local:
        return "allowing for sampling and the noise of the responses (the curator adds none)"
    noisy = "allowing for sampling and privacy noise"
    if release.source == "none":
        noisy = "allowing for sampling"
    dependent = {names.MOMENTS[0], names.DEPENDENCE} & set(release.parts)
    if dependent or release.survey.unit == "row":
        return noisy
    return f"{noisy}, as if a respondent's answers were independent"


def outcome_coding(release: Release) -> str:
    """Return how the codes of outcomes were read, where a 0 is one of them."""
    coded = "Outcome 1, 0, -1: first preferred, tie, second preferred. "
    return coded if release.design.ties else ""


def count_notes(release: Release, estimate: str) -> list[str]:
    """Return what to know of the pair counts behind an estimate ("worths towards zero")."""
    pairs = release.design.pairs
    if pairs is not None and pairs.origin == "equal":
        return said("equal counts", count=pairs.count[0], estimate=estimate)
    return said("matched", release.design.matched)


def loss_notes(release: Release, estimator: str) -> list[str]:
    """Return what was minimised, and what its guarantee takes for granted.

    Under the logit there is nothing to say: its matching loss is its log-loss.
    """
    link = release.link
    private = release.source != "none"
    perturbed = private and names.WORTHS in release.parts
    key = "perturbed estimator" if perturbed else "estimator"
    declared = perturbed and link not in BUILT_IN
    bounds = {"link": link.name, "first": link.kappa1, "second": link.kappa2}
    return [
        *said(key, link != LOGIT, estimator=estimator),
        *said("declared link", declared, **bounds),
    ]


def privacy_notes(release: Release, details: bool) -> list[str]:
    """Return the sentences about the guarantee that go below every summary of comparisons.

    Shares of epsilon and other noise that applies are among its `details`, and so is a warning of
    seeded noise, as the header has one.
    """
    design = release.design
    what = "the answers and who compared which pairs"
    if design.kind == "public":
        what = "the answers" if release.local else "the answers, not who answered which pairs"
    notes = [
        privacy_sentence(release, what, "comparison"),
        *level_notes(release, "comparison"),
        *said("pairs asked", release.local),
        *bound_notes(design),
    ]
    return notes + _detail_notes(release) if details else notes


def _detail_notes(release: Release) -> list[str]:
    """Return what epsilon was spent on beside the counts, and what is known of their noise."""
    shares = [
        f"{release.parts[name].epsilon / release.epsilon:.0%} for the {label}"
        for name, label in _SIDE_RELEASES
        if release.source != "none" and name in release.parts and release.parts[name].epsilon
    ]
    notes = said("shares", shares, shares=" and ".join(shares))
    if names.LARGEST in release.found:
        error = effect_error(release)
        most = release.found[names.CEILING]
        notes += said("released effect", error=error, most=most)
    return notes + _choice_notes(release) + seed_notes([release])


def cost_notes(release: Release, effect: float, noisy: bool) -> list[str]:
    """Return what the bound on rows costs where answers of one respondent say much the same.

    Given their design effect, and whether privacy noise counts beside sampling error. Nothing is
    advised where the release cannot tell the effect.
    """
    design = release.design
    known = names.LARGEST in release.found and not at_most(release)
    alike = known and _WORTH_ROWS * effect >= design.max_rows > _WORTH_ROWS
    if not (alike and noisy and design.kind == "private"):
        return []
    return said("rows alike", rows=design.max_rows, independent=design.max_rows / effect)


def bound_notes(design: Design) -> list[str]:
    """Return what is said of rows that were left out so that respondents keep the bounds."""
    answers = "1 answer" if design.max_rows == 1 else f"{design.max_rows} answers"
    pairs = ", one of each pair" if design.distinct_pairs else ""
    return said("rows left out", design.excess != "refuse", kept=answers + pairs)


def level_notes(release: Release, row: str) -> list[str]:
    """Return what epsilon is for a respondent, where it is per row. Given what a row is called.

    **Privacy.** What is (epsilon, delta)-private for one row is (r epsilon, delta')-private for r
    rows, with delta' = delta (1 + exp(epsilon) + ... + exp((r - 1) epsilon)): replace one after
    another.
    """
    survey = release.survey
    most = release.survey.max_rows
    per_row = release.source != "none" and survey.unit == "row"
    return said(
        "level",
        per_row,
        epsilon=release.epsilon,
        row=row,
        whole=f"{release.epsilon * most:g}" if most > 1 else "r times that",
        several=f"up to {most}" if most > 1 else "r",
        delta=", whose delta is larger" if release.delta else "",
    )


def privacy_sentence(release: Release, what: str, row: str = "row") -> str:
    """Return the sentence that says what the guarantee is, `what` being what it protects."""
    survey = release.survey
    if release.source == "none":
        return "Non-private run (epsilon = inf): this table protects nobody."
    factor = f"exp({release.epsilon:g})"
    if release.local:
        return (
            f"Privacy, local: whatever a respondent's ranking is, the probability of any report of "
            f"theirs changes by a factor of at most {factor}, so that nobody needs to be trusted "
            f"with {what}; further reports of a respondent add their epsilons."
        )
    slack = f", up to a probability of {release.delta:g}" if release.delta else ""
    whom = f"one {row if survey.unit == 'row' else survey.unit}"
    if isinstance(survey, Design) and survey.excess == "sample":
        whom += " with all their rows, however many,"
    elif survey.unit == "respondent" and survey.max_rows > 1:
        whom += f" (at most {survey.max_rows} rows)"
    return (
        f"Privacy: replacing {whom} changes no output's probability by more than a factor "
        f"{factor}{slack}. This protects {what}."
    )


def delta_notes(release: Release) -> list[str]:
    """Return the warning that goes with a delta too large to mean anything."""
    large = release.delta * release.survey.nobs >= 1
    return said("large delta", large, delta=release.delta)


def seed_notes(releases: Sequence[Release]) -> list[str]:
    """Return the warning that goes with seeded noise, if any of the releases has it."""
    return said("seeded", any(release.source == "seeded" for release in releases))


def release_facts(release: Release) -> dict[str, str]:
    """Return the lines below a result in a table of several."""
    survey = release.survey
    return {
        "epsilon": f"{release.epsilon:g}",
        "delta": f"{release.delta:g}",
        "unit": survey.unit,
        "design" if isinstance(survey, Design) else "data": survey.kind,
        "mechanism": statistic_words(release.mechanism),
        "noise source": release.source,
        "N": str(survey.nobs),
    }


def caption(release: Release) -> str:
    """Return the guarantee as a figure's title states it."""
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
    """Return what a statement from a release rests on, by the words of the catalogue.

    Given what it rests on beside what the public facts show: the units, and who is heard of.
    """
    if release.local:
        single = isinstance(release.survey, Design) or release.mechanism == "comparisons"
        assigned = ["assigned"] if single else []
        return ["devices", "reporting", *assigned, *more]
    return ["rows" if release.survey.unit == "row" else "respondents", "answering", *more]


def holds_if(keys: Iterable[str]) -> str:
    """Return the sentence of a summary, given words of the catalogue."""
    named = set(keys)
    if named & {"respondents", "rows"}:
        named.discard("devices")
    clauses = [clause for key, clause in CATALOGUE.items() if key in named]
    listed = " and ".join(filter(None, [", ".join(clauses[:-1]), clauses[-1]]))
    return f"This holds if {listed}."
