"""What results must have to be pooled: weights that are not their own noise. Public facts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from privrank.bradley_terry.inference import Inference
from privrank.consensus.statements import RandomReports, Statements

__all__ = ["Survey", "check_reports", "check_scores"]

Survey = Literal["same", "different"]

_LEAST_REPORTS = 200
"""Reports that show their variance well enough for a weight: with 100, 95 % intervals cover .94."""


def check_scores(inferences: Sequence[Inference], same: bool) -> None:
    """Refuse fits whose scores are others, or weights that the noise of pair counts would choose.

    Both are known from public facts.
    """
    facts = [each.equations for each in inferences]
    if same and any(each.function != facts[0].function for each in facts):
        raise ValueError(
            "results of one survey must have the same score equations, and with this link those of "
            "method='objective' are others: fit all with one method=."
        )
    for each in inferences:
        design = each.release.design
        noise, pairs = math.sqrt(each.equations.count_variance), design.reach.pairs
        if not same and noise > (expected := design.nominal_total / pairs):
            raise ValueError(
                f"results of different surveys must have pair counts that are no smaller than "
                f"their noise, and one has {expected:.3g} comparisons for each pair beside noise "
                f"of {noise:.3g}: leave it out, or fit it with a larger epsilon or a public design."
            )


def check_reports(stated: Statements) -> Statements:
    """Return what a consensus states; refuse few reports, whose variance is no sure weight."""
    if isinstance(stated, RandomReports) and np.diag(stated.concerned).min() < _LEAST_REPORTS:
        raise ValueError(
            f"results of reports must have at least {_LEAST_REPORTS} about each item to be pooled, "
            f"as the variance that they show is their weight: leave smaller ones out."
        )
    return stated
