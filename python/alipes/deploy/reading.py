"""A description from a file of values and from `KEY=VALUE`, checked whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from alipes.deploy.choices import of_choices
from alipes.deploy.description import Description
from alipes.deploy.yaml_text import documents_of
from alipes.errors import ConfigError

__all__ = ["described", "read_values", "with_settings"]

LARGEST_BYTES: Final = 1 << 20
"""Of a file of values: such files are written by hand."""
_PLACE: Final = re.compile(r"^(.*) - at `(?:key in )?\$\.?([^`]*)`$")
"""How msgspec says where a value does not fit."""


def read_values(file: Path) -> dict[str, Any]:
    """The values of a file.

    Raises:
        ConfigError: If it cannot be read, or does not hold values by their names.
    """
    try:
        if file.stat().st_size > LARGEST_BYTES:
            raise ConfigError(f"a file of values has at most {LARGEST_BYTES} bytes", path=file)
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        mend = "-f reads a file of values, -o FILE writes what is deployed"
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{mend}: the values cannot be read: {file}: {why}", path=file) from error
    documents = documents_of(text, str(file))
    if not documents:
        return {}
    if len(documents) > 1 or not isinstance(documents[0], dict):
        raise ConfigError("expected values by their names, such as `replicas: 2`", path=file)
    return documents[0]


def with_settings(values: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """The values with `KEY=VALUE` over them; dots in a key lead into its parts, as in `resources.gpus=1`.

    Raises:
        ConfigError: If a setting is written otherwise.
    """
    merged = _copied(values)
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not all(key.split(".")):
            raise ConfigError(f"--set takes KEY=VALUE, such as resources.gpus=1, not '{setting}'", key="--set")
        *parents, last = key.split(".")
        place = merged
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise ConfigError(f"--set {setting}: '{parent}' has no parts", key="--set")
        place[last] = _read(value)
    return merged


def described(values: Mapping[str, Any], path: Path | None = None) -> Description:
    """The description that values make.

    Raises:
        ConfigError: If a value has another type or lies outside its bounds, a name is unknown, or two values do not go
            together; with the file and the dotted name.
    """
    try:
        description = msgspec.convert(values, Description, strict=False)
    except msgspec.ValidationError as error:
        found = _PLACE.match(str(error))
        message, key = (found[1], found[2]) if found else (str(error), "")
        message = of_choices(message, Description, key)
        raise ConfigError(f"{key or 'the values'}: {message}", path=path, key=key or None) from error
    _check_together(description, path)
    return description


def _check_together(description: Description, path: Path | None) -> None:
    scaling = description.scaling
    if scaling.kind != "none":
        if scaling.least > scaling.most:
            raise ConfigError(
                f"scaling: at least {scaling.least} and at most {scaling.most} servers", path=path, key="scaling.least"
            )
        if not any((scaling.cpu_percent, scaling.pending_requests, scaling.concurrency, scaling.wait_ms)):
            raise ConfigError(
                "scaling: say at which cpuPercent, pendingRequests, concurrency or waitMs servers are added",
                path=path,
                key="scaling",
            )
    ports = [description.ports.http, description.ports.grpc, description.ports.metrics]
    if len(set(ports)) < len(ports):
        raise ConfigError("ports: http, grpc and metrics need three ports", path=path, key="ports")


def _copied(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _copied(value) if isinstance(value, Mapping) else value for key, value in values.items()}


def _read(value: str) -> Any:
    """A value of a command line: a list or parts in YAML's short form, else the text, which the description reads."""
    return documents_of(value, "--set")[0] if value.startswith(("[", "{")) else value
