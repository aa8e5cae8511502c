"""What a service of KServe does now, as its own object and its pods say it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from alipes.cloud.kubernetes.api import Api, Document
from alipes.cloud.kubernetes.findings import Finding
from alipes.cloud.kubernetes.pods import findings_in
from alipes.cloud.kubernetes.readiness import deployment_ready, replicas_of
from alipes.cloud.kubernetes.refusals import Refused
from alipes.cloud.kubernetes.resources import DEPLOYMENTS, PODS, item_path
from alipes.cloud.kubernetes.waiting import Look

__all__ = ["SERVICE_LABEL", "Condition", "ServiceStatus", "Share", "look_at_service", "service_status"]

SERVICE_LABEL: Final = "serving.kserve.io/inferenceservice"
"""KServe's label of the pods of a service."""
_STOP: Final = "serving.kserve.io/stop"
_MODE: Final = "serving.kserve.io/deploymentMode"
_SCALER: Final = "serving.kserve.io/autoscalerClass"
_OWN_SCALERS: Final = frozenset({"hpa", "keda", "none"})
"""Those that see to the fewest servers."""
_SOURCE: Final = "internal.serving.kserve.io/storage-initializer-sourceuri"
"""KServe's annotation of pods that names their model."""
_FAILED: Final = frozenset({"BlockedByFailedLoad", "InvalidSpec"})
"""What KServe says of a model that it cannot serve."""
_ALL: Final = 100


@dataclass(frozen=True)
class Condition:
    """One thing that KServe says of a service.

    Attributes:
        name: What, such as `PredictorReady`.
        state: `True`, `False` or `Unknown`.
        reason: Why, as KServe names it.
        text: Why, in words.
    """

    name: str
    state: str
    reason: str = ""
    text: str = ""


@dataclass(frozen=True)
class Share:
    """Who gets how many of a hundred requests.

    Attributes:
        name: A predictor, or a revision of Knative.
        percent: Of the requests.
        state: `ready`, `not ready`, or nothing where KServe does not say.
    """

    name: str
    percent: int
    state: str = ""


@dataclass(frozen=True)
class ServiceStatus:
    """A service.

    Attributes:
        name: Its name.
        namespace: Its namespace.
        mode: `Standard` or `Knative`.
        url: Where it is asked; empty before KServe says.
        is_ready: Whether it serves.
        is_stopped: Whether it has been stopped.
        conditions: What KServe says, one by one.
        shares: How requests are split.
        reasons: Why it does not serve, each in a sentence.
    """

    name: str
    namespace: str
    mode: str
    url: str
    is_ready: bool
    is_stopped: bool
    conditions: tuple[Condition, ...]
    shares: tuple[Share, ...]
    reasons: tuple[str, ...]


def service_status(api: Api, service: Document) -> ServiceStatus:
    """A service as it is."""
    status = service.get("status", {})
    conditions = tuple(_conditions(status))
    is_ready = _is_ready(conditions)
    is_stopped = _is_to_stop(service)
    findings = () if is_ready or is_stopped else _findings(api, service)
    return ServiceStatus(
        name=service["metadata"]["name"],
        namespace=service["metadata"]["namespace"],
        mode=status.get("deploymentMode") or service["metadata"].get("annotations", {}).get(_MODE, ""),
        url=str(status.get("url", "")),
        is_ready=is_ready,
        is_stopped=is_stopped,
        conditions=conditions,
        shares=tuple(_shares(service, conditions)),
        reasons=tuple(dict.fromkeys(finding.text for finding in findings)),
    )


def look_at_service(api: Api, service: Document) -> Look[Document]:
    """What a wait for a service sees."""
    conditions = tuple(_conditions(service.get("status", {})))
    if _is_to_stop(service):
        stopped = any(one.name == "Stopped" and one.state == "True" for one in conditions)
        return Look(service if stopped else None, "its servers are ending")
    if _is_ready(conditions) and _canaries_follow(service) and _servers_follow(api, service):
        return Look(service)
    if not conditions:
        return Look(None, "KServe has not seen it yet")
    unready = [one.name for one in conditions if one.state != "True" and one.name not in {"Ready", "Stopped"}]
    return Look(None, f"not yet: {', '.join(unready) or 'the newest change'}", _findings(api, service))


def _canaries_follow(service: Document) -> bool:
    """Whether the canaries that KServe speaks of are those that are described; it says no generation."""
    described = {one["predictor"]["name"]: one["trafficPercent"] for one in service["spec"].get("canary") or ()}
    spoken = {
        one["name"]: one["trafficPercent"] for one in service["status"].get("canaryStatuses") or () if one["ready"]
    }
    return described == spoken


def _servers_follow(api: Api, service: Document) -> bool:
    """Whether the servers are as described, where they are those of a deployment: KServe is ready as it was before."""
    metadata, predictor = service["metadata"], service["spec"]["predictor"]
    name = "-".join(part for part in (metadata["name"], predictor.get("name"), "predictor") if part)
    try:
        deployment = api.get(item_path(DEPLOYMENTS, metadata["namespace"], name))
    except Refused as error:
        if error.status not in {403, 404}:
            raise
        return True  # there is none, or it may not be looked at
    source = deployment["spec"]["template"]["metadata"].get("annotations", {}).get(_SOURCE)
    if source != predictor.get("model", {}).get("storageUri", source):
        return False
    return deployment_ready(deployment) and replicas_of(deployment) >= _least(service)


def _least(service: Document) -> int:
    """Fewest servers of the predictor; those of canaries are taken from them."""
    if service["metadata"].get("annotations", {}).get(_SCALER) not in _OWN_SCALERS:
        return 0
    least = int(service["spec"]["predictor"].get("minReplicas", 1))
    canaries = service["spec"].get("canary") or ()
    others = sum(int(one["predictor"].get("minReplicas", least)) for one in canaries)
    return max(least - others, 1) if others else least


def _conditions(status: Mapping[str, Any]) -> Iterator[Condition]:
    for one in status.get("conditions", ()):
        yield Condition(one["type"], one["status"], one.get("reason", ""), one.get("message", ""))


def _is_ready(conditions: tuple[Condition, ...]) -> bool:
    return any(one.name == "Ready" and one.state == "True" for one in conditions)


def _is_to_stop(service: Document) -> bool:
    return bool(service["metadata"].get("annotations", {}).get(_STOP) == "true")


def _shares(service: Document, conditions: tuple[Condition, ...]) -> Iterator[Share]:
    """Of Knative's revisions; otherwise of the predictor and its canaries."""
    status = service.get("status", {})
    revisions = status.get("components", {}).get("predictor", {}).get("traffic")
    if revisions:
        for one in revisions:
            yield Share(str(one.get("revisionName", "")), int(one.get("percent", 0)))
        return
    canaries = service["spec"].get("canary") or ()
    ready = {one["name"]: "ready" if one["ready"] else "not ready" for one in status.get("canaryStatuses") or ()}
    rest = _ALL - sum(int(one["trafficPercent"]) for one in canaries)
    own = next((one.state == "True" for one in conditions if one.name == "PredictorReady"), None)
    state = "" if own is None else "ready" if own else "not ready"
    yield Share(service["spec"]["predictor"].get("name") or "predictor", rest, state)
    for one in canaries:
        name = str(one["predictor"]["name"])
        yield Share(name, int(one["trafficPercent"]), ready.get(name, ""))


def _findings(api: Api, service: Document) -> tuple[Finding, ...]:
    """Why a service is not ready: what KServe says of its model, what its conditions say, and what its pods say."""
    return (*_in_model(service), *_in_pods(api, service), *_in_conditions(service))


def _in_model(service: Document) -> Iterator[Finding]:
    model = service.get("status", {}).get("modelStatus", {})
    failure = model.get("lastFailureInfo")
    if failure and model.get("transitionStatus") in _FAILED:
        reason = str(failure.get("reason", ""))
        yield Finding(reason, f"the model cannot be served: {failure.get('message') or reason}")


def _in_conditions(service: Document) -> Iterator[Finding]:
    for one in _conditions(service.get("status", {})):
        if one.state == "False" and one.name not in {"Ready", "Stopped"} and (one.text or one.reason):
            yield Finding(one.reason, f"{one.name}: {one.text or one.reason}", may_pass=True)


def _in_pods(api: Api, service: Document) -> Iterator[Finding]:
    metadata = service["metadata"]
    path = PODS.collection(metadata["namespace"])
    try:
        pods = api.get(path, labelSelector=f"{SERVICE_LABEL}={metadata['name']}")["items"]
    except Refused as error:
        if error.status != 403:
            raise
        return
    yield from findings_in(api, pods)
