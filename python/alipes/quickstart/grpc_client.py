"""gRPC from a client's side: grpcio, with the messages of the project's own proto file."""

from __future__ import annotations

from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from alipes.config.schema import pool
from alipes.errors import InferError, TransportError
from alipes.quickstart.digits import INPUT, MODEL

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_METHOD: Final = "/inference.GRPCInferenceService/ModelInfer"
_TIMEOUT_S: Final = 30.0


def installed() -> bool:
    """Whether grpcio can be imported; it is an extra, because the server itself does without it."""
    return find_spec("grpc") is not None


class GrpcClient:
    """One channel over gRPC. Use as a context manager; needs grpcio."""

    def __init__(self, address: str) -> None:
        """Connects with the first request, to `host:port`."""
        import grpc  # type: ignore[import-untyped]

        self._request, response = _message("ModelInferRequest"), _message("ModelInferResponse")
        # Plain sockets as for HTTP: a proxy from the environment has no business between two processes of one machine.
        self._channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
        self._infer = self._channel.unary_unary(
            _METHOD, request_serializer=self._request.SerializeToString, response_deserializer=response.FromString
        )

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the channel."""
        self._channel.close()

    def classify(self, scan: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Probabilities FP32 `[10]` of one scan `[8, 8]`, both as raw tensor contents."""
        import grpc
        import numpy as np

        try:
            answer = self._infer(self.request(scan), timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            kind = TransportError if error.code() is grpc.StatusCode.UNAVAILABLE else InferError
            raise kind(f"gRPC status {error.code().name}: {error.details()}") from error
        return np.frombuffer(answer.raw_output_contents[0], "<f4")

    def request(self, scan: npt.NDArray[np.uint8]) -> Any:
        """The message `inference.ModelInferRequest` for one scan."""
        tensor = {"name": INPUT, "datatype": "FP32", "shape": [1, *scan.shape]}
        return self._request(model_name=MODEL, inputs=[tensor], raw_input_contents=[scan.astype("<f4").tobytes()])


def _message(name: str) -> Any:
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(pool().FindMessageTypeByName(f"inference.{name}"))
