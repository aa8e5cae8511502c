"""`alipes client generate`: a module that is formatted, typed, and calls what a server has."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mypy import api as mypy
from support.command import alipes
from support.models import add_model, times
from support.server import ServerProcess

APP = '''
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import alipes
import numpy as np


@dataclass
class Box:
    left: int
    right: int


@alipes.model
def louder(sound: list[float], factor: float = 2.0, how: Literal["fast", "slow"] = "fast") -> list[float]:
    """Makes a sound louder."""
    return [value * factor for value in sound]


@alipes.model
def boxes(picture: str, most: int | None = None, first: Box = Box(0, 1)) -> list[Box]:
    return [first] * (most or 1)


@alipes.model
def count(n: int) -> Iterator[int]:
    yield from range(n)


@alipes.model(name="sum-up", max_batch_size=4)
def total(x: Annotated[np.ndarray, np.float32, (None, 3)]) -> list[float]:
    return [float(row.sum()) for row in x]
'''

PROGRAM = """
from served import Everything

with Everything() as server:
    louder: list[float] = server.louder([1.0, 2.0], factor=3.0)
    count: int = sum(server.count(4))
    print(louder, count, server.boxes("a", most=2), server.sum_up([1, 2, 3]), server.double([[1, 2]]).tolist())
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: object) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("generate")
    add_model(folder / "models", "double", times(2.0, "columns"))
    (folder / "app.py").write_text(APP, encoding="utf-8")
    yield serve_module(folder / "app.py", str(folder / "models"))  # type: ignore[operator]


@pytest.fixture(scope="module")
def module(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("module")
    done = alipes("client", "generate", f"grpc://{server.grpc}", "-o", "served.py", "--name=Everything", folder=folder)
    assert (done.code, done.out) == (0, "wrote served.py: from served import Everything\n"), done.err
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    return folder


def test_a_written_module_calls_functions_and_models(module: Path) -> None:
    done = subprocess.run([sys.executable, "program.py"], cwd=module, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    box = "{'left': 0, 'right': 1}"
    assert done.stdout == f"[3.0, 6.0] 6 [{box}, {box}] 6.0 [[2.0, 4.0]]\n"


@pytest.mark.slow("mypy reads numpy")
def test_a_written_module_has_types(module: Path) -> None:
    wrong = PROGRAM.replace("[1.0, 2.0]", '"loud"')
    (module / "wrong.py").write_text(wrong, encoding="utf-8")
    cache = f"--cache-dir={module / 'cache'}"
    found, *_ = mypy.run([cache, "--strict", str(module / "program.py"), str(module / "wrong.py")])
    lines = [line.partition(": ")[2] for line in found.splitlines()]
    assert len(lines) == 2, found
    assert lines[0].startswith('error: Argument 1 to "louder" of "Everything" has incompatible type "str"')


def test_a_written_module_is_formatted(module: Path) -> None:
    lines = (module / "served.py").read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 88
    for method in (
        "    def count(self, n: int) -> Iterator[int]:",
        "    def double(self, X: npt.ArrayLike) -> Array:",
        "    def sum_up(self, x: npt.ArrayLike) -> float:",
        '        """Makes a sound louder."""',
    ):
        assert method in lines
    text = "\n".join(lines)
    assert (
        "    def louder(\n"
        "        self,\n"
        "        sound: list[float],\n"
        "        factor: float = 2.0,\n"
        '        how: Literal["fast", "slow"] = "fast",\n'
        "    ) -> list[float]:\n"
    ) in text


def test_it_is_printed_without_a_file(server: ServerProcess) -> None:
    done = alipes("client", "generate", server.http)
    assert done.code == 0
    assert "\nclass Models:\n" in done.out
    compile(done.out, "served.py", "exec")
    assert alipes("client", "generate", "--url", server.http).out == done.out
    assert alipes("client", "generate", server.http, "--name=a b").code == 2
