"""The flag `--triton-release`, and what the data plane is told of it."""

from __future__ import annotations

import json

import pytest
from alipes.config.load import parse_flags
from alipes.errors import ConfigError
from alipes.server.boundary import server_config


def test_the_release_comes_from_the_flag_or_the_environment() -> None:
    assert parse_flags(["models"], {}).triton_release == "2.73"
    assert parse_flags(["models"], {"ALIPES_TRITON_RELEASE": "2.51"}).triton_release == "2.51"
    with pytest.raises(ConfigError, match="triton-release"):
        parse_flags(["models", "--triton-release=2.52"], {})


def test_the_release_reaches_the_data_plane() -> None:
    options = parse_flags(["models", "--triton-release=2.51"], {})
    assert json.loads(server_config(options))["triton_release"] == "2.51"
