"""Control calls over gRPC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor

from alipes.client.grpc_messages import decode_response, encode_request
from alipes.client.plain.operations import OVER_HTTP, Call, Document, index_entry
from alipes.client.plain.retry import UNREGISTER_RETRY
from alipes.config.schema import is_repeated
from alipes.errors import Unsupported
from alipes.types import IndexEntry, TrafficSplit

__all__ = ["GRPC", "GrpcOperations"]

T = TypeVar("T")


class GrpcOperations:
    """Control calls over gRPC."""

    def live(self) -> Call[bool]:
        """Whether the server answers."""
        return _call("ServerLive", {}, lambda answer: bool(answer.live))

    def ready(self) -> Call[bool]:
        """Whether the server is ready."""
        return _call("ServerReady", {}, lambda answer: bool(answer.ready))

    def model_ready(self, model: str, version: str) -> Call[bool]:
        """Whether a model is ready."""
        return _call("ModelReady", {"name": model, "version": version}, lambda answer: bool(answer.ready))

    def server_metadata(self) -> Call[Document]:
        """Name, version, extensions."""
        return _call("ServerMetadata", {}, plain)

    def metadata(self, model: str, version: str) -> Call[Document]:
        """A model's inputs and outputs."""
        return _call("ModelMetadata", {"name": model, "version": version}, plain)

    def config(self, model: str, version: str) -> Call[Document]:
        """A model's configuration."""
        return _call("ModelConfig", {"name": model, "version": version}, lambda answer: plain(answer.config))

    def statistics(self, model: str, version: str) -> Call[list[Document]]:
        """Statistics of a model, or of all."""

        def read(answer: Any) -> list[Document]:
            return [plain(model) for model in answer.model_stats]

        return _call("ModelStatistics", {"name": model, "version": version}, read)

    def index(self) -> Call[list[IndexEntry]]:
        """The repository index."""
        return _call("RepositoryIndex", {}, lambda answer: [index_entry(plain(line)) for line in answer.models])

    def load(self, model: str, config: str | None, files: Mapping[str, bytes]) -> Call[None]:
        """Loads a model."""
        parameters: dict[str, Any] = {} if config is None else {"config": {"string_param": config}}
        parameters |= {f"file:{path}": {"bytes_param": content} for path, content in files.items()}
        return self._repository("RepositoryModelLoad", model, parameters)

    def unload(self, model: str, dependents: bool) -> Call[None]:
        """Unloads a model."""
        return self._repository("RepositoryModelUnload", model, {"unload_dependents": {"bool_param": dependents}})

    def traffic(self, model: str) -> Call[TrafficSplit]:
        """Refuses: Triton's service has no such method."""
        raise Unsupported(OVER_HTTP)

    def set_traffic(self, model: str, split: TrafficSplit) -> Call[TrafficSplit]:
        """Refuses: Triton's service has no such method."""
        raise Unsupported(OVER_HTTP)

    def traffic_outcomes(self, model: str) -> Call[dict[int, Document]]:
        """Refuses: Triton's service has no such method."""
        raise Unsupported(OVER_HTTP)

    def share(self, region: str, key: str, byte_size: int) -> Call[None]:
        """Registers shared memory."""
        return _call("SystemSharedMemoryRegister", {"name": region, "key": key, "byte_size": byte_size}, _nothing)

    def unshare(self, region: str) -> Call[None]:
        """Unregisters shared memory."""
        return replace(_call("SystemSharedMemoryUnregister", {"name": region}, _nothing), retry=UNREGISTER_RETRY)

    def share_cuda(self, region: str, handle: bytes, device_id: int, byte_size: int) -> Call[None]:
        """Registers memory of a GPU, by its handle of 64 bytes."""
        fields = {"name": region, "raw_handle": handle, "device_id": device_id, "byte_size": byte_size}
        return _call("CudaSharedMemoryRegister", fields, _nothing)

    def cuda_regions(self, region: str) -> Call[list[Document]]:
        """A region on a GPU, or all where the name is empty."""

        def read(answer: Any) -> list[Document]:
            return [plain(found) for _, found in sorted(answer.regions.items())]

        return _call("CudaSharedMemoryStatus", {"name": region}, read)

    def unshare_cuda(self, region: str) -> Call[None]:
        """Unregisters memory of a GPU, or all where the name is empty."""
        return replace(_call("CudaSharedMemoryUnregister", {"name": region}, _nothing), retry=UNREGISTER_RETRY)

    def _repository(self, method: str, model: str, parameters: Mapping[str, Any]) -> Call[None]:
        return _call(method, {"model_name": model, "parameters": parameters}, _nothing, repeatable=False)


GRPC = GrpcOperations()


def plain(message: Any) -> Document:
    """A message as a dictionary of its fields, without the unset ones that have presence."""
    fields = message.DESCRIPTOR.fields
    return {field.name: _value(message, field) for field in fields if _is_set(message, field)}


def _is_set(message: Any, field: FieldDescriptor) -> bool:
    return not field.has_presence or bool(message.HasField(field.name))


def _value(message: Any, field: FieldDescriptor) -> Any:
    value = getattr(message, field.name)
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        nested = kind.fields_by_name["value"].message_type is not None
        return {key: plain(item) if nested else item for key, item in value.items()}
    if is_repeated(field):
        return [_item(item, field) for item in value]
    return _item(value, field)


def _item(value: Any, field: FieldDescriptor) -> Any:
    if field.message_type is not None:
        return plain(value)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return named.name if named is not None else value
    return value


def _call(method: str, fields: Mapping[str, Any], read: Callable[[Any], T], *, repeatable: bool = True) -> Call[T]:
    return Call(method, encode_request(method, fields), lambda body: read(decode_response(method, body)), repeatable)


def _nothing(_: Any) -> None:
    return None
