"""A graph as the data plane reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from alipes.graph.reading import ReadGraph

__all__ = ["graph_document"]


def graph_document(graph: ReadGraph, propagate: Sequence[str], roots: str) -> dict[str, Any]:
    """The document of a graph.

    Args:
        graph: A graph that can be run.
        propagate: Patterns of headers that steps see.
        roots: File of the roots that certificates of steps lead to; empty for those of the system.

    Returns:
        A document of JSON, whose unknown fields the data plane refuses.
    """
    return {
        "name": graph.name,
        "nodes": {
            name: {"kind": node["routerType"], "steps": [_step(step) for step in node["steps"]]}
            for name, node in graph.nodes.items()
        },
        "propagate": list(propagate),
        "timeout_s": graph.timeouts.request_s,
        "step_timeout_s": graph.timeouts.step_s,
        "roots": roots or None,
    }


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": step.get("name") or "",
        "target": _target(step),
        "response": step.get("data") == "$response",
        "map_predictions": bool(step.get("mapPredictionsToInstances")),
        "weight": step.get("weight") or 0,
        "condition": step.get("condition") or "",
        "hard": step.get("dependency") == "Hard",
    }


def _target(step: Mapping[str, Any]) -> dict[str, str]:
    """What a step calls: where KServe's controller has found a URL for a name, that."""
    if node := step.get("nodeName"):
        return {"node": node}
    if url := step.get("serviceUrl"):
        return {"url": url}
    return {"model": step["serviceName"]}
