"""Figures of results as pages show them: a picture inside the page, and what it says in words."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from html import escape
from typing import Any

from privrank.results.btl import BTLResult

__all__ = ["Drawing", "draw"]

_CAPTIONS = {
    (
        "BTLResult",
        "plot",
    ): "Worths with {level} intervals. Dark: sampling error alone; light: privacy "
    "noise included. At the right, the ranks that cannot be ruled out.",
    ("BTLResult", "plot_pairwise"): "Probability under the model that the row is preferred to the "
    "column.",
    ("TopKResult", "plot"): "Win rates with {level} intervals; the selected items in the other "
    "colour.",
    ("AggregationResult", "plot"): "Ranks by Borda score, with {level} intervals that hold for all "
    "items at once.",
    ("AggregationResult", "plot_pairwise"): "Fraction of the rankings that place the row before "
    "the column, as released.",
    ("UniformityTest", "plot"): "The statistic under H0 with its noise, the least value that is "
    "rejected, and the value released.",
    ("ClosenessResult", "plot"): "Distance between the groups, with its {level} interval.",
    ("ClosenessResult", "plot_details"): "What differs between the groups, with {level} intervals "
    "that hold all at once.",
}
_BY_GROUP = {
    "plot": "Worths by group with {level} intervals, privacy noise included.",
    "plot_pairwise": "Probability under the model that the row is preferred to the column, in the "
    "reference group.",
}
_CAPTIONS["IdentityTest", "plot"] = _CAPTIONS["UniformityTest", "plot"]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture with a caption.

    Parameters
    ----------
    png : bytes
        The picture.
    width : int
        Its width on a page, in pixels of CSS.
    caption : str
        What it shows.
    """

    png: bytes
    width: int
    caption: str

    def as_html(self) -> str:
        """Return a figure with the picture inside."""
        data = base64.b64encode(self.png).decode("ascii")
        words = escape(self.caption)
        return (
            f'<figure><img src="data:image/png;base64,{data}" width="{self.width}" '
            f'alt="{words}"><figcaption>{words}</figcaption></figure>'
        )


def draw(result: Any, method: str = "plot") -> Drawing | None:
    """Return what a plotting method of a result draws; None where there is nothing to draw."""
    plot = getattr(result, method, None)
    if plot is None:
        return None
    try:
        figure = plot()
    except ValueError:  # such as of a decision, or of pairs that were not released
        return None
    from matplotlib import pyplot

    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=160)
    pyplot.close(figure)
    width = round(105 * figure.get_size_inches()[0])  # CSS has 96 to the inch; a bit larger
    return Drawing(picture.getvalue(), width, _caption(result, method))


def _caption(result: Any, method: str) -> str:
    words = _CAPTIONS.get((getattr(result, "model", ""), method), "")
    if isinstance(result, BTLResult) and result.release.design.covariates is not None:
        words = _BY_GROUP[method]
    return words.format(level=f"{100 * (1 - result.alpha):g} %") if words else ""
