"""Other models of the server, as a model may load, unload and ask for them.

Calls through the link, with JSON:

================ ============================================================ ==================
call             question                                                     answer
================ ============================================================ ==================
``model.load``   ``model``; ``config``: a JSON text or empty; ``files``: an   nothing
                 object of paths and contents in base64
``model.unload`` ``model``; ``unload_dependents``                             nothing
``model.ready``  ``model``; ``version``: -1 for the one that serves           ``ready``
================ ============================================================ ==================
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from alipes._core import TritonModelException
from alipes.worker.current import ask, current

__all__ = ["get_model_dir", "is_model_ready", "load_model", "unload_model"]


def get_model_dir() -> str:
    """The folder of the model's version."""
    return current.version_directory


def load_model(model_name: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
    """Loads a model, or loads it anew. The server must run with ``--model-control-mode=explicit``.

    Args:
        model_name: The model.
        config: A configuration as JSON, in place of the model's own.
        files: Contents in place of the model's folder: ``{"file:1/model.py": b"..."}``. They need a ``config``.

    Raises:
        TritonModelException: If the server refuses or the model cannot be loaded.
    """
    if files is not None and not isinstance(files, Mapping):
        raise TritonModelException(
            f"failed to load model '{model_name}', files should be a dictionary of file paths and file contents"
        )
    for path, content in (files or {}).items():
        if not isinstance(path, str) or not isinstance(content, bytes | bytearray | memoryview):
            kind = type(content).__name__
            raise TritonModelException(
                f"failed to load model '{model_name}', a file should be a path and bytes, got {path!r} and {kind}"
            )
    contents = {path: base64.b64encode(content).decode("ascii") for path, content in (files or {}).items()}
    ask("model.load", {"model": model_name, "config": config, "files": contents}, "Failed to load model")


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Unloads a model. The server must run with ``--model-control-mode=explicit``.

    Args:
        model_name: The model.
        unload_dependents: Whether the models go too that were loaded for its sake.

    Raises:
        TritonModelException: If the server refuses.
    """
    question = {"model": model_name, "unload_dependents": bool(unload_dependents)}
    ask("model.unload", question, "Failed to unload model")


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Whether a model can answer now.

    Args:
        model_name: The model.
        model_version: A version; empty for the one that serves when none is named.

    Raises:
        TritonModelException: If the version is no number.
    """
    version = -1
    if model_version:
        if not str(model_version).isdecimal():
            raise TritonModelException(
                f"Failed to check model readiness: failed to get model version from specified version string "
                f"'{model_version}', version should be an integral value > 0"
            )
        version = int(model_version)
    question = {"model": model_name, "version": version}
    return bool(ask("model.ready", question, "Failed to check model readiness")["ready"])
