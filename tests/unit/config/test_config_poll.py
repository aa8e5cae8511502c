"""The first stage of a load: the configuration that all versions share."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.config.load import parse_flags
from alipes.config.options import ServerOptions
from alipes.config.override import parse_override
from alipes.config.poll import poll_model
from alipes.errors import ConfigError


def test_an_override_replaces_the_file(folder: Path, options: ServerOptions) -> None:
    (folder / "config.pbtxt").write_text("max_batch_sise: 1")
    assert poll_model(folder, "m", options, parse_override('{"max_batch_size": 3}')).max_batch_size == 3


def test_strict_mode_needs_a_file(folder: Path) -> None:
    strict = parse_flags(["models", "--disable-auto-complete-config"], {})
    with pytest.raises(ConfigError, match="failed to open text file for read"):
        poll_model(folder, "m", strict)


def test_strict_mode_checks_tensors_while_polling(folder: Path) -> None:
    (folder / "config.pbtxt").write_text('backend: "onnxruntime" input { name: "X" }')
    strict = parse_flags(["models", "--disable-auto-complete-config"], {})
    with pytest.raises(ConfigError, match="model input 'X' must specify 'data_type' for m"):
        poll_model(folder, "m", strict)


def test_the_named_configuration_is_used(folder: Path) -> None:
    (folder / "configs").mkdir()
    (folder / "configs" / "big.pbtxt").write_text("max_batch_size: 64")
    options = parse_flags(["models", "--model-config-name=big"], {})
    assert poll_model(folder, "m", options).max_batch_size == 64
