"""Control calls of a server: their path or method, the body of the request, and how to read the response."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Generic, Protocol, TypeVar
from urllib.parse import quote

from alipes.client.plain.retry import UNREGISTER_RETRY, Retry
from alipes.client.plain.steps import ControlStep, Step
from alipes.types import IndexEntry, ModelState, Shadow, TrafficSplit

__all__ = ["HTTP", "OVER_HTTP", "Call", "HttpOperations", "Operations"]

T = TypeVar("T")
Document = dict[str, Any]

OVER_HTTP: Final = "the weights of versions are read and changed over HTTP: use the address of the server's HTTP port"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One control call.

    Attributes:
        path: Path or method.
        body: The body of the request; `None` is a GET over HTTP.
        read: Reads the body of the response.
        repeatable: Whether it may be sent again where the outcome of an attempt is unknown.
        retry: Its retry policy; `None` is the client's own.
        over_http: Makes the same call over HTTP, where the address may be one of HTTP.
        only_http: What to say where the address turns out to be one of gRPC, which has no such call; `None` where it
            has.
    """

    path: str
    body: bytes | None
    read: Callable[[bytes], T]
    repeatable: bool = True
    retry: Retry | None = None
    over_http: Callable[[], Call[T]] | None = None
    only_http: str | None = None

    def step(self, timeout_s: float | None) -> Step:
        """One attempt, within the time that is left."""
        return ControlStep(self.path, self.body, timeout_s)


class Operations(Protocol):
    """The control calls of one protocol."""

    def live(self) -> Call[bool]:
        """Whether the server answers."""

    def ready(self) -> Call[bool]:
        """Whether the server is ready."""

    def model_ready(self, model: str, version: str) -> Call[bool]:
        """Whether a model is ready."""

    def server_metadata(self) -> Call[Document]:
        """Name, version, extensions."""

    def metadata(self, model: str, version: str) -> Call[Document]:
        """A model's inputs and outputs."""

    def config(self, model: str, version: str) -> Call[Document]:
        """A model's configuration."""

    def statistics(self, model: str, version: str) -> Call[list[Document]]:
        """Statistics of a model, or of all."""

    def index(self) -> Call[list[IndexEntry]]:
        """The repository index."""

    def load(self, model: str, config: str | None, files: Mapping[str, bytes]) -> Call[None]:
        """Loads a model."""

    def unload(self, model: str, dependents: bool) -> Call[None]:
        """Unloads a model."""

    def traffic(self, model: str) -> Call[TrafficSplit]:
        """How the requests for a model are divided among its versions."""

    def set_traffic(self, model: str, split: TrafficSplit) -> Call[TrafficSplit]:
        """Divides them otherwise."""

    def traffic_outcomes(self, model: str) -> Call[dict[int, Document]]:
        """What became of the requests since they are divided so."""

    def share(self, region: str, key: str, byte_size: int) -> Call[None]:
        """Registers shared memory."""

    def unshare(self, region: str) -> Call[None]:
        """Unregisters shared memory."""

    def share_cuda(self, region: str, handle: bytes, device_id: int, byte_size: int) -> Call[None]:
        """Registers memory of a GPU, by its handle of 64 bytes."""

    def cuda_regions(self, region: str) -> Call[list[Document]]:
        """A region on a GPU, or all where the name is empty."""

    def unshare_cuda(self, region: str) -> Call[None]:
        """Unregisters memory of a GPU, or all where the name is empty."""


class HttpOperations:
    """Control calls over HTTP."""

    def live(self) -> Call[bool]:
        """Whether the server answers."""
        return Call("/v2/health/live", None, _yes)

    def ready(self) -> Call[bool]:
        """Whether the server is ready."""
        return Call("/v2/health/ready", None, _yes)

    def model_ready(self, model: str, version: str) -> Call[bool]:
        """Whether a model is ready."""
        return Call(f"{_model(model, version)}/ready", None, _yes)

    def server_metadata(self) -> Call[Document]:
        """Name, version, extensions."""
        return Call("/v2", None, _document)

    def metadata(self, model: str, version: str) -> Call[Document]:
        """A model's inputs and outputs."""
        return Call(_model(model, version), None, _document)

    def config(self, model: str, version: str) -> Call[Document]:
        """A model's configuration."""
        return Call(f"{_model(model, version)}/config", None, _document)

    def statistics(self, model: str, version: str) -> Call[list[Document]]:
        """Statistics of a model, or of all."""
        path = f"{_model(model, version)}/stats" if model else "/v2/models/stats"
        return Call(path, None, lambda body: list(json.loads(body)["model_stats"]))

    def index(self) -> Call[list[IndexEntry]]:
        """The repository index."""
        return Call("/v2/repository/index", b"{}", lambda body: [index_entry(line) for line in json.loads(body)])

    def load(self, model: str, config: str | None, files: Mapping[str, bytes]) -> Call[None]:
        """Loads a model."""
        parameters = {} if config is None else {"config": config}
        parameters |= {f"file:{path}": base64.b64encode(content).decode() for path, content in files.items()}
        return self._repository(model, "load", parameters)

    def unload(self, model: str, dependents: bool) -> Call[None]:
        """Unloads a model."""
        return self._repository(model, "unload", {"unload_dependents": dependents})

    def traffic(self, model: str) -> Call[TrafficSplit]:
        """How the requests for a model are divided among its versions."""
        return Call(f"{_model(model, '')}/traffic", None, _split)

    def set_traffic(self, model: str, split: TrafficSplit) -> Call[TrafficSplit]:
        """Divides them otherwise."""
        weights = {str(version): weight for version, weight in split.weights.items()}
        shadow = None if split.shadow is None else asdict(split.shadow)
        document = {"weights": weights, "sticky_header": split.sticky_header, "shadow": shadow}
        return Call(f"{_model(model, '')}/traffic", json.dumps(document).encode(), _split)

    def traffic_outcomes(self, model: str) -> Call[dict[int, Document]]:
        """What became of the requests since they are divided so."""

        def read(body: bytes) -> dict[int, Document]:
            return {int(version): outcomes for version, outcomes in json.loads(body).items()}

        return Call(f"{_model(model, '')}/traffic/outcomes", None, read)

    def share(self, region: str, key: str, byte_size: int) -> Call[None]:
        """Registers shared memory."""
        body = json.dumps({"key": key, "offset": 0, "byte_size": byte_size}).encode()
        return Call(f"{_region(region)}/register", body, _nothing)

    def unshare(self, region: str) -> Call[None]:
        """Unregisters shared memory."""
        return Call(f"{_region(region)}/unregister", b"", _nothing, retry=UNREGISTER_RETRY)

    def share_cuda(self, region: str, handle: bytes, device_id: int, byte_size: int) -> Call[None]:
        """Registers memory of a GPU, by its handle of 64 bytes."""
        raw_handle = {"b64": base64.b64encode(handle).decode()}
        body = json.dumps({"raw_handle": raw_handle, "device_id": device_id, "byte_size": byte_size}).encode()
        return Call(f"{_cuda_region(region)}/register", body, _nothing)

    def cuda_regions(self, region: str) -> Call[list[Document]]:
        """A region on a GPU, or all where the name is empty."""
        return Call(f"{_cuda_region(region)}/status", None, lambda body: list(json.loads(body)))

    def unshare_cuda(self, region: str) -> Call[None]:
        """Unregisters memory of a GPU, or all where the name is empty."""
        return Call(f"{_cuda_region(region)}/unregister", b"", _nothing, retry=UNREGISTER_RETRY)

    def _repository(self, model: str, what: str, parameters: Mapping[str, Any]) -> Call[None]:
        body = json.dumps({"parameters": parameters}).encode()
        path = f"/v2/repository/models/{quote(model, safe='')}/{what}"
        return Call(path, body, _nothing, repeatable=False)


HTTP = HttpOperations()


def _document(body: bytes) -> Document:
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError(f"expected a JSON object, got {body[:60]!r}")
    return document


def index_entry(line: Mapping[str, Any]) -> IndexEntry:
    """A line of the repository index."""
    state = line.get("state") or None
    return IndexEntry(
        line["name"], str(line.get("version", "")), ModelState(state) if state else None, line.get("reason", "")
    )


def _model(model: str, version: str) -> str:
    path = f"/v2/models/{quote(model, safe='')}"
    return f"{path}/versions/{quote(version, safe='')}" if version else path


def _region(region: str) -> str:
    return f"/v2/systemsharedmemory/region/{quote(region, safe='')}"


def _cuda_region(region: str) -> str:
    return f"/v2/cudasharedmemory/region/{quote(region, safe='')}" if region else "/v2/cudasharedmemory"


def _split(body: bytes) -> TrafficSplit:
    document = json.loads(body)
    weights = {int(version): weight for version, weight in document["weights"].items()}
    shadow = None if document.get("shadow") is None else Shadow(**document["shadow"])
    return TrafficSplit(weights, document["sticky_header"], tuple(document["versions"]), shadow)


def _yes(_: bytes) -> bool:
    return True


def _nothing(_: bytes) -> None:
    return None
