from __future__ import annotations

import numpy as np
import pytest
from alipes.config.datatypes import INVALID, config_name, config_number, element_bytes, numpy_name, v2_name
from alipes.config.schema import enum_names

NUMBERS = sorted(enum_names("inference.DataType"))


@pytest.mark.parametrize("number", NUMBERS[1:])
def test_every_datatype_has_a_v2_name_and_is_found_by_it(number: int) -> None:
    assert config_number(v2_name(number)) == number
    assert config_name(number) == enum_names("inference.DataType")[number]
    assert (element_bytes(number) is None) == (v2_name(number) == "BYTES")


def test_strings_are_bytes_on_the_wire() -> None:
    assert (v2_name(config_number("BYTES")), config_name(config_number("BYTES"))) == ("BYTES", "TYPE_STRING")


@pytest.mark.parametrize("number", [0, 99, -1])
def test_what_is_no_datatype_says_so(number: int) -> None:
    assert (config_name(number), v2_name(number), element_bytes(number)) == ("TYPE_INVALID", "<invalid>", None)


@pytest.mark.parametrize("name", ["", "STRING", "fp32", "TYPE_FP32"])
def test_an_unknown_name_has_no_number(name: str) -> None:
    assert config_number(name) == INVALID


@pytest.mark.parametrize(("name", "size"), [("BOOL", 1), ("FP16", 2), ("BF16", 2), ("INT32", 4), ("FP64", 8)])
def test_element_sizes(name: str, size: int) -> None:
    assert element_bytes(config_number(name)) == size


@pytest.mark.parametrize("number", NUMBERS[1:])
def test_numpy_elements_have_the_same_size(number: int) -> None:
    name = numpy_name(number)
    if name is None:
        assert v2_name(number) == "BF16"
    elif name != "object":
        assert np.dtype(name).itemsize == element_bytes(number)
