"""Models in Python, and repositories made of them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

# Stands in front of every model file. A model tells the test something with `note`, and `await_note` lets it wait for
# the test, or for another model.
PRELUDE = """\
import asyncio, ctypes, json, os, signal, subprocess, sys, threading, time
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

NOTES = Path(os.environ.get("NOTES", "."))
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def given(request, name="X"):
    return pb_utils.get_input_tensor_by_name(request, name).as_numpy()


def word(request, name="HOW"):
    return given(request, name).flat[0].decode()


def answer(**tensors):
    return pb_utils.InferenceResponse([pb_utils.Tensor(name, np.asarray(array)) for name, array in tensors.items()])


def note(name, text=""):
    # Whole at once, also where several instances leave the same note.
    half = NOTES / f".{name} {os.getpid()} {threading.get_ident()}"
    half.write_text(str(text))
    half.rename(NOTES / name)


def await_note(name):
    while not (NOTES / name).exists():
        time.sleep(0.002)


"""

# Gives X back as Y.
ECHO = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(Y=given(request)) for request in requests]
"""

# Gives the number of its process.
WHO = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(PID=np.array([os.getpid()])) for _ in requests]
"""

_PORT = re.compile(r"(?P<name>\w+): (?P<optional>\??)(?P<datatype>[A-Z0-9]+)\[(?P<shape>[-0-9, ]*)\]")


def add_python_model(
    repository: Path,
    name: str,
    source: str = ECHO,
    *,
    signature: str = "X: INT32[-1] -> Y: INT32[-1]",
    config: str = "",
    versions: Iterable[int] = (1,),
) -> Path:
    """Writes a model's folder with the same file in every version, and returns it.

    Args:
        repository: The repository, made if absent.
        name: The model.
        source: The model file, without what `PRELUDE` holds.
        signature: Inputs, an arrow, outputs. ``?`` in front of its datatype makes an input optional.
        config: Further lines of `config.pbtxt`: batching, instances, parameters.
        versions: Version directories to make.
    """
    folder = repository / name
    for version in versions:
        (folder / str(version)).mkdir(parents=True)
        write_model(folder / str(version) / "model.py", source)
    inputs, outputs = (_PORT.finditer(side) for side in signature.split("->"))
    ports = [*(_port("input", port) for port in inputs), *(_port("output", port) for port in outputs)]
    own = "" if "instance_group" in config else instances(1)
    (folder / "config.pbtxt").write_text("\n".join(['backend: "python"', *ports, own, textwrap.dedent(config)]))
    return folder


def write_model(file: Path, source: str) -> None:
    """Writes a model file."""
    file.write_text(PRELUDE + textwrap.dedent(source))


def parameter(key: str, value: object) -> str:
    """A line of `config.pbtxt` that gives a model a parameter."""
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'


def instances(count: int) -> str:
    """A line of `config.pbtxt` that asks for so many instances."""
    return f"instance_group [ {{ kind: KIND_CPU count: {count} }} ]\n"


DECOUPLED = "model_transaction_policy { decoupled: true }\n"

# Gives each value of X as a response of its own.
REPORTS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for value in given(request):
                sender.send(answer(Y=np.array([value], np.int32)))
            sender.send(flags=FINAL)
"""


def _port(kind: str, port: re.Match[str]) -> str:
    datatype = "STRING" if port["datatype"] == "BYTES" else port["datatype"]
    optional = " optional: true" if port["optional"] else ""
    return f'{kind} [ {{ name: "{port["name"]}" data_type: TYPE_{datatype} dims: [ {port["shape"]} ]{optional} }} ]'
