"""What to type next: commands and a program that work as they are printed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from alipes.quickstart.child import Addresses
from alipes.quickstart.digits import INPUT, MODEL, OUTPUT, REQUEST

DOCS: Final = "docs/index.md in the sources"

_FOLDER: Final = "digits-demo"


def commands(kept: Addresses | None) -> list[tuple[str, str]]:
    """Commands, each with the reason to type it.

    Args:
        kept: Where the server stays reachable; `None` if it is stopped, and then the first command starts one.
    """
    if kept is not None:
        return [
            ("ask the running server", curl(kept.http, REQUEST)),
            ("what it has done so far", f"curl -s {kept.http}/v2/models/{MODEL}/stats"),
            ("the same for Prometheus", f"curl -s {kept.metrics}/metrics"),
        ]
    return [
        ("this tour, with the server left running", "alipes quickstart --keep"),
        ("its model, its scans and a request, as files of your own", f"alipes quickstart --copy-to {_FOLDER}"),
        ("serve them, or a folder with your models", f"alipes serve {_FOLDER}/models"),
        ("ask that server, from another terminal", curl("localhost:8000", Path(_FOLDER) / REQUEST.name)),
    ]


def curl(address: str, request: Path) -> str:
    """A command that sends one scan to the model."""
    return f"curl -s {address}/v2/models/{MODEL}/infer -d @{request}"


def program(address: str) -> str:
    """A Python program that reads one scan's digit through Triton's own client."""
    return f"""\
import numpy as np
import tritonclient.http as triton

client = triton.InferenceServerClient("{address}")
scan = triton.InferInput("{INPUT}", [1, 8, 8], "FP32")
scan.set_data_from_numpy(np.eye(8, dtype=np.float32)[None] * 16)
print(client.infer("{MODEL}", [scan]).as_numpy("{OUTPUT}").argmax())"""


def install(package: str) -> str:
    """The command that adds a package to this interpreter."""
    return f"{sys.executable} -m pip install {package}"
