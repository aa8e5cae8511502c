"""A server that speaks TensorFlow Serving's `PredictionService`, with grpcio, for one model that doubles its input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import numpy as np
from alipes.compat.perf_analyzer.tfserving_messages import TENSORFLOW_TYPES, message

__all__ = ["PredictionService", "prediction_service"]


@dataclass
class PredictionService:
    """What a test reads of the server.

    Attributes:
        address: Host and port.
        seen: The requests of `Predict`.
        encodings: How the message of each was compressed.
    """

    address: str = ""
    seen: list[Any] = field(default_factory=list)
    encodings: list[str] = field(default_factory=list)

    def describe(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The signature of the model `double`: `x` FP32 [-1, 3] and `t` BYTES [-1]."""
        if request.model_spec.name != "double":
            context.abort(grpc.StatusCode.NOT_FOUND, f"Servable not found for request: {request.model_spec.name}")
        signatures = message("serving.SignatureDefMap")
        signature = signatures.signature_def["serving_default"]
        for name, datatype, sizes in (("x", "FP32", (-1, 3)), ("t", "BYTES", (-1,))):
            signature.inputs[name].dtype = TENSORFLOW_TYPES[datatype]
            for size in sizes:
                signature.inputs[name].tensor_shape.dim.add(size=size)
        response = message("serving.GetModelMetadataResponse", model_spec=request.model_spec)
        response.metadata["signature_def"].value = signatures.SerializeToString()
        return response

    def predict(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Twice `x`; refuses what the signature does not say."""
        self.seen.append(request)
        self.encodings.append(str(dict(context.invocation_metadata()).get("grpc-encoding", "")))
        x, t = request.inputs["x"], request.inputs["t"]
        shape = [dim.size for dim in x.tensor_shape.dim]
        if (x.dtype, t.dtype) != (1, 7) or shape[1:] != [3] or len(t.string_val) != shape[0]:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"x has the shape {shape}, t {len(t.string_val)} texts")
        values = np.frombuffer(x.tensor_content, np.float32).reshape(shape)
        response = message("serving.PredictResponse")
        response.outputs["y"].CopyFrom(message("TensorProto", dtype=1, tensor_content=(2 * values).tobytes()))
        return response


@contextmanager
def prediction_service() -> Iterator[PredictionService]:
    """A server as long as the block."""
    service = PredictionService()
    methods = {
        "Predict": _method(service.predict, "serving.PredictRequest"),
        "GetModelMetadata": _method(service.describe, "serving.GetModelMetadataRequest"),
    }
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("tensorflow.serving.PredictionService", methods),)
    )
    service.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield service
    finally:
        server.stop(0).wait()


def _method(answer: Callable[[Any, grpc.ServicerContext], Any], request: str) -> grpc.RpcMethodHandler:
    def read(content: bytes) -> Any:
        made = message(request)
        made.MergeFromString(content)
        return made

    return grpc.unary_unary_rpc_method_handler(answer, read, lambda response: response.SerializeToString())
