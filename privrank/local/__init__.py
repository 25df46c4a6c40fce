"""The local model: answers are randomised on the respondents' devices, and nobody holds them raw.

A protocol is public. Respondents need :mod:`privrank.local.client` alone; the curator counts
reports and estimates from the counts. Names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privrank.local.client import Client as Client
    from privrank.local.client import protocol_from_json as protocol_from_json
    from privrank.local.curator import Curator as Curator
    from privrank.local.population import Population as Population
    from privrank.local.protocols_orders import AdaptiveKwikSort as AdaptiveKwikSort
    from privrank.local.protocols_orders import Comparisons as Comparisons
    from privrank.local.protocols_orders import PairBits as PairBits
    from privrank.local.protocols_orders import RandomPairs as RandomPairs
    from privrank.local.protocols_orders import SubRanking as SubRanking
    from privrank.local.protocols_vectors import CapBorda as CapBorda
    from privrank.local.protocols_vectors import DuchiBall as DuchiBall

_HOME = {
    "AdaptiveKwikSort": "privrank.local.protocols_orders",
    "CapBorda": "privrank.local.protocols_vectors",
    "Client": "privrank.local.client",
    "Comparisons": "privrank.local.protocols_orders",
    "Curator": "privrank.local.curator",
    "DuchiBall": "privrank.local.protocols_vectors",
    "PairBits": "privrank.local.protocols_orders",
    "Population": "privrank.local.population",
    "RandomPairs": "privrank.local.protocols_orders",
    "SubRanking": "privrank.local.protocols_orders",
    "protocol_from_json": "privrank.local.client",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'privrank.local' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
