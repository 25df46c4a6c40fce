"""What leaves the data: public facts and noisy integers, and their archival form.

A :class:`Release` is all that inference ever sees. Its JSON form rebuilds it exactly.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privrank.distributions.links import BUILT_IN, LOGIT, Link, find
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace, NoiseSource
from privrank.privacy.zerosum import SphericalNoise, ZeroSumLaplace
from privrank.release.survey import Design, Sample
from privrank.util.arrays import own

__all__ = [
    "DECISION",
    "DESIGN_EFFECT",
    "GROUP_SIZES",
    "MOMENTS",
    "NET",
    "ORDER",
    "ORDER_EFFECT",
    "PAIRS",
    "PAIR_COUNTS",
    "PVALUE",
    "SCORE",
    "STATISTIC",
    "TOTALS",
    "WINS",
    "WORTHS",
    "Law",
    "Mechanism",
    "Part",
    "Release",
    "archived_link",
    "check_release",
    "law_name",
]

IntArray = NDArray[np.int64]

Mechanism = Literal["net wins", "win matrix", "objective perturbation"]

SCHEMA = "privrank-release/1"

NET = "net wins"
WINS = "win matrix"
WORTHS = "worths"
DESIGN_EFFECT = "design_effect"
PAIR_COUNTS = "pair_counts"
GROUP_SIZES, ORDER_EFFECT = "group_sizes", "order_effect"
STATISTIC, DECISION, PVALUE, IMPOSSIBLE = "statistic", "decision", "p-value", "impossible"
PAIRS, TOTALS, SCORE, ORDER = "pairs", "Borda totals", "Kemeny score", "order"
MOMENTS = ("answers by answers", "answers by counts", "counts by counts")
"""Names of the parts of a release; the moments, and the count of impossible observations, exist in
non-private runs only."""

Law = (
    DiscreteLaplace
    | DiscreteGaussian
    | CubeNoise
    | PermutohedronNoise
    | SphericalNoise
    | ZeroSumLaplace
)

_LAWS: dict[str, type[Law]] = {
    "discrete Laplace": DiscreteLaplace,
    "discrete Gaussian": DiscreteGaussian,
    "cube": CubeNoise,
    "permutohedron": PermutohedronNoise,
    "spherical": SphericalNoise,
    "zero-sum Laplace": ZeroSumLaplace,
}


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One noisy integer statistic: its values and all that is public about its noise.

    Parameters
    ----------
    values : ndarray of int64
        Noisy statistic, in lattice steps.
    step : float
        Size of one lattice step in the statistic's own unit (0.5 for half wins).
    law : Law or None
        Law of the noise, in lattice steps; None for values that no noise was added to, such as an
        order found in noisy numbers.
    sensitivity : int
        How far one unit moves the statistic, in lattice steps and as the law measures it: in l1 for
        discrete and zero-sum Laplace noise, in each coordinate for discrete Gaussian and cube
        noise, in permutohedra of rank differences, in the rounded norm of spherical noise.
    epsilon : float
        Share of the budget this part spent.
    """

    values: IntArray
    step: float
    law: Law | None
    sensitivity: int
    epsilon: float

    def __post_init__(self) -> None:
        """Take a private, read-only copy."""
        object.__setattr__(self, "values", own(self.values, np.int64))

    @property
    def noise_variance(self) -> float:
        """Noise variance per entry, in the statistic's own unit squared."""
        return 0.0 if self.law is None else self.step**2 * self.law.variance

    @property
    def laplace(self) -> DiscreteLaplace:
        """The law of discrete Laplace noise.

        Raises
        ------
        ValueError
            If the noise has another law.
        """
        if not isinstance(self.law, DiscreteLaplace):
            raise ValueError("release must have discrete Laplace noise, and this one has another.")
        return self.law

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        return {
            "values": self.values.tolist(),
            "step": self.step,
            "law": _law_record(self.law),
            "sensitivity": self.sensitivity,
            "epsilon": _number(self.epsilon),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Part:
        """Rebuild from :meth:`to_record`; a part with a scale has discrete Laplace noise."""
        law = DiscreteLaplace(record["scale"]) if "scale" in record else _law_of(record["law"])
        epsilon = float(record["epsilon"])
        return cls(record["values"], record["step"], law, record["sensitivity"], epsilon)


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """Everything a fit lets out of the data, frozen; all of it may be published.

    Parameters
    ----------
    mechanism : str
        What was released: ``"net wins"``, ``"win matrix"`` or ``"objective perturbation"`` of
        paired comparisons, the name of a test statistic, or how a consensus was found.
    survey : Design or Sample
        Public facts of the survey.
    epsilon, delta : float
        The guarantee, per unit of ``survey.unit``.
    source : {"secure", "seeded", "none"}
        Where the noise came from; ``"none"`` is the non-private run.
    parts : mapping of str to Part
        The noisy statistics.
    tie_break : tuple of int
        A uniform permutation of the items, drawn with the noise, that orders equal values.
    constants : mapping of str to float
        Public constants of the mechanism, such as lambda and gamma.
    link : Link
        Link of the model of paired comparisons, a public choice. Archives name it; one of the
        user's own cannot be rebuilt from its name and has to be given again.
    """

    mechanism: str
    survey: Design | Sample
    epsilon: float
    delta: float
    source: NoiseSource
    parts: Mapping[str, Part]
    tie_break: tuple[int, ...]
    constants: Mapping[str, float] = field(default_factory=dict)
    link: Link = LOGIT

    @property
    def design(self) -> Design:
        """Public facts of paired comparisons.

        Raises
        ------
        ValueError
            If the release is of rankings or choices.
        """
        if not isinstance(self.survey, Design):
            raise ValueError(
                f"release must be of paired comparisons, as PrivateBTL and PrivateTopK make them, "
                f"and this one is of {self.survey.kind}."
            )
        return self.survey

    @property
    def sample(self) -> Sample:
        """Public facts of a sample of rankings or choices.

        Raises
        ------
        ValueError
            If the release is of paired comparisons.
        """
        if not isinstance(self.survey, Sample):
            raise ValueError(
                "release must be of rankings or choices, and this one is of paired comparisons."
            )
        return self.survey

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping (infinite numbers as the word ``"inf"``)."""
        return {
            "schema": SCHEMA,
            "mechanism": self.mechanism,
            "design": self.survey.to_record(),
            "epsilon": _number(self.epsilon),
            "delta": self.delta,
            "source": self.source,
            "parts": {name: part.to_record() for name, part in self.parts.items()},
            "tie_break": list(self.tie_break),
            "constants": dict(self.constants),
            # what is said of no other link than the logit keeps older archives as they are
            **({} if self.link == LOGIT else {"link": self.link.name}),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], link: Link | None = None) -> Release:
        """Rebuild from :meth:`to_record`; `link` is one of the user's own that the record names."""
        if record["schema"] != SCHEMA:
            raise ValueError(f"record must be of the form {SCHEMA!r}.")
        return cls(
            mechanism=record["mechanism"],
            survey=_survey(record["design"]),
            epsilon=float(record["epsilon"]),
            delta=record["delta"],
            source=record["source"],
            parts={name: Part.from_record(part) for name, part in record["parts"].items()},
            tie_break=tuple(record["tie_break"]),
            constants=record["constants"],
            link=link or archived_link(record, None),
        )

    def to_json(self) -> str:
        """Return the release as JSON text, from which :meth:`from_json` rebuilds it exactly."""
        return json.dumps(self.to_record())

    @classmethod
    def from_json(cls, text: str, *, link: Link | None = None) -> Release:
        """Rebuild the release that :meth:`to_json` wrote.

        A fit with a link of your own needs the same `link` again: an archive has its name only.
        """
        try:
            record = json.loads(text)
        except (TypeError, ValueError):
            record = None
        chosen = archived_link(record, link)
        try:
            return cls.from_record(record, chosen)
        except (TypeError, ValueError, KeyError, AttributeError):
            raise ValueError("text must be JSON written by a release's to_json().") from None


def check_release(release: object) -> None:
    """Refuse what is not a :class:`Release`."""
    if not isinstance(release, Release):
        raise TypeError(
            f"release must be a privrank.Release, got {type(release).__name__}: take the release "
            f"of a result, as in result.release."
        )


def archived_link(record: object, link: Link | None) -> Link:
    """Return the link of an archived release: the built-in one it names, or the user's own."""
    name = record.get("link", LOGIT.name) if isinstance(record, Mapping) else LOGIT.name
    if link is None:
        if name not in (known.name for known in BUILT_IN):
            raise ValueError(
                f"link= must be given for this archive: it was made with a link of the user's own, "
                f"{name!r}, of which an archive holds the name only."
            )
        return find(name)
    if find(link).name != name:
        raise ValueError(
            f"link must be the archive's own, {name!r}, got {find(link).name!r}: leave link= out "
            f"unless it is a privrank.Link of yours."
        )
    return find(link)


def _survey(record: Mapping[str, Any]) -> Design | Sample:
    if record["kind"] in ("public", "private"):
        return Design.from_record(record)
    return Sample.from_record(record)


def law_name(law: Law | None) -> str:
    """Return the name of a law in the records, and in summaries."""
    return next((name for name, kind in _LAWS.items() if kind is type(law)), "no noise")


def _law_record(law: Law | None) -> dict[str, Any] | None:
    if law is None:
        return None
    parameters = {part.name: _number(getattr(law, part.name)) for part in fields(law) if part.init}
    return {"name": law_name(law), **parameters}


def _law_of(record: Mapping[str, Any] | None) -> Law | None:
    if record is None:
        return None
    parameters: dict[str, Any] = {
        name: math.inf if value == "inf" else value
        for name, value in record.items()
        if name != "name"
    }
    return _LAWS[record["name"]](**parameters)


def _number(value: float) -> float | str:
    return "inf" if math.isinf(value) else value
