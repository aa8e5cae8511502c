"""Finds the ONNX Runtime library inside the installed wheel.

The wheel decides which build serves: `onnxruntime`, `onnxruntime-gpu` and `onnxruntime-openvino` all install the
package `onnxruntime`. It is only located and never imported: the data plane opens the library itself, so the
interpreter lock is never near a call, and a broken Python part of the wheel does not matter.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from alipes.errors import ModelLoadError

INSTALL_HINT = "install it with: pip install onnxruntime (or onnxruntime-gpu, onnxruntime-openvino)"

_PATTERNS = {"darwin": "libonnxruntime*.dylib", "win32": "onnxruntime.dll"}
_DEFAULT_PATTERN = "libonnxruntime.so*"


def silence_telemetry() -> None:
    """Keeps ONNX Runtime from reporting to its maker, unless the environment says otherwise.

    Recent official builds report over the network by default and leave an identifier in the folder for temporary
    files. They read this variable once, when the library is opened; the API's own switch comes after the first report.
    To be called early: another thread must not read the environment at the same time.

    Source: Privacy.md of the onnxruntime wheel, "Disabling Telemetry".
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def find_library() -> Path:
    """The absolute path of the ONNX Runtime library.

    Raises:
        ModelLoadError: If no wheel is installed, or it carries no library; the text says what to install.
    """
    folders = package_folders("onnxruntime")
    if not folders:
        raise ModelLoadError(
            f"ONNX Runtime is not installed; {INSTALL_HINT}", backend="onnxruntime", code="UNAVAILABLE"
        )
    pattern = _PATTERNS.get(sys.platform, _DEFAULT_PATTERN)
    for folder in folders:
        # Several names may link to one file; the longest carries the full version.
        found = sorted((folder / "capi").glob(pattern), key=lambda path: len(path.name))
        if found:
            return found[-1].absolute()
    raise ModelLoadError(
        f"the installed onnxruntime ({folders[0]}) holds no {pattern}; run: pip install --upgrade onnxruntime",
        backend="onnxruntime",
        code="UNAVAILABLE",
    ).hiding({f" ({folders[0]})": ""})


def package_folders(package: str) -> list[Path]:
    """Folders of a top-level package, without importing it; empty if it is absent."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # a half-removed package can have a broken spec
        return []
    locations = spec.submodule_search_locations if spec is not None else None
    return [Path(location) for location in locations or ()]
