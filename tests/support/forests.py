"""Small models of trees for tests, trained in a fraction of a second, and how a worker opens them."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from alipes.worker.frameworks.opened import Opening

from support.server import ServerProcess

__all__ = ["COLUMNS", "ROWS", "add_model", "labels", "opening", "reason", "tensor", "train_lightgbm", "train_xgboost"]

COLUMNS = 6
ROWS = np.random.default_rng(0).standard_normal((400, COLUMNS)).astype(np.float32)


def labels(task: str) -> np.ndarray:
    """What to learn: a number, one of two or of three classes."""
    score = ROWS[:, 0] * ROWS[:, 1] + ROWS[:, 2]
    return {"number": score, "two": (score > 0).astype(int), "three": np.digitize(score, [-0.5, 0.5])}[task]


def train_xgboost(objective: str, task: str, **options: Any) -> Any:
    """A booster of 20 trees."""
    xgboost: Any = import_module("xgboost")
    more = {"num_class": 3} if task == "three" else {}
    settings = {"objective": objective, "max_depth": 3, "nthread": 1, "verbosity": 0, **more, **options}
    return xgboost.train(settings, xgboost.DMatrix(ROWS, labels(task)), 20)


def train_lightgbm(objective: str, task: str) -> Any:
    """A booster of 20 trees."""
    lightgbm: Any = import_module("lightgbm")
    more = {"num_class": 3} if task == "three" else {}
    settings = {"objective": objective, "verbosity": -1, "num_threads": 1, **more}
    return lightgbm.train(settings, lightgbm.Dataset(ROWS, labels(task)), 20)


def tensor(name: str, *dims: int, kind: str = "FP32") -> dict[str, Any]:
    """An input or output of a configuration."""
    return {"name": name, "data_type": f"TYPE_{kind}", "dims": list(dims)}


def opening(file: Path, content: bytes, parameters: Mapping[str, str] | None = None, **more: Any) -> Opening:
    """What a worker is given to open a model with.

    Args:
        file: Where to write the file.
        content: What it holds.
        parameters: Those of the configuration.
        more: Other fields of the configuration, such as `output`, and those of an `Opening`.
    """
    file.write_bytes(content)
    of_opening = {key: more.pop(key) for key in ("device", "allows_pickles") if key in more}
    config = {
        "max_batch_size": 8,
        "parameters": {key: {"string_value": text} for key, text in (parameters or {}).items()},
    }
    return Opening("m", file, config | more, **of_opening)


def add_model(
    repository: Path,
    name: str,
    file: str,
    content: bytes,
    config: str = "",
    parameters: Mapping[str, str] | None = None,
) -> None:
    """A model of one version with one file."""
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (folder / file).write_bytes(content)
    lines = [
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        for key, value in (parameters or {}).items()
    ]
    if config or lines:
        (repository / name / "config.pbtxt").write_text("\n".join([config, *lines, ""]))


def reason(server: ServerProcess, model: str) -> str:
    """Why a model is not ready."""
    question = urllib.request.Request(f"http://{server.http}/v2/repository/index", data=b"{}")
    with urllib.request.urlopen(question) as answer:
        [row] = [row for row in json.load(answer) if row["name"] == model]
    assert row["state"] == "UNAVAILABLE", row
    return str(row["reason"])
