"""Arrays that may be kept are read-only, and no part of another."""

import numpy as np
import pytest

from privrank.util.arrays import readonly_copy


@pytest.mark.parametrize(
    "part",
    [
        lambda a: a,
        lambda a: a.T,
        lambda a: a[:1],
        lambda a: a[:, 1:].T,
        lambda a: np.broadcast_to(a[0], (4, 3)),
    ],
)
def test_an_array_is_copied(part):
    array = np.ones((2, 3))
    held = readonly_copy(part(array))
    assert held.base is None and not np.shares_memory(held, array)
    assert not held.flags.writeable and array.flags.writeable
    np.testing.assert_array_equal(held, part(array))
    assert readonly_copy(np.arange(3)).dtype == np.float64


@pytest.mark.parametrize("turned", [lambda a: a, lambda a: a.T])
def test_a_copy_has_the_order_of_the_array(turned):
    # products of matrices in another order are rounded differently
    array = turned(np.ones((2, 3)))
    assert readonly_copy(array).strides == array.strides
