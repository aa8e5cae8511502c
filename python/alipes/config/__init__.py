"""The configuration of the server and its models: flags, environment, `config.pbtxt`, overrides; checked, completed.

Start-up calls `parse_flags`. A load calls `poll_model`, with `parse_override` before it for a request that brings a
configuration; the rest of a load needs a backend and is `alipes.backends.prepare`.
"""

from __future__ import annotations

from alipes.config.load import parse_flags
from alipes.config.options import ServerOptions
from alipes.config.override import parse_override
from alipes.config.poll import poll_model
from alipes.config.schema import ModelConfig

__all__ = [
    "ModelConfig",
    "ServerOptions",
    "parse_flags",
    "parse_override",
    "poll_model",
]
