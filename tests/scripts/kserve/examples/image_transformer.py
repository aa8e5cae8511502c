"""A transformer in the form of the SDK's pages: pictures in base64 become tensors for a predictor over gRPC."""

from __future__ import annotations

import argparse
import base64
from typing import Any

import numpy as np
from kserve import InferInput, InferRequest, InferResponse, Model, ModelServer, model_server
from kserve.model import PredictorProtocol

SIDE = 32


def image_transform(instance: Any) -> np.ndarray:
    """A picture as planes of numbers from -1 to 1; its bytes are its pixels."""
    pixels = np.frombuffer(base64.b64decode(instance["image_bytes"]["b64"]), np.uint8)
    return (pixels.reshape(3, SIDE, SIDE) / 127.5 - 1).astype(np.float32)


class ImageTransformer(Model):
    """Sends tensors on, and gives back the values of the answer."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.ready = True

    def preprocess(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        tensors = np.asarray([image_transform(one) for one in payload["instances"]])
        infer_input = InferInput(name="INPUT__0", datatype="FP32", shape=list(tensors.shape), data=tensors)
        return InferRequest(model_name=self.name, infer_inputs=[infer_input])

    def postprocess(self, result: Any, headers: dict[str, str] | None = None) -> Any:
        if isinstance(result, InferResponse):
            return {"predictions": result.outputs[0].as_numpy().tolist()}
        return result


parser = argparse.ArgumentParser(parents=[model_server.parser])
args, _ = parser.parse_known_args()

if __name__ == "__main__":
    assert args.protocol == PredictorProtocol.GRPC_V2.value
    ModelServer().start(models=[ImageTransformer(args.model_name)])
