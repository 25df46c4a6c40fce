"""What leaves a tally: a release like that of any mechanism, which spent nothing at the curator."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privrank.hypotheses.nulls import public_generator
from privrank.local.client import protocol_from_json
from privrank.local.protocols_orders import AdaptiveKwikSort
from privrank.local.tally import UNLIKELY, Tally
from privrank.release.names import GAIN, ORDER, REJECTED, UNEVEN
from privrank.release.plan import QUIET, PartPlan, Plan, Setting
from privrank.release.release import Release
from privrank.release.survey import Sample

__all__ = ["Values", "check_protocol", "check_tally", "fixed_point", "public_order", "release_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Values = Mapping[str, tuple[NDArray[np.int64], float]]
"""Released numbers by name: whole numbers, and the size of their step."""

_BITS = 50


def release_of(
    tally: Tally,
    values: Values,
    *,
    by: str,
    method: str,
    settings: Mapping[str, Setting],
    survey: object = None,
    found: Mapping[str, float] | None = None,
) -> Release:
    """Return the release that holds these numbers, computed from a tally.

    Parameters
    ----------
    tally : Tally
        Accepted reports, and how many were rejected.
    values : mapping of str to (ndarray of int64, float)
        The parts: whole numbers, and the size of their step.
    by, method : str
        The class that infers, and the key by which it finds how to read the release.
    settings : mapping
        Public constants beside the protocol and the numbers of rejected reports.
    survey : Design or Sample, optional
        Public facts; by default rankings of the protocol's items, one of each respondent.
    found : mapping of str to float, optional
        Numbers found in the values.

    Returns
    -------
    Release
    """
    protocol = tally.protocol
    plan = Plan(
        by=by,
        mechanism=protocol.kind,
        method=method,
        epsilon=protocol.epsilon,
        delta=0.0,
        parts={
            name: PartPlan(None if name == ORDER else QUIET, 0, 0.0, step)
            for name, (_, step) in values.items()
        },
        settings={
            "protocol": protocol.to_json(),
            **{REJECTED + reason: number for reason, number in tally.rejected.items()},
            **({UNEVEN: uneven} if (uneven := tally.commonest[2]) < UNLIKELY else {}),
            **settings,
        },
    )
    facts = Sample("rankings", protocol.items, tally.n, "respondent", 1)
    return Release(
        plan=plan,
        survey=facts if survey is None else survey,  # type: ignore[arg-type]
        source="respondents",
        values={name: numbers for name, (numbers, _) in values.items()},
        tie_break=public_order(len(protocol.items)),
        found=found or {},
    )


def check_protocol(release: Release) -> None:
    """Refuse an archived release that is not of the protocol that it names."""
    settings = release.plan.settings
    protocol = protocol_from_json(str(settings["protocol"]))
    gains = {protocol.gain, protocol.response.gain, settings.get(GAIN, protocol.gain)}
    rejected = [value for name, value in settings.items() if name.startswith(REJECTED)]
    if not (
        (protocol.epsilon, protocol.items) == (release.epsilon, release.survey.items)
        and len(gains) == len({protocol.gain, protocol.response.gain})
        and all(type(number) is int and number >= 0 for number in rejected)
        and 0 <= float(settings.get(UNEVEN, 0.0)) <= 1
    ):
        raise ValueError("release must be of its protocol.")


def check_tally(tally: object) -> None:
    """Refuse what is no tally, and one in which what was asked depends on what was answered."""
    if not isinstance(tally, Tally):
        raise TypeError(
            f"tally must be a protocol's tally of reports, got {type(tally).__name__}: count them "
            f"with protocol.tally(reports)."
        )
    if isinstance(tally.protocol, AdaptiveKwikSort):
        raise ValueError(
            "tally must be of assignments that no answer has influenced, and what an adaptive "
            "protocol asks depends on the answers before: take the result() of its Curator."
        )


def public_order(items: int) -> tuple[int, ...]:
    """Return the public random order in which equal items stand."""
    return tuple(public_generator("order of equal items", items).permutation(items).tolist())


def fixed_point(numbers: FloatArray) -> tuple[IntArray, float]:
    """Return real numbers as whole numbers of a step that is a power of two, to 50 bits."""
    largest = float(np.abs(numbers).max(initial=0.0))
    step = 2.0 ** (math.frexp(largest)[1] - _BITS) if largest else 1.0
    return np.rint(numbers.ravel() / step).astype(np.int64), step
