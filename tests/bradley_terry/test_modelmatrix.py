"""A model matrix is declared: it is worked out from names, levels and bounds, without a frame."""

import numpy as np
import pytest

from privrank.bradley_terry.modelmatrix import Schema, declare, rows_at

LABELS = ("a", "b", "c")
NOTHING = dict.fromkeys(("levels", "bounds", "item_formula", "item_data", "contest"))


def declared(right, schema, **given):
    return declare(right, schema, LABELS, **{**NOTHING, **given})


def test_columns_come_from_declarations_alone():
    schema = Schema({"sex", "age"}, {"sex": ("f", "m")}, {"age"})
    predictor = declared("sex * age", schema, bounds={"age": (20, 60)})
    assert predictor.columns == ("sex", "age")
    facts = predictor.covariates
    assert facts.columns == ("Intercept", "sex[T.m]", "age", "sex[T.m]:age")
    # rows at a level and a number are what treatment coding makes of them
    rows = rows_at(facts, {"sex": ["m", "f"], "age": [60.0, 20.0]}, 2)
    np.testing.assert_allclose(rows, [[1, 1, 60, 60], [1, 0, 20, 0]])


def test_levels_of_the_call_go_before_those_of_a_type():
    schema = Schema({"sex"}, {"sex": ("f", "m")}, set())
    predictor = declared("sex", schema, levels={"sex": ("m", "f", "none")})
    assert predictor.levels == {"sex": ("m", "f", "none")}


def test_contests_are_columns_and_the_order_of_naming():
    schema = Schema({"length", "sex"}, {"sex": ("f", "m")}, {"length"})
    predictor = declared("1", schema, contest="length + first")
    assert predictor.covariates.contest == ("length", "first")
    assert predictor.columns == predictor.of_contests == ("length",) and not predictor.of_units
    for right in ("1 + first", "1 + C(first)", "1 + first:sex"):
        with pytest.raises(ValueError, match="contest='first'"):
            declared(right, schema)
    for contest in ("", "depth", "length + length", "length * first", 3):
        with pytest.raises(ValueError, match="joined by plus signs"):
            declared("1", schema, contest=contest)
    with pytest.raises(ValueError, match="items must not have names"):
        declare("1", schema, ["length", "b"], **NOTHING | {"contest": "length"})


@pytest.mark.parametrize("right", ["1 + age", "1 + city", "1 + C(age)"])
def test_what_is_not_declared_is_refused(right):
    with pytest.raises(ValueError, match="bounds|no column|declared"):
        declared(right, Schema({"age"}, {}, {"age"}))
