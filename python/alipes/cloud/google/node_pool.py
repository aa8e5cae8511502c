"""Nodes of one kind in a cluster."""

from __future__ import annotations

from typing import Any, ClassVar

from alipes.cloud.google.refusals import Busy
from alipes.cloud.google.resource import Resource
from alipes.cloud.google.states import STOCK_OUT
from alipes.cloud.kubernetes.waiting import Look
from alipes.errors import ConfigError

__all__ = ["NodePool"]


class NodePool(Resource):
    """A node pool; `Cluster.create_resource` and `Cluster.add` make one.

    Attributes:
        wait: Seconds for which the zone may be out of machines, as zones often are of GPUs, before a wait for the pool
            ends. It may be set for one pool, or on the class for all.
    """

    wait: float = 300.0
    noun: ClassVar[str] = "node pool"

    def scale(self, nodes: int, timeout: float | None = None) -> None:
        """Have so many nodes, and wait for them.

        Raises:
            ConfigError: If it is no count.
            CloudError: If the nodes cannot be had.
        """
        if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 0:
            raise ConfigError(f"nodes: {nodes!r} is not a count", key="nodes")

        def accepted() -> Look[bool]:
            try:
                self._session.call("set_node_pool_size", name=self.path, node_count=nodes)
            except Busy as error:
                return Look(None, str(error))
            return Look(True)

        with self._ledger.interruptible():
            self._wait(f"the new size of {self}", timeout).until(accepted, self._pause)
        self.wait_for_ready(timeout)

    def _explained(self, finding: Any) -> str:
        if finding.reason != STOCK_OUT:
            return super()._explained(finding)
        return (
            f"{finding.text} ({STOCK_OUT}), for {self.wait:g} s; until it is removed it goes on trying, and costs what "
            "it gets: wait longer by NodePool.wait, or try another zone or GPU"
        )
