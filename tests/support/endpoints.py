"""The HTTP and the gRPC endpoint behind one interface: a test that takes an endpoint proves its fact for both."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from typing import Any, Self

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from support.server import ServerProcess

# Triton's HTTP status of each code that these tests meet.
_HTTP = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 499: "CANCELLED", 500: "INTERNAL", 503: "UNAVAILABLE"}

# Longer than any answer takes on a busy machine, shorter than the test's own limit.
_TIMEOUT_S = 100.0

Inputs = Mapping[str, Any]


class Refusal(Exception):
    """The server answered with an error."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


@dataclass(frozen=True)
class Reply:
    """An answer: its tensors by name, its parameters, the version that gave it."""

    tensors: Mapping[str, Any]
    parameters: Mapping[str, Any]
    version: str

    def __getitem__(self, name: str) -> Any:
        return self.tensors[name]


@dataclass(frozen=True)
class Request:
    """One inference request, whatever the protocol."""

    model: str
    inputs: Inputs
    version: str
    parameters: dict[str, Any] | None
    outputs: Sequence[str] | None
    request_id: str
    timeout_us: int | None = None
    priority: int = 0

    def requested_outputs(self, module: Any) -> list[Any] | None:
        """The outputs as the clients of either module take them; `None` asks for all."""
        return None if self.outputs is None else [module.InferRequestedOutput(name) for name in self.outputs]


class Endpoint(ABC):
    """One client of one server. What depends on the protocol is in its two kinds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(
        self,
        model: str,
        inputs: Inputs,
        *,
        version: str = "",
        parameters: Mapping[str, Any] | None = None,
        outputs: Sequence[str] | None = None,
        request_id: str = "",
    ) -> Reply:
        """The answer to one request. Inputs are arrays or lists, as `tensors` takes them.

        Raises:
            Refusal: If the server answers with an error.
        """
        copied = None if parameters is None else dict(parameters)
        return self.infer(Request(model, inputs, version, copied, outputs, request_id))

    def load(self, model: str) -> None:
        """Loads a model, or loads it again.

        Raises:
            Refusal: If that fails.
        """
        self.control("load", model)

    def unload(self, model: str) -> None:
        """Unloads a model.

        Raises:
            Refusal: If that fails.
        """
        self.control("unload", model)

    @abstractmethod
    def close(self) -> None:
        """Closes the connection."""

    @abstractmethod
    def infer(self, request: Request) -> Reply:
        """What `ask` gives."""

    @abstractmethod
    def control(self, verb: str, model: str) -> None:
        """Does what `load` and `unload` do."""

    @abstractmethod
    def is_ready(self, model: str, version: str = "") -> bool:
        """Whether the server reports the model as ready."""

    @abstractmethod
    def index(self, model: str) -> dict[str, str]:
        """State and reason of the model's first entry in the repository index."""

    @abstractmethod
    def statistics(self, model: str) -> dict[str, Any]:
        """The model's statistics, in the form of HTTP."""


class HttpEndpoint(Endpoint):
    """HTTP with binary tensors, over one connection. Any thread may use it, one at a time."""

    def __init__(self, server: ServerProcess) -> None:
        self._connection = HTTPConnection(server.http, timeout=_TIMEOUT_S)

    def close(self) -> None:
        self._connection.close()

    def infer(self, request: Request) -> Reply:
        body, header_length = http_client.InferenceServerClient.generate_request_body(
            tensors(http_client, request.inputs),
            outputs=request.requested_outputs(http_client),
            request_id=request.request_id,
            timeout=request.timeout_us,
            priority=request.priority,
            parameters=request.parameters,
        )
        headers = {} if header_length is None else {"Inference-Header-Content-Length": str(header_length)}
        response, content = self.call("POST", f"{model_path(request.model, request.version)}/infer", body, headers)
        if response.status != 200:
            raise _refusal(response, content)
        length = response.getheader("Inference-Header-Content-Length")
        result = http_client.InferResult.from_response_body(
            content, header_length=None if length is None else int(length)
        )
        answer = result.get_response()
        return Reply(
            {output["name"]: result.as_numpy(output["name"]) for output in answer.get("outputs", [])},
            answer.get("parameters", {}),
            answer["model_version"],
        )

    def control(self, verb: str, model: str) -> None:
        response, content = self.call("POST", f"/v2/repository/models/{model}/{verb}")
        if response.status != 200:
            raise _refusal(response, content)

    def is_ready(self, model: str, version: str = "") -> bool:
        return self.call("GET", f"{model_path(model, version)}/ready")[0].status == 200

    def index(self, model: str) -> dict[str, str]:
        return next(entry for entry in self.indexes() if entry["name"] == model)

    def indexes(self) -> list[dict[str, str]]:
        """The whole repository index."""
        return list(json.loads(self.call("POST", "/v2/repository/index")[1]))

    def statistics(self, model: str) -> dict[str, Any]:
        return dict(json.loads(self.call("GET", f"{model_path(model)}/stats")[1])["model_stats"][0])

    def call(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[HTTPResponse, bytes]:
        """Any request: the response and its content."""
        self._connection.request(method, path, body, dict(headers or {}))
        response = self._connection.getresponse()
        return response, response.read()


class GrpcEndpoint(Endpoint):
    """gRPC with raw contents."""

    def __init__(self, server: ServerProcess) -> None:
        self.client = grpc_client.InferenceServerClient(server.grpc)

    def close(self) -> None:
        self.client.close()

    def infer(self, request: Request) -> Reply:
        try:
            result = self.client.infer(
                request.model,
                tensors(grpc_client, request.inputs),
                request.version,
                outputs=request.requested_outputs(grpc_client),
                request_id=request.request_id,
                timeout=request.timeout_us,
                priority=request.priority,
                parameters=request.parameters,
                client_timeout=_TIMEOUT_S,
            )
        except InferenceServerException as error:
            raise refusal_of(error) from None
        return reply_of(result)

    def control(self, verb: str, model: str) -> None:
        call = self.client.load_model if verb == "load" else self.client.unload_model
        try:
            call(model)
        except InferenceServerException as error:
            raise refusal_of(error) from None

    def is_ready(self, model: str, version: str = "") -> bool:
        try:
            return bool(self.client.is_model_ready(model, version))
        except InferenceServerException as error:
            refusal = refusal_of(error)
            if refusal.code == "NOT_FOUND":
                return False
            raise refusal from None

    def index(self, model: str) -> dict[str, str]:
        entries = self.client.get_model_repository_index().models
        entry = next(entry for entry in entries if entry.name == model)
        return {"name": entry.name, "version": entry.version, "state": entry.state, "reason": entry.reason}

    def statistics(self, model: str) -> dict[str, Any]:
        answer = self.client.get_inference_statistics(model, as_json=True)
        return dict(_with_numbers(answer["model_stats"][0]))


ENDPOINTS: dict[str, Callable[[ServerProcess], Endpoint]] = {"http": HttpEndpoint, "grpc": GrpcEndpoint}


def model_path(model: str, version: str = "") -> str:
    """A model, or a version of it, in HTTP."""
    return f"/v2/models/{model}{f'/versions/{version}' if version else ''}"


def refusal_of(error: InferenceServerException) -> Refusal:
    """The refusal for what a gRPC client raised."""
    return Refusal(str(error.status()).removeprefix("StatusCode."), error.message())


def reply_of(result: grpc_client.InferResult) -> Reply:
    """The reply for what a gRPC client received."""
    answer = result.get_response()
    parameters = {key: getattr(value, value.WhichOneof("parameter_choice")) for key, value in answer.parameters.items()}
    outputs = {output.name: result.as_numpy(output.name) for output in answer.outputs}
    return Reply(outputs, parameters, answer.model_version)


def tensors(module: Any, inputs: Inputs) -> list[Any]:
    """Inputs as the clients of either module take them. Lists of numbers become INT32, lists of text BYTES."""
    made = []
    for name, value in inputs.items():
        array = value if isinstance(value, np.ndarray) else np.array(value, np.object_ if _is_text(value) else np.int32)
        tensor = module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array)
        made.append(tensor)
    return made


def _refusal(response: HTTPResponse, content: bytes) -> Refusal:
    return Refusal(_HTTP.get(response.status, str(response.status)), json.loads(content)["error"])


def _is_text(value: Any) -> bool:
    return isinstance(np.asarray(value).flat[0], str | bytes)


def _with_numbers(value: Any) -> Any:
    """Protobuf's JSON writes 64-bit numbers as text; HTTP does not."""
    if isinstance(value, dict):
        return {key: _with_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_numbers(one) for one in value]
    return int(value) if isinstance(value, str) and value.isdecimal() else value
