"""The result of the test of uniformity from reports, read from what was released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from privrank.hypotheses.nullmodel import NullModel
from privrank.hypotheses.nulls import Null
from privrank.local.client import protocol_from_json
from privrank.local.protocols import Protocol
from privrank.local.protocols_orders import PairBits
from privrank.local.uniformpower import Collection
from privrank.local.uniformtest import NULL
from privrank.release.release import Release
from privrank.results.ranktest import RankTestResult, read_test
from privrank.results.testnotes import hypotheses_of_uniformity


def infer(
    release: Release, *, alpha: float = 0.05, simulation: Mapping[str, Any] | None = None
) -> RankTestResult:
    """Return the test from a release of a tally's statistic: post-processing."""
    if NULL not in release.values:
        raise ValueError("release must be of a UniformityTest, and this one is of another model.")
    protocol = protocol_from_json(str(release.plan.settings["protocol"]))
    null = Null.of_draws(release.values[NULL])
    collected = Collection(protocol, release.sample.nobs).statistic
    return read_test(
        null,
        release=release,
        test="UniformityTest",
        method=release.plan.method,
        alpha=alpha,
        hypotheses=hypotheses_of_uniformity(release.sample),
        draws=len(release.values[NULL]),
        simulation=simulation,
        notes=_notes(release, protocol),
        query=replace(collected, null=partial(_kept, null)),
        null_model=NullModel(),
    )


def _kept(null: Null, draws: int) -> Null:
    """Return the null distribution of a release, which holds all the draws that there are."""
    return null


def _notes(release: Release, protocol: Protocol) -> tuple[str, ...]:
    sees = (
        "The statistic sees mean ranks alone: opposite camps, cycles of preferences and items that "
        "are placed first or last are invisible to it if mean ranks are equal."
    )
    if isinstance(protocol, PairBits) and protocol.pairing == "public":
        pairs = protocol.table.reshape(-1, 2)
        named = ", ".join("-".join(protocol.items[place] for place in pair) for pair in pairs[:8])
        more = f" and {len(pairs) - 8} more" * (len(pairs) > 8)
        sees = (
            f"The statistic sees the order of {len(pairs)} public pairs ({named}{more}), and no "
            f"consensus that leaves these even."
        )
    null = (
        f"Under H0 the statistic is close to chi-square on {release.plan.number('df'):.0f} degrees "
        f"of freedom; the p-value is by simulation, given how often each was asked."
    )
    return sees, null
