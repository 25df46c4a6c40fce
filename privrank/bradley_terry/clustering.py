"""How the answers of a respondent depend on each other where all are known: without privacy.

The *design effect* of a combination of scores is its variance over that of independent answers.
Where answers are known it is 1 + X / I: I is the variance of independent answers, and X the sum
over respondents of the products of any two different answers less what is expected of each. An
answer's own square is not part of X, so that what is expected of it does not depend on itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privrank.bradley_terry.linear import blocks
from privrank.bradley_terry.losses import answer_probabilities, worths_and_ties
from privrank.bradley_terry.score import ScoreEquations
from privrank.release.names import BY_PAIR, MOMENTS, TIE_MOMENTS
from privrank.release.release import Release
from privrank.util.arrays import FloatArray, own
from privrank.util.solvers import quadratic


@dataclass(frozen=True, eq=False)
class Clusters:
    """The answers of the respondents of a run without privacy, as moments by pair.

    Parameters
    ----------
    equations : ScoreEquations
        The release, read as score equations.
    release : Release
        The release, which holds the moments.
    """

    equations: ScoreEquations
    release: Release

    @cached_property
    def _blocks(self) -> list[tuple[slice, list[FloatArray]]]:
        """Runs of pairs that one respondent can have answered, with their moments."""
        names, start, runs = MOMENTS + TIE_MOMENTS * self.equations.tied, 0, []
        for part in blocks(self.release.design, self.equations.pairs):
            size = part.stop - part.start
            here = slice(start, start + size**2)
            moments = [
                own(self.release.parts[name].values[here].reshape(size, size), np.float64)
                for name in names
            ]
            runs.append((part, moments))
            start += size**2
        return runs

    def _squares(self, along: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sums of squares over respondents, and over answers, of combined residuals."""
        facts, count = self.equations, self.equations.pairs.count
        if facts.tied:
            (half, tie), (won, tied, lost) = worths_and_ties(along), _answers(t)
            mean = 0.5 * half * (won - lost) + tie * tied
        else:
            half, tie = along * facts.fitted.weight(t), np.zeros_like(along)
            mean = half * facts.function.link.excess(t)
        total = np.zeros(len(along))
        for part, (yy, yn, nn, *others) in self._blocks:
            u, v, q = half[:, part], tie[:, part], mean[:, part]
            total += 0.25 * quadratic(u, yy) + quadratic(q, nn) - ((u @ yn) * q).sum(axis=1)
            if others:
                ty, tn, tt = others
                total += quadratic(v, tt) + ((v @ ty) * u - 2.0 * (v @ tn) * q).sum(axis=1)
        if BY_PAIR not in self.release.parts:  # an archive of before: squares as expected
            return total, self._variances(along, t).sum(axis=1)
        net, decided = np.split(self.release.parts[BY_PAIR].values.astype(np.float64), 2)
        own = 0.25 * half**2 * decided - half * mean * net + mean**2 * count
        own = own + (count - decided) * tie * (tie - 2.0 * mean)
        return total, own.sum(axis=1)

    def effects(self, along: FloatArray, t: FloatArray, factor: float = 1.0) -> FloatArray:
        """Return the design effects of combinations of scores, shape (rows,).

        Parameters
        ----------
        along : ndarray, shape (rows, edges)
            Weights of the scores by edge.
        t : ndarray, shape (rows, edges)
            Predictors at which residuals are taken.
        factor : float
            What X is multiplied by: n / (n - 1) at a fit, from which residuals are smaller.

        Returns
        -------
        ndarray, shape (rows,)
            At least 1, and at most what answers of these variances allow: by Cauchy and
            Schwarz the sum over respondents of the squared sums of standard deviations, over I.
        """
        by_pair = self._variances(along, t)
        independent = np.maximum(by_pair.sum(axis=1), 1e-300)
        deviations = np.sqrt(by_pair / np.maximum(self.equations.pairs.count, 1e-300))
        most = sum(quadratic(deviations[:, part], nn) for part, (_, _, nn, *_) in self._blocks)
        squares, own = self._squares(along, t)
        effect = 1.0 + factor * (squares - own) / independent
        return np.asarray(np.clip(effect, 1.0, np.maximum(most / independent, 1.0)))

    def excess(self, along: FloatArray, t: FloatArray) -> FloatArray:
        """Return X of all products of combinations of scores, shape (rows, rows)."""
        sums = along[:, None] + along[None]
        squares, own = self._squares(sums.reshape(-1, along.shape[1]), t[None])
        both = (squares - own).reshape(len(along), len(along))
        alone = 0.25 * np.diag(both)
        return np.asarray(0.5 * (both - alone[:, None] - alone))

    def spread(self, t: FloatArray) -> FloatArray:
        """Return the variance of each edge's score of independent answers at predictors t.

        A tie that counts as half a win takes a quarter off, down to what the mean allows.
        """
        facts, count = self.equations, self.equations.pairs.count
        if facts.tied or BY_PAIR not in self.release.parts:
            return facts.spread(t, facts.fitted)
        ties = count - np.split(self.release.parts[BY_PAIR].values, 2)[1]
        variance = facts.function.link.exact.variance(t)
        # the smaller probability q of an answer, from q (1 - q)
        upset = 2.0 * variance / (1.0 + np.sqrt(np.maximum(1.0 - 4.0 * variance, 0.0)))
        answers = np.maximum(count * variance - 0.25 * ties, count * upset * (0.5 - upset))
        return np.asarray(answers * facts.fitted.weight(t) ** 2)

    def _variances(self, along: FloatArray, t: FloatArray) -> FloatArray:
        """Return by pair the variances of combinations of scores of independent answers."""
        by_edge = along**2 * self.spread(t)
        by_pair = by_edge.reshape(len(along), -1, len(self.equations.pairs.count))
        return np.asarray(by_pair.sum(axis=1))


def _answers(t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    return answer_probabilities(*worths_and_ties(t))
