"""What every summary says about the data, the noise and the guarantee."""

from __future__ import annotations

import math

from privrank.release import DESIGN_EFFECT, MOMENTS, NET, PAIR_COUNTS, WINS, WORTHS, Release

__all__ = [
    "caption",
    "column_name",
    "count_notes",
    "format_pvalue",
    "guarantee",
    "privacy_notes",
    "rank_range",
    "release_facts",
    "title",
]


def guarantee(release: Release, effect: float) -> tuple[tuple[str, str], ...]:
    """Return the header lines every summary shares: data, unit, noise, budget."""
    design = release.design
    counts = {
        "observed": "observed, public" if design.kind == "public" else "observed (non-private)",
        "declared": "declared",
        "equal": "assumed equal",
        "released": "released",
    }["released" if design.pairs is None else design.pairs.origin]
    noise = {
        "secure": "secure (OpenDP)",
        "seeded": "SEEDED, not for publication",
        "none": "none (non-private)",
    }[release.source]
    return (
        ("Items:", str(len(design.items))),
        (f"No. {design.unit.capitalize()}s:", str(design.nobs)),
        ("Neighbours:", f"replace one {design.unit}"),
        ("Design:", design.kind),
        ("Pair counts:", counts),
        ("Mechanism:", _mechanism(release)),
        ("Noise scale:", _scales(release)),
        ("Noise source:", noise),
        ("Std. errors:", _errors(release, effect)),
        (
            "Epsilon:",
            "inf (non-private)" if math.isinf(release.epsilon) else f"{release.epsilon:g}",
        ),
        ("Delta:", f"{release.delta:g}"),
    )


def _mechanism(release: Release) -> str:
    if release.source == "none":
        return f"{release.mechanism}, no noise"
    law = "Laplace" if release.mechanism == "objective perturbation" else "discrete Laplace"
    return f"{release.mechanism}, {law}"


def _scales(release: Release) -> str:
    if WORTHS in release.parts:
        return f"{release.constants['lambda']:.4g}, ridge {release.constants['gamma']:.4g}"
    part = release.parts.get(NET) or release.parts[WINS]
    return f"{part.step * part.law.scale:.4g} (sensitivity {part.step * part.sensitivity:g})"


def _errors(release: Release, effect: float) -> str:
    if MOMENTS[0] in release.parts:
        return "cluster-robust"
    if DESIGN_EFFECT not in release.parts:
        return "independent answers"
    return f"design effect {effect:.2f}" + " (least)" * (effect == 1.0)


def count_notes(release: Release, estimate: str) -> list[str]:
    """Return what to know of the pair counts behind an estimate ("worths towards zero")."""
    pairs = release.design.pairs
    if pairs is None or pairs.origin != "equal":
        return []
    return [
        f"This holds if the pair counts are as assumed, {pairs.count[0]:.4g} for every pair; "
        f"answers that are missing pull the {estimate}."
    ]


def privacy_notes(release: Release) -> list[str]:
    """Return the sentences about the guarantee that go below every summary."""
    design = release.design
    notes = []
    if release.source == "none":
        notes.append("Non-private run (epsilon = inf): this table protects nobody.")
    else:
        factor = f"exp({release.epsilon:g})"
        slack = f", up to a probability of {release.delta:g}" if release.delta else ""
        whom = (
            f"one respondent with all their rows (at most {design.max_rows})"
            if design.unit == "respondent"
            else "one row"
        )
        what = (
            "the answers; who compared which pairs, missing answers included, is taken as public"
            if design.kind == "public"
            else "the answers and who compared which pairs"
        )
        notes.append(
            f"Privacy: replacing {whom} changes the probability of any output by a factor of at "
            f"most {factor}{slack}. This protects {what}."
        )
        if design.unit == "row" and design.max_rows > 1:
            level = release.epsilon * design.max_rows
            notes.append(
                f"Epsilon {release.epsilon:g} is per comparison; a respondent with up to "
                f"{design.max_rows} rows is protected at {level:g}."
            )
        shares = [
            f"{part.epsilon / release.epsilon:.0%} for the {label}"
            for name, label in ((DESIGN_EFFECT, "design effect"), (PAIR_COUNTS, "pair counts"))
            if (part := release.parts.get(name)) is not None
        ]
        if shares:
            notes.append(f"Epsilon includes {' and '.join(shares)}.")
    if release.source == "seeded":
        notes.append("Seeded noise: for studies, examples and tests, not for publication.")
    return notes


def release_facts(release: Release) -> tuple[tuple[str, str], ...]:
    """Return the lines below a result in a table of several."""
    return (
        ("epsilon", f"{release.epsilon:g}"),
        ("delta", f"{release.delta:g}"),
        ("unit", release.design.unit),
        ("design", release.design.kind),
        ("mechanism", release.mechanism),
        ("noise", release.source),
        ("N", str(release.design.nobs)),
    )


def column_name(release: Release) -> str:
    """Return the heading of a result in a table of several."""
    return f"eps={release.epsilon:g}"


def caption(release: Release) -> str:
    """Return the guarantee as a figure's title states it."""
    if release.source == "none":
        return "non-private run"
    seeded = ", seeded noise" if release.source == "seeded" else ""
    return f"epsilon = {release.epsilon:g} per {release.design.unit}{seeded}"


def title(name: str, release: Release) -> str:
    """Return the title of a summary."""
    return f"{name} (non-private)" if release.source == "none" else f"Private {name}"


def rank_range(low: int, high: int) -> str:
    """Return a rank set as it is printed."""
    return f"{low}" if low == high else f"{low}-{high}"


def format_pvalue(value: float) -> str:
    """Return a p-value as it is printed in a sentence."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
