"""The services of KServe in a cluster: shown, waited for, scaled, rolled out by shares, stopped and started."""

from __future__ import annotations

from typing import Any, Final

from alipes.cloud.kubernetes.api import Api, Document
from alipes.cloud.kubernetes.canaries import (
    CanaryState,
    ServiceCanary,
    canary_of,
    canary_state,
    chosen_canary,
    is_served_by,
    is_split,
)
from alipes.cloud.kubernetes.inference_status import SERVICE_LABEL, ServiceStatus, look_at_service, service_status
from alipes.cloud.kubernetes.kserve_kinds import INFERENCE_SERVICES
from alipes.cloud.kubernetes.resources import PODS
from alipes.cloud.kubernetes.waiting import SETTLE_S, Wait
from alipes.cloud.kubernetes.watched import Watched
from alipes.errors import CloudError, ConfigError

__all__ = ["InferenceServices"]

_STOP: Final = "serving.kserve.io/stop"
"""KServe's annotation of a service that has no servers for a while."""
_ALL: Final = 100


class InferenceServices:
    """The services of KServe in a namespace.

    Everything is a change of one object, which KServe's controller then follows. A change is made to the object that
    was read: where somebody else changes it meanwhile, it is refused.
    """

    def __init__(self, api: Api, namespace: str) -> None:
        """Takes the API server, and asks nothing yet."""
        self._api = api
        self._namespace = namespace

    def status(self, name: str) -> ServiceStatus:
        """What a service does now.

        Raises:
            CloudError: If it is not there.
        """
        return service_status(self._api, self._watched(name).read())

    def wait(self, name: str, *, timeout_s: float | None = None, settle_s: float = SETTLE_S) -> ServiceStatus:
        """Wait until KServe says that a service is ready, or that it has stopped where that was wanted.

        Raises:
            CloudError: If it cannot become ready, or is not there, with the reason.
            CloudTimeout: If it is not ready in time, with what is known.
        """
        watched = self._watched(name)
        ready = watched.wait(Wait(watched.what, timeout_s, settle_s), look_at_service)
        return service_status(self._api, ready)

    def scale(self, name: str, least: int, most: int | None = None, *, dry_run: bool = False) -> None:
        """Have so many servers, or between so many.

        Args:
            name: The service.
            least: Fewest.
            most: Most; None is as many.
            dry_run: Have it checked by the API server, and nothing changed.

        Raises:
            ConfigError: If there are to be fewer at most than at least.
            CloudError: If the API server refuses it.
        """
        most = least if most is None else most
        if least < 0 or most < least:
            raise ConfigError(f"at least {least} and at most {most} servers", key="replicas")
        service = self._watched(name).read()
        # KServe reads 0 as no limit.
        counts = {"minReplicas": least, "maxReplicas": max(most, 1)}
        self._change(service, {"spec": {"predictor": counts}}, dry_run=dry_run)

    def share(self, name: str, percent: int, canary: str | None = None, *, dry_run: bool = False) -> str:
        """Give a canary a percentage of the requests; the predictor gets those that no canary does.

        Args:
            name: The service.
            percent: The percentage, from 0 to 100.
            canary: Which, where there are several.
            dry_run: Have it checked by the API server, and nothing changed.

        Returns:
            The name of the canary; with Knative, whose newest revision it is, an empty one.

        Raises:
            ConfigError: If it is no percentage.
            CloudError: If there is no such canary, or the API server refuses it.
        """
        if not 0 <= percent <= _ALL:
            raise ConfigError(f"{percent} % of the requests: say a number from 0 to 100", key="percent")
        service = self._watched(name).read()
        if is_split(service) and canary is None:
            self._change(service, {"spec": {"predictor": {"canaryTrafficPercent": percent}}}, dry_run=dry_run)
            return ""
        chosen = chosen_canary(service, canary)
        place = f"/spec/canary/{service['spec']['canary'].index(chosen)}/trafficPercent"
        self._replace(service, [{"op": "replace", "path": place, "value": percent}], dry_run=dry_run)
        return str(chosen["predictor"]["name"])

    def promote(self, name: str, canary: str | None = None, *, dry_run: bool = False) -> str:
        """Give a canary all requests. Its servers are not started again, and the others go once it has them.

        Args:
            name: The service.
            canary: Which, where there are several.
            dry_run: Have it checked by the API server, and nothing changed.

        Returns:
            The name of the canary; with Knative, whose newest revision it is, an empty one.

        Raises:
            CloudError: If there is no such canary, or the API server refuses it.
        """
        service = self._watched(name).read()
        spec = service["spec"]
        if is_split(service) and canary is None:
            self._change(service, {"spec": {"predictor": {"canaryTrafficPercent": None}}}, dry_run=dry_run)
            return ""
        chosen = chosen_canary(service, canary)
        predictor = _promoted(spec["predictor"], chosen["predictor"])
        others = _others(service, chosen)
        changes: list[Document] = [{"op": "replace", "path": "/spec/predictor", "value": predictor}]
        if others:
            changes.append({"op": "replace", "path": "/spec/canary", "value": others})
        else:
            changes.append({"op": "remove", "path": "/spec/canary"})
        self._replace(service, changes, dry_run=dry_run)
        return str(predictor["name"])

    def rollback(self, name: str, canary: str | None = None, *, dry_run: bool = False) -> None:
        """Give all requests to the model that was there before the canaries, which go.

        With Knative, the newest revision gets no requests more, and the one before it all of them.

        Args:
            name: The service.
            canary: The only one that goes; None is all.
            dry_run: Have it checked by the API server, and nothing changed.

        Raises:
            CloudError: If there is no canary, or the API server refuses it.
        """
        service = self._watched(name).read()
        others = [] if canary is None else _others(service, chosen_canary(service, canary))
        if others:
            self._replace(service, [{"op": "replace", "path": "/spec/canary", "value": others}], dry_run=dry_run)
        elif service["spec"].get("canary"):
            self._change(service, {"spec": {"canary": None}}, dry_run=dry_run)
        elif service.get("status", {}).get("deploymentMode") == "Knative" or is_split(service):
            self._change(service, {"spec": {"predictor": {"canaryTrafficPercent": 0}}}, dry_run=dry_run)
        else:
            raise CloudError(f"{self._what(name)} has no canary to take back", reason="NotFound")

    def canary(self, name: str, canary: str | None = None) -> ServiceCanary:
        """The canary of a service, and what it is to replace.

        Args:
            name: The service.
            canary: Which, where there are several.

        Raises:
            CloudError: If there is no such service or canary; with Knative, if no revision is newer than the one that
                serves.
        """
        return canary_of(self._watched(name).read(), canary)

    def is_served_by(self, name: str, candidate: str) -> bool:
        """Whether what was a canary of a service, or its newest revision, has all requests.

        Raises:
            CloudError: If there is no such service.
        """
        return is_served_by(self._watched(name).read(), candidate)

    def canary_state(self, canary: ServiceCanary) -> CanaryState:
        """A service with a canary as it is now, and the pods of both.

        Raises:
            CloudError: If the service is gone, or its pods cannot be listed.
        """
        service = self._watched(canary.service).read()
        pods = self._api.get(PODS.collection(self._namespace), labelSelector=f"{SERVICE_LABEL}={canary.service}")
        return canary_state(service, canary, pods["items"])

    def stop(self, name: str, *, dry_run: bool = False) -> None:
        """End all servers of a service, which stays as it is described.

        Raises:
            CloudError: If it is not there, or the API server refuses it.
        """
        self._annotate(name, "true", dry_run=dry_run)

    def start(self, name: str, *, dry_run: bool = False) -> None:
        """Have a stopped service serve again.

        Raises:
            CloudError: If it is not there, or the API server refuses it.
        """
        self._annotate(name, None, dry_run=dry_run)

    def _annotate(self, name: str, value: str | None, *, dry_run: bool) -> None:
        service = self._watched(name).read()
        self._change(service, {"metadata": {"annotations": {_STOP: value}}}, dry_run=dry_run)

    def _change(self, service: Document, change: Document, *, dry_run: bool) -> None:
        metadata = service["metadata"]
        change = {**change, "metadata": {**change.get("metadata", {}), "resourceVersion": metadata["resourceVersion"]}}
        self._api.merge(self._watched(metadata["name"]).path, change, **_query(dry_run=dry_run))

    def _replace(self, service: Document, changes: list[Document], *, dry_run: bool) -> None:
        metadata = service["metadata"]
        same = {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
        self._api.replace_fields(self._watched(metadata["name"]).path, [same, *changes], **_query(dry_run=dry_run))

    def _watched(self, name: str) -> Watched:
        return Watched(self._api, INFERENCE_SERVICES, self._namespace, name, self._what(name))

    def _what(self, name: str) -> str:
        return f"InferenceService {self._namespace}/{name}"


def _query(*, dry_run: bool) -> dict[str, object]:
    return {"dryRun": "All" if dry_run else None}


def _others(service: Document, chosen: Document) -> list[Document]:
    """The canaries beside one."""
    return [one for one in service["spec"]["canary"] if one is not chosen]


def _promoted(stable: Document, canary: Document) -> Document:
    """The predictor that a canary becomes: its model and its name, and the scaling of the one before."""
    model: dict[str, Any] = {name: value for name, value in canary["model"].items() if name != "name"}
    others = {name: value for name, value in canary.items() if name not in {"model", "minReplicas"}}
    return {**stable, **others, "model": model}
