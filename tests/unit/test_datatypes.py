"""The protocol's datatypes in numpy, and texts as they are sent."""

from __future__ import annotations

import numpy as np
import pytest
from alipes import _core
from alipes.datatypes import array_type, numpy_type, pack_texts, unpack_texts


def test_every_datatype_has_arrays_of_one_type() -> None:
    names = {row.name for row in _core.datatypes()}
    assert {name for name in names if numpy_type(name) is None} == {"BYTES", "BF16"}
    assert {name: array_type(name) for name in names - {"BYTES", "BF16"}} == {
        name: np.dtype(name.lower().replace("fp", "float")) for name in names - {"BYTES", "BF16"}
    }
    assert (array_type("BF16"), array_type("BYTES")) == (np.dtype(np.float32), np.dtype(np.object_))


def test_texts_come_out_as_they_went_in() -> None:
    texts = [b"", b"a", bytes(range(256)) * 300]
    packed = pack_texts(texts)
    assert packed[:9] == b"\0\0\0\0\x01\0\0\0a"
    assert unpack_texts(packed) == texts
    assert unpack_texts(b"") == []
    for size in (1, 5, 7, len(packed) - 1):
        with pytest.raises(ValueError, match=r"element \d ends at byte"):
            unpack_texts(packed[:size])
