"""Tensors that are named by their place in a region."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from alipes.client import Client, FakeServer, RegionTensor
from alipes.client.signature import Signature, TensorSpec
from alipes.errors import InvalidArgument, Unsupported


def signature(datatype: str = "FP32") -> Signature:
    return Signature("m", {"X": TensorSpec("X", datatype, (-1, 3))}, {"Y": TensorSpec("Y", datatype, (-1, 3))})


def place(region: str, offset: int, size: int) -> dict[str, Any]:
    return {"shared_memory_region": region, "shared_memory_offset": offset, "shared_memory_byte_size": size}


@pytest.mark.parametrize(("datatype", "size"), [("FP32", 24), ("BF16", 12), ("INT64", 48), ("UINT8", 6)])
def test_an_input_is_sent_as_its_place(datatype: str, size: int) -> None:
    sent = signature(datatype).tensors({"X": RegionTensor("r", (2, 3), offset=64)})
    assert sent == [("X", datatype, (2, 3), None, place("r", 64, size))]
    assert signature(datatype).tensors(RegionTensor("r", [2, 3], 64)) == sent


def test_text_needs_the_number_of_its_bytes() -> None:
    assert signature("BYTES").tensors(RegionTensor("r", (1, 3), byte_size=99))[0][4] == place("r", 0, 99)
    with pytest.raises(InvalidArgument, match="'X' of model 'm' needs its byte_size, as BYTES has any"):
        signature("BYTES").tensors(RegionTensor("r", (1, 3)))


def test_an_input_has_the_declared_shape() -> None:
    with pytest.raises(InvalidArgument, match=r"takes the shape \[-1,3\], the array has \[2,4\]"):
        signature().tensors(RegionTensor("r", (2, 4)))
    with pytest.raises(InvalidArgument, match="the RegionTensor for 'X' of model 'm' needs its shape"):
        signature().tensors(RegionTensor("r", byte_size=24))


def test_a_place_that_is_none_is_refused() -> None:
    wrong: list[dict[str, Any]] = [
        {"region": ""},
        {"region": "r", "offset": -1},
        {"region": "r", "byte_size": 1.5},
        {"region": "r", "shape": (2, -1)},
        {"region": "r", "shape": (True,)},
    ]
    for arguments in wrong:
        with pytest.raises(InvalidArgument, match="RegionTensor"):
            RegionTensor(**arguments)


def test_an_output_that_was_written_has_its_shape() -> None:
    room = RegionTensor("r", offset=64, byte_size=4096)
    spec = signature().outputs["Y"]
    assert room.place("m", spec) == place("r", 64, 4096)
    assert room.with_output(spec, (2, 3)) == RegionTensor("r", (2, 3), 64, 24)
    with pytest.raises(InvalidArgument, match="'Y' of model 'm' needs its shape or its byte_size"):
        RegionTensor("r").place("m", spec)


def test_a_transport_has_no_regions() -> None:
    client = Client(transport=FakeServer({"m": lambda x: x}))
    for inputs, outputs in (
        (RegionTensor("r", (1, 3)), None),
        ({"X": RegionTensor("r", (1, 3))}, None),
        (np.ones((1, 3), np.float32), {"Y": RegionTensor("r", (1, 3))}),
    ):
        with pytest.raises(Unsupported, match="a transport has no shared memory"):
            client.infer("m", inputs, outputs=outputs)
