"""Rollouts of small models under requests, as a person starts them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self

import alipes
import numpy as np
from alipes.client import Retry
from alipes.errors import AlipesError

from support.models import add_model, times
from support.server import ServerProcess

__all__ = ["QUICK", "WIDE", "Requests", "add_two_versions", "rollout"]

CONFIG = """
backend: "onnxruntime"
max_batch_size: 4
version_policy { all { } }
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""
QUICK = ("--steps=20,50", "--step-time=1", "--last-step-time=60", "--look-every=0.2")
WIDE = ("--max-errors=5%", "--max-latency=900%", "--max-drift=0.4")
_CALLERS = 4


class Requests:
    """Requests with random rows to one model while it is entered.

    Attributes:
        failures: Errors in place of answers.
    """

    def __init__(self, server: ServerProcess, model: str, shape: tuple[int, ...] = (1, 2)) -> None:
        """Sends nothing yet."""
        self.failures: list[str] = []
        self._shape = shape
        self._server, self._model = server, model
        self._over = threading.Event()
        self._callers = [threading.Thread(target=self._run, args=(seed,)) for seed in range(_CALLERS)]

    def __enter__(self) -> Self:
        """Begins."""
        for caller in self._callers:
            caller.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends."""
        self._over.set()
        for caller in self._callers:
            caller.join(60)

    def _run(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        with alipes.Client(f"http://{self._server.http}", retry=Retry(times=0)) as client:
            while not self._over.is_set():
                try:
                    client.infer(self._model, {"X": random.normal(1, 1, self._shape).astype(np.float32)})
                except AlipesError as error:
                    self.failures.append(str(error))


def rollout(url: str, model: str, *flags: str) -> tuple[int, dict[str, object]]:
    """What `alipes rollout` returns, and says at its end."""
    command = [sys.executable, "-m", "alipes", "rollout", model, "--to=2", "--json", f"--url={url}", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def add_two_versions(repository: Path, name: str, factor: float) -> None:
    """A model whose version 1 answers what it gets, and whose version 2 answers so many times that."""
    folder = add_model(repository, name, times(1.0), config=CONFIG)
    (folder / "2").mkdir()
    (folder / "2" / "model.onnx").write_bytes(times(factor).SerializeToString())
