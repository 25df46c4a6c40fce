"""Consequences of violated assumptions, and of their remedies.

For tests the table gives the rate of rejection of a true null hypothesis at level 0.05, and for
intervals the coverage at 95%.

Classes: 30 classes of 30 pupils. Each class has its own answer or ranking, drawn uniformly. Every
pupil gives it with probability sqrt(0.13), so two pupils of a class agree for this reason in 13% of
cases. All classes have the same distribution; for closeness half of them are in each group. Remedy:
the class as `respondent`.

Missing answers: 300 respondents compare all pairs of four items of equal worth, in a private
design. A vote against the first item is missing with probability 0.3. Coverage of the interval of
its worth.

Camps: 65% of 2,000 respondents have worths 1.5, 0.5, -0.5, -1.5, the others the opposite; each
compares all pairs. Coverage of the `pairwise()` interval of the worst pair. Remedy: the released
pairwise fraction in rankings by the same people.

Missing reports: 1,000 respondents in the local model. Respondents who rank the first of four items
third or fourth send no report with probability 0.5. Coverage of the interval of its Borda score.

Chosen pairs: 1,000 respondents, whose worths of four items vary by a standard normal number, choose
the pair of items with the largest difference of their utilities. Coverage of the interval of the
first worth.

Scatter: 12 items, whose worths have standard deviation 0.5 and do not depend on the covariate;
1,000 respondents with 15 comparisons. The test of its coefficient.

Best and worst items: 300 respondents of plan A of `sets.py`, all with the same worths but in the
camps of `sets.py`, where each task is a unit. A worst item is chosen from the rest after the best
one; an item shown first has its worth increased by 0.5, in sets of list order or, as the remedy, of
random order. Tasks are unanswered with probability 0.3 if their set does not contain the item of
the largest worth, or if this item is the best. Coverage of the interval of the worst difference.

Estimated null: the shares of five categories in 500 answers are the null of a test of 500 answers
from the same distribution.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import sets
import study

import privrank as pr

EPSILON = 2.0
FOUR = ["a", "b", "c", "d"]
PAIRS = list(itertools.combinations(range(4), 2))
ORDERS = np.array(list(itertools.permutations((1, 2, 3, 4))))


def inside(limits: pd.DataFrame | pd.Series, value: float, row: str | None = None) -> bool:
    """Return whether an interval contains a value."""
    low, high = limits.loc[row, ["lower", "upper"]] if row is not None else limits
    return bool(low <= value <= high)


def taste(rng: np.random.Generator, kinds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the answers of 900 pupils and their classes."""
    shared = np.repeat(rng.integers(kinds, size=30), 30)
    alike = rng.random(900) < np.sqrt(0.13)
    return np.where(alike, shared, rng.integers(kinds, size=900)), np.repeat(np.arange(30), 30)


def classes(rng: np.random.Generator, test: str, remedy: bool) -> bool:
    unit = {"respondent": "class", "max_rows": 30} if remedy else {}
    if test == "uniformity":
        answer, number = taste(rng, 3)
        data = pd.DataFrame({"choice": np.array(["x", "y", "z"])[answer], "class": number})
        model = pr.UniformityTest.from_formula(
            "choice ~ 1", data, categories=["x", "y", "z"], **unit
        )
        return model.fit(EPSILON, rng=rng).reject
    answer, number = taste(rng, 24)
    ranks = pd.DataFrame(ORDERS[answer], columns=FOUR).assign(**{"class": number})
    halves = [ranks[number % 2 == k] for k in (0, 1)]
    model = pr.ClosenessTest(*halves, items=FOUR, **unit)
    return model.fit(EPSILON, rng=rng).reject


def votes(rng: np.random.Generator, worths: np.ndarray) -> pd.DataFrame:
    """Draw the comparisons of all pairs, given worths of each respondent, shape (n, 4)."""
    first, second = np.array(PAIRS).T
    apart = worths[:, first] - worths[:, second]
    outcome = np.where(apart + rng.logistic(size=apart.shape) > 0, 1, -1)
    n = len(worths)
    return pd.DataFrame(
        {
            "item1": np.tile(np.array(FOUR)[first], n),
            "item2": np.tile(np.array(FOUR)[second], n),
            "outcome": outcome.ravel(),
            "who": np.repeat(np.arange(n), 6),
        }
    )


def fitted(rng: np.random.Generator, frame: pd.DataFrame, **more: object) -> pr.BTLResult:
    model = pr.PrivateBTL(frame, items=FOUR, respondent="who", max_rows=6, **more)
    return model.fit(EPSILON, rng=rng)


def left_out(rng: np.random.Generator, remedy: bool) -> bool:
    frame = votes(rng, np.zeros((300, 4)))
    against = (frame["item1"] == "a") & (frame["outcome"] == -1)
    fit = fitted(rng, frame[~(against & (rng.random(len(frame)) < 0.3))])
    return inside(fit.conf_int(), 0.0, "a")


WORTHS = np.array([1.5, 0.5, -0.5, -1.5])


def camps(rng: np.random.Generator, remedy: bool) -> np.ndarray:
    side = np.where(rng.random(2000) < 0.65, 1.0, -1.0)
    worths = side[:, None] * WORTHS
    first, second = np.array(PAIRS).T
    apart = WORTHS[first] - WORTHS[second]
    if remedy:  # rankings with the same probabilities of pairs: Gumbel noise gives the logit
        drawn = worths + rng.gumbel(size=worths.shape)
        ranks = pd.DataFrame(1 + np.argsort(np.argsort(-drawn)), columns=FOUR)
        model = pr.PrivateRankAggregation(ranks)
        table = model.fit(EPSILON, releases="pairs", rng=rng).pairwise()
    else:
        table = fitted(rng, votes(rng, worths), design="public").pairwise()
    win = 1.0 / (1.0 + np.exp(-apart))
    true = 0.65 * win + 0.35 * (1.0 - win)
    return ((table["lower"] <= true) & (true <= table["upper"])).to_numpy()


def silent(rng: np.random.Generator, remedy: bool) -> bool:
    ranks = ORDERS[rng.integers(24, size=1000)]
    heard = (ranks[:, 0] <= 2) | (rng.random(1000) < 0.5)
    protocol = pr.local.SubRanking(FOUR, epsilon=EPSILON)
    reports = protocol.simulate(pd.DataFrame(ranks[heard], columns=FOUR), rng)
    fit = pr.PrivateRankAggregation.from_reports(protocol.tally(reports))
    return inside(fit.borda(), 1.5, "a")


def chosen(rng: np.random.Generator, remedy: bool) -> bool:
    worths = np.array([0.6, 0.2, -0.2, -0.6]) + rng.normal(size=(1000, 4))
    protocol = pr.local.Comparisons(FOUR, epsilon=EPSILON)
    first, second = np.array(PAIRS).T
    felt = worths[:, first] - worths[:, second]
    pair = rng.integers(6, size=1000) if remedy else np.abs(felt).argmax(axis=1)
    rows = np.arange(1000)
    prefers = felt[rows, pair] + rng.logistic(size=1000) > 0
    keep = np.exp(EPSILON) / (1.0 + np.exp(EPSILON))
    answer = np.where(rng.random(1000) < keep, prefers, ~prefers)
    reports = pd.DataFrame(
        {
            "protocol_id": protocol.id,
            "assignment": pair,
            "answer": np.where(answer, 0, 1),
            "report_id": rows,
        }
    )
    fit = pr.PrivateBTL.from_reports(protocol.tally(reports))
    return inside(fit.conf_int(), marginal()[0], "a")


def marginal() -> np.ndarray:
    """Return the worths that fit the answers if every pair is asked equally often."""
    if not _KEPT:
        rng = np.random.default_rng(1)
        first, second = np.array(PAIRS).T
        mean = np.array([0.6, 0.2, -0.2, -0.6])[first] - np.array([0.6, 0.2, -0.2, -0.6])[second]
        apart = mean + np.sqrt(2.0) * rng.normal(size=(200_000, 1))
        win, worths = (1.0 / (1.0 + np.exp(-apart))).mean(axis=0), np.zeros(4)
        for _ in range(2000):
            gap = win - 1.0 / (1.0 + np.exp(worths[second] - worths[first]))
            np.add.at(worths, first, 0.3 * gap)
            np.add.at(worths, second, -0.3 * gap)
        _KEPT.append(worths)
    return _KEPT[0]


_KEPT: list[np.ndarray] = []


def scatter(rng: np.random.Generator, remedy: bool) -> bool:
    names = [f"item {k}" for k in range(12)]
    worths, covariate = rng.normal(0.0, 0.5, 12), rng.normal(size=12)
    first, second = np.triu_indices(12, 1)
    pair = np.concatenate([rng.permutation(66)[:15] for _ in range(1000)])
    apart = worths[first[pair]] - worths[second[pair]]
    frame = pd.DataFrame(
        {
            "item1": np.array(names)[first[pair]],
            "item2": np.array(names)[second[pair]],
            "outcome": np.where(apart + rng.logistic(size=len(pair)) > 0, 1, -1),
            "who": np.repeat(np.arange(1000), 15),
        }
    )
    facts = pd.DataFrame({"x": covariate}, index=pd.Index(names, name="item"))
    fit = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ 1",
        frame,
        items=names,
        respondent="who",
        max_rows=15,
        design="public",
        item_formula="x",
        item_data=facts,
    ).fit(EPSILON, rng=rng)
    return bool(fit.pvalues.iloc[0] <= 0.05)


def best_and_worst(rng: np.random.Generator, breach: str) -> np.ndarray:
    """Return which differences of two items the intervals of a MaxDiff fit cover."""
    silent = breach.startswith("silent")
    everyone = "camps" if breach == "rows" else "same"
    cell = sets.Cell("A", "best-worst", everyone, EPSILON, "at random" if silent else "")
    plans = sets.sets_of("A")
    n, tasks = cell.respondents, plans.shape[1]
    shown = plans[np.arange(n) % len(plans)]
    if breach == "shown first, random order":
        shown = rng.permuted(shown, axis=2)
    worths = sets.population(cell, n, rng)
    if breach == "worst of the rest":
        order = sets.answered(worths, shown, "best", rng)[..., :1]
        rest = shown[shown != order].reshape(n, tasks, -1)
        last = sets.answered(-worths, rest, "best", rng)[..., :1]
        answers = np.concatenate((order, last), axis=2)
    elif breach.startswith("shown first"):
        felt = np.take_along_axis(worths[:, None, :], shown, axis=2)
        felt[:, :, 0] += 0.5
        places = np.arange(tasks * shown.shape[2]).reshape(1, tasks, -1)
        # every place of every task is an item of its own
        places = np.broadcast_to(places, shown.shape)
        chosen = sets.answered(felt.reshape(n, -1), places, "best-worst", rng)
        answers = np.take_along_axis(shown.reshape(n, 1, -1), chosen, axis=2)
    else:
        answers = sets.answered(worths, shown, "best-worst", rng)
    top = worths[0].argmax()
    left = answers[..., 0] == top if breach == "silent if best" else (shown != top).all(axis=2)
    unanswered = left & (rng.random((n, tasks)) < 0.3) if silent else None
    frame = sets.frame_of(cell, shown, answers, unanswered)
    options = {"respondent": "id", "max_rows": tasks, "design": "public"}
    if breach == "rows":
        frame = frame.drop(columns="id")
        options |= {"respondent": None, "max_rows": 1}
    fit = pr.PrivateBTL(frame, **options).fit(EPSILON, rng=rng)
    return sets.covered(fit, sets.truth("A", "best-worst", everyone))


def estimated(rng: np.random.Generator, remedy: bool) -> bool:
    shares = np.array([0.35, 0.25, 0.2, 0.12, 0.08])
    names = list("abcde")
    before, now = (rng.multinomial(500, shares) for _ in range(2))
    null = dict(zip(names, (before / before.sum()).tolist(), strict=True))
    counts = dict(zip(names, now.tolist(), strict=True))
    if remedy:
        test = pr.IdentityTest.from_counts(counts, null, null_nobs=500)
        return test.fit(EPSILON, rng=rng).reject
    return pr.IdentityTest.from_counts(counts, null).fit(EPSILON, draws=999, rng=rng).reject


Cell = tuple[str, str, str, Callable[..., bool], tuple[object, ...]]
BROKEN = "as it is"
CELLS: list[Cell] = [
    ("respondents", "uniformity of choices, classes", BROKEN, classes, ("uniformity", False)),
    ("respondents", "uniformity of choices, classes", "respondent=", classes, ("uniformity", True)),
    ("respondents", "closeness of rankings, classes", BROKEN, classes, ("closeness", False)),
    ("respondents", "closeness of rankings, classes", "respondent=", classes, ("closeness", True)),
    ("answering", "worth, votes left out", BROKEN, left_out, (False,)),
    ("model", "worst pair, two camps", BROKEN, camps, (False,)),
    ("model", "worst pair, two camps", "releases='pairs'", camps, (True,)),
    ("reporting", "Borda score, silent reports", BROKEN, silent, (False,)),
    ("assigned", "worth, chosen pairs", BROKEN, chosen, (False,)),
    ("assigned", "worth, chosen pairs", "assigned pairs", chosen, (True,)),
    ("linear", "coefficient, scatter .5", "its errors", scatter, (False,)),
    ("null", "identity, null of 500 answers", BROKEN, estimated, (False,)),
    ("null", "identity, null of 500 answers", "null_nobs=500", estimated, (True,)),
    ("respondents", "best and worst, camps", "respondent=None", best_and_worst, ("rows",)),
    ("respondents", "best and worst, camps", "respondent=", best_and_worst, ("camps",)),
    ("model", "worst of the rest", BROKEN, best_and_worst, ("worst of the rest",)),
    ("model", "best and worst, first item", BROKEN, best_and_worst, ("shown first",)),
    (
        "model",
        "best and worst, first item",
        "random order",
        best_and_worst,
        ("shown first, random order",),
    ),
    ("tasks", "best and worst, silent sets", BROKEN, best_and_worst, ("silent sets",)),
    ("answering", "best and worst, silent if best", BROKEN, best_and_worst, ("silent if best",)),
]


def main() -> None:
    asked = study.asked(__doc__, 100)
    started, rows = time.time(), []
    for number, (key, what, how, one, settings) in enumerate(CELLS):
        if not any(part in key for part in asked.only):
            continue
        start = time.time()
        found = np.array(study.replicate(one, asked.replicates, *settings, cell=4000 + number))
        test = what.startswith(("uniformity", "closeness", "identity", "coefficient"))
        worst = found.reshape(len(found), -1).mean(axis=0).min()
        rows.append(
            {
                "assumption": key,
                "statement": what,
                "fit": how,
                "number": "rejections" if test else "coverage",
                "wanted": ".05" if test else ".95",
                "found": f"{worst:.3f}",
                "SE": f"{np.sqrt(worst * (1 - worst) / len(found)):.3f}",
                "seconds": f"{time.time() - start:.0f}",
            }
        )
        print(rows[-1], flush=True)
    if asked.only == [""]:
        study.write(
            "assumptions",
            "Consequences of violated assumptions",
            "python validation/assumptions.py",
            rows,
            started,
        )


if __name__ == "__main__":
    main()
