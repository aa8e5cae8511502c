"""Compares an expectation with an answer and says where they differ."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# An expected text may hold these for a path that differs from run to run.
_PATHS = ("{repository}", "{tmp}", "{backend_directory}")
_LONGEST_SHOWN = 200

_KINDS: dict[str, Callable[[Any], bool]] = {
    "int": lambda value: _is_number(value, int) or (isinstance(value, str) and bool(re.fullmatch(r"-?\d+", value))),
    "digits": lambda value: isinstance(value, str) and value.isdecimal(),
    "number": lambda value: _is_number(value, (int, float)),
    "string": lambda value: isinstance(value, str),
    "list": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "any": lambda value: True,
}


# The values that names stand for, in the scenario that is played.
_named: dict[str, Any] = {}


def begin_scenario() -> None:
    """Names stand for nothing yet."""
    _named.clear()


def differences(expected: Any, actual: Any, at: str = "") -> Iterator[str]:
    """Every difference, each with the place ``at`` which it is; none where the answer is as expected."""
    if isinstance(expected, dict) and len(expected) == 1 and next(iter(expected)).startswith("$"):
        ((kind, wanted),) = expected.items()
        yield from _MATCHERS[kind](wanted, actual, at)
    elif isinstance(expected, dict) and isinstance(actual, dict):
        yield from _objects(expected, actual, at)
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{at}: expected {len(expected)} items, got {_shown(actual)}"
        for index, pair in enumerate(zip(expected, actual, strict=False)):
            yield from differences(*pair, f"{at}[{index}]")
    elif not _equal(expected, actual):
        yield _unlike(expected, actual, at)


def _objects(expected: Mapping[str, Any], actual: Mapping[str, Any], at: str) -> Iterator[str]:
    yield from _subset(expected, actual, at)
    for key in actual.keys() - expected.keys():
        yield f"{at}.{key}: not expected, got {_shown(actual[key])}"


def _subset(wanted: Mapping[str, Any], actual: Any, at: str) -> Iterator[str]:
    if not isinstance(actual, dict):
        yield _unlike(wanted, actual, at)
        return
    for key, value in wanted.items():
        if key in actual:
            yield from differences(value, actual[key], f"{at}.{key}")
        elif not (isinstance(value, dict) and "$optional" in value):
            yield f"{at}.{key}: missing, expected {_shown(value)}"


def _any(wanted: str, actual: Any, at: str) -> Iterator[str]:
    if not _KINDS[wanted](actual):
        yield _unlike(wanted, actual, at)


def _pattern(wanted: str, actual: Any, at: str) -> Iterator[str]:
    if not isinstance(actual, str) or not re.fullmatch(wanted, actual, re.DOTALL):
        yield _unlike(wanted, actual, at)


def _contains(wanted: str, actual: Any, at: str) -> Iterator[str]:
    if not isinstance(actual, str) or wanted not in actual:
        yield _unlike(wanted, actual, at)


def _one_of(wanted: list[Any], actual: Any, at: str) -> Iterator[str]:
    if not any(_same(option, actual) for option in wanted):
        yield _unlike(wanted, actual, at)


def _named_value(name: str, actual: Any, at: str) -> Iterator[str]:
    if not _equal(_named.setdefault(name, actual), actual):
        yield _unlike(_named[name], actual, at)


def _set(wanted: list[Any], actual: Any, at: str) -> Iterator[str]:
    if not isinstance(actual, list):
        yield _unlike(wanted, actual, at)
        return
    surplus = list(actual)
    for item in wanted:
        found = next((index for index, other in enumerate(surplus) if _same(item, other)), None)
        if found is None:
            yield f"{at}: missing {_shown(item)}"
        else:
            del surplus[found]
    for item in surplus:
        yield f"{at}: not expected {_shown(item)}"


_MATCHERS: dict[str, Callable[[Any, Any, str], Iterator[str]]] = {
    "$any": _any,
    "$contains": _contains,
    "$oneof": _one_of,
    "$optional": differences,
    "$re": _pattern,
    "$same": _named_value,
    "$set": _set,
    "$subset": _subset,
}


def _same(expected: Any, actual: Any) -> bool:
    return next(differences(expected, actual), None) is None


def _equal(expected: Any, actual: Any) -> bool:
    if isinstance(expected, str) and isinstance(actual, str):
        return _equal_texts(expected, actual)
    if _is_number(expected, (int, float)) and _is_number(actual, (int, float)):
        return bool(expected == actual) or math.isclose(expected, actual, rel_tol=1e-5, abs_tol=1e-9)
    return type(expected) is type(actual) and bool(expected == actual)


def _equal_texts(expected: str, actual: str) -> bool:
    if not any(mark in expected for mark in _PATHS):
        return expected == actual
    pattern = re.escape(expected)
    for mark in _PATHS:
        pattern = pattern.replace(re.escape(mark), r"[^\s'\"]*")
    return re.fullmatch(pattern, actual, re.DOTALL) is not None


def _is_number(value: Any, kinds: type | tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


def _unlike(expected: Any, actual: Any, at: str) -> str:
    return f"{at}: expected {_shown(expected)}, got {_shown(actual)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
