"""What a fit of paired comparisons may release, and which noise would disturb it least.

All from public numbers; the noise of a choice is calibrated afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from privrank.distributions.links import LOGIT, Link
from privrank.privacy.budget import pure_epsilon
from privrank.privacy.netnoise import MOST_ITEMS, NetNoise, NoiseName, net_noise
from privrank.privacy.sensitivity import Reach
from privrank.release.names import GROUP_ANSWERS, ORDER_EFFECT, PAIR_COUNTS
from privrank.release.plan import equivalent_variance
from privrank.release.release import Mechanism

__all__ = [
    "BALANCED",
    "DEFAULT_SHARES",
    "LEAST_RIDGE",
    "OUTPUT",
    "Choice",
    "deviation",
    "noise_choices",
]

OUTPUT = "output"

LEAST_RIDGE = 1 / 200
"""Least ridge of objective perturbation, over its noise scale."""

DEFAULT_SHARES = {
    OUTPUT: 0.01,
    ORDER_EFFECT: 0.15,
}
"""Default shares of epsilon for the side releases of a fit."""

BALANCED = (PAIR_COUNTS, GROUP_ANSWERS)
"""Side releases whose shares are chosen so that they and the net wins err least together."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a fit is going to release, before noise is calibrated for it.

    Parameters
    ----------
    mechanism : {"net wins", "win matrix", "objective perturbation"}
        The main release.
    shares : mapping of str to float
        Shares of epsilon of the side releases that are wanted: ``"dependence"``,
        ``"pair_counts"``, ``"output"``, ``"group_answers"``, ``"order_effect"``.
    gamma : float
        Ridge of objective perturbation.
    form : {"worst", "pairs", "none", "cluster"}
        What is released of the dependence of a respondent's answers; ``"cluster"`` are the moments
        that the non-private run keeps.
    noise : str
        Distribution of the noise on net wins or on the win matrix.
    link : Link
        Link of the model. What is released depends on it under objective perturbation, and in the
        non-private run, which keeps the wins of every pair met where the link is not the logit.
    """

    mechanism: Mechanism
    shares: Mapping[str, float] = field(default_factory=dict)
    gamma: float = 0.0
    form: Literal["worst", "pairs", "none", "cluster"] = "none"
    noise: NoiseName = "laplace"
    link: Link = LOGIT


def deviation(noise: NetNoise, items: int) -> float:
    """Return the standard deviation, in net wins, of independent noise that harms as much.

    Only differences between items count.
    """
    return math.sqrt(equivalent_variance(noise.law, items)) / noise.fineness


def noise_choices(
    reach: Reach, epsilon: float, delta: float, share: float = 1.0
) -> tuple[NetNoise, ...]:
    """Return the noise of every distribution that applies, the least harmful first.

    Given the guarantee of a fit and the share of epsilon that goes to the net wins.
    """
    found = []
    for name in get_args(NoiseName):
        if reach.items > MOST_ITEMS.get(name, reach.items) or (name == "gaussian" and delta == 0):
            continue
        whole = epsilon if name == "gaussian" else pure_epsilon(epsilon, delta)
        try:
            found.append(net_noise(reach, name, share * whole, delta))
        except ValueError:
            # an epsilon so small that this law would not fit its integers
            if name == "laplace":
                raise
    return tuple(sorted(found, key=lambda noise: deviation(noise, reach.items)))
