"""Intervals for the distance of choices from a null: coverage, widths, agreement with the test."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from study import SEED, arguments, replicate, write

import privrank as pr
from privrank.hypotheses.interval import interval_from
from privrank.mechanisms.categories import distance_from_null
from privrank.privacy.noise import DiscreteLaplace

ALPHA, EPSILONS = 0.05, (0.5, 2.0)
SIZES = {"uniform": ((2, 30), (2, 300), (2, 5000), (20, 300), (900, 300))}
SIZES["Zipf"] = tuple((k, n) for k in (2, 20, 100, 900) for n in (30, 300, 5000))
SIZES["Zipf, a fifth zero"] = tuple((k, n) for k in (20, 100, 900) for n in (30, 300, 5000))
DISTANCES = {"uniform": (0.15,), "Zipf": (0.05, 0.2), "Zipf, a fifth zero": (0.05, 0.2)}
FITS, SAMPLES = 10_000, 4_000


def null_of(name: str, k: int) -> np.ndarray:
    if name == "uniform":
        return np.full(k, 1.0 / k)
    p = 1.0 / np.arange(1.0, k + 1.0)
    if name != "Zipf":
        p[k - k // 5 :] = 0.0
    return p / p.sum()


def alternatives(p: np.ndarray, theta: float) -> dict[str, np.ndarray]:
    """Distributions at this distance: every other cell raised, the rarest, and the commonest."""
    found = {}
    raised = np.arange(len(p)) % 2 == 0
    for name, cells in (("spread", raised), ("rarest", None), ("commonest", None)):
        up = np.zeros(len(p), dtype=bool) if cells is None else cells
        if cells is None:
            up[len(p) - 1 if name == "rarest" else 0] = True
        share, rest = p[up].sum(), p[~up].sum()
        if rest < theta:
            continue
        each = p[up] / share if share > 0 else 1.0 / up.sum()
        other = p * (1.0 - theta / rest)
        other[up] = p[up] + theta * each
        found[name] = other / other.sum()
    return found


def boundary(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last whole number at which a condition that is true on the left is true."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def coverage(name: str, k: int, n: int, epsilon: float, theta: float) -> list[dict]:
    """Coverage with the noise integrated out: both ends rise in the released number."""
    p = null_of(name, k)
    asked = distance_from_null(n, tuple(p))
    distribution = DiscreteLaplace.calibrate(asked.sensitivity, epsilon)
    ends: dict[int, tuple[float, float]] = {}

    def interval(noisy: int) -> tuple[float, float]:
        if noisy not in ends:
            scale = {"step": asked.step, "sensitivity": asked.sensitivity}
            ends[noisy] = interval_from(noisy, n, tuple(p), distribution, ALPHA, **scale)
        return ends[noisy]

    far, top = round(30 * distribution.scale) + 1, round(1.0 / asked.step)
    last = boundary(lambda noisy: interval(noisy)[0] <= theta, -far, top + far)
    first = boundary(lambda noisy: interval(noisy)[1] < theta, -far, top + far) + 1
    rows = []
    for kind, cells in alternatives(p, theta).items():
        rng = np.random.default_rng([SEED, k, n, round(100 * theta), len(kind)])
        counts = rng.multinomial(n, cells, SAMPLES)
        values = np.array([asked.value(row, ()) for row in counts])
        above, below = distribution.tail(last + 1 - values), 1.0 - distribution.tail(first - values)
        middle = [round(float(value)) for value in np.quantile(values, (0.1, 0.3, 0.5, 0.7, 0.9))]
        width = float(np.mean([high - low for low, high in map(interval, middle)]))
        error = float((above + below).std(ddof=1)) / SAMPLES**0.5
        rows.append(
            {
                "null": name,
                "k": k,
                "n": n,
                "epsilon": f"{epsilon:g}",
                "distance": theta,
                "alternative": kind,
                "coverage": f"{1.0 - float(above.mean() + below.mean()):.4f}",
                "std err": f"{error:.4f}",
                "misses above": f"{float(above.mean()):.4f}",
                "misses below": f"{float(below.mean()):.4f}",
                "width": f"{width:.3f}",
            }
        )
    return rows


def agrees(rng: np.random.Generator) -> bool:
    """Whether one random fit rejects exactly if its interval excludes 0, at three levels."""
    k, n = int(rng.integers(2, 7)), int(rng.integers(10, 400))
    p = rng.dirichlet(np.ones(k))
    other = p if rng.random() < 0.3 else rng.dirichlet(50.0 * p + 0.1)
    test = pr.IdentityTest.from_counts(rng.multinomial(n, other), p, list(range(k)))
    own = rng.random() < 0.5 or k == 2
    how = {"method": "tv"} if own else {"method": "omnibus", "effect_epsilon": 8.0}
    result = test.fit(float(rng.choice([0.5, 2.0, 8.0])), draws=99, rng=rng, **how)
    found = []
    for alpha in (0.2, 0.05, 0.01):
        low, high = result.conf_int(alpha)
        found.append((low > 0.0) == (result.pvalue <= alpha) and low <= high and high >= 0.0)
    return all(found)


def main() -> None:
    started, rows = time.time(), []
    fits = arguments(__doc__, FITS)
    found = replicate(agrees, fits, cell=9000)
    for name, sizes in SIZES.items():
        for k, n in sizes:
            for epsilon in EPSILONS[-1:] if name == "uniform" else EPSILONS:
                for theta in DISTANCES[name]:
                    rows += coverage(name, k, n, epsilon, theta)
        print(f"{name}: {time.time() - started:.0f} s", flush=True)
    title = (
        "Intervals for the distance of choices from a null hypothesis, with at most 5% misses; "
        f"{sum(found)} of {len(found)} random fits reject exactly if the interval leaves out 0"
    )
    write("effects", title, "python validation/effects.py", rows, started)


if __name__ == "__main__":
    main()
