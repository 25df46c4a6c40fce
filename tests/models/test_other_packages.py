"""Without privacy worths are those of other packages, on both surveys, and the page says them."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import privrank as pr

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
SURVEYS = {
    "university": pr.datasets.load_university(),
    "immigration": pr.datasets.load_immigration(),
}


def reference(name):
    return json.loads((ROOT / "tests" / "reference" / f"{name}.json").read_text(encoding="utf-8"))


@cache
def fit(survey, ties):
    loaded = SURVEYS[survey]
    model = pr.PrivateBTL(
        loaded.comparisons, items=loaded.items, respondent=None, ties=ties, design="public"
    )
    return model.fit(np.inf, penalty=0)


def others(survey, ties):
    """The worths that other packages state, by package."""
    if ties == "davidson":
        return {"psychotools": reference("davidson")[survey]["params"]}
    return {"BradleyTerry2": reference("btl")[survey]["params"]["0"]} | reference("packages")[
        survey
    ]


@pytest.mark.parametrize("survey", SURVEYS)
@pytest.mark.parametrize("ties", [True, "davidson"])
def test_worths_are_those_of_other_packages(survey, ties):
    stated = others(survey, ties)
    assert len(stated) == (1 if ties == "davidson" else 5)
    for name, worths in stated.items():
        ours = fit(survey, ties).params
        assert set(worths) == set(ours.index)
        assert max(abs(ours[item] - worth) for item, worth in worths.items()) < 1e-6, name


def test_the_page_says_these_worths():
    text = PAGE.partition("## The same numbers")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (University|Immigration), (.+?) \| .+? \| (.+) \|$", text, flags=re.M)
    assert len(rows) == 4
    for survey, model, numbers in rows:
        ties = "davidson" if "Davidson" in model else True
        result = fit(survey.lower(), ties)
        stated = dict(re.findall(r"(\w+) (-?\d*\.\d{4})", numbers))
        if ties == "davidson":
            assert abs(result.tie_parameter["estimate"] - float(stated.pop("ties"))) < 1e-4
        assert set(stated) == set(result.items)
        for item, worth in stated.items():
            assert abs(result.params[item] - float(worth)) < 1e-4


def test_versions_and_the_script_are_named():
    meta = reference("packages")["meta"]
    assert (ROOT / meta["made_by"]).exists()
    table = (ROOT / "tests" / "reference" / "README.md").read_text(encoding="utf-8")
    for name in ("choix", "statsmodels", "evalica", "arena-rank"):
        assert f"{name} {meta[name]}" in table
