"""The graph of a server's options, read before the server starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from alipes.config.options import ServerOptions

__all__ = ["with_graph"]


def with_graph(options: ServerOptions) -> ServerOptions:
    """The options of a server, with its graph read and checked.

    Args:
        options: What the command line says.

    Returns:
        The same where no graph is named; else with the graph's document, the models that it needs one response of,
        its time-outs and its notices.

    Raises:
        ConfigError: If the graph cannot be read, or could not be run.
        Unsupported: If PyYAML is not installed and the graph is no JSON.
    """
    wanted = options.graph
    if not wanted.is_named:
        return options
    from alipes.graph.document import graph_document  # on use: most servers have no graph
    from alipes.graph.reading import read_graph, read_router_argument
    from alipes.graph.single_responses import single_responses

    graph = read_router_argument(wanted.text, wanted.name) if wanted.text else read_graph(Path(wanted.file))
    connections, timeouts = options.connections, graph.timeouts
    if timeouts.read_s is not None and options.origins.get("header-timeout-secs") == "default":
        connections = replace(connections, header_timeout_s=timeouts.read_s)
    if timeouts.idle_s is not None and options.origins.get("idle-timeout-secs") == "default":
        connections = replace(connections, idle_timeout_s=timeouts.idle_s)
    document = graph_document(graph, wanted.propagate, wanted.roots)
    return replace(
        options,
        graph=replace(wanted, document=document, single_responses=single_responses(graph.nodes)),
        connections=connections,
        notices=(*options.notices, *graph.notices),
    )
