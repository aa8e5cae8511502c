"""The models of which a graph needs exactly one response: all but those that end it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from alipes.graph.checks import ROOT, Nodes, step_place

__all__ = ["single_responses"]

_MODEL_PATHS = ("/v1/models/", "/v2/models/")
_PREDICTOR = "-predictor"
"""What KServe appends to the name of an InferenceService."""


def single_responses(nodes: Nodes) -> dict[str, str]:
    """Where a graph needs one response of a model, so that no decoupled model can stand there.

    A decoupled model may end a graph: as the last step of a Sequence, or as a step of a Splitter or Switch.

    Args:
        nodes: The nodes of a graph that can be run.

    Returns:
        The place of a step by the name of the model that it calls, of this server as far as that can be known.
    """
    places: dict[str, str] = {}
    for where, step in _inner_steps(nodes):
        if model := _model(step):
            places.setdefault(model, where)
    return places


def _inner_steps(nodes: Nodes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The steps whose responses are not the graph's own, each with its place."""
    seen: set[tuple[str, bool]] = set()
    ahead = [(ROOT, True)]
    while ahead:
        name, ends = visit = ahead.pop()
        if visit in seen:
            continue
        seen.add(visit)
        kind, steps = nodes[name]["routerType"], nodes[name]["steps"]
        for number, step in enumerate(steps):
            is_last = kind in {"Splitter", "Switch"} or (kind == "Sequence" and number == len(steps) - 1)
            if target := step.get("nodeName"):
                ahead.append((target, ends and is_last))
            elif not (ends and is_last):
                yield step_place(f"spec.nodes.{name}", number, step), step


def _model(step: Mapping[str, Any]) -> str:
    """The model of this server that a step may call; empty where it calls another's."""
    url = step.get("serviceUrl")
    if not url:
        return str(step["serviceName"])
    parts = urlsplit(url)
    if parts.path not in {"", "/"} and not parts.path.startswith(_MODEL_PATHS):
        return ""
    return (parts.hostname or "").split(".")[0].removesuffix(_PREDICTOR)
