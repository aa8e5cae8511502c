"""What both plain clients know: the server, how patiently it is asked, and what is known of its models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Self

from alipes._core import ClientLink, ClientPlan
from alipes.client.plain.endpoint import Endpoint
from alipes.client.plain.operations import HTTP, Operations
from alipes.client.plain.question import Inputs, Options, Outputs, Question
from alipes.client.plain.retry import Attempts, Retry
from alipes.client.plain.shared import SharedMemory
from alipes.client.plain.signature import Signature
from alipes.client.tls import Tls
from alipes.errors import AlipesError, InferError

__all__ = ["DEFAULT_TIMEOUT_S", "PlainClient", "config_text"]

DEFAULT_TIMEOUT_S: Final = 60.0
"""Longest time for a question with all its attempts, where the caller does not say: longer than nearly any model takes,
and nobody waits for ever for a server that has gone silent."""

_CONNECT_TIMEOUT_S: Final = 10.0


class PlainClient:
    """The part that asks nobody."""

    def __init__(
        self,
        address: str = "localhost:8001",
        *,
        timeout_s: float | None = DEFAULT_TIMEOUT_S,
        connect_timeout_s: float = _CONNECT_TIMEOUT_S,
        retry: Retry | None = None,
        headers: Mapping[str, str] | None = None,
        tls: Tls | None = None,
    ) -> None:
        """Connects with the first question.

        Args:
            address: `grpc://host:port`, `http://host:port` or, over gRPC, `host:port`; with `grpcs://` or `https://`
                for encrypted connections, and `unix:path` in the place of host and port for a Unix socket.
            timeout_s: Longest time for a question with all its attempts; `None` is no limit.
            connect_timeout_s: Longest time for a connection.
            retry: How often to ask again what may be repeated; `Retry(times=0)` never does.
            headers: Headers of each request; metadata, over gRPC.
            tls: Whom to trust on encrypted connections, and who the client is; the roots of the system by default.

        Raises:
            ConfigError: If the address is of an unknown kind, or a file of `tls` cannot be used.
            TransportError: If it is no address.
        """
        self.endpoint = Endpoint.parse(address, tls)
        self.timeout_s = timeout_s
        self.retry = retry if retry is not None else Retry()
        pairs, encryption = list((headers or {}).items()), self.endpoint.tls
        self._link = ClientLink(
            self.endpoint.address,
            self.endpoint.wire,
            connect_timeout_s,
            pairs,
            None if encryption is None else encryption.read(),
        )
        self._signatures: dict[tuple[str, str], Signature] = {}
        self._plans: dict[str, ClientPlan] = {}
        self._regions: tuple[SharedMemory, ...] = ()

    @property
    def _operations(self) -> Operations:
        if self.endpoint.wire == "http":
            return HTTP
        from alipes.client.plain.operations_grpc import GRPC  # protobuf is imported by those who use it

        return GRPC

    def _attempts(self, timeout_s: float | None, *, repeatable: bool, retry: Retry | None = None) -> Attempts:
        whole_s = self.timeout_s if timeout_s is None else timeout_s
        return Attempts(retry or self.retry, whole_s, repeatable=repeatable)

    def _known(self, model: str, version: str) -> Signature | None:
        return self._signatures.get((model, version))

    def _learn(self, model: str, version: str, signature: Signature) -> Signature:
        self._signatures[model, version] = signature
        if not version:
            self._plans.pop(model, None)
            if signature.is_plain:
                inputs = [(spec.name, spec.datatype, spec.shape) for spec in signature.inputs.values()]
                self._plans[model] = ClientPlan(model, inputs)
        return signature

    def _question(self, signature: Signature, inputs: Inputs, outputs: Outputs | None, options: Options) -> Question:
        return Question(signature, inputs, outputs, options, self._regions)

    def _forget(self, model: str) -> None:
        """What is loaded again may be another model."""
        for key in [key for key in self._signatures if key[0] == model]:
            del self._signatures[key]
        self._plans.pop(model, None)

    def _name(self, error: AlipesError, model: str, options: Options) -> None:
        """Says of an error whose it is."""
        if isinstance(error, InferError):
            error.model = model
            error.request_id = options.request_id or None

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def close(self) -> None:
        """Closes the connections that no question uses now."""
        self._link.close()

    def __exit__(self, *_: object) -> None:
        """Closes the connections."""
        self.close()

    def __repr__(self) -> str:
        """The server that is asked."""
        return f"{type(self).__name__}('{self.endpoint}')"


def config_text(config: Mapping[str, Any] | str | None) -> str | None:
    """A model's configuration as the server takes it."""
    return config if config is None or isinstance(config, str) else json.dumps(config)
