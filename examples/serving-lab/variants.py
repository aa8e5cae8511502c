"""The lab's variants: how each is started, what it is sent, and what it answers."""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import tritonclient.http as httpclient
from food import CLASSES
from PIL import Image
from transform import transform

Floats = npt.NDArray[np.float32]

ALIPES: Final = (sys.executable, "-m", "alipes", "serve")
ALIPES_FLAGS: Final = tuple(
    f"--{endpoint}-{what}" for endpoint in ("http", "grpc", "metrics") for what in ("address=127.0.0.1", "port=0")
)
UVICORN: Final = (sys.executable, "-m", "uvicorn", "--port", "0", "--log-level", "info", "--no-access-log")


@dataclass(frozen=True)
class Answer:
    """What a variant says of a picture.

    Attributes:
        label: Kind of food.
        probability: How sure it is, 0 to 1.
    """

    label: str
    probability: float


@dataclass(frozen=True)
class Variant:
    """One way to serve the model.

    Attributes:
        name: What `--variants` calls it.
        title: What tables and pictures call it.
        command: What starts it, in a copy of this folder.
        request: All bytes of a request, made from those of an image file.
        answer: What the body of its answer says.
        needs: Packages that it imports and not everybody has.
        models: The models whose statistics the server counts, in the order of the request's way; none with FastAPI.
        sigmoid: Whether the probability is the sigmoid of the best score, as in the lab's `model.py`, or its share
            among all classes, as in the lab's FastAPI pages.
    """

    name: str
    title: str
    command: tuple[str, ...]
    request: Callable[[bytes], bytes]
    answer: Callable[[bytes], Answer]
    needs: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    sigmoid: bool = False


def pixels(picture: bytes) -> Floats:
    """What the network takes of an image file: FP32 ``[1, 3, 224, 224]``."""
    return transform(Image.open(io.BytesIO(picture)).convert("RGB"))[np.newaxis]


def best(scores: Floats, sigmoid: bool = False) -> Answer:
    """What the scores ``[11]`` of a picture say."""
    winner = int(scores.argmax())
    others = np.exp(scores.astype(np.float64) - float(scores[winner]))
    probability = 1 / (1 + np.exp(-float(scores[winner]))) if sigmoid else 1 / others.sum()
    return Answer(CLASSES[winner], float(probability))


def _post(path: str, body: bytes, **headers: str | int) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _infer(model: str, tensor: httpclient.InferInput, *outputs: str) -> bytes:
    """As tritonclient sends it: the tensor as bytes, the answer as JSON."""
    wanted = [httpclient.InferRequestedOutput(name, binary_data=False) for name in outputs]
    body, header_bytes = httpclient.InferenceServerClient.generate_request_body([tensor], outputs=wanted)
    return _post(f"/v2/models/{model}/infer", body, Inference_Header_Content_Length=header_bytes or len(body))


def _to_fastapi(picture: bytes) -> bytes:
    body = json.dumps({"image": base64.b64encode(picture).decode()}).encode()
    return _post("/predict", body, Content_Type="application/json")


def _to_function(picture: bytes) -> bytes:
    return _post("/food", picture, Content_Type="image/jpeg")


def _to_classifier(content: bytes) -> bytes:
    tensor = httpclient.InferInput("INPUT_IMAGE", [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[content]], np.object_))
    return _infer("food_classifier", tensor, "FOOD_LABEL", "PROBABILITY")


def _to_model_py(picture: bytes) -> bytes:
    return _to_classifier(base64.b64encode(picture))


def _to_onnx(picture: bytes) -> bytes:
    tensor = httpclient.InferInput("input", [1, 3, 224, 224], "FP32")
    tensor.set_data_from_numpy(pixels(picture))
    return _infer("food_classifier_onnx", tensor, "output")


def _prediction(body: bytes) -> Answer:
    said = json.loads(body)
    return Answer(said["prediction"], said["probability"])


def _classified(body: bytes) -> Answer:
    outputs = {output["name"]: output["data"][0] for output in json.loads(body)["outputs"]}
    return Answer(outputs["FOOD_LABEL"], outputs["PROBABILITY"])


def _scored(body: bytes) -> Answer:
    return best(np.array(json.loads(body)["outputs"][0]["data"], np.float32))


VARIANTS: Final = {
    variant.name: variant
    for variant in (
        Variant(
            "fastapi-pt",
            "FastAPI, PyTorch",
            (*UVICORN, "fastapi_pt:app"),
            _to_fastapi,
            _prediction,
            ("fastapi", "torch"),
        ),
        Variant(
            "fastapi-onnx", "FastAPI, ONNX", (*UVICORN, "fastapi_onnx:app"), _to_fastapi, _prediction, ("fastapi",)
        ),
        Variant(
            "model-py-pt",
            "model.py, PyTorch",
            (*ALIPES, "models-torch", *ALIPES_FLAGS),
            _to_model_py,
            _classified,
            needs=("torch",),
            models=("food_classifier",),
            sigmoid=True,
        ),
        Variant(
            "model-py",
            "model.py, ONNX",
            (*ALIPES, "models", *ALIPES_FLAGS),
            _to_model_py,
            _classified,
            models=("food_classifier",),
            sigmoid=True,
        ),
        Variant(
            "function",
            "function, ONNX",
            (*ALIPES, "app.py", *ALIPES_FLAGS),
            _to_function,
            _prediction,
            models=("food",),
        ),
        Variant(
            "onnx",
            "ONNX, tensor in",
            (*ALIPES, "models-onnx", *ALIPES_FLAGS),
            _to_onnx,
            _scored,
            models=("food_classifier_onnx",),
        ),
        Variant(
            "native",
            "native ensemble",
            (*ALIPES, "models-native", *ALIPES_FLAGS),
            _to_classifier,
            _classified,
            models=("read", "network", "best"),
        ),
    )
}
