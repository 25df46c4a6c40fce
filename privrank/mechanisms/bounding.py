"""Which rows of a respondent count: a secret, uniformly random choice of at most `max_rows`."""

from __future__ import annotations

import numpy as np

from privrank.encode.encoded import Encoded, answers_by_person, sum_by
from privrank.privacy.noise import draw_rows

__all__ = ["bounded"]


def bounded(encoded: Encoded, rng: np.random.Generator | None) -> Encoded:
    """Return the counts of the rows that are kept; data without rows to draw from as they are.

    Of every respondent with more than `max_rows` answers that many are drawn, all sets of them
    equally likely; where pairs are declared distinct, one answer of each pair first. Respondents
    are independent of each other, nobody is lost, and nothing of the draw is kept but its counts.

    Notes
    -----
    **Privacy.** Unit and neighbours: replace one respondent with all their rows, however many. Let
    M be a mechanism with a guarantee for respondents who keep both bounds, at most `max_rows` rows
    and, where declared, distinct pairs; that is what every plan is calibrated to. Which rows of a
    respondent are kept depends on their own rows and on random bits of their own. So for any draws
    r of all other respondents, and s, s' of the one that is replaced, the kept rows (r, s) and
    (r, s') are neighbours that keep the bounds, and P(M(r, s) in S) <= exp(epsilon) P(M(r, s') in
    S) + delta. The mean of both sides over r, s and s', independent of each other, is the same for
    the data themselves: the guarantee is unchanged. So is zero-concentrated privacy, because the
    Renyi divergence of two mixtures with equal weights is at most the largest of their parts'. A
    second stage that measures the same kept rows is part of M. The draw is secret: were it known
    which rows are kept, that would be an output of its own. The number of respondents does not
    change.

    **Statistic.** Nobody weighs more than `max_rows` answers; those of a respondent are weighed
    alike, or, where pairs are distinct, their pairs are.
    """
    rows = encoded._rows
    if rows is None:
        return encoded
    design, pairs, size = encoded.design, len(rows.first), rows.size
    if design.distinct_pairs:
        size = draw_rows(rows.person * pairs + rows.pair, size, 1, rng)
    kept = draw_rows(rows.person, size, design.max_rows, rng)
    some = np.flatnonzero(kept)
    person, pair, count = rows.person[some], rows.pair[some], kept[some]
    net = count * rows.sign[some]
    counts = sum_by(pair, count, pairs), sum_by(pair, net, pairs)
    answers = answers_by_person(person, pair, count, net, pairs)
    return Encoded(design, (rows.first, rows.second, *counts), answers, encoded._units)
