"""Clients of models whose requests come in sequences, over both protocols, with one vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException

from support.endpoints import tensors
from support.server import ServerProcess

_MODULES = {"http": http_client, "grpc": grpc_client}

# Longer than any answer takes on a busy machine, shorter than the test's own limit.
_TIMEOUT_S = 100.0


class Caller:
    """One client, for one request at a time."""

    def __init__(self, server: ServerProcess, protocol: str, outputs: Sequence[str] | None = None) -> None:
        """Connects. Each request asks for these outputs, or for all."""
        self._module: Any = _MODULES[protocol]
        self._outputs = outputs
        if protocol == "http":
            self._client: Any = http_client.InferenceServerClient(server.http, network_timeout=_TIMEOUT_S)
        else:
            self._client = grpc_client.InferenceServerClient(server.grpc)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def step(
        self,
        model: str,
        sequence: int | str,
        inputs: Mapping[str, Any],
        *,
        start: bool = False,
        end: bool = False,
        timeout_us: int | None = None,
    ) -> dict[str, Any]:
        """The outputs of one request of a sequence, as lists.

        Raises:
            InferenceServerException: If the server answers with an error.
        """
        wanted = [self._module.InferRequestedOutput(name) for name in self._outputs or ()]
        result = self._client.infer(
            model,
            tensors(self._module, inputs),
            outputs=wanted or None,
            sequence_id=sequence,
            sequence_start=start,
            sequence_end=end,
            timeout=timeout_us,
        )
        answer = result.get_response()
        names = [output["name"] for output in answer["outputs"]] if isinstance(answer, dict) else answer.outputs
        return {name: result.as_numpy(name).tolist() for name in (getattr(one, "name", one) for one in names)}

    def refusal(self, model: str, sequence: int | str, inputs: Mapping[str, Any], **flags: Any) -> str:
        """The text with which a request is refused."""
        try:
            answer = self.step(model, sequence, inputs, **flags)
        except InferenceServerException as error:
            return str(error.message())
        raise AssertionError(f"it was answered: {answer}")
