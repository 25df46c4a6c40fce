"""Noise outside of releases: public draws, and tails and quantiles of noise plus normal errors.

The secret noise of a release is drawn by the method ``draw`` of its distribution, in `privacy`. The
functions here use a public generator and return noise alone, in floating point, which gives no
privacy.

**Limit.** On a fine lattice, noise on a body is the noise of a K-norm mechanism: a scale times a
Gamma(m) variable times a uniform point of the body of radius 1. For zero-sum Laplace noise this
body is {|x|_1 <= 1, sum 0}: in n = m - 1 dimensions, the factor exp(-h) of the density gives the
shell at h the weight h^n exp(-h) if points of the body below it are uniform. For permutohedron
noise the body is K (:class:`privrank.privacy.knorm.PermutohedronNoise`). Simulated noise has this
distribution; the relative error of its variance is about 1 / scale^2.

**Tails.** The error of every estimate is a normal variable Z, from sampling, plus noise N, which is
independent of Z and symmetric. The computation depends on the form of N:

- Laplace noise of one or two numbers: closed form (:func:`normal_laplace_tail`).
- Gaussian noise, or a sum of many numbers: a normal variable, with random variance if necessary.
- Noise that is a mixture of sizes of either sign: :func:`mixture_tail`. For a vector that sums to
  zero the sizes are computed from public points of the body (:func:`public_points`) and the exact
  distribution of the radius.
- A sum of several draws: the characteristic function (:func:`noisy_quantiles`).
"""

import math
from bisect import bisect_left
from functools import lru_cache

import numpy as np
from scipy.special import erfcx, gammainc, gammaincc, gammainccinv, gammaln, ndtr, ndtri

from privrank.hypotheses.nulls import public_generator
from privrank.privacy.knorm import (
    CubeNoise,
    NetDistribution,
    PermutohedronNoise,
    Radius,
    ZeroSumLaplace,
    spanning_tree,
    tree_point,
)
from privrank.privacy.noise import DiscreteGaussian, DiscreteLaplace
from privrank.release.survey import Noise
from privrank.util.arrays import AnyArray, BoolArray, FloatArray, batches, readonly_copy
from privrank.util.solvers import bisect

BodyDistribution = ZeroSumLaplace | PermutohedronNoise

_RADII = 4000
"""Number of radii over which the distribution of a coordinate is summed."""


@lru_cache(maxsize=3)
def public_noise(distribution: Noise | None, size: int, draws: int, pairs: int = 0) -> FloatArray:
    """Return cached public draws, shape (draws, size), for pairs of items if `pairs` is not 0."""
    generator = public_generator("errors of pairs" if pairs else "errors of worths", pairs or size)
    if distribution is None:
        drawn = generator.standard_normal((draws, size))
    else:
        drawn = simulated(distribution, (draws, size), generator)
    return readonly_copy(drawn, np.float64)


def simulated(
    distribution: NetDistribution | CubeNoise, size: tuple[int, int], rng: np.random.Generator
) -> AnyArray:
    """Return noise alone, shape (draws, coordinates), in lattice steps."""
    if isinstance(distribution, BodyDistribution):
        stretch = body_scale(distribution) * rng.gamma(distribution.items, size=(size[0], 1))
        return np.asarray(stretch * body_points(distribution, size[0], rng))
    if not isinstance(distribution, CubeNoise):
        return distribution.simulate(size, rng)
    if distribution.radius is None:
        return np.zeros(size)
    radii, mass = cube_radii(distribution)
    radius = radii[np.searchsorted(mass.cumsum()[:-1], rng.random(size[0]))]
    return np.rint(rng.uniform(-0.5, 0.5, size) * (2.0 * radius[:, None] + 1.0))


def body_scale(distribution: BodyDistribution) -> float:
    """Return the scale of the Gamma(m) variable that multiplies a point of the body."""
    return (
        distribution.scale if isinstance(distribution, ZeroSumLaplace) else 1.0 / distribution.rate
    )


def body_points(distribution: BodyDistribution, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return uniform points of a distribution's body, shape (draws, m)."""
    m = distribution.items
    if isinstance(distribution, ZeroSumLaplace):
        return _diamond(m, draws, rng)
    # uniform points of K, twice the permutohedron: uniform points of uniform tiles
    points = np.empty((draws, m))
    for rows in batches(draws, m**2):
        size = rows.stop - rows.start
        word = rng.integers(0, m, (size, m - 2))
        points[rows] = tree_point(*spanning_tree(word, m), rng.uniform(-1.0, 1.0, (size, m - 1)), 1)
    return points


def _diamond(m: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """Return uniform points of {|x|_1 <= 1, sum 0}.

    The number p of positive items has probability proportional to C(m, p) C(m - 2, p - 1): the
    number of sets of p items times the volume of a pair of simplices of dimensions p - 1 and
    m - p - 1. On each pair the point is uniform.
    """
    p = np.arange(1, m)
    log = (gammaln(m + 1) - gammaln(p + 1) - gammaln(m - p + 1)) + (
        gammaln(m - 1) - gammaln(p) - gammaln(m - p)
    )
    # draw the number of positive items, the items, and a uniform point of a pair of simplices
    share = np.cumsum(np.exp(log - log.max()))
    positives = 1 + np.searchsorted(share, rng.random(draws) * share[-1])
    positive = np.argsort(rng.random((draws, m)), axis=1) < positives[:, None]
    size = rng.standard_exponential((draws, m))
    up = np.where(positive, size, 0.0)
    down = np.where(positive, 0.0, size)
    point = up / up.sum(axis=1, keepdims=True) - down / down.sum(axis=1, keepdims=True)
    return np.asarray(0.5 * point * rng.random((draws, 1)) ** (1.0 / (m - 1)))


def half_width(
    distribution: DiscreteLaplace | DiscreteGaussian | CubeNoise, alpha: float, coordinates: int = 1
) -> float:
    """Return the smallest h, in lattice steps, that any coordinate exceeds with at most `alpha`.

    The probability refers to the maximum over `coordinates` entries. Gaussian noise is treated as
    normal: k has the probability of the interval from k - 1/2 to k + 1/2.
    """
    if isinstance(distribution, CubeNoise):
        return cube_half_width(distribution, alpha, coordinates)
    # coordinates are independent: each may exceed h with 1 - (1 - alpha)^(1 / coordinates)
    miss = -math.expm1(math.log1p(-alpha) / coordinates)
    if isinstance(distribution, DiscreteGaussian):
        return float(max(math.ceil(-distribution.scale * ndtri(0.5 * miss) - 0.5), 0))
    if distribution.scale == 0:
        return 0.0
    # P(|noise| > h) = 2 q^(h + 1) / (1 + q)
    outside = math.log(0.5 * miss * (1.0 + math.exp(-1.0 / distribution.scale)))
    return float(max(math.ceil(-distribution.scale * outside - 1.0), 0))


def cube_half_width(
    distribution: CubeNoise, alpha: float, coordinates: int = 1, blur: float = 0.0
) -> float:
    """Return the h that any coordinate of the noise exceeds with at most `alpha`.

    The probability refers to the maximum over `coordinates` entries, to which independent normal
    errors of standard deviation `blur` are added.

    Notes
    -----
    **Statistic.** Given the radius R, coordinates are independent and uniform on -R..R. Without
    `blur` each is inside with probability (2 h + 1) / (2 R + 1). With `blur` the distribution is
    uniform on [-R - 1/2, R + 1/2] plus a normal one: Phi has the integral x Phi(x) + phi(x).
    """
    if distribution.radius is None:
        return float(-blur * ndtri(-0.5 * math.expm1(math.log1p(-alpha) / coordinates)))
    radii, mass = cube_radii(distribution)
    wide = radii + 0.5

    def integral(x: FloatArray) -> FloatArray:
        z = x / blur
        return np.asarray(blur * (z * ndtr(z) + np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)))

    def outside(h: float) -> float:
        inside = (
            (integral(h + wide) - integral(h - wide)) / wide - 1.0 if blur > 0 else (h + 0.5) / wide
        )
        return float(mass @ (1.0 - np.clip(inside, 0.0, 1.0) ** coordinates))

    # search whole steps without blur, and hundredths of its standard deviation with blur
    unit = 0.01 * blur if blur > 0 else 1.0
    steps = range(math.ceil((float(radii[-1]) + 40 * blur) / unit))
    return unit * bisect_left(steps, True, key=lambda h: outside(h * unit) <= alpha)


def radii_up_to(distribution: Radius, reach: float) -> tuple[FloatArray, FloatArray]:
    """Return the radii up to `reach` and their probabilities; larger radii are omitted."""
    beyond = np.arange(
        1, max(math.ceil(reach) - distribution.low - len(distribution.weights) + 1, 0) + 1
    )
    # beyond the listed weights the radius is geometric: its tail mass is distributed with ratio q
    q = math.exp(-1.0 / distribution.scale)
    mass = np.concatenate(
        (distribution.weights, distribution.tail * (1.0 - q) * q ** (beyond - 1.0))
    )
    total = float(distribution.weights.sum(dtype=np.float64)) + distribution.tail
    return distribution.low + np.arange(len(mass), dtype=np.float64), mass / total


def cube_radii(distribution: CubeNoise) -> tuple[FloatArray, FloatArray]:
    """Return the radii and their probabilities; many radii are replaced by means of runs.

    The spread within a run is small relative to the mean. Probabilities below e^-40 are omitted.
    """
    assert distribution.radius is not None
    last = distribution.radius.low + len(distribution.radius.weights)
    radii, mass = radii_up_to(distribution.radius, last + math.ceil(40 * distribution.radius.scale))
    if len(radii) > _RADII:
        start = np.arange(0, len(radii), len(radii) // _RADII)
        mean = np.add.reduceat(radii * mass, start)
        mass = np.add.reduceat(mass, start)
        radii = mean / np.maximum(mass, 1e-300)
    return radii, mass


DetailDistribution = DiscreteLaplace | BodyDistribution
PairDistribution = DiscreteLaplace | DiscreteGaussian | CubeNoise
BordaDistribution = PairDistribution | BodyDistribution

_RATIOS = 128
"""Largest number of distinct ratios of two weights of entries of points of a body."""

_FINE = 16
_OCTAVES = 50
"""Sizes that represent noise: 16 until the probability beyond has halved, 50 times."""

_BLOCK = 2**21
"""Number of normal probabilities in memory at a time."""

_GROUPS = 128
"""Groups of similar size over which entries of points of a body are averaged for quantiles."""

_PERIOD = 30.0
_FARTHEST = 8.5
"""Standard deviations of the total error after which its distribution is wrapped around, and of its
normal part up to which a characteristic function is summed."""

_LEAST = 1.0 / 30.0
"""Minimum standard deviation of the normal part, relative to the total error."""

_DEVIATIONS = 33
"""Number of standard deviations of the normal part at which quantiles are computed; quantiles
between them are interpolated linearly."""


_SIZES = 200
"""Number of sizes of a difference of entries."""


def mixture_tail(x: FloatArray, sd: FloatArray, sizes: FloatArray, share: FloatArray) -> FloatArray:
    """Return P(|Z + N| > x) for Z normal and N one of these sizes, of either sign.

    Parameters
    ----------
    x : ndarray, shape (rows,)
        Where to evaluate the two-sided tails.
    sd : ndarray, shape (rows,) or (rows, sizes)
        Standard deviations of Z, which may differ between sizes.
    sizes : ndarray, shape (rows, sizes) or (sizes,)
        Sizes of N.
    share : ndarray, shape (sizes,)
        Their probabilities.
    """
    x = x[:, None]
    sd = sd if sd.ndim == 2 else sd[:, None]
    return np.asarray((ndtr((sizes - x) / sd) + ndtr((-sizes - x) / sd)) @ share)


def skewed_tail(
    x: FloatArray, sd: FloatArray, sizes: FloatArray, share: FloatArray, skewness: FloatArray
) -> FloatArray:
    """Return P(Z + N > x) for Z of Pearson's type III and N of given sizes, of either sign.

    Parameters
    ----------
    x : ndarray, shape (rows,)
        Where to evaluate the tails.
    sd : ndarray, shape (rows,)
        Standard deviations of Z, whose mean is 0.
    sizes : ndarray, shape (rows, sizes)
        Sizes of N.
    share : ndarray, shape (sizes,)
        Their probabilities.
    skewness : ndarray, shape (rows,)
        Skewness of Z; 0 is the normal distribution.

    Notes
    -----
    With skewness g a standardised Z is g / 2 times a centred Gamma(a) variable, a = 4 / g^2. For a
    of at least 200 its tail is the standard normal tail beyond Barndorff-Nielsen's
    r* = r + log(u / r) / r, with a relative error below 1e-4 within eight standard deviations. At y
    times the mean r^2 = 2 a (y - 1 - log y), with the sign of u = (y - 1) sqrt(a).
    """
    tail = np.zeros_like(sizes)
    straight = np.abs(skewness) <= 1e-5
    for moved in (sizes, -sizes):
        z = (x[:, None] - moved) / sd[:, None]
        tail[straight] += 0.5 * ndtr(-z[straight])
        for sign in (1.0, -1.0):
            rows = (sign * skewness > 0) & ~straight
            tail[rows] += 0.5 * _gamma_tail(z[rows], skewness[rows, None])
    return np.asarray(tail @ share)


def _gamma_tail(z: FloatArray, skewness: FloatArray) -> FloatArray:
    """Return P(Z > z) for standardised Z of Pearson's type III, skewness (rows, 1) of one sign."""
    upper = bool((skewness > 0).all())
    shape = np.broadcast_to(4.0 / skewness**2, z.shape)
    off = (z if upper else -z) / np.sqrt(shape)
    rare = shape < 200.0
    tail = np.empty_like(z)
    incomplete = gammaincc if upper else gammainc
    tail[rare] = incomplete(shape[rare], shape[rare] * np.maximum(1.0 + off[rare], 0.0))
    # a Gamma variable is not negative, and its tail is 0 or 1 beyond the other end
    shape = shape[~rare]
    off = np.clip(off[~rare], 1e-12 - 1.0, 1e6)
    r = np.sqrt(2.0 * shape * np.maximum(off - np.log1p(off), 0.0))
    u = off * np.sqrt(shape)
    close = np.abs(off) < 1e-4
    r = np.where(close, u * (1.0 - off / 3.0), np.sign(off) * r)
    ratio = np.where(close, 1.0, u / np.where(close, 1.0, r))
    known = np.where(close, 1.0, r)
    correction = np.where(close, 1.0 / (3.0 * np.sqrt(shape)), np.log(ratio) / known)
    tail[~rare] = ndtr(-(r + correction) if upper else r + correction)
    return tail


def _one_laplace_tail(x: FloatArray, sd: FloatArray, scale: FloatArray) -> FloatArray:
    """Return P(Z + L > x) for Z normal(0, sd^2) and L Laplace(scale), x >= 0.

    P(Z > x) + (e^{-x/b} P(Z < x - sd^2/b) e^{s} - e^{x/b} P(Z > x + sd^2/b) e^{s}) / 2 with
    s = sd^2 / (2 b^2). The scaled function erfcx keeps the products of huge and tiny factors in
    range: with a normal density factored out, e^{s +- x/b} P(Z > ...) = e^{-z^2/2} erfcx(...) / 2.
    """
    z = x / sd
    shift = sd / scale
    density = np.exp(-0.5 * z * z)
    left_argument = (shift - z) / np.sqrt(2.0)
    # e^{s - x/b} P(Z < x - sd^2/b): by erfcx for a positive argument, directly for a negative one
    with np.errstate(over="ignore", invalid="ignore"):
        left = np.where(
            left_argument > 0,
            0.25 * density * erfcx(np.maximum(left_argument, 0.0)),
            0.5 * np.exp(np.minimum(0.5 * shift * shift - x / scale, 0.0)) * ndtr(z - shift),
        )
    return np.asarray(ndtr(-z) + left - 0.25 * density * erfcx((z + shift) / np.sqrt(2.0)))


def normal_laplace_tail(
    x: float | FloatArray, sd: float | FloatArray, scales: tuple[float | FloatArray, ...]
) -> FloatArray:
    """Return P(|Z + L_1 + ... | > x) for a centred normal plus at most two Laplace variables.

    Parameters
    ----------
    x : float or ndarray
        Where to evaluate the two-sided tail; at least 0.
    sd : float or ndarray
        Standard deviation of the normal part; positive.
    scales : tuple of zero, one or two floats or ndarrays
        Scales of the independent Laplace variables; 0 means absent.

    Returns
    -------
    ndarray
        Two-sided tail probabilities.

    Notes
    -----
    **Null.** As a function of the squared scales, the tail for two Laplace variables is a divided
    difference of the tail for one: the characteristic function
    1 / ((1 + s_1 t^2) (1 + s_2 t^2)) has a partial fraction expansion. Nearly equal scales are
    separated symmetrically, which changes the probability by less than 10^-7.
    """
    x, sd = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(sd, dtype=float))
    present = [np.broadcast_to(np.asarray(b, dtype=float), x.shape) for b in scales]
    if not present or all(np.all(b == 0) for b in present):
        return np.asarray(2.0 * ndtr(-x / sd))
    floor = 1e-9 * sd
    if len(present) == 1:
        return np.asarray(2.0 * _one_laplace_tail(x, sd, np.maximum(present[0], floor)))
    # T_2 = (s_1 T_1(s_1) - s_2 T_1(s_2)) / (s_1 - s_2) with squared scales s: a divided difference,
    # for nearly equal scales over a small span around their mean
    squares = np.maximum(present[0], floor) ** 2, np.maximum(present[1], floor) ** 2
    middle = 0.5 * (squares[0] + squares[1])
    half = np.maximum(0.5 * np.abs(squares[0] - squares[1]), 1e-4 * middle)
    high = middle + half
    low = np.maximum(middle - half, 0.5 * floor**2)
    difference = high * _one_laplace_tail(x, sd, np.sqrt(high)) - low * _one_laplace_tail(
        x, sd, np.sqrt(low)
    )
    return np.asarray(np.clip(difference / half, 0.0, 1.0))


@lru_cache(maxsize=8)
def public_points(distribution: BodyDistribution, draws: int, name: str) -> FloatArray:
    """Return named public uniform points of a distribution's body, shape (draws, m)."""
    return body_points(distribution, draws, public_generator(name, distribution.items))


def noisy_tail(
    distribution: NetDistribution,
    x: FloatArray,
    sd: FloatArray,
    first: FloatArray,
    second: FloatArray | None = None,
) -> FloatArray:
    """Return P(|Z + a N_1 - b N_2| > x) for Z normal and N two entries of one draw of noise.

    `sd` is the standard deviation of Z. The weights a and b are `first` and `second`; b is 0 if
    `second` is None.

    Notes
    -----
    **Null.** Discrete Laplace and Gaussian noise are replaced by their continuous limits, in closed
    form. The noise of a vector that sums to zero is a mixture of sizes (:func:`_sizes`).
    """
    x, sd, first = np.broadcast_arrays(x, sd, first)
    if isinstance(distribution, DiscreteLaplace):
        # weights scale the noise, and signs do not matter as Laplace variables are symmetric
        present = [first] if second is None else [first, np.broadcast_to(second, x.shape)]
        return normal_laplace_tail(x, sd, tuple(distribution.scale * scale for scale in present))
    if isinstance(distribution, DiscreteGaussian):
        lengths = first**2 + (0.0 if second is None else np.square(second))
        return np.asarray(2.0 * ndtr(-x / np.sqrt(sd**2 + distribution.variance * lengths)))
    # noise on a body: |N_1 - (b / a) N_2| is a mixture of sizes that depends on b / a only, so one
    # table per distinct ratio serves all rows
    gap, error, a = (np.ravel(part) for part in (x, sd, first))
    ratio = np.zeros(x.size) if second is None else np.broadcast_to(second, x.shape).ravel() / a
    known, which = np.unique(ratio, return_inverse=True)
    if len(known) > _RATIOS:
        # the nearest point of a grid that is even on the logarithmic scale, with steps of about 1%
        known = np.geomspace(known[0], known[-1], _RATIOS)
        which = np.searchsorted(np.sqrt(known[1:] * known[:-1]), ratio)
    tables = [_sizes(distribution, float(size)) for size in known]
    sizes, widths = (np.array(part) for part in zip(*tables, strict=True))
    share = -np.diff(_beyond(), append=0.0)
    out = np.empty(x.size)
    for here in batches(x.size, len(share), _BLOCK):
        row = which[here]
        weight = a[here, None]
        spread = np.hypot(error[here, None], weight * widths[row])
        out[here] = mixture_tail(gap[here], spread, weight * sizes[row], share)
    return np.asarray(out.reshape(x.shape))


def _beyond() -> FloatArray:
    """Return the probabilities beyond the lower ends of the sizes that represent noise."""
    return np.asarray(2.0 ** (-np.arange(_FINE * _OCTAVES) / _FINE))


@lru_cache(maxsize=4 * _RATIOS)
def _sizes(distribution: BodyDistribution, ratio: float) -> tuple[FloatArray, FloatArray]:
    """Return sizes of N_1 - ratio N_2 for two entries of a draw, and their standard deviations.

    Notes
    -----
    **Null.** Given a point of the body, P(|N_1 - ratio N_2| > t) is the Gamma(m) tail at t / u,
    with u the size of the difference of its entries. This tail is averaged over public points,
    which are the same for all pairs because items are exchangeable. Points are combined in groups
    of similar size, by root mean squares. Groups shrink to single points where u is largest,
    because these points determine the far tails. The sizes are intervals between quantiles at the
    probabilities of :func:`_beyond`, which are so close that no tail has a relative error above a
    few per cent. Each size represents a uniform variable between two quantiles.
    """
    pairs = distribution.items // 2
    m = distribution.items
    # 2^16 pairs of entries
    points = public_points(distribution, math.ceil(2**16 / pairs), "noise bodies")[:, : 2 * pairs]
    sizes = np.sort(np.abs(points[:, ::2] - ratio * points[:, 1::2]).ravel())
    left = np.ceil(len(sizes) * 2.0 ** (-np.arange(4.0 * math.log2(len(sizes)) + 1.0) / 4.0))
    starts = np.unique(len(sizes) - left.astype(np.int64))
    count = np.diff(starts, append=len(sizes))
    scale = body_scale(distribution) * np.sqrt(np.add.reduceat(sizes**2, starts) / count)
    # compute the tail at a grid of sizes and invert it by interpolation
    t = np.linspace(0.0, scale.max() * gammainccinv(m, 1e-16), 128)
    tail = gammaincc(m, t[:, None] / scale) @ (count / len(sizes))
    log_tail = np.log(np.maximum(tail, 1e-300))
    ends = np.interp(np.log(np.append(_beyond(), 2.0**-_OCTAVES)), log_tail[::-1], t[::-1])
    return 0.5 * (ends[1:] + ends[:-1]), np.diff(ends) / math.sqrt(12.0)


def noisy_quantiles(
    sds: FloatArray, weights: FloatArray, distribution: DetailDistribution, level: float
) -> FloatArray:
    """Return the x with P(|Z + sum_j w_j N_j| > x) = level, for each standard deviation of Z.

    `sds` are the positive standard deviations of a normal Z. `weights` are the weights w_j of
    independent draws of the noise, in lattice steps; N_j is one entry of a draw.

    Notes
    -----
    **Statistic.** The quantile is computed from the Fourier series of the distribution wrapped
    around a period of 30 standard deviations of the sum, which changes a tail by less than 1e-12.
    With phi the characteristic function and h = 2 pi / period,
    P(|X| <= x) = h x / pi + (2 / pi) sum_k sin(k h x) phi(k h) / k.

    Noise is replaced by its continuous limit. If the standard deviation of the normal part is below
    a thirtieth of the total, it is increased to this value, which widens quantiles by less than a
    thousandth. The quantile is a convex function of the deviation of Z. It is computed at a few
    values; linear interpolation between them is at most 1e-3 above.
    """
    noise = float((weights**2).sum()) * distribution.variance
    sds = np.maximum(sds, _LEAST * np.sqrt(sds**2 + noise))
    known = np.unique(sds)
    if len(known) > _DEVIATIONS:
        known = np.linspace(known[0], known[-1], _DEVIATIONS)
    whole = np.sqrt(known**2 + noise)
    step = 2.0 * math.pi / (_PERIOD * whole.max())
    # the series ends where the normal factor exp(-(sd k h)^2 / 2) of the smallest sd vanishes
    k = np.arange(1, math.ceil(_FARTHEST / (known.min() * step)) + 1)
    phi = np.exp(-0.5 * np.square(known[:, None] * (k * step)))
    # draws with equal weights have equal characteristic functions, whose product is a power
    for weight in np.unique(weights):
        phi *= _transform(distribution, weight * step * k) ** int((weights == weight).sum())

    def exceeded(size: FloatArray) -> BoolArray:
        waves = np.sin(np.outer(size * step, k)) / k
        return np.asarray(
            1.0 - size * step / math.pi - 2.0 / math.pi * (waves * phi).sum(axis=1) > level
        )

    _, high = bisect(exceeded, np.zeros(len(known)), 0.5 * _PERIOD * whole, 32)
    return np.asarray(np.interp(sds, known, high))


def _transform(distribution: DetailDistribution, t: FloatArray) -> FloatArray:
    """Return the characteristic function of one entry of the noise, in lattice steps.

    Noise on a body is a Gamma(m) radius of scale s times an entry u of a uniform point, from a
    public sample. The result is the mean over u of the real part of (1 - i t s u)^-m.
    """
    if distribution.variance == 0:
        return np.ones_like(t)
    if isinstance(distribution, DiscreteLaplace):
        return np.asarray(1.0 / (1.0 + np.square(distribution.scale * t)))
    angle = np.multiply.outer(t, body_scale(distribution) * _entries(distribution))
    size = np.exp(-0.5 * distribution.items * np.log1p(np.square(angle)))
    return np.asarray((size * np.cos(distribution.items * np.arctan(angle))).mean(axis=1))


@lru_cache(maxsize=8)
def _entries(distribution: BodyDistribution) -> FloatArray:
    """Return entry sizes of points of a distribution's body, as root mean squares of groups."""
    points = public_points(distribution, math.ceil(2**16 / distribution.items), "bodies of details")
    entries = np.sort(np.abs(points).ravel())
    even = entries[: len(entries) // _GROUPS * _GROUPS].reshape(_GROUPS, -1)
    return np.asarray(np.sqrt(np.square(even).mean(axis=1)))


def difference_variance(distribution: BordaDistribution, items: int, pairs: bool) -> float:
    """Return the variance of the noise in the difference of two Borda totals, in squared steps.

    The noise is in the pair counts, whose rows are summed, or (not `pairs`) in the totals.

    Notes
    -----
    **Statistic.** Let v be the variance per count. Two row sums share one pair, with opposite
    signs, and differ in 2 (m - 2) other pairs: (4 + 2 (m - 2)) v = 2 m v. For two totals with
    independent noise it is 2 v. K-norm noise sums to 0 and is exchangeable between items, so two of
    its coordinates have the covariance -v / (m - 1).
    """
    if pairs:
        return 2.0 * items * distribution.variance
    alike = isinstance(distribution, PermutohedronNoise)
    return 2.0 * distribution.variance * (items / (items - 1) if alike else 1.0)


def difference_tail(
    distribution: BordaDistribution,
    step: float,
    items: int,
    pairs: bool,
    x: FloatArray,
    sd: FloatArray,
) -> FloatArray:
    """Return P(|Z + noise| > x) for the noise in the difference of two Borda totals.

    The noise is defined in :func:`difference_variance`, with lattice steps of size `step`.

    Notes
    -----
    **Null.** K-norm noise is a Gamma(m) radius, by quadrature, times a uniform point of a body, by
    a public sample of the differences of its entries, rounded up. Given the radius, a row sum of
    cube noise is a sum of independent uniform variables; it is replaced by a normal variable with
    the same variance, which has heavier tails. Laplace noise is a normal variable whose variance
    has an exponential distribution.
    """
    if isinstance(distribution, PermutohedronNoise):
        sizes, share = _body_differences(items)
        return mixture_tail(x, sd, step / distribution.rate * sizes, share)
    # variances of the noise, and their probabilities
    if not pairs or distribution.variance == 0 or isinstance(distribution, DiscreteGaussian):
        noise = np.array([difference_variance(distribution, items, pairs)])
        share = np.ones(1)
    elif isinstance(distribution, CubeNoise):
        radii, share = cube_radii(distribution)
        noise = 2.0 * items * radii * (radii + 1.0) / 3.0
    else:
        rng = public_generator("Laplace variances", items)
        # Laplace noise of variance v is normal with variance v E, E exponential: the shared pair
        # has weight 2, hence 4 v E, and the 2 (m - 2) other pairs add a Gamma variable
        shared = rng.exponential(size=4000)
        others = rng.gamma(2.0 * (items - 2), size=4000) if items > 2 else np.zeros(4000)
        noise = distribution.variance * (4.0 * shared + others)
        share = np.full(4000, 1.0 / 4000)
    return np.asarray(2.0 * ndtr(-x[:, None] / np.sqrt(sd[:, None] ** 2 + step**2 * noise)) @ share)


def permutohedra(items: int) -> FloatArray:
    """Return public uniform points of twice the permutohedron, shape (draws, m)."""
    return public_points(
        PermutohedronNoise(items, 2.0**-10, 1),
        min(max(2**21 // items**2, 20), 20_000),
        "permutohedra",
    )


@lru_cache(maxsize=8)
def _body_differences(items: int) -> tuple[FloatArray, FloatArray]:
    """Return sizes of the difference of two entries of K-norm noise at rate 1, and their masses."""
    first, second = np.triu_indices(items, 1)
    count = np.zeros(_SIZES)
    for point in permutohedra(items):
        size = np.abs(point[first] - point[second]) * (0.5 * _SIZES / (items - 1))
        count += np.bincount(np.minimum(size.astype(np.int64), _SIZES - 1), minlength=_SIZES)
    ends = np.arange(1, _SIZES + 1) * (2.0 * (items - 1) / _SIZES)
    # values of the radius by the trapezoidal rule, which is exact to double precision for normal
    # densities at steps of half a standard deviation
    nodes = np.linspace(-7.0, 7.0, 29)
    weights = np.exp(-0.5 * nodes**2)
    mass = np.outer(count / count.sum(), weights / weights.sum())
    return np.outer(ends, gammainccinv(items, ndtr(-nodes))).ravel(), mass.ravel()
