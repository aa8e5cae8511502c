"""What a deployment has on KServe: its objects by their labels, what they say of themselves, and their runtimes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from alipes.cloud.kubernetes.api import Api, Document
from alipes.cloud.kubernetes.inference_status import ServiceStatus, service_status
from alipes.cloud.kubernetes.kserve_kinds import INFERENCE_SERVICES, OWNED, RUNTIMES
from alipes.cloud.kubernetes.made import Change, Made
from alipes.cloud.kubernetes.refusals import Refused
from alipes.cloud.kubernetes.resources import Kind, item_path

__all__ = ["KServeObjects", "KServeStatus", "PartStatus", "RuntimeUse"]

_EVERYWHERE: Final = Kind(INFERENCE_SERVICES.root, INFERENCE_SERVICES.plural, is_namespaced=False)
"""The services of all namespaces."""
_SPEAKING: Final = ("TrainedModel", "InferenceGraph")
"""Kinds whose objects say whether they serve, besides services."""
_NOT_READY: Final = "not ready"
_WRITTEN: Final = "`alipes deploy kserve` writes it, unless runtimes.written=false"


@dataclass(frozen=True)
class PartStatus:
    """One object beside the services.

    Attributes:
        kind: Its kind.
        name: Its name.
        state: `ready` or `not ready`; of a runtime `missing` or `disabled`.
        text: Why it is not ready, in KServe's words.
    """

    kind: str
    name: str
    state: str
    text: str = ""


@dataclass(frozen=True)
class KServeStatus:
    """A deployment on KServe.

    Attributes:
        services: Its services.
        parts: What else it has, and the runtimes that it names and cannot have.
    """

    services: tuple[ServiceStatus, ...]
    parts: tuple[PartStatus, ...]

    @property
    def is_ready(self) -> bool:
        """Whether there is a service, and everything serves: a runtime is needed by changes alone."""
        services = [one.is_ready for one in self.services]
        return bool(services) and all(services) and all(one.state != _NOT_READY for one in self.parts)


@dataclass(frozen=True)
class RuntimeUse:
    """A runtime, and who needs it.

    Attributes:
        runtime: The runtime.
        services: Services that name it, or that name none and may get it, each as `namespace/name`.
    """

    runtime: Made
    services: tuple[str, ...]


class KServeObjects:
    """The objects of KServe that carry some labels."""

    def __init__(self, api: Api, namespace: str, labels: Mapping[str, str]) -> None:
        """Takes where they are; nothing is asked yet."""
        self._api = api
        self._namespace = namespace
        self._selector = ",".join(f"{name}={value}" for name, value in labels.items())

    def made(self) -> list[Made]:
        """What belongs to the deployment alone, in the order in which it was made; without runtimes.

        Raises:
            CloudError: If the API server refuses to list them.
        """
        return [_made(name, kind, one) for name, kind in OWNED.items() for one in self._listed(kind)]

    def status(self) -> KServeStatus:
        """What they do now.

        Raises:
            CloudError: If the API server refuses to list them.
        """
        services = self._listed(INFERENCE_SERVICES)
        spoken = [_spoken(name, one) for name in _SPEAKING for one in self._listed(OWNED[name])]
        return KServeStatus(
            tuple(service_status(self._api, one) for one in services),
            (*spoken, *self._runtimes_missed_by(services)),
        )

    def _runtimes_missed_by(self, services: Iterable[Document]) -> Iterator[PartStatus]:
        """The runtimes that services name and cannot have, each once."""
        names = {name: None for service in services for name, _ in _models(service) if name}
        for name in names:
            found = [one for kind in RUNTIMES.values() if (one := self._read(kind, name)) is not None]
            if not found:
                yield PartStatus("runtime", name, "missing", _WRITTEN)
            elif all(one.get("spec", {}).get("disabled") for one in found):
                yield PartStatus("runtime", name, "disabled")

    def runtime_uses(self) -> list[RuntimeUse]:
        """The runtimes that carry the labels, with the services of all namespaces that need them.

        Raises:
            CloudError: If the API server refuses to list them, or the services.
        """
        found = [(name, kind, one) for name, kind in RUNTIMES.items() for one in self._listed(kind)]
        if not found:
            return []
        everywhere = any(not kind.is_namespaced for _, kind, _ in found)
        services = self._all(_EVERYWHERE if everywhere else INFERENCE_SERVICES)
        return [
            RuntimeUse(
                _made(name, kind, runtime),
                tuple(_address(service) for service in services if _may_use(service, runtime)),
            )
            for name, kind, runtime in found
        ]

    def _listed(self, kind: Kind) -> list[Document]:
        return self._all(kind, labelSelector=self._selector)

    def _all(self, kind: Kind, **query: object) -> list[Document]:
        """Objects of a kind; none where the cluster lacks the kind.

        Who may not list those of the whole cluster has made none.
        """
        try:
            items: list[Document] = self._api.get(kind.collection(self._namespace), **query)["items"]
        except Refused as error:
            if error.status == 404 or (error.status == 403 and not kind.is_namespaced and query):
                return []
            raise
        return items

    def _read(self, kind: Kind, name: str) -> Document | None:
        """An object; None where there is none, and nothing in it where the caller may not look."""
        try:
            return self._api.get(item_path(kind, self._namespace, name))
        except Refused as error:
            if error.status not in {403, 404}:
                raise
            return None if error.status == 404 else {}


def _made(name: str, kind: Kind, one: Document) -> Made:
    metadata = one["metadata"]
    namespace = str(metadata.get("namespace", "")) if kind.is_namespaced else ""
    return Made(name, metadata["name"], namespace, item_path(kind, namespace, metadata["name"]), Change.UNCHANGED)


def _spoken(kind: str, one: Document) -> PartStatus:
    conditions = one.get("status", {}).get("conditions") or ()
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    texts = (each.get("message") or each.get("reason") or "" for each in conditions if each["status"] == "False")
    text = "" if is_ready else "; ".join(dict.fromkeys(filter(None, texts))) or "KServe has not seen it yet"
    return PartStatus(kind, one["metadata"]["name"], "ready" if is_ready else _NOT_READY, text)


def _models(service: Document) -> Iterator[tuple[str, str]]:
    """The runtime and the format that each predictor of a service names; either may be empty."""
    spec = service["spec"]
    for predictor in (spec["predictor"], *(one["predictor"] for one in spec.get("canary") or ())):
        model = predictor.get("model")
        if model is not None:
            yield str(model.get("runtime", "")), str(model.get("modelFormat", {}).get("name", ""))


def _may_use(service: Document, runtime: Document) -> bool:
    """Whether a service names a runtime, or names none and may get this one for its format."""
    metadata = runtime["metadata"]
    place = metadata.get("namespace")
    if place and place != service["metadata"]["namespace"]:
        return False
    formats = {one["name"] for one in runtime["spec"].get("supportedModelFormats") or () if one.get("autoSelect")}
    return any(name == metadata["name"] if name else model_format in formats for name, model_format in _models(service))


def _address(service: Document) -> str:
    return f"{service['metadata']['namespace']}/{service['metadata']['name']}"
