"""Coverage of the coefficients of models with covariates, and size of the tests of terms.

Synthetic respondents answer all pairs of m items independently; their worths depend on their group
according to the model. In the last cells the respondents of University are resampled with
replacement, with the published respondents as the population. A term without effect gives the size
of its test. The worths of the reference group differ, so the test of the intercept gives power.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import study

import privrank as pr

ITEMS = ("a", "b", "c", "d", "e", "f")
PAIRS = np.array(np.triu_indices(len(ITEMS), 1)).T
TABLE = pd.DataFrame({"x": [2.0, 1.0, 0.0, 0.0, -1.0, -2.0], "y": [1, 0, 1, 0, 1, 0]}, index=ITEMS)


@dataclass(frozen=True)
class Cell:
    """One setting of the study.

    Worths are normal with standard deviation `spread`. Each column of the model matrix adds a
    normal variable of standard deviation `effect`, except for the last term, which has no effect.
    """

    label: str
    formula: str
    respondents: int
    epsilon: float
    design: str = "public"
    unit: str = "respondent"
    effect: float = 0.5
    options: dict[str, Any] = field(default_factory=dict)


CELLS = [
    Cell("one factor", "g + null", 300, np.inf),
    Cell("one factor", "g + null", 300, 2.0),
    Cell("one factor", "g + null", 1000, 0.5),
    Cell("two factors and their interaction", "g * h", 600, 2.0),
    Cell("private design", "g + null", 600, 2.0, design="private"),
    Cell("rows as units", "g + null", 200, 0.5, unit="row"),
    Cell("rows as units, private design", "g + null", 200, 0.5, design="private", unit="row"),
    Cell("numeric covariate", "age", 600, 2.0, options={"bounds": {"age": (18, 40)}}),
    Cell(
        "factor and numeric covariate", "g + age", 1000, 2.0, options={"bounds": {"age": (18, 40)}}
    ),
    Cell("order effect", "g", 600, 1.0, options={"contest": "first"}),
    Cell("item covariates", "g", 300, 1.0, options={"item_formula": "x + y", "item_data": TABLE}),
]


LEVELS = {"g": ["g0", "g1"], "h": ["h0", "h1"], "null": ["n0", "n1"]}


def respondents(rng: np.random.Generator, cell: Cell) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Draw the answers of all respondents, and return them with the true coefficients."""
    n, m = cell.respondents, len(ITEMS)
    people = pd.DataFrame(
        {
            "respondent": np.arange(n),
            "g": rng.choice(LEVELS["g"], n),
            "h": rng.choice(LEVELS["h"], n, p=[0.3, 0.7]),
            "null": rng.choice(LEVELS["null"], n),
            "age": rng.integers(18, 41, n),
        }
    )
    by_items = "item_data" in cell.options
    basis = (TABLE - TABLE.mean()).to_numpy() if by_items else np.eye(m)
    size = basis.shape[1]

    def coefficients(scale: float) -> np.ndarray:
        values = rng.normal(0.0, scale, size)
        return values if by_items else values - values.mean()

    truth = {"Intercept": coefficients(0.3 if by_items else 0.7)}
    slope = {"g[T.g1]": (people["g"] == "g1").to_numpy(float)}
    slope["h[T.h1]"] = (people["h"] == "h1").to_numpy(float)
    slope["age"] = people["age"].to_numpy(float)
    worth = np.tile(basis @ truth["Intercept"], (n, 1))
    for name, value in slope.items():
        if name.split("[")[0] in cell.formula:
            truth[name] = coefficients(cell.effect / (20.0 if name == "age" else 2.0))
            worth += np.outer(value, basis @ truth[name])
    first, second = PAIRS.T
    turned = rng.random((n, len(PAIRS))) < 0.5
    advantage = 0.2 if "contest" in cell.options else 0.0
    t = worth[:, first] - worth[:, second] + advantage * np.where(turned, -1.0, 1.0)
    won = rng.random(t.shape) < 1.0 / (1.0 + np.exp(-t))
    names = np.array(ITEMS)
    frame = people.loc[people.index.repeat(len(PAIRS))].reset_index(drop=True)
    frame["item1"] = np.where(turned, names[second], names[first]).ravel()
    frame["item2"] = np.where(turned, names[first], names[second]).ravel()
    frame["outcome"] = np.where(won ^ turned, 1, -1).ravel()
    return frame, truth | ({"first": np.array([advantage])} if advantage else {})


def model_of(frame: pd.DataFrame, cell: Cell, **options: Any) -> pr.PrivateBTL:
    people = {"respondent": "respondent", "max_rows": len(PAIRS)}
    return pr.PrivateBTL.from_formula(
        f"item1 + item2 + outcome ~ {cell.formula}",
        frame,
        **{"items": ITEMS, "levels": LEVELS, "ties": False, "design": cell.design}
        | (people if cell.unit == "respondent" else {"respondent": None})
        | cell.options
        | options,
    )


def one(rng: np.random.Generator, cell: Cell) -> tuple[float, float, float, float]:
    """Return coverage, mean error, whether it warned, and the p-value of the null term."""
    frame, truth = respondents(rng, cell)
    fit = model_of(frame, cell).fit(cell.epsilon, allow_unidentified=True, rng=rng)
    size = len(fit.release.design.covariates.item_columns) or len(ITEMS)
    zero = np.zeros(size)
    columns = fit.release.design.covariates.columns
    true = np.concatenate([truth.get(column, zero) for column in columns])
    if "first" in truth:
        true = np.append(true, truth["first"])
    covered = study.covers(fit, true)
    null = [name for name, _, _ in fit.release.design.covariates.terms if name in ("null", "g:h")]
    # a test takes longer than a fit, so only one replicate in four has one
    asked = null and rng.random() < 0.25
    pvalue = fit.wald_test_terms()["pvalue"][null[0]] if asked else np.nan
    warned = any("shrinkage" in note for note in fit.warnings)
    return float(covered.mean()), float(fit.bse.mean()), float(warned), float(pvalue)


def again(
    rng: np.random.Generator, frame: pd.DataFrame, truth: pd.Series, cell: Cell, options: dict
) -> tuple[float, float, float, float]:
    """Return the same values for a sample of the published respondents."""
    cems = pr.datasets.load_university()
    sample = study.resample(rng, frame)
    model = model_of(sample, cell, items=cems.items, levels=cems.levels, ties=True)
    fit = model.fit(cell.epsilon, allow_unidentified=True, rng=rng, **options)
    covered = study.covers(fit, truth)
    warned = any("shrinkage" in note for note in fit.warnings)
    return float(covered.mean()), float(fit.bse.mean()), float(warned), np.nan


def main() -> None:
    replicates = study.arguments(__doc__, 300)
    started = time.time()
    rows = []

    def add(label: str, cell: Cell, out: list[tuple[float, float, float, float]]) -> None:
        coverage, deviation = study.mean_and_error([row[0] for row in out])
        pvalues = np.array([row[3] for row in out])
        known = pvalues[~np.isnan(pvalues)]
        rows.append(
            {
                "setting": label,
                "formula": f"~ {cell.formula}",
                "units": cell.respondents * (len(PAIRS) if cell.unit == "row" else 1),
                "epsilon": cell.epsilon,
                "coverage": f"{coverage:.4f}",
                "SE": f"{deviation:.4f}",
                "mean std err": f"{np.mean([row[1] for row in out]):.3f}",
                "warned": f"{np.mean([row[2] for row in out]):.2f}",
                "level of the null term": f"{(known <= 0.05).mean():.3f}" if len(known) else "",
            }
        )
        print(rows[-1], flush=True)

    for number, cell in enumerate(CELLS):
        add(cell.label, cell, study.replicate(one, replicates, cell, cell=700 + number))
    cems = pr.datasets.load_university()
    frame = cems.comparisons.merge(cems.students.reset_index(), on="respondent")
    for number, (epsilon, options) in enumerate(
        ((np.inf, {"dependence": "cluster"}), (np.inf, {}), (2.0, {}))
    ):
        cell = Cell("", "gender + study", len(cems.students), epsilon)
        asked = {"items": cems.items, "levels": cems.levels, "ties": True}
        truth = model_of(frame, cell, **asked).fit(np.inf, penalty=0).params
        out = study.replicate(again, replicates, frame, truth, cell, options, cell=750 + number)
        errors = "cluster-robust" if options else "design effect"
        add(f"University resampled, {errors}", cell, out)
    study.write(
        "covariates",
        "Coverage of 95% intervals for coefficients of covariates",
        "python validation/covariates.py",
        rows,
        started,
    )


if __name__ == "__main__":
    main()
