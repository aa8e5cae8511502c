"""Whether a graph can be run: what KServe's webhook refuses, and what its router would stumble over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from alipes.config.nearest import nearest
from alipes.deploy.kserve.graph_faults import circle
from alipes.graph.conditions import condition_fault
from alipes.graph.fields import Place

__all__ = ["ROOT", "Nodes", "graph_faults", "graph_notices", "step_place"]

ROOT: Final = "root"
"""The node at which requests begin."""
_ALL: Final = 100
"""Weights of a Splitter, together."""
_HOST: Final = re.compile(r"[\w.~:%-]+", re.ASCII)
_TARGETS: Final = ("nodeName", "serviceName", "serviceUrl")
_DATA: Final = ("", "$request", "$response")

Nodes = Mapping[str, Mapping[str, Any]]


def graph_faults(nodes: Nodes, *, strict: bool) -> Iterator[Place]:
    """What of a graph could not be run, each with its node and step.

    Args:
        nodes: The nodes, whose fields have their types.
        strict: Whether what KServe's controller adds, a URL beside a name, is a fault: no person writes both.
    """
    if ROOT not in nodes:
        near = nearest(ROOT, nodes)
        hint = f": is it '{near}'?" if near else ""
        yield "spec.nodes", f"requests begin at the node '{ROOT}', which is missing{hint}"
    for name, node in nodes.items():
        steps = node.get("steps") or []
        where = f"spec.nodes.{name}"
        if not steps:
            yield where, "it has no steps"
        for number, step in enumerate(steps):
            yield from _step_faults(step, node, nodes, step_place(where, number, step), strict=strict)
        yield from _node_faults(node, steps, where)
    ways = {name: [step.get("nodeName") for step in node.get("steps") or []] for name, node in nodes.items()}
    if (way := circle(ways)) is not None:
        yield f"spec.nodes.{way[0]}", f"requests would go round: {' → '.join(way)}"


def graph_notices(nodes: Nodes) -> Iterator[Place]:
    """What KServe takes and does not do, each with its place."""
    for name, node in nodes.items():
        kind = node["routerType"]
        for number, step in enumerate(node["steps"]):
            where = step_place(f"spec.nodes.{name}", number, step)
            data, condition = step.get("data") or "", step.get("condition")
            if data not in _DATA:
                yield where, f"data is {data!r}, which sends the request: only $response sends an answer"
            if kind == "Switch" and not condition:
                yield where, "it has no condition, so the Switch never chooses it"
            if kind == "Sequence" and condition and number == 0:
                yield where, "its condition looks at the answer before it, and there is none: every request fails"
            if kind in {"Splitter", "Ensemble"} and condition:
                yield where, f"a {kind} looks at no condition"
            if kind != "Splitter" and step.get("weight") is not None:
                yield where, f"a {kind} looks at no weight"


def step_place(where: str, number: int, step: Mapping[str, Any]) -> str:
    """The place of a step of a node, with its name where it has one."""
    name = step.get("name")
    return f"{where}.steps[{number}]" + (f" ('{name}')" if name else "")


def _step_faults(
    step: Mapping[str, Any], node: Mapping[str, Any], nodes: Nodes, where: str, *, strict: bool
) -> Iterator[Place]:
    named = [field for field in _TARGETS if step.get(field)]
    both = {"serviceName", "serviceUrl"}
    if not named:
        yield where, f"it calls nothing: say one of {', '.join(_TARGETS)}"
    elif len(named) > 1 and (strict or set(named) != both):
        yield where, f"it has {' and '.join(named)}: say one of them"
    target = step.get("nodeName")
    if target and target not in nodes:
        near = nearest(target, nodes)
        hint = f": did you mean '{near}'?" if near else f": there are {', '.join(nodes)}"
        yield where, f"there is no node '{target}'{hint}"
    if (url := step.get("serviceUrl")) and (fault := _url_fault(url)):
        yield where, f"'{url}' {fault}"
    weight = step.get("weight")
    if node.get("routerType") == "Splitter" and weight is None:
        yield where, "each step of a Splitter has a weight"
    if weight is not None and not 0 <= weight <= _ALL:
        yield where, f"a weight is from 0 to {_ALL}, not {weight}"
    condition = step.get("condition")
    if condition and (fault := condition_fault(condition)):
        yield where, f"the condition {condition!r} is no path of gjson: {fault}"


def _url_fault(url: str) -> str | None:
    """Why nothing can be sent to an address; None where something can."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "names no port from 1 to 65535"
    if parts.scheme not in {"http", "https"}:
        return "begins neither with http:// nor with https://"
    if not parts.hostname or not _HOST.fullmatch(parts.hostname) or port == 0:
        return "names no host"
    return "names a user: the service must do without" if parts.username is not None else None


def _node_faults(node: Mapping[str, Any], steps: list[Mapping[str, Any]], where: str) -> Iterator[Place]:
    weights = [weight for step in steps if (weight := step.get("weight")) is not None]
    if node.get("routerType") == "Splitter" and steps and len(weights) == len(steps) and sum(weights) != _ALL:
        yield where, f"the weights are {sum(weights)} together, not {_ALL}"
    names = [step["name"] for step in steps if step.get("name")]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield where, f"two steps have the name '{name}'"
