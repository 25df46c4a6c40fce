"""Coverage and size of the score test in the settings of its specification.

The specification of the test behind all p-values and intervals of Bradley-Terry fits has tables of
coverage and size, numbered by section. Each row of this study repeats one cell on the package:
released design effects (4), weakly identified differences (6) and fits without privacy (10).
"Specified" is the value of the specification. Where it gives no worths or strengths, this study
has its own. The tables of sections 5 and 7 are repeated by `davidson.py` (two camps) and
`proportional.py` (12 items).

Coverage is the fraction of surveys in which a 95% interval contains the true value, or in which the
true value is not rejected; size is 1 minus this fraction. Both are those of the worst contrast,
which the table names. A row holds if the worst contrast is within its bound, which the worst of as
many contrasts passes by chance with probability 0.05. Other rows are "as specified" if they are at
most two standard errors of the difference worse than the specified value, and "below" if not. Rows
without replicates are computed from all outcomes and their probabilities. These are "as specified"
up to 0.001, or up to two standard errors of a specified value that was simulated.

Power is the rejection rate of equal worths, averaged over contrasts that differ. The earlier rule
takes a released design effect as known, and ignores that a difference is weakly identified. Widths
are median widths relative to this rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import hypotheses
import numpy as np
import pandas as pd
import study
from scipy.special import ndtr, ndtri, stdtrit
from scipy.stats import binom, multinomial

import privrank as pr
from privrank.bradley_terry.equations import score_equations
from privrank.bradley_terry.inference import ScoreErrors
from privrank.bradley_terry.scoretests import intervals, score_tests, shares
from privrank.release.names import CEILING, DEPENDENCE, LARGEST

STRENGTH = 2.0
"""The difference added to one item of a polarised pair, and subtracted from the other."""


@dataclass(frozen=True)
class Cell:
    """One cell: section, setting, function and its arguments, specified values."""

    section: int
    setting: str
    run: str
    arguments: tuple[Any, ...]
    specified: float
    of: int
    measure: str = "coverage"
    power: str = ""
    width: str = ""
    share: float = 1.0

    def __str__(self) -> str:
        return f"section {self.section}, {self.setting}, {self.measure}"

    def replicates(self, number: int) -> int:
        """Return the replicates: a share of the number, or one if outcomes are enumerated."""
        return 1 if self.run == "exact" else max(2, round(self.share * number))


Found = dict[str, Any]


def _apart(items: int) -> np.ndarray:
    first, second = np.triu_indices(items, 1)
    return np.eye(items)[first] - np.eye(items)[second]


def _names(items: int) -> list[str]:
    return [f"{i} - {j}" for i, j in combinations(range(items), 2)]


def effect(rng: np.random.Generator, epsilon: float) -> Found:
    """Return the coverage of a polarised pair that is asked in half of all rows."""
    people, rows, m = 80, 5, 6
    pairs = np.array(list(combinations(range(m), 2)))
    asked = rng.integers(0, len(pairs), (people, rows))
    asked[rng.random(asked.shape) < 0.5] = 0
    each = np.zeros((people, m))
    each[:, :2] = STRENGTH * rng.choice((-1.0, 1.0), (people, 1)) * (1.0, -1.0)
    chances = hypotheses._chances(rng, each, pairs)
    frame = hypotheses._frame(pairs[asked], np.take_along_axis(chances, asked, axis=1))
    unit = {"respondent": "respondent", "max_rows": rows, "distinct_pairs": False}
    model = pr.PrivateBTL(frame, items=range(m), design="public", **unit)
    fit = model.fit(epsilon, dependence="worst", rng=rng)
    inference, release = fit._inference(), fit.release
    errors, part = inference.score_errors, release.parts[DEPENDENCE]
    known = release.found[LARGEST] / people * part.step * part.values[0]
    known = max(1.0, min(known, release.found[CEILING]))
    before = replace(
        errors,
        sampling=errors.sampling * known / fit.design_effect,
        df=people - 1.0,
        effect=(0.0, 1.0),
    )
    earlier = score_tests(inference, before, _apart(m)[:1]).limits(np.array([0.05]))
    low, high = intervals(inference, _apart(m)[:1], 0.05)
    return {
        "hold": (low <= 0.0) & (0.0 <= high),
        "before": (earlier[0] <= 0.0) & (0.0 <= earlier[1]),
        "widths": [high[0] - low[0], earlier[1][0] - earlier[0][0]],
        "warned": bool(fit.warnings),
    }


def weak(rng: np.random.Generator, apart: float, shown: bool) -> Found:
    """Return the coverage of the difference of two items with 40 rows at epsilon 0.3."""
    rows = 40
    wins = rng.binomial(rows, 1.0 / (1.0 + np.exp(-apart)))
    outcome = np.where(np.arange(rows) < wins, 1, -1)
    frame = pd.DataFrame({"item1": "a", "item2": "b", "outcome": outcome})
    model = pr.PrivateBTL(frame, items=["a", "b"], respondent=None)
    fit = model.fit(0.3, allow_unidentified=True, rng=rng)
    contrast = np.array([[1.0, -1.0]])
    if len(fit.components) > 1:
        missing = np.array([np.nan if shown else 1.0])
        return {"hold": missing, "before": missing, "warned": True}
    pvalue = np.atleast_1d(fit.t_test((contrast, [apart])).pvalue)
    share = shares(score_equations(fit.release), contrast)
    return {
        "hold": np.where(pvalue >= 0.05, 1.0, 0.0),
        "before": np.where(pvalue * share >= 0.05, 1.0, 0.0),
        "warned": bool(fit.warnings),
    }


def public(rng: np.random.Generator, cell: hypotheses.Cell) -> Found:
    """Return whether true differences are not rejected without privacy, and power at zero."""
    return _tested(hypotheses.survey(rng, cell.people, cell), cell)


def _tested(frame: pd.DataFrame, cell: hypotheses.Cell) -> Found:
    m, distinct = len(cell.worths), not cell.answers.endswith(("thrice", "alike"))
    most = int(frame.groupby("respondent").size().max())
    unit = {"respondent": "respondent", "max_rows": most, "distinct_pairs": distinct}
    model = pr.PrivateBTL(frame, items=range(m), design="public", **unit)
    fit = model.fit(np.inf, allow_unidentified=True)
    true = _apart(m) @ hypotheses.truth(cell)
    both = np.vstack((_apart(m), _apart(m))), np.append(true, np.zeros(len(true)))
    pvalue = np.atleast_1d(fit.t_test(both).pvalue)
    differ = np.abs(true) > 1e-9
    zero = pvalue[len(true) :][differ] < 0.05
    return {
        "hold": pvalue[: len(true)] >= 0.05,
        "power": float(zero.mean()) if differ.any() else np.nan,
        "warned": bool(fit.warnings),
    }


def equal(rng: np.random.Generator, cell: hypotheses.Cell) -> Found:
    """Return whether equal worths are not rejected by the joint test."""
    frame, m = hypotheses.survey(rng, cell.people, cell), len(cell.worths)
    unit = {"respondent": "respondent", "max_rows": m * (m - 1) // 2}
    fit = pr.PrivateBTL(frame, items=range(m), design="public", **unit).fit(np.inf)
    hold = np.array([fit.test_homogeneity().pvalue >= 0.05])
    return {"hold": hold, "warned": bool(fit.warnings)}


def extreme(rng: np.random.Generator, chance: float) -> Found:
    """Return the coverage of an item's differences that wins nearly all of 60 comparisons."""
    worths = np.array([np.log(chance / (1.0 - chance)), 0.0, 0.0, 0.0])
    pairs = np.tile(np.array(list(combinations(range(4), 2))), (20, 1))
    won = rng.random(len(pairs)) < 1.0 / (
        1.0 + np.exp(-(worths[pairs[:, 0]] - worths[pairs[:, 1]]))
    )
    frame = hypotheses._frame(pairs[None], won[None]).drop(columns="respondent")
    fit = pr.PrivateBTL(frame, items=range(4), respondent=None, design="public").fit(np.inf)
    contrasts = _apart(4)[:3]
    hold = np.atleast_1d(fit.t_test((contrasts, contrasts @ worths)).pvalue) >= 0.05
    return {"hold": hold, "warned": bool(fit.warnings)}


def exact(rng: np.random.Generator, what: str, *arguments: Any) -> Found:
    """Return a value that is computed from all outcomes, and where it is found."""
    value, where = globals()[f"_{what}"](*arguments)
    return {"value": value, "where": where}


def _ceiling(ceiling: float, alpha: float) -> tuple[float, str]:
    """Return the smallest coverage over design effects with known noise, by numbers of noise.

    The statistic is normal. Its variance is the design effect plus 0.2 to 10 times the variance of
    independent answers; the design effect is released with Laplace noise of scale 0.1 to 5.
    """
    levels = (np.arange(4_000) + 0.5) / 4_000
    laplace = np.where(levels < 0.5, np.log(2.0 * levels), -np.log(2.0 - 2.0 * levels))
    found = []
    for noise in (0.2, 1.0, 10.0):
        for scale in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0):
            for true in np.linspace(1.0, ceiling, 15):
                released = true + scale * laplace
                bounded = released + scale * np.log(20.0) >= ceiling
                used = np.where(bounded, ceiling, np.clip(released, 1.0, ceiling))
                errors = ScoreErrors(np.eye(1), np.eye(1))
                side = np.where(bounded, 0.0, 2.0 * scale**2)
                df = errors.freedom(used, side, used + noise, np.inf)
                half = -stdtrit(df, alpha / 2.0) * np.sqrt(used + noise)
                half = np.minimum(half, -ndtri(alpha / 2.0) * np.sqrt(ceiling + noise))
                covered = float(np.mean(1.0 - 2.0 * ndtr(-half / np.sqrt(true + noise))))
                found.append((covered, f"effect {true:g}, noise {noise:g}, scale {scale:g}"))
    return min(found)


def _wins(cell: hypotheses.Cell) -> tuple[float, str]:
    """Return the size for two items and three answers, of which only the wins matter.

    Either all respondents answer one question thrice, or half of them do.
    """
    chance, thrice = 0.95, 1.0 if cell.answers == "one question thrice" else 0.5
    each = (1.0 - thrice) * binom.pmf(np.arange(4), 3, chance)
    each += thrice * np.array([1.0 - chance, 0.0, 0.0, chance])
    most = [range(int(binom.isf(1e-7, cell.people, part)) + 1) for part in each[:3]]
    few = np.array(list(product(*most)))
    people = np.column_stack((few, cell.people - few.sum(axis=1)))
    people = people[people[:, 3] >= 0]
    mass = multinomial.pmf(people, cell.people, each)
    size = 0.0
    for numbers, probability in zip(people[mass > 1e-7], mass[mass > 1e-7], strict=True):
        won = np.arange(3) < np.repeat(np.arange(4), numbers)[:, None]
        frame = hypotheses._frame(np.broadcast_to(np.array([0, 1]), (*won.shape, 2)), won)
        size += float(probability) * (not _tested(frame, cell)["hold"][0])
    return size, ""


ROWS = (6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 100, 200, 300)
"""Numbers of rows about two items."""

CHANCES = (0.5, 0.9995)
"""Range of the probabilities of the more frequent answer."""


@lru_cache(maxsize=1_000)
def _limits(rows: int, wins: int, alpha: float) -> tuple[float, float]:
    """Return the limits of the difference of two items after a number of wins."""
    frame = pd.DataFrame(
        {"item1": "a", "item2": "b", "outcome": np.repeat((1, -1), (wins, rows - wins))}
    )
    model = pr.PrivateBTL(frame, items=["a", "b"], respondent=None, design="public")
    low, high = intervals(model.fit(np.inf)._inference(), np.array([[1.0, -1.0]]), alpha)
    return float(low[0]), float(high[0])


def _table(rows: int, alpha: float) -> np.ndarray:
    """Return limits by number of wins, shape (rows + 1, 2); those of losses have the other sign."""
    half = np.array([_limits(rows, wins, alpha) for wins in range(rows // 2 + 1)])
    return np.vstack((half, -half[: (rows + 1) // 2][::-1, ::-1]))


def _least(alpha: float) -> tuple[float, str]:
    """Return the smallest coverage for two items, at both sides of each limit and in between."""
    found = []
    for rows in ROWS:
        sides = _table(rows, alpha)
        ends = sides[np.isfinite(sides)]
        at = np.concatenate((np.linspace(0.0, 8.0, 400), ends - 1e-6, ends + 1e-6))
        chance = 1.0 / (1.0 + np.exp(-at))
        chance = np.sort(chance[(CHANCES[0] <= chance) & (chance <= CHANCES[1])])
        at = np.log(chance / (1.0 - chance))
        inside = (sides[:, :1] <= at) & (at <= sides[:, 1:])
        mass = binom.pmf(np.arange(rows + 1)[:, None], rows, chance)
        coverage = (inside * mass).sum(axis=0)
        worst = int(np.argmin(coverage))
        found.append((float(coverage[worst]), f"{rows} rows, probability {chance[worst]:.3f}"))
    return min(found)


def _width(rows: int, chance: float) -> tuple[float, str]:
    """Return the mean width of the interval of the probability that one item is preferred."""
    low, high = 1.0 / (1.0 + np.exp(-_table(rows, 0.05).T))
    return float((high - low) @ binom.pmf(np.arange(rows + 1), rows, chance)), ""


def _people(answers: str, people: int, worths: tuple[float, ...]) -> hypotheses.Cell:
    return hypotheses.Cell(answers, people, worths)


def _even(items: int) -> tuple[float, ...]:
    return (0.0,) * items


LIKELY = hypotheses.LIKELY / 2.0
MILD = (0.35, 0.1, -0.1, -0.35)
OWN = tuple(np.linspace(0.75, -0.75, 6))
HALF = "polarised pair in half of all rows, 6 items, 80 respondents, epsilon"
NORMAL = "normal statistic, effect at most"
WEAK = "two items, count 3 standard deviations of its noise, difference"
MANY = "4 items, 120 rows, one item preferred with probability"
BEST = "coverage of identified"
JOINT = "size of the joint test"
JOINTLY = ("independent", "rankings", "two camps", "own worths")


def _joint(answers: str, items: int) -> Cell:
    cell = _people(answers, 8, _even(items))
    named = f"equal worths, {answers}, {items} items, 8 respondents"
    return Cell(10, named, "equal", (cell,), 0.055, 600, JOINT, share=0.25)


def _public(
    name: str, cell: hypotheses.Cell, specified: float, power: str = "", share: float = 1.0
) -> Cell:
    named = f"{name}, {len(cell.worths)} items, {cell.people} respondents"
    return Cell(10, named, "public", (cell,), specified, 600, "size", power, share=share)


def _repeated(name: str, answers: str, people: int, specified: float) -> Cell:
    cell = _people(answers, people, (LIKELY, -LIKELY))
    named = f"{name}, probability 0.95, 2 items, {people} respondents"
    return Cell(10, named, "exact", ("wins", cell), specified, 600, "size")


CELLS = [
    Cell(4, f"{HALF} 3", "effect", (3.0,), 0.955, 200, width="1.09"),
    Cell(4, f"{HALF} 6", "effect", (6.0,), 0.945, 200, width="1.04"),
    Cell(4, f"{NORMAL} 5, level 0.05", "exact", ("ceiling", 5.0, 0.05), 0.948, 0),
    Cell(4, f"{NORMAL} 15, level 0.05", "exact", ("ceiling", 15.0, 0.05), 0.948, 0),
    Cell(4, f"{NORMAL} 5, level 0.0033", "exact", ("ceiling", 5.0, 0.0033), 0.996, 0),
    Cell(4, f"{NORMAL} 15, level 0.0033", "exact", ("ceiling", 15.0, 0.0033), 0.996, 0),
    Cell(6, f"{WEAK} 2.5", "weak", (2.5, False), 0.984, 20_000),
    Cell(6, f"{WEAK} 2.5", "weak", (2.5, True), 0.932, 2_400, BEST, share=3.0),
    Cell(6, f"{WEAK} 1", "weak", (1.0, True), 0.967, 2_400, BEST, share=3.0),
    _public("rankings", _people("rankings", 8, MILD), 0.053, "0.11"),
    _public("rankings", _people("rankings", 40, MILD), 0.062, "0.29"),
    _public("polarised pair", _people("two camps", 12, _even(4)), 0.055),
    _public("strong worths", _people("independent", 12, hypotheses.STRONG), 0.020, "0.66", 0.5),
    _public("strong rankings", _people("rankings", 8, hypotheses.STRONG), 0.013, "0.73", 0.5),
    _public("personal worths", _people("own worths", 30, OWN), 0.068),
    _repeated("one question thrice", "one question thrice", 20, 0.020),
    _repeated("half give one answer thrice", "half alike", 50, 0.081),
    Cell(10, "two items, 6 to 300 rows, level 0.05", "exact", ("least", 0.05), 0.905, 0),
    Cell(10, "two items, 6 to 300 rows, level 0.01", "exact", ("least", 0.01), 0.977, 0),
    Cell(10, "two items, 6 to 300 rows, level 0.0033", "exact", ("least", 0.0033), 0.992, 0),
    Cell(
        10,
        "two items, 10 rows, probability 0.99",
        "exact",
        ("width", 10, 0.99),
        0.29,
        0,
        "mean width",
    ),
    Cell(10, f"{MANY} 0.99", "extreme", (0.99,), 0.975, 600, share=0.5),
    Cell(10, f"{MANY} 0.995", "extreme", (0.995,), 0.977, 600, share=0.5),
    *(_joint(kind, m) for m in (4, 6) for kind in JOINTLY),
]


def one(rng: np.random.Generator, cell: Cell) -> Found:
    return dict(globals()[cell.run](rng, *cell.arguments))


def _worst(held: np.ndarray) -> tuple[int, float, int]:
    """Return the contrast with the smallest coverage, this coverage and its number of surveys."""
    counted = np.isfinite(held)
    coverage = np.nansum(held, axis=0) / np.maximum(counted.sum(axis=0), 1)
    worst = int(np.argmin(coverage))
    return worst, float(coverage[worst]), int(counted[:, worst].sum())


def row(cell: Cell, found: list[Found]) -> dict[str, Any]:
    head = {"section": cell.section, "setting": cell.setting, "measure": cell.measure}
    if cell.run == "exact":
        value, where = found[0]["value"], found[0]["where"]
        over = cell.specified - value if cell.measure == "coverage" else value - cell.specified
        exactly = 0.001
        if cell.of:
            exactly = 2.0 * np.sqrt(cell.specified * (1.0 - cell.specified) / cell.of)
        words = ("power, specified", "power", "width, specified", "width", "warned")
        return {
            **head,
            "replicates": "",
            "specified": cell.specified,
            "found": f"{value:.4f}",
            **dict.fromkeys(("std err", "bound", "earlier rule", "mean"), ""),
            **dict.fromkeys(words, ""),
            "worst": where,
            "verdict": "as specified" if over <= exactly else "below",
        }
    every = {name: np.array([each[name] for each in found], dtype=float) for name in found[0]}
    held = every["hold"]
    worst, coverage, surveys = _worst(held)
    size = cell.measure.startswith("size")
    specified = 1.0 - cell.specified if size else cell.specified
    error = np.sqrt(coverage * (1.0 - coverage) / surveys)
    other = np.sqrt(specified * (1.0 - specified) / cell.of)
    least = study.floor(held.shape[1], surveys, 0.95)
    verdict = "holds" if coverage >= least else "below"
    if coverage < least and coverage >= specified - 2.0 * np.hypot(error, other):
        verdict = "as specified"

    def shown(value: float) -> str:
        return f"{1.0 - value if size else value:.3f}"

    names = {1: ["0 - 1"], 3: ["0 - 1", "0 - 2", "0 - 3"]}.get(held.shape[1])
    names = names or _names(int(0.5 + np.sqrt(0.25 + 2.0 * held.shape[1])))
    widths = np.median(every["widths"], axis=0) if "widths" in every else np.ones(2)
    return {
        **head,
        "replicates": surveys,
        "specified": cell.specified,
        "found": shown(coverage),
        "std err": f"{error:.4f}",
        "bound": shown(least),
        "earlier rule": f"{_worst(every['before'])[1]:.3f}" if "before" in every else "",
        "mean": shown(float(np.nanmean(held))) if held.shape[1] > 1 else "",
        "power, specified": cell.power,
        "power": f"{np.nanmean(every['power']):.2f}" if cell.power else "",
        "width, specified": cell.width,
        "width": f"{widths[0] / widths[1]:.2f}" if "widths" in every else "",
        "warned": f"{every['warned'].mean():.3f}" if "warned" in every else "",
        "worst": "all worths" if cell.measure == JOINT else names[worst],
        "verdict": verdict,
    }


def conclusion(rows: list[dict[str, Any]]) -> str:
    """Return the numbers of rows by verdict."""
    verdicts = [each["verdict"] for each in rows]
    hold, same, below = (verdicts.count(name) for name in ("holds", "as specified", "below"))
    return f"Of {len(rows)} rows, {hold} hold, {same} are as specified and {below} are below."


if __name__ == "__main__":
    study.table(
        "core_tables",
        "The score test compared with the tables of its specification",
        "python validation/core_tables.py",
        CELLS,
        one,
        row,
        study.asked(__doc__, 2000),
        9000,
        conclusion,
    )
