"""docs/models.md says of every combination whether it fits, and with which guarantee."""

import re
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import privrank as pr
from privrank.privacy.noise import DiscreteGaussian
from privrank.release.names import NET, WINS

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
ITEMS = ("a", "b", "c", "d")
PAIRS = list(combinations(ITEMS, 2))


def density(t):
    return 2 * expit(2 * t) * expit(-2 * t)


STEEP = pr.Link(
    "steep",
    cdf=lambda t: expit(2 * t),
    pdf=density,
    slope=lambda t: 2 * density(t) * (expit(-2 * t) - expit(2 * t)),
    kappa1=2.0,
    kappa2=1.0,
)
LINKS = {"logit": "logit", "probit": "probit", "a link of your own": STEEP}
UNITS = {
    "row": {"respondent": None},
    "respondent": {"respondent": "respondent", "max_rows": 6},
}
DESIGNS = {
    "public": [{"design": "public"}],
    "private": [{"pair_counts": "equal"}, {"pair_counts": dict.fromkeys(PAIRS, 30)}],
    "private, counts released": [{}, {"pair_counts": "release"}],
}


def table(first):
    """The rows of the page's table whose first heading is `first`, as mappings."""
    lines = PAGE.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    heads, _, *cells = rows
    return [dict(zip(heads, row, strict=True)) for row in cells]


def survey():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        [(person, *pair) for person in range(30) for pair in PAIRS],
        columns=["respondent", "item1", "item2"],
    )
    return frame.assign(outcome=rng.choice([1.0, 0.0, -1.0], len(frame)))


def model(unit, **arguments):
    return pr.PrivateBTL(survey(), items=ITEMS, ties=True, **UNITS[unit], **arguments)


def outcome(fit, distribution):
    """What a fit says it released, in the words of the page; a refusal has one sentence."""
    delta = 1e-6 if distribution == "gaussian" else 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        try:
            result = fit(delta)
        except (ValueError, TypeError) as refused:
            assert re.fullmatch(r"[^\n]+\.", str(refused))
            return "refused", None
    release = result.release
    assert release.delta == delta
    part = release.parts.get(NET) or release.parts.get(WINS)
    gaussian = part is not None and isinstance(part.distribution, DiscreteGaussian)
    spent = sum(each.epsilon for each in release.parts.values())
    assert spent <= release.epsilon
    return f"{release.mechanism}: epsilon" + ", delta" * gaussian, result


def promised(found, cell):
    """Whether a cell of the page names what was found, maybe beside another release."""
    releases, _, guarantee = cell.partition(": ")
    return found in {
        f"{release}: {guarantee}" if guarantee else release for release in releases.split(" or ")
    }


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("row", table("method"), ids=lambda row: f"{row['method']}-{row['noise']}")
def test_every_combination_is_what_the_page_says(row, link, unit):
    estimators = {each["link"]: each for each in table("link")}
    for design, ways in DESIGNS.items():
        for arguments in ways:
            built = model(unit, link=LINKS[link], **arguments)
            found, result = outcome(
                lambda delta, built=built: built.fit(
                    1.0,
                    delta,
                    method=row["method"],
                    noise=row["noise"],
                    rng=np.random.default_rng(0),
                ),
                row["noise"],
            )
            assert promised(found, row[design]), (design, arguments)
            if result is not None:
                assert result.estimator == estimators[link][row["method"]]
                again = pr.from_json(result.to_json(), link=LINKS[link] if link[0] == "a" else None)
                np.testing.assert_array_equal(again.params, result.params)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("link", LINKS)
def test_non_private_runs_are_maximum_likelihood(link, unit):
    result = model(unit, link=LINKS[link], design="public").fit(np.inf)
    row = {each["link"]: each for each in table("link")}[link]
    assert result.estimator == row["epsilon = inf"]


FORMULAS = {
    "levels": ("group", {"levels": {"group": ["x", "y"]}}),
    "numbers": ("age", {"bounds": {"age": (20, 40)}}),
    "contest covariates": ("1", {"contest": "first"}),
    "item covariates": (
        "1",
        {"item_formula": "z", "item_data": pd.DataFrame({"z": [2.0, 1, 0, 0]}, index=list(ITEMS))},
    ),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("row", table("covariates"), ids=lambda row: row["covariates"])
def test_covariates_are_what_the_page_says(row, link, unit):
    formula, options = FORMULAS[row["covariates"]]
    frame = survey()
    frame["group"] = np.where(frame["respondent"] % 2, "x", "y")
    frame["age"] = 20 + frame["respondent"] % 21
    turned = frame["respondent"] % 3 == 0
    frame.loc[turned, ["item1", "item2"]] = frame.loc[turned, ["item2", "item1"]].to_numpy()
    distributions = [each["noise"] for each in table("method") if each["method"] == "counts"]
    for design in ("public", "private"):
        for distribution in distributions if row["covariates"] != "numbers" else ["laplace"]:

            def fit(delta, design=design, distribution=distribution):
                return pr.PrivateBTL.from_formula(
                    f"item1 + item2 + outcome ~ {formula}",
                    frame,
                    items=ITEMS,
                    ties=True,
                    link=LINKS[link],
                    design=design,
                    **UNITS[unit],
                    **options,
                ).fit(8.0, delta, noise=distribution, rng=np.random.default_rng(0))

            found, result = outcome(fit, distribution)
            wanted = row[design]
            if wanted != "refused" and distribution == "gaussian":
                wanted += ", delta"
            assert found == wanted, (design, distribution)
            if result is not None:
                assert result.bse.gt(0).all()


def test_numeric_covariates_take_laplace_noise_only():
    frame = survey().assign(age=lambda f: 20 + f["respondent"] % 21)
    built = pr.PrivateBTL.from_formula(
        "item1 + item2 + outcome ~ age",
        frame,
        items=ITEMS,
        respondent=None,
        ties=True,
        design="public",
        bounds={"age": (20, 40)},
    )
    for distribution in ("gaussian", "permutohedron", "zero-sum-laplace"):
        with pytest.raises(ValueError, match="noise="):
            built.fit(1.0, 1e-6, noise=distribution)


def test_proofs_and_checks_are_where_the_page_says():
    root = Path(__file__).parents[2]
    for name in re.findall(r"`((?:privrank|tests)/[\w/]+\.py)`", PAGE):
        assert (root / name).is_file(), name
