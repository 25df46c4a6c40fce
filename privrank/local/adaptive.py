"""KwikSort with live respondents: each is asked for one pair, chosen from the answers before.

Alabi, Ghazi, Kumar and Manurangsi (2022), Algorithms 2 and 3, sort by KwikSort and ask people for
the comparisons as they come up. As printed nothing is sorted: their counter of queries runs over
people, and stops at the first query. Counted once a query, each person answers up to 20 log m of
them with as small a part of epsilon, and at 5,000 people the order is a random one. Here everybody
is asked once, at all of epsilon; :class:`privrank.local.curator.Curator` decides for what.

LDP-KwikSort of Yan, Li and Liu (2020) asks for random pairs before anything is sorted:
:class:`privrank.local.protocols_orders.RandomPairs` asks the same, and KwikSort of the fractions is
one of the orders that can be made of them.

References: https://arxiv.org/abs/2112.14652; https://arxiv.org/abs/1908.04486.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privrank.local.protocols import Asking
from privrank.local.publicdraws import words
from privrank.util.checks import check_count

__all__ = ["AdaptiveKwikSort"]

IntArray = NDArray[np.int64]

LARGEST_SHUFFLE = 2**63 - 1
"""Number of the last public shuffle there is."""


@dataclass(frozen=True)
class AdaptiveKwikSort(Asking):
    """Everybody is asked for the order of one pair, which earlier answers have made of interest.

    Parameters
    ----------
    items, epsilon, partial
        As for all protocols.
    shuffle : int, default 0
        Number of the public shuffle that decides the order of the pivots and who of a hand-out is
        asked for which pair. Fix it before the survey starts.

    Notes
    -----
    The assignment is the place of the pair among all in lexicographic order; a curator's query
    holds it, and the id that the report is to have. The answer is 0 if the first item of the pair
    is placed before the second, else 1.

    **Privacy.** The unit is a respondent, who answers once; neighbours are any two rankings of
    theirs. Let q_t be the query that respondent t is asked, with its random id, and a_t the answer.
    Whatever the curator
    does, q_t is drawn from a distribution that depends on q_1, a_1, ..., a_(t-1) and public numbers
    alone, as nobody has read ranking t yet. So a run has probability
    prod_t P(q_t | q_1, ..., a_(t-1)) P(a_t | q_t, ranking t), in which the ranking of one
    respondent enters one factor, a binary subset response to a query that is given: for two
    rankings its values differ by a factor of at most exp(epsilon)
    (:class:`privrank.local.responses.SubsetResponse`), and so do the probabilities of the run. This
    is sequentially interactive local privacy; it does not add up over respondents, and the claim
    needs no curator who keeps to the sort. Whether somebody answers at all is not protected.
    """

    shuffle: int = 0
    kind: ClassVar[str] = "adaptive"

    def __post_init__(self) -> None:
        """Check the number of the shuffle."""
        super().__post_init__()
        self._set(shuffle=check_count("shuffle", self.shuffle, low=0, high=LARGEST_SHUFFLE))

    @property
    def assignments(self) -> int:
        """All pairs of items."""
        return len(self.all_pairs)

    def asked(self, assignments: NDArray[Any]) -> IntArray:
        """Return the pairs: (respondents, 1, 2)."""
        return np.asarray(self.all_pairs[np.asarray(assignments)][:, None])

    def draw_assignment(self) -> int:
        """Refuse: the curator says what is asked."""
        raise ValueError(
            "assignment must be given with an adaptive protocol: it is that of the query which the "
            "curator has handed to this respondent."
        )

    def draw_id(self) -> str:
        """Refuse: a report without the id of an open query is not counted."""
        raise ValueError(
            "report_id must be given with an adaptive protocol: it is that of the query which the "
            "curator has handed to this respondent."
        )

    def query_id(self) -> str:
        """Draw the id that a curator hands out with a query, from the same random bits."""
        return super().draw_id()

    @property
    def pivots(self) -> IntArray:
        """All items in the order in which they become pivots, a public permutation."""
        return np.argsort(self._words(0, len(self.items)), kind="stable")

    def handing(self, handed: int, size: int) -> IntArray:
        """Return the public order in which `size` queries are handed out after `handed` others."""
        return np.argsort(self._words(len(self.items) + handed, size), kind="stable")

    def _words(self, start: int, size: int) -> NDArray[np.uint64]:
        return np.asarray(words(np.array([self.shuffle]), start, size)[0])
