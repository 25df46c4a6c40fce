"""Synthetic data: comparisons or rankings drawn from a fitted Bradley-Terry model."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privrank.bradley_terry.losses import answer_probabilities
from privrank.distributions.links import LOGIT
from privrank.distributions.simulate import PlackettLuce, generator
from privrank.release.release import Release
from privrank.results.guarantee import caption
from privrank.util.arrays import FloatArray
from privrank.util.checks import check_choice, check_count

FORMS = ("comparisons", "rankings")


def simulated(
    release: Release,
    worths: FloatArray,
    tie: float,
    whole: bool,
    n: int,
    rng: np.random.Generator | None,
    form: str,
) -> pd.DataFrame:
    """Return data drawn from a fit, marked as such; see :meth:`BTLResult.simulate`.

    Parameters
    ----------
    release : Release
        What the fit was made of.
    worths : ndarray, shape (m,)
        Fitted worths.
    tie : float
        The tie parameter, of use where ties have one.
    whole : bool
        Whether the released comparisons connect all items.
    n, rng, form
        As asked for.

    Notes
    -----
    The fitted worths and the tie parameter are functions of the release, and the draws are one of
    these and of a generator that knows nothing of the data: post-processing, at no epsilon.
    """
    size, source = check_count("n", n), generator(rng)
    if not whole:
        raise ValueError(
            "simulate needs the worths of all items, and the released comparisons do not connect "
            "them: see components, and use a larger epsilon or items= without those named there."
        )
    items = list(release.survey.items)
    if check_choice("form", form, FORMS) == "comparisons":
        frame = _comparisons(release, worths, tie, size, source)
    elif release.link == LOGIT:
        frame = pd.DataFrame(PlackettLuce(worths).rvs(size, source), columns=items)
    else:
        raise ValueError(
            f"form='rankings' draws from the Plackett-Luce model, which has the logit, and this "
            f"fit has link={release.link.name!r}: use form='comparisons'."
        )
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
