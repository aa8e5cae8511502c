"""Flags of the graph whose requests a server answers."""

from __future__ import annotations

from typing import Final

from alipes.config.flags.flag import Flag

__all__ = ["GRAPH"]

GRAPH: Final[tuple[Flag, ...]] = (
    Flag(
        "graph",
        "str",
        "",
        "File with an InferenceGraph of KServe, YAML or JSON: its requests are answered at every path that is nothing "
        "else's. `alipes graph FILE` is the same. Not a flag of Triton.",
        option="graph.file",
        path="file",
    ),
    Flag(
        "graph-json",
        "str",
        "",
        "The specification of an InferenceGraph as JSON, as KServe hands it to its router. Not a flag of Triton.",
        option="graph.text",
    ),
    Flag(
        "inferencegraph-name",
        "str",
        "",
        "Name of the graph of --graph-json. Not a flag of Triton.",
        option="graph.name",
    ),
    Flag(
        "propagate-headers",
        "list",
        (),
        "Regular expression of headers that the steps of a graph see, as Go writes their names: `X-Team`. May be given "
        "several times; trace headers and X-Request-Id go on in any case. PROPAGATE_HEADERS, separated by commas, "
        "stands for it. Not a flag of Triton.",
        option="graph.propagate",
    ),
    Flag(
        "graph-root-cert",
        "str",
        "",
        "File of the roots, as PEM, that certificates of a graph's steps lead to; empty for those of the system. Not a "
        "flag of Triton.",
        option="graph.roots",
        path="file",
    ),
)
