"""A stream of requests over grpcio: for where the extension module has none."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from alipes.client.inference.datatypes import numpy_type
from alipes.client.inference.grpc_calls import channel, message
from alipes.client.inference.stream import Response
from alipes.errors import TransportError

__all__ = ["GrpcStream"]

_METHOD: Final = "/inference.GRPCInferenceService/ModelStreamInfer"


class GrpcStream:
    """One `ModelStreamInfer`."""

    def __init__(self, address: str, timeout_s: float = 10.0) -> None:
        """Connects and opens the stream, or raises `TransportError`."""
        import grpc  # type: ignore[import-untyped]

        self._channel = channel(address)
        try:
            grpc.channel_ready_future(self._channel).result(timeout_s)
        except grpc.FutureTimeoutError as error:
            self._channel.close()
            raise TransportError(f"nobody answers at {address} within {timeout_s:g} s") from error
        self._request = message("ModelInferRequest")
        method = self._channel.stream_stream(
            _METHOD,
            request_serializer=self._request.SerializeToString,
            response_deserializer=message("ModelStreamInferResponse").FromString,
        )
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._responses: queue.SimpleQueue[Response | None] = queue.SimpleQueue()
        self._status: tuple[str, str] | None = None
        self._call = method(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(  # noqa: PLR0913, PLR0917 - what a request may say
        self,
        model: str,
        version: str,
        inputs: Sequence[tuple[str, str, Sequence[int], Any]],
        outputs: Sequence[str] | None = None,
        request_id: str = "",
        sequence_id: int | str | None = None,
        sequence_start: bool = False,
        sequence_end: bool = False,
        parameters: Any = None,
        timeout_us: int = 0,
    ) -> None:
        """Sends a request."""
        if self._status is not None:
            raise TransportError(": ".join(self._status))
        request = self._request(model_name=model, model_version=version, id=request_id)
        for name, datatype, shape, elements in inputs:
            request.inputs.add(name=name, datatype=datatype, shape=shape)
            request.raw_input_contents.append(_raw(datatype, elements))
        if sequence_id:
            kind = "string_param" if isinstance(sequence_id, str) else "int64_param"
            setattr(request.parameters["sequence_id"], kind, sequence_id)
            request.parameters["sequence_start"].bool_param = sequence_start
            request.parameters["sequence_end"].bool_param = sequence_end
        for name, value in (parameters or {}).items():
            request.parameters[name].bool_param = value
        if timeout_us:
            request.parameters["timeout"].int64_param = timeout_us
        self._requests.put(request)

    def receive(self, most: int, timeout_s: float | None = None) -> list[Response] | None:
        """Responses that have arrived."""
        batch: list[Response] = []
        while len(batch) < most:
            try:
                one = self._responses.get(timeout=timeout_s if not batch else None, block=not batch)
            except queue.Empty:
                return batch
            if one is None:
                self._responses.put(None)
                return batch or None
            batch.append(one)
        return batch

    def half_close(self) -> None:
        """Says that nothing more will be sent."""
        self._requests.put(None)

    def cancel(self) -> None:
        """Ends the stream at once."""
        self._requests.put(None)
        self._call.cancel()

    def status(self) -> tuple[str, str] | None:
        """Why the stream ended."""
        return self._status

    def _read(self) -> None:
        import grpc

        status = ("OK", "")
        try:
            for answer in self._call:
                self._responses.put(_response(answer))
        except grpc.RpcError as error:
            status = (error.code().name, error.details())
        self._status = status
        self._requests.put(None)
        self._responses.put(None)
        self._channel.close()


def _response(answer: Any) -> Response:
    response = answer.infer_response
    last = response.parameters["triton_final_response"].bool_param if response.parameters else True
    if answer.error_message:
        return response.id, None, answer.error_message, True
    outputs = dict(_outputs(response))
    return response.id, outputs or None, None, last or "triton_final_response" not in response.parameters


def _outputs(response: Any) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    for output, raw in zip(response.outputs, response.raw_output_contents, strict=True):
        yield output.name, _array(output.datatype, list(output.shape), raw)


def _array(datatype: str, shape: list[int], raw: bytes) -> np.ndarray[Any, Any]:
    kind = numpy_type(datatype)
    if kind is not None:
        return np.frombuffer(raw, kind).reshape(shape)
    texts, at = [], 0
    while at < len(raw):
        size = int.from_bytes(raw[at : at + 4], "little")
        texts.append(raw[at + 4 : at + 4 + size])
        at += 4 + size
    return np.array(texts, object).reshape(shape)


def _raw(datatype: str, elements: np.ndarray[Any, Any]) -> bytes:
    if datatype != "BYTES":
        return elements.tobytes()
    texts = (one if isinstance(one, bytes) else str(one).encode() for one in elements.ravel().tolist())
    return b"".join(len(text).to_bytes(4, "little") + text for text in texts)
