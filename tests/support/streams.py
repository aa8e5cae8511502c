"""A gRPC stream of inference responses that is read exactly as fast as the test asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from queue import Queue
from typing import Any, Self

import grpc
from tritonclient import grpc as grpc_client
from tritonclient.grpc import service_pb2

from support.endpoints import Refusal, Reply, reply_of, tensors
from support.server import ServerProcess

_METHOD = "/inference.GRPCInferenceService/ModelStreamInfer"

# Longer than any answer takes on a busy machine, shorter than the test's own limit.
_TIMEOUT_S = 100.0

# The parameter that marks a final response.
_FINAL = "triton_final_response"


class Stream:
    """One `ModelStreamInfer`. A context manager: leaving it cancels the call."""

    def __init__(self, server: ServerProcess, *options: tuple[str, int]) -> None:
        self._channel = grpc.insecure_channel(server.grpc, [("grpc.max_receive_message_length", -1), *options])
        self._requests: Queue[Any] = Queue()
        method = self._channel.stream_stream(
            _METHOD,
            request_serializer=service_pb2.ModelInferRequest.SerializeToString,
            response_deserializer=service_pb2.ModelStreamInferResponse.FromString,
        )
        self._call = method(iter(self._requests.get, None), timeout=_TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._requests.put(None)
        self._call.cancel()
        self._channel.close()

    def send(self, model: str, inputs: Mapping[str, Any], request_id: str = "") -> None:
        """Sends a request whose end is marked by a final response."""
        message = service_pb2.ModelInferRequest(model_name=model, id=request_id)
        for tensor in tensors(grpc_client, inputs):
            message.inputs.append(tensor._get_tensor())
            message.raw_input_contents.append(tensor._get_content())
        message.parameters["triton_enable_empty_final_response"].bool_param = True
        self._requests.put(message)

    def half_close(self) -> None:
        """Ends the requests; responses may still come."""
        self._requests.put(None)

    def cancel(self) -> None:
        """Ends the stream at once."""
        self._call.cancel()

    def receive(self) -> tuple[Reply | Refusal, bool, str]:
        """The next response, whether it is the last of its request, and the request's id."""
        message = next(self._call)
        answer = message.infer_response
        last = answer.parameters[_FINAL].bool_param if _FINAL in answer.parameters else False
        if message.error_message:
            return Refusal("", message.error_message), last, answer.id
        return reply_of(grpc_client.InferResult(answer)), last, answer.id

    def replies(self) -> Iterator[Reply | Refusal]:
        """The responses to one request, without an empty last one."""
        while True:
            reply, last, _ = self.receive()
            if isinstance(reply, Refusal) or reply.tensors:
                yield reply
            if last:
                return
