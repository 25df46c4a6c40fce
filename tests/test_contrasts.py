"""Quasi variances and adjusted p-values."""

import json
from pathlib import Path

import numpy as np
import pytest

from privrank.contrasts import adjusted_pvalues, quasi_variances

REFERENCE = json.loads(
    (Path(__file__).parent / "reference" / "covariates.json").read_text(encoding="utf-8")
)["all_pairs"]


@pytest.mark.parametrize("survey", ["university", "immigration"])
@pytest.mark.parametrize("kind", ["naive", "cluster"])
def test_quasi_variances_are_those_of_r(survey, kind):
    wanted = REFERENCE[survey][kind]
    covariance = np.array(wanted["covariance"])
    q, error = quasi_variances(covariance)
    np.testing.assert_allclose(q, wanted["quasi_variance"], rtol=1e-6)
    upper = np.triu_indices(len(q), 1)
    np.testing.assert_allclose(np.abs(error[upper]), np.abs(wanted["relative_error"]), atol=1e-6)


def test_quasi_variances_of_independent_estimates_are_their_variances():
    variance = np.array([1.0, 2.0, 0.5, 4.0])
    q, error = quasi_variances(np.diag(variance))
    np.testing.assert_allclose(q, variance, rtol=1e-10)
    assert np.abs(error).max() < 1e-10


def test_adjusted_pvalues_count_the_draws_beyond():
    maxima = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(
        adjusted_pvalues(np.array([0.0, 2.0, -3.5, 9.0]), maxima), [1.0, 0.8, 0.4, 0.2]
    )
