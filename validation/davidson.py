"""Coverage of 95% intervals under ``ties="davidson"``: of all contrasts of worths, and of lambda.

Rows, and respondents who answer all pairs or some at random, in both designs. Ties are independent,
or respondents differ in their tie parameters and worths; the true values are then the worths and
the lambda that fit the expected answers. ``rate`` is the probability of a tie between equal items.

A second table has two camps of respondents who disagree about the items and differ in ties, by the
form of the released dependence. Its errors are actual and stated errors of contrasts, and pairs are
detected at level 0.05.

A third table has the errors for the University and Immigration surveys at epsilon 1, with answers
simulated independently from the fit without privacy, and with resampled respondents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import study
from scipy.optimize import root

import privrank as pr
from privrank.bradley_terry.fit import answer_probabilities

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)


@dataclass(frozen=True)
class Cell:
    """A survey: items, units, probability of a tie, epsilon, questions of a respondent or None."""

    items: int
    nobs: int
    rate: float
    epsilon: float
    questions: int | None = None
    design: str = "public"
    clustered: bool = False

    def __str__(self) -> str:
        unit = "rows" if self.questions is None else "respondents"
        how = "clustered" if self.clustered else "independent"
        return f"{self.items} items, {unit}, {self.rate:g}, {self.epsilon:g}, {self.design}, {how}"

    def replicates(self, number: int) -> int:
        return number

    @property
    def spreads(self) -> tuple[float, float]:
        """Standard deviations of personal worths and of personal lambdas."""
        return (0.5, 1.0) if self.clustered else (0.0, 0.0)

    @property
    def common(self) -> tuple[np.ndarray, float]:
        """Worths and lambda of the middle of the population."""
        worths = np.linspace(1.0, -1.0, self.items)
        return worths, float(np.log(2.0 * self.rate / (1.0 - self.rate)))


CELLS = [
    Cell(6, 4000, 0.1, 1.0),
    Cell(6, 1500, 0.4, 0.5),
    Cell(6, 1500, 0.02, 0.5),
    Cell(15, 6000, 0.1, 1.0),
    Cell(6, 4000, 0.1, 1.0, design="private"),
    Cell(4, 600, 0.25, 0.5, design="private"),
    Cell(10, 3000, 0.1, np.inf),
    Cell(6, 300, 0.1, 1.0, 15),
    Cell(6, 300, 0.1, 0.5, 15),
    Cell(6, 300, 0.02, 1.0, 15),
    Cell(4, 100, 0.25, 1.0, 6, clustered=True),
    Cell(6, 300, 0.1, 1.0, 15, clustered=True),
    Cell(6, 1000, 0.4, 1.0, 15, clustered=True),
    Cell(6, 1000, 0.02, 2.0, 15, clustered=True),
    Cell(6, 300, 0.1, np.inf, 15, clustered=True),
    Cell(6, 600, 0.1, 1.0, 15, design="private", clustered=True),
    Cell(10, 1000, 0.1, 2.0, 10, design="private", clustered=True),
    Cell(20, 2000, 0.1, 1.0, 20, clustered=True),
]


def fitting(expected: list[np.ndarray], start: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the differences of worths and lambda that fit expected wins, ties and losses.

    They solve the likelihood equations. The sum of the worths, which no answer depends on, is 0.
    """
    items = len(start) - 1
    first, second = np.triu_indices(items, 1)
    incidence = np.eye(items)[first] - np.eye(items)[second]

    def scores(b: np.ndarray) -> np.ndarray:
        fitted = answer_probabilities(b[first] - b[second], b[-1])
        won, tied, lost = (e - f for e, f in zip(expected, fitted, strict=True))
        return np.append(incidence.T @ (won - lost) + b[:-1].sum(), tied.sum())

    best = root(scores, start, tol=1e-13).x
    return best[first] - best[second], float(best[-1])


@cache
def truth(cell: Cell) -> tuple[np.ndarray, float]:
    """Return the differences of worths and the lambda that fit the expected answers."""
    worths, tie = cell.common
    first, second = np.triu_indices(cell.items, 1)
    of_worths, of_ties = cell.spreads
    apart = (worths[first] - worths[second])[:, None, None]
    apart = apart + np.sqrt(2.0) * of_worths * NODES[:, None]
    table = answer_probabilities(apart, tie + of_ties * NODES[None, None, :])
    weights = np.outer(WEIGHTS, WEIGHTS) / WEIGHTS.sum() ** 2
    expected = [(part * weights).sum(axis=(1, 2)) for part in table]
    return fitting(expected, np.append(worths, tie))


def simulated(rng: np.random.Generator, cell: Cell) -> pd.DataFrame:
    """Return a survey with the columns item1, item2, outcome and respondent."""
    first, second = np.triu_indices(cell.items, 1)
    questions = 1 if cell.questions is None else cell.questions
    order = np.argsort(rng.random((cell.nobs, len(first))), axis=1)[:, :questions]
    worths, tie = cell.common
    of_worths, of_ties = cell.spreads
    own = worths + of_worths * rng.standard_normal((cell.nobs, cell.items))
    who = np.arange(cell.nobs)[:, None]
    apart = own[who, first[order]] - own[who, second[order]]
    ties = tie + of_ties * rng.standard_normal((cell.nobs, 1))
    won, tied, _ = answer_probabilities(apart, ties)
    draw = rng.random(apart.shape)
    outcome = np.where(draw < won, 1, np.where(draw < won + tied, 0, -1))
    return pd.DataFrame(
        {
            "item1": first[order].ravel(),
            "item2": second[order].ravel(),
            "outcome": outcome.ravel(),
            "respondent": np.repeat(np.arange(cell.nobs), questions),
        }
    )


def run(rng: np.random.Generator, cell: Cell) -> tuple[np.ndarray, bool, bool, float, float]:
    """Return coverage of the intervals, whether lambda's is open, and both errors."""
    unit = {"respondent": None}
    if cell.questions is not None:
        unit = {"respondent": "respondent", "max_rows": cell.questions}
    model = pr.PrivateBTL(
        simulated(rng, cell), items=range(cell.items), ties="davidson", design=cell.design, **unit
    )
    result = model.fit(cell.epsilon, rng=rng)
    pairs, ties, (apart, tie) = result.pairwise(0.05), result.tie_parameter, truth(cell)
    decided = 1.0 / (1.0 + np.exp(-apart))
    inside = ((pairs["lower"] <= decided) & (decided <= pairs["upper"])).to_numpy()
    covered = bool(ties["lower"] <= tie <= ties["upper"])
    one_sided = not np.isfinite([ties["lower"], ties["upper"]]).all()
    error = float(np.sqrt(np.mean((pairs["difference"] - apart) ** 2)))
    return inside, covered, one_sided, float(ties["std_err"]), error


def row(cell: Cell, runs: list[tuple[np.ndarray, bool, bool, float, float]]) -> dict[str, object]:
    """Return a row of the table."""
    inside = np.array([one[0] for one in runs])
    worst, least = study.least(inside)
    return {
        "cell": str(cell),
        "units": cell.nobs,
        "replicates": len(runs),
        "contrasts": f"{inside.mean():.3f}",
        "worst": f"{worst:.3f}",
        "floor": f"{least:.3f}",
        "lambda": f"{np.mean([one[1] for one in runs]):.3f}",
        "lambda one-sided": f"{np.mean([one[2] for one in runs]):.2f}",
        "median std err of lambda": f"{np.median([one[3] for one in runs]):.3f}",
        "RMSE of contrasts": f"{np.sqrt(np.mean([one[4] ** 2 for one in runs])):.3f}",
    }


@dataclass(frozen=True)
class Camps:
    """Two camps of equal size who answer all pairs of six items, and the released dependence.

    They disagree about two halves of the items, or about the first item and the last.
    """

    nobs: int
    epsilon: float
    dependence: str
    apart: str = "halves"
    design: str = "public"

    def __str__(self) -> str:
        who = f"{self.nobs} respondents, {self.epsilon:g}, {self.design}"
        return f"{who}, {self.apart} apart, {self.dependence}"

    def replicates(self, number: int) -> int:
        return 3 * number


CAMPS = [
    Camps(nobs, epsilon, dependence, apart, design)
    for nobs, epsilon in ((600, 1.0), (3000, 2.0))
    for apart, design in (("halves", "public"), ("halves", "private"), ("two items", "public"))
    for dependence in ("worst", "pairs")
]

SIDES = {"halves": (1.2, 1.2, 1.2, -1.2, -1.2, -1.2), "two items": (2.0, 0.0, 0.0, 0.0, 0.0, -2.0)}
"""The difference added to one camp's worths and subtracted from the other's."""


@cache
def of_camps(apart: str) -> tuple[list[np.ndarray], np.ndarray, float]:
    """Return probabilities of wins and ties by camp and pair, and the true values for both camps.

    The true values are the differences of worths, and lambda, that fit their expected answers.
    """
    first, second = np.triu_indices(6, 1)
    common, chances = np.linspace(0.25, -0.25, 6), []
    for camp in (-1.0, 1.0):
        own = common + camp * np.array(SIDES[apart])
        won, tied, _ = answer_probabilities(own[first] - own[second], -0.45 + 0.8 * camp)
        chances.append(np.stack((won, tied)))
    won, tied = np.mean(chances, axis=0)
    expected = [won, tied, 1.0 - won - tied]
    return chances, *fitting(expected, np.append(common, -0.45))


def run_camps(rng: np.random.Generator, cell: Camps) -> dict[str, np.ndarray | float]:
    """Return the estimates of a fit for all pairs and lambda, with the true values."""
    chances, apart, tie = of_camps(cell.apart)
    first, second = np.triu_indices(6, 1)
    won, tied = np.array(chances)[rng.integers(0, 2, cell.nobs)].swapaxes(0, 1)
    draw = rng.random(won.shape)
    outcome = np.where(draw < won, 1, np.where(draw < won + tied, 0, -1))
    frame = pd.DataFrame({"item1": np.tile(first, cell.nobs), "item2": np.tile(second, cell.nobs)})
    frame["respondent"] = np.repeat(np.arange(cell.nobs), len(first))
    frame["outcome"] = outcome.ravel()
    asked = {"items": range(6), "respondent": "respondent", "max_rows": 15, "design": cell.design}
    model = pr.PrivateBTL(frame, ties="davidson", **asked)
    result = model.fit(cell.epsilon, dependence=cell.dependence, rng=rng)
    pairs, ties = result.pairwise(0.05), result.tie_parameter
    decided = 1.0 / (1.0 + np.exp(-apart))
    return {
        "off": pairs["difference"].to_numpy() - apart,
        "stated": pairs["std_err"].to_numpy(),
        "found": (pairs["pvalue"] < 0.05).to_numpy(),
        "inside": ((pairs["lower"] <= decided) & (decided <= pairs["upper"])).to_numpy(),
        "lambda": bool(ties["lower"] <= tie <= ties["upper"]),
        "tie off": ties["estimate"] - tie,
        "tie stated": ties["std_err"],
    }


def row_of_camps(cell: Camps, runs: list[dict[str, np.ndarray | float]]) -> dict[str, object]:
    """Return a row of the table of camps."""
    every = {name: np.array([one[name] for one in runs]) for name in runs[0]}
    worst, least = study.least(every["inside"])
    return {
        "cell": str(cell),
        "replicates": len(runs),
        "RMSE of contrasts": f"{np.sqrt((every['off'] ** 2).mean()):.4f}",
        "stated": f"{np.sqrt((every['stated'] ** 2).mean()):.4f}",
        "pairs found": f"{every['found'].mean():.3f}",
        "contrasts": f"{every['inside'].mean():.3f}",
        "worst": f"{worst:.3f}",
        "floor": f"{least:.3f}",
        "lambda": f"{every['lambda'].mean():.3f}",
        "RMSE of lambda": f"{np.sqrt((every['tie off'] ** 2).mean()):.4f}",
        "stated of lambda": f"{np.median(every['tie stated']):.4f}",
    }


SURVEYS = {
    "university": (pr.datasets.load_university(), 15),
    "immigration": (pr.datasets.load_immigration(), 6),
}


@dataclass(frozen=True)
class Survey:
    """A survey at epsilon 1 with simulated answers: the method, the fit, and the predicted error.

    The predicted error is of first order, for independent answers. Net wins have 0.85 of epsilon
    and ties 0.15, or net wins have all of epsilon and ties are known.
    """

    name: str
    resampled: bool
    ties: bool | str
    dependence: str
    predicted: float = np.nan

    def __str__(self) -> str:
        how = "respondents resampled" if self.resampled else "independent answers"
        return f"{self.name}, {how}, ties={self.ties}, dependence={self.dependence}"

    def replicates(self, number: int) -> int:
        return number


ERRORS = [
    Survey("university", False, "davidson", "none", 0.1206),
    Survey("university", False, "davidson", "worst"),
    Survey("university", True, "davidson", "worst"),
    Survey("university", True, True, "worst"),
    Survey("immigration", False, "davidson", "none", 0.329),
    Survey("immigration", False, "davidson", "worst"),
    Survey("immigration", True, "davidson", "worst"),
    Survey("immigration", True, True, "worst"),
]


def model(cell: Survey, frame: pd.DataFrame) -> pr.PrivateBTL:
    """Return the model of a survey, whose design is public."""
    survey, rows = SURVEYS[cell.name]
    who = {"respondent": "respondent", "max_rows": rows, "items": survey.items}
    return pr.PrivateBTL(frame, ties=cell.ties, design="public", **who)


@cache
def exact(name: str, ties: bool | str) -> pr.BTLResult:
    """Return the fit without privacy."""
    whole = Survey(name, False, ties, "none")
    return model(whole, SURVEYS[name][0].comparisons).fit(np.inf, penalty=0)


def survey_error(rng: np.random.Generator, cell: Survey) -> tuple[float, float, float]:
    """Return actual and stated mean squared errors of all contrasts, and the error of lambda."""
    true, frame = exact(cell.name, cell.ties), SURVEYS[cell.name][0].comparisons
    if cell.resampled:
        frame = study.resample(rng, frame)
    else:
        chances, draw = true.predict(frame), rng.random(len(frame))
        outcome = np.where(draw < chances["win"], 1, -1)
        outcome = np.where(draw > 1.0 - chances["tie"], 0, outcome)
        frame = frame.assign(outcome=np.where(frame["outcome"].isna(), np.nan, outcome))
    result = model(cell, frame).fit(1.0, dependence=cell.dependence, rng=rng)
    first, second = np.triu_indices(len(true.items), 1)
    off, covariance = (result.params - true.params).to_numpy(), result.cov_params().to_numpy()
    own = np.diag(covariance)
    stated = own[first] + own[second] - 2.0 * covariance[first, second]
    tie = result.estimate.coefficients[-1] - true.estimate.coefficients[-1]
    squares = (off[first] - off[second]) ** 2
    return squares.mean(), stated.mean(), tie**2 if cell.ties == "davidson" else np.nan


def error_row(cell: Survey, runs: list[tuple[float, float, float]]) -> dict[str, object]:
    """Return a row of the table of errors."""
    squares, stated, ties = np.array(runs).T
    rmse = np.sqrt(squares.mean())
    error = squares.std(ddof=1) / np.sqrt(len(squares)) / (2.0 * rmse)
    return {
        "survey": str(cell),
        "replicates": len(runs),
        "RMSE of contrasts": f"{rmse:.4f}",
        "its error": f"{error:.4f}",
        "predicted": "" if np.isnan(cell.predicted) else f"{cell.predicted:.4f}",
        "stated": f"{np.sqrt(np.median(stated)):.4f}",
        "RMSE of lambda": "" if np.isnan(ties).all() else f"{np.sqrt(ties.mean()):.3f}",
    }


def main() -> None:
    arguments = study.asked(__doc__, 100)
    study.table(
        "davidson_surveys",
        "Davidson model: errors for two surveys",
        "python validation/davidson.py",
        ERRORS,
        survey_error,
        error_row,
        arguments,
        first=4200,
    )
    study.table(
        "davidson_camps",
        "Davidson model: errors if two camps differ in ties, by the released dependence",
        "python validation/davidson.py",
        CAMPS,
        run_camps,
        row_of_camps,
        arguments,
        first=4300,
    )
    study.table(
        "davidson",
        "Coverage of 95% intervals in the Davidson model",
        "python validation/davidson.py",
        CELLS,
        run,
        row,
        arguments,
        first=4100,
    )


if __name__ == "__main__":
    main()
