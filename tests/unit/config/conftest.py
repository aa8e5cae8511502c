"""Configurations to start from, and the signature of a small model file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alipes.config.load import parse_flags
from alipes.config.options import ServerOptions
from alipes.config.pbtxt import parse_pbtxt
from support.configurations import COMPLETE


@pytest.fixture
def config() -> Any:
    """A complete configuration of model `m`: X and Y, FP32, two columns, batches of up to four rows."""
    made = parse_pbtxt(COMPLETE)
    made.name = "m"
    return made


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
