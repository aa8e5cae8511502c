"""The trace settings of a server: read from options, and set before a run. They stay as they are set."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from alipes.client.grpc_messages import encode_request
from alipes.compat.perf_analyzer.direct_calls import call
from alipes.compat.perf_analyzer.failures import Failed, OptionFailed
from alipes.compat.perf_analyzer.model import server_words
from alipes.compat.perf_analyzer.settings import Target
from alipes.compat.perf_analyzer.values import choice
from alipes.compat.perf_analyzer.words import Words
from alipes.errors import AlipesError

__all__ = ["read_trace", "set_trace"]

_LEVELS: Final = ("OFF", "TIMESTAMPS", "TENSORS")
_LEVELS_WANTED: Final = "The available options are 'OFF', 'TIMESTAMPS', or 'TENSORS'."
_NUMBERS: Final = (("trace-rate", 0), ("trace-count", -1), ("log-frequency", 0))
"""Options that are whole numbers, and the least of each."""


def read_trace(words: Words) -> Mapping[str, Sequence[str]]:
    """The settings of the options that are there, by their names at the server.

    Raises:
        OptionFailed: If a value cannot be read.
    """
    settings: dict[str, Sequence[str]] = {}
    if words.has("trace-file"):
        settings["trace_file"] = [words.text("trace-file")]
    if levels := [choice(argument, _LEVELS, _LEVELS_WANTED) for argument in words.all("trace-level")]:
        if "OFF" in levels and len(set(levels)) > 1:
            raise OptionFailed("Failed to parse --trace-level. OFF cannot be combined with other levels.")
        settings["trace_level"] = list(dict.fromkeys(levels))
    for name, least in _NUMBERS:
        if words.has(name):
            settings[name.replace("-", "_")] = [str(words.whole(name, 0, least))]
    return settings


def set_trace(target: Target, settings: Mapping[str, Sequence[str]]) -> None:
    """Sets them for all models of the server.

    Raises:
        Failed: If the server is not there, or refuses them.
    """
    if not settings:
        return
    try:
        if target.protocol == "grpc":
            values = {name: {"value": list(value)} for name, value in settings.items()}
            call(target, "TraceSetting", encode_request("TraceSetting", {"settings": values}))
        else:
            document = {name: value if name == "trace_level" else value[0] for name, value in settings.items()}
            call(target, "/v2/trace/setting", json.dumps(document).encode())
    except AlipesError as error:
        words = server_words(error, target)
        raise Failed(f"error: failed to create triton client backend: {words}\n") from error
