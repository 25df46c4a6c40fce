"""What epsilon buys: a plan at several epsilons, and without privacy."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from privrank.power.base import Power
from privrank.util.checks import as_list, check_epsilon

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_tradeoff"]


def plot_tradeoff(
    design: Power,
    epsilons: Sequence[float],
    *,
    nobs: int | None = None,
    power: float | None = None,
    ax: Axes | None = None,
    **stated: Any,
) -> Figure:
    """Draw what a design reaches, or how many respondents it needs, against epsilon.

    The dashed line is the same without privacy.

    Parameters
    ----------
    design : a plan of :mod:`privrank.power`
        Such as :class:`privrank.power.UniformityPower`.
    epsilons : sequence of float
        Finite epsilons.
    nobs : int, optional
        Number of respondents, at which the power is drawn.
    power : float, optional
        The power that is wanted, for which the number of respondents is drawn; of a plan that
        predicts something else, that.
    ax : matplotlib Axes, optional
        Where to draw.
    **stated
        The effect, and what else ``design.power`` takes, such as ``phi=0.9``.

    Returns
    -------
    Figure

    Examples
    --------
    >>> import matplotlib
    >>> import privrank as pr
    >>> matplotlib.use("Agg")
    >>> design = pr.power.UniformityPower(2, kind="choices")
    >>> figure = pr.plot_tradeoff(design, [0.25, 0.5, 1, 2], power=0.8, total_variation=0.1)
    >>> figure.axes[0].get_ylabel()
    'respondents'
    """
    if not isinstance(design, Power):
        raise TypeError(
            f"design must be a plan such as pr.power.UniformityPower(items=6), got "
            f"{type(design).__name__}."
        )
    if (nobs is None) == (power is None):
        raise ValueError(
            f"one of nobs and power must be given: nobs to draw the {design.outcome} of so many "
            f"respondents, power to draw how many are needed."
        )
    several = as_list(epsilons)
    if several is None:
        raise TypeError("epsilons must be a list of numbers, as [0.5, 1, 2].")
    finite = [check_epsilon(epsilon) for epsilon in several]
    if not finite or not np.isfinite(finite).all():
        raise ValueError("epsilons must be finite: the line without privacy is drawn beside them.")
    plan: Any = design
    known = [name for name in signature(plan.power).parameters if name not in ("nobs", "epsilon")]
    if unknown := [name for name in stated if name not in known]:
        raise TypeError(
            f"{unknown[0]}= is none of what a {type(design).__name__} takes: state "
            f"{', '.join(f'{name}=' for name in known)} or leave it out."
        )
    drawn, rows = design.outcome if power is None else "nobs", []
    for epsilon in (*sorted(finite), np.inf):
        if power is None:
            found = plan.power(nobs=nobs, epsilon=epsilon, **stated)
        else:
            target = {design.outcome: power}
            found = plan.solve_power(nobs=None, epsilon=epsilon, **target, **stated)
        rows.append({"nobs": nobs, "epsilon": epsilon, "effect": 0.0, "std err": found.error})
        rows[-1][drawn] = float(found)
    from privrank.results import plots

    frame = pd.DataFrame(rows)
    return plots.planned(
        frame.iloc[:-1], "epsilon", drawn, design._title, plain=rows[-1][drawn], ax=ax
    )
