"""A model matrix is declared: it is worked out from names, levels and bounds, without a frame."""

import numpy as np
import pytest

from privrank.bradley_terry.modelmatrix import Schema, declare, rows_at

LABELS = ("a", "b", "c")
NOTHING = {"levels": None, "bounds": None, "item_formula": None, "item_data": None}


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


def test_first_is_an_order_effect_unless_a_column_has_that_name():
    assert declared("1 + first", Schema(set(), {}, set())).covariates.ordered
    named = Schema({"first"}, {"first": ("x", "y")}, set())
    assert not declared("first", named).covariates.ordered
    for right in ("1 + C(first)", "1 + first:sex"):
        with pytest.raises(ValueError, match="by itself"):
            declared(right, Schema({"sex"}, {"sex": ("f", "m")}, set()))


@pytest.mark.parametrize("right", ["1 + age", "1 + city", "1 + C(age)"])
def test_what_is_not_declared_is_refused(right):
    with pytest.raises(ValueError, match="bounds|no column|declared"):
        declared(right, Schema({"age"}, {}, {"age"}))
