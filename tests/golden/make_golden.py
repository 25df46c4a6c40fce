"""Saved results of every kind, and a ledger, as this version writes them.

`python tests/golden/make_golden.py` writes `<version>/` beside this file anew. What a version that
was published has written stays as it is: `tests/release/test_golden.py` reads it for good.
"""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import privrank as pr

HERE = Path(__file__).parent
ITEMS = ["tea", "coffee", "water"]
ROWS = pd.DataFrame(
    {
        "item1": ["tea", "tea", "coffee"] * 20,
        "item2": ["coffee", "water", "water"] * 20,
        "outcome": [1, 1, -1, 1, -1, 1] * 10,
        "who": np.repeat(range(20), 3),
        "age": np.repeat(["old", "young"], 30),
    }
)
RANKS = pd.DataFrame([[1, 2, 3], [3, 2, 1], [1, 3, 2], [2, 1, 3]] * 10, columns=ITEMS)
CHOICES = pd.Series(["tea", "tea", "coffee", "water"] * 10)
PERSON = {"items": ITEMS, "respondent": "who", "max_rows": 3}
FORMULA = "item1 + item2 + outcome ~ age"


def rng(seed=1):
    return np.random.default_rng(seed)


def tally():
    protocol = pr.local.SubRanking(ITEMS, 1.0, 2)
    ranks = np.tile(RANKS.to_numpy(), (10, 1))
    return protocol.tally(pd.DataFrame(protocol.simulate(ranks, rng())))


def worths(frame=ROWS, epsilon=1.0, delta=0.0, *, seed=1, model=None, **options):
    """A fit of worths; `model` has arguments of the model beside those of respondents."""
    fit = pr.PrivateBTL(frame, **PERSON, **(model or {})).fit
    return fit(epsilon, delta, allow_unidentified=True, rng=rng(seed), **options)


def results():
    """A result of each kind, by the name of its file."""
    public, counted = {"design": "public"}, tally()
    grouped = pr.PrivateBTL.from_formula(FORMULA, ROWS, **PERSON, levels={"age": ["old", "young"]})
    consensus, shares = pr.PrivateRankAggregation(RANKS), dict.fromkeys(ITEMS, 1 / 3)
    chosen = pr.UniformityTest(CHOICES, items=ITEMS)
    compared = pr.ClosenessTest(RANKS[:20], RANKS[20:])
    return {
        "worths": worths(),
        "worths_public_gaussian": worths(delta=1e-6, model=public, noise="gaussian"),
        "worths_permutohedron": worths(model=public, noise="permutohedron"),
        "worths_objective": worths(epsilon=4.0, method="objective"),
        "worths_probit": worths(model={"link": "probit", **public}),
        "worths_groups": grouped.fit(2.0, allow_unidentified=True, rng=rng()),
        "worths_non_private": worths(epsilon=np.inf),
        "worths_reports": pr.PrivateBTL.from_reports(counted),
        "top": pr.PrivateTopK(ROWS, 1, **PERSON).fit(1.0, rng=rng()),
        "pooled": pr.pool([worths(epsilon=8.0), worths(epsilon=8.0, seed=2)], survey="different"),
        "consensus_totals": consensus.fit(1.0, rng=rng()),
        "consensus_pairs": consensus.fit(1.0, 1e-6, method="kemeny", score_share=0.2, rng=rng()),
        "consensus_exponential": consensus.fit(1.0, method="exponential", rng=rng()),
        "consensus_reports": pr.PrivateRankAggregation.from_reports(counted),
        "uniformity": pr.UniformityTest(RANKS).fit(1.0, draws=99, rng=rng()),
        "uniformity_choices": chosen.fit(1.0, method="tv", draws=99, rng=rng()),
        "uniformity_reports": pr.UniformityTest.from_reports(counted, draws=99),
        "identity": pr.IdentityTest(CHOICES, shares).fit(1.0, method="tv", draws=99, rng=rng()),
        "closeness": compared.fit(1.0, permutations=39, effect_epsilon=1.0, rng=rng()),
        "closeness_totals": compared.fit(1.0, permutations=39, details_epsilon=2.0, rng=rng()),
    }


def rows(result):
    """The cells of a summary, a line for each row; words are in `make_wording.py`."""
    return "\n".join("\t".join(row) for row in result.summary().rows) + "\n"


def write_ledger(path):
    budget = pr.Budget(path, epsilon=4.0, delta=1e-5, unit="respondent", label="drinks")
    model = pr.PrivateBTL(ROWS, **PERSON, design="public")
    model.fit(1.0, budget=budget, rng=rng())
    model.fit(0.5, 1e-6, noise="gaussian", budget=budget, rng=rng())


def main():
    folder = HERE / pr.__version__
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, result in results().items():
            (folder / f"{name}.json").write_text(result.to_json() + "\n", encoding="utf-8")
            (folder / f"{name}.txt").write_text(rows(result), encoding="utf-8")
        (folder / "tally.json").write_text(tally().to_json() + "\n", encoding="utf-8")
        (folder / "protocol.json").write_text(tally().protocol.to_json() + "\n", encoding="utf-8")
        write_ledger(folder / "drinks.ledger")


if __name__ == "__main__":
    main()
