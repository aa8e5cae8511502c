"""Deployments, services and daemon sets as objects of a script."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, TypeVar

from alipes.cloud.kubernetes.api import Document
from alipes.cloud.kubernetes.cluster import Cluster
from alipes.cloud.kubernetes.made import Made
from alipes.cloud.kubernetes.readiness import address_of, daemon_set_ready, deployment_ready
from alipes.cloud.kubernetes.refusals import Refused
from alipes.cloud.kubernetes.resources import DAEMON_SETS, DEPLOYMENTS, SERVICES, Kind, item_path

__all__ = ["DaemonSet", "Deployment", "Handle", "Service", "found", "handles"]

_NAMESPACES = ("default", "kube-system")


class Handle:
    """An object of a cluster.

    Attributes:
        name: Its name.
        namespace: Its namespace; empty for objects of the whole cluster.
    """

    kind: ClassVar[Kind | None] = None

    def __init__(self, cluster: Cluster, made: Made) -> None:
        """Takes the cluster, and where in it the object is."""
        self.name = made.name
        self.namespace = made.namespace
        self._cluster = cluster
        self._made = made

    def __str__(self) -> str:
        """Kind and name."""
        return str(self._made)

    def get(self) -> Document:
        """The object as it is.

        Raises:
            CloudError: If it is not there.
        """
        return self._cluster.read(self._made)

    def is_ready(self) -> bool:
        """Whether it can be used; what has no state of its own can, once it is there."""
        return bool(self.get())

    def is_deleted(self) -> bool:
        """Whether it is gone."""
        try:
            self.get()
        except Refused as error:
            if error.status == 404:
                return True
            raise
        return False

    def wait_for_ready(self, timeout: float | None = None) -> None:
        """Wait until it can be used.

        Raises:
            CloudError: If it never will be, with the reason.
            CloudTimeout: If it is not in time.
        """
        self.get()

    def remove(self, timeout: float | None = None) -> None:
        """Remove it, and wait until it is gone."""
        self._cluster.remove([self._made], timeout_s=timeout)


class Deployment(Handle):
    """A deployment."""

    kind = DEPLOYMENTS

    def is_ready(self) -> bool:
        """Whether all its pods are of its newest revision and available."""
        return deployment_ready(self.get())

    def wait_for_ready(self, timeout: float | None = None) -> None:
        """See `Cluster.wait_for_deployment`."""
        self._cluster.wait_for_deployment(self.name, self.namespace, timeout_s=timeout)

    def scale(self, replicas: int) -> None:
        """Have so many pods."""
        self._cluster.scale(self.name, replicas, namespace=self.namespace)


class Service(Handle):
    """A service."""

    kind = SERVICES

    @property
    def ip(self) -> str | None:
        """Its address; None while its load balancer has none."""
        return address_of(self.get())

    def is_ready(self) -> bool:
        """Whether it has an address."""
        return self.ip is not None

    def wait_for_ready(self, timeout: float | None = None) -> None:
        """See `Cluster.wait_for_service`."""
        self._cluster.wait_for_service(self.name, self.namespace, timeout_s=timeout)


class DaemonSet(Handle):
    """A daemon set."""

    kind = DAEMON_SETS

    def is_ready(self) -> bool:
        """Whether every node that it is for has its pod, ready."""
        return daemon_set_ready(self.get())

    def wait_for_ready(self, timeout: float | None = None) -> None:
        """See `Cluster.wait_for_daemon_set`."""
        self._cluster.wait_for_daemon_set(self.name, self.namespace, timeout_s=timeout)


_CLASSES = {"Deployment": Deployment, "Service": Service, "DaemonSet": DaemonSet}

_Class = TypeVar("_Class", Deployment, Service, DaemonSet)


def handles(cluster: Cluster, made: Iterable[Made]) -> list[Handle]:
    """What was made, as objects."""
    return [_CLASSES.get(one.kind, Handle)(cluster, one) for one in made]


def found(cluster: Cluster, kind: type[_Class]) -> dict[str, dict[str, _Class]]:
    """All objects of a kind in the namespaces that people look at, by namespace and name."""
    place = kind.kind
    assert place is not None
    return {
        namespace: {
            name: kind(cluster, Made(kind.__name__, name, namespace, item_path(place, namespace, name)))
            for name in cluster.names(place, namespace)
        }
        for namespace in _NAMESPACES
    }
