"""Arrays that may be kept are read-only, and no part of another."""

import numpy as np
import pytest

from privrank.util.arrays import readonly


@pytest.mark.parametrize("whole", [lambda a: a, lambda a: a.T, lambda a: a.T[::-1]])
def test_a_whole_array_is_kept_as_it_is(whole):
    array = np.ones((2, 3))
    held = readonly(whole(array))
    assert np.shares_memory(held, array)
    for part in (held, array):
        with pytest.raises(ValueError, match="read-only"):
            part[0, 0] = 7.0


@pytest.mark.parametrize(
    "part", [lambda a: a[:1], lambda a: a[:, 1:].T, lambda a: np.broadcast_to(a[0], (4, 3))]
)
def test_a_part_of_an_array_is_copied(part):
    array = np.ones((2, 3))
    held = readonly(part(array))
    assert held.base is None and not np.shares_memory(held, array)
    assert not held.flags.writeable and array.flags.writeable
    assert readonly(np.arange(3)).dtype == np.float64
