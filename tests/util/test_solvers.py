"""The solvers that cannot fail: what they return when LAPACK does, and what has no answer."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError, eigh

from privrank.util import solvers


def fails(*_, **__):
    raise LinAlgError("did not converge")


@pytest.fixture(params=["library", "our own"])
def either(request, monkeypatch):
    """Run a test with the library's routines, and with none of them."""
    if request.param == "our own":
        for name in ("cho_factor", "brentq"):
            monkeypatch.setattr(solvers, name, fails)
        for name in ("eigh", "eigvalsh", "qr"):
            monkeypatch.setattr(np.linalg, name, fails)


def laplacian(m):
    return m * np.eye(m) - 1.0


def covariances():
    rng = np.random.default_rng(0)
    for m in (1, 2, 5, 20):
        root = rng.normal(size=(m, m))
        yield root @ root.T + 0.1 * np.eye(m)
        units = 10.0 ** rng.integers(-8, 9, m)
        yield units[:, None] * (root @ root.T + 0.1 * np.eye(m)) * units
        yield laplacian(m) + np.eye(m)
    yield np.diag([1.0, 1.0, 2.0, 1e-30])
    yield np.zeros((3, 3))


@pytest.mark.parametrize("matrix", list(covariances()))
def test_a_spectrum_is_a_spectrum(either, matrix):
    values, vectors = solvers.spectrum(matrix)
    size = np.abs(matrix).max()
    assert (np.diff(values) >= 0).all()
    np.testing.assert_allclose((vectors * values) @ vectors.T, matrix, atol=1e-13 * size)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(matrix)), atol=1e-13)
    np.testing.assert_allclose(values, eigh(matrix, eigvals_only=True), atol=1e-13 * size)


def test_an_indefinite_matrix_has_a_spectrum(either):
    matrix = np.random.default_rng(1).normal(size=(9, 9))
    matrix = matrix + matrix.T
    matrix[2], matrix[:, 2] = 0.0, 0.0
    np.testing.assert_allclose(
        solvers.spectrum(matrix)[0], eigh(matrix, eigvals_only=True), atol=1e-13
    )


@pytest.mark.parametrize("matrix", list(covariances())[:-2])
def test_solutions_in_any_units(either, matrix):
    right = np.random.default_rng(2).normal(size=len(matrix))
    size = np.sqrt(np.diag(matrix))
    wanted = np.linalg.solve(matrix / np.outer(size, size), right / size) / size
    np.testing.assert_allclose(solvers.solve(matrix, right), wanted, rtol=1e-8)
    inverse = size[:, None] * solvers.inverse(matrix) * size
    correlation = matrix / np.outer(size, size)
    np.testing.assert_allclose(inverse @ correlation, np.eye(len(matrix)), atol=1e-10)
    pseudo = solvers.pseudo_inverse(matrix)
    np.testing.assert_allclose(size[:, None] * pseudo * size, inverse, atol=1e-8)


@pytest.mark.parametrize("m", [63, 64, 65, 200])
def test_an_inverse_is_whole_and_symmetric(either, m):
    root = np.random.default_rng(m).normal(size=(m, m))
    matrix = root @ root.T + np.eye(m)
    for given in (matrix, np.asfortranarray(matrix)):
        inverse = solvers.inverse(given)
        np.testing.assert_allclose(inverse @ matrix, np.eye(m), atol=1e-9)
        np.testing.assert_allclose(inverse, inverse.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("matrix", list(covariances())[:-2])
def test_whitened_rows_are_as_long_as_their_quadratic_forms(either, matrix):
    rows = np.random.default_rng(3).normal(size=(5, len(matrix))) * np.sqrt(np.diag(matrix))
    lengths = (solvers.whitener(matrix)(rows.copy()) ** 2).sum(axis=1)
    wanted = solvers.quadratic(rows, solvers.inverse(matrix))
    np.testing.assert_allclose(lengths, wanted, rtol=1e-8)


def test_of_a_singular_matrix_no_row_can_be_whitened(either):
    assert np.isnan(solvers.whitener(laplacian(4))(np.ones((2, 4)))).all()


def test_products_with_multiples_of_the_identity_are_none():
    rows = np.random.default_rng(4).normal(size=(3, 3))
    assert solvers.product(np.eye(3), rows) is rows
    assert solvers.product(rows, np.eye(3)) is rows
    np.testing.assert_array_equal(solvers.quadratic(2.0 * np.eye(3), rows), 4.0 * np.diag(rows))
    for scaled in (2.0 * np.eye(3), np.diag([2.0, 2.0, 1.0]), np.eye(3) + 1.0):
        np.testing.assert_allclose(solvers.product(rows, scaled), rows @ scaled, rtol=1e-12)
        np.testing.assert_allclose(solvers.product(scaled, rows), scaled @ rows, rtol=1e-12)
    # as many entries as the identity, and a constant diagonal, which is zero
    turned = np.roll(np.eye(3), 1, axis=0)
    np.testing.assert_array_equal(solvers.product(turned, rows), turned @ rows)
    np.testing.assert_array_equal(solvers.product(rows, turned), rows @ turned)


@pytest.mark.parametrize("columns", [1, 30, 250])
def test_large_products_in_any_order_of_memory(columns):
    rng = np.random.default_rng(7)
    rows, matrix = rng.normal(size=(20, 250)), rng.normal(size=(250, columns))
    for first in (rows, np.asfortranarray(rows), np.repeat(rows, 2, axis=1)[:, ::2]):
        for second in (matrix, np.asfortranarray(matrix)):
            np.testing.assert_allclose(solvers.product(first, second), rows @ matrix, rtol=1e-9)


def test_zeros_are_not_multiplied():
    rng = np.random.default_rng(1)
    rows, matrix = rng.normal(size=(5, 4)), rng.normal(size=(4, 3))
    rows[[1, 3]] = rows[:, 2] = 0.0
    matrix[2] = np.nan  # what a row of zeros would make of it
    result = solvers.product(rows, matrix)
    np.testing.assert_allclose(result, rows @ np.nan_to_num(matrix), rtol=1e-12)
    np.testing.assert_array_equal(solvers.product(np.zeros((2, 4)), matrix), np.zeros((2, 3)))
    whole = rng.normal(size=(2, 4))
    np.testing.assert_array_equal(solvers.product(whole, matrix), whole @ matrix)


@pytest.mark.parametrize("matrix", [laplacian(4), np.diag([1.0, 0.0]), np.diag([1.0, np.nan])])
def test_a_singular_matrix_has_no_inverse(either, matrix):
    # a pseudo-inverse in its place would take an infinite variance for zero
    assert np.isnan(solvers.inverse(matrix)).all()
    assert np.isnan(solvers.solve(matrix, np.ones(len(matrix)))).all()


def test_a_singular_covariance_has_a_quadratic_form(either):
    value = np.array([3.0, -1.0, -1.0, -1.0])
    inverse = solvers.pseudo_inverse(laplacian(4))
    assert np.linalg.matrix_rank(inverse) == 3
    assert value @ inverse @ value == pytest.approx(value @ value / 4)


@pytest.mark.parametrize("matrix", [*covariances(), laplacian(6)])
def test_a_square_root_does_not_depend_on_the_eigenvectors(monkeypatch, matrix):
    root = solvers.square_root(matrix)
    size = np.sqrt(np.where(np.diag(matrix) > 0, np.diag(matrix), 1.0))
    scale = np.outer(size, size)
    np.testing.assert_allclose(root @ root.T / scale, matrix / scale, atol=1e-12)
    # in a space of equal eigenvalues LAPACK may return any basis, by processor
    monkeypatch.setattr(np.linalg, "eigh", fails)
    other = solvers.square_root(matrix)
    np.testing.assert_allclose(other / size[:, None], root / size[:, None], atol=1e-7)


def test_the_largest_ratio(either):
    rng = np.random.default_rng(3)
    above, below = (root @ root.T for root in rng.normal(size=(2, 5, 8)))
    for unit in (1.0, 1e-290, 1e100):
        wanted = unit * eigh(above, below, eigvals_only=True)[-1]
        assert solvers.largest_ratio(unit * above, below) == pytest.approx(wanted)
    assert solvers.largest_ratio(above, np.zeros((5, 5))) == np.inf
    assert solvers.largest_ratio(np.eye(4), laplacian(4)) == np.inf


def test_equal_eigenvalues_have_a_largest_ratio(either):
    # LAPACK's search for one of them fails here on some processors
    matrix = np.kron(np.array([[2.0, 1.0], [1.0, 2.0]]), np.eye(3))
    assert solvers.largest_ratio(np.kron(np.diag([1.0, 4.0]), np.eye(3)), matrix) == pytest.approx(
        max(eigh(np.diag([1.0, 4.0]), [[2.0, 1.0], [1.0, 2.0]], eigvals_only=True))
    )


def test_zeros_between_two_signs(either):
    assert solvers.find_root(np.cos, 0.0, 3.0) == pytest.approx(np.pi / 2, abs=1e-11)
    assert solvers.find_root(lambda x: 2.0 - x, -5.0, 5.0) == pytest.approx(2.0)
    tiny = solvers.find_root(lambda x: x - 1e-200, 0.0, 1.0, xtol=1e-300, rtol=1e-14)
    assert tiny == pytest.approx(1e-200, rel=1e-13)


@pytest.mark.parametrize("least", [0.0, -1e-9], ids=["singular", "rounded below zero"])
def test_normal_draws_of_many_variables_have_their_covariance(least):
    m, draws = 201, 4000  # one more than the symmetric root is taken for
    rng = np.random.default_rng(4)
    basis = np.linalg.qr(rng.normal(size=(m, m)))[0]
    values = np.r_[np.full(5, least), np.linspace(1.0, 2.0, m - 5)]
    covariance = (basis * values) @ basis.T
    covariance = 0.5 * (covariance + covariance.T)
    drawn = solvers.normal_draws(covariance, draws, rng)
    assert np.isfinite(drawn).all()
    # combinations of variance 0, and the mean of all the others' squares
    assert np.abs(drawn @ basis[:, :5]).max() < 1e-3
    squares = (drawn @ basis[:, 5:]) ** 2
    assert squares.mean() == pytest.approx(values[5:].mean(), rel=0.02)
