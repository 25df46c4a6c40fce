"""The former name of the module of :func:`privrank.util.arrays.immutable`."""

from privrank.util.arrays import immutable as immutable
