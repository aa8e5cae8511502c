"""The fields of an InferenceGraph, and what type each has. Source: KServe's `v1alpha1`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from alipes.config.nearest import nearest

__all__ = ["KINDS", "SPEC", "Place", "check_fields"]

Place = tuple[str, str]
"""Where something is wrong, and what."""

KINDS: Final = ("Sequence", "Splitter", "Ensemble", "Switch")
DEPENDENCIES: Final = ("Soft", "Hard")

_STEP: Final[dict[str, Any]] = {
    "name": str,
    "nodeName": str,
    "serviceName": str,
    "serviceUrl": str,
    "data": str,
    "mapPredictionsToInstances": bool,
    "weight": int,
    "condition": str,
    "dependency": DEPENDENCIES,
}
_NODE: Final[dict[str, Any]] = {"routerType": KINDS, "steps": [_STEP]}
_TIMEOUTS: Final[dict[str, Any]] = {"serverRead": int, "serverWrite": int, "serverIdle": int, "serviceClient": int}
SPEC: Final[dict[str, Any]] = {
    "nodes": {"*": _NODE},
    "timeout": int,
    "routerTimeouts": _TIMEOUTS,
    # What is the cluster's business: how many routers there are, and where.
    **dict.fromkeys(("resources", "affinity", "tolerations", "nodeSelector"), object),
    **dict.fromkeys(("minReplicas", "maxReplicas", "scaleTarget", "scaleMetric"), object),
    **dict.fromkeys(("nodeName", "serviceAccountName"), object),
}
"""A type for each field: a Python type, words of which one stands there, a list of what has fields, or fields; `*` is
any name."""

_WORDS: Final = {str: "a text", int: "a whole number", bool: "true or false"}
_NEEDED: Final = {"nodes", "routerType", "steps"}


def check_fields(value: Any, fields: Mapping[str, Any], where: str, *, strict: bool) -> Iterator[Place]:
    """What has another type than it must have, or is no field of KServe's.

    Args:
        value: What stands there.
        fields: The types of its fields.
        where: Its dotted name.
        strict: Whether a name that is no field is a fault: it would have no effect.
    """
    if not isinstance(value, Mapping):
        yield where, f"expected fields by their names, got {_shown(value)}"
        return
    for name in fields:
        if name in _NEEDED and value.get(name) is None:
            yield where, f"'{name}' is missing"
    for name, inner in value.items():
        kind = fields.get(name, fields.get("*"))
        if kind is None:
            if strict:
                near = nearest(str(name), fields)
                hint = f"did you mean '{near}'?" if near else f"there are {', '.join(fields)}"
                yield where, f"'{name}' is no field of KServe's: {hint}"
        elif inner is not None:
            yield from _check(inner, kind, f"{where}.{name}", strict=strict)


def _check(value: Any, kind: Any, where: str, *, strict: bool) -> Iterator[Place]:
    if isinstance(kind, Mapping):
        yield from check_fields(value, kind, where, strict=strict)
    elif isinstance(kind, list):
        if not isinstance(value, list):
            yield where, f"expected a list, got {_shown(value)}"
            return
        for number, each in enumerate(value):
            yield from check_fields(each, kind[0], f"{where}[{number}]", strict=strict)
    elif isinstance(kind, tuple):
        if value not in kind and value != "":
            near = nearest(str(value), kind)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(kind)}"
            yield where, f"{_shown(value)} is unknown: {hint}"
        elif value == "" and kind is KINDS:
            yield where, f"it is empty: there are {', '.join(kind)}"
    elif kind is not object and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        yield where, f"expected {_WORDS[kind]}, got {_shown(value)}"


def _shown(value: Any) -> str:
    text = repr(value)
    limit = 60
    return text if len(text) <= limit else f"{text[:limit]}…"
