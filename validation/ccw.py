"""The published algorithms that two studies compare with privrank, and the plots of these studies.

The algorithms are from Cai, Chakraborty and Wang (2023): perturbed likelihood (Algorithm 1)
and noisy counting (Algorithm 2). They protect one comparison under replacement, as privrank's
private design does; its public design protects the answer only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from study import OUT

from privrank.bradley_terry.fit import LOGISTIC_SCORE, EdgeLoss, fit_ridge
from privrank.bradley_terry.linear import item_contrasts
from privrank.privacy.sensitivity import UnitSensitivity, objective_loss
from privrank.release.survey import PairCounts

SMALL_RIDGE = "CCW estimate, ridge 1/epsilon"
THEIR_RIDGE = "CCW estimate, authors' ridge"
COUNTING = "CCW counting"
PRIVATE = "privrank, private design"
RELEASED = "privrank, private design, counts released"
UNDECLARED = "privrank, nothing declared"
PUBLIC = "privrank, public design"
RESPONDENT = "privrank, respondents"
NO_PRIVACY = "no privacy"
RIDGE_FIT = "privrank, before bias correction"

# the colours of Okabe and Ito, which colour-blind readers can distinguish
COLOURS = {
    SMALL_RIDGE: "#E69F00",
    THEIR_RIDGE: "#D55E00",
    COUNTING: "#CC79A7",
    PRIVATE: "#0072B2",
    RELEASED: "#56B4E9",
    UNDECLARED: "#56B4E9",
    PUBLIC: "#009E73",
    RESPONDENT: "#56B4E9",
    NO_PRIVACY: "#000000",
}
ERRORS = ("error", "distance")
MARKERS = {SMALL_RIDGE: "s", THEIR_RIDGE: "D", COUNTING: "s", RESPONDENT: "^"}
# drawn after a method with similar values, whose markers remain visible inside
HOLLOW = (THEIR_RIDGE, PUBLIC)


class Tally:
    """Net wins, raw wins (a tie is half a win) and comparisons per pair, for first < second."""

    def __init__(self, first: np.ndarray, second: np.ndarray, outcome: np.ndarray, items: int):
        gained = np.bincount(first, outcome, minlength=items)
        self.net = gained - np.bincount(second, outcome, minlength=items)
        met, count = np.unique(first * items + second, return_counts=True)
        self.pairs = PairCounts(met // items, met % items, count, "observed")
        self.wins = 0.5 * (
            np.bincount(first, minlength=items) + np.bincount(second, minlength=items)
        )
        self.wins += 0.5 * self.net


def estimate(
    rng: np.random.Generator, tally: Tally, epsilon: float, ridge: float
) -> tuple[np.ndarray, float]:
    """Return the worths of Algorithm 1, centred, and their actual epsilon.

    The minimiser of the logistic loss with a ridge and a random linear term, whose Laplace noise
    has scale 8 / epsilon (the authors' code). Theorem 2.1 prints epsilon / 16; the actual epsilon
    of one comparison is then 64 at epsilon 1. Only contrasts are identified, hence the centring.
    """
    scale = 8.0 / epsilon
    items = len(tally.net)
    target = 0.5 * tally.net - rng.laplace(0.0, scale, items)
    loss = EdgeLoss.matching(LOGISTIC_SCORE, tally.pairs.count)
    theta = fit_ridge(target, item_contrasts(tally.pairs, items), ridge, loss).point
    reach = UnitSensitivity(items, 1, True, "replace")
    spent = np.inf if np.isinf(epsilon) else objective_loss(reach, scale, ridge)
    return theta - theta.mean(), spent


def small_ridge(epsilon: float) -> float:
    """Return the smallest ridge for which their privacy proof is valid; without privacy 0.001."""
    return max(1.0 / epsilon, 1e-3)


def their_ridge(items: int, share: float) -> float:
    """Return the ridge of the authors' simulations."""
    return 2.0 * float(np.sqrt(items * share * np.log(items)))


def noisy_wins(rng: np.random.Generator, tally: Tally, epsilon: float) -> np.ndarray:
    """Return the scores of Algorithm 2: raw wins with Laplace noise of scale 2 / epsilon."""
    return tally.wins + rng.laplace(0.0, 2.0 / epsilon, len(tally.wins))


def best_first(rng: np.random.Generator, scores: np.ndarray) -> np.ndarray:
    """Return positions by decreasing score; ties, up to rounding error, in random order."""
    return np.lexsort((rng.random(len(scores)), -np.round(scores, 9)))


def shown(mean: float, digits: int = 3) -> str:
    """Format a number for a table; empty if a method does not have it."""
    return "" if np.isnan(mean) else f"{mean:.{digits}f}"


def target(
    found: np.ndarray, asked: float, replicates: int, *, kind: str, unit: float
) -> dict[str, object]:
    """Compare a mean with a target that is a mean over `replicates`, printed to `unit`.

    `kind` is "at most" or "at least" for privrank and "about" for the published algorithm. The
    margin is two combined standard errors and half the last digit of the target.
    """
    mean, sd = found.mean(), found.std(ddof=1)
    margin = 2.0 * sd * np.sqrt(1.0 / len(found) + 1.0 / replicates) + 0.5 * unit
    beyond = {"at most": mean - asked, "at least": asked - mean, "about": abs(mean - asked)}[kind]
    return {
        "target": f"{kind} {asked:g}",
        "found": f"{mean:.4f}",
        "std err": f"{sd / np.sqrt(len(found)):.4f}",
        "met": bool(beyond <= margin),
    }


def draw(
    name: str,
    title: str,
    rows: Sequence[dict],
    *,
    x: str,
    column: str,
    titles: dict[object, str],
    measures: Sequence[tuple[str, str, Sequence[str]]],
    log_x: bool = False,
) -> None:
    """Draw a table to build/validation/: a row of panels per measure, a column per setting.

    `measures` gives the columns of the table, their axis labels and the methods shown. Errors are
    drawn on a logarithmic axis; other measures are fractions. Bands are two standard errors wide on
    either side.
    """
    from matplotlib import pyplot, ticker

    shape = len(measures), len(titles)
    figure, axes = pyplot.subplots(
        *shape,
        figsize=(2.5 * shape[1] + 1.0, 2.3 * shape[0] + 1.2),
        sharex=True,
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    ticks = sorted({row[x] for row in rows})
    used: dict[str, object] = {}
    for line, (measure, label, methods) in zip(axes, measures, strict=True):
        line[0].set_ylabel(label)
        for axis, setting in zip(line, titles, strict=True):
            panel = [row for row in rows if row[column] == setting and row[measure] != ""]
            for method in methods:
                own = [row for row in panel if row["method"].removesuffix(", counting") == method]
                if own:
                    used |= _curve(axis, method, measure, sorted(own, key=lambda row: row[x]), x)
            if log_x:
                axis.set_xscale("log")
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.xaxis.set_minor_locator(ticker.NullLocator())
            axis.grid(color="0.9", lw=0.6)
            if measure in ERRORS:
                axis.set_yscale("log")
                axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
                axis.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
                axis.yaxis.set_minor_locator(ticker.NullLocator())
    for top, bottom, heading in zip(axes[0], axes[-1], titles.values(), strict=True):
        top.set_title(heading, fontsize="medium")
        bottom.set_xlabel(x)
    order = [method for method in (*COLOURS, RIDGE_FIT) if method in used]
    figure.legend(
        [used[method] for method in order],
        order,
        fontsize="small",
        frameon=False,
        ncols=shape[1] if shape[1] < 4 else 3,
        loc="outside lower center",
    )
    figure.suptitle(title, fontsize="medium")
    folder = OUT.parent.parent / "build" / "validation"
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=150)
    pyplot.close(figure)


def _curve(axis: Any, method: str, measure: str, rows: Sequence[dict], x: str) -> dict[str, Any]:
    """Draw one method's curve and band; return its legend entry."""
    at = np.array([row[x] for row in rows], dtype=float)
    mean = np.array([float(row[measure]) for row in rows])
    error = 2.0 * np.array([float(row[f"{measure}, std err"]) for row in rows])
    colour = COLOURS[method]
    plain, hollow = method == NO_PRIVACY, method in HOLLOW
    (line,) = axis.plot(
        at,
        mean,
        color=colour,
        ls="--" if plain else "-",
        marker="" if plain else MARKERS.get(method, "o"),
        ms=7 if hollow else 4,
        mfc="none" if hollow else colour,
        lw=0.9 if hollow else 1.5,
    )
    drawn = {method: line}
    # clip bands below 0 on a logarithmic axis, and fractions above 1
    low, high = np.maximum(mean - error, 1e-9), mean + error
    if measure not in ERRORS:
        high = np.minimum(high, 1.0)
    elif method.startswith("privrank"):
        ridge = [float(row[f"{measure} of the ridge fit"]) for row in rows]
        (drawn[RIDGE_FIT],) = axis.plot(at, ridge, color=colour, lw=1, ls=":")
    axis.fill_between(at, low, high, color=colour, alpha=0.2, lw=0)
    return drawn
