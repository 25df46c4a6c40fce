"""Norms of many uniform rankings: exceedance rates of the quantiles of their limit.

For large n the null tables of the Borda norm and the residual norm are drawn by counts of orders,
or as chi-squares (`privrank.mechanisms.ranknorms.Limit`). Here rankings are drawn as well,
including n below the range of the limit, and without noise that could hide a difference.
"""

from __future__ import annotations

import math
import time

import numpy as np
from study import SEED, arguments, replicate, write

from privrank.hypotheses.nulls import are_many, uniform_rankings
from privrank.mechanisms.ranknorms import Limit, plain_norm, residual_norm

CELLS = ((3_000, 7), (3_000, 10), (5_000, 10), (20_000, 10), (3_000, 20), (20_000, 20))
LEVELS = (0.05, 0.01)
AT_THE_LIMIT = 100_000
"""Draws of the limit."""


def norms(rng: np.random.Generator, n: int, m: int) -> tuple[int, int]:
    """Return both norms of one sample of uniform rankings."""
    ranks = uniform_rankings(rng, n, m)
    return plain_norm(n, m).value(ranks, ()), residual_norm(n, m).value(ranks, ())


def at_the_limit(n: int, m: int) -> np.ndarray:
    """Return draws of both norms from the limit."""
    limit, rng = Limit(n, m), np.random.default_rng([SEED, n, m])
    samples = (limit.sample(rng) for _ in range(AT_THE_LIMIT))
    return np.array([(limit.borda(one, ()), limit.residual(one, ())) for one in samples])


def row(n: int, m: int, replicates: int) -> dict[str, object]:
    """Return the fractions of drawn norms beyond the quantiles of the limit."""
    drawn = np.array(replicate(norms, replicates, n, m, cell=n * m))
    limit = at_the_limit(n, m)
    cells: dict[str, object] = {"rankings": n, "items": m, "used": are_many(n, m)}
    for level in LEVELS:
        beyond = (drawn > np.quantile(limit, 1.0 - level, axis=0)).mean(axis=0)
        error = math.sqrt(level * (1.0 - level) / replicates)
        cells |= {f"Borda {level:g}": f"{beyond[0]:.4f}", f"residual {level:g}": f"{beyond[1]:.4f}"}
        cells[f"SE {level:g}"] = f"{error:.4f}"
    return cells | {"correlation": f"{np.corrcoef(drawn.T)[0, 1]:.3f}", "replicates": replicates}


def main() -> None:
    """Run the study and write its table."""
    started, replicates = time.time(), arguments(__doc__, 8_000)
    rows = [row(n, m, replicates) for n, m in CELLS]
    title = "Norms of many uniform rankings: exceedance of the limiting quantiles"
    write("uniformity_limit", title, "python validation/uniformity_limit.py", rows, started)


if __name__ == "__main__":
    main()
