from __future__ import annotations

import pytest
from alipes.config.flags import Kind, Value
from alipes.config.values import parse_value
from alipes.errors import ConfigError


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("bool", "true", True),
        ("bool", "1", True),
        ("bool", "ON", True),
        ("bool", "False", False),
        ("bool", "0", False),
        ("bool", "off", False),
        ("level", "true", 1),
        ("level", "false", 0),
        ("level", "3", 3),
        ("int", "8000", 8000),
        ("int", "007", 7),
        ("str", "", ""),
        ("list", "a,b", "a,b"),
    ],
)
def test_a_text_is_read_as_its_kind(kind: Kind, text: str, expected: Value) -> None:
    assert parse_value("--x", kind, text) == expected


@pytest.mark.parametrize("text", ["", " 1", "1_000", "1.0", "0x10", "\uff11", "2147483648", "9" * 5000, "-1", "--1"])
def test_an_integer_is_ascii_digits_in_range(text: str) -> None:
    with pytest.raises(ConfigError, match="expected an integer from 0 to 2147483647, got"):
        parse_value("--x", "int", text)


def test_a_negative_number_is_read_where_it_is_allowed() -> None:
    assert parse_value("--x", "int", "-1", low=-1) == -1


@pytest.mark.parametrize("text", ["yes", "2", ""])
def test_a_bool_is_one_of_six_words(text: str) -> None:
    with pytest.raises(ConfigError, match="expected true or false"):
        parse_value("--x", "bool", text)


def test_a_choice_names_its_words() -> None:
    assert parse_value("--x", "choice", "b", choices=("a", "b")) == "b"
    with pytest.raises(ConfigError, match="expected one of a, b, got 'c'"):
        parse_value("--x", "choice", "c", choices=("a", "b"))


@pytest.mark.parametrize(("text", "expected"), [("0", 0.0), ("30", 30.0), ("0.25", 0.25)])
def test_seconds_may_have_a_fraction(text: str, expected: float) -> None:
    assert parse_value("--x", "seconds", text) == expected


@pytest.mark.parametrize("text", ["", "-1", "1e9", "inf", "ten"])
def test_anything_else_is_no_time(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected seconds, such as 30 or 0\.5, got"):
        parse_value("--x", "seconds", text)
