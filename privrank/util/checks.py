"""Argument checks; messages name the argument, the rule and the remedy.

A message may quote a word or number of the call, by :func:`quoted`. It never quotes a cell of the
data, even if data were passed instead of a word.
"""

import math
import sys
import unicodedata
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from functools import wraps
from numbers import Integral, Real
from typing import Any, Literal, TypeGuard, TypeVar, cast, get_args

import numpy as np
from numpy.typing import NDArray

SMALLEST_EPSILON = 1e-9
LARGEST_EPSILON = 1e9
"""Outside this range the noise, or its difference from the statistic, exceeds double precision."""

"""Source of noise: None for the operating system, a generator for the seeded noise of studies."""

Build = TypeVar("Build", bound=Callable[..., Any])

Ends = Literal["[]", "[)", "(]", "()"]
"""Whether the ends of an interval are included: square brackets include an end."""

LARGEST_COUNT = 2**53
"""Largest whole number up to which double precision represents all whole numbers."""


class _Unstated:
    """The default of a required keyword argument."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Show in the signature that the argument is required."""
        return "<to be stated>"


UNSTATED: Any = _Unstated()


class PrivrankWarning(UserWarning):
    """Base class for warnings about the reliability of a result.

    Warnings depend on the release and public facts alone.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import privrank as pr
    >>> rankings = pr.Mallows(["tea", "milk"], phi=0.5).rvs(20, np.random.default_rng(1))
    >>> model = pr.PrivateRankAggregation(rankings, items=["tea", "milk"])
    >>> with warnings.catch_warnings(record=True) as warned:
    ...     warnings.simplefilter("always")
    ...     result = model.fit(epsilon=0.02, rng=np.random.default_rng(1))
    >>> str(warned[0].message).partition(":")[0]
    'Too few rows'
    """


def quoted(value: object) -> str:
    """Return a plain value as in code; for all other values, which may be data, the type."""
    plain = value is None or isinstance(value, str | bool) or is_number(value)
    return repr(value) if plain else type(value).__name__


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number that a float can hold; booleans are not."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def as_list(values: object) -> list[Any] | None:
    """Return the elements of a sequence, a one-dimensional array or a series.

    None for all other values, including texts, sets, mappings, and iterators, which can be consumed
    only once.
    """
    if (
        not isinstance(values, Iterable)
        or getattr(values, "ndim", 1) != 1
        or isinstance(values, str | bytes | bytearray | Set | Mapping | Iterator)
    ):
        return None
    return list(values)


def as_numbers(values: object) -> NDArray[np.float64] | None:
    """Return a sequence of real numbers as an array; None for other values, including texts."""
    listed = as_list(values)
    known = listed is not None and all(map(is_number, listed))
    return np.array(listed, dtype=np.float64) if known else None


def as_array(values: object) -> NDArray[Any]:
    """Return an array; an empty array of objects for lists of different lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.empty(0, dtype=object)


def refuse_if(*rules: tuple[object, str], error: type[Exception] = ValueError) -> None:
    """Raise an error with the message of the first condition that is true."""
    for broken, message in rules:
        if broken:
            raise error(message)


def check_epsilon(epsilon: object, name: str = "epsilon") -> float:
    """Return an epsilon as a float in (0, inf]."""
    if not is_number(epsilon):
        raise TypeError(
            f"{name} must be a positive number (numpy.inf for the non-private run), "
            f"got {type(epsilon).__name__}."
        )
    value = float(epsilon)
    if not (SMALLEST_EPSILON <= value <= LARGEST_EPSILON or value == math.inf):
        raise ValueError(
            f"{name} must be positive, from {SMALLEST_EPSILON:g} to {LARGEST_EPSILON:g} or "
            f"numpy.inf for the non-private run, got {value}."
        )
    return value


def check_delta(delta: object, name: str = "delta") -> float:
    """Return a delta as a float in [0, 1)."""
    # minus zero is zero
    return check_number(name, delta, 0, 1, "[)") + 0.0


def check_extra(name: str, extra: object, epsilon: float) -> float | None:
    """Return an additional epsilon as a finite float; None if there is none."""
    if extra is None:
        return None
    if math.isinf(epsilon):
        raise ValueError(
            f"{name} needs a finite epsilon. With epsilon=numpy.inf everything is released at no "
            f"privacy cost: leave it out."
        )
    value = check_epsilon(extra, name)
    if math.isinf(value):
        raise ValueError(f"{name} must be finite, because it is spent in addition to epsilon.")
    return value


def check_number(name: str, value: object, low: float, high: float, ends: Ends = "[]") -> float:
    """Return a number in an interval as a float; round brackets exclude an end."""
    fine = is_number(value) and low <= value <= high
    if not fine or (ends[0] == "(" and value == low) or (ends[1] == ")" and value == high):
        raise ValueError(
            f"{name} must be a number in {ends[0]}{low:g}, {high:g}{ends[1]}, got {quoted(value)}."
        )
    return float(value)  # type: ignore[arg-type]


def check_alpha(alpha: object) -> float:
    """Return the significance level as a float in (0, 1)."""
    return check_number("alpha", alpha, 0, 1, "()")


def check_count(name: str, value: object, *, low: int = 1, high: int | None = None) -> int:
    """Return `value` as an integer in [low, high]."""
    span = f"at least {low}" if high is None else f"between {low} and {high}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer {span}, got {type(value).__name__}.")
    number = int(value)
    refuse_if(
        (
            number < low or (high is not None and number > high),
            f"{name} must be {span}, got {quoted(number)}.",
        ),
        (
            high is None and number > LARGEST_COUNT,
            f"{name} must be at most 2**53, got {quoted(number)}.",
        ),
    )
    return number


def warn(*messages: str) -> None:
    """Emit warnings at the line that called the package."""
    frame = sys._getframe()
    level = 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("privrank."):
        frame = frame.f_back
        level = level + 1
    for message in messages:
        warnings.warn(message.removeprefix("Warning: "), PrivrankWarning, stacklevel=level)


def warn_few(name: str, draws: int, alpha: float) -> None:
    """Emit a warning if no p-value from so few draws is small enough for the level."""
    if 1.0 / (draws + 1) > alpha:
        warn(
            f"{name}={draws} cannot reject at level {alpha:g}, because no p-value is below "
            f"{1.0 / (draws + 1):.3g}. Use at least {math.ceil(1.0 / alpha) - 1}."
        )


def check_choice(name: str, value: object, words: Any, kind: str = "") -> Any:
    """Return `value` if it is one of the words of a tuple or a ``Literal`` alias.

    `kind` is the kind of the data, if the allowed words depend on it.
    """
    known = words if isinstance(words, tuple) else get_args(words)
    if not isinstance(value, str) or value not in known:
        listed = ", ".join(map(repr, known)) + (kind and f" for {kind}")
        raise ValueError(f"{name} must be one of {listed}, got {quoted(value)}.")
    return value


def check_penalty(penalty: object) -> float | None:
    """Return the ridge as a number, or None for ``"auto"``."""
    if isinstance(penalty, str) and penalty == "auto":
        return None
    if not is_number(penalty) or not 0 <= penalty < math.inf:
        raise ValueError(
            f"penalty must be 'auto' or a finite number of at least 0, got {quoted(penalty)}."
        )
    return float(penalty)


def check_rng(rng: object) -> np.random.Generator | None:
    """Return `rng` if it is None (secure noise) or a Generator (seeded studies)."""
    if rng is None or isinstance(rng, np.random.Generator):
        return rng
    raise TypeError(
        f"rng must be None (secure noise, the only kind that may be published) or a "
        f"numpy.random.Generator for studies, got {type(rng).__name__}: write "
        f"numpy.random.default_rng(...) yourself if the result is not for publication."
    )


def check_fit(
    epsilon: object, delta: object, alpha: object, rng: object
) -> tuple[float, float, float]:
    """Return epsilon, delta and alpha of a fit; refuse an invalid `rng`."""
    check_rng(rng)
    return check_epsilon(epsilon), check_delta(delta), check_alpha(alpha)


def check_noisy(method: object, epsilon: float, instead: str) -> None:
    """Refuse a method that releases one random bit if epsilon is infinite."""
    if math.isinf(epsilon):
        raise ValueError(
            f"method={method!r} releases a random bit, which needs a finite epsilon. For the "
            f"non-private test use method={instead!r}."
        )


def check_flag(name: str, value: object) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__}.")
    return bool(value)


def check_items(items: object, name: str = "items") -> tuple[str, ...]:
    """Return the declared items as a tuple of at least two distinct names."""
    if (listed := as_list(items)) is None:
        raise TypeError(
            f"{name} must be a sequence of names, got {type(items).__name__}. List the names one "
            f"by one, in their order."
        )
    names = tuple(listed)
    if not all(isinstance(label, bool | np.bool_) for label in names):
        check_names(name, names)
    refuse_if(
        (
            len(names) < 2,
            f"{name} must hold at least two names, got {len(names)}.",
        ),
        (
            len({seen(label) for label in names}) != len(names),
            f"{name} must be distinct when printed, but two names differ only in spaces or type "
            f"(here {' and '.join(sorted({type(label).__name__ for label in names}))}). Rename "
            f"one.",
        ),
    )
    return names


def seen(name: object) -> str:
    """Return a name as it is read: without surrounding spaces, accents joined to their letters."""
    return " ".join(unicodedata.normalize("NFC", str(name)).split())


def check_names(name: str, values: object) -> list[str]:
    """Return a list of texts or whole numbers as texts."""
    if (names := as_list(values)) is None:
        raise TypeError(f"{name} must be a list of texts, got {type(values).__name__}.")
    if not all(isinstance(one, str | Integral) and not isinstance(one, bool) for one in names):
        raise TypeError(f"{name} must be names or whole numbers. Write other values as text.")
    return [str(one) for one in names]


def check_tolerance(tolerance: object) -> None:
    """Refuse a value that is neither None nor a total variation distance in (0, 1)."""
    if tolerance is not None:
        check_number("tolerance", tolerance, 0, 1, "()")


def check_text(name: str, value: object) -> str:
    """Return a text that can be written to a file, without unpaired surrogates."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, got {type(value).__name__}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{name} must be text, and has half of a surrogate pair. Write it again."
        ) from None
    return value


def check_name(name: object, role: str) -> None:
    """Refuse an invalid column name."""
    if not isinstance(name, str):
        raise TypeError(f"{role} must be a column name, got {type(name).__name__}.")


def first_absent(names: Iterable[Any], present: Collection[Any]) -> Any:
    """Return the first name that is not present, None if all are."""
    return next((name for name in names if name not in present), None)


def without_weights(build: Build) -> Build:
    """Refuse ``weights=``, which no class takes, with a message about the alternatives."""

    @wraps(build)
    def checked(*args: Any, **arguments: Any) -> Any:
        if "weights" in arguments:
            raise TypeError(
                "weights= is for PrivateBTL and PrivateTopK, because tests of weighted answers do "
                "not keep their level. Test within strata, and use from_counts for numbers of "
                "equal rows. See docs/weights.md."
            )
        return build(*args, **arguments)

    return cast(Build, checked)


def undeclared(what: str, argument: str) -> ValueError:
    """Return the error for items, categories or groups that are not declared."""
    return ValueError(
        f"{what} must be declared: pass {argument}=[...] with all options of the questionnaire. A "
        f"list computed from the answers, such as the categories of a pandas categorical, would "
        f"reveal the answers."
    )
