"""A server's control calls over gRPC, with the messages of the project's own proto file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alipes import _core
from alipes.client.grpc_messages import decode_response, encode_request
from alipes.client.inference.document import Answered
from alipes.client.inference.triton_names import TritonNames

__all__ = ["GrpcCalls"]


class GrpcCalls(TritonNames):
    """The calls of one server."""

    def __init__(
        self,
        address: str,
        timeout_s: float,
        tls: _core.ClientTls | None = None,
        headers: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        """Connects with the first call, to `host:port` or `unix:path`."""
        self._link = _core.ClientLink(address, "grpc", timeout_s, headers, tls)
        self._timeout_s = timeout_s

    def is_live(self) -> bool:
        """Whether the server runs."""
        return self.is_server_live()

    def is_ready(self, model: str, version: str) -> bool:
        """Whether a version can answer."""
        return self.is_model_ready(model, version)

    def metadata(self, model: str, version: str) -> Answered:
        """Names, datatypes and shapes."""
        return Answered(self.get_model_metadata(model, version))

    def config(self, model: str, version: str) -> Answered:
        """The configuration."""
        return Answered(self.get_model_config(model, version).config)

    def models(self) -> list[str]:
        """Names of the models that the server knows of."""
        return sorted({entry.name for entry in self.get_model_repository_index().models})

    def load(self, model: str) -> None:
        """Loads a model, or raises what the server says."""
        self.load_model(model)

    def close(self) -> None:
        """Ends the connection."""
        self._link.close()

    def _call(self, method: str, **fields: Any) -> Any:
        return decode_response(method, self._link.call(method, encode_request(method, fields), self._timeout_s))
