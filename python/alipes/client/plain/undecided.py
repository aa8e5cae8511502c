"""Control calls at an address without a scheme, which may be one of gRPC or of HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from alipes.client.plain.operations import HTTP, OVER_HTTP, Call, Operations
from alipes.types import IndexEntry, TrafficSplit

__all__ = ["UndecidedOperations"]

T = TypeVar("T")
Document = dict[str, Any]


class UndecidedOperations:
    """Control calls over gRPC, each of which can be made over HTTP instead."""

    def __init__(self, grpc: Operations) -> None:
        """Takes the calls over gRPC."""
        self._grpc = grpc

    def live(self) -> Call[bool]:
        """Whether the server answers."""
        return self._either(lambda operations: operations.live())

    def ready(self) -> Call[bool]:
        """Whether the server is ready."""
        return self._either(lambda operations: operations.ready())

    def model_ready(self, model: str, version: str) -> Call[bool]:
        """Whether a model is ready."""
        return self._either(lambda operations: operations.model_ready(model, version))

    def server_metadata(self) -> Call[Document]:
        """Name, version, extensions."""
        return self._either(lambda operations: operations.server_metadata())

    def metadata(self, model: str, version: str) -> Call[Document]:
        """A model's inputs and outputs."""
        return self._either(lambda operations: operations.metadata(model, version))

    def config(self, model: str, version: str) -> Call[Document]:
        """A model's configuration."""
        return self._either(lambda operations: operations.config(model, version))

    def statistics(self, model: str, version: str) -> Call[list[Document]]:
        """Statistics of a model, or of all."""
        return self._either(lambda operations: operations.statistics(model, version))

    def index(self) -> Call[list[IndexEntry]]:
        """The repository index."""
        return self._either(lambda operations: operations.index())

    def load(self, model: str, config: str | None, files: Mapping[str, bytes]) -> Call[None]:
        """Loads a model."""
        return self._either(lambda operations: operations.load(model, config, files))

    def unload(self, model: str, dependents: bool) -> Call[None]:
        """Unloads a model."""
        return self._either(lambda operations: operations.unload(model, dependents))

    def traffic(self, model: str) -> Call[TrafficSplit]:
        """How the requests for a model are divided among its versions: HTTP alone has that."""
        return _over_http(lambda: HTTP.traffic(model))

    def set_traffic(self, model: str, split: TrafficSplit) -> Call[TrafficSplit]:
        """Divides them otherwise: HTTP alone has that."""
        return _over_http(lambda: HTTP.set_traffic(model, split))

    def traffic_outcomes(self, model: str) -> Call[dict[int, Document]]:
        """What became of the requests since they are divided so: HTTP alone has that."""
        return _over_http(lambda: HTTP.traffic_outcomes(model))

    def share(self, region: str, key: str, byte_size: int) -> Call[None]:
        """Registers shared memory."""
        return self._either(lambda operations: operations.share(region, key, byte_size))

    def unshare(self, region: str) -> Call[None]:
        """Unregisters shared memory."""
        return self._either(lambda operations: operations.unshare(region))

    def share_cuda(self, region: str, handle: bytes, device_id: int, byte_size: int) -> Call[None]:
        """Registers memory of a GPU, by its handle of 64 bytes."""
        return self._either(lambda operations: operations.share_cuda(region, handle, device_id, byte_size))

    def cuda_regions(self, region: str) -> Call[list[Document]]:
        """A region on a GPU, or all where the name is empty."""
        return self._either(lambda operations: operations.cuda_regions(region))

    def unshare_cuda(self, region: str) -> Call[None]:
        """Unregisters memory of a GPU, or all where the name is empty."""
        return self._either(lambda operations: operations.unshare_cuda(region))

    def _either(self, make: Callable[[Operations], Call[T]]) -> Call[T]:
        return replace(make(self._grpc), over_http=lambda: make(HTTP))


def _over_http(make: Callable[[], Call[T]]) -> Call[T]:
    """A call that HTTP alone has: a server of gRPC knows no such method, and one of HTTP is asked again over HTTP."""
    return replace(make(), over_http=make, only_http=OVER_HTTP)
