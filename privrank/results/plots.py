"""Figures of result tables; matplotlib is imported at the first figure.

Figures show released numbers only. The arguments of a function are a table or numbers of a result
and the significance level `alpha` of its bars. `frame` is the frame of ``to_frame()`` unless the
docstring describes another one. A `caption` becomes the title. If the noise is `seeded`, a small
note is added at the lower right. Functions draw into ``ax=`` and return the figure. Titles and
labels are broken at the width of the axes. The title is set by ``ax.set_title``: users can replace
it, and axes with a title keep it. Colours are the colours of Okabe and Ito with a contrast of at
least 3 to 1 on white. Groups also have different markers, so figures can be read in black and
white.
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
    # other modules use these types
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure


_NAMED = 120
"""Largest number of rows that are all labelled; of more rows at most half this number is."""

_INK = "black"
_BLUE = "#0072B2"
_AREA = "#4C93C3"
_CHOSEN = "#D55E00"
_GREYS = ("0.45", "0.58")
_COLOURS = (_BLUE, _CHOSEN, "#009E73", "#CC79A7", _INK)
# five colours and seven markers make 35 styles
_MARKERS = "os^vPX<"


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        if not hasattr(ax, "figure") or not hasattr(ax, "plot"):
            raise TypeError(
                f"ax must be Axes of matplotlib, got {type(ax).__name__}: leave it out, or make "
                f"some with matplotlib.pyplot.subplots()."
            )
        return ax
    from matplotlib import pyplot
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    # text does not touch the border of the figure
    return pyplot.subplots(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))[1]


def svg(figure: Figure) -> bytes:
    """Return a figure as SVG, reproducible between runs, and close it."""
    from matplotlib import pyplot, rc_context

    picture = io.BytesIO()
    with rc_context({"svg.hashsalt": "privrank"}):
        figure.savefig(picture, format="svg", dpi=200, metadata={"Date": None})
    pyplot.close(figure)
    return picture.getvalue()


def _item_axes(
    ax: Axes | None, labels: Sequence[str], height: float = 0.0
) -> tuple[Axes, IntArray, int]:
    """Return axes with a row per label, positions of rows, and a marker size.

    The first row is on top. `height` is the height of a row in inches, by default 0.42 for at most
    20 rows and 0.24 for more. With more than 120 rows at most 60 are labelled, in even steps.
    """
    m = len(labels)
    height, dots = (height or 0.42, 36) if m <= 20 else (height or 0.24, 18)
    ax = _axes(ax, (6.4, height * m / _step(m) + 1.7))
    rows = np.arange(m)[::-1]
    ax.set_yticks(rows[:: _step(m)], _wrapped(labels)[:: _step(m)], parse_math=False)
    ax.set_ylim(-0.6, m - 0.4)
    return ax, rows, dots


def _step(rows: int) -> int:
    return 1 if rows <= _NAMED else -(-rows // (_NAMED // 2))


def _wrapped(labels: Sequence[str]) -> Sequence[str]:
    """Return labels in at most two lines each, if two lines fit."""
    return (
        labels
        if len(labels) > 20
        else [textwrap.fill(label, max(24, len(label) // 2 + 8)) for label in labels]
    )


def _style(number: int, pooled: bool = False) -> tuple[str, str]:
    """Return the colour and marker of a group or line by its number."""
    if pooled and number == 0:
        return _INK, "D"
    colours = _GREYS if pooled else _COLOURS
    return colours[number % len(colours)], _MARKERS[number % len(_MARKERS)]


def _width(ax: Any) -> float:
    """Return the width of axes in inches, before space for labels is reserved."""
    return float(ax.get_position().width * ax.figure.figure.get_figwidth())


def _broken(ax: Any, text: str) -> str:
    """Return a text in lines of the width of the axes, at 12 letters per inch."""
    # do not break a line inside an equation
    width = max(24, int(12 * _width(ax)))
    return textwrap.fill(text.replace(" = ", "\u00a0=\u00a0"), width).replace("\u00a0", " ")


def _finish(
    ax: Axes,
    caption: str,
    label: str = "",
    *,
    factors: str = "",
    seeded: bool = False,
    sides: tuple[str, ...] = ("top", "right"),
) -> Figure:
    """Label the axes, draw a legend with the heading `factors`, and return the figure."""
    for side in sides:
        ax.spines[side].set_visible(False)
    if label:
        ax.set_xlabel(_broken(ax, label))
    if not ax.get_title():
        # a title of two lines has the guarantee (in brackets) in the second line
        parts = (
            caption.replace(" (", "\n(").split("\n") if "\n" in _broken(ax, caption) else [caption]
        )
        lines = [_broken(ax, part) for part in parts]
        ax.set_title("\n".join(lines), fontsize="medium", parse_math=False)
    lowest = _legend(ax, factors) or ax.xaxis.label
    if seeded:
        ax.annotate(
            "seeded noise",
            (1.0, 0.0),
            xycoords=("axes fraction", lowest),
            xytext=(0, -4),
            textcoords="offset points",
            ha="right",
            va="top",
            color="0.4",
            fontsize="x-small",
        )
    # the figure of a subfigure is the whole figure
    return ax.figure.figure


def _legend(ax: Axes, title: str) -> Any:
    """Draw a legend below the axes, with one entry per label, if any."""
    from matplotlib.transforms import ScaledTranslation

    handles, labels = ax.get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))
    if not entries:
        return None
    # labels of rows reduce the width of the axes
    names = "\n".join(text.get_text() for text in ax.get_yticklabels()).split("\n")
    room = _width(ax) + 0.6 - 0.08 * max(map(len, names))
    columns = max(1, int(room / (0.5 + 0.075 * max(map(len, entries)))))
    down = 14.0 + 1.3 * float(ax.xaxis.label.get_fontsize()) * (2 + ax.get_xlabel().count("\n"))
    below = ScaledTranslation(0.0, -down / 72.0, ax.figure.figure.dpi_scale_trans)
    return ax.legend(
        list(entries.values()),
        list(entries),
        ncols=min(columns, len(entries)),
        title=title or None,
        alignment="left",
        frameon=False,
        fontsize="small",
        title_fontsize="small",
        borderaxespad=0.0,
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=ax.transAxes + below,
        loc="upper left",
    )


def _bars(ax: Any, rows: Any, frame: pd.DataFrame, estimate: str, **style: Any) -> None:
    """Draw intervals, with an arrow at each infinite end."""
    sides = np.array(frame[["lower", "upper"]], dtype=np.float64)
    # arrows end a tenth of the range beyond all finite ends and estimates
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
    ax: Axes | None,
    frame: pd.DataFrame,
    estimate: str,
    reference: float,
    *,
    names: tuple[str, str] = ("", ""),
    chosen: Any = False,
    label: str = "",
) -> Axes:
    """Draw one row per label, first on top, and rank sets at the right edge.

    Rank sets are drawn if the frame has them. `label` is the legend entry of the intervals. `names`
    are the legend entries of `chosen` estimates and of all others.
    """
    ax, rows, dots = _item_axes(ax, [str(item) for item in frame.index])
    ax.axvline(reference, color="0.75", lw=0.8, zorder=0)
    _bars(ax, rows, frame, estimate, color=_BLUE, lw=1.6, zorder=1, label=label)
    chosen = np.full(len(frame), chosen)
    for some, marker, color, name in (
        (chosen, "D", _CHOSEN, names[0]),
        (~chosen, "o", _INK, names[1]),
    ):
        if some.any():
            ax.scatter(
                frame.loc[some, estimate],
                rows[some],
                s=dots,
                color=color,
                marker=marker,
                edgecolor="white",
                lw=0.6,
                zorder=3,
                label=name,
            )
    if "rank_lower" in frame:
        sides = zip(rows, frame["rank_lower"], frame["rank_upper"], strict=True)
        for row, low, high in itertools.islice(sides, 0, None, _step(len(frame))):
            known = f"{low:.0f}–{high:.0f}" if low < high else f"{low:.0f}"
            _beside(ax, row, "not identified" if np.isnan(low) else known)
        _beside(ax, rows[0], "rank set", up=8, va="bottom")
    return ax


def _beside(ax: Axes, row: int, text: str, up: float = 0.0, va: str = "center") -> None:
    """Write a text to the right of a row, `up` points higher."""
    ax.annotate(
        text,
        (1.02, row),
        xycoords=("axes fraction", "data"),
        xytext=(0, up),
        textcoords="offset points",
        va=va,
        color="0.35",
        annotation_clip=False,
    )


def worth_label(link: str) -> str:
    """Return the label of an axis of worths, by the name of their link."""
    return "worth (log-odds, mean 0)" if link == "logit" else f"worth ({link} scale, mean 0)"


def interval_words(alpha: float) -> str:
    """Return the name of intervals of this level, such as "95% interval"."""
    return f"{100 * (1 - alpha):g}% interval"


def worth(
    frame: pd.DataFrame,
    alpha: float,
    caption: str,
    link: str,
    *,
    seeded: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """Draw worths with sampling-only intervals (thick) and full ones (thin)."""
    level = interval_words(alpha)
    if not np.allclose(frame["std_err"], frame["sampling"], equal_nan=True):
        half = -ndtri(alpha / 2) * frame["sampling"]
        ax, rows, _ = _item_axes(ax, [str(item) for item in frame.index])
        ax.hlines(
            rows,
            frame["worth"] - half,
            frame["worth"] + half,
            color=_BLUE,
            lw=5,
            zorder=2,
            label=f"{level}: sampling only",
        )
        level = "sampling + privacy noise"
    ax = _intervals(ax, frame, "worth", 0.0, label=level)
    return _finish(ax, caption, worth_label(link), seeded=seeded)


def group_worths(
    frame: pd.DataFrame,
    factors: list[str],
    label: str,
    caption: str,
    *,
    pooled: bool = False,
    reference: float = 0.0,
    seeded: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """Draw the worths of groups side by side.

    `frame` is the frame of ``worths()``, and `factors` are the columns that define the groups.
    `label` is the label of the horizontal axis, which has a line at `reference`. If the first group
    is `pooled` from the others, it is drawn in black with diamonds, and the others are grey.
    """
    groups = [", ".join(str(row[name]) for name in factors) for row in frame.to_dict("records")]
    labels = list(dict.fromkeys(groups))
    ax, rows, _ = _item_axes(ax, list(dict.fromkeys(frame["item"])), max(0.22 * len(labels), 0.42))
    ax.axvline(reference, color="0.75", lw=0.8, zorder=0)
    for place, name in enumerate(labels):
        color, marker = _style(place, pooled)
        part = frame[[group == name for group in groups]]
        at = rows + (0.5 * (len(labels) - 1) - place) * 0.7 / len(labels)
        _bars(ax, at, part, "worth", color=color, lw=1.6)
        ax.scatter(part["worth"], at, color=color, marker=marker, s=30, zorder=3, label=name)
    return _finish(ax, caption, label, factors="" if pooled else ", ".join(factors), seeded=seeded)


def win_rates(
    frame: pd.DataFrame,
    target: str,
    alpha: float,
    caption: str,
    *,
    seeded: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """Draw win rates or net wins with intervals, with selected items coloured."""
    ax = _intervals(
        ax,
        frame,
        target.replace(" ", "_"),
        0.5 if target == "win rate" else 0.0,
        names=(f"selected (top {int(frame['selected'].sum())})", "not selected"),
        chosen=frame["selected"].to_numpy(dtype=bool),
    )
    label = f"{target} ({interval_words(alpha)})" if frame["lower"].notna().any() else target
    return _finish(ax, caption, label, seeded=seeded)


def pairwise(
    probabilities: pd.DataFrame,
    caption: str,
    label: str,
    *,
    seeded: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """Draw probabilities that the row item is preferred as a heat map.

    The colour scale is centred at one half. Pairs without an estimate are grey. The scale ends at
    0.1 and 0.9, because colours beyond would differ little.
    """
    m = len(probabilities)
    side = max(3.6, (0.62 if m <= 15 else 0.24) * m + 1.8)
    ax = _axes(ax, (side + 0.8, side))
    values = probabilities.to_numpy().copy()
    np.fill_diagonal(values, 0.5)
    image = ax.imshow(values, cmap="RdBu_r", vmin=0.1, vmax=0.9)
    names = _wrapped([str(item) for item in probabilities.index])
    ax.set_xticks(
        range(m), names, rotation=45, ha="right", rotation_mode="anchor", parse_math=False
    )
    ax.set_yticks(range(m), names, parse_math=False)
    ax.set(facecolor="0.8", xlabel="compared with (column)", ylabel="preferred item (row)")
    if m <= 15:
        for (row, column), value in np.ndenumerate(values):
            if row != column:
                # legible on a white page, and on a dark one with the brightness inverted
                ink = "white" if abs(value - 0.5) > 0.23 else _INK
                text = "–" if np.isnan(value) else f"{value:.2f}"
                ax.text(column, row, text, color=ink, ha="center", va="center", fontsize="small")
    ax.figure.figure.colorbar(
        image,
        ax=ax,
        label=f"{label}\n(grey: not available)" if np.isnan(values).any() else label,
        ticks=[0.1, 0.25, 0.5, 0.75, 0.9],
        shrink=0.8,
        extend="both",
    )
    return _finish(ax, caption, seeded=seeded, sides=())


def consensus(
    frame: pd.DataFrame, alpha: float, caption: str, *, seeded: bool = False, ax: Axes | None = None
) -> Figure:
    """Draw a consensus order, best on top, with rank sets and ranks."""
    m = len(frame)
    ax, rows, dots = _item_axes(ax, [f"{rank}  {item}" for item, rank in frame["rank"].items()])
    if "rank_lower" in frame:
        ax.barh(
            rows,
            frame["rank_upper"] - frame["rank_lower"] + 1,
            left=frame["rank_lower"] - 0.5,
            height=0.8,
            color=_AREA,
            zorder=1,
            label=f"{100 * (1 - alpha):g}% rank set",
        )
    # lines between ranks divide the bars into cells
    ax.vlines(np.arange(m + 1) + 0.5, -0.5, m - 0.5, color="white", lw=min(1.5, 24 / m), zorder=2)
    ax.scatter(
        frame["rank"],
        rows,
        s=dots,
        color=_INK,
        edgecolor="white",
        lw=0.6,
        zorder=3,
        label="consensus rank",
    )
    ax.set_xlim(0.4, m + 0.6)
    ax.locator_params(axis="x", integer=True)
    return _finish(ax, caption, "rank", seeded=seeded)


def effect(
    frame: pd.DataFrame, label: str, caption: str, *, seeded: bool = False, ax: Axes | None = None
) -> Figure:
    """Draw a noisy distance, the only row of `frame`, on an axis from zero."""
    ax = _intervals(ax, frame, "effect", 0.0)
    ax.set_yticks([])
    ax.set_xlim(0.0, 1.08 * max(float(frame[["effect", "upper"]].to_numpy().max()), 1e-9))
    return _finish(ax, caption, label, seeded=seeded)


def differences(
    frame: pd.DataFrame,
    kind: str,
    alpha: float,
    caption: str,
    *,
    seeded: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """Draw differences between groups by item, with clear ones coloured.

    `frame` has ``item``, ``group``, ``other``, ``difference``, ``lower``, ``upper`` and ``clear``;
    `kind` is the kind of the sample, rankings or choices. A difference is clear if its interval
    excludes 0.
    """
    # the comparisons of an item are in adjacent rows
    frame = frame.iloc[np.argsort(pd.factorize(frame["item"])[0], kind="stable")]
    versus = frame["group"].astype(str) + " vs. " + frame["other"].astype(str)
    several = versus.nunique() > 1
    heading = f"{versus.nunique()} comparisons of groups" if several else versus.iloc[0]
    items = frame["item"].astype(str)
    labels = items + ": " + versus if several else items
    own = [str(frame[name].iloc[0]) for name in ("group", "other")]
    pair = ["first", "second"] if several else own
    ax = _intervals(
        ax,
        frame.set_axis(labels),
        "difference",
        0.0,
        names=("interval excludes 0", "interval includes 0"),
        chosen=frame["clear"].to_numpy(dtype=bool),
        label=f"simultaneous {interval_words(alpha)}",
    )
    # the preferring group has the lower mean rank of an item, or the larger share
    unit = "share" if kind == "choices" else "mean rank"
    left, right = (f"{name} prefers" for name in pair)
    if kind == "choices":
        right, left = (f"more often in {name}" for name in pair)
    # an additional row below the last item
    ax.set_ylim(bottom=-1.4)
    where = ax.get_yaxis_transform()
    ax.text(0.01, -1.1, left, transform=where, ha="left", color="0.35", fontsize="small")
    ax.text(0.99, -1.1, right, transform=where, ha="right", color="0.35", fontsize="small")
    return _finish(
        ax,
        f"{heading} ({caption})",
        f"difference in {unit} ({' - '.join(pair)})",
        seeded=seeded,
    )


def null_distribution(
    edges: FloatArray,
    mass: FloatArray,
    *,
    statistic: float,
    threshold: float | None,
    alpha: float,
    caption: str,
    seeded: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """Draw a null distribution with the threshold and the released statistic.

    The distribution includes the noise; `mass` are the probabilities of the bins between `edges`.
    """
    ax = _axes(ax, (6.4, 3.6))
    ax.stairs(mass / np.diff(edges), edges, fill=True, color=_AREA)
    ax.axvline(statistic, color=_CHOSEN, lw=2.2, label="observed")
    if threshold is not None:
        ax.axvline(
            threshold, color=_INK, lw=1.2, ls="--", label=f"critical value ({100 * alpha:g}%)"
        )
    ax.set(ylabel="density under H0", ylim=(0.0, None))
    return _finish(ax, caption, "test statistic (including privacy noise)", seeded=seeded)


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
    """Draw the predictions of a design against nobs, epsilon or effect.

    `frame` has ``nobs``, ``epsilon``, ``effect``, the column `outcome` and ``std err``. There is
    one line for each value of the other varying number, with a band of two Monte Carlo standard
    errors. `words` is the label of the axis of an effect. `plain` is the prediction without
    privacy, drawn as a separate line. The region from the column ``beyond``, if present, to `edge`
    is out of reach of every private method.
    """
    ax = _axes(ax, (6.4, 3.8))
    # one line for each value of the third varying number; bands are two Monte Carlo standard
    # errors wide on either side
    other = [name for name in _AXES if name not in (across, outcome) and frame[name].nunique() > 1]
    values = frame[other[0]].unique().tolist() if other else [None]
    names = {**_AXES, "effect": words or "effect"}
    for number, value in enumerate(values):
        color, marker = _style(number)
        rows = frame if value is None else frame[frame[other[0]] == value]
        label = None if value is None else f"{names[other[0]]} = {value:g}"
        label = "non-private" if label == "epsilon = inf" else label
        low, high = (rows[outcome] + side * rows["std err"] for side in (-2, 2))
        if frame[outcome].between(0, 1).all():
            low, high = (limit.clip(0, 1) for limit in (low, high))
        band = "2 Monte Carlo standard errors" if number == 0 and frame["std err"].any() else None
        ax.fill_between(rows[across], low, high, color=color, alpha=0.2, lw=0, label=band)
        ax.plot(rows[across], rows[outcome], color=color, marker=marker, ms=5, label=label)
        if "beyond" in rows and label != "non-private":
            ax.fill_between(
                rows[across],
                rows["beyond"],
                edge,
                facecolor=(color, 0.1),
                edgecolor=(color, 0.4),
                lw=0.6,
                hatch="//",
                zorder=0,
                label="beyond any private method",
            )
    if plain is not None:
        ax.axhline(plain, color="0.35", lw=1.0, ls="--", label="non-private")
    if across == "epsilon":
        at = sorted(frame["epsilon"].unique())
        ax.set_xscale("log")
        ax.set_xticks(at, [f"{epsilon:g}" for epsilon in at])
        ax.set_xticks([], minor=True)
    else:
        ax.locator_params(axis="x", nbins=6)
    ax.set(ylabel=_AXES.get(outcome, outcome), ylim=(0.0, None))
    return _finish(ax, caption, names[across])
