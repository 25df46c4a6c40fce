"""What leaves the data: public facts and noisy integers, and their archival form.

A :class:`Release` is all that inference ever sees. Its JSON form rebuilds it exactly.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privrank.budget import Unit
from privrank.noise import DiscreteLaplace, NoiseSource
from privrank.sensitivity import Adjacency, Reach

__all__ = [
    "DESIGN_EFFECT",
    "MOMENTS",
    "NET",
    "PAIR_COUNTS",
    "WINS",
    "WORTHS",
    "Design",
    "DesignKind",
    "Mechanism",
    "PairCounts",
    "Part",
    "Release",
    "check_release",
    "own",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

DesignKind = Literal["public", "private"]
Mechanism = Literal["net wins", "win matrix", "objective perturbation"]
Origin = Literal["observed", "declared", "equal", "released"]

SCHEMA = "privrank-release/1"

NET = "net wins"
WINS = "win matrix"
WORTHS = "worths"
DESIGN_EFFECT = "design_effect"
PAIR_COUNTS = "pair_counts"
MOMENTS = ("answers by answers", "answers by counts", "counts by counts")
"""Names of the parts of a release; the moments exist in non-private runs only."""


def own(values: Any, dtype: Any) -> NDArray[Any]:
    """Return a read-only array that owns its memory, so that no `base` leads back to data."""
    array = np.array(values, dtype=dtype, copy=True)
    array.setflags(write=False)
    return array


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
    """Comparisons per pair as the public may know them.

    Parameters
    ----------
    first, second : ndarray of int64, shape (edges,)
        Positions of the two items in the item list, ``first < second``, sorted.
    count : ndarray of float64, shape (edges,)
        Comparisons of that pair; pairs never met may be left out.
    origin : {"observed", "declared", "equal", "released"}
        Where the numbers come from: counted under a public design, declared by the user, assumed
        equal, or released with noise.
    """

    first: IntArray
    second: IntArray
    count: FloatArray | IntArray
    origin: Origin

    def __post_init__(self) -> None:
        """Take private, read-only copies, sorted by the first item as the solvers need them."""
        order = np.argsort(self.first, kind="stable")
        object.__setattr__(self, "first", own(np.asarray(self.first)[order], np.int64))
        object.__setattr__(self, "second", own(np.asarray(self.second)[order], np.int64))
        object.__setattr__(self, "count", own(np.asarray(self.count)[order], np.float64))

    @classmethod
    def equal(cls, items: int, each: float) -> PairCounts:
        """Return the count `each` on every pair."""
        first, second = np.triu_indices(items, 1)
        return cls(first, second, np.full(len(first), each), "equal")

    @property
    def total(self) -> float:
        """Comparisons in all."""
        return float(self.count.sum())

    def degrees(self, items: int) -> FloatArray:
        """Comparisons each item takes part in."""
        by_first = np.bincount(self.first, self.count, minlength=items)
        return np.asarray(by_first + np.bincount(self.second, self.count, minlength=items))

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping; equal counts shrink to their number."""
        if self.origin == "equal":
            return {"origin": "equal", "each": float(self.count[0])}
        return {
            "origin": self.origin,
            "first": self.first.tolist(),
            "second": self.second.tolist(),
            "count": self.count.tolist(),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], items: int) -> PairCounts:
        """Rebuild from :meth:`to_record`."""
        if record["origin"] == "equal":
            return cls.equal(items, record["each"])
        return cls(record["first"], record["second"], record["count"], record["origin"])


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """The public facts of a paired-comparison survey.

    Parameters
    ----------
    items : tuple of str
        The items, in the declared order.
    nobs : int
        Number of units; public because neighbours replace a unit.
    unit : {"row", "respondent"}
        What one unit is.
    max_rows : int
        Rows a respondent may contribute (declared).
    distinct_pairs : bool
        Whether a respondent compares each pair at most once (declared).
    ties : bool
        Whether the questionnaire allows ties (declared).
    kind : {"public", "private"}
        Whether who compared which pairs is public.
    pairs : PairCounts or None
        Public comparisons per pair; None when they have to be released.
    """

    items: tuple[str, ...]
    nobs: int
    unit: Unit
    max_rows: int
    distinct_pairs: bool
    ties: bool
    kind: DesignKind
    pairs: PairCounts | None

    @property
    def adjacency(self) -> Adjacency:
        """What neighbours may change."""
        return "outcome" if self.kind == "public" else "replace"

    @property
    def reach(self) -> Reach:
        """What one unit can change."""
        rows = self.max_rows if self.unit == "respondent" else 1
        return Reach(len(self.items), rows, self.distinct_pairs, self.adjacency)

    @property
    def nominal_total(self) -> float:
        """Comparisons in all, from public numbers alone."""
        if self.pairs is not None:
            return self.pairs.total
        return float(self.nobs * self.reach.effective_rows)

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        return {
            "items": list(self.items),
            "nobs": self.nobs,
            "unit": self.unit,
            "max_rows": self.max_rows,
            "distinct_pairs": self.distinct_pairs,
            "ties": self.ties,
            "kind": self.kind,
            "pairs": None if self.pairs is None else self.pairs.to_record(),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Design:
        """Rebuild from :meth:`to_record`."""
        facts = dict(record)
        facts["items"] = tuple(record["items"])
        if record["pairs"] is not None:
            facts["pairs"] = PairCounts.from_record(record["pairs"], len(facts["items"]))
        return cls(**facts)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One noisy integer statistic: its values and all that is public about its noise.

    Parameters
    ----------
    values : ndarray of int64
        Noisy statistic, in lattice steps.
    step : float
        Size of one lattice step in the statistic's own unit (0.5 for half wins).
    law : DiscreteLaplace
        Law of the noise, in lattice steps.
    sensitivity : int
        l1 sensitivity in lattice steps.
    epsilon : float
        Share of the budget this part spent.
    """

    values: IntArray
    step: float
    law: DiscreteLaplace
    sensitivity: int
    epsilon: float

    def __post_init__(self) -> None:
        """Take a private, read-only copy."""
        object.__setattr__(self, "values", own(self.values, np.int64))

    @property
    def noise_variance(self) -> float:
        """Noise variance per entry, in the statistic's own unit squared."""
        return self.step**2 * self.law.variance


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """Everything a fit lets out of the data, frozen; all of it may be published.

    Parameters
    ----------
    mechanism : {"net wins", "win matrix", "objective perturbation"}
        What was released.
    design : Design
        Public facts of the survey.
    epsilon, delta : float
        The guarantee, per unit of ``design.unit``.
    source : {"secure", "seeded", "none"}
        Where the noise came from; ``"none"`` is the non-private run.
    parts : mapping of str to Part
        The noisy statistics.
    tie_break : tuple of int
        A uniform permutation of the items, drawn with the noise, that orders equal values.
    constants : mapping of str to float
        Public constants of the mechanism, such as lambda and gamma.
    """

    mechanism: Mechanism
    design: Design
    epsilon: float
    delta: float
    source: NoiseSource
    parts: Mapping[str, Part]
    tie_break: tuple[int, ...]
    constants: Mapping[str, float] = field(default_factory=dict)

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping (infinite numbers as the word ``"inf"``)."""
        return {
            "schema": SCHEMA,
            "mechanism": self.mechanism,
            "design": self.design.to_record(),
            "epsilon": _number(self.epsilon),
            "delta": self.delta,
            "source": self.source,
            "parts": {
                name: {
                    "values": part.values.tolist(),
                    "step": part.step,
                    "scale": part.law.scale,
                    "sensitivity": part.sensitivity,
                    "epsilon": _number(part.epsilon),
                }
                for name, part in self.parts.items()
            },
            "tie_break": list(self.tie_break),
            "constants": dict(self.constants),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Release:
        """Rebuild from :meth:`to_record`."""
        if record["schema"] != SCHEMA:
            raise ValueError(f"record must be of the form {SCHEMA!r}.")
        return cls(
            mechanism=record["mechanism"],
            design=Design.from_record(record["design"]),
            epsilon=float(record["epsilon"]),
            delta=record["delta"],
            source=record["source"],
            parts={
                name: Part(
                    part["values"],
                    part["step"],
                    DiscreteLaplace(part["scale"]),
                    part["sensitivity"],
                    float(part["epsilon"]),
                )
                for name, part in record["parts"].items()
            },
            tie_break=tuple(record["tie_break"]),
            constants=record["constants"],
        )

    def to_json(self) -> str:
        """Return the release as JSON text, from which :meth:`from_json` rebuilds it exactly."""
        return json.dumps(self.to_record())

    @classmethod
    def from_json(cls, text: str) -> Release:
        """Rebuild the release that :meth:`to_json` wrote."""
        try:
            return cls.from_record(json.loads(text))
        except (TypeError, ValueError, KeyError, AttributeError):
            raise ValueError("text must be JSON written by a release's to_json().") from None


def check_release(release: object) -> None:
    """Refuse what is not a :class:`Release`."""
    if not isinstance(release, Release):
        raise TypeError(
            f"release must be a privrank.Release, got {type(release).__name__}: take the release "
            f"of a result, as in result.release."
        )


def _number(value: float) -> float | str:
    return "inf" if math.isinf(value) else value
