"""A norm of the summed rankings whose sensitivity does not grow with the number of items.

The ranks r of a respondent become the record x = (2 r - (m + 1)) sqrt(3 / (m (m + 1))), of squared
length m - 1. The norm of the sum of all records is the natural statistic against uniform rankings
(Friedman's), but replacing one record moves it by up to 2 sqrt(m - 1). The capped norm behaves like
it on ordinary data, and no replacement moves it by more than A + B: about five, unless there are
many more items than rankings.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import qr, svd
from scipy.optimize import minimize

from privrank.util.arrays import FloatArray, IntArray
from privrank.util.solvers import find_root, solve, spectrum, with_fallback

GAP = 1e-3
"""A value lies below the maximum by at most this fraction of A + B, and never above it."""

_DIRECTION = 1e-5
"""Change of the unit vector at which the fixed point stops; its value errs by about the square."""

_STEPS = 100
_DEPTH = 5
"""Steps of the fixed point at most, and how many of them each extrapolation looks back on."""

_NOMINAL_EPSILON = 0.5
_WORTHWHILE = 1.05
"""The budget a design is made for, and by which factor it has to improve the variance there."""


def _records(ranks: IntArray) -> FloatArray:
    m = ranks.shape[1]
    x: FloatArray = np.subtract(ranks, (m + 1) / 2)
    x *= math.sqrt(12 / (m * (m + 1)))
    return x


@dataclass(frozen=True, slots=True)
class CappedNorm:
    """A Lipschitz extension of the norm of the sum of n rank vectors of m items.

    With records x_l of squared length m - 1 and B, A as below, the capped norm is

        f = max over K of F,   F(u, U) = sum_l psi(u'x_l + x_l' U x_l / (4 B)),
        K = {(u, U): U - u u' positive semidefinite, trace U <= 1}.

    psi(z) is z up to z0 and the constant A = (z0 + z1) / 2 from z1 on; between them it is the
    quadratic z - (z - z0)^2 / (2 (z1 - z0)). It is concave, increasing and at most z.

    Parameters
    ----------
    bias, lower, upper : float
        B > 0 and 0 <= z0 < z1, functions of n and m alone.

    Notes
    -----
    **Privacy.** On K, x'Ux is at least t^2 for t = u'x, so the argument of psi is at least
    t + t^2 / (4 B) >= -B, where psi(z) = z; and psi <= A. Every term of F thus lies in [-B, A], for
    every record and every point of K. Replacing one record moves F by at most A + B at each point,
    and so the maximum. `value` lies in [f - g, f] with g = GAP (A + B), for every data set: it
    moves by at most A + B + g. In steps of (A + B) / 1024 that is 1025.024, so the floor of the
    value moves by at most 1026 steps. The remaining 0.97 covers rounding errors, which are at most
    of order n m^(3/2) 2^-53.

    **Why a matrix.** psi(u'x_l) has no lower bound. The penalty t^2 / (4 B) gives it one, but
    psi(t + t^2 / (4 B)) is not concave in u. A local maximum on the sphere has no sensitivity, and
    the global one no certificate. In (u, U) the argument of psi is linear, so F is concave, K is
    convex, and f can be computed for any data. On ordinary rankings the maximum is at U = u u', u a
    unit vector about in the direction of the sum.

    **Certificate.** Let g = sum_l w_l x_l and M = sum_l w_l x_l x_l' / (4 B), w = psi', be the
    gradient of F at a point of K. F is concave, so f - F <= max_K (g'u + <M, U>) - g'u - <M, U>. On
    K, <M, U> <= u'Mu + mu (1 - |u|^2) for every mu at or above the largest eigenvalue of M, whence
    the maximum is at most mu + max_u (g'u - u'(mu I - M)u) = mu + g'(mu I - M)^-1 g / 4. One
    Cholesky factor of mu I - M proves that mu is large enough and gives the bound. A unit vector
    stationary on the sphere, U = u u', has 2 (mu I - M) u = g with mu = g'u / 2 + u'Mu: if that mu
    is large enough, the bound is attained and the point is the maximum.

    **Running time.** Data far from any model may need the general maximisation, which runs until
    its gap is small enough: it has no limit, and never turns to another statistic. So the time
    taken may tell of the data; it is not protected.

    References
    ----------
    Busa-Fekete, Fotakis and Zampetakis (2021), Private and Non-private Uniformity Testing for
    Ranking Data, for the problem. The construction is our own; Canonne, Kamath, McMillan, Ullman
    and Zakynthinou (2020) and Narayanan (2022) extend test statistics with the same aim.
    """

    bias: float
    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not (self.bias > 0 and 0 <= self.lower < self.upper):
            raise ValueError("a capped norm needs bias > 0 and 0 <= lower < upper.")

    @property
    def cap(self) -> float:
        """A, the most that one record adds."""
        return (self.lower + self.upper) / 2

    @property
    def sensitivity(self) -> float:
        """A + B, the most by which replacing one record moves the maximum."""
        return self.cap + self.bias

    def value(self, ranks: IntArray) -> float:
        """Return the capped norm, at most GAP (A + B) below the maximum and never above it.

        Given an (n, m) matrix whose rows are permutations of 1..m, returns F at a point of K.
        """
        return self._certified(ranks)[0]

    def fast(self, ranks: IntArray) -> float:
        """Return the value at the fixed point, without a certificate: for simulated rankings only.

        Wherever the certificate holds there, it is the number that `value` returns, bit for bit;
        elsewhere it may lie far below the maximum, and has no sensitivity.
        """
        x = _records(ranks)
        return self._evaluate(x, self._fixed_point(x))[0]

    def _psi(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return psi(z) and psi'(z)."""
        width = self.upper - self.lower
        over = np.clip(z - self.lower, 0.0, width)
        return np.minimum(z, self.upper) - over * over / (2 * width), 1.0 - over / width

    def _project(self, x: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the projections of the records on the columns of a point, and psi's arguments.

        A point W = (u, V) with Frobenius norm at most 1 stands for (u, U) with U = u u' + V V'.
        """
        along = x @ w
        return along, along[:, 0] + (along * along).sum(axis=1) / (4 * self.bias)

    def _evaluate(self, x: FloatArray, w: FloatArray) -> tuple[float, FloatArray]:
        """Return F at a point, and the weights psi' of the records there."""
        height, weights = self._psi(self._project(x, w)[1])
        return float(height.sum()), weights

    def _fixed_point(self, x: FloatArray) -> FloatArray:
        """Return a stationary unit vector, as a column: u <- grad / |grad| with U = u u'.

        Starts from the sum of the records or, if the sum is zero, from the record that is largest
        in lexicographic order. Therefore the result does not depend on the order of the rows.
        Single precision finds u; F is not computed in it.
        """
        from privrank.kernels import search

        total = x.sum(axis=0)
        u = total if np.abs(total).max() > 1e-9 * len(x) else x[np.lexsort(x.T)[-1]]
        u = search.stationary_direction(
            np.ascontiguousarray(x, dtype=np.float32),
            u / np.linalg.norm(u),
            np.array([self.bias, self.lower, self.upper]),
            _STEPS,
            _DEPTH,
            _DIRECTION,
        )
        return u[:, None]

    def _certified(self, ranks: IntArray) -> tuple[float, FloatArray, float]:
        """Return a value, the point W where F takes it, and a bound on how far f lies above."""
        x = _records(ranks)
        w = self._fixed_point(x)
        value, weights = self._evaluate(x, w)
        gap = self._vector_gap(x, w[:, 0], weights)
        if gap <= GAP * self.sensitivity:
            return value, w, gap
        if x.shape[1] > len(x):  # the maximum lies in the span of the records
            basis, triangle = with_fallback(
                lambda: qr(x.T, mode="economic", check_finite=False),
                lambda: (np.eye(x.shape[1]), x.T),
            )
            value, w, gap = self._maximise(triangle.T, basis.T @ w)
            return value, basis @ w, gap
        return self._maximise(x, w)

    def _gradient(self, x: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return g and M."""
        scaled = np.sqrt(weights / (4 * self.bias))[:, None] * x
        return weights @ x, scaled.T @ scaled

    def _vector_gap(self, x: FloatArray, u: FloatArray, weights: FloatArray) -> float:
        """Return the bound on f - F at U = u u', infinite unless u is close to the maximum.

        It is mu + g'(mu I - M)^-1 g / 4 - g'u - u'Mu. With fewer records than items, M = S'S and
        g = S'c for S the scaled records and c = 2 sqrt(B psi'), and (mu I - S'S)^-1 S' is
        S'(mu I - SS')^-1: a system as small as the number of records.
        """
        g = weights @ x
        along = x @ u
        here = float(weights @ (along * along)) / (4 * self.bias)
        mu = float(g @ u) / 2 + here
        if x.shape[1] > len(x):
            c = 2 * np.sqrt(self.bias * weights)
            scaled = x * (c / (4 * self.bias))[:, None]
            matrix = scaled @ scaled.T
            quadratic = float((matrix @ c) @ solve(mu * np.eye(len(c)) - matrix, c))
        else:
            matrix = self._gradient(x, weights)[1]
            quadratic = float(g @ solve(mu * np.eye(len(u)) - matrix, g))
        above = mu + quadratic / 4
        return math.inf if math.isnan(above) else above - float(g @ u) - here

    def _maximise(self, x: FloatArray, w: FloatArray) -> tuple[float, FloatArray, float]:
        """Maximise F from the point w on until the gap is at most GAP (A + B).

        Each round takes a Frank-Wolfe step, which alone would reach the maximum (F is smooth and
        concave, the step moves to the best point on its segment). It then improves the columns of W
        by quasi-Newton steps, kept if they raise F: they make a few rounds enough.
        """
        while True:
            # the bound of every round holds by itself: what came before only saves rounds
            value, weights = self._evaluate(x, w)
            if not weights.any():
                return value, w, 0.0  # every record adds A
            gap, target = self._oracle(x, w, weights)
            if gap <= GAP * self.sensitivity:
                return value, w, gap
            w = self._ascend(x, self._toward(x, w, target))

    def _oracle(
        self, x: FloatArray, w: FloatArray, weights: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the bound on f - F by the best mu, and the point of K that maximises g'u + <M, U>.

        u = (mu I - M)^-1 g / 2 with mu such that |u| = 1; if |u| < 1 even at the largest eigenvalue
        of M, its eigenvector takes the rest of the trace. Every mu above that eigenvalue gives a
        bound, so neither the root nor the rounding of mu matters for the proof.
        """
        g, matrix = self._gradient(x, weights)
        eigenvalues, vectors = spectrum(matrix)
        c = vectors.T @ g / 2
        top = float(eigenvalues[-1])
        size = float(np.linalg.norm(c))
        least = top + max(abs(float(c[-1])), 1e-12 * (top + size))

        def excess(mu: float) -> float:
            return float(np.linalg.norm(c / (mu - eigenvalues))) - 1

        # |u| falls in mu: its root makes |u| = 1, unless |u| < 1 from the least mu on
        mu = find_root(excess, least, top + 2 * size) if excess(least) > 0 else least
        u = c / (mu - eigenvalues)
        # mu + g'(mu I - M)^-1 g / 4, in the coordinates of the eigenvectors
        bound = mu + float(c @ u)
        here = float(g @ w[:, 0]) + float(np.vdot(w, matrix @ w))
        rest = math.sqrt(max(0.0, 1 - float(u @ u)))
        return bound - here, np.column_stack((vectors @ u, rest * vectors[:, -1]))

    def _toward(self, x: FloatArray, w: FloatArray, target: FloatArray) -> FloatArray:
        """Return the best point of the segment from one point of K to another."""
        start = self._project(x, w)[1]
        end = self._project(x, target)[1]
        s = 0.0
        for k in range(1, 50):  # the derivative falls along the segment
            trial = s + 0.5**k
            if self._psi(start + trial * (end - start))[1] @ (end - start) > 0:
                s = trial
        # (1 - s) U + s U* less the square of (1 - s) u + s u* is again a sum of squares
        apart = math.sqrt(s * (1 - s)) * (w[:, :1] - target[:, :1])
        squares = np.hstack((math.sqrt(1 - s) * w[:, 1:], math.sqrt(s) * target[:, 1:], apart))

        def fewest() -> FloatArray:
            vectors, sizes, _ = svd(squares, full_matrices=False, check_finite=False)
            return np.asarray((vectors * sizes)[:, sizes > 1e-9])

        columns = with_fallback(fewest, lambda: squares)
        point = np.hstack(((1 - s) * w[:, :1] + s * target[:, :1], columns))
        return np.asarray(point / max(1.0, float(np.linalg.norm(point))))

    def _ascend(self, x: FloatArray, w: FloatArray) -> FloatArray:
        """Return a point with as many columns and no smaller F, by L-BFGS on F(P / |P|)."""

        def loss(flat: FloatArray) -> tuple[float, FloatArray]:
            size = float(np.linalg.norm(flat))
            point = flat.reshape(w.shape) / size
            along, z = self._project(x, point)
            height, weights = self._psi(z)
            # dF/dW: psi' times x, once for u and once more for each column of the square
            along /= 2 * self.bias
            along[:, 0] += 1
            slope = x.T @ (weights[:, None] * along)
            # of F(P / |P|) only what is orthogonal to P moves anything
            slope -= point * np.vdot(slope, point)
            return -float(height.sum()), -slope.ravel() / size

        options = {"maxiter": 200, "maxcor": 20, "ftol": 1e-13, "gtol": 1e-9}
        peak = with_fallback(
            lambda: minimize(loss, w.ravel(), jac=True, method="L-BFGS-B", options=options).x,
            w.ravel,
        )
        peak = peak.reshape(w.shape) / max(1e-300, float(np.linalg.norm(peak)))
        return max(w, peak, key=lambda point: self._evaluate(x, point)[0])


@lru_cache(maxsize=256)
def capped_norm(n: int, m: int) -> CappedNorm | None:
    """Return the capped norm for n rankings of m items, or None where the plain norm is better.

    Notes
    -----
    For large n and m with r = (m - 1) / n the records look Gaussian, and at the maximum u'x_l has
    the distribution of the t that maximises e = psi(t + t^2 / (4 B)) - (t - s)^2 / (2 c), s
    standard normal, where c solves E (t - s)^2 = r (Gordon's comparison). So s = t - c d, d the
    derivative of the first term, and E is an integral over t. Then mu = n E(t d) / 2, and the
    largest eigenvalue of M is n / (4 B) times the edge of a sample covariance with weights w =
    psi', the minimum of r / q + E w / (1 - q w) over 0 < q < 1. Their quotient is the margin of the
    certificate.

    z1 is a smooth function of r, close to the best for every r, and z0 = z1 / 2. B is the least
    multiple of 1/64 whose margin exceeds 1.03 + 2 / sqrt(2 (m - 1)): for uniform rankings the fixed
    point is then nearly always sufficient. A small mean shift delta moves f by n delta^2 c E(d)^2 /
    (2 r), the plain norm by n delta^2 / (2 sqrt(r)); the null variances are n Var(e) - n r / (2
    c^2) and n / 2. The norm with the smaller quotient of standard deviation, noise included, and
    shift is chosen. Only power and time depend on these approximations.
    """
    r = (m - 1) / n
    upper = round(64 * (3.4 + r / 2 + 0.28 * math.log1p(0.1 / r))) / 64
    wanted = 1.03 + 2 / math.sqrt(2 * (m - 1))
    least = bisect_left(range(32, 2**12), True, key=lambda k: _theory(r, k / 64, upper)[0] > wanted)
    norm = CappedNorm((32 + least) / 64, upper / 2, upper)
    if norm.sensitivity >= 2 * math.sqrt(m - 1):
        return None
    # squared standard deviations over squared shifts, of the capped and of the plain norm
    _, shift, variance = _theory(r, norm.bias, upper)
    noise = 2 / _NOMINAL_EPSILON**2
    capped = n * variance + noise * norm.sensitivity**2
    plain = (n / 2 + noise * 4 * (m - 1)) * shift**2
    return norm if _WORTHWHILE * capped < plain else None


def _theory(r: float, bias: float, upper: float) -> tuple[float, float, float]:
    """Return the margin, c E(d)^2 / sqrt(r), and the null variance per record; margin 0: none."""
    norm = CappedNorm(bias, upper / 2, upper)
    saturated = 2 * bias * (math.sqrt(1 + upper / bias) - 1)
    ends = math.asinh(min(-9.0, -4 * bias - saturated)), math.asinh(max(9.0, saturated))
    t = np.sinh(np.linspace(*ends, 801))  # finest around 0
    height, w = norm._psi(t + t * t / (4 * bias))
    d = w * (1 + t / (2 * bias))

    def distribution(c: float) -> FloatArray:
        # weights of the trapezoid rule in s, whose density is normal
        s = t - c * d
        return np.asarray(np.exp(-s * s / 2) * np.gradient(s) / math.sqrt(2 * math.pi))

    def excess(c: float) -> float:
        return c * c * float(distribution(c) @ (d * d)) - r

    least = math.sqrt(r) / float(np.abs(d).max())
    most = 1.999 * bias
    if least >= most or excess(most) <= 0:
        return 0.0, 0.0, math.inf
    c = find_root(excess, least, most)
    p = distribution(c)
    q = 1 / (1 + np.exp(-np.linspace(-8, 8, 97)))[:, None]
    edge = float((r / q[:, 0] + (w / (1 - q * w)) @ p).min())
    e = height - c * c * d * d / (2 * c)
    variance = float(p @ (e * e)) - float(p @ e) ** 2 - r / (2 * c * c)
    return 2 * bias * float(p @ (t * d)) / edge, c * float(p @ d) ** 2 / math.sqrt(r), variance
