"""Links for paired comparisons: P(item1 preferred) = F(worth1 - worth2).

F is symmetric about 0. The conditions on F, numbered as in Cai, Chakraborty and Wang (2023), are:

- A0: F is symmetric, F(t) + F(-t) = 1, and increasing;
- A1: F' / (F (1 - F)) <= kappa1;
- A2: F is log-concave with 0 <= (-log F)'' <= kappa2.

**Forms.** Forms are the functions of a link that fits compute; for built-in links they are closed
forms that are stable in both tails. All forms have the same methods. `excess` is F - 1/2 and
`integral` its integral from 0, `density` is F', `variance` is F (1 - F), `log_cdf` is log F.
`ratio` is u = F' / F and `curvature` is h = (-log F)'' = u^2 - F'' / F. They also have the same
constants:

- `peak`, `steepest` and `asymmetry`: upper bounds of F', of u, and of h(t) - h(-t);
- `far`: the contrast at which the probability of an upset is `FARTHEST`;
- `accuracy`: a bound, in unit roundoffs, of the errors of `excess`, and of `ratio` divided by
  `steepest`. It includes the rounding of the argument (a difference of two worths) and of the
  product with a count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import erf, erfcx, expit, log_expit, log_ndtr, ndtr

from privrank.util.arrays import FloatArray, immutable
from privrank.util.checks import check_number, quoted, refuse_if
from privrank.util.solvers import bisect

Function = Callable[[FloatArray], FloatArray]

UNIT_ROUNDOFF = 2.0**-53

FARTHEST = math.exp(-28.0)
"""Probability of an upset below which a contrast counts as infinite.

A finite fit has expected losses of at least half a win on each side of any cut; n exp(-28) falls
short of that for every n below 10^11.
"""

_VANISHED = 40.0
"""Standard deviations beyond which a normal density is zero in double precision."""

MIN_TAIL = 1e-290
"""Smallest probability that is distinguished; below it -log F continues as a straight line."""

ASSUMED_ACCURACY = 1e-12
"""Assumed error of the functions of a user's link, relative to their largest value."""

KNOTS = 2**14 + 1
"""Number of knots of an integrated spline."""


def logit_density(t: FloatArray) -> FloatArray:
    """Return F' of the logistic distribution."""
    odds = np.exp(-np.abs(t))
    return np.asarray(odds / (1.0 + odds) ** 2)


def logit_slope(t: FloatArray) -> FloatArray:
    """Return F'' of the logistic distribution."""
    return np.asarray(-2.0 * logit_density(t) * (0.5 * np.tanh(0.5 * t)))


class _Logit:
    """F(t) = 1 / (1 + exp(-t)): F' = F (1 - F), u = F(-t) < 1, h = F' <= 1/4.

    Errors in unit roundoffs u: the argument contributes u |t| F'(t) < u / 4, halving contributes
    none, tanh at most 4 u relative (two ulp), which is 2 u, and the product with a count one more.
    The total is below 5 u.
    """

    peak = 0.25
    steepest = 1.0
    asymmetry = 0.0
    far = 28.0
    accuracy = 5.0
    density = variance = curvature = staticmethod(logit_density)
    log_cdf = staticmethod(log_expit)

    def excess(self, t: FloatArray) -> FloatArray:
        return np.asarray(0.5 * np.tanh(0.5 * t))

    def integral(self, t: FloatArray) -> FloatArray:
        # log cosh(t / 2), without forming a large exponential
        size = np.abs(t)
        return np.asarray(0.5 * size + np.log1p(np.exp(-size)) - math.log(2.0))

    def ratio(self, t: FloatArray) -> FloatArray:
        return np.asarray(expit(-t))


def probit_density(t: FloatArray) -> FloatArray:
    """Return F' of the normal distribution."""
    inside = np.minimum(np.abs(t), _VANISHED)
    return np.asarray(np.exp(-0.5 * inside * inside) / math.sqrt(2.0 * math.pi))


def probit_slope(t: FloatArray) -> FloatArray:
    """Return F'' of the normal distribution."""
    return np.asarray(-t * probit_density(t))


class _Probit:
    """Normal distribution: u is unbounded; h tends to 1 in the lower tail.

    Errors of excess in unit roundoffs u: three roundings of the argument (difference, constant,
    product) at |t| F'(t) < 1/4 each, 4 u relative (two ulp) for erf, which is 2 u, and the product
    with a count. The total is below 5 u.
    """

    peak = 0.39895
    steepest = math.inf
    asymmetry = 1.0
    far = 7.0857
    accuracy = 5.0
    density = staticmethod(probit_density)
    log_cdf = staticmethod(log_ndtr)

    def excess(self, t: FloatArray) -> FloatArray:
        return np.asarray(0.5 * erf(t * math.sqrt(0.5)))

    def integral(self, t: FloatArray) -> FloatArray:
        inside = np.minimum(np.abs(t), _VANISHED)
        below = np.expm1(-0.5 * inside * inside) / math.sqrt(2.0 * math.pi)
        return np.asarray(t * self.excess(t) + below)

    def variance(self, t: FloatArray) -> FloatArray:
        return np.asarray(ndtr(t) * ndtr(-t))

    def ratio(self, t: FloatArray) -> FloatArray:
        # Mills' ratio by the scaled error function, infinite far above 0, where the ratio vanishes
        return np.asarray(math.sqrt(2.0 / math.pi) / erfcx(-t * math.sqrt(0.5)))

    def curvature(self, t: FloatArray) -> FloatArray:
        t = np.maximum(t, -1e150)  # its square is finite
        ratio = self.ratio(t)
        # far below 0 the two summands cancel, and h is between 0 and 1
        return np.clip(ratio * (ratio + t), 0.0, 1.0)


class Antiderivatives:
    """First and second integrals from 0 of an even, rapidly decreasing function.

    The integrals are computed from a cubic spline with knots so close that its error is below 1e-13
    of the largest value.

    Parameters
    ----------
    function : callable
        An even function, smooth on a scale of 0.001 of the range.
    end : float
        Argument beyond which the function is negligible and treated as 0.
    """

    def __init__(self, function: Function, end: float) -> None:
        from scipy.interpolate import CubicSpline

        knots = np.linspace(0.0, end, KNOTS)
        spline = CubicSpline(knots, function(knots), bc_type="clamped")
        self._end = end
        self._first = spline.antiderivative()
        self._second = spline.antiderivative(2)

    def first(self, t: FloatArray) -> FloatArray:
        """Return the integral from 0 to t, an odd function."""
        return np.asarray(np.copysign(self._first(np.minimum(np.abs(t), self._end)), t))

    def second(self, t: FloatArray) -> FloatArray:
        """Return the integral of the first integral, an even function."""
        # beyond the end the first integral is constant, and this integral is linear
        beyond = np.maximum(np.abs(t) - self._end, 0.0)
        inside = self._second(np.minimum(np.abs(t), self._end))
        return np.asarray(inside + beyond * self._first(self._end))


@immutable
@dataclass(frozen=True, slots=True)
class Link:
    """User-defined link function for PrivateBTL.

    Parameters
    ----------
    name : str
        Name of the link in summaries and archives.
    cdf, pdf, slope : callable
        The distribution function F, its density F' and the derivative F'' of the density. Each
        takes an array and returns an array of the same shape, accurate to twelve digits. `cdf` must
        also be accurate in its lower tail, like ``scipy.special.ndtr``.
    kappa1 : float
        Upper bound of F' / (F (1 - F)).
    kappa2 : float
        Upper bound of the second derivative of -log F.

    Raises
    ------
    ValueError, TypeError
        If F breaks a condition: A0, symmetric (F(t) + F(-t) = 1) and increasing;
        A1, the bound `kappa1`; A2, log-concave and the bound `kappa2`. The Cauchy distribution
        breaks A2, the complementary log-log link breaks A0, and the normal distribution breaks A1
        (``link="probit"`` is nevertheless built in).

    Notes
    -----
    **Privacy.** For a user-defined link, the guarantee of method ``"objective"`` requires `kappa1`
    and `kappa2`. They are checked on a fine grid that extends far into the tails, which is not a
    proof: the bounds must hold everywhere. Method ``"counts"`` requires no property of the link.

    References
    ----------
    Cai, Chakraborty and Wang (2023), conditions A0 to A2.

    Examples
    --------
    The hyperbolic secant:

    >>> import numpy as np
    >>> import privrank as pr
    >>> def density(t):
    ...     return 0.5 / np.cosh(0.5 * np.pi * t)
    >>> sech = pr.Link("sech", cdf=lambda t: 2 / np.pi * np.arctan(np.exp(0.5 * np.pi * t)),
    ...                pdf=density, slope=lambda t: -0.5 * np.pi * np.tanh(0.5 * np.pi * t)
    ...                * density(t), kappa1=2.0, kappa2=1.02739)
    >>> round(float(sech.probability(0.5)), 4)
    0.7277
    """

    name: str
    cdf: Function
    pdf: Function
    slope: Function
    kappa1: float
    kappa2: float
    exact: _Logit | _Probit | _Own = field(
        default=None,
        repr=False,
        compare=False,  # type: ignore[assignment]
    )

    def __post_init__(self) -> None:
        """Check the conditions and prepare the forms of the link."""
        if self.exact is None:
            object.__setattr__(self, "exact", _checked(self))

    @property
    def model(self) -> str:
        """Name of the model of paired comparisons with this link.

        Examples
        --------
        >>> sech.model
        'Bradley-Terry'
        """
        return "Thurstone" if self.name == "probit" else "Bradley-Terry"

    def probability(self, t: Any) -> FloatArray:
        """Return F(t), the probability that the first of two items is preferred.

        Examples
        --------
        >>> sech.probability([0.0, 0.5, 2.0]).round(3)
        array([0.5  , 0.728, 0.973])
        """
        return np.asarray(0.5 + self.excess(t))

    def excess(self, t: Any) -> FloatArray:
        """Return F(t) - 1/2.

        Examples
        --------
        >>> sech.excess([-0.5, 0.0, 0.5]).round(3)
        array([-0.228,  0.   ,  0.228])
        """
        return self.exact.excess(np.asarray(t, dtype=np.float64))

    def density(self, t: Any) -> FloatArray:
        """Return F'(t).

        Examples
        --------
        >>> sech.density([0.0, 1.0]).round(3)
        array([0.5  , 0.199])
        """
        return self.exact.density(np.asarray(t, dtype=np.float64))

    def integral(self, t: Any) -> FloatArray:
        """Return the integral of F - 1/2 from 0 to t, an even function.

        Examples
        --------
        >>> sech.integral([0.0, 1.0, -1.0]).round(3)
        array([0.   , 0.213, 0.213])
        """
        return self.exact.integral(np.asarray(t, dtype=np.float64))


class _Own:
    """Forms of a user-defined link; beyond `edge` log F continues as a line."""

    accuracy = ASSUMED_ACCURACY / UNIT_ROUNDOFF

    def __init__(self, link: Link, edge: float) -> None:
        self._link = link
        self._edge = edge
        # F' <= kappa1 F (1 - F), u <= u(t) + u(-t) = F' / (F (1 - F)), and 0 <= h <= kappa2
        self.peak = 0.25 * link.kappa1
        self.steepest = float(link.kappa1)
        self.asymmetry = float(link.kappa2)
        self.far = _tail(link.cdf, FARTHEST, edge)
        self.integral = Antiderivatives(self.density, _tail(link.cdf, 1e-18, edge)).second

    def _lower(self, t: FloatArray) -> FloatArray:
        """Return F(-|t|), the tail that is computed accurately."""
        return _evaluate(self._link.cdf, np.maximum(-np.abs(t), -self._edge))

    def excess(self, t: FloatArray) -> FloatArray:
        # exactly odd, whatever the rounding of cdf
        return np.copysign(0.5 - self._lower(t), t)

    def density(self, t: FloatArray) -> FloatArray:
        # a fit uses only arguments covered by the checks, so it raises no errors or warnings
        return _evaluate(self._link.pdf, np.clip(t, -self._edge, self._edge))

    def variance(self, t: FloatArray) -> FloatArray:
        lower = self._lower(t)
        return np.asarray(lower * (1.0 - lower))

    def ratio(self, t: FloatArray) -> FloatArray:
        inside = np.clip(t, -self._edge, self._edge)
        return np.asarray(self.density(inside) / _evaluate(self._link.cdf, inside))

    def log_cdf(self, t: FloatArray) -> FloatArray:
        lower = self._lower(t)
        inside = np.where(t < 0, np.log(lower), np.log1p(-lower))
        return np.asarray(inside + self.ratio(t) * np.minimum(t + self._edge, 0.0))

    def curvature(self, t: FloatArray) -> FloatArray:
        inside = np.clip(t, -self._edge, self._edge)
        bent = self.ratio(inside) ** 2 - _evaluate(self._link.slope, inside) / _evaluate(
            self._link.cdf, inside
        )
        return np.where(np.abs(t) > self._edge, 0.0, np.clip(bent, 0.0, self.asymmetry))


def _evaluate(function: Function, t: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray(function(t), dtype=np.float64)


def _tail(cdf: Function, probability: float, high: float) -> float:
    """Return t with cdf(-t) equal to a probability, by bisection below `high`."""
    return bisect(lambda t: float(_evaluate(cdf, np.array([-t]))[0]) > probability, 0.0, high, 100)[
        0
    ]


def _checked(link: Link) -> _Own:
    """Check the conditions of a user's link on a grid and return its forms."""
    built_in = [known.name for known in BUILT_IN]
    if not isinstance(link.name, str) or not link.name or link.name in built_in:
        raise ValueError(
            f"name must be a name for the link other than {', '.join(map(repr, built_in))}, got "
            f"{link.name!r}."
        )
    for constant in ("kappa1", "kappa2"):
        check_number(constant, getattr(link, constant), 0, math.inf, "()")
    try:
        values = [
            _evaluate(function, np.linspace(-1.0, 1.0, 5))
            for function in (link.cdf, link.pdf, link.slope)
        ]
    except (TypeError, ValueError):
        values = [np.empty(0)]
    if not all(v.shape == (5,) and np.isfinite(v).all() for v in values):
        raise TypeError(
            f"cdf, pdf and slope of link {link.name!r} must be functions that return an array of "
            f"finite numbers with the shape of their argument."
        )
    scale = 0.25 / max(float(values[1][2]), 1e-300)  # 1 for the logistic distribution
    # A symmetric log-concave distribution has F(-t) <= exp(-2 F'(0) t) / 2: at 10^4 times its scale
    # it is far below the smallest tail. A distribution that is not log-concave has a heavier tail.
    edge = _tail(link.cdf, MIN_TAIL, 1e4 * scale)
    with np.errstate(all="ignore"):
        _check_conditions(link, scale, edge)
    return _Own(link, edge)


def _check_conditions(link: Link, scale: float, edge: float) -> None:
    """Refuse a link that breaks a condition or has inconsistent functions."""
    # a fine grid of the middle, and one that reaches the edge
    grid = np.unique(np.linspace(0.0, [min(60.0 * scale, edge), edge], 24_001))
    grid = np.concatenate((-grid[:0:-1], grid))
    cdf, pdf, slope = (_evaluate(function, grid) for function in (link.cdf, link.pdf, link.slope))
    # (log F)' = F' / F; by symmetry F' / (F (1 - F)) is its sum over t and -t
    ratio = pdf / cdf
    weight = (ratio + ratio[::-1]).max()
    # (-log F)'' = (F' / F)^2 - F'' / F
    curvature = ratio * ratio - slope / cdf

    def derives(values: FloatArray, slopes: FloatArray) -> bool:
        # increments equal the integral of the derivative, by the trapezoidal rule
        error = np.diff(values) - 0.5 * np.diff(grid) * (slopes[1:] + slopes[:-1])
        return bool(np.abs(error).max() <= 1e-8 * np.abs(values).max())

    conditions = [
        (
            np.abs(cdf + cdf[::-1] - 1.0).max() <= 1e-9,
            "breaks A0: F(t) + F(-t) must be 1 for every t, because the order in which a pair's "
            "items are named must not matter",
        ),
        (
            (np.diff(cdf) >= -1e-12).all() and (pdf >= 0).all() and pdf[len(grid) // 2] > 0,
            "breaks A0: F must increase everywhere, and on an interval it does not",
        ),
        (derives(cdf, pdf), "is inconsistent: pdf must be the derivative of cdf"),
        (
            derives(pdf, slope),
            "is inconsistent: slope must be the derivative of pdf",
        ),
        (
            weight <= link.kappa1 * (1 + 1e-9),
            f"breaks A1: F' / (F (1 - F)) must be at most kappa1 = {link.kappa1:g} everywhere, "
            f"and it reaches {weight:.6g}",
        ),
        (
            curvature.min() >= -1e-9 * ratio.max() ** 2,
            "breaks A2: F must be log-concave, and (-log F)'' is negative somewhere",
        ),
        (
            curvature.max() <= link.kappa2 * (1 + 1e-9),
            f"breaks A2: (-log F)'' must be at most kappa2 = {link.kappa2:g} everywhere, and it "
            f"reaches {curvature.max():.6g}",
        ),
    ]
    refuse_if(*((not holds, f"link {link.name!r} {rule}.") for holds, rule in conditions))


LOGIT = Link("logit", expit, logit_density, logit_slope, 1.0, 0.25, _Logit())

PROBIT = Link("probit", ndtr, probit_density, probit_slope, math.inf, 1.0, _Probit())

BUILT_IN = (LOGIT, PROBIT)


def find(link: object) -> Link:
    """Return a link by its name; return a :class:`Link` unchanged."""
    if isinstance(link, Link):
        return link
    named = {known.name: known for known in BUILT_IN}
    if isinstance(link, str) and link in named:
        return named[link]
    raise ValueError(
        f"link must be one of {', '.join(map(repr, named))} or a privrank.Link, got {quoted(link)}."
    )
