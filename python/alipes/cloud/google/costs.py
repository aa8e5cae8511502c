"""What a cluster or a node pool will cost: an estimate, before anything is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from alipes.cloud.google import prices

__all__ = ["Estimate", "Row", "estimate"]

_DEFAULT_MACHINE: Final = "e2-medium"
"""What GKE makes where no machine is named."""


@dataclass(frozen=True)
class Row:
    """A part of the price.

    Attributes:
        what: What it is.
        count: How many.
        each: US dollars an hour for one; None if the table has no price.
    """

    what: str
    count: int
    each: float | None


@dataclass(frozen=True)
class Estimate:
    """A price by the hour, in US dollars."""

    rows: tuple[Row, ...]

    @property
    def per_hour(self) -> float:
        """The sum of what the table has a price for."""
        return sum(row.count * row.each for row in self.rows if row.each is not None)

    @property
    def is_complete(self) -> bool:
        """Whether the table has a price for everything."""
        return all(row.each is not None for row in self.rows)

    def __str__(self) -> str:
        """The parts and the sum, as lines."""
        lines = [f"  {row.count} x {row.what}: {_dollars(row)}" for row in self.rows]
        bound = "" if self.is_complete else "at least "
        total = f"  in all {bound}{self.per_hour:.2f} USD an hour, an estimate by list prices of {prices.AS_OF}"
        return "\n".join([*lines, f"{total}; disks and traffic come on top"])


def estimate(config: Any) -> Estimate:
    """The price of a cluster with its node pools, or of a node pool.

    Args:
        config: A `Cluster` or a `NodePool` of `google.cloud.container_v1`.
    """
    if hasattr(config, "node_pools"):
        return Estimate((Row("cluster", 1, prices.CLUSTER), *_of_cluster(config)))
    return Estimate(tuple(_of_nodes(config.config, _nodes(config))))


def _of_cluster(cluster: Any) -> Iterator[Row]:
    for pool in cluster.node_pools:
        yield from _of_nodes(pool.config, _nodes(pool))
    if cluster.initial_node_count:
        yield from _of_nodes(cluster.node_config, int(cluster.initial_node_count))


def _nodes(pool: Any) -> int:
    """The nodes of a pool in all its zones."""
    return int(pool.initial_node_count) * max(len(pool.locations), 1)


def _of_nodes(config: Any, count: int) -> Iterator[Row]:
    machine = config.machine_type or _DEFAULT_MACHINE
    kind = " (spot: about a third)" if config.spot or config.preemptible else ""
    yield Row(f"{machine}{kind}", count, _machine(machine))
    for accelerator in config.accelerators:
        if machine.startswith("n1-"):  # others have theirs built in
            name = accelerator.accelerator_type
            yield Row(name, count * int(accelerator.accelerator_count), prices.GPUS.get(name))


def _machine(machine: str) -> float | None:
    if machine in prices.MACHINES:
        return prices.MACHINES[machine]
    series, _, vcpus = machine.rpartition("-")
    each = prices.PER_VCPU.get(series)
    return None if each is None or not vcpus.isdigit() else each * int(vcpus)


def _dollars(row: Row) -> str:
    return "price not known here" if row.each is None else f"{row.count * row.each:.2f} USD an hour"
