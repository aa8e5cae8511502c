"""The numpy types of the protocol's datatypes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from alipes import _core

if TYPE_CHECKING:
    import numpy as np

__all__ = ["numpy_type"]


@cache
def numpy_type(datatype: str) -> np.dtype[Any] | None:
    """The numpy type of a datatype of fixed size; `None` for `BYTES`, for `BF16`, which numpy lacks, and for others."""
    import numpy as np

    names = {row.name: row.numpy_name for row in _core.datatypes() if row.size is not None}
    name = names.get(datatype)
    return None if name is None else np.dtype(name)
