"""Bradley-Terry worths by Python packages, from the files in data/ alone: a tie is half a win.

Usage, from the top of the repository, with choix, statsmodels, evalica and arena-rank installed:

    python tests/reference/packages_reference.py > tests/reference/packages.json
"""

import json
from importlib.metadata import version

import choix
import evalica
import numpy as np
import pandas as pd
import statsmodels.api as sm
from arena_rank.models.bradley_terry import BradleyTerry
from arena_rank.utils.data_utils import PairDataset

SURVEYS = {
    "university": ["London", "Paris", "Milano", "StGallen", "Barcelona", "Stockholm"],
    "immigration": ["crimRate", "position", "socBurd", "culture"],
}


def by_choix(rows, items):
    """Every answer counts twice, so that a tie is one win for each."""
    codes = {name: code for code, name in enumerate(items)}
    pairs = [(codes[row.item1], codes[row.item2]) for row in rows.itertuples()]
    won = [pair for pair, y in zip(pairs, rows["outcome"], strict=True) for _ in range(int(y) + 1)]
    lost = [
        pair[::-1]
        for pair, y in zip(pairs, rows["outcome"], strict=True)
        for _ in range(1 - int(y))
    ]
    return choix.opt_pairwise(len(items), won + lost, tol=1e-12)


def by_statsmodels(rows, items):
    """A binomial model without intercept, the first item left out."""
    design = np.zeros((len(rows), len(items)))
    place = pd.Index(items)
    every = np.arange(len(rows))
    design[every, place.get_indexer(rows["item1"])] = 1
    design[every, place.get_indexer(rows["item2"])] = -1
    won = (rows["outcome"].to_numpy() + 1) / 2
    model = sm.GLM(won, design[:, 1:], family=sm.families.Binomial())
    return np.append(0.0, model.fit(tol=1e-14, maxiter=100).params)


def by_evalica(rows, items):
    """Scores are worths on the multiplicative scale."""
    winner = {1: evalica.Winner.X, -1: evalica.Winner.Y, 0: evalica.Winner.Draw}
    answers = [winner[int(y)] for y in rows["outcome"]]
    fit = evalica.bradley_terry(
        list(rows["item1"]), list(rows["item2"]), answers, tolerance=1e-14, limit=10_000
    )
    return np.log(fit.scores[items].to_numpy())


def by_arena_rank(rows, items):
    """Ratings are on the Elo scale."""
    winner = rows["outcome"].map({1: "model_a", -1: "model_b", 0: "tie"})
    frame = pd.DataFrame({"model_a": rows["item1"], "model_b": rows["item2"], "winner": winner})
    data = PairDataset.from_pandas(frame.reset_index(drop=True))
    model = BradleyTerry(n_competitors=len(items), ftol=1e-15, gtol=1e-12)
    result = model.compute_ratings_and_cis(data)
    ratings = pd.Series(np.asarray(result["ratings"]), index=result["competitors"])
    return ratings[items].to_numpy() * np.log(10) / 400


FITS = {
    "choix": by_choix,
    "statsmodels": by_statsmodels,
    "evalica": by_evalica,
    "arena-rank": by_arena_rank,
}

found = {
    "meta": {
        "made_by": "tests/reference/packages_reference.py",
        "worths": "centred, maximum likelihood, a tie as half a win to each item",
        **{name: version(name) for name in FITS},
    }
}
for survey, items in SURVEYS.items():
    rows = pd.read_csv(f"data/{survey}.csv").dropna(subset="outcome")
    fits = {name: np.asarray(fit(rows, items)) for name, fit in FITS.items()}
    found[survey] = {
        name: dict(zip(items, (worths - worths.mean()).tolist(), strict=True))
        for name, worths in fits.items()
    }
print(json.dumps(found, indent=2))
