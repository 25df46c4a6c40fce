"""Arrays that may be kept: read-only copies with no way back to what they were made from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["own"]


def own(values: Any, dtype: Any) -> NDArray[Any]:
    """Return a read-only array that owns its memory, so that no `base` leads back to data."""
    array = np.array(values, dtype=dtype, copy=True)
    array.setflags(write=False)
    return array
