"""What is sent and what must come back: one request for a model, in each form that a wire has for it."""

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from tritonclient.grpc import service_pb2

from bench.models.model import Array, Model
from bench.models.python_models import RESPONSES
from bench.models.repository import MODELS, reference_answer
from bench.paths import WORK

#: Numbers with the digits that a float32 needs, as Python prints it: ``0.49019608``.
JSON = "json"
#: Numbers with the digits of a float64, as ``json.dumps(array.tolist())`` writes a float32: ``0.4901960790157318``.
JSON_DOUBLES = "json_doubles"
BINARY = "binary"
#: As `BINARY`, at the first priority level.
URGENT = "urgent"
#: As `BINARY`, the row as often as a batch may hold it.
FULL = "full"
#: The forms whose tensor follows a JSON header.
BINARIES = (BINARY, URGENT, FULL)
GRPC = "grpc"
#: The tensor lies in memory that the server shares, in the region `REGION`; see `bench.rows.shared`.
SHARED = "shared_memory"
#: A request on a gRPC stream, answered by `RESPONSES` responses.
STREAM = "stream"
#: A request on a gRPC stream, answered by one response.
STREAM_ONE = "stream_one"
#: Both of them.
STREAMS = (STREAM, STREAM_ONE)

#: Where the forms of gRPC are posted.
GRPC_PATHS = {
    GRPC: "/inference.GRPCInferenceService/ModelInfer",
    STREAM: "/inference.GRPCInferenceService/ModelStreamInfer",
    STREAM_ONE: "/inference.GRPCInferenceService/ModelStreamInfer",
}
#: Name of the region in which the tensor of a `SHARED` request lies.
REGION = "bench"
#: A gRPC message is preceded by one byte that says "not compressed" and four that give its length.
GRPC_PREFIX_BYTES = 5
#: The engines may order their sums differently.
RELATIVE_TOLERANCE = 1e-3
ABSOLUTE_TOLERANCE = 1e-4


class WrongAnswer(Exception):
    """A server answered something else than the model does; nothing of it is measured then."""


@dataclass(frozen=True)
class Work:
    """One request of one row, in one form."""

    model: Model
    form: str

    @property
    def name(self) -> str:
        """Names the files that hold it."""
        return f"{self.model.name}_{self.form}"

    @property
    def path(self) -> str:
        """Where it is posted."""
        return GRPC_PATHS.get(self.form, f"/v2/models/{self.model.name}/infer")

    @property
    def is_grpc(self) -> bool:
        """Whether it is a gRPC message."""
        return self.form in GRPC_PATHS

    @property
    def responses(self) -> int:
        """Responses to one request."""
        return RESPONSES if self.form == STREAM else 1

    @property
    def is_json(self) -> bool:
        """Whether the tensor is written in JSON."""
        return self.form in (JSON, JSON_DOUBLES)

    @cached_property
    def headers(self) -> dict[str, str]:
        """Request headers beside host and length."""
        if self.is_json or self.form == SHARED:
            return {"Content-Type": "application/json"}
        if self.is_grpc:
            return {"Content-Type": "application/grpc", "TE": "trailers"}
        length = len(self._binary_header)
        return {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(length)}

    @property
    def rows(self) -> int:
        """Rows of the request."""
        return max(self.model.max_batch_size, 1) if self.form == FULL else 1

    @cached_property
    def body(self) -> bytes:
        """The request's body; for gRPC the framed message."""
        row = self.model.row()
        if self.is_json:
            return _json_request(row, digits=str if self.form == JSON else _double_digits)
        if self.form in BINARIES:
            return self._binary_header + row.tobytes() * self.rows
        if self.form == SHARED:
            return _shared_request(self.model)
        return struct.pack(">BI", 0, len(self.message)) + self.message

    @cached_property
    def _binary_header(self) -> bytes:
        row = self.model.row()
        parameters = {"priority": 1} if self.form == URGENT else {}
        place = {"binary_data_size": row.nbytes * self.rows}
        return _header((self.rows, *row.shape[1:]), place, parameters)

    @cached_property
    def message(self) -> bytes:
        """The gRPC message, without its frame."""
        return bytes(_infer_request(self.model, self.model.row()).SerializeToString())

    @cached_property
    def body_file(self) -> Path:
        """A file with the body, for the load tools."""
        return _file(f"{self.name}.request", self.body)

    @cached_property
    def message_file(self) -> Path:
        """A file with the message, for the load tool of streams."""
        return _file(f"{self.name}.message", self.message)

    @cached_property
    def answer(self) -> bytes:
        """A correct answer as the protocol writes it, for the floors; for gRPC the message without its prefix."""
        values = reference_answer(self.model)
        head = {"model_name": self.model.name, "model_version": "1"}
        if self.is_json:
            outputs = [{**_tensor("y", values), "data": values.ravel().tolist()}]
            return json.dumps({**head, "outputs": outputs}, separators=(",", ":")).encode()
        if self.form in (*BINARIES, SHARED):
            return _binary_answer_header(self.model) + values.tobytes()
        response = service_pb2.ModelInferResponse(**head)
        response.outputs.add(**_tensor("y", values))
        response.raw_output_contents.append(values.tobytes())
        return bytes(response.SerializeToString())

    @cached_property
    def answer_file(self) -> Path:
        """A file with the answer."""
        return _file(f"{self.name}.answer", self.answer)

    @property
    def answer_headers(self) -> dict[str, str]:
        """Headers of the answer beside its length."""
        if self.is_json:
            return {"Content-Type": "application/json"}
        length = len(_binary_answer_header(self.model))
        return {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(length)}

    def check(self, body: bytes, headers: dict[str, str]) -> None:
        """Compares an answer with the reference.

        Args:
            body: The answer's body; for gRPC the message without its prefix.
            headers: The answer's headers, names in lower case.

        Raises:
            WrongAnswer: If it is malformed or its numbers are not the model's.
        """
        expected = np.tile(reference_answer(self.model).ravel(), self.rows)
        try:
            values = self.values(body, headers)
        except Exception as error:
            raise WrongAnswer(f"{self.name}: cannot read the answer {body[:200]!r}: {error!r}") from error
        close = values.shape == expected.shape and np.allclose(
            values, expected, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE
        )
        if not close:
            raise WrongAnswer(f"{self.name}: expected {expected[:4]}…, got {values[:4]}…")

    def check_stream(self, messages: Sequence[bytes]) -> None:
        """Compares the responses to one request on a stream with what they must be: all of them, in order.

        Raises:
            WrongAnswer: If one is missing, wrong or too many.
        """
        if self.form == STREAM_ONE:
            return self._check_only(messages)
        answers = [service_pb2.ModelStreamInferResponse.FromString(message) for message in messages]
        errors = [answer.error_message for answer in answers if answer.error_message]
        raw = [part for answer in answers for part in answer.infer_response.raw_output_contents]
        found = np.frombuffer(b"".join(raw), np.float32).tolist()
        if errors or found != list(range(self.responses)):
            raise WrongAnswer(f"{self.name}: expected 0 to {self.responses - 1}, got {found} and errors {errors}")

    def _check_only(self, messages: Sequence[bytes]) -> None:
        if len(messages) != 1:
            raise WrongAnswer(f"{self.name}: expected one response, got {len(messages)}")
        answer = service_pb2.ModelStreamInferResponse.FromString(messages[0])
        if answer.error_message:
            raise WrongAnswer(f"{self.name}: {answer.error_message}")
        self.check(answer.infer_response.SerializeToString(), {})

    def values(self, body: bytes, headers: dict[str, str]) -> Array:
        """The numbers of an answer, as `check` takes it."""
        if self.is_grpc:
            return np.frombuffer(service_pb2.ModelInferResponse.FromString(body).raw_output_contents[0], np.float32)
        length = headers.get("inference-header-content-length")
        if length is not None:
            return np.frombuffer(body[int(length) :], np.float32)
        return np.asarray(json.loads(body)["outputs"][0]["data"], np.float32)


def work(model: str, form: str) -> Work:
    """The request for a model, by its name, in one form."""
    return Work(MODELS[model], form)


def _tensor(name: str, values: Array) -> dict[str, object]:
    return {"name": name, "datatype": "FP32", "shape": list(values.shape)}


def _json_request(row: Array, digits: Callable[[np.float32], str]) -> bytes:
    head = json.dumps({"inputs": [_tensor("x", row)]})
    data = ", ".join(digits(value) for value in row.ravel())
    return f'{head[:-3]}, "data": [{data}]}}]}}'.encode()


def _double_digits(value: np.float32) -> str:
    return repr(float(value))


def _shared_request(model: Model) -> bytes:
    row = model.row()
    return _header(row.shape, {"shared_memory_region": REGION, "shared_memory_byte_size": row.nbytes}, {})


def _header(shape: tuple[int, ...], place: Mapping[str, object], parameters: Mapping[str, object]) -> bytes:
    """JSON that says where the tensor is, and how the request is to be served."""
    inputs = [{"name": "x", "datatype": "FP32", "shape": list(shape), "parameters": place}]
    return json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True, **parameters}}).encode()


def _binary_answer_header(model: Model) -> bytes:
    values = reference_answer(model)
    outputs = [{**_tensor("y", values), "parameters": {"binary_data_size": values.nbytes}}]
    document = {"model_name": model.name, "model_version": "1", "outputs": outputs}
    return json.dumps(document, separators=(",", ":")).encode()


def _infer_request(model: Model, row: Array) -> service_pb2.ModelInferRequest:
    request = service_pb2.ModelInferRequest(model_name=model.name)
    request.inputs.add(**_tensor("x", row))
    request.outputs.add(name="y")
    request.raw_input_contents.append(row.tobytes())
    return request


def _file(name: str, content: bytes) -> Path:
    path = WORK / "bodies" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
