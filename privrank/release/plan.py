"""Plans of releases: statistics with calibrated noise, fixed from public numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from privrank.privacy.knorm import CubeNoise, PermutohedronNoise
from privrank.privacy.netnoise import ZeroSumLaplace
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release.names import WORTHS
from privrank.util.arrays import immutable

Noise = DiscreteLaplace | DiscreteGaussian | CubeNoise | PermutohedronNoise | ZeroSumLaplace

Setting = float | str | bool

# Names of the settings of an objective perturbation: ridge, noise, its cells, and the gradient.
_OBJECTIVE = ("gamma", "lambda", "cell", "tolerance")

QUIET = DiscreteLaplace(0.0)
"""No noise."""


def equivalent_variance(distribution: Noise, items: int) -> float:
    """Return the variance of independent noise whose differences vary like a distribution's.

    Differences within vectors that sum to 0 vary like differences of independent
    numbers of m / (m - 1) their variance.
    """
    if isinstance(distribution, PermutohedronNoise | ZeroSumLaplace):
        # entries have covariance -variance / (m - 1), so a difference varies by 2 m / (m - 1) of it
        return distribution.variance * items / (items - 1)
    return distribution.variance


@immutable
@dataclass(frozen=True, slots=True)
class PartPlan:
    """One statistic on a lattice, with the noise that will be added to it.

    Parameters
    ----------
    noise : Noise or None
        Distribution of the noise, in lattice steps; None for values that have none of their own,
        such as an order found in noisy numbers.
    sensitivity : int
        Sensitivity of the statistic in lattice steps, in the norm of the noise: l1 for discrete and
        zero-sum Laplace noise, the maximum norm for discrete Gaussian and cube noise, and
        permutohedra of rank differences for permutohedron noise.
    epsilon : float
        Epsilon of this part.
    step : float
        Size of one lattice step in the statistic's own unit (0.5 for half wins).
    fineness : int
        Lattice steps in one step of the exact statistic.
    rho : float or None
        Zero-concentrated privacy of Gaussian noise; None for a pure part. Archives do not keep it.
    """

    noise: Noise | None
    sensitivity: int
    epsilon: float
    step: float = 1.0
    fineness: int = 1
    rho: float | None = None


@immutable
@dataclass(frozen=True, slots=True)
class Plan:
    """What a fit will release.

    Parameters
    ----------
    by : str
        The model or test that spends, for the ledger. Archives do not store it.
    mechanism : str
        Name of the mechanism in a summary.
    method : str
        The key by which inference selects a reader of the release.
    epsilon, delta : float
        The guarantee of all parts together, per unit.
    parts : mapping of str to PartPlan
        The statistics with their noise.
    settings : mapping of str to float, str or bool
        Public constants and choices of the method.
    rho : float or None
        Zero-concentrated privacy of all parts together, if it is known.
    """

    by: str
    mechanism: str
    method: str
    epsilon: float
    delta: float
    parts: Mapping[str, PartPlan]
    settings: Mapping[str, Setting] = field(default_factory=dict)
    rho: float | None = None

    def number(self, name: str) -> float:
        """Return a setting that is a number."""
        return float(self.settings[name])


@immutable
@dataclass(frozen=True, slots=True)
class Perturbation:
    """Public numbers of one objective perturbation, stored in the settings of its plan."""

    gamma: float
    scale: float
    cell: float
    tolerance: float
    part: PartPlan
    """The worths that are published, with the noise of the output."""

    @property
    def settings(self) -> dict[str, Setting]:
        """The numbers of the objective."""
        return dict(
            zip(_OBJECTIVE, (self.gamma, self.scale, self.cell, self.tolerance), strict=True)
        )

    @classmethod
    def of(cls, plan: Plan) -> Perturbation:
        """Read the numbers back from a plan."""
        # the settings contain the objective, the part contains the noise of the output
        gamma, scale, cell, tolerance = map(plan.number, _OBJECTIVE)
        return cls(gamma, scale, cell, tolerance, plan.parts[WORTHS])
