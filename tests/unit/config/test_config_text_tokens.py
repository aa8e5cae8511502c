"""Numbers and strings as protobuf's parser in C++ reads them: what `protoc --encode` says of the same texts."""

from __future__ import annotations

import pytest
from alipes.config.pbtxt import parse_pbtxt
from alipes.errors import ConfigError
from google import protobuf


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x10", 16),
        ("0X1f", 31),
        ("010", 8),
        ("-4", -4),
        ("- 4", -4),
        ("-\t# how many\n  4", -4),
        ("- 0x10", -16),
        ("-0", 0),
    ],
)
def test_a_whole_number_is_read(text: str, value: int) -> None:
    assert parse_pbtxt(f"max_batch_size: {text}").max_batch_size == value


@pytest.mark.parametrize(
    ("text", "value"), [(".5", 0.5), ("5.", 5), ("5e-1f", 0.5), ("0.5F", 0.5), ("- .5", -0.5), ("1", 1)]
)
def test_a_fraction_is_read(text: str, value: float) -> None:
    direct = parse_pbtxt(
        f"sequence_batching {{ direct {{ minimum_slot_utilization: {text} }} }}"
    ).sequence_batching.direct
    assert direct.minimum_slot_utilization == value


@pytest.mark.parametrize(
    "text", ["1_000", "0b11", "0o17", "+4", "4input", "1e", "09", "1e3", "4.0", "\uff14", "--4", "- - 4"]
)
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"failed to read text proto from the text: 2:17: "):
        parse_pbtxt(f'name: "m"\nmax_batch_size: {text}')


OLDER = tuple(map(int, protobuf.__version__.split(".")[:2])) < (6, 30)


@pytest.mark.parametrize(
    "text",
    [
        *("1_0.5", "+.5", "0x1", "1.5.2"),
        pytest.param("01", marks=pytest.mark.skipif(OLDER, reason="the parser in Python took it before protobuf 6.30")),
    ],
)
def test_what_is_no_fraction_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="failed to read text proto"):
        parse_pbtxt(f"sequence_batching {{ direct {{ minimum_slot_utilization: {text} }} }}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\x41\102\t\"\'\\d\?"', "AB\t\"'\\d?"),
        (r"'it\'s' ", "it's"),
        (r'"\u00e9\U0001F600"', "\u00e9\U0001f600"),
        ('"a" "b"\n\'c\'', "abc"),
        ('"1_000 + - 4 # four" # "', "1_000 + - 4 # four"),
        ('"é"', "é"),
        (r'"\\"', "\\"),
    ],
)
def test_a_string_is_read(text: str, value: str) -> None:
    assert parse_pbtxt(f"name: {text} max_batch_size: 4" if "#" not in text else f"name: {text}").name == value


@pytest.mark.parametrize(
    ("text", "column"), [(r'"a\d+"', 9), (r'"\8"', 8), (r'"\x"', 8), (r'"\u12"', 8), (r'"\U00200000"', 8)]
)
def test_an_escape_that_protobuf_lacks_is_refused_where_it_stands(text: str, column: int) -> None:
    with pytest.raises(ConfigError, match="invalid escape sequence") as caught:
        parse_pbtxt(f"\n\nname: {text}")
    assert f": 3:{column}: " in str(caught.value)
    assert caught.value.line == 3
