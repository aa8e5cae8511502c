"""The models of the recorded sweeps, and the spaces that were swept."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Final

import numpy as np
from alipes.tune.knobs import Value
from onnx import TensorProto, helper, numpy_helper

from support.models import add_model, small_model

__all__ = ["SWEPT", "Swept"]

_HEAD: Final = """
import fcntl
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import triton_python_backend_utils as pb_utils


def answer(request, rows):
    return pb_utils.InferenceResponse([pb_utils.Tensor("Y", rows)])


def read(request):
    return pb_utils.get_input_tensor_by_name(request, "X").as_numpy()

"""


def _waiting(about: str, wait: str, more: str = "") -> str:
    """A model that waits as for a device, and gives its rows back; `rows` of all requests are in an execution."""
    return f'''{_HEAD}
class TritonPythonModel:
    """{about}"""
{indent(more, "    ")}
    def execute(self, requests):
        inputs = [read(request) for request in requests]
        rows = sum(map(len, inputs))
{indent(wait, "        ")}
        return [answer(request, one) for request, one in zip(requests, inputs)]
'''


_DEVICE: Final = _waiting(
    "Waits as for a device of its own: some time for each execution, and a little for each row.",
    "time.sleep(0.012 + 0.0016 * rows)",
)

_SHARED: Final = _waiting(
    "Waits as for a device that all instances share, and as for the work before and after it, which they do not.",
    """
time.sleep(0.008)
fcntl.flock(self.device, fcntl.LOCK_EX)
time.sleep(0.008 + 0.001 * rows)
fcntl.flock(self.device, fcntl.LOCK_UN)
""",
    """
def initialize(self, args):
    self.device = open(__file__)
""",
)

_STEPS: Final = _waiting(
    "Waits as for a device that does six rows at a time.",
    "time.sleep(0.004 + 0.01 * -(-rows // 6))",
)

_MATRICES: Final = (
    _HEAD
    + '''
class TritonPythonModel:
    """Multiplies matrices, the rows of a batch shared among threads."""

    def initialize(self, args):
        import json

        self.threads = int(json.loads(args["model_config"])["parameters"]["threads"]["string_value"])
        self.pool = ThreadPoolExecutor(self.threads)
        drawn = np.random.default_rng(0)
        self.layers = [drawn.standard_normal((SIDE, SIDE), np.float32) / SIDE**0.5 for _ in range(LAYERS)]

    def execute(self, requests):
        inputs = [read(request) for request in requests]
        parts = np.array_split(np.concatenate(inputs), self.threads)
        rows = np.concatenate(list(self.pool.map(self.forward, [part for part in parts if len(part)])))
        ends = np.cumsum([len(one) for one in inputs])[:-1]
        return [answer(request, part) for request, part in zip(requests, np.split(rows, ends))]

    def forward(self, rows):
        for layer in self.layers:
            rows = np.tanh(rows @ layer)
        return rows
'''.replace("SIDE", "256").replace("LAYERS", "8")
)

_CONFIG: Final = """
backend: "python"
max_batch_size: 4
input { name: "X" data_type: TYPE_FP32 dims: COLUMNS }
output { name: "Y" data_type: TYPE_FP32 dims: COLUMNS }
instance_group { count: 1 kind: KIND_CPU }
dynamic_batching { }
parameters { key: "threads" value { string_value: "1" } }
"""
_ONNX_CONFIG: Final = """
max_batch_size: 4
instance_group { count: 1 kind: KIND_CPU }
dynamic_batching { }
"""


@dataclass(frozen=True)
class Swept:
    """A model and its space.

    Attributes:
        about: What it does, in one line.
        add: Puts it into a repository, under its name.
        values: Values by knob.
    """

    about: str
    add: Callable[[Path], None]
    values: Mapping[str, Sequence[Value]]


def _threads(count: int) -> str:
    """A value of the knob `config`."""
    return json.dumps({"parameters": {"threads": {"string_value": str(count)}}}, sort_keys=True)


def _python(name: str, code: str, columns: int) -> Callable[[Path], None]:
    def add(repository: Path) -> None:
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "1" / "model.py").write_text(code)
        (repository / name / "config.pbtxt").write_text(_CONFIG.replace("COLUMNS", str(columns)))

    return add


def _add_layers(repository: Path) -> None:
    """Eight layers of 512 columns, in ONNX."""
    side, count = 512, 8
    drawn = np.random.default_rng(0)
    layers = [drawn.standard_normal((side, side)).astype(np.float32) / side**0.5 for _ in range(count)]
    nodes = []
    for at in range(count):
        nodes.append(helper.make_node("MatMul", ["X" if at == 0 else f"h{at}", f"w{at}"], [f"p{at}"]))
        nodes.append(helper.make_node("Tanh", [f"p{at}"], ["Y" if at == count - 1 else f"h{at + 1}"]))
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", side]) for name in ("X", "Y")]
    weights = [numpy_helper.from_array(layer, f"w{at}") for at, layer in enumerate(layers)]
    add_model(repository, "layers", small_model(nodes, ports[:1], ports[1:], weights))
    (repository / "layers" / "config.pbtxt").write_text(_ONNX_CONFIG)


SWEPT: Final[Mapping[str, Swept]] = {
    "device": Swept(
        "a Python model that waits as for a device of its own: 12 ms for each execution and 1.6 ms for each row",
        _python("device", _DEVICE, 2),
        {
            "instances": [1, 2, 4],
            "max_batch_size": [1, 2, 4, 8, 16],
            "queue_delay_us": [0, 6000],
            "callers": [1, 2, 4, 8, 16, 32],
        },
    ),
    "shared": Swept(
        "a Python model that waits 8 ms, and as for a device that its instances share: 8 ms and 1 ms for each row",
        _python("shared", _SHARED, 2),
        {
            "instances": [1, 2, 3],
            "max_batch_size": [1, 4, 8, 16, 32],
            "queue_delay_us": [0, 8000],
            "callers": [1, 2, 4, 8, 16, 32],
        },
    ),
    "steps": Swept(
        "a Python model that waits as for a device that does six rows at a time: 4 ms and 10 ms for each six rows",
        _python("steps", _STEPS, 2),
        {
            "instances": [1, 2, 4],
            "max_batch_size": [2, 4, 6, 8, 12],
            "queue_delay_us": [0, 6000],
            "callers": [1, 3, 6, 12, 24],
        },
    ),
    "matrices": Swept(
        "a Python model that multiplies matrices with numpy, 8 layers of 256 columns, rows shared among threads",
        _python("matrices", _MATRICES, 256),
        {
            "instances": [1, 2, 3],
            "max_batch_size": [1, 4, 16, 64],
            "config": [_threads(1), _threads(2)],
            "callers": [1, 2, 4, 8, 16, 32],
        },
    ),
    "layers": Swept(
        "an ONNX model of 8 layers of 512 columns",
        _add_layers,
        {
            "instances": [1, 2, 3],
            "max_batch_size": [1, 4, 16, 64],
            "queue_delay_us": [0, 1000],
            "engine_threads": [1, 2],
            "callers": [1, 4, 16, 64],
        },
    ),
}
