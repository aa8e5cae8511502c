"""What is wrong with a graph of services."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from alipes.deploy.kserve.description import Graph, Router, Step

__all__ = ["ROOT", "circle", "graph_faults"]

ROOT: Final = "root"
"""The router at which requests begin."""
_ALL: Final = 100
"""Weights of a Splitter, together."""

Place = tuple[str, str]


def graph_faults(graph: Graph) -> Iterator[Place]:
    """What is wrong, each with its place."""
    if ROOT not in graph.nodes:
        yield "nodes", f"requests begin at '{ROOT}', which is missing"
    if graph.most and graph.least > graph.most:
        yield "least", f"at least {graph.least} and at most {graph.most} routers"
    for name, router in graph.nodes.items():
        where = f"nodes.{name}"
        for number, step in enumerate(router.steps):
            yield from _step_faults(step, router, graph, f"{where}.steps[{number}]")
        yield from _router_faults(router, where)
    ways = {name: [step.node for step in router.steps] for name, router in graph.nodes.items()}
    if (way := circle(ways)) is not None:
        yield f"nodes.{way[0]}", f"requests would go round: {' → '.join(way)}"


def _step_faults(step: Step, router: Router, graph: Graph, where: str) -> Iterator[Place]:
    if sum(bool(target) for target in (step.service, step.node, step.url)) != 1:
        yield where, "say one of `service`, `node` and `url`"
    if step.node and step.node not in graph.nodes:
        yield f"{where}.node", f"there is no router '{step.node}'"
    if router.kind == "Splitter" and step.weight is None:
        yield f"{where}.weight", "each step of a Splitter has one"
    if router.kind != "Splitter" and step.weight is not None:
        yield f"{where}.weight", f"a {router.kind} sends all requests: only a Splitter has weights"
    if router.kind == "Switch" and not step.condition:
        yield f"{where}.condition", "each step of a Switch has one"


def _router_faults(router: Router, where: str) -> Iterator[Place]:
    weights = [step.weight for step in router.steps if step.weight is not None]
    if router.kind == "Splitter" and len(weights) == len(router.steps) and sum(weights) != _ALL:
        yield where, f"the weights are {sum(weights)} together, not {_ALL}"
    names = [step.name for step in router.steps if step.name]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield where, f"two steps have the name '{name}'"


def circle(ways: Mapping[str, Iterable[str | None]]) -> list[str] | None:
    """The first way that leads from a node back to it: KServe's router would call itself without an end.

    Args:
        ways: The nodes to which each node leads; what is no node does not count.

    Returns:
        The nodes on the way, the first of them also last; None where there is no such way.
    """
    done: set[str] = set()
    for start in ways:
        way: list[str] = []
        open_steps = [iter([start])]
        while open_steps:
            name = next(open_steps[-1], None)
            if name is None:
                open_steps.pop()
                if way:
                    done.add(way.pop())
            elif name in way:
                return [*way[way.index(name) :], name]
            elif name in ways and name not in done:
                way.append(name)
                open_steps.append(iter([each for each in ways[name] if each]))
    return None
