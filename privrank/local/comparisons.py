"""Reports of single pairs as a release that models of paired comparisons read.

The release is the number of reports for either item of each pair that was asked, public as the
reports are. A report r of an answer y in {1, 0, -1} has E(r | y) = gain y: a response gives every
value the smaller weight, which cancels, and the true one the rest. How that enters a fit stands at
:func:`privrank.bradley_terry.score.score_equations`. One respondent gives one answer, so answers
are independent.
"""

from __future__ import annotations

import numpy as np

from privrank.local import releases
from privrank.local.protocols import Asking
from privrank.local.tally import Tally
from privrank.release.names import GAIN, WINS
from privrank.release.release import Release
from privrank.release.survey import Design, PairCounts, check_connected

__all__ = ["release_of"]


def release_of(tally: Tally, by: str) -> Release:
    """Return the wins of both items of each pair asked, for the model `by`."""
    protocol = _check(tally)
    items, m = protocol.items, len(protocol.items)
    ends = protocol.asked(tally.assignment)[:, 0]
    code = ends.min(axis=1) * m + ends.max(axis=1)
    asked, edge = np.unique(code, return_inverse=True)
    first, second = np.divmod(asked, m)
    # of each value the sign for the lower item of the pair
    sign = protocol.signs[tally.answer, 0, 1] * np.where(ends[:, 0] < ends[:, 1], 1, -1)
    wins = [
        np.bincount(edge, np.where(sign == side, tally.count, 0), minlength=len(asked))
        for side in (1, -1)
    ]
    if not wins[0].any() and not wins[1].any():
        raise ValueError(
            "tally must hold answers that prefer an item, and all of them are ties, which leave "
            "nothing to tell an error from: collect more reports."
        )
    count = np.bincount(edge, tally.count, minlength=len(asked))
    pairs = PairCounts(first, second, count, "observed")
    check_connected(pairs, items, reports=True)
    return releases.release_of(
        tally,
        {WINS: (np.concatenate(wins).astype(np.int64), 1.0)},
        by=by,
        method="randomised response",
        settings={GAIN: protocol.gain},
        survey=Design(items, tally.n, "respondent", 1, True, protocol.options > 2, "public", pairs),
    )


def _check(tally: Tally) -> Asking:
    """Return the protocol of a tally of single pairs, or refuse."""
    releases.check_tally(tally)
    protocol = tally.protocol
    if not isinstance(protocol, Asking) or protocol.width != 2 or protocol.digits != 1:
        raise ValueError(
            f"comparisons are read from reports of one pair each, and these are of the protocol "
            f"{protocol.kind!r} with more: collect reports of Comparisons, or of RandomPairs with "
            f"pairs=1."
        )
    if not tally.n:
        raise ValueError("tally must hold accepted reports, and it has none: see its summary().")
    return protocol
