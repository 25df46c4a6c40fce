"""The local model: answers are randomised on the respondents' devices.

No one collects the raw answers. A protocol is public. Respondents need only
:mod:`privrank.local.client`, which imports NumPy and the standard library. The curator counts the
local reports and computes estimates from the counts; these modules are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privrank.local.client import Client
from privrank.local.kinds import (
    AdaptiveKwikSort,
    CapBorda,
    Comparisons,
    DuchiBall,
    PairBits,
    RandomPairs,
    SubRanking,
    protocol_from_json,
)

if TYPE_CHECKING:
    from privrank.local.curator import Curator, Population
    from privrank.local.tally import Tally

__all__ = [
    "AdaptiveKwikSort",
    "CapBorda",
    "Client",
    "Comparisons",
    "Curator",
    "DuchiBall",
    "PairBits",
    "Population",
    "RandomPairs",
    "SubRanking",
    "Tally",
    "protocol_from_json",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'privrank.local' has no attribute {name!r}")
    return getattr(import_module("privrank.local.curator"), name)


def __dir__() -> list[str]:
    return __all__
