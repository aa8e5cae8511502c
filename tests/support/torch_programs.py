"""Models of PyTorch, opened as a worker opens them; rows, and the numbers of the module for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.render import config_json
from alipes.worker.frameworks.opened import Opening
from alipes.worker.frameworks.pytorch.program import open_model

from support.torch_models import Stepped, add, linear, ports, save_exported, save_script

__all__ = [
    "BATCHED",
    "BY_NAME",
    "BY_NUMBER",
    "BY_PATH",
    "CLASS",
    "EXPORTED",
    "ROWS",
    "SCRIPT",
    "START",
    "STATE",
    "TRACED",
    "WRITTEN",
    "X_TO_Y",
    "Save",
    "check_steps",
    "expected",
    "opener",
    "parameter",
    "stepped",
]

ROWS = np.array([[1, 2, 3], [-1, 0.5, 4]], "f4")
BATCHED = "max_batch_size: 8\n"
X_TO_Y = ports({"input": "FP32 3"}, {"y": "FP32 2"})
CLASS = (
    "import torch\nclass Net(torch.nn.Sequential):\n"
    "    def __init__(self):\n        super().__init__(torch.nn.Linear(3, 2), torch.nn.ReLU())\n"
)
Save = Callable[[Path], object]


def opener(tmp_path: Path) -> Callable[..., Any]:
    """Opens a model: ``opened(save, config)``."""

    def open_it(save: Save, config: str = "", *, allows_pickles: bool = False, named: str = "") -> Any:
        folder = tmp_path / "m" / "1"
        if not folder.exists():  # a test may open twice what it wrote once
            add(tmp_path, "m", save)
        file = folder / named if named else next(one for one in sorted(folder.iterdir(), reverse=True))
        made = json.loads(config_json(parse_pbtxt(config, tmp_path)))
        return open_model(Opening("m", file, made, allows_pickles=allows_pickles))

    return open_it


def expected(rows: np.ndarray = ROWS) -> Any:
    with torch.no_grad():
        return linear()(torch.from_numpy(rows)).numpy()


SCRIPT, TRACED = save_script(linear()), save_script(linear(), torch.zeros(2, 3))
EXPORTED = save_exported(linear(), torch.zeros(2, 3))


def parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


START = 'control_input [{ name: "%s" control [{ kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] }] }]'
STATE = 'state [{ input_name: "%s" output_name: "%s" data_type: TYPE_%s dims: [1] }]'


def stepped(start: str, before: str, after: str, x: str, total: str, kind: str = "INT32") -> str:
    """A configuration of `Stepped` under these names."""
    states = f"sequence_batching {{ {START % start} {STATE % (before, after, kind)} }}\n"
    return BATCHED + ports({x: "FP32 1"}, {total: "FP32 1"}) + states


WRITTEN = save_exported(
    Stepped(), *(torch.ones(2, 1, dtype=kind) for kind in (torch.int32, torch.int32, torch.float32))
)
BY_NUMBER = stepped("START__0", "TOTAL__1", "TOTAL__1", "INPUT__2", "OUTPUT__0")
BY_NAME = stepped("start", "total", "RESULT[pair][0]", "x", "RESULT[sum]")
BY_PATH = stepped("ARGS[0]", "ARGS[1]", "RESULT[pair][0]", "ARGS[2]", "RESULT[sum]")


def check_steps(model: Any, config: str) -> None:
    """One step that begins a sequence, and one that goes on."""
    made = json.loads(config_json(parse_pbtxt(config, Path())))
    [control], [state] = made["sequence_batching"]["control_input"], made["sequence_batching"]["state"]
    x, total = made["input"][0]["name"], made["output"][0]["name"]
    for begins, expected_total in ((1, 2), (0, 5)):
        values = {x: np.full((1, 1), 2, "f4"), control["name"]: np.full((1, 1), begins, "i4")}
        values[state["input_name"]] = np.full((1, 1), 3, "i4")
        found = model.run(values)
        assert (found[state["output_name"]].tolist(), found[total].tolist()) == (
            [[expected_total]],
            [[100 + expected_total]],
        )
