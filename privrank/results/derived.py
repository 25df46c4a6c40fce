"""What follows from fitted worths at no cost: ratings, and synthetic data.

These are methods of :class:`privrank.results.btl.BTLResult`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, log
from typing import Any, Literal

import numpy as np
import pandas as pd

from privrank.bradley_terry.losses import answer_probabilities
from privrank.distributions.links import LOGIT
from privrank.distributions.simulate import PlackettLuce, generator
from privrank.release.release import Release
from privrank.results.guarantee import caption
from privrank.util.arrays import FloatArray
from privrank.util.checks import check_choice, check_count, check_number

Form = Literal["comparisons", "rankings"]

# Points of the Elo scale in one unit of the logit: 400 of them are odds of 10.
_ELO = 400.0 / log(10.0)


def elo(self: Any, base: float = 1500.0, at: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """Return the worths on the Elo scale: `base` plus 400 / ln 10 times each.

    An item that is 400 points ahead is preferred with odds of 10; a tie is half a win there, as
    with ``ties=True``.

    Parameters
    ----------
    base : float, default 1500
        The mean rating.
    at : mapping of str to value, optional
        As of :meth:`worths`.

    Returns
    -------
    DataFrame
        Rows and columns of :meth:`worths`, with ``rating`` in the place of ``worth``.

    References
    ----------
    Elo (1978), The Rating of Chessplayers, Past and Present.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> frame = pr.simulate.bradley_terry([1.0, 0.0], repeats=500, rng=np.random.default_rng(1))
    >>> model = pr.PrivateBTL(frame, items=[0, 1], respondent=None, design="public")
    >>> result = model.fit(1.0, rng=np.random.default_rng(2))
    >>> float(result.elo()["rating"].mean().round(6))
    1500.0
    """
    if self.link != LOGIT:
        raise ValueError(
            f"elo() is a scale of the logit, and this fit has link={self.link.name!r}: use "
            f"worths()."
        )
    middle = check_number("base", base, "a finite number such as 1500", isfinite)
    worths: pd.DataFrame = self.worths(at)
    numbers = ["worth", "std_err", "lower", "upper"]
    points = _ELO * worths[numbers] + middle * np.array([1.0, 0.0, 1.0, 1.0])
    return worths.assign(**points).rename(columns={"worth": "rating"})


def simulate(
    self: Any,
    n: int,
    rng: np.random.Generator | None = None,
    *,
    form: Form = "comparisons",
    at: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Draw synthetic data from the fitted model; they are as private as the result.

    They hold what the model says, and nothing else of the data: neither how the answers of a
    respondent depend on each other, nor who compared what.

    Parameters
    ----------
    n : int
        Comparisons of every pair, or rankings.
    rng : numpy.random.Generator, optional
        By default one with fresh entropy.
    form : {"comparisons", "rankings"}, default "comparisons"
        ``item1, item2, outcome`` with no item counted as named first, and with ties only where
        these have a parameter; or ranks by the Plackett-Luce model, a row per ranking.
    at : mapping of str to value, optional
        Values of the covariates.

    Returns
    -------
    DataFrame
        ``attrs["synthetic"]`` says what it was drawn from.

    Notes
    -----
    The fitted worths and the tie parameter are functions of the release, and the draws are one of
    these and of a generator that knows nothing of the data: post-processing, at no epsilon.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> frame = pr.simulate.bradley_terry([1.0, 0.0], repeats=500, rng=np.random.default_rng(1))
    >>> model = pr.PrivateBTL(frame, items=[0, 1], respondent=None, design="public")
    >>> result = model.fit(1.0, rng=np.random.default_rng(2))
    >>> drawn = result.simulate(3, np.random.default_rng(3))
    >>> len(drawn), drawn.attrs["synthetic"]
    (3, 'drawn from a fitted model, epsilon = 1 per row, seeded noise')
    """
    size, source = check_count("n", n), generator(rng)
    release: Release = self.release
    check_choice("form", form, Form)
    if len(self.components) > 1:
        raise ValueError(
            "simulate needs the worths of all items, and the released comparisons do not connect "
            "them: see components, and use a larger epsilon or items= without those named there."
        )
    if form == "rankings" and release.link != LOGIT:
        raise ValueError(
            f"form='rankings' draws from the Plackett-Luce model, which has the logit, and this "
            f"fit has link={release.link.name!r}: use form='comparisons'."
        )
    worths = self._values(at)
    if form == "rankings":
        ranks = PlackettLuce(worths).rvs(size, source)
        frame = pd.DataFrame(ranks, columns=list(self.items))
    else:
        tie = float(self.estimate.coefficients[-1])
        frame = _comparisons(release, worths, tie, size, source)
    frame.attrs["synthetic"] = f"drawn from a fitted model, {caption(release)}"
    return frame


def _comparisons(
    release: Release, worths: FloatArray, tie: float, size: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Return so many comparisons of every pair, pair by pair in the order of the items."""
    names = np.array(release.survey.items, dtype=object)
    first, second = (np.repeat(side, size) for side in np.triu_indices(len(names), 1))
    difference = worths[first] - worths[second]
    if release.design.davidson:
        won, tied, _ = answer_probabilities(difference, tie)
    else:
        won, tied = release.link.probability(difference), np.zeros(len(difference))
    uniform = rng.random(len(difference))
    outcome = np.where(uniform < won, 1, np.where(uniform < won + tied, 0, -1))
    return pd.DataFrame({"item1": names[first], "item2": names[second], "outcome": outcome})
