"""Figures of the local studies, drawn from their tables; nothing is simulated.

Busa-Fekete, Fotakis and Zampetakis (2021), Figure 3, local curve, from `localtests_bits.csv`. Yan,
Li and Liu (2020): Figures 3 and 4 (numbers of pairs), from `local_yll_pairs.csv`; Figure 5
(epsilon), from `local_yll_epsilons.csv`; respondents, from `local_yll_sizes.csv`; and Mallows
models, from `local_yll_mallows.csv`. All figures include privrank's default.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
from matplotlib import pyplot
from study import OUT

Rows = list[dict[str, str]]

COLOURS = {
    "default": "#c8553d",
    "one of 8": "#c8553d",
    "one of 1": "#e0a08f",
    "RR": "#1b3a4b",
    "Lap": "#8fb3c7",
    "KwikSort": "0.6",
    "DP-KwikSort": "0.6",
    "m / 2 pairs, exact threshold": "#1b3a4b",
    "m / 2 pairs, printed threshold": "#8fb3c7",
}
NAMES = {
    "default": "privrank's default",
    "RR": "LDP-KwikSort, :RR",
    "Lap": "LDP-KwikSort, :Lap",
    "KwikSort": "KwikSort, non-private",
    "DP-KwikSort": "DP-KwikSort, central model",
    "one of 8": "a bit about one of 8 pairs",
    "one of 1": "a bit about one pair",
}
PAIRS = {"K 1": "1", "K 2": "2", "K 3": "3", "K 4": "4", "K m + 1": "m + 1", "K all": "all"}


def read(name: str) -> Rows:
    with (OUT / f"{name}.csv").open(newline="") as handle:
        return list(csv.DictReader(handle))


def panels(rows: Rows, *keys: str) -> dict[tuple[str, ...], Rows]:
    """Return the rows by their entries in some columns, in the order of the table."""
    parts: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        parts.setdefault(tuple(row[key] for key in keys), []).append(row)
    return parts


def curve(axis: Any, x: Sequence[float], cells: Sequence[str], method: str, **style: Any) -> None:
    """Draw one method's numbers, with two standard errors on either side if they are given."""
    known = [(at, cell) for at, cell in zip(x, cells, strict=True) if cell]
    at = [each for each, _ in known]
    mean, *error = zip(*(cell.rstrip(")").split(" (") for _, cell in known), strict=True)
    axis.errorbar(
        at,
        [float(cell) for cell in mean],
        [2.0 * float(cell) for cell in error[0]] if error else None,
        **{"color": COLOURS.get(method), "marker": "o", "ms": 3, "lw": 1.2} | style,
    )


def grid(rows: int, columns: int) -> tuple[Any, Any]:
    return pyplot.subplots(
        rows,
        columns,
        figsize=(2.7 * columns + 0.4, 2.5 * rows + 0.8),
        layout="constrained",
        squeeze=False,
    )


def finish(figure: Any, axis: Any, title: str, name: str) -> None:
    """Put the legend below, and write the figure next to its table."""
    lines, names = axis.get_legend_handles_labels()
    figure.legend(
        lines, names, fontsize="small", frameon=False, ncols=3, loc="outside lower center"
    )
    figure.suptitle(title, fontsize="medium")
    figure.savefig(OUT / f"{name}.svg", metadata={"Date": None})
    pyplot.close(figure)


def tests_of_uniformity() -> None:
    """Draw power by 1 - phi, one panel for each number of items."""
    parts = panels(read("localtests_bits"), "items", "respondents")
    methods = ("one of 8", "one of 1", "m / 2 pairs, exact threshold")
    methods = (*methods, "m / 2 pairs, printed threshold")
    figure, axes = grid(1, len(parts))
    for axis, ((m, n), rows) in zip(axes[0], parts.items(), strict=True):
        places = range(len(rows))
        for method in methods:
            cells = [row[method] for row in rows]
            if any(cells):
                curve(axis, places, cells, method, label=NAMES.get(method, f"BFZ21: {method}"))
        axis.set_xticks(places, [f"{1 - float(row['phi']):.1g}" for row in rows])
        axis.set_ylim(-0.04, 1.04)
        axis.axhline(0.05, color="0.6", lw=0.8, ls="--")
        axis.set_title(f"m = {m}, n = {int(n):,}", fontsize="medium")
        axis.set_xlabel("1 - phi")
    axes[0, 0].set_ylabel("power")
    title = "Local tests of uniformity, epsilon 1/3, level 0.05"
    finish(figure, axes[0, -1], title, "localtests_bits")


def numbers_of_pairs() -> None:
    """Draw the excess by the number of pairs, one panel for each survey and epsilon."""
    parts = panels(read("local_yll_pairs"), "data", "epsilon")
    data = list(dict.fromkeys(name for name, _ in parts))
    figure, axes = grid(len(data), len(parts) // len(data))
    for axis, ((name, epsilon), rows) in zip(axes.flat, parts.items(), strict=True):
        places = range(len(PAIRS))
        for row in rows:
            method = row["protocol"]
            curve(axis, places, [row[column] for column in PAIRS], method, label=NAMES[method])
        mean = float(rows[0]["default"].split()[0])
        axis.axhline(mean, color=COLOURS["default"], lw=1.2, label=NAMES["default"], clip_on=False)
        axis.set_xticks(places, list(PAIRS.values()))
        axis.set_ylim(0.0, 1.08 * axis.get_ylim()[1])
        axis.set_title(f"{name}, epsilon {float(epsilon):g}", fontsize="medium")
    for axis in axes[-1]:
        axis.set_xlabel("pairs K")
    for axis in axes[:, 0]:
        axis.set_ylabel("excess, % of all pairs")
    title = "LDP-KwikSort by number of pairs: disagreements beyond the least possible"
    finish(figure, axes[0, 0], title, "local_yll_pairs")


def judged(name: str, across: str, title: str) -> None:
    """Draw the excess, above, and the error rate, below, one column for each survey."""
    parts = panels(read(name), "data")
    figure, axes = grid(2, len(parts))
    for (excess, errors), ((data,), rows) in zip(axes.T, parts.items(), strict=True):
        x = [float(row[across]) for row in rows]
        for method in ("Lap", "RR", "default", "DP-KwikSort"):
            style: Mapping[str, Any] = {"ls": "--", "marker": ""} if "DP" in method else {}
            curve(excess, x, [row[method] for row in rows], method, label=NAMES[method], **style)
            if f"errors, {method}" in rows[0]:
                curve(errors, x, [row[f"errors, {method}"] for row in rows], method)
        for axis in (excess, errors):
            axis.set_xscale("log")
            axis.set_xticks(x, [f"{at:g}" for at in x], fontsize="x-small")
            axis.set_xticks([], minor=True)
            axis.set_ylim(0.0, 1.08 * axis.get_ylim()[1])
        excess.set_title(data, fontsize="medium")
        errors.set_xlabel("respondents" if across == "n" else across)
    axes[0, 0].set_ylabel("excess, % of all pairs")
    axes[1, 0].set_ylabel("wrong majorities, %")
    finish(figure, axes[0, 0], title, name)


def mallows() -> None:
    """Draw the mean Kendall distance by the number of rankings, by items and theta."""
    parts = panels(read("local_yll_mallows"), "items", "theta")
    sizes = list(dict.fromkeys(m for m, _ in parts))
    figure, axes = grid(len(sizes), len(parts) // len(sizes))
    for axis, ((m, theta), rows) in zip(axes.flat, parts.items(), strict=True):
        n = [float(row["n"]) for row in rows]
        for method in ("Lap", "RR", "default", "KwikSort"):
            style: Mapping[str, Any] = {"ls": "--", "marker": ""} if method == "KwikSort" else {}
            curve(axis, n, [row[method] for row in rows], method, label=NAMES[method], **style)
        axis.set_xticks(n)
        axis.set_ylim(0.0, 1.08 * axis.get_ylim()[1])
        axis.set_title(f"m = {m}, theta = {theta}", fontsize="medium")
    for axis in axes[-1]:
        axis.set_xlabel("n")
    for axis in axes[:, 0]:
        axis.set_ylabel("distance, % of all pairs")
    title = "Mallows rankings, epsilon 2: mean Kendall distance of a consensus from the rankings"
    finish(figure, axes[0, 0], title, "local_yll_mallows")


def main() -> None:
    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "privrank", "svg.fonttype": "none"}
    tests_of_uniformity()
    numbers_of_pairs()
    judged("local_yll_epsilons", "epsilon", "LDP-KwikSort by epsilon: excess and error rate")
    title = "LDP-KwikSort by the number of respondents, epsilon 2: excess and error rate"
    judged("local_yll_sizes", "n", title)
    mallows()


if __name__ == "__main__":
    main()
