"""Versions of a small ONNX model, prepared without ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from alipes.backends.base import Draft
from alipes.backends.prepare import LoadPlan, prepare_version
from alipes.config.load import parse_flags
from alipes.config.options import ServerOptions
from alipes.config.poll import poll_model
from support.configurations import SIGNATURE, backend_of

Prepare = Callable[..., LoadPlan]


@pytest.fixture
def options() -> ServerOptions:
    """The server's options where only the repository is set."""
    return parse_flags(["models"], {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of model `m` with version 1; the model file is empty, and `SIGNATURE` stands for its tensors."""
    made = tmp_path / "m"
    (made / "1").mkdir(parents=True)
    (made / "1" / "model.onnx").write_bytes(b"")
    return made


@pytest.fixture
def prepare(folder: Path) -> Prepare:
    """Polls and prepares version 1 of model `m`: ``prepare(text, *flags, signature=...)``."""

    def run(text: str | None, *flags: str, signature: dict[str, Any] = SIGNATURE) -> LoadPlan:
        if text is not None:
            (folder / "config.pbtxt").write_text(text)
        options = parse_flags(["models", *flags], {})
        polled = poll_model(folder, "m", options)
        return prepare_version(Draft(polled, folder, 1, options), backend_of=partial(backend_of, signature=signature))

    return run
