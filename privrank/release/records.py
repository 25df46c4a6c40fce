"""The public facts of a survey as JSON has them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from privrank.privacy.offered import Offered
from privrank.release.survey import ASSERTED, Covariates, Design, PairCounts, Sample
from privrank.release.weights import Weights


def record_of(facts: Any) -> dict[str, Any]:
    """Return public facts by name, as JSON has them, without what the design does not have.

    Pairs that follow from offered sets are left out.
    """
    values = {part: getattr(facts, part.name) for part in fields(facts)}
    if getattr(facts, "offered", None) is not None:
        values = {part: None if part.name == "pairs" else value for part, value in values.items()}
    return {
        part.name: _plain(value)
        for part, value in values.items()
        if value is not None or part.default is not None
    }


def _plain(value: Any) -> Any:
    if isinstance(value, PairCounts) and value.origin in ASSERTED:
        return {"origin": value.origin, "each": float(value.count[0])}
    if isinstance(value, Covariates | PairCounts | Offered | Weights):
        return record_of(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


def survey_of(record: Mapping[str, Any]) -> Design | Sample:
    """Return the public facts that :func:`record_of` has written."""
    facts = {name: _tupled(value) for name, value in record.items()}
    if record["kind"] not in ("public", "private"):
        return Sample(**facts)
    if (pairs := record["pairs"]) is not None:
        facts["pairs"] = (
            PairCounts.equal(len(facts["items"]), pairs["each"], pairs["origin"])
            if pairs["origin"] in ASSERTED
            else PairCounts(**pairs)
        )
    for name, kind in (("covariates", Covariates), ("offered", Offered), ("weights", Weights)):
        if name in record:
            values = {part: _tupled(value) for part, value in record[name].items()}
            facts[name] = kind(**values)
    return Design(**facts)


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list) else value
