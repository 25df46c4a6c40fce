"""Differences between groups: coverage of simultaneous intervals, and the differences they detect.

First table: simulated surveys. It has the fractions of surveys in which all intervals cover, and in
which the intervals of all comparisons with the smallest group cover; the fraction in which a
difference is detected that does not exist or has the other sign; and the numbers of correctly
detected and of existing differences. A difference below 0.02 counts as none. Second table:
University by the languages that students speak, with ties broken at random in each fit. It has the
fraction of fits in which the speakers of a language are found to rank the city of that language
higher, and the fraction in which any other city is detected.
"""

from __future__ import annotations

import time
from functools import lru_cache

import numpy as np
import pandas as pd
from study import arguments, floor, mean_and_error, replicate, write

import privrank as pr

ALPHA = 0.05
EPSILONS = (0.5, 1.0, 5.0, 100.0)
CITIES = {"french": "Paris", "spanish": "Barcelona", "italian": "Milano"}

EQUAL, ALONE = np.full(5, 0.2), np.array([0.0, 0.0, 0.0, 0.0, 1.0])
TILTED = np.array([0.05, 0.2, 0.2, 0.2, 0.35])
RARE = np.array([0.9, 0.06, 0.02, 0.01, 0.01])
ZIPF = 1 / np.arange(1, 6) / (1 / np.arange(1, 6)).sum()
MANY = 1 / np.arange(1, 31) / (1 / np.arange(1, 31)).sum()


class Camps:
    """Half of the units have one order of six items, half its reversal, with maximal variances."""

    def rvs(self, n: int, rng: np.random.Generator) -> np.ndarray:
        order = np.arange(1, 7)
        return np.where(rng.random((n, 1)) < 0.5, order, 7 - order)


class One:
    """One order for all units, with variances 0."""

    def rvs(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return np.tile(np.arange(1, 7), (n, 1))


MALLOWS, OTHER = pr.Mallows(6, 0.6), pr.Mallows(6, 0.6, np.array([4, 1, 2, 3, 5, 6]))
CELLS = {
    "equal shares, one group tilted": ((300, 300, 100), (EQUAL, EQUAL, TILTED)),
    "equal shares": ((300, 300, 100), (EQUAL, EQUAL, EQUAL)),
    "rare categories": ((570, 30), (RARE, RARE)),
    "rare categories, small group skewed": ((570, 30), (RARE, ZIPF)),
    "rare categories, group of ten": ((300, 10), (RARE, RARE)),
    "group of ten alone": ((300, 10), (RARE, ALONE)),
    "rare categories, three groups": ((300, 300, 10), (RARE, RARE, RARE)),
    "30 categories, Zipf": ((300, 60), (MANY, MANY)),
    "Mallows .6": ((150, 150), (MALLOWS, MALLOWS)),
    "Mallows .6, fourth item to first": ((200, 100), (MALLOWS, OTHER)),
    "opposite camps, group of ten": ((150, 10), (Camps(), Camps())),
    "opposite camps, three groups": ((100, 100, 10), (Camps(), Camps(), Camps())),
    "camps against one order of ten": ((150, 10), (Camps(), One())),
}


@lru_cache(maxsize=64)
def means(name: str) -> np.ndarray:
    """Return the true shares, or mean ranks, by group; the latter from a million draws."""
    rng = np.random.default_rng(1)
    found = [
        model if isinstance(model, np.ndarray) else model.rvs(1_000_000, rng).mean(axis=0)
        for model in CELLS[name][1]
    ]
    return np.array(found)


def survey(name: str, rng: np.random.Generator) -> pr.ClosenessTest:
    sizes, models = CELLS[name]
    levels = [f"g{g}" for g in range(len(sizes))]
    if isinstance(models[0], np.ndarray):
        counts = [rng.multinomial(n, p) for n, p in zip(sizes, models, strict=True)]
        table = pd.DataFrame(dict(zip(levels, counts, strict=True)))
        return pr.ClosenessTest.from_counts(table.rename(index=str), [str(x) for x in table.index])
    ranks = [model.rvs(n, rng) for n, model in zip(sizes, models, strict=True)]
    frame = pd.DataFrame(np.concatenate(ranks), columns=[f"i{x}" for x in range(6)])
    formula = " + ".join(frame.columns) + " ~ group"
    frame["group"] = np.repeat(levels, sizes)
    return pr.ClosenessTest.from_formula(formula, frame, levels=levels)


def truth(name: str, frame: pd.DataFrame) -> np.ndarray:
    """Return the true differences in the order of the table."""
    sizes, shares = np.array(CELLS[name][0]), means(name)
    k, found = shares.shape[1], []
    for place, row in enumerate(frame.itertuples()):
        group, item = int(row.group[1:]), place % k
        others = [h for h in range(len(sizes)) if h != group]
        if row.other != "the others":
            others = [int(row.other[1:])]
        rest = sizes[others] @ shares[others, item] / sizes[others].sum()
        found.append(shares[group, item] - rest)
    return np.array(found)


def one(rng: np.random.Generator, name: str) -> list[tuple[float, ...]]:
    test, found = survey(name, rng), []
    smallest = f"g{int(np.argmin(CELLS[name][0]))}"
    for epsilon in EPSILONS:
        fitted = test.fit(1.0, details_epsilon=epsilon, method="pairs", permutations=19, rng=rng)
        frame = fitted.details()
        true = truth(name, frame)
        # true means of rankings are simulated, with an error of about a thousandth
        real = np.abs(true) > 0.02
        inside = (frame["lower"] <= true) & (true <= frame["upper"])
        own = (frame["group"] == smallest) | (frame["other"] == smallest)
        right = frame["clear"] & real & (np.sign(frame["difference"]) == np.sign(true))
        wrong = frame["clear"] & ~right
        found.append((inside.all(), inside[own].all(), wrong.any(), right.sum(), real.sum()))
    return found


def university(rng: np.random.Generator, language: str, epsilon: float) -> tuple[bool, bool]:
    cems = pr.datasets.load_university()
    data = cems.rankings(rng).join(cems.students)
    test = pr.ClosenessTest.from_formula(
        f"{' + '.join(cems.items)} ~ {language}", data, respondent="respondent"
    )
    fitted = test.fit(1.0, details_epsilon=epsilon, method="pairs", permutations=19, rng=rng)
    frame = fitted.details().set_index("item")
    named = frame["clear"] & (frame["group"] == "good")
    city = CITIES[language]
    return bool(named[city] and frame["difference"][city] < 0), bool(named.drop(city).any())


def simulated(replicates: int, command: str) -> None:
    started, rows = time.time(), []
    for number, name in enumerate(CELLS):
        found = np.array(replicate(one, replicates, name, cell=9400 + number), dtype=float)
        for place, epsilon in enumerate(EPSILONS):
            every, small, wrong, right, real = found[:, place].mean(axis=0)
            rows.append(
                {
                    "survey": name,
                    "units": ", ".join(map(str, CELLS[name][0])),
                    "details_epsilon": f"{epsilon:g}",
                    "all hold": f"{every:.3f}",
                    "floor": f"{floor(1, replicates, 1 - ALPHA):.3f}",
                    "smallest group's hold": f"{small:.3f}",
                    "named wrongly": f"{wrong:.3f}",
                    "named rightly": f"{right:.2f} of {real:.0f}",
                }
            )
        print(f"{name}: {time.time() - started:.0f} s", flush=True)
    title = "Simultaneous intervals for differences between groups"
    write("closeness_details", title, command, rows, started)


def cities(replicates: int, command: str) -> None:
    started, rows = time.time(), []
    for number, language in enumerate(CITIES):
        for epsilon in (0.667, 1.0, 1.333, 2.0):
            cell = 9450 + 30 * number + int(10 * epsilon)
            found = replicate(university, replicates, language, epsilon, cell=cell)
            share, error = mean_and_error([float(right) for right, _ in found])
            others = np.mean([other for _, other in found])
            rows.append(
                {
                    "language": language,
                    "city": CITIES[language],
                    "details_epsilon": f"{epsilon:g}",
                    "city named": f"{share:.3f}",
                    "std err": f"{error:.3f}",
                    "another city named": f"{others:.3f}",
                }
            )
            print(rows[-1], flush=True)
    title = "University survey: detection of the city of a language by its speakers"
    write("closeness_details_university", title, command, rows, started)


def main() -> None:
    replicates = arguments(__doc__, 1000)
    command = "python validation/closeness_details.py"
    simulated(replicates, command)
    cities(replicates, command)


if __name__ == "__main__":
    main()
