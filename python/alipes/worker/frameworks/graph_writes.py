"""What a graph of TensorFlow writes while a signature of it runs: variables and tables that outlast the call.

The file's graph is read, and nothing run: from the operations that a signature's outputs need, through the functions
that these call. Restoring and initialising a model writes as well, and is no part of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

__all__ = ["written"]

_WRITES: Final = (
    "Assign",
    "ResourceScatter",
    "ResourceApply",
    "ResourceStridedSliceAssign",
    "Scatter",
    "LookupTableInsert",
    "LookupTableRemove",
    "QueueEnqueue",
    "StackPush",
)
"""How operations begin that write into what outlasts a call."""

_PURE: Final = ("ScatterNd", "AssignVariableXlaConcatND")
"""Those among them that give a new tensor."""

_SEED: Final = 22
"""`DT_UINT32`: what Keras draws from, and nothing else that models write. An answer by chance needs no sequence."""


def written(graph: Any, signature: Any) -> list[str]:
    """The operations that write, by name; empty where the answers depend on inputs alone.

    Args:
        graph: The `MetaGraphDef` of the file.
        signature: The `SignatureDef` that is served.
    """
    functions = {one.signature.name: one for one in graph.graph_def.library.function}
    found: list[str] = []
    seen: set[str] = set()
    needed = [_node(info.name) for info in signature.outputs.values()]
    waiting = [_reached(graph.graph_def.node, needed)]
    while waiting:
        for node in waiting.pop():
            if node.op.startswith(_WRITES) and not node.op.startswith(_PURE) and node.attr["dtype"].type != _SEED:
                found.append(f"{node.name} ({node.op})")
            for name in _called(node):
                if name in functions and name not in seen:
                    seen.add(name)
                    waiting.append(iter(functions[name].node_def))  # a function runs all that has effects
    return sorted(found)


def _reached(nodes: Iterable[Any], needed: list[str]) -> Iterator[Any]:
    """The nodes that others need, and they themselves."""
    by_name = {node.name: node for node in nodes}
    seen: set[str] = set()
    while needed:
        name = needed.pop()
        if name in by_name and name not in seen:
            seen.add(name)
            yield by_name[name]
            needed.extend(_node(source) for source in by_name[name].input)


def _node(source: str) -> str:
    """The node of an input such as `^name` or `name:0`."""
    return source.removeprefix("^").partition(":")[0]


def _called(node: Any) -> Iterator[str]:
    """The functions that a node calls; its operation may itself be one."""
    yield node.op
    for value in node.attr.values():
        if value.func.name:
            yield value.func.name
        yield from (one.name for one in value.list.func)
