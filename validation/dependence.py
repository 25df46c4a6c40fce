"""Bradley-Terry fits with dependent answers: coverage for each pair and size of tests.

Simulated respondents differ: they have personal worths around common ones (exchangeable); two
halves with opposite ranks of two items, or of one (polarised); or camps with opposite orders.
Respondents of surveys are resampled, and with PRIVRANK_SURVEYS=<folder> in the environment also the
rankings in turk_dots_3.csv, turk_puzzle_5.csv and sushi.csv of that folder. True values are
computed from exact expectations (validation/respondents.py).

Intervals. Coverage of 95% intervals for the difference of two worths: the average over pairs; the
worst pair, and the worst item for its centred worth; and the pair with the largest true design
effect, known in advance. The smallest of many estimates is below 0.95 by chance: "floor" is the 5%
quantile of the smallest of as many independent estimates with coverage 0.95. A cell "holds" if
neither minimum is below its floor, and is "near" if this is true with floors for 0.93; if not, it
is "below". Replicates whose fit warns are omitted from the verdict, and a cell "warns" if fewer
than 20 remain. Width is the width of the interval relative to 1.96 standard errors, averaged. These
standard errors include the population's sampling error and noise with all of epsilon. An interval
that is not stated, because the release does not identify the difference, counts as unbounded.

Tests, at level 0.05. Homogeneity: all worths equal. Separation of the top half: two items tied
across its boundary, with near copies below. Terms: a covariate without effect, in half or a
twentieth of the respondents.

`--only` takes parts of cell names, such as "m 6, n 300", runs these cells and writes no table.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import study
from respondents import (
    SURVEYS,
    Population,
    Questions,
    available,
    frame,
    logit,
    population,
    score_noise,
    truth,
)

import privrank as pr
from privrank.privacy.sensitivity import UnitSensitivity

COMMAND = "python validation/dependence.py"
DELTA = 1e-6
SHARES = {50: 0.1, 20: 0.2, 10: 0.4}
"""Fraction of the replicates of a cell of intervals with at least that many items."""

KEYWORD, FORCED = "dependence", ("worst", "pairs")
"""The argument of a fit for the form of dependence, and values with cells of their own."""

PAIR, ITEM, CAMPS, UNEVEN = "polarised pair", "polarised item", "opposed camps", "camps 70/30"
NONE, EACH = "independent", "exchangeable"


@dataclass(frozen=True)
class Cell:
    """One setting: the population, the questionnaire and the fit."""

    people: str
    items: int
    nobs: int
    epsilon: float
    design: str = "public"
    questions: Questions = Questions()
    fit: tuple[tuple[str, Any], ...] = ()
    counts: str = "release"
    test: str = ""
    base: str = "spread"

    def __str__(self) -> str:
        settings = [f"{name}={value}" for name, value in self.fit if name != "delta"]
        if self.design == "private" and self.counts != "release":
            settings.append(f"pair_counts={self.counts}")
        what = f"{self.people}, m {self.items}, n {self.nobs}, epsilon {self.epsilon:g}"
        named = (self.test, what, self.design, str(self.questions), *settings)
        return ", ".join(filter(None, named))

    @property
    def population(self) -> Population:
        return population(self.people, self.items, self.base)

    @property
    def model(self) -> dict[str, Any]:
        """The arguments of the model."""
        counts = {"pair_counts": self.counts} if self.design == "private" else {}
        return {
            "items": range(self.items),
            "respondent": "respondent",
            "max_rows": self.questions.rows(self.items),
            "ties": self.population.ties,
            "design": self.design,
            **counts,
        }

    def sample(self, rng: np.random.Generator) -> pd.DataFrame:
        return frame(self.population, self.questions, rng, self.nobs)

    def replicates(self, whole: int) -> int:
        share = 1.0 if self.test else next((SHARES[m] for m in SHARES if self.items >= m), 1.0)
        return max(2, round(share * whole))

    def errors(self) -> np.ndarray:
        """Return the standard errors of differences with all of epsilon used for net wins."""
        settings = dict(self.fit)
        adjacency = "outcome" if self.design == "public" else "replace"
        reach = UnitSensitivity(self.items, self.questions.rows(self.items), True, adjacency)
        noise = score_noise(
            reach, self.epsilon, settings.get("delta", 0.0), settings.get("noise", "")
        )
        return truth(self.population, self.questions).errors(self.nobs, noise)


def intervals() -> list[Cell]:
    """Return the cells of the table of intervals."""
    inf = np.inf
    people = (NONE, EACH, PAIR, ITEM, CAMPS, UNEVEN)
    complete = [
        *((name, 6, 1000, 1.0) for name in people),
        *((name, 6, 300, 1.0) for name in (NONE, PAIR, CAMPS)),
        *((PAIR, 3, 30, inf), (PAIR, 3, 100, 1.0), (ITEM, 3, 1000, 2.0), (CAMPS, 3, 300, 0.5)),
        *((PAIR, 4, 100, 1.0), (PAIR, 4, 1000, 1.0), (ITEM, 4, 300, 4.0), (UNEVEN, 4, 300, 1.0)),
        *((EACH, 4, 30, inf), (NONE, 4, 100, 0.5), (EACH, 4, 30, 2.0)),
        *((PAIR, 6, 30, inf), (EACH, 6, 30, inf), (PAIR, 6, 30, 4.0), (PAIR, 6, 100, 1.0)),
        *((ITEM, 6, 100, 0.5), (NONE, 6, 100, 1.0), (CAMPS, 6, 100, inf), (EACH, 6, 300, 4.0)),
        *((PAIR, 6, 300, inf), (PAIR, 6, 300, 0.5), (PAIR, 6, 3000, 0.5), (CAMPS, 6, 3000, 4.0)),
        *((ITEM, 6, 3000, inf), (UNEVEN, 6, 3000, 2.0)),
        *((PAIR, 10, 300, 1.0), (PAIR, 10, 1000, 1.0), (PAIR, 10, 1000, inf)),
        *((CAMPS, 10, 30, inf), (CAMPS, 10, 300, 4.0), (ITEM, 10, 1000, 2.0)),
        *((EACH, 10, 3000, 1.0), (NONE, 10, 100, 0.5), (UNEVEN, 10, 1000, 0.5)),
        *((PAIR, 20, 300, inf), (PAIR, 20, 1000, 1.0), (PAIR, 20, 3000, 2.0)),
        *((CAMPS, 20, 300, 1.0), (ITEM, 20, 1000, 4.0), (EACH, 20, 1000, 1.0)),
        (NONE, 20, 300, 1.0),
    ]
    cells = [Cell(*one) for one in complete]
    few, hub, chain, uneven = (Questions(name) for name in ("few", "hub", "chain", "2:1"))
    cells += [
        Cell(name, m, n, epsilon, questions=asked)
        for name, m, n, epsilon, asked in (
            *((PAIR, 50, 1000, 1.0, few), (EACH, 50, 300, inf, few), (CAMPS, 50, 300, 4.0, few)),
            *((PAIR, 6, 1000, 1.0, asked) for asked in (hub, chain, uneven, few)),
            (PAIR, 6, 1000, 1.0, Questions(missing=0.4, by_pair=True)),
        )
    ]
    for name in ("laplace", "gaussian", "zero-sum-laplace", "permutohedron"):
        fit = (("noise", name), *((("delta", DELTA),) if name == "gaussian" else ()))
        cells.append(Cell(PAIR, 6, 300, 1.0, fit=fit))
    cells.append(Cell(PAIR, 20, 1000, 1.0, fit=(("noise", "gaussian"), ("delta", DELTA))))
    for m, form in product((6, 10), FORCED):
        cells.append(Cell(PAIR, m, 300, 1.0, fit=((KEYWORD, form),)))
    return [cell for cell in cells + private() + surveys() if available(cell.people)]


def private() -> list[Cell]:
    """Return the cells with a private design: complete, with missing answers, and uneven."""
    at_random, by_pair = ([Questions("all", s, by) for s in (0.1, 0.4)] for by in (False, True))
    few, hub, chain, uneven = (Questions(name) for name in ("few", "hub", "chain", "2:1"))
    whole = Questions()
    asked = [
        *((PAIR, 3, 300, 1.0, whole), (PAIR, 4, 300, 2.0, whole), (NONE, 6, 300, 1.0, whole)),
        *((PAIR, 6, 1000, 1.0, whole), (EACH, 6, 100, 0.5, whole), (CAMPS, 6, 3000, 4.0, whole)),
        *(
            (PAIR, 10, 1000, 1.0, whole),
            (CAMPS, 20, 1000, 4.0, whole),
            (ITEM, 6, 300, np.inf, whole),
        ),
        *((NONE, 6, 300, 1.0, missing) for missing in (*at_random, *by_pair)),
        *((PAIR, 6, 1000, 1.0, missing) for missing in (*at_random, *by_pair)),
        *((CAMPS, 6, 3000, 2.0, at_random[1]), (ITEM, 10, 1000, 2.0, by_pair[1])),
        *((NONE, 6, 300, 1.0, few), (PAIR, 10, 1000, 1.0, few), (CAMPS, 50, 1000, 4.0, few)),
        *((NONE, 6, 300, 1.0, hub), (PAIR, 6, 1000, 1.0, hub), (CAMPS, 10, 1000, 2.0, hub)),
        *((NONE, 6, 300, 1.0, chain), (PAIR, 6, 1000, 4.0, chain)),
        *((NONE, 6, 300, 1.0, uneven), (PAIR, 6, 1000, 1.0, uneven), (CAMPS, 4, 3000, 1.0, uneven)),
    ]
    return [Cell(*one[:4], "private", one[4]) for one in asked]


def surveys() -> list[Cell]:
    """Return the cells that resample surveys."""
    inf = np.inf
    cells = [Cell("University", 6, 303, epsilon) for epsilon in (0.5, 1.0, 4.0, inf)]
    cells += [Cell("Immigration", 4, 98, epsilon) for epsilon in (1.0, inf)]
    for name, n in (("University", 303), ("Immigration", 98)):
        items = SURVEYS[name]
        cells += [Cell(name, items, n, epsilon, "private") for epsilon in (1.0, 4.0)]
        cells.append(Cell(name, items, n, 1.0, "private", counts="equal"))
        cells += [Cell(name, items, n, e, fit=((KEYWORD, "none"),)) for e in (1.0, inf)]
    cells += [Cell("turk_dots_3", 4, n, epsilon) for n, epsilon in ((100, 1.0), (795, inf))]
    cells += [Cell("turk_puzzle_5", 4, 795, 1.0, design) for design in ("public", "private")]
    cells += [Cell("sushi", 10, n, epsilon) for n, epsilon in ((1000, 1.0), (300, inf))]
    return cells


def tests() -> list[Cell]:
    """Return the cells of the table of tests."""
    inf, test = np.inf, "homogeneity"
    cells = [
        Cell(name, m, n, epsilon, test=test, base="equal")
        for name, m, n, epsilon in (
            *((name, 6, 300, 1.0) for name in (NONE, EACH, PAIR, ITEM, CAMPS)),
            *((PAIR, 4, 30, inf), (PAIR, 6, 30, inf), (CAMPS, 10, 30, inf), (EACH, 6, 30, inf)),
            *(
                (PAIR, 3, 100, 1.0),
                (PAIR, 6, 1000, 4.0),
                (CAMPS, 6, 1000, 1.0),
                (PAIR, 6, 300, inf),
            ),
            *(
                (CAMPS, 10, 1000, 1.0),
                ("block camps", 20, 300, 1.0),
                ("block camps", 20, 1000, 4.0),
            ),
        )
    ]
    cells += [
        Cell(name, 6, 1000, 1.0, "private", Questions("all", missing), test=test, base="equal")
        for name, missing in ((NONE, 0.0), (PAIR, 0.0), (CAMPS, 0.4))
    ]
    test, copies = "separation", "polarised copies"
    cells += [
        Cell(name, m, n, epsilon, test=test, base="tied")
        for name, m, n, epsilon in (
            *((name, 6, 300, 1.0) for name in (NONE, EACH, PAIR, ITEM, copies)),
            *((PAIR, 4, 100, 2.0), (PAIR, 4, 300, 4.0), (PAIR, 6, 30, inf), (PAIR, 6, 1000, 4.0)),
            *((PAIR, 6, 1000, inf), (PAIR, 10, 300, 4.0), (PAIR, 10, 3000, 4.0)),
            *((copies, 6, 1000, 4.0), (copies, 6, 300, inf), (copies, 10, 1000, 4.0)),
        )
    ]
    cells += [
        Cell(name, 6, n, 2.0, "private", test=test, base="tied")
        for name, n in ((NONE, 300), (PAIR, 1000), (copies, 1000))
    ]
    cells += [
        Cell(name, 6, n, epsilon, design, test=test)
        for name, n, epsilon, design, test in (
            (NONE, 300, 2.0, "public", "term of a half"),
            (PAIR, 300, 2.0, "public", "term of a half"),
            (PAIR, 300, inf, "public", "term of a half"),
            (PAIR, 1000, 4.0, "public", "term of a half"),
            (CAMPS, 300, 2.0, "public", "term of a twentieth"),
            (PAIR, 1000, 2.0, "private", "term of a half"),
            (NONE, 300, 2.0, "private", "term of a twentieth"),
        )
    ]
    return cells


def one(rng: np.random.Generator, cell: Cell) -> dict[str, Any]:
    """Return which statements of one fit are true, and the widths of its intervals."""
    true = truth(cell.population, cell.questions).worths
    first, second = np.triu_indices(cell.items, 1)
    apart = true[first] - true[second]
    model = pr.PrivateBTL(cell.sample(rng), **cell.model)
    fit = model.fit(cell.epsilon, allow_unidentified=True, rng=rng, **dict(cell.fit))
    half, held = [], []
    for simultaneous in (False, True):
        table = fit.pairwise(simultaneous=simultaneous)
        low, high = logit(table["lower"]), logit(table["upper"])
        half.append(0.5 * (high - low))
        held.append(~((low > apart) | (apart > high)))
    sides, sets = fit.conf_int(), fit.rank_conf_int()
    part = {name: k for k, names in enumerate(fit.components) for name in names}
    member = np.array([part[name] for name in fit.items])
    same = (member[:, None] == member).astype(float)
    # equal worths share their ranks, all of which a set must contain
    above = same * (true[None, :] - true[:, None])
    true = true - same @ true / same.sum(axis=1)
    best, last = 1 + (above > 1e-9).sum(axis=1), same.sum(axis=1) - (above < -1e-9).sum(axis=1)
    return {
        "pairs": held[0],
        "items": (~((sides["lower"] > true) | (true > sides["upper"]))).to_numpy(),
        "at once": held[1].all(),
        "ranks": (~((sets["lower"] > best) | (last > sets["upper"]))).all(),
        "width": half[0],
        "error": np.nanmean((fit.params.to_numpy() - true) ** 2),
        "warned": bool(fit.warnings),
    }


def verdict(pairs: np.ndarray, items: np.ndarray) -> str:
    """Compare the worst pair and item, over replicates without a warning, with their floors."""
    if len(pairs) < 20:
        return "warns"
    for level, word in ((0.95, "holds"), (0.93, "near")):
        if all(
            worst >= most for worst, most in (study.least(pairs, level), study.least(items, level))
        ):
            return word
    return "below"


def summary(cell: Cell, out: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of a cell of the table of intervals."""
    found = {name: np.array([each[name] for each in out]) for name in out[0]}
    pairs, items, quiet = found["pairs"], found["items"], ~found["warned"]
    effects = truth(cell.population, cell.questions).effects()
    (worst, lowest), (poorest, item_floor) = study.least(pairs), study.least(items)
    row = {
        **heads(cell),
        "replicates": len(out),
        "average": f"{pairs.mean():.3f}",
        "worst pair": f"{worst:.3f}",
        "its floor": f"{lowest:.3f}",
        "worst item": f"{poorest:.3f}",
        "item floor": f"{item_floor:.3f}",
        "largest effect": f"{effects.max():.2f}",
        "its pair": f"{pairs[:, effects.argmax()].mean():.3f}",
        "all at once": f"{found['at once'].mean():.3f}",
        "rank sets": f"{found['ranks'].mean():.3f}",
        "width": f"{np.nanmean(found['width'] / (1.959964 * cell.errors())):.2f}",
        "RMSE": f"{np.sqrt(np.nanmean(found['error'])):.3f}",
        "warned": f"{found['warned'].mean():.2f}",
    }
    some = quiet.any()
    unwarned = study.least(pairs[quiet]) if some else (np.nan, np.nan)
    return {
        **row,
        "unwarned average": f"{pairs[quiet].mean():.3f}" if some else "",
        "unwarned worst pair": f"{unwarned[0]:.3f}" if some else "",
        "unwarned floor": f"{unwarned[1]:.3f}" if some else "",
        "verdict": verdict(pairs[quiet], items[quiet]),
    }


def heads(cell: Cell) -> dict[str, Any]:
    """Return the columns that identify the cell of a row."""
    settings = [str(value) for name, value in cell.fit if name != "delta"]
    if cell.counts != "release":
        settings.append(f"{cell.counts} counts")
    return {
        "people": cell.people,
        "design": cell.design,
        "questions": str(cell.questions),
        "fit": ", ".join(settings),
        "items": cell.items,
        "n": cell.nobs,
        "epsilon": cell.epsilon,
    }


def wrong(rng: np.random.Generator, cell: Cell) -> bool:
    """Return whether a test of a true hypothesis rejects it at .05."""
    sample, model = cell.sample(rng), cell.model
    if cell.test == "separation":
        model.pop("pair_counts", None)  # a selection needs no pair counts
        top = pr.PrivateTopK(sample, cell.items // 2, **model)
        return top.fit(cell.epsilon, target="win rate", rng=rng).pvalue <= 0.05
    if cell.test == "homogeneity":
        fit = pr.PrivateBTL(sample, **model).fit(cell.epsilon, allow_unidentified=True, rng=rng)
        return fit.test_homogeneity().pvalue <= 0.05
    rare = 0.5 if "half" in cell.test else 0.05
    group = np.where(rng.random(cell.nobs) < rare, "few", "rest")
    sample["group"], model["levels"] = group[sample["respondent"]], {"group": ["rest", "few"]}
    model.pop("pair_counts", None)
    formula = "item1 + item2 + outcome ~ group"
    fit = pr.PrivateBTL.from_formula(formula, sample, **model).fit(cell.epsilon, rng=rng)
    return fit.wald_test_terms()["pvalue"]["group"] <= 0.05


def level(cell: Cell, out: list[bool]) -> dict[str, Any]:
    """Return the row of a cell of the table of tests."""
    rejected, most = np.mean(out), 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(out))
    return {
        "test": cell.test,
        **heads(cell),
        "replicates": len(out),
        "level": f"{rejected:.3f}",
        "most": f"{most:.3f}",
        "verdict": "holds" if rejected <= most else "above",
    }


def main() -> None:
    asked = study.asked(__doc__, 200)
    title = "Coverage of intervals of all pairs if a respondent's answers are dependent"
    study.table("dependence", title, COMMAND, intervals(), one, summary, asked, 8000)
    title = "Size of tests if a respondent's answers are dependent"
    study.table("dependence_tests", title, COMMAND, tests(), wrong, level, asked, 8500)


if __name__ == "__main__":
    main()
