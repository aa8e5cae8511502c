"""A simulator of Google's API for clusters: Google's own client talks to it over TLS, with its own messages.

It keeps clusters and node pools, has a clock that moves when a client waits, and refuses what Google refuses: a token
that is not valid, a second operation on a cluster, a quota, a zone without machines. What it knows of Google's API was
read, not recorded: it was never compared with the real one.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import google.auth.credentials
import grpc
import trustme
from alipes.cloud.google.session import Session
from google.cloud import container_v1 as container
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport

_SERVICE = "google.container.v1.ClusterManager"
_PROVISIONING_S = 180.0
_STOPPING_S = 60.0

ClusterStatus = container.Cluster.Status
PoolStatus = container.NodePool.Status
Code = container.StatusCondition.Code


@dataclass
class Clock:
    """Time that passes when somebody waits."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s

    def pass_by(self, seconds: float) -> None:
        self.now_s += seconds
        time.sleep(0.001)  # whoever else works gets to it


@dataclass
class Entry:
    """A cluster or a node pool, and when something happens to it."""

    message: Any
    ready_s: float
    gone_s: float | None = None
    is_out_of_stock: bool = False


class Refused(Exception):
    """A request that Google refuses."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Simulator:
    """What Google has of a project.

    Attributes:
        endpoint: The address of the API server of every cluster.
        authority: The certificate by which clients know it.
        token: The token that is accepted, here and by that API server.
        nodes_came: Called with a node pool whose nodes are there.
        stock_out_until_s: Until when the zone is out of machines with GPUs.
        quota: The refusal of node pools for want of quota; None accepts them.
        requests: The names of the requests that came.
    """

    endpoint: str
    authority: bytes
    token: str
    nodes_came: Callable[[container.NodePool], None] = lambda pool: None
    clock: Clock = field(default_factory=Clock)
    stock_out_until_s: float = 0.0
    quota: str | None = None
    requests: list[str] = field(default_factory=list)
    clusters: dict[str, Entry] = field(default_factory=dict)
    pools: dict[str, Entry] = field(default_factory=dict)
    busy_until_s: dict[str, float] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def list_clusters(self, request: container.ListClustersRequest) -> container.ListClustersResponse:
        names = [name for name in self.clusters if name.startswith(f"{request.parent}/")]
        return container.ListClustersResponse(clusters=[self._cluster(name).message for name in names])

    def create_cluster(self, request: container.CreateClusterRequest) -> container.Operation:
        name = f"{request.parent}/clusters/{request.cluster.name}"
        self._is_free(name, self.clusters)
        message = container.Cluster(request.cluster)
        message.status = ClusterStatus.PROVISIONING
        self.clusters[name] = Entry(message, self._operation(name))
        for pool in message.node_pools:
            self.pools[f"{name}/nodePools/{pool.name}"] = Entry(container.NodePool(pool), self.clusters[name].ready_s)
        return self._running(name)

    def get_cluster(self, request: container.GetClusterRequest) -> container.Cluster:
        return self._cluster(request.name).message

    def delete_cluster(self, request: container.DeleteClusterRequest) -> container.Operation:
        entry = self._cluster(request.name)
        self._is_idle(request.name)
        entry.message.status = ClusterStatus.STOPPING
        entry.gone_s = self._operation(request.name, _STOPPING_S)
        return self._running(request.name)

    def create_node_pool(self, request: container.CreateNodePoolRequest) -> container.Operation:
        self._cluster(request.parent)
        name = f"{request.parent}/nodePools/{request.node_pool.name}"
        self._is_free(name, self.pools)
        self._is_idle(request.parent)
        if self.quota is not None:
            raise Refused(grpc.StatusCode.PERMISSION_DENIED, self.quota)
        message = container.NodePool(request.node_pool)
        message.status = PoolStatus.PROVISIONING
        self.pools[name] = Entry(message, self._operation(request.parent), is_out_of_stock=bool(self.stock_out_until_s))
        return self._running(name)

    def get_node_pool(self, request: container.GetNodePoolRequest) -> container.NodePool:
        return self._pool(request.name).message

    def delete_node_pool(self, request: container.DeleteNodePoolRequest) -> container.Operation:
        entry = self._pool(request.name)
        self._is_idle(request.name.partition("/nodePools/")[0])
        entry.message.status = PoolStatus.STOPPING
        entry.gone_s = self._operation(request.name.partition("/nodePools/")[0], _STOPPING_S)
        return self._running(request.name)

    def set_node_pool_size(self, request: container.SetNodePoolSizeRequest) -> container.Operation:
        entry = self._pool(request.name)
        cluster = request.name.partition("/nodePools/")[0]
        self._is_idle(cluster)
        entry.message.initial_node_count = request.node_count
        entry.message.status = PoolStatus.RECONCILING
        entry.ready_s = self._operation(cluster)
        return self._running(request.name)

    def _cluster(self, name: str) -> Entry:
        entry = self._found(name, self.clusters)
        if entry.message.status == ClusterStatus.PROVISIONING and self.clock() >= entry.ready_s:
            entry.message.status = ClusterStatus.RUNNING
            entry.message.endpoint = self.endpoint
            entry.message.master_auth.cluster_ca_certificate = base64.b64encode(self.authority).decode()
        return entry

    def _pool(self, name: str) -> Entry:
        entry = self._found(name, self.pools)
        message = entry.message
        if message.status in (PoolStatus.RUNNING, PoolStatus.STOPPING) or self.clock() < entry.ready_s:
            return entry
        if entry.is_out_of_stock and self.clock() < self.stock_out_until_s:
            text = "The zone does not have enough resources available to fulfill the request."
            message.status = PoolStatus.ERROR
            message.conditions = [container.StatusCondition(code=Code.GCE_STOCKOUT, message=text)]
            return entry
        message.status, message.conditions = PoolStatus.RUNNING, []
        self.nodes_came(message)
        return entry

    def _found(self, name: str, entries: dict[str, Entry]) -> Entry:
        one = entries.get(name)
        if one is not None and one.gone_s is not None and self.clock() >= one.gone_s:
            del entries[name]
            one = None
        if one is None:
            raise Refused(grpc.StatusCode.NOT_FOUND, f"Not found: {name}.")
        return one

    def _is_free(self, name: str, entries: dict[str, Entry]) -> None:
        if name in entries:
            raise Refused(grpc.StatusCode.ALREADY_EXISTS, f"Already exists: {name}.")

    def _is_idle(self, cluster: str) -> None:
        if self.clock() < self.busy_until_s.get(cluster, 0.0):
            text = "Cluster is running incompatible operation operation-1."
            raise Refused(grpc.StatusCode.FAILED_PRECONDITION, text)

    def _operation(self, cluster: str, seconds: float = _PROVISIONING_S) -> float:
        """When an operation on a cluster that begins now will have ended."""
        self.busy_until_s[cluster] = self.clock() + seconds
        return self.busy_until_s[cluster]

    def _running(self, target: str) -> container.Operation:
        return container.Operation(name="operation-1", status=container.Operation.Status.RUNNING, target_link=target)


class Credentials(google.auth.credentials.Credentials):
    """What signs requests with a token that the simulator accepts, once it is refreshed."""

    def __init__(self, simulator: Simulator, token: str | None = None) -> None:
        super().__init__()
        self._simulator = simulator
        self.token = token
        self.refreshed = 0

    def refresh(self, request: object) -> None:
        self.token = self._simulator.token
        self.refreshed += 1


_METHODS = {
    "ListClusters": (container.ListClustersRequest, container.ListClustersResponse, Simulator.list_clusters),
    "CreateCluster": (container.CreateClusterRequest, container.Operation, Simulator.create_cluster),
    "GetCluster": (container.GetClusterRequest, container.Cluster, Simulator.get_cluster),
    "DeleteCluster": (container.DeleteClusterRequest, container.Operation, Simulator.delete_cluster),
    "CreateNodePool": (container.CreateNodePoolRequest, container.Operation, Simulator.create_node_pool),
    "GetNodePool": (container.GetNodePoolRequest, container.NodePool, Simulator.get_node_pool),
    "DeleteNodePool": (container.DeleteNodePoolRequest, container.Operation, Simulator.delete_node_pool),
    "SetNodePoolSize": (container.SetNodePoolSizeRequest, container.Operation, Simulator.set_node_pool_size),
}


@contextmanager
def served(simulator: Simulator) -> Iterator[Callable[[Credentials], Session]]:
    """What makes sessions with a simulator, which answers on a port of this machine meanwhile."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    key, chain = certificate.private_key_pem.bytes(), certificate.cert_chain_pems[0].bytes()
    with ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads)
        handlers = {name: _handler(simulator, name) for name in _METHODS}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
        port = server.add_secure_port("localhost:0", grpc.ssl_server_credentials([(key, chain)]))
        server.start()
        root = grpc.ssl_channel_credentials(authority.cert_pem.bytes())

        def session(credentials: Credentials) -> Session:
            transport = ClusterManagerGrpcTransport(
                host=f"localhost:{port}", credentials=credentials, ssl_channel_credentials=root
            )
            client = container.ClusterManagerClient(transport=transport)
            return Session(client, credentials, clock=simulator.clock, pause=simulator.clock.pass_by)

        try:
            yield session
        finally:
            server.stop(None).wait()


def _handler(simulator: Simulator, name: str) -> grpc.RpcMethodHandler:
    request_type, response_type, answer = _METHODS[name]

    def handle(request: Any, context: grpc.ServicerContext) -> Any:
        metadata = dict(context.invocation_metadata())
        with simulator.lock:
            simulator.requests.append(name)
            if metadata.get("authorization") != f"Bearer {simulator.token}":
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "Request had invalid authentication credentials.")
            try:
                return answer(simulator, request)  # type: ignore[operator]
            except Refused as refused:
                context.abort(refused.code, str(refused))

    return grpc.unary_unary_rpc_method_handler(
        handle,
        request_deserializer=request_type.deserialize,  # type: ignore[attr-defined]
        response_serializer=response_type.serialize,  # type: ignore[attr-defined]
    )
