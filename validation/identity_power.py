"""Power of the tests of identity, against uniform and against Mallows nulls."""

from __future__ import annotations

import math
import time

import numpy as np
from study import arguments, mean_and_error, replicate, write

import privrank as pr
from privrank.hypotheses.effects import rejection_of
from privrank.hypotheses.nulls import NullModel
from privrank.identity import identity_statistic
from privrank.privacy.noise import DiscreteLaplace
from privrank.release.survey import Sample

ALPHA = 0.05

# categories, choices and epsilon; half of the categories more likely by a distance of 0.2
CHOICES = ((6, 100, 0.5), (24, 300, 0.5), (120, 300, 1.0), (720, 1000, 0.5))

# items, phi under H0, rankings, epsilon and the alternative
RANKINGS = (
    (10, 0.8, 300, 0.5, "phi = 0.76"),
    (10, 0.8, 300, 1.0, "top two swapped"),
    (20, 0.8, 100, 0.5, "phi = 0.84"),
    (50, 0.5, 300, 0.1, "phi = 0.6"),
    (50, 0.5, 300, 1.0, "top two swapped"),
    (100, 0.8, 100, 0.1, "phi = 0.84"),
    (100, 0.95, 300, 0.1, "top item last"),
)
METHODS = ("auto", "kernel", "distance")


def counts(rng: np.random.Generator, k: int, n: int) -> np.ndarray:
    tilt = rng.permuted(np.repeat([0.4 / k, -0.4 / k], k // 2))
    return rng.multinomial(n, 1.0 / k + tilt)


def ranks(rng: np.random.Generator, m: int, phi: float, n: int, other: str) -> np.ndarray:
    center = np.arange(1, m + 1)
    if other.startswith("phi"):
        phi = float(other.split("=")[1])
    elif other == "top two swapped":
        center[:2] = (2, 1)
    else:
        center = np.append(m, np.arange(1, m))
    return pr.Mallows(m, phi, center).rvs(n, rng)


def one(rng: np.random.Generator, build: object, setting: tuple, rejections: dict) -> dict:
    data = build(rng, *setting)
    order = tuple(range(data.shape[-1]))
    return {key: reject(data, order) for key, reject in rejections.items()}


def rejections_of(sample: Sample, null: NullModel, epsilon: float, methods: tuple) -> dict:
    found = {}
    for spent in (epsilon, math.inf):
        for method in methods:
            asked = identity_statistic(null, sample, xi=spent, method=method)
            distribution = DiscreteLaplace.calibrate(asked.sensitivity, spent)
            threshold = asked.null(1_999).threshold(ALPHA, distribution)
            found[method, spent] = rejection_of(asked, distribution, threshold)
    return found


def main() -> None:
    started = time.time()
    replicates = arguments(__doc__, 300)
    rows: list[dict] = []

    def study(name: str, build: object, setting: tuple, rejections: dict, cell: int) -> None:
        found = replicate(one, replicates, build, setting, rejections, cell=cell)
        for method, spent in rejections:
            power, error = mean_and_error([hit[method, spent] for hit in found])
            rows.append(
                {
                    "data and null": name,
                    "epsilon": f"{spent:g}",
                    "method": method,
                    "power": f"{power:.3f}",
                    "std err": f"{error:.3f}",
                }
            )
        print(f"{name}: {time.time() - started:.0f} s", flush=True)

    for cell, (k, n, epsilon) in enumerate(CHOICES, 6000):
        sample = Sample("choices", tuple(map(str, range(k))), n, "row", 1)
        rejections = rejections_of(sample, NullModel((1.0 / k,) * k), epsilon, ("auto", "tv"))
        study(f"{n} choices of {k}, uniform; Paninski .2", counts, (k, n), rejections, cell)
    for cell, (m, phi, n, epsilon, other) in enumerate(RANKINGS, 6100):
        sample = Sample("rankings", tuple(map(str, range(m))), n, "row", 1)
        null = NullModel(theta=-math.log(phi), center=tuple(range(1, m + 1)))
        rejections = rejections_of(sample, null, epsilon, METHODS)
        name = f"{n} rankings of {m}, phi = {phi:g}; {other}"
        study(name, ranks, (m, phi, n, other), rejections, cell)
    command = "python validation/identity_power.py"
    write("identity_power", "Power of the tests of identity", command, rows, started)


if __name__ == "__main__":
    main()
