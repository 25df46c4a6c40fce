"""Experiments 1 to 3 of Cai, Chakraborty and Wang (2023): privrank and their algorithms.

A quarter of the items have preference score 1, the others Uniform(0.2, 0.7). This follows the
authors' code (github.com/abhinavc3/DP-Ranking); the paper prints the cases in reverse. Worths are
the log scores, centred. Each pair is compared once with probability p. Errors are relative, in l2
and in l-infinity ("largest error"); the overlap is the fraction of the top quarter that is
selected.

Experiment 1 varies the number of items at p = 1, experiment 2 varies p at 300 items, and experiment
3 varies epsilon at 300 items. Each is run at several values of the third quantity (like the
authors' code, on coarser grids). Scores and noise are drawn in every replicate. The authors' code
draws the noise of the estimate from one fixed seed, so their error bars do not include it.

Their ridge is 2 sqrt(n p log n); the smallest ridge for which their privacy proof is valid is 1 /
epsilon. Both are shown, with their actual epsilon. privrank's worths correct the bias of its ridge,
which intervals require for coverage; dotted lines and a column of the table show the ridge fit.
Their raw wins are compared with privrank's win rates: at p < 1 raw wins also depend on how often an
item was compared. Under the private design the numbers of comparisons per pair are declared,
because in the experiment they are known to be equal or equally likely. Or they are released with a
share of epsilon, the default for worths; their algorithms state no standard errors and do not need
them. A selection never releases them: "nothing declared" is its default. With released counts most
worths are not identified here: "withheld" is their fraction, and the error and overlap of a method
that withholds any are omitted. Methods are drawn even if privrank warns that its ridge exceeds the
information in the answers.

Tables go to docs/validation/, figures to build/validation/.
"""

from __future__ import annotations

import time

import numpy as np
import study
from ccw import (
    COUNTING,
    NO_PRIVACY,
    PRIVATE,
    PUBLIC,
    RELEASED,
    SMALL_RIDGE,
    THEIR_RIDGE,
    UNDECLARED,
    Tally,
    best_first,
    draw,
    estimate,
    noisy_wins,
    shown,
    small_ridge,
    target,
    their_ridge,
)

import privrank as pr

MAIN = (0.5, 1.0, 2.5, np.inf)
# items, share of pairs compared, epsilons
CELLS = [
    (100, 1.0, MAIN),
    (200, 1.0, MAIN),
    (400, 1.0, MAIN),
    (500, 1.0, MAIN),
    (300, 0.1, MAIN),
    (300, 0.75, MAIN),
    (300, 0.25, (0.2, *MAIN[:-1], 5.0, np.inf)),
    (300, 0.5, (0.2, *MAIN[:-1], 5.0, np.inf)),
    (300, 1.0, (0.2, *MAIN[:-1], 5.0, np.inf)),
]
METHODS = (
    SMALL_RIDGE,
    THEIR_RIDGE,
    COUNTING,
    PRIVATE,
    f"{PRIVATE}, counting",
    RELEASED,
    f"{UNDECLARED}, counting",
    PUBLIC,
    f"{PUBLIC}, counting",
    NO_PRIVACY,
    f"{NO_PRIVACY}, counting",
)
MEASURES = ("error", "error of the ridge fit", "overlap", "epsilon spent", "withheld", "largest")

# items, epsilon, replicates behind the targets; error and overlap by method
TARGETS = [
    (100, 0.5, 100, {SMALL_RIDGE: (6.01, 0.49), PRIVATE: (0.922, 0.64), PUBLIC: (0.643, 0.77)}),
    (100, 1.0, 100, {SMALL_RIDGE: (1.82, 0.64), PRIVATE: (0.631, 0.77), PUBLIC: (0.496, 0.84)}),
    (300, 0.5, 40, {SMALL_RIDGE: (0.874, 0.76), PRIVATE: (0.417, 0.88), PUBLIC: (0.307, 0.94)}),
    (300, 1.0, 40, {SMALL_RIDGE: (0.442, 0.88), PRIVATE: (0.304, 0.94), PUBLIC: (0.267, 0.96)}),
    (500, 1.0, 16, {SMALL_RIDGE: (0.288, 0.95), PRIVATE: (0.219, 0.98), PUBLIC: (0.201, 0.99)}),
]


def one(rng: np.random.Generator, items: int, share: float, epsilons: tuple) -> np.ndarray:
    """Return the measures of every method at every epsilon, on one data set."""
    k = items // 4
    scores = np.concatenate((np.ones(k), rng.uniform(0.2, 0.7, items - k)))
    # items in random order, so no rule for ties favours the best
    theta = rng.permutation(np.log(scores) - np.log(scores).mean())
    best = np.flatnonzero(theta == theta.max())
    size = np.linalg.norm(theta)
    frame = pr.simulate.bradley_terry(theta, share=share, rng=rng)
    tally = Tally(*(frame[name].to_numpy() for name in ("item1", "item2", "outcome")), items)
    facts = {"items": range(items), "respondent": None, "ties": False}
    private = pr.PrivateBTL(frame, pair_counts="equal", **facts)
    released = pr.PrivateBTL(frame, **facts)
    public = pr.PrivateBTL(frame, design="public", **facts)
    selections = {
        PRIVATE: pr.PrivateTopK(frame, k, pair_counts="equal", **facts),
        UNDECLARED: pr.PrivateTopK(frame, k, **facts),
    }
    out = np.full((len(epsilons), len(METHODS), len(MEASURES)), np.nan)

    def overlap(scores: np.ndarray) -> float:
        return float(np.isin(best_first(rng, scores)[:k], best).mean())

    def distance(worths: np.ndarray) -> float:
        return float(np.linalg.norm(worths - theta) / size)

    def largest(worths: np.ndarray) -> float:
        return float(np.abs(worths - theta).max() / np.abs(theta).max())

    for cells, epsilon in zip(out, epsilons, strict=True):
        measured = {}
        ridges = {SMALL_RIDGE: small_ridge(epsilon), THEIR_RIDGE: their_ridge(items, share)}
        for method, ridge in ridges.items():
            worths, spent = estimate(rng, tally, epsilon, ridge)
            errors = distance(worths), distance(worths)
            measured[method] = *errors, overlap(worths), spent, 0.0, largest(worths)
        found = {COUNTING: noisy_wins(rng, tally, epsilon)}
        fits = {PRIVATE: private, RELEASED: released, PUBLIC: public}
        if np.isinf(epsilon):
            fits = {NO_PRIVACY: public}
        for method, model in fits.items():
            fit = model.fit(epsilon=epsilon, allow_unidentified=True, rng=rng)
            worths = fit.params.to_numpy()
            withheld = float(np.isnan(worths).mean())
            chosen = np.nan if withheld else overlap(worths)
            errors = distance(worths), distance(fit.estimate.first)
            measured[method] = *errors, chosen, epsilon, withheld, largest(worths)
            if method in (PUBLIC, NO_PRIVACY):
                top = pr.PrivateTopK.from_release(fit.release, k)
                found[f"{method}, counting"] = top.estimate
        if np.isfinite(epsilon):
            for method, model in selections.items():
                found[f"{method}, counting"] = model.fit(epsilon=epsilon, rng=rng).estimate
        for method, scores in found.items():
            measured[method] = np.nan, np.nan, overlap(scores), epsilon, 0.0, np.nan
        for method, values in measured.items():
            cells[METHODS.index(method)] = values
    return out


def table(items: int, share: float, epsilons: tuple, out: np.ndarray) -> list[dict]:
    """Return the rows of one number of items and p."""
    mean = out.mean(axis=0)
    error = out[..., :3].std(axis=0, ddof=1) / np.sqrt(len(out))
    rows = []
    for place, epsilon in enumerate(epsilons):
        for column, method in enumerate(METHODS):
            if np.isnan(mean[place, column, 3]):
                continue
            cell, noise = mean[place, column], error[place, column]
            rows.append(
                {
                    "items": items,
                    "p": share,
                    "epsilon": epsilon,
                    "method": method,
                    "epsilon spent": shown(cell[3]),
                    "replicates": len(out),
                    "error": shown(cell[0]),
                    "error, std err": shown(noise[0]),
                    "error of the ridge fit": shown(cell[1]),
                    "largest error": shown(cell[5]),
                    "overlap": shown(cell[2]),
                    "overlap, std err": shown(noise[2], 4),
                    "withheld": shown(cell[4]),
                }
            )
    return rows


def judge(found: dict[tuple, np.ndarray]) -> list[dict]:
    """Return the rows of the targets: errors of the ridge fit, and overlaps of the worths."""
    rows = []
    for items, epsilon, replicates, methods in TARGETS:
        for method, asked in methods.items():
            mine = method != SMALL_RIDGE
            for measure, value, kind, unit in (
                (1, asked[0], "at most" if mine else "about", 0.001 if asked[0] < 1 else 0.01),
                (2, asked[1], "at least" if mine else "about", 0.01),
            ):
                sample = found[items, epsilon][:, METHODS.index(method), measure]
                rows.append(
                    {
                        "items": items,
                        "epsilon": epsilon,
                        "method": method,
                        "measure": MEASURES[measure],
                        **target(sample, value, replicates, kind=kind, unit=unit),
                    }
                )
    return rows


def figures(rows: list[dict]) -> None:
    estimates = (SMALL_RIDGE, THEIR_RIDGE, PRIVATE, RELEASED, PUBLIC, NO_PRIVACY)
    counts = (COUNTING, PRIVATE, UNDECLARED, PUBLIC, NO_PRIVACY)

    def panels(some: list[dict]) -> list[dict]:
        # one measure per line of panels: overlap by worths, and overlap by counting
        return [
            {
                **row,
                "overlap by counting": row["overlap"] if "counting" in row["method"] else "",
                "overlap by counting, std err": row["overlap, std err"],
                "overlap": "" if "counting" in row["method"] else row["overlap"],
            }
            for row in some
        ]

    measures = (
        ("error", "relative l2 error", estimates),
        ("overlap", "top quarter found,\nby worths", estimates),
        ("overlap by counting", "top quarter found,\nby counting", counts),
    )
    by_epsilon = {e: f"epsilon = {e:g}" if np.isfinite(e) else "without privacy" for e in MAIN}
    first = [row for row in rows if row["p"] == 1]
    second = [row for row in rows if row["items"] == 300 and row["epsilon"] in MAIN]
    for name, title, some, x in (
        ("ccw_experiment1", "Experiment 1: every pair compared once", first, "items"),
        ("ccw_experiment2", "Experiment 2: 300 items", second, "p"),
    ):
        # the value without privacy is drawn for every epsilon
        plain = [row for row in some if row["method"].startswith(NO_PRIVACY)]
        everywhere = [{**row, "epsilon": e} for row in plain for e in MAIN[:-1]]
        draw(
            name,
            title,
            panels([row for row in some + everywhere if row["epsilon"] in MAIN]),
            x=x,
            column="epsilon",
            titles=by_epsilon,
            measures=measures,
        )
    third = [row for row in rows if row["items"] == 300 and row["p"] in (0.25, 0.5, 1.0)]
    finite = [row for row in third if np.isfinite(row["epsilon"])]
    plain = [row for row in third if row["method"].startswith(NO_PRIVACY)]
    flat = [{**row, "epsilon": e} for row in plain for e in (0.2, 5.0)]
    draw(
        "ccw_experiment3",
        "Experiment 3: 300 items",
        panels(finite + flat),
        x="epsilon",
        column="p",
        titles={p: f"p = {p:g}" for p in (0.25, 0.5, 1.0)},
        measures=measures,
        log_x=True,
    )


def main() -> None:
    replicates = study.arguments(__doc__.splitlines()[0], 100)
    started = time.time()
    rows: list[dict] = []
    found = {}
    for number, (items, share, epsilons) in enumerate(CELLS):
        out = np.array(study.replicate(one, replicates, items, share, epsilons, cell=6000 + number))
        rows += table(items, share, epsilons, out)
        if share == 1:
            found.update({(items, e): out[:, place] for place, e in enumerate(epsilons)})
        print(f"{items} items, p = {share:g}: {time.time() - started:.0f} s", flush=True)
    rows.sort(key=lambda row: (row["items"], -row["p"], row["epsilon"]))
    command = "python validation/ccw_experiments.py"
    title = "Estimation error and top-k overlap in simulations"
    study.write("ccw_experiments", title, command, rows, started, more=True)
    study.write(
        "ccw_experiments_targets",
        "Simulations compared with the targets",
        command,
        judge(found),
        started,
    )
    figures(rows)


if __name__ == "__main__":
    main()
