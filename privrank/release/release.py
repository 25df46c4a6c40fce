"""Releases: public facts and noisy integers, and their archival form.

Inference uses a :class:`Release` and nothing else. Its JSON form restores it exactly. An error
after the budget has been spent is raised as a :class:`FitError`, which contains the release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Literal, TypeVar

import numpy as np

from privrank.distributions.links import BUILT_IN, LOGIT, Link, find
from privrank.privacy.knorm import CubeNoise, PermutohedronNoise, ZeroSumLaplace
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace, NoiseSource
from privrank.release.archived import NOT_JSON, archive, read_archive, verify
from privrank.release.names import REJECTED
from privrank.release.records import record_of, survey_of
from privrank.release.survey import Design, Noise, PartPlan, Plan, Sample
from privrank.util.arrays import IntArray, immutable, readonly_copy

Mechanism = Literal["net wins", "wins and losses", "win matrix", "objective perturbation"]

T = TypeVar("T")

SCHEMA = "privrank-release/2"

_NOISES: dict[str, type[Noise]] = {
    "discrete Laplace": DiscreteLaplace,
    "discrete Gaussian": DiscreteGaussian,
    "cube": CubeNoise,
    "permutohedron": PermutohedronNoise,
    "zero-sum Laplace": ZeroSumLaplace,
}


@immutable
@dataclass(frozen=True, slots=True, eq=False)
class ReleasedPart:
    """One released statistic: its noisy values and the public facts about its noise.

    Parameters
    ----------
    values : ndarray of int64
        Noisy statistic, in lattice steps.
    distribution : Noise or None
        Distribution of the noise, in lattice steps.
    sensitivity : int
        Sensitivity of the statistic, in the norm of the noise.
    epsilon : float
        Epsilon of this part.
    step : float
        Size of one lattice step in the statistic's own unit.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> test = pr.UniformityTest.from_counts({"yes": 61, "no": 37}, categories=["yes", "no"])
    >>> result = test.fit(epsilon=1.0, method="tv", draws=999, rng=np.random.default_rng(1))
    >>> part = result.release.parts["statistic"]
    >>> round(float(part.values[0] * part.step), 3), round(part.epsilon, 6)
    (0.153, 1.0)
    """

    values: IntArray
    distribution: Noise | None
    sensitivity: int
    epsilon: float
    step: float

    @property
    def noise_variance(self) -> float:
        """Noise variance per entry, in the statistic's own unit squared.

        Examples
        --------
        >>> round(part.noise_variance, 6)
        0.000204
        """
        return 0.0 if self.distribution is None else self.step**2 * self.distribution.variance

    @property
    def laplace(self) -> DiscreteLaplace:
        """The discrete Laplace noise of the part.

        Raises
        ------
        ValueError
            If the noise has another distribution.

        Examples
        --------
        >>> round(part.laplace.scale * part.step, 4)
        0.0102
        """
        if not isinstance(self.distribution, DiscreteLaplace):
            raise ValueError(
                "release must have discrete Laplace noise, but its noise has another distribution."
            )
        return self.distribution

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping.

        Examples
        --------
        >>> part.to_record()["noise"]["name"]
        'discrete Laplace'
        """
        noise = self.distribution
        record = None
        if noise is not None:
            parameters = {p.name: _number(getattr(noise, p.name)) for p in fields(noise) if p.init}
            record = {"name": distribution_name(noise), **parameters}
        return {
            "values": self.values.tolist(),
            "step": self.step,
            "noise": record,
            "sensitivity": self.sensitivity,
            "epsilon": _number(self.epsilon),
        }


@lru_cache(maxsize=8)
def _parts(release: Release) -> dict[str, ReleasedPart]:
    """Return the released statistics, made once for a release."""
    return {
        name: ReleasedPart(values, plan.noise, plan.sensitivity, plan.epsilon, plan.step)
        for name, values in release.values.items()
        for plan in [release.plan.parts[name]]
    }


@immutable
@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """Everything a fit lets out of the data, frozen; all of it may be published.

    Parameters
    ----------
    plan : Plan
        The plan of the release, with its calibrated noise.
    survey : Design or Sample
        Public facts of the survey.
    source : {"secure", "seeded", "none", "respondents"}
        Source of the noise; ``"none"`` is the non-private run, ``"respondents"`` the local model,
        in which answers were randomised on the respondents' devices.
    values : mapping of str to ndarray of int64
        The noisy statistics, in lattice steps.
    tie_break : tuple of int
        A uniform permutation of the items, drawn with the noise, that decides between equal values
        if an order must be strict.
    found : mapping of str to float
        Numbers computed from the noisy statistics, such as how far an order is proven; NaN if they
        are unknown.
    link : Link
        Link of the model of paired comparisons, a public choice. Archives store its name. A custom
        link cannot be restored from its name and must be passed again.

    See Also
    --------
    privrank.PrivateBTL.from_release : Reads a release as worths; other models read theirs.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> release = model.fit(epsilon=1.0, rng=np.random.default_rng(1)).release
    >>> release.mechanism, release.source
    ('net wins', 'seeded')
    """

    plan: Plan
    survey: Design | Sample
    source: NoiseSource
    values: Mapping[str, IntArray]
    tie_break: tuple[int, ...]
    found: Mapping[str, float] = field(default_factory=dict)
    link: Link = LOGIT

    def __post_init__(self) -> None:
        """Take private, read-only copies."""
        copies = {name: readonly_copy(values, np.int64) for name, values in self.values.items()}
        object.__setattr__(self, "values", copies)

    @property
    def local(self) -> bool:
        """Whether each respondent's answer was randomised before anybody else had it.

        Examples
        --------
        >>> release.local
        False
        """
        return self.source == "respondents"

    @property
    def rejected(self) -> dict[str, int]:
        """How many reports were rejected in the local model, by reason.

        Examples
        --------
        >>> release.rejected
        {}
        """
        return {
            name.removeprefix(REJECTED): int(self.plan.number(name))
            for name in self.plan.settings
            if name.startswith(REJECTED)
        }

    @property
    def mechanism(self) -> str:
        """Name of the mechanism in a summary.

        Examples
        --------
        >>> release.mechanism
        'net wins'
        """
        return self.plan.mechanism

    @property
    def epsilon(self) -> float:
        """Epsilon of the guarantee, per unit of ``survey.unit``.

        Examples
        --------
        >>> release.epsilon
        1.0
        """
        return self.plan.epsilon

    @property
    def delta(self) -> float:
        """Delta of the guarantee.

        Examples
        --------
        >>> release.delta
        0.0
        """
        return self.plan.delta

    @property
    def parts(self) -> dict[str, ReleasedPart]:
        """The released statistics.

        Examples
        --------
        The noisy net wins, whose unit is `step`:

        >>> part = release.parts["net wins"]
        >>> (part.step * part.values).round(1)
        array([ 95.8, -47.8,  39.9, -87.9])
        """
        return dict(_parts(self))

    @property
    def design(self) -> Design:
        """Public facts of paired comparisons.

        Raises
        ------
        ValueError
            If the release is of rankings or choices.

        Examples
        --------
        >>> release.design.nobs, release.design.max_rows, release.design.kind
        (98, 6, 'public')
        """
        if not isinstance(self.survey, Design):
            raise ValueError(
                "release must be from paired comparisons (PrivateBTL or PrivateTopK), but this "
                f"one is from {self.survey.kind}."
            )
        return self.survey

    @property
    def sample(self) -> Sample:
        """Public facts of a sample of rankings or choices.

        Raises
        ------
        ValueError
            If the release is of paired comparisons.

        Examples
        --------
        >>> test = pr.UniformityTest.from_counts({"yes": 61, "no": 37}, categories=["yes", "no"])
        >>> test.fit(epsilon=np.inf).release.sample.items
        ('yes', 'no')
        """
        if not isinstance(self.survey, Sample):
            raise ValueError(
                "release must be from rankings or choices, but this one is from paired comparisons."
            )
        return self.survey

    def to_record(self) -> dict[str, Any]:
        """Return a JSON-ready mapping (infinite numbers as the word ``"inf"``).

        Examples
        --------
        >>> release.to_record()["epsilon"], list(release.to_record()["parts"])
        (1.0, ['net wins', 'dependence'])
        """
        return {
            "schema": SCHEMA,
            "mechanism": self.mechanism,
            "method": self.plan.method,
            "settings": {name: _number(value) for name, value in self.plan.settings.items()},
            "design": record_of(self.survey),
            "epsilon": _number(self.epsilon),
            "delta": self.delta,
            "rho": None if self.plan.rho is None else _number(self.plan.rho),
            "source": self.source,
            "parts": {name: part.to_record() for name, part in self.parts.items()},
            "tie_break": list(self.tie_break),
            "found": {k: None if math.isnan(v) else v for k, v in self.found.items()},
            "link": self.link.name,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any], link: Link | None = None) -> Release:
        """Rebuild from :meth:`to_record`; `link` is one of the user's own that the record names.

        Examples
        --------
        >>> pr.Release.from_record(release.to_record()).mechanism
        'net wins'
        """
        if not isinstance(record, Mapping) or record.get("schema") != SCHEMA:
            raise ValueError(f"record must be of the form {SCHEMA!r}.")
        # the ledger records who spent; the rest of the plan is in this record
        plan = Plan(
            by="an archive",
            mechanism=record["mechanism"],
            method=record["method"],
            epsilon=float(record["epsilon"]),
            delta=record["delta"],
            parts={
                name: PartPlan(
                    _noise_of(part["noise"]),
                    part["sensitivity"],
                    float(part["epsilon"]),
                    part["step"],
                )
                for name, part in record["parts"].items()
            },
            settings={name: _read(value) for name, value in record["settings"].items()},
            rho=None if record["rho"] is None else float(record["rho"]),
        )
        return cls(
            plan=plan,
            survey=survey_of(record["design"]),
            source=record["source"],
            values={name: _whole(part["values"]) for name, part in record["parts"].items()},
            tie_break=tuple(record["tie_break"]),
            found={k: math.nan if v is None else v for k, v in record["found"].items()},
            link=archived_link(record, link),
        )

    def to_json(self) -> str:
        """Return the release as JSON text, from which :meth:`from_json` rebuilds it exactly.

        Examples
        --------
        >>> text = release.to_json()
        >>> pr.PrivateBTL.from_release(pr.Release.from_json(text)).nobs
        98
        """
        return archive(self.to_record())

    @classmethod
    def from_json(cls, text: str, *, link: Link | None = None) -> Release:
        """Rebuild the release that :meth:`to_json` wrote.

        A fit with a link of your own needs the same `link` again: an archive has its name only.

        Examples
        --------
        >>> pr.Release.from_json(release.to_json()).tie_break == release.tie_break
        True
        """
        return cls.verified(read_archive(text), link)

    @classmethod
    def verified(cls, record: Any, link: Link | None) -> Release:
        """Rebuild an archived release, and refuse a record that no fit can have produced.

        Examples
        --------
        >>> pr.Release.verified(release.to_record(), None).mechanism
        'net wins'
        """
        form = record.get("schema") if isinstance(record, Mapping) else None
        if isinstance(form, str) and form != SCHEMA and form.startswith(SCHEMA.split("/")[0]):
            raise ValueError(
                f"text contains a release of the form {form[:40]!r}, but this version of privrank "
                f"reads {SCHEMA!r}. Read the text with the version that wrote it."
            )
        chosen = archived_link(record, link)
        try:
            release = cls.from_record(record, chosen)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
            raise ValueError(NOT_JSON) from None
        verify(
            release.plan,
            release.survey,
            release.source,
            release.values,
            release.tie_break,
            release.found,
        )
        return release


def check_release(release: object) -> None:
    """Refuse what is not a :class:`Release`."""
    if not isinstance(release, Release):
        raise TypeError(
            f"release must be a privrank.Release, got {type(release).__name__}. Pass the release "
            "of a result, result.release."
        )


def archived_link(record: object, link: Link | None) -> Link:
    """Return the link of an archived release: the built-in one it names, or the user's own."""
    name = record.get("link", LOGIT.name) if isinstance(record, Mapping) else LOGIT.name
    # the name identifies a built-in link; a custom link must be passed again
    if link is None and name not in (known.name for known in BUILT_IN):
        raise ValueError(
            f"link= must be given for this archive. It was made with a custom link, {name!r}, "
            "and an archive stores only the name of a custom link."
        )
    chosen = find(name if link is None else link)
    if chosen.name != name:
        raise ValueError(
            f"link must be the link of the archive, {name!r}, got {chosen.name!r}. Leave "
            "link= out unless you defined your own privrank.Link."
        )
    return chosen


def distribution_name(noise: Noise | None) -> str:
    """Return the name of a distribution of noise in the records, and in summaries."""
    if noise is None:
        return "no noise"
    return next(name for name, kind in _NOISES.items() if kind is type(noise))


def _whole(record: object) -> IntArray:
    """Return archived values, which are whole numbers, though other software may write 1.0."""
    # floats above 2^53 skip whole numbers, so a number rewritten by other software may differ
    values = np.asarray(record)
    whole = values.dtype.kind in "if" and (values == np.rint(values)).all()
    if not whole or (values.dtype.kind == "f" and not (np.abs(values) < 2**53).all()):
        raise ValueError("values must be whole numbers")
    return values.astype(np.int64)


def _noise_of(record: Mapping[str, Any] | None) -> Noise | None:
    if record is None:
        return None
    parameters = {key: _read(value) for key, value in record.items() if key != "name"}
    return _NOISES[record["name"]](**parameters)


def _number(value: Any) -> Any:
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _read(value: Any) -> Any:
    return math.inf if value == "inf" else value


class FrameChanged(ValueError):
    """A later pass over a frame on a cluster did not return the rows of the first pass.

    Its message contains no data, so a `FitError` may quote it.
    """


class FitError(Exception):
    """A fit failed after its budget was spent; what had been released is kept here.

    The message names the type of the error alone, because the text of an error that concerns data
    may quote an answer. To see an error of inference in full, read the release again: the call
    that the message names then raises the error itself.

    Parameters
    ----------
    release : Release or None
        The output of the fit so far. It may be stored (``release.to_json()``) and read again at any
        time: nothing more is spent. None if the fit failed before anything was released.
    reader : str
        The call that reads it again.
    cause : str
        A sentence with the type of the error, or a message without any data.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> try:
    ...     result = model.fit(epsilon=1.0, rng=np.random.default_rng(1))
    ... except pr.FitError as error:  # epsilon is spent, and the release is not lost
    ...     result = pr.PrivateBTL.from_release(error.release, solver="lbfgs")
    >>> result.epsilon
    1.0
    """

    def __init__(self, release: Release | None, reader: str, cause: str = "") -> None:
        super().__init__(release, reader, cause)
        self.release = release
        self.reader = reader
        self.cause = cause

    def __str__(self) -> str:
        """Say what failed and how to go on."""
        if self.release is None:
            return f"Epsilon is spent, and nothing was released. {self.cause}"
        return (
            f"Epsilon is spent, and what was released is the attribute `release` of this error, "
            f"which privrank.{self.reader} reads again and spends nothing. {self.cause}"
        )


def fit_error_guard(compute: Callable[[], T], release: Release | None, reader: str) -> T:
    """Return the value of a function, or raise its failure as a `FitError` with the release.

    Every public fit draws, measures a second stage and computes its result in such a call. If a
    step fails after epsilon has been spent, the user can still read what was released. The error is
    raised after the first one has been handled. Neither the text nor the traceback of the first
    error, which may contain answers, remains in its context. Interruptions pass as they are.

    Parameters
    ----------
    compute : callable
        Takes nothing.
    release, reader
        Those of the :class:`FitError`.
    """
    try:
        return compute()
    except FitError:
        raise
    except FrameChanged as error:
        cause = str(error)
    except Exception as error:
        cause = f"A later step failed with {type(error).__name__}."
    raise FitError(release, reader, cause)
