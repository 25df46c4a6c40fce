"""Figures from result tables; matplotlib is imported when a figure is drawn.

Released numbers only. Every function is given a table or numbers of a result (`frame` is that of
its ``to_frame()`` unless it says otherwise), and the significance level `alpha` of its bars. A
`caption`, the guarantee, becomes the title. It draws into ``ax=`` and returns the figure. Titles
and labels are broken where the axes end. The title is the one that ``ax.set_title`` sets: a user's
takes its place, and axes that have one keep it.
"""

from __future__ import annotations

import io
import itertools
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from privrank.util.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    # other modules name these types, too
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure


_NAMED = 120
"""Rows that are all named; of more half as many are."""

_INK = "#1b3a4b"
_FULL = "#8fb3c7"
_CHOSEN = "#c8553d"


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        if not hasattr(ax, "figure") or not hasattr(ax, "plot"):
            raise TypeError(
                f"ax must be Axes of matplotlib, got {type(ax).__name__}: leave it out, or make "
                f"some with matplotlib.pyplot.subplots()."
            )
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")[1]


def png(figure: Figure) -> bytes:
    """Return a figure as a picture, and close it."""
    from matplotlib import pyplot

    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=160)
    pyplot.close(figure)
    return picture.getvalue()


def _item_axes(
    ax: Axes | None, labels: Sequence[str], height: float = 0.0
) -> tuple[Axes, IntArray, int]:
    """Return axes with a row for each label, the first on top, their places, and a dot's size.

    A row is as high as 20 of them allow, or of that `height` in inches; of more rows than 120 up to
    60 are named, in even steps.
    """
    m = len(labels)
    height, dots = (height or 0.42, 32) if m <= 20 else (height or 0.24, 16)
    ax = _axes(ax, (6.4, height * m / _step(m) + 1.5))
    rows = np.arange(m)[::-1]
    ax.set_yticks(rows[:: _step(m)], labels[:: _step(m)], parse_math=False)
    ax.set_ylim(-0.6, m - 0.4)
    return ax, rows, dots


def _step(rows: int) -> int:
    return 1 if rows <= _NAMED else -(-rows // (_NAMED // 2))


def _broken(ax: Any, text: str) -> str:
    """Return a text broken into lines of the width of the axes, at 12 letters an inch."""
    width = ax.get_position().width * ax.figure.figure.get_figwidth()
    return textwrap.fill(text, max(24, int(12 * width)))


def _finish(
    ax: Axes, caption: str, label: str = "", sides: tuple[str, ...] = ("top", "right")
) -> Figure:
    """Label the axes, and return their figure."""
    for side in sides:
        ax.spines[side].set_visible(False)
    if label:
        ax.set_xlabel(_broken(ax, label))
    if not ax.get_title():
        ax.set_title(_broken(ax, caption), fontsize="medium", parse_math=False)
    # the figure of a figure is itself, that of a subfigure the whole
    return ax.figure.figure


def _legend(ax: Axes, title: str | None = None) -> None:
    """Draw a legend to the right of the axes, with one entry for each label."""
    handles, labels = ax.get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))
    ax.legend(
        list(entries.values()),
        list(entries),
        title=title,
        frameon=False,
        bbox_to_anchor=(1.0, 1.0),
        loc="upper left",
    )


def _bars(ax: Any, rows: Any, frame: pd.DataFrame, estimate: str, **style: Any) -> None:
    """Draw intervals; one that has no end on a side has an arrow there, beyond all that have."""
    sides = np.array(frame[["lower", "upper"]], dtype=np.float64)
    # arrows stand a tenth of the range beyond all finite ends and estimates
    known = np.append(sides[np.isfinite(sides)], frame[estimate])
    known = known[np.isfinite(known)] if np.isfinite(known).any() else np.zeros(1)
    room = 0.1 * (float(np.ptp(known)) or 1.0)
    for side, (edge, marker) in enumerate(((known.min() - room, "<"), (known.max() + room, ">"))):
        endless = np.isinf(sides[:, side])
        sides[endless, side] = edge
        if endless.any():
            ends = np.full(int(endless.sum()), edge), np.asarray(rows)[endless]
            ax.scatter(*ends, marker=marker, s=18, color=style["color"])
    ax.hlines(rows, sides[:, 0], sides[:, 1], **style)


def _intervals(
    ax: Axes | None, frame: pd.DataFrame, estimate: str, colours: list[str], reference: float
) -> tuple[Axes, IntArray]:
    """Draw one row per label, the first on top, and rank sets, if there are, at the right edge."""
    ax, rows, dots = _item_axes(ax, [str(item) for item in frame.index])
    ax.axvline(reference, color="0.75", lw=0.8, zorder=0)
    _bars(ax, rows, frame, estimate, color=_FULL, lw=2.5, zorder=1)
    ax.scatter(frame[estimate], rows, color=colours, s=dots, zorder=3)
    if "rank_lower" in frame:
        margin: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "annotation_clip": False}
        sides = zip(rows, frame["rank_lower"], frame["rank_upper"], strict=True)
        for row, low, high in itertools.islice(sides, 0, None, _step(len(frame))):
            known = f"{low:.0f}–{high:.0f}" if low < high else f"{low:.0f}"
            ranks = "not identified" if np.isnan(low) else known
            ax.annotate(ranks, (1.02, row), va="center", color="0.35", **margin)
        above: dict[str, Any] = {"xytext": (0, 8), "textcoords": "offset points"}
        ax.annotate("rank", (1.02, rows[0]), va="bottom", color="0.35", **above, **margin)
    return ax, rows


def worth(
    frame: pd.DataFrame, alpha: float, caption: str, link: str, *, ax: Axes | None = None
) -> Figure:
    """Draw worths: thick bars for sampling error alone, thin bars with privacy noise included."""
    ax, rows = _intervals(ax, frame, "worth", [_INK] * len(frame), 0.0)
    half = -ndtri(alpha / 2) * frame["sampling"]
    ends = frame["worth"] - half, frame["worth"] + half
    ax.hlines(rows, *ends, color=_INK, lw=5, alpha=0.55, zorder=2)
    label = (
        f"worth ({link} scale, centred); {100 * (1 - alpha):g} % intervals: thick, sampling error "
        f"alone; thin, privacy noise included"
    )
    return _finish(ax, caption, label)


def group_worths(
    frame: pd.DataFrame,
    factors: list[str],
    alpha: float,
    caption: str,
    what: str,
    *,
    ax: Axes | None = None,
) -> Figure:
    """Draw the worths of the groups that `factors` name side by side; `frame` is ``worths()``.

    `what` says what the horizontal axis shows.
    """
    items = list(dict.fromkeys(frame["item"]))
    groups = [", ".join(str(row[name]) for name in factors) for row in frame.to_dict("records")]
    labels = list(dict.fromkeys(groups))
    ax, rows, _ = _item_axes(ax, items, max(0.22 * len(labels), 0.42))
    from matplotlib import colormaps

    colours = colormaps["cividis"](np.linspace(0.0, 0.9, len(labels)))
    ax.axvline(0.0, color="0.75", lw=0.8, zorder=0)
    for place, label in enumerate(labels):
        part = frame[[group == label for group in groups]]
        at = rows + (0.5 * (len(labels) - 1) - place) * 0.7 / len(labels)
        _bars(ax, at, part, "worth", color=colours[place], lw=2.0, alpha=0.6)
        ax.scatter(part["worth"], at, color=colours[place], s=26, zorder=3, label=label or "all")
    if factors:
        _legend(ax, ", ".join(factors))
    return _finish(
        ax, caption, f"{what}; {100 * (1 - alpha):g} % intervals, privacy noise included"
    )


def win_rates(
    frame: pd.DataFrame, target: str, alpha: float, caption: str, *, ax: Axes | None = None
) -> Figure:
    """Draw win rates or net wins with intervals; the selected items in another colour."""
    colours = [_CHOSEN if chosen else _INK for chosen in frame["selected"]]
    ax, _ = _intervals(
        ax, frame, target.replace(" ", "_"), colours, 0.5 if target == "win rate" else 0.0
    )
    label = (
        f"{target}; {100 * (1 - alpha):g} % intervals, privacy noise included"
        if frame["lower"].notna().any()
        else target
    )
    return _finish(ax, f"Top {int(frame['selected'].sum())}, {caption}", label)


def pairwise(
    probabilities: pd.DataFrame,
    caption: str,
    heading: str,
    label: str,
    *,
    ax: Axes | None = None,
) -> Figure:
    """Draw win probabilities, row item over column item, as a heat map centred on one half."""
    m = len(probabilities)
    side = (0.62 if m <= 15 else 0.24) * m + 1.8
    ax = _axes(ax, (side + 0.8, side))
    values = probabilities.to_numpy().copy()
    np.fill_diagonal(values, np.nan)
    image = ax.imshow(values, cmap="RdBu_r", vmin=0.0, vmax=1.0)
    names = [str(item) for item in probabilities.index]
    ax.set_xticks(range(m), names, rotation=45, ha="right", parse_math=False)
    ax.set_yticks(range(m), names, parse_math=False)
    ax.set_xlabel("column item")
    ax.set_ylabel("row item")
    if m <= 15:
        place: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small"}
        for (row, column), value in np.ndenumerate(values):
            if row != column:
                ink = "white" if abs(value - 0.5) > 0.3 else "0.15"
                ax.text(column, row, f"{value:.2f}", color=ink, **place)
    ax.figure.figure.colorbar(image, ax=ax, label=label, shrink=0.8)
    return _finish(ax, f"{heading}, {caption}", sides=())


def consensus(frame: pd.DataFrame, alpha: float, caption: str, *, ax: Axes | None = None) -> Figure:
    """Draw a consensus order, best on top: the ranks each item can have, and its own place."""
    places = [f"{rank}  {item}" for item, rank in frame["rank"].items()]
    low = frame["rank"]
    high = frame["rank"]
    label = "place in the consensus"
    if "rank_lower" in frame:
        low = frame["rank_lower"] - 0.3
        high = frame["rank_upper"] + 0.3
        label = (
            f"dots: place in the consensus; bars: rank by Borda score, "
            f"{100 * (1 - alpha):g} % for all items at once, privacy noise included"
        )
    shown = frame[["rank"]].assign(lower=low, upper=high).set_axis(places)
    # the line of reference is left of the first place, and not seen
    ax, _ = _intervals(ax, shown, "rank", [_INK] * len(frame), 0.0)
    ax.set_xlim(0.4, len(frame) + 0.6)
    ax.locator_params(axis="x", integer=True)
    return _finish(ax, f"Consensus, {caption}", label)


def effect(frame: pd.DataFrame, label: str, caption: str, *, ax: Axes | None = None) -> Figure:
    """Draw a noisy distance, the one row of `frame`, on a line that starts at zero."""
    ax, _ = _intervals(ax, frame, "effect", [_INK], 0.0)
    ax.set_xlim(0.0, 1.08 * max(float(frame[["effect", "upper"]].to_numpy().max()), 1e-9))
    return _finish(ax, caption, label)


def differences(frame: pd.DataFrame, label: str, caption: str, *, ax: Axes | None = None) -> Figure:
    """Draw differences between groups by item; those whose intervals leave out 0 in another colour.

    `frame` has ``item``, ``group``, ``other``, ``difference``, ``lower``, ``upper`` and ``clear``.
    """
    versus = frame["group"].astype(str) + " v " + frame["other"].astype(str)
    heading = versus.iloc[0]
    labels = frame["item"].astype(str)
    if versus.nunique() > 1:
        # the comparisons of an item stand below each other, each with its name
        heading = f"{versus.nunique()} comparisons"
        labels = labels + ": " + versus
        by_item = np.argsort(pd.factorize(frame["item"])[0], kind="stable")
        frame = frame.iloc[by_item]
        labels = labels.iloc[by_item]
    colours = [_CHOSEN if clear else _INK for clear in frame["clear"]]
    ax, _ = _intervals(ax, frame.set_axis(labels), "difference", colours, 0.0)
    return _finish(ax, f"{heading}, {caption}", label)


def null_distribution(
    edges: FloatArray,
    mass: FloatArray,
    *,
    statistic: float,
    threshold: float | None,
    label: str,
    caption: str,
    ax: Axes | None = None,
) -> Figure:
    """Draw the distribution of a noisy statistic under H0, the threshold and the released value.

    `mass` holds the probabilities of the bins between `edges`.
    """
    ax = _axes(ax, (6.4, 3.4))
    ax.stairs(mass / np.diff(edges), edges, fill=True, color=_FULL)
    if threshold is not None:
        ax.axvline(threshold, color="0.35", lw=1.2, ls="--", label=f"threshold {threshold:.4g}")
    ax.axvline(statistic, color=_CHOSEN, lw=2.2, label=f"released {statistic:.4g}")
    ax.set_ylabel("density under H0")
    ax.set_ylim(bottom=0.0)
    ax.legend(frameon=False, fontsize="small")
    return _finish(ax, caption, label)


_AXES = {"nobs": "respondents", "epsilon": "epsilon", "effect": "effect"}


def planned(
    frame: pd.DataFrame,
    across: str,
    outcome: str,
    caption: str,
    *,
    words: str = "",
    plain: float | None = None,
    edge: float = 0.0,
    ax: Axes | None = None,
) -> Figure:
    """Draw what a design predicts against one of nobs, epsilon and effect.

    `frame` has ``nobs``, ``epsilon``, ``effect``, the column `outcome` and ``std err``; a line for
    each value of the other that varies, two standard errors of the simulation as a band. `words`
    name the axis of an effect, and `plain` is what there is without privacy, a line of its own.
    From the column ``beyond``, if there is one, to `edge` is what no private method can reach.
    """
    ax = _axes(ax, (6.4, 3.4))
    # whatever varies beside the two axes has a line for each of its values, from dark to light;
    # bands are two Monte Carlo standard errors wide on either side
    other = [name for name in _AXES if name not in (across, outcome) and frame[name].nunique() > 1]
    values = frame[other[0]].unique().tolist() if other else [None]
    for number, value in enumerate(values):
        rows = frame if value is None else frame[frame[other[0]] == value]
        share = number / max(len(values) - 1, 1)
        color = (0.11 + 0.45 * share, 0.23 + 0.47 * share, 0.29 + 0.49 * share)
        label = None if value is None else f"{_AXES[other[0]]} {value:g}"
        label = "non-private" if label == "epsilon inf" else label
        low, high = (rows[outcome] + side * rows["std err"] for side in (-2, 2))
        if frame[outcome].between(0, 1).all():
            low = low.clip(0, 1)
            high = high.clip(0, 1)
        ax.fill_between(rows[across], low, high, color=color, alpha=0.2, lw=0)
        ax.plot(rows[across], rows[outcome], color=color, marker="o", ms=4, label=label)
        if "beyond" in rows and label != "non-private":
            ax.fill_between(
                rows[across],
                rows["beyond"],
                edge,
                facecolor=(*color, 0.1),
                edgecolor=(*color, 0.4),
                lw=0.6,
                hatch="//",
                zorder=0,
                label="no private method",
            )
    if plain is not None:
        ax.axhline(plain, color="0.35", lw=1.0, ls="--", label="non-private")
    if across == "epsilon":
        at = sorted(frame["epsilon"].unique())
        ax.set_xscale("log")
        ax.set_xticks(at, [f"{epsilon:g}" for epsilon in at])
        ax.set_xticks([], minor=True)
    ax.set_ylabel(_AXES.get(outcome, outcome))
    ax.set_ylim(bottom=0.0)
    if other or plain is not None or "beyond" in frame:  # to the right, away from the curves
        _legend(ax)
    return _finish(ax, caption, words if across == "effect" and words else _AXES[across])
