"""Yan, Li and Liu (2020), LDP-KwikSort, and the central DP-KwikSort they compare with, corrected.

``method="kwiksort-hay"``: KwikSort with a noisy count C_uv for each comparison, at most q of them;
lists that are not divided when q is used up are left in the random order of the pivots (Hay,
Elagina and Miklau, 2017). To compare with: the default loses less at the same privacy.

**Errata.**

- DP-KwikSort adds Lap((m - 1) log m / epsilon) to C_uv - C_vu. Replacing a ranking moves that
  difference by 2: the noise is half of what is needed. Here it is added to C_uv, which moves by 1.
- Their budget is for (m - 1) log m comparisons, but nothing stops the sort there. It is exceeded
  with probability .11 at m = 10 and .37 at m = 100 for the binary logarithm, nearly always for the
  natural one. Here the sort stops.
- Section 2.1: KwikSort is a 2-approximation; 11/7 is the ratio of the better of KwikSort and a
  random input ranking.

**Privacy.** As for Algorithm 1 of :mod:`privrank.published.agkm22`: at most q counts are asked for
on any data, each moved by at most L when a unit is replaced, so discrete Laplace noise of scale
q L / epsilon makes the transcript epsilon-private. The order is a function of it and of the pivots.

References: https://arxiv.org/abs/1908.04486; Hay, Elagina and Miklau (2017), Differentially private
rank aggregation, SIAM International Conference on Data Mining.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from privrank.plans.aggregation import plan_of
from privrank.plans.excess import unit_steps
from privrank.privacy.budget import pure_epsilon
from privrank.privacy.noise import DiscreteLaplace
from privrank.published.agkm22 import QUERIES, release
from privrank.release.names import ORDER
from privrank.release.plan import PartPlan, Plan, Setting
from privrank.release.survey import Sample

__all__ = ["hay_cap", "plan", "release"]


def hay_cap(m: int) -> int:
    """Return the cap of Hay et al.: (m - 1) log2 m, rounded up, at most all pairs."""
    return min(m * (m - 1) // 2, math.ceil((m - 1) * math.log2(m)))


def plan(
    sample: Sample,
    epsilon: float,
    delta: float,
    method: str,
    *,
    partial: bool = False,
    declared: Mapping[str, Setting] | None = None,
) -> Plan:
    """Fix cap and scale from public numbers; released as :mod:`privrank.published.agkm22` does."""
    steps, xi = unit_steps(sample, partial), pure_epsilon(epsilon, delta)
    q = hay_cap(len(sample.items))
    noise = DiscreteLaplace.calibrate(q * steps, xi)
    parts = {ORDER: PartPlan(None, 0, xi), QUERIES: PartPlan(noise, steps, xi)}
    settings: dict[str, Setting] = {"steps": steps, **(declared or {}), "cap": q}
    return plan_of("KwikSort with a random rest", epsilon, delta, parts, settings)
