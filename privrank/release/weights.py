"""Public facts of design weights."""

from dataclasses import dataclass

from privrank.util.arrays import immutable

WEIGHT_STEPS = 256
"""The largest design weight, in whole steps."""


@immutable
@dataclass(frozen=True, slots=True)
class Weights:
    """The public facts of design weights, which are fixed before any answer.

    Parameters
    ----------
    column : str
        The column that contains them.
    max_weight : float or None
        The weight at which larger ones are trimmed (declared); None if none are.
    step : float
        The weight of one of the WEIGHT_STEPS steps in which weights are counted.
    kish : float
        Effective number of units for sampling errors, by Kish: the squared sum of the weights
        divided by the sum of their squares.
    effective : float
        Effective number of units for noise: the sum of the weights divided by the largest.
    moved : float
        How far trimming and rounding can move the weighted mean of any one answer between 0 and 1
        that all units give, at most.
    cubes : float
        Sum of the cubes of the weights of all comparisons times the sum of these weights, divided
        by the square of the sum of their squares; 1 if all are equal.
    answers : int
        Number of comparisons.
    by_row : bool
        Whether rows are units. Heavy and light rows may then have other means, which nothing shows,
        so variances are the largest possible ones.
    """

    column: str
    max_weight: float | None
    step: float
    kish: float
    effective: float
    moved: float
    cubes: float
    answers: int
    by_row: bool

    @property
    def squares(self) -> float:
        """Sum of the squares of the weights of all units, relative to that of the largest."""
        return self.effective**2 / self.kish
