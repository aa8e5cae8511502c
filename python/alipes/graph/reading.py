"""An InferenceGraph from YAML or JSON, checked whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from alipes.deploy.yaml_text import documents_of
from alipes.errors import ConfigError
from alipes.graph.checks import graph_faults, graph_notices
from alipes.graph.fields import SPEC, check_fields
from alipes.graph.timeouts import Timeouts

__all__ = ["KIND", "ReadGraph", "read_graph", "read_router_argument"]

KIND: Final = "InferenceGraph"
_GROUP: Final = "serving.kserve.io/"
_VERSION: Final = f"{_GROUP}v1alpha1"
_MAX_BYTES: Final = 1 << 20
"""Of a file: Kubernetes stores no larger object."""
_DEFAULT_NAME: Final = "graph"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGraph:
    """A graph that can be run.

    Attributes:
        name: Its name.
        nodes: Its nodes by name, as KServe has them.
        timeouts: How long its requests, calls and connections may take.
        notices: What KServe takes and does not do, one line each.
    """

    name: str
    nodes: Mapping[str, Mapping[str, Any]]
    timeouts: Timeouts
    notices: tuple[str, ...] = ()


def read_graph(file: Path) -> ReadGraph:
    """The graph of a file: YAML or JSON, which may have other objects beside it.

    Args:
        file: A file with one InferenceGraph.

    Returns:
        The graph.

    Raises:
        ConfigError: If the file cannot be read, has no graph or several, or the graph could not be run; with each
            node and step that is at fault.
        Unsupported: If PyYAML is not installed and the file is no JSON.
    """
    graph = _only_graph(_documents(file), file)
    version = graph.get("apiVersion", _VERSION)
    if version != _VERSION:
        raise ConfigError(f"{file}: graphs are of {_VERSION}, not of {version!r}", path=file, key="apiVersion")
    metadata = graph.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return _read(graph.get("spec"), str(name or _DEFAULT_NAME), file)


def read_router_argument(text: str, name: str = "") -> ReadGraph:
    """The graph that KServe hands its router as `--graph-json`: what it has taken is not refused for its form.

    Args:
        text: The `spec` of an InferenceGraph, as JSON.
        name: Its name; empty for none.

    Returns:
        The graph.

    Raises:
        ConfigError: If it is no JSON, or could not be run.
    """
    try:
        spec = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--graph-json is no JSON: {error}", key="graph-json") from None
    return _read(spec, name or _DEFAULT_NAME, None)


def _documents(file: Path) -> list[Any]:
    try:
        with file.open("rb") as opened:
            content = opened.read(_MAX_BYTES + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise ConfigError(f"the graph {file} cannot be read: {error.strerror}", path=file) from None
    except UnicodeDecodeError:
        raise ConfigError(f"the graph {file} is not encoded in UTF-8", path=file) from None
    if len(content) > _MAX_BYTES:
        raise ConfigError(f"the graph {file} has more than {_MAX_BYTES} bytes", path=file)
    if file.suffix == ".json":
        try:
            return [json.loads(text)]
        except ValueError as error:
            raise ConfigError(f"{file} is no JSON: {error}", path=file) from None
    return documents_of(text, str(file))


def _only_graph(documents: list[Any], file: Path) -> Mapping[str, Any]:
    objects = [each for each in documents if isinstance(each, Mapping)]
    graphs = [each for each in objects if each.get("kind") == KIND]
    if len(graphs) == 1:
        return graphs[0]
    found = ", ".join(sorted({str(each.get("kind")) for each in objects})) or "nothing"
    seen = f"{len(graphs)} of them" if graphs else f"{found} and no {KIND}"
    raise ConfigError(f"{file}: expected one object of the kind {KIND}, found {seen}", path=file, key="kind")


def _read(spec: Any, name: str, file: Path | None) -> ReadGraph:
    """Checks a specification; that of a file in its form too, in which a misspelled field has no effect."""
    faults = list(check_fields(spec, SPEC, "spec", strict=file is not None))
    if not faults:
        faults = list(graph_faults(spec["nodes"], strict=file is not None))
    timeouts = None if faults else Timeouts.of(spec)
    if faults or timeouts is None:
        place = f"{file}: " if file is not None else ""
        text = "\n".join(f"{where}: {what}" for where, what in faults)
        raise ConfigError(f"{place}the graph '{name}' cannot be run\n{text}", path=file, key=faults[0][0])
    notices = tuple(f"graph '{name}', {where}: {what}" for where, what in graph_notices(spec["nodes"]))
    return ReadGraph(name=name, nodes=spec["nodes"], timeouts=timeouts, notices=notices)
