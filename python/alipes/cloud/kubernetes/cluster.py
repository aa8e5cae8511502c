"""A cluster of Kubernetes, for people and scripts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from alipes.cloud.kubernetes import rollout, source
from alipes.cloud.kubernetes.api import Api, Document
from alipes.cloud.kubernetes.connection import connect
from alipes.cloud.kubernetes.inference_services import InferenceServices
from alipes.cloud.kubernetes.kserve_objects import KServeObjects
from alipes.cloud.kubernetes.logs import LogLine, followed, lines_of
from alipes.cloud.kubernetes.made import Made, interruptible, removal
from alipes.cloud.kubernetes.pod_proxy import PodProxy
from alipes.cloud.kubernetes.pods import pods_of
from alipes.cloud.kubernetes.readiness import address_of
from alipes.cloud.kubernetes.refusals import Refused
from alipes.cloud.kubernetes.resources import DAEMON_SETS, DEPLOYMENTS, SERVICES, STATEFUL_SETS, Kind, item_path
from alipes.cloud.kubernetes.sending import Sender
from alipes.cloud.kubernetes.status import Status, look_at, status_of
from alipes.cloud.kubernetes.template import documents_of
from alipes.cloud.kubernetes.waiting import SETTLE_S, Look, Wait
from alipes.cloud.kubernetes.watched import Watched, look_at_daemon_set, look_at_service, look_for_none
from alipes.errors import CloudError

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

__all__ = ["Cluster"]

_FOLLOW_S: Final = 1
"""Pods change without their deployment: everything is read again after so many seconds."""

_REMOVAL_S: Final = 0.1
"""Between two looks at what is being removed."""

_IN_USE: Final = frozenset({"LocalModelCache", "LocalModelNamespaceCache"})
"""Kinds whose objects KServe does not let go while a service uses them."""

Objects = str | Path | Iterable[Mapping[str, Any]]


class Cluster:
    """A cluster that a kubeconfig or a client of the package `kubernetes` leads to.

    Every wait ends early, with the reason, where what is waited for cannot come: an image that cannot be pulled, a
    container that keeps ending or needs more memory than it may have, pods without a node, a quota. A wait goes on
    where the API server is restarted meanwhile. It shows what it waits for on a terminal or in a notebook; Ctrl-C
    leaves a list of what was made, with the command that removes it.

    Attributes:
        client: The client of `kubernetes`, for what is not offered here.
        namespace: The namespace of calls that name none.
        made: What was sent from here, in order.
    """

    def __init__(
        self,
        kubeconfig: str | Path | None = None,
        *,
        context: str | None = None,
        namespace: str | None = None,
        client: ApiClient | None = None,
    ) -> None:
        """Connect to a cluster; nothing is asked yet.

        Args:
            kubeconfig: A file; otherwise those of `KUBECONFIG`, or `~/.kube/config`, or in a pod its service account.
            context: The context of it; otherwise its current one.
            namespace: The namespace of calls that name none; otherwise the context's.
            client: An existing client, in place of a kubeconfig.

        Raises:
            CloudError: If there is no kubeconfig, or it lacks the context.
            NotOffered: If the package `kubernetes` is not installed.
        """
        connection = connect(kubeconfig, context, client)
        self.client = connection.client
        self.namespace = namespace or connection.namespace
        self.made: list[Made] = []
        self._kubectl = connection.command
        self._api = Api(connection.client)
        self._sender = Sender(self._api, self.made)

    # ------------------------------------------------------------------------------------------------ what is sent

    def apply(
        self, objects: Objects, *, namespace: str | None = None, dry_run: bool = False, **values: object
    ) -> list[Made]:
        """Make objects, or change them to what their documents say: Kubernetes' server-side apply.

        Args:
            objects: A file, or documents.
            namespace: The namespace of those that name none.
            dry_run: Have everything checked by the API server, and nothing made.
            **values: What the wildcards of a file stand for; see `deploy`.

        Returns:
            The objects in their order, each with whether it was created, changed or as it should be.

        Raises:
            ConfigError: If the file cannot be read, or a value is missing or unused.
            CloudError: With everything that the API server refused; the rest is done.
        """
        documents = self._documents(objects, values)
        with self._listed():
            return self._sender.apply(documents, namespace or self.namespace, dry_run=dry_run)

    def deploy(
        self,
        file: str | Path,
        /,
        repo: str | None = None,
        branch: str | None = None,
        namespace: str | None = None,
        ignore_if_exists: bool = True,
        **values: object,
    ) -> list[Made]:
        """Make the objects of a file, with values in the place of its wildcards `{{ .Values.name }}`.

        Args:
            file: A path; with `repo` a path in that repository.
            repo: A repository on GitHub, `owner/name`.
            branch: Its branch; otherwise `main`, or `master`.
            namespace: The namespace of objects that name none.
            ignore_if_exists: Leave objects as they are that exist; otherwise they are refused.
            **values: The value of each wildcard. A value that stands alone keeps its type.

        Returns:
            The objects in the order of the file.

        Raises:
            ConfigError: If the file cannot be read, or a value is missing or unused.
            CloudError: With everything that the API server refused; the rest is made.
        """
        documents = documents_of(source.read(file, repo, branch), values, str(file))
        with self._listed():
            return self._sender.create(documents, namespace or self.namespace, ignore_if_exists=ignore_if_exists)

    def scale(self, name: str, replicas: int, *, namespace: str | None = None) -> None:
        """Have so many pods of a deployment or a stateful set; `wait_for_deployment` waits for them.

        Raises:
            ConfigError: If it is no count.
            CloudError: If the API server refuses it.
        """
        workload = self._workload(name, namespace)
        rollout.scale(self._api, workload.path, replicas)

    def rollback(self, name: str, revision: int | None = None, *, namespace: str | None = None) -> int:
        """Have a deployment or a stateful set run the pods of a former revision, of the last one unless it is named.

        Returns:
            The revision whose pods run again.

        Raises:
            CloudError: If there is no such revision.
        """
        workload = self._workload(name, namespace)
        return rollout.rollback(self._api, workload.path, workload.read(), workload.what, revision)

    def remove(
        self,
        objects: Objects | Iterable[Made],
        *,
        namespace: str | None = None,
        timeout_s: float | None = None,
        **values: object,
    ) -> list[Made]:
        """Remove objects, and wait until they are gone; those that are not there are passed over.

        Args:
            objects: A file, documents, or what `apply`, `deploy` or `made` list. The last goes first, and what others
                use goes after them.
            namespace: The namespace of those that name none.
            timeout_s: The longest wait for each; None sets no limit.
            **values: What the wildcards of a file stand for.

        Returns:
            What was removed.

        Raises:
            CloudError: If the API server refuses it.
            CloudTimeout: If one is still there after its time.
        """
        made = self._located(objects, namespace or self.namespace, values)
        gone: list[Made] = []
        for is_used in (False, True):
            going = [one for one in reversed(made) if (one.kind in _IN_USE) == is_used and self._deleted(one)]
            for one in going:
                Wait(f"the removal of {one}", timeout_s).until(partial(look_for_none, self._api, one), _pause)
            gone += going
        paths = {one.path for one in made}
        self.made[:] = [one for one in self.made if one.path not in paths]
        return gone

    def remove_deployment(
        self, name: str, namespace: str | None = None, *, timeout_s: float | None = None
    ) -> list[Made]:
        """Remove a deployment with its pods, and wait until they are gone; see `remove`."""
        place = namespace or self.namespace
        one = Made("Deployment", name, place, item_path(DEPLOYMENTS, place, name))
        return self.remove([one], timeout_s=timeout_s)

    def removal_commands(self) -> list[str]:
        """The commands that remove what was made from here."""
        return removal(self.made, self._kubectl)

    # ------------------------------------------------------------------------------------------ what is waited for

    def wait_for_deployment(
        self,
        name: str,
        namespace: str | None = None,
        *,
        timeout_s: float | None = None,
        settle_s: float = SETTLE_S,
    ) -> Status:
        """Wait until all pods of a deployment are of its newest revision and available.

        Args:
            name: Its name.
            namespace: Its namespace.
            timeout_s: The longest wait; None sets no limit.
            settle_s: How long a reason that may pass, such as an image that cannot be pulled, has to last.

        Raises:
            CloudError: If it cannot become ready, or is not there, with the reason.
            CloudTimeout: If it is not ready in time, with what is known.
        """
        return self._ready(self._deployment(name, namespace), timeout_s, settle_s)

    def wait_for_stateful_set(
        self,
        name: str,
        namespace: str | None = None,
        *,
        timeout_s: float | None = None,
        settle_s: float = SETTLE_S,
    ) -> Status:
        """Wait until all pods of a stateful set are of its newest revision and available; see `wait_for_deployment`."""
        place = namespace or self.namespace
        one = Watched(self._api, STATEFUL_SETS, place, name, f"stateful set {place}/{name}")
        return self._ready(one, timeout_s, settle_s)

    def wait_for_servers(
        self, name: str, namespace: str | None = None, *, timeout_s: float | None = None, settle_s: float = SETTLE_S
    ) -> Status:
        """Wait for a deployment, or for a stateful set where there is none of the name; see `wait_for_deployment`."""
        return self._ready(self._workload(name, namespace), timeout_s, settle_s)

    def wait_for_daemon_set(
        self,
        name: str,
        namespace: str | None = "kube-system",
        *,
        timeout_s: float | None = None,
        settle_s: float = SETTLE_S,
    ) -> int:
        """Wait until every node that a daemon set is for has its pod, ready; see `wait_for_deployment`.

        Returns:
            The number of nodes.
        """
        place = namespace or self.namespace
        daemon_set = Watched(self._api, DAEMON_SETS, place, name, f"daemon set {place}/{name}")
        with self._listed():
            ready = daemon_set.wait(Wait(daemon_set.what, timeout_s, settle_s), look_at_daemon_set)
        return int(ready.get("status", {}).get("desiredNumberScheduled", 0))

    def wait_for_service(
        self,
        name: str,
        namespace: str | None = None,
        *,
        timeout_s: float | None = None,
        settle_s: float = SETTLE_S,
    ) -> str:
        """Wait until a service has an address: that of its load balancer where it has one.

        Returns:
            An IP address, or a name where load balancers have names.

        Raises:
            CloudError: If it is not there, or a quota forbids the load balancer.
            CloudTimeout: If it has no address in time, with what is known.
        """
        place = namespace or self.namespace
        service = Watched(self._api, SERVICES, place, name, f"service {place}/{name}")
        with self._listed():
            ready = service.wait(Wait(service.what, timeout_s, settle_s), look_at_service)
        return address_of(ready) or ""

    # -------------------------------------------------------------------------------------------------- what is read

    def status(self, name: str, namespace: str | None = None) -> Status:
        """What a deployment or a stateful set does now, with its pods.

        Raises:
            CloudError: If it is not there.
        """
        return status_of(self._api, self._workload(name, namespace).read())

    def follow(self, name: str, namespace: str | None = None) -> Iterator[Status]:
        """What a deployment or a stateful set does, now and after each change, for as long as the caller goes on.

        Raises:
            CloudError: If it is not there, or no longer.
        """
        deployment = self._workload(name, namespace)
        while True:
            # Also an API server that is away for a while is waited for.
            yield Wait(deployment.what).until(lambda: Look(status_of(self._api, deployment.read())), _nothing)
            deployment.changed(_FOLLOW_S)

    def inference_services(self, namespace: str | None = None) -> InferenceServices:
        """The services of KServe in a namespace, which are changed and waited for there."""
        return InferenceServices(self._api, namespace or self.namespace)

    def pod_proxy(self, port: int, namespace: str | None = None, headers: Mapping[str, str] | None = None) -> PodProxy:
        """The servers of a namespace's pods at a port, reached through the API server with some headers."""
        return PodProxy(self._api, namespace or self.namespace, port, headers)

    def kserve_objects(self, labels: Mapping[str, str], namespace: str | None = None) -> KServeObjects:
        """The objects of KServe in a namespace that carry labels."""
        return KServeObjects(self._api, namespace or self.namespace, labels)

    def read(self, made: Made) -> Document:
        """An object as it is.

        Raises:
            CloudError: If it is not there.
        """
        return self._api.get(made.path)

    def labelled(self, objects: Iterable[Mapping[str, Any]], label: str, value: str) -> list[Made]:
        """Which objects are there and carry a label; kinds that the cluster does not have are passed over.

        Args:
            objects: Documents, of which kind, name and namespace count.
            label: The label's name.
            value: The value that it has to have.
        """
        found = []
        for document in objects:
            try:
                one = self._sender.located(dict(document), self.namespace)
                labels = self.read(one)["metadata"].get("labels", {})
            except CloudError as error:
                if error.reason != "NotFound":
                    raise
                continue
            if labels.get(label) == value:
                found.append(one)
        return found

    def names(self, kind: Kind, namespace: str) -> list[str]:
        """The names of all objects of a kind in a namespace."""
        return [str(one["metadata"]["name"]) for one in self._api.get(kind.collection(namespace))["items"]]

    def logs(
        self, name: str, namespace: str | None = None, *, follow: bool = False, tail: int | None = None
    ) -> Iterator[LogLine]:
        """What pods of a deployment or a stateful set have written: all, or the last lines of each; or as they write.

        Raises:
            CloudError: If it is not there, or a pod's log cannot be read.
        """
        pods = pods_of(self._api, self._workload(name, namespace).read())
        return (followed if follow else lines_of)(self._api, pods, tail)

    # ------------------------------------------------------------------------------------------------------- inside

    def _documents(self, objects: Objects, values: Mapping[str, object]) -> list[Document]:
        if isinstance(objects, str | Path):
            return documents_of(source.read(objects), values, str(objects))
        return [dict(one) for one in objects]

    def _located(self, objects: Objects | Iterable[Made], namespace: str, values: Mapping[str, object]) -> list[Made]:
        if isinstance(objects, str | Path):
            objects = self._documents(objects, values)
        found = []
        for one in objects:
            try:
                found.append(one if isinstance(one, Made) else self._sender.located(dict(one), namespace))
            except CloudError as error:
                if error.reason != "NotFound":  # of a kind that the cluster lacks there is nothing
                    raise
        return found

    def _deleted(self, one: Made) -> bool:
        """Whether an object was there; it goes from now on."""
        try:
            self._api.delete(one.path)
        except Refused as error:
            if error.status == 404:
                return False
            raise
        return True

    def _deployment(self, name: str, namespace: str | None) -> Watched:
        place = namespace or self.namespace
        return Watched(self._api, DEPLOYMENTS, place, name, f"deployment {place}/{name}")

    def _ready(self, one: Watched, timeout_s: float | None, settle_s: float) -> Status:
        """A deployment or a stateful set, once its pods are of its newest revision and available."""
        with self._listed():
            ready = one.wait(Wait(one.what, timeout_s, settle_s), look_at)
        return status_of(self._api, ready)

    def _workload(self, name: str, namespace: str | None) -> Watched:
        """The deployment of a name, or else the stateful set.

        Raises:
            CloudError: If there is neither.
        """
        place = namespace or self.namespace
        deployment = self._deployment(name, namespace)
        other = Watched(self._api, STATEFUL_SETS, place, name, f"stateful set {place}/{name}")
        try:
            deployment.read()
        except CloudError as error:
            if error.reason != "NotFound" or not other.is_there():
                raise
            return other
        return deployment

    def _listed(self) -> AbstractContextManager[None]:
        return interruptible(self.made, self._kubectl)


def _nothing(for_s: int) -> None:
    """What the first look finds is enough."""


def _pause(for_s: int) -> None:
    time.sleep(_REMOVAL_S)
