"""Results in the words of R's broom: methods of all results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

__all__ = ["glance", "headlines", "tidy"]

_WORDS = {
    **dict.fromkeys(("worth", "coef", "win_rate", "borda", "effect"), "estimate"),
    "std_err": "std_error",
    **dict.fromkeys(("statistic", "z"), "statistic"),
    "pvalue": "p_value",
    "lower": "conf_low",
    "upper": "conf_high",
}
"""The words of ``tidy()`` for the columns of frames."""

_HEADLINES = {
    "k": "k",
    "statistic": "statistic",
    "threshold": "threshold",
    "p_value": "pvalue",
    "reject": "reject",
    "effect": "effect",
    "proven": "proven",
}
"""What ``glance()`` says of a result that has it, and the name it has there."""


def tidy(self: Any) -> pd.DataFrame:
    """Return a row per term in the words of R's broom, the same columns for all results.

    Returns
    -------
    DataFrame
        ``term``, ``estimate``, ``std_error``, ``statistic``, ``p_value``, ``conf_low`` and
        ``conf_high``, missing where there is none; the order and numbers of ``to_frame()``, which
        has what else is known. The estimate of a test is the effect it measures.
    """
    frame: pd.DataFrame = self.to_frame().rename(columns=_WORDS)
    frame = frame.reindex(columns=list(dict.fromkeys(_WORDS.values()))).astype(np.float64)
    frame.insert(0, "term", frame.index.astype(str))
    return frame.reset_index(drop=True)


def glance(self: Any) -> pd.DataFrame:
    """Return one row on the whole result in the words of R's broom.

    Returns
    -------
    DataFrame
        What was analysed, under which guarantee: ``model``, ``nobs``, ``items``, ``unit``,
        ``epsilon``, ``delta``, ``mechanism``, ``noise_source`` and ``alpha``; of tests, and of
        results with one, ``statistic``, ``p_value`` and what else they have.
    """
    public = dict(self._public())
    facts = {
        "model": self.model,
        "nobs": self.nobs,
        "items": len(self.items),
        "unit": public["unit"],
        "epsilon": self.epsilon,
        "delta": self.delta,
        "mechanism": public["mechanism"],
        "noise_source": public["noise source"],
        "alpha": self.alpha,
    }
    return pd.DataFrame({**facts, **self._glance()}, index=[0])


def headlines(result: Any) -> dict[str, Any]:
    """Return what a result says of itself as a whole, by the words of `glance`."""
    known = {word: name for word, name in _HEADLINES.items() if hasattr(type(result), name)}
    return {word: getattr(result, name) for word, name in known.items()}
