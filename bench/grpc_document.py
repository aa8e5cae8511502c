"""A row that is sent to a model over gRPC, and the numbers that must come back."""

import struct
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import grpc
import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc import service_pb2

from bench.paths import WORK
from bench.work import ABSOLUTE_TOLERANCE, GRPC, GRPC_PATHS, GRPC_PREFIX_BYTES, RELATIVE_TOLERANCE, WrongAnswer

TIMEOUT_S = 30.0


@dataclass(frozen=True)
class GrpcDocument:
    """One request for a model with one input and one output of FP32."""

    #: The model's, and that of the file that holds the request.
    name: str
    tensor: str
    row: NDArray[np.float32] = field(hash=False)
    expected: NDArray[np.float64] = field(hash=False)

    @property
    def path(self) -> str:
        """The method."""
        return GRPC_PATHS[GRPC]

    @property
    def headers(self) -> dict[str, str]:
        """Request headers beside host and length."""
        return {"Content-Type": "application/grpc", "TE": "trailers"}

    @cached_property
    def message(self) -> bytes:
        """The message, without its frame."""
        request = service_pb2.ModelInferRequest(model_name=self.name)
        request.inputs.add(name=self.tensor, datatype="FP32", shape=list(self.row.shape))
        request.raw_input_contents.append(self.row.tobytes())
        return bytes(request.SerializeToString())

    @cached_property
    def body_file(self) -> Path:
        """A file with the framed message, for the load tool."""
        file = WORK / "bodies" / f"{self.name}_grpc.request"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(struct.pack(">BI", 0, len(self.message)) + self.message)
        return file

    def check(self, port: int) -> int:
        """Sends it once; returns the bytes of the answer with its frame.

        Raises:
            WrongAnswer: If there is no answer, or another one.
        """
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary(self.path, request_serializer=None, response_deserializer=None)
            try:
                answer = bytes(call(self.message, timeout=TIMEOUT_S, wait_for_ready=True))
            except grpc.RpcError as error:
                raise WrongAnswer(f"{self.name}: {error}") from error
        self.check_message(answer)
        return len(answer) + GRPC_PREFIX_BYTES

    def check_message(self, answer: bytes) -> None:
        """Compares an answer with the right one.

        Raises:
            WrongAnswer: If it has other numbers.
        """
        found = np.frombuffer(b"".join(service_pb2.ModelInferResponse.FromString(answer).raw_output_contents), "f4")
        expected = self.expected.ravel()
        close = found.shape == expected.shape and np.allclose(
            found, expected, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE
        )
        if not close:
            raise WrongAnswer(f"{self.name}: expected {expected[:4]}…, got {found[:4]}…")
