"""What the rows on pictures are asked: the picture and the network of the example `serving-lab`."""

import importlib
import io
import json
import struct
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
from PIL import Image

from bench.paths import PROJECT, WORK

LAB = PROJECT / "examples" / "serving-lab"
SENDERS = LAB / "senders.py"
#: So many layers of convolutions take some 20 ms of one core.
LAYERS = 14
SIDE = 224
MEAN_AND_STD = {"mean": "0.485, 0.456, 0.406", "std": "0.229, 0.224, 0.225"}


@dataclass(frozen=True)
class Asked:
    """A request to a model, and how to tell a right answer."""

    path: str
    headers: dict[str, str]
    body: bytes
    #: A part of the right answer.
    says: bytes

    def message(self) -> bytes:
        """All bytes of the request."""
        lines = [f"{name}: {value}" for name, value in {**self.headers, "Content-Length": len(self.body)}.items()]
        return "\r\n".join([f"POST {self.path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode() + self.body


def picture() -> bytes:
    """The example's JPEG: soup."""
    file = io.BytesIO()
    _module("make_weights").picture("Soup").save(file, "jpeg", quality=80)
    return file.getvalue()


def pillow(content: bytes) -> np.ndarray:
    """Decodes and resizes with Pillow, as the model `resized` does."""
    picture = Image.open(io.BytesIO(content)).convert("RGB")
    return np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def asked(model: str, output: str, says: str) -> Asked:
    """The picture for a model whose input is called `picture`, as the bytes of the file; so come tensors back."""
    content = picture()
    data = struct.pack("<I", len(content)) + content
    size = {"binary_data_size": len(data)}
    inputs = [{"name": "picture", "datatype": "BYTES", "shape": [1, 1], "parameters": size}]
    outputs = [{"name": output, "parameters": {"binary_data": output == "tensor"}}]
    head = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    return Asked(f"/v2/models/{model}/infer", headers, head + data, says.encode())


def write(folder: Path) -> Path:
    """Writes the models: `resized`, and the ensemble `food` of `read`, `network` and `best`.

    The network has one instance of one thread, so that a raw loop over it is a floor.
    """
    _add(folder, "resized", _step("picture", dtype="UINT8", layout="NHWC", resize=f"{SIDE}x{SIDE}"))
    _add(folder, "read", _step("picture", resize=f"{SIDE}x{SIDE}", **MEAN_AND_STD) + "instance_group { count: 2 }\n")
    _add(folder, "best", _step("top_k", k="1", softmax="1", labels="labels.txt"))
    (folder / "best" / "labels.txt").write_text((LAB / "models-native" / "best" / "labels.txt").read_text())
    network = _step("onnxruntime", intra_op_thread_count="1") + "dynamic_batching { }\ninstance_group { count: 1 }\n"
    _add(folder, "network", network)
    _module("network").Network(*_module("make_weights").weights(), layers=LAYERS).save_onnx(network_file(folder))
    _add(folder, "food", _ENSEMBLE)
    return folder


def network_file(folder: Path) -> Path:
    """The network of a repository."""
    return folder / "network" / "1" / "model.onnx"


@cache
def repository() -> Path:
    """The repository, written once in a run."""
    return write(WORK / "lab")


_ENSEMBLE = """
platform: "ensemble" max_batch_size: 16
input { name: "picture" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "label" data_type: TYPE_STRING dims: [ 1 ] }
ensemble_scheduling { step [
  { model_name: "read" model_version: -1 input_map { key: "picture" value: "picture" }
    output_map { key: "tensor" value: "pixels" } },
  { model_name: "network" model_version: -1 input_map { key: "input" value: "pixels" }
    output_map { key: "output" value: "scores" } },
  { model_name: "best" model_version: -1 input_map { key: "scores" value: "scores" }
    output_map { key: "labels" value: "label" } }
] }
"""


def _step(backend: str, **parameters: str) -> str:
    rows = [f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}' for key, value in parameters.items()]
    return "\n".join([f'backend: "{backend}"', "max_batch_size: 16", *rows, ""])


def _add(folder: Path, name: str, config: str) -> None:
    (folder / name / "1").mkdir(parents=True, exist_ok=True)
    (folder / name / "config.pbtxt").write_text(config)


@cache
def _module(name: str) -> ModuleType:
    """A module of the example, which leaves no short name behind for other modules to meet."""
    own = {file.stem for file in LAB.glob("*.py")}
    before = {module: sys.modules.pop(module) for module in own & sys.modules.keys()}
    sys.path.insert(0, str(LAB))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(LAB))
        for module in own:
            sys.modules.pop(module, None)
        sys.modules.update(before)
