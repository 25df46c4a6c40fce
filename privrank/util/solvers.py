"""Linear algebra and root finding that always return, for computations before a release.

A library routine may fail: eigenvalues do not converge, or a factorisation meets a zero pivot, for
some data and on some processors only. Some computations run after the budget is spent and before
the release: objective perturbation, the contrasts of a second stage, the capped norm, the order of
a consensus. A failure there would use the budget and return nothing, and in objective perturbation
it would reveal information about the data. These functions therefore fall back on arithmetic that
always ends: Jacobi rotations and bisection. Results that do not exist in double precision are NaN.
Computations from a release do not need this: a failure is raised with the release
(:mod:`privrank.release.release`).
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dgemm, dtrmm, dtrsm
from scipy.linalg.lapack import dpotri
from scipy.optimize import brentq

from privrank.util.arrays import FloatArray, batches

T = TypeVar("T")
Value = TypeVar("Value", float, FloatArray)

ROUNDING = 2.0**-52

_MANY = 200
"""Number of variables from which normal draws use Cholesky's root and matrices count as large."""

_BLOCK = 64
"""Number of variables whose part of a matrix fits a cache."""

_SWEEPS = 60
"""Largest number of rounds of rotations; they converge quadratically, in about ten."""

_HALVINGS = 1200
"""Number of halvings that reduce any interval of doubles to two neighbours."""


def with_fallback(routine: Callable[[], T], otherwise: Callable[[], T]) -> T:
    """Return the result of a library routine, or of `otherwise` if the routine raises."""
    try:
        return routine()
    except Exception:  # the type depends on the library, its version and the data
        return otherwise()


def spectrum(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ascending eigenvalues of a symmetric matrix, and its eigenvectors as columns.

    NaN if the matrix is not finite. By LAPACK, or by Jacobi rotations if LAPACK fails.
    """
    if not np.isfinite(matrix).all():
        return np.full(len(matrix), np.nan), np.full(matrix.shape, np.nan)
    result = with_fallback(lambda: np.linalg.eigh(matrix), lambda: None)
    if result is not None and all(np.isfinite(part).all() for part in result):
        return result
    return _rotated(matrix)


def _rotated(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues and eigenvectors by cyclic Jacobi rotations.

    Each rotation sets one off-diagonal entry to zero and decreases the off-diagonal sum of squares
    by twice the square of that entry, so the method ends for every symmetric matrix.
    """
    m = len(matrix)
    size = float(np.abs(matrix).max(initial=0.0)) or 1.0
    work = 0.5 * (matrix + matrix.T) / size
    vectors = np.eye(m)
    for _ in range(_SWEEPS):
        turned = False
        for p in range(m - 1):
            for q in range(p + 1, m):
                apart = work[q, q] - work[p, p]
                off = work[p, q]
                if abs(off) <= ROUNDING**2 or abs(off) <= 0.1 * ROUNDING * np.sqrt(
                    abs(work[p, p] * work[q, q])
                ):
                    continue
                turned = True
                # the smaller root of t^2 + t apart / off = 1
                t = 2.0 * off / (apart + np.copysign(np.hypot(apart, 2.0 * off), apart))
                c = 1.0 / np.sqrt(1.0 + t * t)
                turn = np.array([[c, c * t], [-c * t, c]])
                work[:, [p, q]] = work[:, [p, q]] @ turn
                work[[p, q], :] = turn.T @ work[[p, q], :]
                work[p, q] = work[q, p] = 0.0
                vectors[:, [p, q]] = vectors[:, [p, q]] @ turn
        if not turned:
            break
    values = size * np.diag(work)
    order = np.argsort(values, kind="stable")
    return np.asarray(values[order]), np.asarray(vectors[:, order])


def _scaled_spectrum(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the spectrum of a covariance in units of standard deviations, and these units."""
    variance = np.diag(matrix)
    size = np.sqrt(np.where(variance > 0.0, variance, 1.0))
    return *spectrum(np.asarray(matrix / np.outer(size, size))), size


def _by_column(matrix: FloatArray) -> tuple[FloatArray, bool]:
    """Return a matrix or its column-major transpose, and whether it is the matrix itself."""
    return (matrix.T, False) if matrix.flags.c_contiguous else (matrix, True)


def _cholesky(matrix: FloatArray) -> FloatArray:
    """Return the upper Cholesky factor; raise if the matrix is singular to double precision."""
    factor = cho_factor(_by_column(matrix)[0], check_finite=False)[0]
    # the last pivot of a singular matrix is a rounding error of either sign
    if not (np.diag(factor) ** 2 > len(matrix) * ROUNDING * np.diag(matrix)).all():
        raise LinAlgError
    return np.asarray(factor)


def solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Return x with matrix x = right, for a positive definite matrix.

    NaN if the matrix is not positive definite to double precision: there is no solution in a
    singular direction. A pseudo-inverse would omit this direction and replace an infinite variance
    by zero.
    """
    if not len(matrix):
        return np.zeros_like(right)
    result = with_fallback(lambda: cho_solve((_cholesky(matrix), False), right), lambda: None)
    if result is not None and np.isfinite(result).all():
        return np.asarray(result)
    values, vectors, size = _scaled_spectrum(matrix)
    if not values[0] > len(values) * ROUNDING * values[-1]:
        return np.full_like(right, np.nan, dtype=np.float64)
    return np.asarray(((right.T / size) @ vectors / values @ vectors.T / size).T)


def solve_each(matrices: FloatArray, right: FloatArray) -> FloatArray:
    """Return x with matrix x = right for each of several positive definite matrices and rows."""
    return with_fallback(
        lambda: np.asarray(np.linalg.solve(matrices, right[..., None])[..., 0]),
        lambda: np.array([solve(*pair) for pair in zip(matrices, right, strict=True)]),
    )


def inverse(matrix: FloatArray) -> FloatArray:
    """Return the inverse of a positive definite matrix; NaN if it is not, to double precision."""
    upper = with_fallback(lambda: dpotri(_cholesky(matrix), overwrite_c=1)[0], lambda: None)
    if upper is None or not np.isfinite(upper).all():
        return solve(matrix, np.eye(len(matrix)))
    below = np.tri(len(matrix), k=-1, dtype=np.bool_)
    for part in batches(len(matrix), 1, _BLOCK):  # each fits a cache
        np.copyto(upper[:, part], upper[part].T, where=below[:, part])
    return np.asarray(upper.T)


def general_inverse(matrix: FloatArray) -> FloatArray:
    """Return the inverse of a matrix that need not be symmetric; NaN if there is none."""
    return with_fallback(
        lambda: np.asarray(np.linalg.inv(matrix), dtype=np.float64),
        lambda: np.full(matrix.shape, np.nan),
    )


def pseudo_inverse(matrix: FloatArray) -> FloatArray:
    """Return a generalised inverse of a covariance, for any units of variables.

    Directions with variance below 1e-11 of the largest, in standard units, are omitted. This is for
    quadratic forms of vectors without components in them.
    """
    values, vectors, size = _scaled_spectrum(matrix)
    regular = np.abs(values) > 1e-11 * np.abs(values).max(initial=0.0)
    inverted = np.where(regular, 1.0 / np.where(regular, values, 1.0), 0.0)
    return np.asarray((vectors * inverted) @ vectors.T / np.outer(size, size))


def square_root(matrix: FloatArray) -> FloatArray:
    """Return a square root R of a covariance, R R' = matrix, for any units of its variables.

    It is the symmetric root in units of standard deviations. Eigenvectors are arbitrary in the
    space of equal eigenvalues, but this root does not depend on the library or the processor, nor
    do p-values that are simulated with it.
    """
    values, vectors, size = _scaled_spectrum(matrix)
    return np.asarray(size[:, None] * ((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T))


def normal_draws(covariance: FloatArray, draws: int, generator: np.random.Generator) -> FloatArray:
    """Return normal variables with this covariance, shape (draws, p).

    The draws use the symmetric root, or for many variables Cholesky's root, which takes a tenth of
    the time and depends as little on the processor. Cholesky's root is accurate to 1e-12 of each
    variance, except for matrices with larger rounding errors.
    """
    if not covariance.any():
        return np.zeros((draws, len(covariance)))
    normal = generator.standard_normal((draws, len(covariance)))
    upper: FloatArray | None = None
    if len(covariance) > _MANY:
        raised = np.array(covariance.T, order="F")
        raised.flat[:: len(raised) + 1] += 1e-12 * np.diag(raised) + np.finfo(float).tiny
        upper = with_fallback(
            lambda: cho_factor(raised, overwrite_a=True, check_finite=False)[0], lambda: None
        )
    if upper is None:
        return np.asarray(normal @ square_root(covariance).T)
    return np.asarray(dtrmm(1.0, upper, normal.T, trans_a=1, overwrite_b=1).T)


def whitener(matrix: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return a map to rows whose squared lengths are quadratic forms of a matrix's inverse.

    The map overwrites its argument. By the Cholesky root, which takes a third of the time of the
    inverse; NaN if the matrix is not positive definite to double precision.
    """
    if (upper := with_fallback(lambda: _cholesky(matrix), lambda: None)) is not None:
        return lambda rows: np.asarray(dtrsm(1.0, upper, rows.T, trans_a=1, overwrite_b=1).T)
    values, vectors, size = _scaled_spectrum(matrix)
    regular = values[0] > len(values) * ROUNDING * values[-1]
    root = np.sqrt(values if regular else np.full_like(values, np.nan))
    return lambda rows: np.asarray(rows / size @ vectors / root)


def dense(matrix: Any) -> FloatArray:
    """Return a matrix that may be sparse as an array."""
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray())


def product(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return rows @ matrix, without unnecessary multiplications.

    All multiplications are omitted if one factor is the identity or a multiple of it. Zero rows and
    columns are omitted; a map of worths has many of them if few items are identified.
    """
    for one, other in ((rows, matrix), (matrix, rows)):
        m = len(one)
        if m > 0 and one.shape == (m, m) and one[0, 0] and (np.diag(one) == one[0, 0]).all():
            # nonzero integers are counted in half the time
            bits = np.asarray(one, np.float64).view(np.int64)
            if np.count_nonzero(bits[0]) == 1 and np.count_nonzero(bits) == m:
                return other if one[0, 0] == 1.0 else np.asarray(float(one[0, 0]) * other)
    if not (rows[:1].all() and rows[:, :1].all()):  # if both, no row or column is zero
        used = rows.any(axis=1)
        met = rows.any(axis=0)
        if not (used.all() and met.all()):
            result = np.zeros((len(rows), matrix.shape[1]))
            result[used] = product(rows[np.ix_(used, met)], matrix[met])
            return result
    if len(matrix) <= _MANY:
        return np.asarray(rows @ matrix)
    # use SciPy's library, like Cholesky roots: NumPy's own threads would wait busily in parallel
    (second, turned) = _by_column(matrix)
    (first, also) = _by_column(rows)
    return np.asarray(dgemm(1.0, second, first, trans_a=turned, trans_b=also).T)


def matvec(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Return matrix @ vector; see :func:`product`."""
    return product(matrix, vector[:, None])[:, 0]


def propagate(rows: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the covariance of linear combinations, one by row."""
    return product(rows, product(rows, covariance).T)


def quadratic(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return the quadratic form of each row, shape (rows,)."""
    return np.asarray(np.einsum("ij,ij->i", product(rows, matrix), rows))


def largest_ratio(above: FloatArray, below: FloatArray) -> float:
    """Return the largest x'above x / x'below x over all x, infinite if x'below x can vanish.

    The matrices are positive semidefinite, and `above` is well conditioned in the units of its
    variables. Computed from the smallest eigenvalue of `below` in coordinates in which `above` is
    the identity.
    """
    most = float(np.abs(above).max())
    # x'above x = |y|^2 for x = whitener y
    values, vectors, size = _scaled_spectrum(above / most)
    floor = len(values) * ROUNDING
    whitener = vectors / np.sqrt(np.maximum(values, floor * values[-1])) / size[:, None]
    white = spectrum(whitener.T @ below @ whitener)[0]
    return most / float(white[0]) if white[0] > floor * white[-1] else np.inf


def bisect(
    holds: Callable[[Value], Any],
    low: Value,
    high: Value,
    halvings: int,
    *,
    apart: float = 0.0,
    relative: float = 0.0,
) -> tuple[Value, Value]:
    """Return a bracket of the point where a condition that holds at `low` ends before `high`.

    The bracket is halved at most `halvings` times, or until it is as narrow as `apart` and
    `relative` times its upper end. For arrays each element has its own bracket, and the condition
    is evaluated for all elements together.
    """
    for _ in range(halvings):
        if np.all(np.abs(high - low) <= apart + relative * np.abs(high)):
            break
        middle = 0.5 * (low + high)
        inside = holds(middle)
        if isinstance(middle, np.ndarray):
            low = np.where(inside, middle, low)
            high = np.where(inside, high, middle)
        else:
            low, high = (middle, high) if inside else (low, middle)
    return low, high


def first_beyond(
    holds: Callable[[float], bool],
    high: float,
    halvings: int,
    *,
    low: float = 0.0,
    relative: float = 0.0,
) -> float:
    """Return the point up to which a condition that holds at `low` stays true.

    `high` is doubled until the condition does not hold; the returned point was evaluated.
    """
    while holds(high):
        low = high
        high = 2.0 * high
    return bisect(holds, low, high, halvings, relative=relative)[1]


def find_root(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    xtol: float = 2e-12,
    rtol: float = 8.9e-16,
) -> float:
    """Return a zero of a continuous function between two points where its signs differ.

    By Brent's method, or by bisection if it fails.
    """

    def halved() -> float:
        rising = function(high) > function(low)
        ends = bisect(
            lambda t: (function(t) > 0) != rising, low, high, _HALVINGS, apart=xtol, relative=rtol
        )
        return 0.5 * sum(ends)

    return with_fallback(lambda: float(brentq(function, low, high, xtol=xtol, rtol=rtol)), halved)
