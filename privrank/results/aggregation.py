"""The result of a private rank aggregation."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privrank import __version__, tables
from privrank.arrays import own
from privrank.checks import check_alpha
from privrank.consensus.rules import pair_matrix
from privrank.consensus.spacing import FEWEST_ITEMS, MOST_ITEMS
from privrank.consensus.statements import (
    STATED,
    SUPPRESSED,
    Target,
    chances,
    fraction_interval,
    reliability,
    reliable_from,
    score_interval,
    separated_groups,
)
from privrank.noise import DiscreteGaussian, DiscreteLaplace
from privrank.ranknoise import CubeNoise
from privrank.release import ORDER, PAIRS, SCORE, TOTALS, Part, Release
from privrank.results.guarantee import caption, column_name, release_facts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["AggregationResult", "released_fractions"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def released_fractions(pairs: Part, units: int) -> FloatArray:
    """Return the noisy fractions that place row before column, items in the order of the list."""
    return pair_matrix(np.asarray(pairs.values * (pairs.step / units)))


@lru_cache(maxsize=16)
def _chances(release: Release, target: Target) -> FloatArray | None:
    """Return the chances of orders from released pairs, or None where they are not calibrated.

    Those nearer to 1/2 than is stated are missing.
    """
    part, n = release.parts[PAIRS], release.sample.nobs
    variance, fractions = part.noise_variance / n**2, released_fractions(part, n)
    small = FEWEST_ITEMS <= len(fractions) <= MOST_ITEMS
    if not small or math.sqrt(variance) > SUPPRESSED:
        return None
    if reliability(fractions, variance, n, target) < reliable_from(len(fractions)):
        return None
    found = chances(fractions, variance, n, target)
    return own(np.where(np.abs(found - 0.5) >= STATED - 0.5, found, np.nan), np.float64)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AggregationResult:
    """A private consensus: the order, pair fractions with intervals, scores, what is separated.

    Parameters
    ----------
    release : Release
        What the mechanism let out.
    alpha : float
        One minus the confidence level.
    target : {"population", "sample"}
        What intervals are about.
    places : ndarray of int64, shape (m,)
        Positions of the items in the item list, best first.
    fractions : ndarray, shape (m, m), or None
        Noisy fractions of units that place the row item before the column item, items in the order
        of the list; None where pairs were not released.
    """

    release: Release
    alpha: float
    target: Target
    places: IntArray = field(repr=False)
    fractions: FloatArray | None = field(repr=False)

    def __repr__(self) -> str:
        """Show the shape and the guarantee."""
        sample = self.release.sample
        return (
            f"<AggregationResult: {len(sample.items)} items, {sample.nobs} {sample.unit}s, "
            f"epsilon = {self.epsilon:g}>"
        )

    @property
    def items(self) -> tuple[str, ...]:
        """The items, in the declared order."""
        return self.release.sample.items

    @property
    def nobs(self) -> int:
        """Number of units (rows or respondents)."""
        return self.release.sample.nobs

    @property
    def epsilon(self) -> float:
        """Epsilon spent."""
        return self.release.epsilon

    @property
    def delta(self) -> float:
        """Delta spent."""
        return self.release.delta

    @property
    def order(self) -> tuple[str, ...]:
        """The consensus, best item first."""
        return tuple(self.items[place] for place in self.places)

    @property
    def consensus(self) -> pd.Series[int]:
        """The consensus rank of each item, 1 = best, best first."""
        ranks = np.arange(1, len(self.places) + 1)
        return pd.Series(ranks, index=pd.Index(self.order, name="item"), name="rank")

    @property
    def proven(self) -> bool:
        """Whether the order is shown to be the best one of the numbers it was found in."""
        return self.release.constants.get("gap") == 0.0

    def _fractions(self) -> tuple[Part, FloatArray]:
        """Return the released pairs, and the fractions with items in the consensus order."""
        if self.fractions is None:
            raise ValueError(
                f"{self.release.mechanism} releases no pair fractions: fit with delta > 0 or "
                f"method='kemeny' for statements about pairs."
            )
        return self.release.parts[PAIRS], self.fractions[np.ix_(self.places, self.places)]

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise in a pair fraction."""
        part, _ = self._fractions()
        return math.sqrt(part.noise_variance) / self.nobs

    @property
    def chances(self) -> FloatArray | None:
        """Probability that the row item is preferred to the column item, items as in the list.

        None where pairs were not released, or where it would not be calibrated: with fewer than
        four items or more than a hundred, with too much noise, and where the reliability is below
        .7 (with four to six items .77, .74 and .71). Missing between .05 and .95: how cautious it
        should be there depends on how evenly items lie apart, which few pairs do not tell.
        """
        return None if self.fractions is None else _chances(self.release, self.target)

    @property
    def reliability(self) -> float:
        """Share of the variance of the Borda scores that is not error, estimated by moments.

        Error is the privacy noise and, for the population, sampling, as much of it as complete
        rankings have at most: where items are left out, or respondents have several rankings, it
        is a lower bound. It takes released pairs.
        """
        _, fractions = self._fractions()
        return reliability(fractions, self.noise_sd**2, self.nobs, self.target)

    def fraction_frame(self) -> pd.DataFrame:
        """Return the noisy fractions that place row before column, in the consensus order."""
        _, fractions = self._fractions()
        names = pd.Index(self.order, name="item")
        return pd.DataFrame(fractions, index=names, columns=names.rename("over"))

    def pairwise(self, alpha: float | None = None) -> pd.DataFrame:
        """Return one row per pair of items, the one that the consensus places first on the left.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default that of the fit.

        Returns
        -------
        DataFrame
            Indexed by ``ahead`` and ``behind``: the fraction that agrees, its standard error, an
            interval for this pair (``lower``, ``upper``), one that holds for all pairs at once
            (``all_lower``, ``all_upper``), ``separated``, whether the latter excludes 1/2, and
            ``probability``, that the pair is ordered rightly. That is missing where it is between
            0.05 and 0.95, and for all pairs with fewer than four items, with more than a hundred,
            where the noise has a standard deviation above 0.3, and where the reliability of the
            scores is too small: below 0.7, and a little more with fewer than seven items.
        """
        stated, bounds = self.chances, self.pair_conf_int(alpha)
        if stated is not None:
            stated = stated[np.ix_(self.places, self.places)]
        pairs = np.triu_indices(len(self.places), 1)
        bounds["probability"] = np.nan if stated is None else stated[pairs]
        return bounds

    def pair_conf_int(self, alpha: float | None = None) -> pd.DataFrame:
        """Return the intervals of :meth:`pairwise`, without its probability."""
        level = self.alpha if alpha is None else check_alpha(alpha)
        part, matrix = self._fractions()
        law, n = part.law, self.nobs
        assert isinstance(law, DiscreteLaplace | DiscreteGaussian | CubeNoise)
        first, second = np.triu_indices(len(matrix), 1)
        w = matrix[first, second]
        bounds = [
            fraction_interval(w, law, part.step / n, n, level, self.target, coordinates)
            for coordinates in (1, len(w))
        ]
        inside = np.clip(w, 0.0, 1.0)
        sampling = inside * (1.0 - inside) / n if self.target == "population" else 0.0
        names = np.array(self.order, dtype=object)
        return pd.DataFrame(
            {
                "fraction": w,
                "std_err": np.sqrt(self.noise_sd**2 + sampling),
                "lower": bounds[0][0],
                "upper": bounds[0][1],
                "all_lower": bounds[1][0],
                "all_upper": bounds[1][1],
                "separated": (bounds[1][0] > 0.5) | (bounds[1][1] < 0.5),
            },
            index=pd.MultiIndex.from_arrays(
                [names[first], names[second]], names=["ahead", "behind"]
            ),
        )

    def _neighbours(self, pairs: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of the pairs of items next to each other in the consensus."""
        m = len(self.places)
        k = np.arange(m - 1)
        return pairs.iloc[k * m - k * (k + 1) // 2]

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The consensus in groups: neighbours within one are not separated at the level alpha."""
        separated = self._neighbours(self.pair_conf_int())["separated"].to_numpy()
        return tuple(
            tuple(self.items[place] for place in group)
            for group in separated_groups(self.places, separated)
        )

    def borda(self, alpha: float | None = None) -> pd.DataFrame:
        """Return the Borda scores: the mean number of items that an item is placed before.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default that of the fit.

        Returns
        -------
        DataFrame
            Best first: score, standard error, interval and mean rank, which is m minus the score.
            For the population the sampling variance is bounded by the largest that such a mean
            allows, so intervals err on the wide side.
        """
        from scipy.special import ndtri

        level = self.alpha if alpha is None else check_alpha(alpha)
        m, n = len(self.items), self.nobs
        if TOTALS in self.release.parts:
            part = self.release.parts[TOTALS]
            score = m - part.values * (part.step / n)
            noise = math.sqrt(part.noise_variance) / n
        else:
            part, matrix = self._fractions()
            score = np.empty(m)
            score[self.places] = matrix.sum(axis=1) - 0.5
            noise = math.sqrt((m - 1) * part.noise_variance) / n
        score = score[self.places]
        half = -float(ndtri(0.5 * level)) * noise
        bounds = np.array(
            [score_interval(one, half, m - 1.0, n, level, self.target) for one in score.tolist()]
        )
        centre = np.clip(score, 0.0, m - 1.0)
        sampling = centre * (m - 1.0 - centre) / n if self.target == "population" else 0.0
        return pd.DataFrame(
            {
                "score": score,
                "std_err": np.sqrt(noise**2 + sampling),
                "lower": bounds[:, 0],
                "upper": bounds[:, 1],
                "mean_rank": m - score,
            },
            index=pd.Index(self.order, name="item"),
        )

    def _score(self) -> Part:
        part = self.release.parts.get(SCORE)
        if part is None:
            raise ValueError("the Kemeny score was not released: fit with score_share=0.1.")
        return part

    @property
    def kemeny_score(self) -> float:
        """Mean number of pairs that a ranking orders otherwise than the consensus, with noise."""
        part = self._score()
        return float(part.values[0]) * part.step / self.nobs

    def score_conf_int(self, alpha: float | None = None) -> tuple[float, float]:
        """Return a confidence interval for the Kemeny score of the consensus.

        Parameters
        ----------
        alpha : float, optional
            One minus the confidence level; by default that of the fit.

        Returns
        -------
        lower, upper : float
        """
        level = self.alpha if alpha is None else check_alpha(alpha)
        part, m = self._score(), len(self.items)
        assert isinstance(part.law, DiscreteLaplace | DiscreteGaussian)
        noise = part.law.half_width(level) * part.step / self.nobs
        largest = m * (m - 1) / 2
        return score_interval(self.kemeny_score, noise, largest, self.nobs, level, self.target)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per item, best first, with what was released about it.

        Returns
        -------
        DataFrame
            The rank; the Borda score with standard error and interval; where pairs were released
            also the group of items that are not separated, and of the next item the fraction that
            agrees and the probability that the two are ordered rightly.
        """
        frame = self.consensus.to_frame()
        if set(self.release.parts) == {ORDER}:
            return frame
        frame[["borda", "std_err", "lower", "upper"]] = self.borda()[
            ["score", "std_err", "lower", "upper"]
        ]
        if PAIRS in self.release.parts:
            sizes = [len(group) for group in self.groups]
            near = self._neighbours(self.pairwise())
            frame["group"] = np.repeat(np.arange(1, len(sizes) + 1), sizes)
            frame["over_next"] = [*near["fraction"], np.nan]
            frame["probability"] = [*near["probability"], np.nan]
        return frame

    def summary(self) -> tables.Table:
        """Return the table a paper can print: consensus, what separates it, the guarantee."""
        from privrank.results.consensustable import consensus_table

        return consensus_table(self)

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the consensus; see :meth:`plot_consensus`."""
        return self.plot_consensus(ax)

    def plot_consensus(self, ax: Axes | None = None) -> Figure:
        """Draw the consensus with Borda scores and marks between separated neighbours."""
        from privrank import plots

        return plots.consensus(self.to_frame(), self.alpha, caption(self.release), ax=ax)

    def plot_pairwise(self, ax: Axes | None = None) -> Figure:
        """Draw the pair fractions, items in the consensus order, as a heat map."""
        from privrank import plots

        frame = self.fraction_frame().clip(0.0, 1.0)
        return plots.pairwise(
            frame, caption(self.release), "Pair fractions", "fraction with row before column", ax=ax
        )

    def to_json(self) -> str:
        """Return the result as JSON text, from which :func:`privrank.from_json` rebuilds it."""
        return json.dumps(
            {
                "privrank": __version__,
                "result": "AggregationResult",
                "settings": {"alpha": self.alpha, "target": self.target},
                "estimates": {"order": list(self.order)},
                "release": self.release.to_record(),
            }
        )

    def _column(self) -> tables.Column:
        ranks = self.consensus.loc[list(self.items)]
        params = errors = pd.Series(np.empty(0))
        if len(self.release.parts) > 1:
            frame = self.borda().loc[list(self.items)]
            params, errors = frame["score"], frame["std_err"]
        facts = [(f"rank of {item}", str(rank)) for item, rank in ranks.items()]
        if SCORE in self.release.parts:
            facts.append(("Kemeny score", f"{self.kemeny_score:.4f}"))
        return tables.Column(
            column_name(self.release), params, errors, (*facts, *release_facts(self.release))
        )

    def _repr_html_(self) -> str:
        return self.summary().as_html()
