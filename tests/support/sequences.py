"""Repositories of streaming models, and clients that send them sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any, Self

import grpc
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from tritonclient.grpc import service_pb2
from tritonclient.utils import np_to_triton_dtype, triton_to_np_dtype

from support.server import ServerProcess

Samples = NDArray[np.float32]

_METHOD = "/inference.GRPCInferenceService/ModelStreamInfer"

# Longer than any answer takes on a busy machine, shorter than the test's own limit.
_TIMEOUT_S = 100.0


# Sequences are not forgotten while a busy machine has no time for their clients.
LONG_IDLE = "sequence_batching { direct {} max_sequence_idle_microseconds: 600000000 }"


def add_streaming(repository: Path, name: str, backend: str, *, more: str = LONG_IDLE, **parameters: int | str) -> None:
    """Adds a snapshotter or an averager that its parameters describe."""
    (repository / name / "1").mkdir(parents=True)
    rows = [f'parameters {{ key: "{key}" value: {{ string_value: "{one}" }} }}' for key, one in parameters.items()]
    (repository / name / "config.pbtxt").write_text("\n".join([f'backend: "{backend}"', more, *rows]))


def add_chain(
    repository: Path, name: str, steps: Iterable[tuple[str, str, str]], dims_in: list[int], dims_out: list[int]
) -> None:
    """Adds an ensemble of models, each with its one input and its one output, one behind the other."""
    steps = list(steps)
    tensors = ["IN", *(f"t{number}" for number in range(1, len(steps))), "OUT"]
    fields = [
        f'{{ model_name: "{model}" model_version: -1 input_map {{ key: "{x}" value: "{before}" }} '
        f'output_map {{ key: "{y}" value: "{after}" }} }}'
        for (model, x, y), before, after in zip(steps, tensors[:-1], tensors[1:], strict=True)
    ]
    (repository / name / "1").mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(
        f'platform: "ensemble" input {{ name: "IN" data_type: TYPE_FP32 dims: {dims_in} }} '
        f'output {{ name: "OUT" data_type: TYPE_FP32 dims: {dims_out} }} '
        f"ensemble_scheduling {{ step [ {', '.join(fields)} ] }}"
    )


def halves(channels: int, samples: int) -> onnx.ModelProto:
    """``Y = X / 2``; both are FP32 ``[batch, channels, samples]``."""
    shape = ["batch", channels, samples]
    graph = helper.make_graph(
        [helper.make_node("Div", ["X", "two"], ["Y"])],
        "halves",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, shape)],
        [helper.make_tensor("two", TensorProto.FLOAT, [], [2.0])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


class SequenceStream:
    """One ``ModelStreamInfer`` for the requests of any number of sequences. A context manager: leaving cancels."""

    def __init__(self, server: ServerProcess) -> None:
        self._channel = grpc.insecure_channel(server.grpc, [("grpc.use_local_subchannel_pool", 1)])
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

    def send(
        self,
        model: str,
        name: str,
        update: NDArray[Any],
        sequence: int | str,
        *,
        start: bool = False,
        end: bool = False,
    ) -> None:
        """Sends one request of a sequence; does not wait."""
        message = service_pb2.ModelInferRequest(model_name=model)
        message.inputs.add(name=name, datatype=np_to_triton_dtype(update.dtype), shape=update.shape)
        message.raw_input_contents.append(update.tobytes())
        if isinstance(sequence, str):
            message.parameters["sequence_id"].string_param = sequence
        else:
            message.parameters["sequence_id"].int64_param = sequence
        message.parameters["sequence_start"].bool_param = start
        message.parameters["sequence_end"].bool_param = end
        self._requests.put(message)

    def receive(self) -> NDArray[Any]:
        """The first output of the next answer.

        Raises:
            Refused: If it is an error.
        """
        message = next(self._call)
        if message.error_message:
            raise Refused(message.error_message)
        answer = message.infer_response
        output = answer.outputs[0]
        return np.frombuffer(answer.raw_output_contents[0], triton_to_np_dtype(output.datatype)).reshape(output.shape)

    def receive_all(self, count: int) -> Iterator[NDArray[Any]]:
        """The next answers."""
        return (self.receive() for _ in range(count))


class Refused(Exception):
    """The server answered with an error."""


def windows(samples: Samples, stride: int, length: int) -> Samples:
    """What a snapshotter makes of the samples ``[channels, samples]`` of a sequence: one window for each stride."""
    channels, count = samples.shape
    known = np.concatenate([np.zeros((channels, length), np.float32), samples], axis=1)
    ends = range(length + stride, length + count + 1, stride)
    return np.stack([known[:, end - length : end] for end in ends])


def means(kernels: Samples, update: int, updates: int, *, unbiased: bool = False) -> Samples:
    """What an averager makes of the predictions ``[predictions, channels, samples]``: ``[channels, samples]``."""
    count, channels, _ = kernels.shape
    sums = np.zeros((channels, (count + updates - 1) * update), np.float32)
    for number, kernel in enumerate(kernels):
        sums[:, number * update : (number + updates) * update] += kernel[:, -update * updates :] / np.float32(updates)
    if unbiased:
        for number in range(min(updates, count)):
            sums[:, number * update : (number + 1) * update] *= np.float32(updates) / np.float32(number + 1)
    return sums[:, : count * update]
