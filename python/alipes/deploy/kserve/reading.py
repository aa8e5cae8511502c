"""A description of KServe from values, with everything that is wrong at once, each with its place."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from alipes.autoscale.sizing import Sizing
from alipes.deploy.choices import of_choices
from alipes.deploy.kserve.description import KServe
from alipes.deploy.kserve.faults import Fault, faults_of
from alipes.deploy.kserve.sized import sized
from alipes.errors import ConfigError

__all__ = ["described"]

_MOST_SHOWN: Final = 20
"""Faults in one message; the number of the others is named."""
_PLACE: Final = re.compile(r"^(.*) - at `(key in )?\$\.?([^`]*)`$", re.DOTALL)
"""How msgspec says where a value does not fit."""
_UNKNOWN: Final = re.compile(r"Object contains unknown field `([^`]*)`")
_MISSING: Final = re.compile(r"Object missing required field `([^`]*)`")
_NO_CHOICE: Final = " is none of "
_OTHER_FORMATS: Final = "; export the model as one of these, or serve it with a runtime of KServe's own"
_STEPS: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def described(values: Mapping[str, Any], path: Path | None = None, sizing: Sizing | None = None) -> KServe:
    """The description that values make.

    Args:
        values: By their names.
        path: The file that they are from, for messages.
        sizing: Sizes that take the place of those in the values.

    Raises:
        ConfigError: If a value has another type or lies outside its bounds, a name is unknown, or values do not go
            together; with all faults, a line each, with their dotted names. If there are sizes, and the scaler does
            not look at requests.
    """
    faults, found = _read(values)
    if found is not None:
        found = found if sizing is None else sized(found, sizing)
        faults = faults_of(found)
    if faults:
        shown = [f"{fault.where}: {fault.what}" for fault in faults[:_MOST_SHOWN]]
        if len(faults) > _MOST_SHOWN:
            shown.append(f"and {len(faults) - _MOST_SHOWN} more")
        raise ConfigError("\n".join(shown), path=path, key=faults[0].where)
    assert found is not None, "values without a fault make a description"
    return found


def _read(values: Mapping[str, Any]) -> tuple[list[Fault], KServe | None]:
    """Faults of single values, and the description that they make where there are none."""
    try:
        return [], msgspec.convert(values, KServe, strict=False)
    except msgspec.ValidationError as error:
        first, _ = _fault(str(error))
    # msgspec stops at the first fault. So each value is read for itself, as the only one of its description.
    faults: list[Fault] = []
    for name, value in values.items():
        items = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, item in items:
            faults += _faults_in({name: item if index is None else [item]}, index)
    return faults or [first], None


def _faults_in(values: dict[str, Any], index: int | None) -> Iterator[Fault]:
    """Faults of one value, each after those that were found are taken out.

    Args:
        values: It, by its name.
        index: Where it is the only item of a list, its place in the list that it is from.
    """
    rest = copy.deepcopy(values)
    gone: set[str] = set()
    for _ in range(_MOST_SHOWN):
        try:
            msgspec.convert(rest, KServe, strict=False)
        except msgspec.ValidationError as error:
            fault, steps = _fault(str(error))
            missing = _MISSING.search(fault.what)
            if missing and f"{fault.where}.{missing[1]}" in gone:
                return  # it was there, and was wrong
            gone.add(fault.where)
            yield fault if index is None else Fault(fault.where.replace("[0]", f"[{index}]", 1), fault.what)
            if not _without(rest, steps):
                return
        else:
            return


def _fault(message: str) -> tuple[Fault, list[str | int]]:
    """What msgspec found, and the way to what has to go before it can find more."""
    found = _PLACE.match(message)
    what, place = (found[1], found[3]) if found else (message, "")
    what = of_choices(what, KServe, place)
    if place.endswith(".format") and _NO_CHOICE in what:
        what += _OTHER_FORMATS
    steps: list[str | int] = list(_steps(place))
    if found and found[2]:  # a key of a map: msgspec does not say which
        steps = steps[:-1] if steps and steps[-1] == "..." else steps
    elif unknown := _UNKNOWN.search(what):
        steps.append(unknown[1])
    return Fault(place or "the values", what), steps


def _steps(place: str) -> Iterator[str | int]:
    for index, name in _STEPS.findall(place):
        yield int(index) if index else name


def _without(values: Any, steps: list[str | int]) -> bool:
    """Takes out what lies at the end of a way; False where that would move others, or nothing is there."""
    holder = values
    for step in steps[:-1]:
        try:
            holder = holder[step]
        except (KeyError, IndexError, TypeError):
            return False
    if not steps or not isinstance(holder, dict) or steps[-1] not in holder:
        return False
    del holder[steps[-1]]
    return True
