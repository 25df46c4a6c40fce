"""A simulated population that answers an adaptive protocol, for studies, examples and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privrank.local.curator import Curator
from privrank.local.protocols import check_generator, check_kind, check_rankings
from privrank.local.protocols_orders import AdaptiveKwikSort
from privrank.util.checks import as_list, check_number

Reports = dict[str, NDArray[Any]]


class Population:
    """People with rankings who are asked in random order, once each.

    Parameters
    ----------
    protocol : AdaptiveKwikSort
        The public protocol.
    ranks : array of int, (people, items)
        Complete rankings; rank 1 is the best.
    rng : numpy.random.Generator
        Draws who comes when, and what is answered: the run is not for publication.
    dropout : float in [0, 1), default 0.0
        Probability that somebody who is asked never answers.
    late : float in [0, 1), default 0.0
        Probability that an answer arrives only when others are asked the next time.
    """

    def __init__(
        self,
        protocol: AdaptiveKwikSort,
        ranks: NDArray[Any],
        rng: np.random.Generator,
        *,
        dropout: float = 0.0,
        late: float = 0.0,
    ) -> None:
        check_kind(protocol, AdaptiveKwikSort, "others have simulate()")
        check_generator(rng)
        for name, share in (("dropout", dropout), ("late", late)):
            rule = "a probability of at least 0 and below 1"
            check_number(name, share, rule, lambda value: 0 <= value < 1)
        self.protocol, self.rng, self.dropout, self.late = protocol, rng, dropout, late
        self._ranks = rng.permutation(check_rankings(ranks, len(protocol.items)))
        self._asked = 0
        self._held = self._reports(0, [])

    def _reports(self, start: int, queries: Sequence[Mapping[str, Any]]) -> Reports:
        people = self._ranks[start : start + len(queries)]
        assignments = np.array([query["assignment"] for query in queries], dtype=np.int64)
        ids = np.array([query["report_id"] for query in queries], dtype="U32")
        return {**self.protocol.simulate(people, self.rng, assignments), "report_id": ids}

    def answer(self, queries: Sequence[Mapping[str, Any]]) -> Reports:
        """Return the reports that arrive when the next people are asked these queries, in columns.

        Those of people who are late with an earlier query come first.
        """
        known = as_list(queries)
        if known is None or not all(isinstance(query, Mapping) for query in known):
            raise TypeError("queries must be a list of queries, as a curator's next_queries() is.")
        rng, number = self.rng, len(known)
        if self._asked + number > len(self._ranks):
            raise ValueError(
                f"queries must be for people who were not asked before, and {len(self._ranks)} is "
                f"all there are: set the curator's respondents to that."
            )
        reports = self._reports(self._asked, queries)
        self._asked += number
        coming, later = rng.random(number) >= self.dropout, rng.random(number) < self.late
        held, self._held = self._held, {k: v[coming & later] for k, v in reports.items()}
        return {k: np.concatenate([held[k], v[coming & ~later]]) for k, v in reports.items()}

    def run(self, curator: Curator) -> None:
        """Answer a curator until nobody is wanted."""
        while queries := curator.next_queries():
            curator.receive(self.answer(queries))
        curator.receive(self.answer([]))
