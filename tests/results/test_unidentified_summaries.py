"""Summaries do not state numbers of quantities that the release does not identify."""

import numpy as np
import pytest
from catalogue import CATALOGUE

pytestmark = pytest.mark.filterwarnings("ignore::privrank.util.checks.PrivrankWarning")


def text_of(name):
    case = CATALOGUE[name]
    result = case.fit(case.build(next(iter(case.frames))), rng=np.random.default_rng(2024))
    return " ".join(str(result.summary()).split())


def test_no_design_effect_without_estimates():
    text = text_of("BTL of people, defaults")
    assert "Covariance: clustered by respondent" in text and "design effect" not in text


def test_no_words_on_intervals_and_tests_without_coefficients():
    text = text_of("groups of rows, defaults")
    assert "gender: not identified" in text
    assert "Intervals are" not in text and "P-values" not in text


def test_no_gap_of_unknown_win_rates():
    assert "(gap to rank 3: not identified; p = 1.000;" in text_of("top of people, target win rate")


def test_no_column_of_p_values_for_one_bit():
    text = text_of("groups of choices, method sigmoid, permutations 39")
    assert "p-value decision" not in text and "releases the decision without a p-value" in text
