"""Twelve fits release what they released before the modules moved, draw by draw."""

import json
from pathlib import Path

import numpy as np
import pytest

import privrank as pr

RECORD = Path(__file__).parents[1] / "reference" / "seeded_releases.json"
cems, trust = pr.datasets.load_university(), pr.datasets.load_immigration()
RESPONDENTS = {"items": cems.items, "respondent": "respondent", "ties": True, "max_rows": 15}


def btl(epsilon, delta=0.0, design="public", **fit):
    model = pr.PrivateBTL(cems.comparisons, design=design, **RESPONDENTS)
    return lambda rng: model.fit(epsilon, delta, rng=rng, **fit)


def covariates(rng):
    model = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ gender",
        cems.comparisons.merge(cems.students, left_on="respondent", right_index=True),
        design="public",
        **RESPONDENTS,
    )
    return model.fit(2.0, rng=rng)


def mallows(m, n, phi):
    return pr.Mallows(m, phi).rvs(n, np.random.default_rng(1))


def choices(p):
    counts = np.random.default_rng(2).multinomial(300, p)
    return dict(zip("abcd", counts.tolist(), strict=True))


FITS = {
    "net wins": btl(1.0),
    "net wins, Gaussian": btl(1.0, 1e-6, noise="gaussian"),
    "private design": btl(2.0, design="private"),
    "objective": btl(2.0, design="private", method="objective"),
    "covariates": covariates,
    "top-k": lambda rng: pr.PrivateTopK(cems.comparisons, 2, design="public", **RESPONDENTS).fit(
        0.5, rng=rng
    ),
    "pairs": lambda rng: pr.PrivateRankAggregation(mallows(6, 3000, 0.9)).fit(
        1.0, releases="pairs", rng=rng
    ),
    "Borda totals": lambda rng: pr.PrivateRankAggregation(mallows(12, 300, 0.9)).fit(0.5, rng=rng),
    "KwikSort": lambda rng: pr.PrivateRankAggregation(mallows(8, 300, 0.9)).fit(
        1.0, method="kwiksort", rng=rng
    ),
    "uniformity": lambda rng: pr.UniformityTest(mallows(6, 200, 0.95)).fit(0.5, draws=199, rng=rng),
    "identity": lambda rng: pr.IdentityTest.from_counts(
        choices([0.25] * 4), [0.4, 0.3, 0.2, 0.1]
    ).fit(1.0, rng=rng, draws=199),
    "closeness": lambda rng: pr.ClosenessTest(mallows(4, 90, 0.8), mallows(4, 80, 0.5)).fit(
        1.0, permutations=99, rng=rng
    ),
}


def released(name):
    release = FITS[name](np.random.default_rng(7)).release
    values = {part: found.tolist() for part, found in release.values.items()}
    return {"values": values, "tie_break": list(release.tie_break)}


@pytest.mark.parametrize("name", FITS)
def test_seeded_releases_are_those_on_record(name):
    assert released(name) == json.loads(RECORD.read_text())[name]


if __name__ == "__main__":
    RECORD.write_text(json.dumps({name: released(name) for name in FITS}, indent=0) + "\n")
