"""InferenceServices with the fields of KServe's public samples, and what our runtimes start for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from alipes.deploy.kserve.reading import described
from alipes.deploy.kserve.runtimes import MODELS, SERVICE, runtimes

__all__ = ["CUSTOM", "REFUSED", "SAMPLES", "arguments_of", "service"]

_EXAMPLES: Final = "gs://kfserving-examples/models"

SAMPLES: Final[Mapping[str, tuple[str, str, str]]] = {
    "sklearn-iris": ("sklearn", "v1", f"{_EXAMPLES}/sklearn/1.0/model"),
    "sklearn-v2-iris": ("sklearn", "v2", f"{_EXAMPLES}/sklearn/1.0/model"),
    "xgboost-iris": ("xgboost", "v2", f"{_EXAMPLES}/xgboost/iris"),
    "lightgbm-iris": ("lightgbm", "v1", f"{_EXAMPLES}/lightgbm/iris"),
    "style-sample": ("onnx", "v1", f"{_EXAMPLES}/onnx"),
    "torchscript-cifar": ("triton", "v2", f"{_EXAMPLES}/torchscript"),
    "flower-sample": ("tensorflow", "v1", f"{_EXAMPLES}/tensorflow/flowers"),
    "mlflow-v2-wine-classifier": ("mlflow", "v2", f"{_EXAMPLES}/mlflow/wine"),
}
"""Name -> format, protocol, where the sample's model lies. Source: `docs/samples` and the pages of kserve/website."""

REFUSED: Final[Mapping[str, tuple[str, str, str]]] = {
    "pmml-demo": ("pmml", "v1", f"{_EXAMPLES}/pmml"),
    "paddle-resnet50": ("paddle", "v1", f"{_EXAMPLES}/paddle/resnet"),
}
"""Those whose formats nothing here reads."""

CUSTOM: Final = "custom-model"
"""The one whose container runs a script of the SDK."""


def service(name: str) -> dict[str, Any]:
    """The InferenceService of a sample."""
    model_format, protocol, address = {**SAMPLES, **REFUSED}[name]
    model = {"modelFormat": {"name": model_format}, "protocolVersion": protocol, "storageUri": address}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {"predictor": {"model": model}},
    }


def arguments_of(sample: Mapping[str, Any], store: Path) -> list[str]:
    """What the runtime that KServe chooses among ours starts the server with; ports are the caller's business.

    Args:
        sample: The InferenceService.
        store: Where the storage initializer has put the model.

    Raises:
        LookupError: If no runtime reads its format.
    """
    model = sample["spec"]["predictor"]["model"]
    wanted, protocol = model["modelFormat"]["name"], model["protocolVersion"]
    for runtime in runtimes(described({"predictor": {"storage": {"uri": model["storageUri"]}}})):
        spec = runtime["spec"]
        formats = {one["name"] for one in spec["supportedModelFormats"] if one["autoSelect"]}
        if wanted in formats and protocol in spec["protocolVersions"]:
            texts = (text.replace(SERVICE, sample["metadata"]["name"]) for text in spec["containers"][0]["args"])
            return [text.replace(MODELS, str(store)) for text in texts if "-port=" not in text]
    raise LookupError(f"no runtime reads models of the format '{wanted}'")
