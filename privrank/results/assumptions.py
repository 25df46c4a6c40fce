"""What statements rest on: one catalogue, from which every summary and docstring takes its line.

``docs/assumptions.md`` says of each what comes about where it does not hold, with its number, and
what to do then.
"""

from __future__ import annotations

from collections.abc import Iterable

from privrank.release.release import Release
from privrank.release.survey import Design

# What a statement may rest on, by a word for it, in the order in which they are said.
CATALOGUE = {
    "respondents": "respondents are independent of each other (else respondent= names their class)",
    "rows": "rows are independent of each other (else respondent= names their person or class)",
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


def assumptions(release: Release, *more: str) -> list[str]:
    """Return what a statement from a release rests on, by the words of the catalogue.

    Given what it rests on beside what the public facts show: the units, and who is heard of.
    """
    if release.local:
        single = isinstance(release.survey, Design)
        return ["devices", "reporting", *["assigned"] * single, *more]
    unit = "rows" if release.survey.unit == "row" else "respondents"
    return [unit, "answering", *more]


def holds_if(keys: Iterable[str]) -> str:
    """Return the sentence of a summary, given words of the catalogue."""
    named = set(keys)
    if named & {"respondents", "rows"}:
        named.discard("devices")
    clauses = [clause for key, clause in CATALOGUE.items() if key in named]
    listed = ", ".join(clauses[:-1])
    return f"This holds if {listed}{' and ' * bool(listed)}{clauses[-1]}."
