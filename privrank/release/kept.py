"""A release that was paid for is never lost: what fails after it is raised with the release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from privrank.release.release import Release


class FitError(Exception):
    """What was computed from a release failed; the budget is spent, and the release is kept here.

    The exception it was raised from (``__cause__``) says what failed.

    Parameters
    ----------
    release : Release
        What was released. It may be stored (``release.to_json()``) and read again at any time:
        nothing more is spent.
    reader : str
        The call that reads it again.

    Examples
    --------
    >>> import numpy as np
    >>> import privrank as pr
    >>> fears = pr.datasets.load_immigration()
    >>> model = pr.PrivateBTL(fears.comparisons, items=fears.items, respondent="respondent",
    ...                       max_rows=6, ties=True, design="public")
    >>> try:
    ...     result = model.fit(epsilon=1.0, rng=np.random.default_rng(1))
    ... except pr.FitError as error:  # epsilon is spent, and what it bought is not lost
    ...     result = pr.PrivateBTL.from_release(error.release, solver="lbfgs")
    >>> result.epsilon
    1.0
    """

    def __init__(self, release: Release, reader: str) -> None:
        super().__init__(release, reader)
        self.release, self.reader = release, reader

    def __str__(self) -> str:
        """Say what failed and how to go on."""
        cause = self.__cause__
        failed = "" if cause is None else f" ({type(cause).__name__}: {cause})"
        return (
            f"epsilon is spent and the release was made, but what is computed from it "
            f"failed{failed}. Nothing is lost: the release is the attribute `release` of this "
            f"error, and privrank.{self.reader} reads it again, which spends nothing."
        )


@contextmanager
def kept(release: Release, reader: str) -> Iterator[None]:
    """Raise whatever fails inside a ``with`` block as a `FitError` that holds the release.

    Every public fit computes its result in such a block, and measures a second stage in one: once
    epsilon is spent, numerics may fail, but the user can always read what was drawn. Interruptions
    pass as they are.

    Parameters
    ----------
    release, reader
        Those of the :class:`FitError`.
    """
    try:
        yield
    except Exception as error:
        raise FitError(release, reader) from error
