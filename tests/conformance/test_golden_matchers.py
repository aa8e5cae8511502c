"""The comparison behind the replay finds what differs, and only that."""

from __future__ import annotations

from typing import Any

import pytest
from golden.matchers import begin_scenario, differences

_SAME: list[tuple[Any, Any]] = [
    (1, 1.0000001),
    (None, None),
    ("read {tmp}/x: no such file", "read /tmp/a-1/x: no such file"),
    ({"a": [1, {"b": True}]}, {"a": [1, {"b": True}]}),
    ({"$any": "int"}, 3),
    ({"$any": "int"}, "-3"),
    ({"$any": "digits"}, "163"),
    ({"$any": "number"}, 0.5),
    ({"$any": "string"}, ""),
    ({"$any": "object"}, {}),
    ({"$any": "any"}, None),
    ({"$re": r"\d+\.\d+"}, "0.1"),
    ({"$contains": "b"}, "abc"),
    ({"$oneof": [500, 400]}, 400),
    ({"$set": [1, {"$any": "string"}]}, ["x", 1]),
    ({"$subset": {"a": 1}}, {"a": 1, "b": 2}),
    ({"a": {"$optional": 1}}, {"a": 1}),
    ({"a": {"$optional": 1}}, {}),
]

_DIFFERENT: list[tuple[Any, Any]] = [
    (1, 1.1),
    (1, True),
    (0, None),
    (None, {}),
    ("read {tmp}/x", "read /tmp/a b/x"),
    ("text", "Text"),
    ({"a": 1}, {}),
    ({"a": 1}, {"a": 1, "b": 2}),
    ({"a": 1}, [1]),
    ([1, 2], [1]),
    ([1], [1, 2]),
    ({"$any": "int"}, True),
    ({"$any": "int"}, 0.5),
    ({"$any": "digits"}, 163),
    ({"$any": "string"}, None),
    ({"$any": "object"}, []),
    ({"$re": r"\d+"}, "1x"),
    ({"$contains": "b"}, "ac"),
    ({"$contains": "b"}, ["b"]),
    ({"$oneof": [500, 400]}, 200),
    ({"$set": [1, 1]}, [1, 2]),
    ({"$set": [1]}, [1, 1]),
    ({"$set": [1]}, {"a": 1}),
    ({"$subset": {"a": 1}}, {"b": 1}),
    ({"$subset": {}}, None),
    ({"a": {"$optional": 1}}, {"a": 2}),
]


@pytest.mark.parametrize(("expected", "actual"), _SAME)
def test_same(expected: Any, actual: Any) -> None:
    assert list(differences(expected, actual)) == []


@pytest.mark.parametrize(("expected", "actual"), _DIFFERENT)
def test_different(expected: Any, actual: Any) -> None:
    assert list(differences(expected, actual)) != []


def test_every_difference_is_reported_with_its_path() -> None:
    expected = {"outputs": [{"name": "Y", "data": [1, 2]}]}
    actual = {"outputs": [{"name": "Z", "data": [1, 3]}], "id": "1"}
    assert list(differences(expected, actual, "body")) == [
        'body.outputs[0].name: expected "Y", got "Z"',
        "body.outputs[0].data[1]: expected 2, got 3",
        'body.id: not expected, got "1"',
    ]


def test_unknown_matcher_is_an_error_not_a_pass() -> None:
    with pytest.raises(KeyError, match="nosuch"):
        list(differences({"$nosuch": 1}, 1))


def test_a_name_stands_for_one_value_until_the_next_scenario() -> None:
    begin_scenario()
    named = {"$same": "a"}
    assert list(differences([named, {"$same": "b"}, named], [1, 2, 1])) == []
    assert list(differences(named, 2)) == [": expected 1, got 2"]
    begin_scenario()
    assert list(differences(named, 2)) == []
