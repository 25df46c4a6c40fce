"""Coverage and error of worths from choices of offered sets, and of simple rivals.

Plans: `A` has 30 versions of 10 random sets of 4 of 8 items for 300 respondents; `B` the 7 sets of
4 of 7 items of a balanced design for 180; `C` 50 versions of 12 sets of 5 of 20 items for 500; in
`uneven` (300 respondents, 10 sets of 4 of 8) some items are shown four times as often as others.
`farmers` order 3 of 10 items, one set each. Populations: all respondents have the `same` worths;
two `camps` differ by 1.5 in opposite directions in two items; or worths are `random` with a
standard deviation of 0.8. Versions do not depend on the camp. `groups` fits 400 and 200 respondents
of plan A with a covariate; its contrasts are the differences of the groups in differences of two
items.

The true worths are those at which the model expects the mean answers of the population. Statements
are about all differences of two items. `rival` is ten lines long and has no intervals: the counts
of best minus worst answers (of best answers; of net wins) with Laplace noise at all of epsilon,
divided by how often the item was shown, on the scale log((1 + x) / (1 - x)) (log x for best
answers). `rival apart` counts best and worst answers separately, each at half of epsilon. Where a
model is compared with a rival, both are rescaled to the true worths by least squares. A fit spends
a tenth of epsilon on its intervals. `whole` is a fit without intervals (`dependence="none"`), which
spends all of epsilon on the answers, as the rivals do. `ridge` is the error of the ridge estimates,
before their bias is corrected.

Under `silence` respondents leave tasks unanswered: 15% of the tasks at random, or half of the
respondents break off at a random task. In plan `B` all respondents see the tasks in one order, so
its later sets are answered less often after a break-off. This violates an assumption of the fit.
These cells have no rivals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import study
from scipy.optimize import root

import privrank as pr
from privrank.bradley_terry.predictor import display
from privrank.bradley_terry.scoretests import pvalues

ALPHA, DRAWS = 0.05, 4000
FANO = ((0, 1, 3), (1, 2, 4), (2, 3, 5), (3, 4, 6), (0, 4, 5), (1, 5, 6), (0, 2, 6))
SHAPES = {
    "A": (300, 30, 10, 4, 8),
    "B": (180, 1, 7, 4, 7),
    "C": (500, 50, 12, 5, 20),
    "uneven": (300, 30, 10, 4, 8),
    "farmers": (600, 600, 1, 3, 10),
    "groups": (600, 30, 10, 4, 8),
}


@dataclass(frozen=True)
class Cell:
    """A plan, how its sets are answered, the population, and epsilon."""

    plan: str
    answer: str
    population: str
    epsilon: float
    silence: str = ""

    def __str__(self) -> str:
        silence = f", silence {self.silence}" if self.silence else ""
        return f"{self.plan}, {self.answer}, {self.population}, epsilon {self.epsilon:g}{silence}"

    def replicates(self, asked: int) -> int:
        """Return fewer replicates for the slow plan, and more where an error has a bound."""
        if self.plan == "C":
            return asked // 10
        bounded = self.plan == "farmers" or (self.plan == "B" and self.answer == "best-worst")
        return 2 * asked if bounded and self.epsilon == 1.0 and not self.silence else asked

    @property
    def respondents(self) -> int:
        return SHAPES[self.plan][0]

    @property
    def items(self) -> int:
        return SHAPES[self.plan][-1]

    def people(self, rng: np.random.Generator) -> np.ndarray:
        """Return the worths of all respondents, in the order of their versions."""
        worths = population(self, self.respondents, rng)
        return worths if self.plan == "groups" else rng.permutation(worths)


@cache
def sets_of(plan: str) -> np.ndarray:
    """Return the sets of all versions, shape (versions, tasks, size)."""
    _, versions, tasks, size, m = SHAPES[plan]
    if plan == "B":
        return np.array([[sorted({*range(7)} - {*line}) for line in FANO]])
    rng = np.random.default_rng(20261130)
    weight = np.repeat((4.0, 1.0), m // 2) if plan == "uneven" else np.ones(m)
    keys = rng.exponential(size=(versions, tasks, m)) / weight
    return np.sort(np.argsort(keys, axis=2)[:, :, :size], axis=2)


def worths_of(plan: str, group: int = 0) -> np.ndarray:
    """Return the worths of a group, from 1 to -1."""
    m = SHAPES[plan][-1]
    worths = np.linspace(1.0, -1.0, m)[np.random.default_rng(7).permutation(m)]
    return worths if group == 0 else worths + 0.6 * np.where(np.arange(m) % 2, 1, -1)


def population(cell: Cell, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return the worths of respondents, shape (size, m)."""
    worths = np.tile(worths_of(cell.plan), (size, 1))
    if cell.plan == "groups":
        worths[size * 2 // 3 :] = worths_of(cell.plan, 1)
    if cell.population == "camps":
        side = np.where(np.arange(size) % 2, 1.5, -1.5)
        worths[:, 0] += side
        worths[:, 1] -= side
    elif cell.population == "random":
        worths += 0.8 * rng.standard_normal(worths.shape)
    return worths


def answered(
    worths: np.ndarray, sets: np.ndarray, answer: str, rng: np.random.Generator
) -> np.ndarray:
    """Return the best and the worst item, or the order; worths (n, m), sets (n, tasks, size)."""
    own = np.take_along_axis(worths[:, None, :], sets, axis=2)
    felt = own + rng.gumbel(size=own.shape)
    order = np.argsort(-felt, axis=2)
    if answer == "best-worst":
        size = own.shape[2]
        joint = own[..., :, None] - own[..., None, :] + rng.gumbel(size=(*own.shape, size))
        joint[..., np.arange(size), np.arange(size)] = -np.inf
        best, worst = np.divmod(joint.reshape(*own.shape[:2], -1).argmax(axis=2), size)
        order = np.stack((best, worst), axis=2)
    return np.take_along_axis(sets, order if answer == "order" else order[..., :2], axis=2)


def scores(cell: Cell, sets: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Return the item vectors of respondents, shape (n, m)."""
    n, _, size = sets.shape
    position = {"best": (1, 0), "best-worst": (1, -1), "order": range(size - 1, -size, -2)}
    total = np.zeros((n, cell.items))
    for k, score in enumerate(position[cell.answer]):
        for task in range(sets.shape[1]):
            total[np.arange(n), answers[:, task, k]] += score
    return total


def expected(v: np.ndarray, sets: np.ndarray, answer: str) -> np.ndarray:
    """Return the mean item vector of the model for sets, shape (sets, size)."""
    u = v[sets]
    odds = np.exp(u[:, :, None] - u[:, None, :])
    if answer == "best":
        mean = 1.0 / odds.sum(axis=1)
    elif answer == "order":
        mean = np.tanh(0.5 * (u[:, :, None] - u[:, None, :])).sum(axis=2)
    else:
        odds[:, np.arange(u.shape[1]), np.arange(u.shape[1])] = 0.0
        joint = odds / odds.sum(axis=(1, 2), keepdims=True)
        mean = joint.sum(axis=2) - joint.sum(axis=1)
    return np.bincount(sets.ravel(), mean.ravel(), minlength=len(v))


@cache
def truth(plan: str, answer: str, population_name: str, group: int = 0) -> np.ndarray:
    """Return the worths at which the model expects the mean answers of the population."""
    cell = Cell(plan, answer, population_name, np.inf)
    sets = sets_of(plan).reshape(-1, SHAPES[plan][3])
    centre = worths_of(plan, group)
    if population_name == "same":
        return centre - centre.mean()
    rng = np.random.default_rng(11)
    people = population(replace(cell, plan="A") if plan == "groups" else cell, DRAWS, rng)
    people += centre - worths_of(plan)
    mean = np.mean([expected(v, sets, answer) for v in people], axis=0)

    def off(v: np.ndarray) -> np.ndarray:
        full = np.append(v, -v.sum())
        return (expected(full, sets, answer) - mean)[:-1]

    solved = root(off, (centre - centre.mean())[:-1], tol=1e-10).x
    return np.append(solved, -solved.sum())


def silent(cell: Cell, rng: np.random.Generator) -> np.ndarray:
    """Return which tasks are unanswered, shape (n, tasks)."""
    n, _, tasks, _, _ = SHAPES[cell.plan]
    if cell.silence == "at random":
        return rng.random((n, tasks)) < 0.15
    last = rng.integers(1, tasks, size=(n, 1))
    return (np.arange(tasks) >= last) & (rng.random((n, 1)) < 0.5)


def frame_of(
    cell: Cell, sets: np.ndarray, answers: np.ndarray, unanswered: np.ndarray | None = None
) -> pd.DataFrame:
    """Return a choices frame."""
    n, tasks, size = sets.shape
    kind = pd.CategoricalDtype([f"i{k}" for k in range(cell.items)])

    def named(codes: np.ndarray) -> pd.Categorical:
        return pd.Categorical.from_codes(codes.ravel(), dtype=kind)

    number = "offered" if unanswered is None else "offered, may be unanswered"
    columns = {"id": np.repeat(np.arange(n), tasks), number: size}
    columns |= {f"offered {k + 1}": named(sets[:, :, k]) for k in range(size)}
    if cell.answer == "order":
        columns |= {f"place {k + 1}": named(answers[:, :, k]) for k in range(size)}
    else:
        columns["best"] = named(answers[:, :, 0])
        if cell.answer == "best-worst":
            columns["worst"] = named(answers[:, :, 1])
    frame = pd.DataFrame(columns)
    if unanswered is not None:
        frame.loc[unanswered.ravel(), cell.answer.split("-")] = None
    if cell.plan == "groups":
        frame["region"] = np.where(frame["id"] < n * 2 // 3, "north", "south")
    return frame


def rescaled_error(estimate: np.ndarray, true: np.ndarray) -> float:
    """Return the root mean square error of differences of items after rescaling."""
    estimate = estimate - estimate.mean()
    slope = float(estimate @ true / max(estimate @ estimate, 1e-12))
    return float(
        np.sqrt(2.0 * np.mean((slope * estimate - true) ** 2) * len(true) / (len(true) - 1))
    )


def rivals(
    cell: Cell, sets: np.ndarray, answers: np.ndarray, true: np.ndarray, rng: np.random.Generator
) -> dict[str, float]:
    """Return the errors of the rivals."""
    n, tasks, size = sets.shape
    shown = np.bincount(sets.ravel(), minlength=cell.items).astype(float)
    total = scores(cell, sets, answers).sum(axis=0)
    # how far the answer to one task moves these counts, in l1
    moved = {"best": 2, "best-worst": 4, "order": 4 * (size**2 // 4)}[cell.answer]
    noise = np.zeros((3, cell.items))
    if cell.epsilon < np.inf:
        noise = rng.laplace(0.0, moved * tasks / cell.epsilon, noise.shape)
    share = (total + noise[0]) / shown
    if cell.answer == "best":
        return {"rival": rescaled_error(np.log(np.maximum(share, 0.005)), true)}
    share = np.clip(share / (size - 1 if cell.answer == "order" else 1), -0.98, 0.98)
    found = {"rival": rescaled_error(np.log((1.0 + share) / (1.0 - share)), true)}
    if cell.answer == "best-worst":
        # each is moved by 2 in a task, and has half of epsilon
        named = [np.bincount(answers[:, :, k].ravel(), minlength=cell.items) for k in (0, 1)]
        best, worst = np.maximum((np.array(named) + noise[1:]) / shown, 0.005)
        found["rival apart"] = rescaled_error(0.5 * np.log(best / worst), true)
    return found


def differences(items: int) -> np.ndarray:
    """Return the differences of two items, shape (pairs, items)."""
    first, second = np.triu_indices(items, 1)
    return np.eye(items)[first] - np.eye(items)[second]


def covered(result: pr.BTLResult, true: np.ndarray) -> np.ndarray:
    """Return whether the interval of each difference contains its true value.

    With covariates these are the differences of the last coefficients of the items.
    """
    pairs = differences(len(true))
    rows = display(result.release.design)[-len(true) :]
    return pvalues(result._inference(), pairs @ rows, pairs @ true) > ALPHA


def run(rng: np.random.Generator, cell: Cell) -> dict[str, object]:
    """Return coverage of differences, errors, and the errors of rivals."""
    plans = sets_of(cell.plan)
    n = cell.respondents
    sets = plans[np.arange(n) % len(plans)]
    answers = answered(cell.people(rng), sets, cell.answer, rng)
    unanswered = silent(cell, rng) if cell.silence else None
    frame = frame_of(cell, sets, answers, unanswered)
    options = {"respondent": "id", "max_rows": sets.shape[1], "design": "public"}
    pairs = differences(cell.items)
    true = truth(cell.plan, cell.answer, cell.population)
    if cell.plan == "groups":
        left = "order" if cell.answer == "order" else cell.answer.replace("-", " + ")
        model = pr.PrivateBTL.from_formula(
            f"{left} ~ region", frame, levels={"region": ["north", "south"]}, **options
        )
        true = truth(cell.plan, cell.answer, cell.population, 1) - true
    else:
        model = pr.PrivateBTL(frame, **options)
    result = model.fit(cell.epsilon, rng=rng)
    estimate = result.params.to_numpy()[-cell.items :]
    ridge = display(result.release.design)[-cell.items :] @ result._inference().fitted.first
    found: dict[str, object] = {
        "covered": covered(result, true),
        "error": float(np.sqrt(np.mean((pairs @ (estimate - true)) ** 2))),
        "ridge": float(np.sqrt(np.mean((pairs @ (ridge - true)) ** 2))),
        "identified": float(np.isfinite(estimate).all()),
        "rescaled": rescaled_error(estimate, true),
    }
    if cell.plan != "groups" and not cell.silence:
        whole = model.fit(cell.epsilon, dependence="none", rng=rng).params.to_numpy()
        found["whole"] = rescaled_error(whole, true)
        found |= rivals(cell, sets, answers, true, rng)
    return found


def cells() -> list[Cell]:
    """Return all cells."""
    everyone = ("same", "camps", "random")
    private = (0.5, 1.0, 2.0, np.inf)
    found = [
        Cell(plan, answer, who, epsilon)
        for plan, answer, who, epsilon in product(
            ("A", "B", "uneven"), ("best-worst", "best"), everyone, private
        )
    ]
    found += [Cell("C", "best-worst", who, e) for who, e in product(everyone, private[1:])]
    found += [Cell("farmers", "order", who, e) for who, e in product(everyone, private)]
    found += [
        Cell("groups", "best-worst", who, e) for who, e in product(("same", "random"), private[1:])
    ]
    found += [
        Cell(plan, "best-worst", who, epsilon, silence)
        for plan, who, epsilon, silence in product(
            ("A", "B"), ("same", "camps"), private[1:], ("at random", "after a break-off")
        )
    ]
    return found


def row(cell: Cell, found: list[dict[str, object]]) -> dict[str, str]:
    covered = np.array([one["covered"] for one in found])
    worst, floor = study.least(covered)

    def of(name: str) -> np.ndarray:
        return np.array([one.get(name, np.nan) for one in found], dtype=float)

    def mean(name: str) -> str:
        return f"{np.sqrt(np.mean(of(name) ** 2)):.3f}" if name in found[0] else ""

    behind, error = study.mean_and_error(of("rescaled") - of("rival"))
    whole, whole_error = study.mean_and_error(of("whole") - of("rival"))
    compared = "rival" in found[0]
    return {
        "plan": cell.plan,
        "answer": cell.answer,
        "population": cell.population,
        "epsilon": f"{cell.epsilon:g}",
        "silence": cell.silence,
        "replicates": str(len(found)),
        "coverage": f"{covered.mean():.3f}",
        "worst": f"{worst:.3f}",
        "floor": f"{floor:.3f}",
        "error": mean("error"),
        "ridge": mean("ridge"),
        "rescaled": mean("rescaled"),
        "rival": mean("rival"),
        "rival apart": mean("rival apart"),
        "difference": f"{behind:+.3f}" if compared else "",
        "std err": f"{error:.3f}" if compared else "",
        "whole": mean("whole"),
        "whole difference": f"{whole:+.3f}" if compared else "",
        "whole std err": f"{whole_error:.3f}" if compared else "",
        "identified": f"{of('identified').mean():.3f}",
    }


def verdict(rows: list[dict[str, str]]) -> str:
    """Return the worst coverage, and how the rivals compare."""
    violated = [row for row in rows if row["plan"] == "B" and row["silence"].startswith("after")]
    holding = [row for row in rows if row not in violated]
    low = min(holding, key=lambda row: float(row["worst"]) - float(row["floor"]))
    below = sum(float(row["worst"]) < float(row["floor"]) for row in holding)
    lowest = min(violated, key=lambda row: float(row["worst"]))
    compared = [row for row in rows if row["rival"]]
    behind = [
        row
        for row in compared
        if float(row["difference"]) > 0.1 * float(row["rival"]) + 2.0 * float(row["std err"])
    ]
    far = max(compared, key=lambda row: float(row["difference"]) / float(row["rival"]))
    ahead = [
        [row for row in compared if float(row[name]) > 2.0 * float(row[error])]
        for name, error in (("difference", "std err"), ("whole difference", "whole std err"))
    ]
    most = max(ahead[1], key=lambda row: float(row["whole difference"]) / float(row["rival"]))
    return (
        f"In {below} of {len(holding)} cells the worst difference is covered less often than its "
        f"floor, the 5% quantile of the smallest of as many estimates at 0.95. The lowest relative "
        f"to its floor is {low['worst']} (floor {low['floor']}; plan {low['plan']}, "
        f"{low['answer']}, {low['population']} worths, epsilon {low['epsilon']}). In "
        f"{len(behind)} of {len(compared)} cells the error is larger than that of the rival by "
        f"more than 10% and two standard errors, and in {len(ahead[0])} by more than two standard "
        f"errors. It is largest relative to the rival's with {far['rescaled']} against "
        f"{far['rival']} (plan {far['plan']}, {far['answer']}, {far['population']} worths, epsilon "
        f"{far['epsilon']}). The rival has no intervals. A fit without intervals is behind it by "
        f"more than two standard errors in {len(ahead[1])} cells, at most with {most['whole']} "
        f"against {most['rival']} (plan {most['plan']}, {most['answer']}, {most['population']} "
        f"worths, epsilon {most['epsilon']}). If respondents who see the tasks "
        f"in one order break off, which violates an assumption, the worst difference is covered in "
        f"{lowest['worst']} ({lowest['population']} worths, epsilon {lowest['epsilon']})."
    )


def main() -> None:
    study.table(
        "sets",
        "Choices from offered sets",
        "python validation/sets.py",
        cells(),
        run,
        row,
        study.asked(__doc__.splitlines()[0], 1000),
        110_000,
        verdict,
    )


if __name__ == "__main__":
    main()
