"""Damaged models: what may stand in a repository by accident, or because somebody put it there."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from alipes.config.limits import MAX_ENSEMBLE_DEPTH

from support.models import add_model

__all__ = ["DAMAGES", "Damage", "add_damaged", "remove_all"]

Put = Callable[[Path], object]
Answer = Literal["poll", "load", "ready"]

_ONNX: Final = 'backend: "onnxruntime"\nmax_batch_size: 4\n'
_INPUT: Final = 'input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]\n'
_OUTPUT: Final = 'output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]\n'
_LABELS: Final = _ONNX + _INPUT + _OUTPUT.replace("dims", 'label_filename: "labels" dims')
_PYTHON: Final = f'backend: "python"\n{_INPUT}{_OUTPUT}'
_LONG: Final = "x" * 300
_SAMPLE: Final = (
    f'{_ONNX}model_warmup {{ name: "s" batch_size: 1 inputs {{ key: "X" value: '
    '{ data_type: TYPE_FP32 dims: [ 2 ] input_data_file: "sample" } } }\n'
)
_STATE: Final = (
    f"{_PYTHON}sequence_batching {{ state [ {{ input_name: 'S' output_name: 'T' data_type: TYPE_FP32 dims: [ 1 ] "
    "initial_state { name: 's' data_type: TYPE_FP32 dims: [ 1 ] data_file: 'state' } } ] }\n"
)
# Calls itself while it is loaded.
_ITSELF: Final = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        name = args["model_name"]
        answer = pb_utils.InferenceRequest(model_name=name, requested_output_names=["Y"], inputs=[]).exec()
        if answer.has_error():
            raise pb_utils.TritonModelException(answer.error().message())

    def execute(self, requests):
        return []
"""


@dataclass(frozen=True)
class Damage:
    """How a model is damaged.

    Attributes:
        make: Makes the damaged model, given the path of its folder.
        answer: Of a load: that its folder cannot be polled, why it failed, or that it is ready all the same.
    """

    make: Put
    answer: Answer


def add_damaged(repository: Path, name: str) -> Path:
    """Adds one of `DAMAGES` to a repository, and returns its folder."""
    DAMAGES[name].make(repository / name)
    return repository / name


def remove_all(repository: Path) -> None:
    """Removes a repository; Python's own function would not get to the bottom of it."""
    subprocess.run(["rm", "-rf", repository], check=True)


def _changed(place: str, put: Put, config: str | bytes | None = _ONNX) -> Put:
    """A model that is whole but for one file or folder."""

    def make(folder: Path) -> None:
        add_model(folder.parent, folder.name)
        if config is not None:
            (folder / "config.pbtxt").write_bytes(config if isinstance(config, bytes) else config.encode())
        path = folder / place
        if path.exists():
            subprocess.run(["rm", "-r", path], check=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        put(path)

    return make


def _configured(config: str | bytes) -> Put:
    """A whole model with a configuration."""
    return _changed("more", Path.touch, config)


def _python(source: str | bytes, config: str = _PYTHON) -> Put:
    """A model in Python."""

    def make(folder: Path) -> None:
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "model.py").write_bytes(source if isinstance(source, bytes) else source.encode())
        (folder / "config.pbtxt").write_text(config)

    return make


def _environment(value: str, put: Put | None = None) -> Put:
    """A model that names its environment, and something in its folder that it may name."""
    config = f'{_PYTHON}parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{value}" }} }}'

    def make(folder: Path) -> None:
        _python("x = 1\n", config)(folder)
        if put is not None:
            put(folder / "environment")

    return make


def _ensemble(*members: str) -> Put:
    """An ensemble of models."""
    names = ["X", *(f"t{number}" for number in range(1, len(members))), "Y"]
    steps = [
        f'{{ model_name: "{member}" model_version: -1 input_map {{ key: "X" value: "{before}" }} '
        f'output_map {{ key: "Y" value: "{after}" }} }}'
        for member, before, after in zip(members, names[:-1], names[1:], strict=True)
    ]
    scheduling = f"ensemble_scheduling {{ step [ {', '.join(steps)} ] }}"

    def make(folder: Path) -> None:
        (folder / "1").mkdir(parents=True)
        (folder / "config.pbtxt").write_text(f'platform: "ensemble"\nmax_batch_size: 4\n{_INPUT}{_OUTPUT}{scheduling}')

    return make


def _nothing(path: Path) -> None:
    """Leaves out what stood there."""


def _text(content: str | bytes) -> Put:
    return lambda path: path.write_bytes(content if isinstance(content, bytes) else content.encode())


def _link(target: str) -> Put:
    return lambda path: path.symlink_to(target)


def _circle(path: Path) -> None:
    path.symlink_to(path.name)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(path.parent, os.O_RDONLY)  # the path itself may be too long for an address
        try:
            made.bind(f"/proc/self/fd/{here}/{path.name}")
        finally:
            os.close(here)


def _deep(path: Path) -> None:
    """Folders in each other, as many as a path has room for: Python's recursion has not."""
    here = os.open(path.parent, os.O_RDONLY)
    try:
        for _ in range((4000 - len(str(path))) // 2):
            os.mkdir("d", dir_fd=here)
            below = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
    finally:
        os.close(here)


def _odd_names(path: Path) -> None:
    """Names that are no text, or no line of text."""
    for name in (b"\xff", b"\xed\xb3\xbf", b"a\nb", b"\x1b[31m"):
        Path(path.parent, os.fsdecode(name)).touch()


_PIPE: Final[Put] = os.mkfifo
_HERE: Final = "$$TRITON_MODEL_DIRECTORY/environment"
_KINDS: Final[dict[str, Put]] = {
    "folder": Path.mkdir,
    "nowhere": _link("nowhere"),
    "circle": _circle,
    "pipe": _PIPE,
    "socket": _socket,
    "device": _link("/dev/zero"),
    "latin": _text(b"# \xe9"),
    "absent": _nothing,
}
"""What may stand in the place of a file."""

_FILES: Final[dict[str, tuple[str, str, str]]] = {
    "labels": ("labels", _LABELS, "folder nowhere circle pipe socket device latin absent"),
    # No bytes are asked of this one: it is opened whatever its size.
    "sample": ("warmup/sample", _SAMPLE.replace("[ 2 ]", "[ 0 ]"), "folder nowhere circle pipe socket device absent"),
    "state": ("initial_state/state", _STATE, "folder nowhere circle pipe socket device absent"),
    "onnx": ("1/model.onnx", _ONNX, "folder nowhere circle pipe socket device latin absent"),
    "python": ("1/model.py", _PYTHON, "folder nowhere circle pipe socket device latin absent"),
}
"""Files of a model: the place, the configuration that names it, and what may stand there."""

_CONFIGURATIONS: Final[dict[str, tuple[Answer, str | bytes]]] = {
    "zeros": ("poll", bytes(1000)),
    "cut": ("poll", f"{_ONNX}input [ {{"),
    "deep": ("poll", "input { " * 20_000),
    "number": ("poll", "max_batch_size: 99999999999999999999"),
    "other": ("poll", f'{_ONNX}name: "another"'),
    "escape": ("poll", 'backend: "\\377\\376"'),
    "file-odd": ("poll", f'{_ONNX}default_model_filename: "\\303\\050"'),
    "backend": ("load", 'backend: "absent"'),
    "backend-nul": ("load", 'backend: "onnx\\000runtime"'),
    "backend-up": ("load", 'backend: "../../evil"'),
    "file-long": ("load", f'{_ONNX}default_model_filename: "{_LONG}"'),
    "file-nul": ("load", f'{_ONNX}default_model_filename: "a\\000b"'),
    "file-up": ("load", f'{_ONNX}default_model_filename: "../../folder-file"'),
    "labels-long": ("load", _LABELS.replace('"labels"', f'"{_LONG}"')),
    "sample-long": ("load", _SAMPLE.replace('"sample"', f'"{_LONG}"')),
    "state-long": ("load", _STATE.replace("'state'", f"'{_LONG}'")),
    "policy": ("load", f"{_ONNX}version_policy {{ specific {{ versions: [ 7 ] }} }}"),
    "instances": ("load", f"{_ONNX}instance_group [ {{ count: 2000000000 kind: KIND_CPU }} ]"),
}

_SOURCES: Final[dict[str, str | bytes]] = {
    "syntax": "def",
    "class": "x = 1\n",
    "raises": "raise ValueError('it broke')\n",
    "zeros": bytes(10),
    "exits": "import os; os._exit(3)\n",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n",
    "itself": _ITSELF,
}

_ENVIRONMENTS: Final[dict[str, Put]] = {
    "absent": _environment(_HERE),
    "long": _environment(f"/{_LONG}"),
    "nul": _environment("a\\000b"),
    "shell": _environment("/bin/sh"),
    "archive": _environment(_HERE, _text(b"\x1f\x8b" + bytes(100))),
    **{kind: _environment(_HERE, _KINDS[kind]) for kind in ("circle", "nowhere", "pipe", "device", "folder")},
}

_DEEP: Final = MAX_ENSEMBLE_DEPTH + 8

_CIRCLES: Final[dict[str, tuple[str, ...]]] = {
    "itself": ("ensemble-itself",),
    "two-a": ("ensemble-two-b",),
    "two-b": ("ensemble-two-a",),
    "three-a": ("ensemble-three-b",),
    "three-b": ("ensemble-three-c",),
    "three-c": ("ensemble-three-a",),
    "absent": ("absent", "../folder-empty", "config-circle"),
    "broken": ("onnx-latin",),
    "long": (_LONG,),
}

DAMAGES: Final[dict[str, Damage]] = {
    **{f"folder-{kind}": Damage(_KINDS[kind], "poll") for kind in ("nowhere", "circle", "pipe", "socket", "device")},
    "folder-file": Damage(_text("x"), "poll"),
    "folder-empty": Damage(Path.mkdir, "poll"),
    **{
        f"version-{kind}": Damage(_changed("1", _KINDS[kind]), "load")
        for kind in ("nowhere", "circle", "pipe", "socket", "device", "folder", "latin", "absent")
    },
    "version-up": Damage(_changed("1", _link("..")), "load"),
    "version-deep": Damage(_changed("1/d", _deep), "ready"),
    "version-odd": Damage(_changed("1/odd", _odd_names), "ready"),
    **{
        f"config-{kind}": Damage(_changed("config.pbtxt", _KINDS[kind]), "poll")
        for kind in ("circle", "folder", "pipe", "socket", "device", "latin")
    },
    **{f"config-{what}": Damage(_configured(text), answer) for what, (answer, text) in _CONFIGURATIONS.items()},
    **{
        f"{file}-{kind}": Damage(_changed(place, _KINDS[kind], config), "load")
        for file, (place, config, kinds) in _FILES.items()
        for kind in kinds.split()
    },
    **{f"source-{what}": Damage(_python(source), "load") for what, source in _SOURCES.items()},
    **{f"environment-{what}": Damage(make, "load") for what, make in _ENVIRONMENTS.items()},
    **{f"ensemble-{what}": Damage(_ensemble(*members), "load") for what, members in _CIRCLES.items()},
    **{
        f"ensemble-deep-{depth}": Damage(
            _ensemble(f"ensemble-deep-{depth - 1}" if depth > 1 else "whole"),
            "ready" if depth <= MAX_ENSEMBLE_DEPTH else "load",
        )
        for depth in range(1, _DEEP + 1)
    },
}
"""By the names of the models. The ensembles are made of each other, and of a model `whole`."""
