"""Every public class is fitted and shown at the smallest legal size, at 201 and at 510 items.

510 is beyond every bound on the number of items at which a computation goes another way. By rows
alone there: a respondent changes the noise, not the sizes of what is computed.
"""

import warnings

import numpy as np
import pandas as pd
import pytest

import privrank as pr


def names(items):
    return [f"i{k}" for k in range(items)]


def seeded(seed=1):
    return np.random.default_rng(seed)


def chain(items, outcome=(1.0, -1.0)):
    """As few comparisons as connect the items, and two at least; two rows per respondent."""
    rows = max(items - 1, 2)
    first = np.arange(rows) % (items - 1)
    frame = pd.DataFrame({"item1": first, "item2": first + 1}).map(lambda k: f"i{k}")
    frame["who"] = np.arange(rows) % -(-rows // 2) if items > 2 else np.arange(rows)
    frame["group"] = np.where(frame["who"] % 2, "x", "y")
    return frame.assign(outcome=np.resize(outcome, rows))


def people(unit):
    return {"respondent": "who", "max_rows": 2} if unit == "respondent" else {"respondent": None}


def comparisons(kind, unit, **facts):
    def build(items):
        given = {"items": names(items)} | people(unit) | facts
        return kind(chain(items), *([1] if kind is pr.PrivateTopK else []), **given)

    return build


def by_group(unit, design):
    def build(items):
        frame = chain(items)
        # a public graph connects the items within each group
        both = pd.concat((frame.assign(group="x"), frame.assign(group="y", who=frame["who"] + 1e6)))
        return pr.PrivateBTL.from_formula(
            "item1 + item2 + outcome ~ group", both, items=names(items), design=design,
            levels={"group": ["x", "y"]}, **people(unit),
        )  # fmt: skip

    return build


def by_item(unit, design):
    def build(items):
        table = pd.DataFrame({"x": np.arange(items) ** 0.5}, index=names(items))
        return pr.PrivateBTL.from_formula(
            "item1 + item2 + outcome ~ 1", chain(items), items=names(items), design=design,
            item_formula="x", item_data=table, **people(unit),
        )  # fmt: skip

    return build


def rankings(items, rows=2, seed=0):
    ranks = np.argsort(seeded(seed).random((rows, items)), axis=1) + 1
    return pd.DataFrame(ranks, columns=names(items))


def asked(items, unit):
    """Rankings by row, or twice as many of half as many respondents; and their arguments."""
    if unit == "row":
        return rankings(items), {}
    frame = rankings(items, 4).assign(who=[0, 0, 1, 1])
    return frame, {"items": names(items), "respondent": "who", "max_rows": 2}


def of_rankings(kind, unit, *position, **facts):
    def build(items):
        frame, people = asked(items, unit)
        return kind(frame, *(make(items) for make in position), **people, **facts)

    return build


def choices(items, unit, groups=1):
    each = 1 if unit == "row" else 2
    units = 2 * groups
    frame = pd.DataFrame(
        {
            "choice": np.resize(names(items), units * each),
            "who": np.repeat(np.arange(units), each),
            "group": np.repeat(np.resize(["x", "y"], units), each),
        }
    )
    people = {} if unit == "row" else {"respondent": "who", "max_rows": 2}
    return frame, {"categories": names(items)} | people


def of_choices(kind, unit, *position):
    def build(items):
        frame, facts = choices(items, unit)
        return kind.from_formula("choice ~ 1", frame, *(make(items) for make in position), **facts)

    return build


def of_groups(unit, **secret):
    def build(items):
        frame, facts = choices(items, unit, groups=2)
        facts["levels"] = ["x", "y"]
        return pr.ClosenessTest.from_formula("choice ~ group", frame, **facts, **secret)

    return build


def ranked_groups(unit):
    def build(items):
        one, people = asked(items, unit)
        other = rankings(items, len(one), seed=1)
        if "who" in one:
            other = other.assign(who=one["who"] + 2)
        return pr.ClosenessTest(one, other, **people)

    return build


def counted(kind, *position):
    def build(items):
        listed = names(items)
        table = dict.fromkeys(listed, 1)
        return kind.from_counts(table, *(make(items) for make in position), categories=listed)

    return build


def uneven(items):
    share = np.arange(1.0, items + 1)
    return dict(zip(names(items), share / share.sum(), strict=True))


SECRET = {"labels": "private"}
UNITS = ("row", "respondent")
CASES = {
    **{
        f"{kind.__name__}, {unit}, {label}": comparisons(kind, unit, **facts)
        for kind in (pr.PrivateBTL, pr.PrivateTopK)
        for unit in UNITS
        for label, facts in {"public": {"design": "public"}, "private": {}}.items()
    },
    **{
        f"{name}, {unit}, {design}": build(unit, design)
        for name, build in {"worths by level": by_group, "item covariate": by_item}.items()
        for unit in UNITS
        for design in ("public", "private")
    },
    **{
        f"{kind.__name__}, {unit}": of_rankings(kind, unit)
        for kind in (pr.PrivateRankAggregation, pr.UniformityTest)
        for unit in UNITS
    },
    "partial rankings": of_rankings(pr.PrivateRankAggregation, "row", ties=True, missing="half"),
    **{f"uniformity of choices, {unit}": of_choices(pr.UniformityTest, unit) for unit in UNITS},
    "uniformity of counts": counted(pr.UniformityTest),
    **{
        f"Mallows null, {unit}": of_rankings(
            pr.IdentityTest, unit, lambda items: pr.Mallows(names(items), 0.9)
        )
        for unit in UNITS
    },
    **{f"null of choices, {unit}": of_choices(pr.IdentityTest, unit, uneven) for unit in UNITS},
    "null of counts": counted(pr.IdentityTest, uneven),
    **{f"closeness, {unit}": ranked_groups(unit) for unit in UNITS},
    **{f"closeness of choices, {unit}": of_groups(unit) for unit in UNITS},
    "closeness, secret labels": of_groups("row", **SECRET),
    "closeness, secret labels, respondent": of_groups("respondent", **SECRET),
}
# coefficients by level are as many as items times levels, fitted densely, so fewer items do
FEWER = {2: 2, 201: 51, 510: 101}


QUESTIONS = {
    "BTLResult": (
        *("conf_int", "pairwise", "ranks", "rank_conf_int", "cov_params"),
        *("worths", "wald_test_terms"),
    ),
    "TopKResult": ("conf_int", "ranks", "rank_conf_int"),
    "AggregationResult": ("borda", "rank_conf_int"),
}


def shown(result):
    """Every form a result can take, as text."""
    table = result.summary()
    forms = [table.as_text(), table.as_html(), table.as_latex(), result._repr_html_()]
    frame = result.to_frame()
    assert len(frame)
    for name in QUESTIONS.get(type(result).__name__, ()):
        forms.append(str(getattr(result, name)()))
    assert pr.from_json(result.to_json()).to_json() == result.to_json()
    return forms


ROWS = [case for case in CASES if "respondent" not in case]
SHOWN = [(case, items) for items in (2, 201) for case in CASES]
SHOWN += [pytest.param(case, 510, marks=pytest.mark.slow) for case in ROWS]


@pytest.mark.parametrize(("case", "items"), SHOWN)
def test_every_class_is_fitted_and_shown_at_every_number_of_items(case, items):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pr.PrivrankWarning)
        model = CASES[case](FEWER[items] if "by level" in case else items)
        for epsilon in (1.0, np.inf) if items == 2 else (1.0,):
            result = model.fit(epsilon, rng=seeded())
            assert all(shown(result))
