"""The flag `--turn-clock`, and what the data plane is told of it."""

from __future__ import annotations

import json

import pytest
from alipes.config.load import parse_flags
from alipes.errors import ConfigError
from alipes.server.boundary import server_config


def test_turn_clock_comes_from_the_flag_or_the_environment() -> None:
    assert parse_flags(["models"], {}).turn_clock == "wall"
    assert parse_flags(["models"], {"ALIPES_TURN_CLOCK": "cpu"}).turn_clock == "cpu"
    with pytest.raises(ConfigError, match="turn-clock"):
        parse_flags(["models", "--turn-clock=sun"], {})


def test_turn_clock_reaches_the_data_plane() -> None:
    options = parse_flags(["models", "--turn-clock=cpu"], {})
    assert json.loads(server_config(options))["turn_clock"] == "cpu"
