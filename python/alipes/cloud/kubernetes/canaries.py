"""A canary of a service of KServe: what it is to replace, which pods serve both, and whether KServe has followed.

Without Knative, predictor and canaries are deployments of their own, whose pods KServe labels `app`. With Knative they
are the revision that had all requests last and the newest one. Source: KServe 0.20, `components/predictor.go`,
`inference_service_status.go`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from alipes.cloud.kubernetes.api import Document
from alipes.cloud.kubernetes.pods import is_ready
from alipes.errors import CloudError

__all__ = [
    "CanaryState",
    "ServerPod",
    "ServiceCanary",
    "canary_of",
    "canary_state",
    "chosen_canary",
    "is_served_by",
    "is_split",
]

_APP: Final = "app"
_REVISION: Final = "serving.knative.dev/revision"
_CONTAINER: Final = "kserve-container"
"""KServe's name of the container of the server."""
_MODEL: Final = ("storageUri", "storage", "args", "env", "image")
"""Fields of a model that make it another one; KServe itself completes others."""


@dataclass(frozen=True)
class ServiceCanary:
    """A canary.

    Attributes:
        service: The name of its service.
        namespace: The namespace of both.
        stable: The predictor that serves, or Knative's revision.
        candidate: The canary, or the newest revision.
        label: The label that tells their pods apart.
        values: The values of it, of the pods that serve and of the canary's.
        digest: By what the models of both are known again.
    """

    service: str
    namespace: str
    stable: str
    candidate: str
    label: str
    values: tuple[str, str]
    digest: str

    @property
    def name(self) -> str | None:
        """By what it is chosen among several; None with Knative, which has one."""
        return None if self.label == _REVISION else self.candidate


@dataclass(frozen=True)
class ServerPod:
    """A pod whose server runs, also on its way out.

    Attributes:
        name: Its name.
        uid: By what it is known again.
        is_candidate: Whether it is of the canary.
        is_ready: Whether it gets requests, so that it has to answer.
        restarts: How often its server has started again.
    """

    name: str
    uid: str
    is_candidate: bool
    is_ready: bool
    restarts: int


@dataclass(frozen=True)
class CanaryState:
    """A service with a canary at one moment.

    Attributes:
        canary: The canary; None where there is none any more.
        percent: Its share of the requests as it is described; None where it is not.
        followed: Its share as KServe has made it; None before KServe says.
        is_promoted: The candidate is what serves now.
        pods: The pods of both.
    """

    canary: ServiceCanary | None
    percent: int | None
    followed: int | None
    is_promoted: bool
    pods: tuple[ServerPod, ...]


def is_split(service: Document) -> bool:
    """Whether a percentage of the requests is the newest revision's, as Knative has it."""
    return service["spec"]["predictor"].get("canaryTrafficPercent") is not None


def chosen_canary(service: Document, canary: str | None) -> Document:
    """A canary beside the predictor, as it is described.

    Raises:
        CloudError: If there is none of the name, or no name and several.
    """
    canaries: list[Document] = service["spec"].get("canary") or []
    what = _what(service)
    names = [str(one["predictor"]["name"]) for one in canaries]
    if not canaries:
        raise CloudError(f"{what} has no canary", reason="NotFound")
    if canary is None and len(canaries) > 1:
        raise CloudError(f"{what} has several canaries: say which of {', '.join(names)}", reason="Ambiguous")
    if canary is not None and canary not in names:
        raise CloudError(f"{what} has no canary '{canary}'; it has {', '.join(names)}", reason="NotFound")
    return canaries[0 if canary is None else names.index(canary)]


def canary_of(service: Document, canary: str | None = None) -> ServiceCanary:
    """The canary of a service.

    Args:
        service: The service.
        canary: Which, where there are several.

    Raises:
        CloudError: If there is no such canary, or the newest revision has all requests.
    """
    if is_split(service) and canary is None:
        return _of_knative(service)
    chosen = chosen_canary(service, canary)["predictor"]
    predictor, metadata = service["spec"]["predictor"], service["metadata"]
    values = tuple(_app(metadata["name"], one.get("name")) for one in (predictor, chosen))
    return ServiceCanary(
        service=metadata["name"],
        namespace=metadata["namespace"],
        stable=predictor.get("name") or "predictor",
        candidate=chosen["name"],
        label=_APP,
        values=(values[0], values[1]),
        digest=_digest([_models(predictor), _models(chosen)]),
    )


def _of_knative(service: Document) -> ServiceCanary:
    status = _predictor_status(service)
    stable, candidate = (str(status.get(name, "")) for name in ("latestRolledoutRevision", "latestCreatedRevision"))
    if not stable or not candidate or stable == candidate:
        raise CloudError(
            f"{_what(service)} has no canary: no revision is newer than the one that serves", reason="NotFound"
        )
    metadata = service["metadata"]
    return ServiceCanary(
        service=metadata["name"],
        namespace=metadata["namespace"],
        stable=stable,
        candidate=candidate,
        label=_REVISION,
        values=(stable, candidate),
        digest=_digest([stable, candidate]),
    )


def canary_state(service: Document, canary: ServiceCanary, pods: Sequence[Document]) -> CanaryState:
    """A service with a canary.

    Args:
        service: The service as it is now.
        canary: The canary as it was found.
        pods: The pods of the service.
    """
    try:
        now = canary_of(service, canary.name)
    except CloudError:
        now = None
    ours = tuple(_server_pods(canary, pods))
    is_promoted = is_served_by(service, canary.candidate)
    if canary.name is None:
        percent = service["spec"]["predictor"].get("canaryTrafficPercent")
        return CanaryState(now, percent, _followed_by_knative(service, canary), is_promoted, ours)
    described = {one["predictor"]["name"]: one["trafficPercent"] for one in service["spec"].get("canary") or ()}
    spoken = {one["name"]: one for one in service.get("status", {}).get("canaryStatuses") or () if one["ready"]}
    followed = spoken.get(canary.candidate, {}).get("trafficPercent")
    return CanaryState(now, described.get(canary.candidate), followed, is_promoted, ours)


def is_served_by(service: Document, candidate: str) -> bool:
    """Whether what was a canary, or the newest revision, has all requests."""
    if service.get("status", {}).get("deploymentMode") == "Knative":
        newest = _predictor_status(service).get("latestCreatedRevision")
        return not is_split(service) and newest == candidate
    return bool(service["spec"]["predictor"].get("name") == candidate)


def _followed_by_knative(service: Document, canary: ServiceCanary) -> int | None:
    status = _predictor_status(service)
    if status.get("latestReadyRevision") != canary.candidate:
        return None
    shares = [one for one in status.get("traffic") or () if one.get("revisionName") == canary.candidate]
    return sum(int(one.get("percent") or 0) for one in shares)


def _server_pods(canary: ServiceCanary, pods: Sequence[Document]) -> Iterator[ServerPod]:
    for pod in pods:
        metadata, status = pod["metadata"], pod.get("status", {})
        value = metadata.get("labels", {}).get(canary.label)
        if value not in canary.values or status.get("phase") != "Running":
            continue
        servers = [one for one in status.get("containerStatuses", ()) if one["name"] == _CONTAINER]
        yield ServerPod(
            name=metadata["name"],
            uid=metadata["uid"],
            is_candidate=value == canary.values[1],
            is_ready=is_ready(pod) and "deletionTimestamp" not in metadata,
            restarts=sum(int(one.get("restartCount", 0)) for one in servers),
        )


def _predictor_status(service: Document) -> Mapping[str, Any]:
    found: Mapping[str, Any] = service.get("status", {}).get("components", {}).get("predictor", {})
    return found


def _app(service: str, predictor: str | None) -> str:
    return f"isvc.{'-'.join(part for part in (service, predictor, 'predictor') if part)}"


def _models(predictor: Mapping[str, Any]) -> list[object]:
    model = predictor.get("model", {})
    containers = [{name: one.get(name) for name in _MODEL} for one in predictor.get("containers") or ()]
    return [predictor.get("name"), {name: model.get(name) for name in _MODEL}, containers]


def _digest(about: object) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]


def _what(service: Document) -> str:
    return f"InferenceService {service['metadata']['namespace']}/{service['metadata']['name']}"
