"""Links of paired comparisons: P(item1 preferred) = F(worth1 - worth2), F symmetric about 0.

The conditions on F, numbered as by Cai, Chakraborty and Wang (2023):

- A0: F is symmetric, F(t) + F(-t) = 1, and increasing;
- A1: F' / (F (1 - F)) <= kappa1;
- A2: F is log-concave with 0 <= (-log F)'' <= kappa2.

**Forms.** Those of the built-in links are closed, and stable in both tails. In the docstrings
u = F' / F and h = (-log F)'' = u^2 - F'' / F.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, erfcx, expit, log_expit, log_ndtr, ndtr

from privrank.util.checks import quoted
from privrank.util.solvers import bracket

__all__ = [
    "BUILT_IN",
    "FARTHEST",
    "LEAST_TAIL",
    "LOGIT",
    "PROBIT",
    "UNIT_ROUNDOFF",
    "Antiderivatives",
    "Link",
    "find",
]

FloatArray = NDArray[np.float64]


Function = Callable[[FloatArray], FloatArray]


FARTHEST = math.exp(-28.0)
"""Chance of an upset below which a contrast counts as infinite.

A finite fit has expected losses of at least half a win on each side of any cut; n exp(-28) falls
short of that for every n below 10^11.
"""


GAUSS = np.polynomial.legendre.leggauss(10)
"""Nodes and weights of Gauss's rule for an integral over [-1, 1]."""

LEAST_TAIL = 1e-290
"""Chances below this are no longer told apart; -log F goes on as a straight line there."""


@dataclass(frozen=True, slots=True)
class Forms:
    """What is computed of a link, in forms that are stable in both tails.

    Parameters
    ----------
    excess, integral : callable
        F - 1/2, and its integral from 0.
    density, variance : callable
        F', and F (1 - F).
    log_cdf, ratio, bend : callable
        log F, u = F' / F, and h = (-log F)''.
    peak, steepest, swing : float
        Upper bounds of F', of u, and of h(t) - h(-t).
    far : float
        Contrast at which the chance of an upset is `FARTHEST`.
    accuracy : float
        Errors of `excess`, and of `ratio` over `steepest`, with the rounding of their argument, a
        difference of two worths, and of their product with a count: at most this many unit
        roundoffs.
    """

    excess: Function
    integral: Function
    density: Function
    variance: Function
    log_cdf: Function
    ratio: Function
    bend: Function
    peak: float
    steepest: float
    swing: float
    far: float
    accuracy: float


# --- logit ---


def _logit_excess(t: FloatArray) -> FloatArray:
    return np.asarray(0.5 * np.tanh(0.5 * t))


def _logit_integral(t: FloatArray) -> FloatArray:
    # log cosh(t / 2), written so that no large exponential is formed
    size = np.abs(t)
    return np.asarray(0.5 * size + np.log1p(np.exp(-size)) - math.log(2.0))


def _logit_density(t: FloatArray) -> FloatArray:
    odds = np.exp(-np.abs(t))
    return np.asarray(odds / (1.0 + odds) ** 2)


def logit_slope(t: FloatArray) -> FloatArray:
    """Return F'' of the logistic distribution."""
    return np.asarray(-2.0 * _logit_density(t) * _logit_excess(t))


def _logit_ratio(t: FloatArray) -> FloatArray:
    return np.asarray(expit(-t))


# --- probit ---


def _probit_excess(t: FloatArray) -> FloatArray:
    return np.asarray(0.5 * erf(t * math.sqrt(0.5)))


def _probit_integral(t: FloatArray) -> FloatArray:
    return np.asarray(t * _probit_excess(t) + np.expm1(-0.5 * t * t) / math.sqrt(2.0 * math.pi))


def _probit_density(t: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi))


def probit_slope(t: FloatArray) -> FloatArray:
    """Return F'' of the normal distribution."""
    return np.asarray(-t * _probit_density(t))


def _probit_variance(t: FloatArray) -> FloatArray:
    return np.asarray(ndtr(t) * ndtr(-t))


def _probit_ratio(t: FloatArray) -> FloatArray:
    # Mills' ratio by the scaled error function, infinite far above 0 where the ratio vanishes
    return np.asarray(math.sqrt(2.0 / math.pi) / erfcx(-t * math.sqrt(0.5)))


def _probit_bend(t: FloatArray) -> FloatArray:
    ratio = _probit_ratio(t)
    # far below 0 the two summands cancel: h lies between 0 and 1
    return np.clip(ratio * (ratio + t), 0.0, 1.0)


# --- integrals of even functions ---


class Antiderivatives:
    """The first and second integrals from 0 of an even, fast falling function.

    Gauss-Legendre quadrature on panels out to `reach`, beyond which the function counts as 0.

    Parameters
    ----------
    function : callable
        An even function, smooth on the scale of a panel.
    reach : float
        Where the function has become negligible.
    """

    __slots__ = ("_function", "_moment", "_nodes", "_reach", "_total", "_weights", "_width")

    PANELS = 256

    def __init__(self, function: Function, reach: float) -> None:
        nodes, weights = GAUSS
        self._function, self._reach, self._width = function, reach, reach / self.PANELS
        self._nodes, self._weights = 0.5 + 0.5 * nodes, 0.5 * weights
        starts = self._width * np.arange(self.PANELS)
        points = starts[:, None] + self._width * self._nodes
        values = self._width * self._weights * function(points)
        self._total = np.append(0.0, np.cumsum(values.sum(axis=1)))
        self._moment = np.append(0.0, np.cumsum((values * points).sum(axis=1)))

    def _integrals(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return |t|, and the integrals of the function and of its product with its argument."""
        size = np.abs(np.asarray(t, dtype=np.float64))
        inside = np.minimum(size, self._reach)
        panel = np.minimum((inside / self._width).astype(np.int64), self.PANELS)
        start = panel * self._width
        points = start[..., None] + (inside - start)[..., None] * self._nodes
        values = (inside - start)[..., None] * self._weights * self._function(points)
        first = self._total[panel] + values.sum(axis=-1)
        return size, first, self._moment[panel] + (values * points).sum(axis=-1)

    def first(self, t: FloatArray) -> FloatArray:
        """Return the integral from 0 to t, an odd function."""
        return np.copysign(self._integrals(t)[1], t)

    def second(self, t: FloatArray) -> FloatArray:
        """Return the integral of the first integral, an even function."""
        size, first, moment = self._integrals(t)
        return np.asarray(size * first - moment)


LOGIT_FORMS = Forms(
    excess=_logit_excess,
    integral=_logit_integral,
    density=_logit_density,
    variance=_logit_density,
    log_cdf=log_expit,
    ratio=_logit_ratio,
    bend=_logit_density,
    peak=0.25,
    steepest=1.0,
    swing=0.0,
    far=28.0,
    accuracy=5.0,
)
"""F(t) = 1 / (1 + exp(-t)): F' = F (1 - F), u = F(-t) < 1, h = F' <= 1/4.

Errors: the argument u |t| F'(t) < u / 4, the halving none, tanh at most 4 u (two ulp) relative,
which is 2 u, the product with a count one more: below 5 u.
"""


PROBIT_FORMS = Forms(
    excess=_probit_excess,
    integral=_probit_integral,
    density=_probit_density,
    variance=_probit_variance,
    log_cdf=log_ndtr,
    ratio=_probit_ratio,
    bend=_probit_bend,
    peak=0.39895,
    steepest=math.inf,
    swing=1.0,
    far=7.0857,
    accuracy=5.0,
)
"""The normal distribution: u grows like |t|, without a bound; h rises to 1 in the lower tail.

Errors of excess: three roundings of the argument (difference, constant, product) at |t| F'(t) < 1/4
each, 4 u (two ulp) relative for erf, which is 2 u, and the product with a count: below 5 u.
"""


UNIT_ROUNDOFF = 2.0**-53


ASSUMED_ACCURACY = 1e-12
"""Error allowed for in the functions of a user's link, relative to their largest value."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link of your own for :class:`privrank.PrivateBTL`.

    Parameters
    ----------
    name : str
        Name of the link, as summaries and archives show it.
    cdf, pdf, slope : callable
        The distribution F, its density F' and the derivative F'' of that, each from an array to an
        array of its shape. `cdf` must be accurate in its lower tail, as by ``scipy.special.ndtr``,
        all three to twelve digits.
    kappa1 : float
        Upper bound of F' / (F (1 - F)).
    kappa2 : float
        Upper bound of the second derivative of -log F.

    Raises
    ------
    ValueError, TypeError
        In one sentence, if F breaks a condition: A0, symmetric (F(t) + F(-t) = 1) and increasing;
        A1, the bound `kappa1`; A2, log-concave and the bound `kappa2`. Cauchy's distribution breaks
        A2, the complementary log-log A0, the normal distribution A1 (``link="probit"`` is built in
        all the same).

    Notes
    -----
    **Privacy.** Of a link of your own, method ``"objective"`` rests on `kappa1` and `kappa2`. They
    are checked on a fine grid that reaches far into the tails, which is no proof: they must hold
    everywhere. Method ``"counts"`` needs no property of a link at all.

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
    forms: Forms | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the conditions and prepare what is computed of a link."""
        if self.forms is None:
            object.__setattr__(self, "forms", _checked(self))

    @property
    def model(self) -> str:
        """Whose model of paired comparisons it is."""
        return "Thurstone" if self.name == "probit" else "Bradley-Terry"

    @property
    def exact(self) -> Forms:
        """The forms, of which a finished link always has some."""
        assert self.forms is not None
        return self.forms

    def probability(self, t: Any) -> FloatArray:
        """Return F(t), the probability that the first of two items is preferred."""
        return np.asarray(0.5 + self.excess(t))

    def excess(self, t: Any) -> FloatArray:
        """Return F(t) - 1/2."""
        return self.exact.excess(np.asarray(t, dtype=np.float64))

    def density(self, t: Any) -> FloatArray:
        """Return F'(t)."""
        return self.exact.density(np.asarray(t, dtype=np.float64))

    def integral(self, t: Any) -> FloatArray:
        """Return the integral of F - 1/2 from 0 to t, an even function."""
        return self.exact.integral(np.asarray(t, dtype=np.float64))


def _own_excess(cdf: Function, t: FloatArray) -> FloatArray:
    # exactly odd, whatever the rounding of cdf
    return np.copysign(0.5 - cdf(-np.abs(t)), t)


def _own_variance(cdf: Function, t: FloatArray) -> FloatArray:
    lower = cdf(-np.abs(t))
    return np.asarray(lower * (1.0 - lower))


def _own_ratio(cdf: Function, pdf: Function, edge: float, t: FloatArray) -> FloatArray:
    inside = np.clip(t, -edge, edge)
    return np.asarray(pdf(inside) / cdf(inside))


def _own_log_cdf(cdf: Function, pdf: Function, edge: float, t: FloatArray) -> FloatArray:
    inside = np.maximum(t, -edge)
    below = np.log(cdf(np.minimum(inside, 0.0)))
    above = np.log1p(-cdf(-np.maximum(inside, 0.0)))
    line = _own_ratio(cdf, pdf, edge, t) * np.where(t < -edge, t + edge, 0.0)
    return np.asarray(np.where(t < 0, below, above) + line)


def _own_bend(
    cdf: Function, pdf: Function, slope: Function, edge: float, most: float, t: FloatArray
) -> FloatArray:
    inside = np.clip(t, -edge, edge)
    below = cdf(inside)
    bend = np.clip((pdf(inside) / below) ** 2 - slope(inside) / below, 0.0, most)
    return np.where(np.abs(t) > edge, 0.0, bend)


def _tail(cdf: Function, chance: float, high: float) -> float:
    """Return the t at which cdf(-t) has fallen to `chance`, by bisection below `high`."""
    return bracket(lambda t: float(cdf(np.array([-t]))[0]) > chance, 0.0, high, 100)[0]


def _checked(link: Link) -> Forms:
    """Check the conditions of a user's link on a grid and return its forms."""
    taken = [known.name for known in BUILT_IN]
    if not isinstance(link.name, str) or not link.name or link.name in taken:
        raise ValueError(
            f"name must be a word for the link other than {', '.join(map(repr, taken))}, got "
            f"{link.name!r}."
        )
    for constant in ("kappa1", "kappa2"):
        bound = getattr(link, constant)
        real = isinstance(bound, int | float | np.number) and not isinstance(bound, bool)
        if not real or not 0 < bound < math.inf:
            raise ValueError(f"{constant} must be a positive number, got {quoted(bound)}.")
    with np.errstate(all="ignore"):
        scale, edge = _span(link)
        _check_distribution(link, scale, edge)
    # a fit sees no other arguments than the checks did, so that it can raise or warn of none
    cdf, pdf, slope = (partial(_within, f, edge) for f in (link.cdf, link.pdf, link.slope))
    return Forms(
        excess=partial(_own_excess, cdf),
        integral=Antiderivatives(pdf, _tail(cdf, 1e-18, edge)).second,
        density=pdf,
        variance=partial(_own_variance, cdf),
        log_cdf=partial(_own_log_cdf, cdf, pdf, edge),
        ratio=partial(_own_ratio, cdf, pdf, edge),
        bend=partial(_own_bend, cdf, pdf, slope, edge, float(link.kappa2)),
        # F' <= kappa1 F (1 - F), and u is at most u(t) + u(-t) = F' / (F (1 - F))
        peak=0.25 * link.kappa1,
        steepest=float(link.kappa1),
        # 0 <= h <= kappa2
        swing=float(link.kappa2),
        far=_tail(cdf, FARTHEST, edge),
        accuracy=ASSUMED_ACCURACY / UNIT_ROUNDOFF,
    )


def _evaluate(function: Function, t: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        return np.asarray(function(t), dtype=np.float64)


def _within(function: Function, edge: float, t: FloatArray) -> FloatArray:
    return _evaluate(function, np.clip(t, -edge, edge))


def _span(link: Link) -> tuple[float, float]:
    """Return the scale of a distribution, 1 for the logistic, and the end of its tail.

    A symmetric log-concave distribution has F(-t) <= exp(-2 F'(0) t) / 2, far below the least tail
    at the ten thousandth scale; a tail that is not below it there is heavier.
    """
    try:
        values = [_evaluate(f, np.linspace(-1.0, 1.0, 5)) for f in (link.cdf, link.pdf, link.slope)]
    except (TypeError, ValueError):
        values = []
    if not all(v.shape == (5,) and np.isfinite(v).all() for v in values) or not values:
        raise TypeError(
            f"cdf, pdf and slope of link {link.name!r} must be functions that return an array of "
            f"finite numbers of the shape of their argument."
        )
    if not values[1][2] > 0:
        raise ValueError(
            f"link {link.name!r} breaks A0: F must increase everywhere, and its density at 0 is "
            f"not positive."
        )
    scale = 0.25 / float(values[1][2])
    return scale, _tail(partial(_evaluate, link.cdf), LEAST_TAIL, 1e4 * scale)


def _check_distribution(link: Link, scale: float, edge: float) -> None:
    """Refuse a link that breaks a condition somewhere on a grid, or whose functions disagree."""
    grid = np.linspace(0.0, min(60.0 * scale, edge), 24_001)
    grid = np.unique(np.concatenate((grid, np.linspace(0.0, edge, 24_001))))
    grid = np.concatenate((-grid[:0:-1], grid))
    cdf, pdf, slope = (_evaluate(f, grid) for f in (link.cdf, link.pdf, link.slope))
    name = f"link {link.name!r}"
    if not np.abs(cdf + cdf[::-1] - 1.0).max() <= 1e-9:
        raise ValueError(
            f"{name} breaks A0: F(t) + F(-t) must be 1 for every t, or the order in which a "
            f"pair's items are named would matter."
        )
    if not ((np.diff(cdf) >= -1e-12).all() and (pdf >= 0).all()):
        raise ValueError(f"{name} breaks A0: F must increase everywhere, and it falls somewhere.")
    _check_derivatives(link, scale)
    ratio = pdf / cdf
    weight = ratio + ratio[::-1]
    if not weight.max() <= link.kappa1 * (1 + 1e-9):
        raise ValueError(
            f"{name} breaks A1: F' / (F (1 - F)) must be at most kappa1 = {link.kappa1:g} "
            f"everywhere, and it reaches {weight.max():.6g}."
        )
    bend = ratio * ratio - slope / cdf
    if not bend.min() >= -1e-9 * ratio.max() ** 2:
        raise ValueError(
            f"{name} breaks A2: F must be log-concave, and the second derivative of -log F is "
            f"negative somewhere."
        )
    if not bend.max() <= link.kappa2 * (1 + 1e-9):
        raise ValueError(
            f"{name} breaks A2: the second derivative of -log F must be at most kappa2 = "
            f"{link.kappa2:g} everywhere, and it reaches {bend.max():.6g}."
        )


def _check_derivatives(link: Link, scale: float) -> None:
    """Refuse a density that is not the derivative of F, or a slope that is not the density's."""
    ends = scale * np.linspace(-30.0, 30.0, 601)
    nodes, weights = GAUSS
    half = 0.5 * (ends[1] - ends[0])
    points = (ends[:-1] + half)[:, None] + half * nodes
    for above, below, what in (
        (link.cdf, link.pdf, "pdf must be the derivative of cdf"),
        (link.pdf, link.slope, "slope must be the derivative of pdf"),
    ):
        grown = np.diff(_evaluate(above, ends))
        off = grown - half * (_evaluate(below, points) @ weights)
        if not np.abs(off).max() <= 1e-9 * np.abs(_evaluate(above, ends)).max():
            raise ValueError(f"{what}, and for link {link.name!r} it is not.")


LOGIT = Link(
    "logit", expit, LOGIT_FORMS.density, logit_slope, kappa1=1.0, kappa2=0.25, forms=LOGIT_FORMS
)


PROBIT = Link(
    "probit", ndtr, PROBIT_FORMS.density, probit_slope, kappa1=math.inf, kappa2=1.0,
    forms=PROBIT_FORMS,
)  # fmt: skip


BUILT_IN = (LOGIT, PROBIT)


def find(link: object) -> Link:
    """Return a link by its name, or a :class:`Link` as it is."""
    if isinstance(link, Link):
        return link
    for known in BUILT_IN:
        if isinstance(link, str) and link == known.name:
            return known
    names = ", ".join(repr(known.name) for known in BUILT_IN)
    raise ValueError(f"link must be one of {names} or a privrank.Link, got {quoted(link)}.")
