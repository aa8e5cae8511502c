"""The arguments of a client's methods: their types are checked here, and each is brought into one form.

What is wrong raises an error with the argument's name, what was expected and what was passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, Final, TypeAlias

from alipes.errors import AlipesError, ConfigError, InvalidArgument
from alipes.types import Shadow, TrafficSplit

__all__ = [
    "Version",
    "check_request",
    "check_type",
    "header_pairs",
    "model_name",
    "request_error",
    "seconds",
    "setting_error",
    "shown",
    "split_of",
    "timeout_of",
    "timeout_setting",
    "version_number",
    "version_text",
]

Version: TypeAlias = int | str | None
"""A version of a model: a number, or the same as text; `None`, an empty text and -1 leave the choice to the server."""

_LATEST: Final = -1
"""The version of scripts for hermes that want the latest one."""

_MOST_SHOWN: Final = 40
"""Characters of a value that a message shows: what is longer is named by its type alone."""


def shown(value: object) -> str:
    """A value for a message: `8001 (int)`, or its type alone where the value is long."""
    kind = type(value).__name__
    if value is None:
        return "None"
    text = repr(value)
    return f"{text} ({kind})" if len(text) <= _MOST_SHOWN and "\n" not in text else f"a value of type {kind}"


def request_error(name: str, expected: str, value: object) -> InvalidArgument:
    """The error for an argument of a request."""
    return InvalidArgument(f"{name}: expected {expected}, got {shown(value)}")


def setting_error(name: str, expected: str, value: object) -> ConfigError:
    """The error for an argument of a client itself."""
    return ConfigError(f"{name}: expected {expected}, got {shown(value)}", key=name)


def check_type(name: str, kind: type, expected: str, value: object) -> None:
    """Checks an argument of a client itself; `None` is that it was not passed.

    Raises:
        ConfigError: If it is of another type.
    """
    if value is not None and not isinstance(value, kind):
        raise setting_error(name, expected, value)


def check_request(name: str, kind: type | tuple[type, ...], expected: str, value: object) -> None:
    """Checks an argument of a request; `None` is that it was not passed.

    Raises:
        InvalidArgument: If it is of another type.
    """
    if value is not None and not isinstance(value, kind):
        raise request_error(name, expected, value)


def model_name(model: Any) -> str:
    """The name of a model.

    Raises:
        InvalidArgument: If it is no text.
    """
    if isinstance(model, str):
        return model
    raise request_error("model", "the model's name as text", model)


def version_text(version: Version, model_version: Version = None) -> str:
    """A version as servers take it; empty leaves the choice to the server.

    Args:
        version: As the caller wrote it.
        model_version: The same argument under tritonclient's name.

    Raises:
        InvalidArgument: If it is no version, or the two differ.
    """
    if version is None or version == "":
        return _text(model_version)
    if model_version is not None and _text(model_version) != _text(version):
        raise InvalidArgument(
            f"version and model_version mean the same, got {version!r} and {model_version!r}: pass one"
        )
    return _text(version)


def version_number(version: Version, model_version: Version = None) -> int:
    """A version as a number; -1 leaves the choice to the server.

    Raises:
        InvalidArgument: If it is no version, or the two differ.
    """
    text = version_text(version, model_version)
    return int(text) if text else _LATEST


def _text(version: Any) -> str:
    if isinstance(version, str):
        if not version or version.isdecimal():
            return version
    elif version is None or version == _LATEST:
        return ""
    elif isinstance(version, Integral) and not isinstance(version, bool) and int(version) > 0:
        return str(int(version))
    raise request_error("version", "a number such as 1 or '1'", version)


def timeout_of(timeout_s: Any, timeout: Any = None) -> float | None:
    """The time-out of a call, in seconds; `None` is that none was passed.

    Args:
        timeout_s: As the caller wrote it.
        timeout: The same argument under its short name.

    Raises:
        InvalidArgument: If it is no number above 0, or both were passed.
    """
    if timeout is None:
        return _limit("timeout_s", timeout_s)
    if timeout_s is not None:
        raise InvalidArgument(f"timeout and timeout_s mean the same, got {timeout!r} and {timeout_s!r}: pass one")
    return _limit("timeout", timeout)


def seconds(name: str, value: Any, wrong: Callable[[str, str, object], AlipesError] = request_error) -> float | None:
    """A time in seconds; `None` is that none was passed, or that there is no limit.

    Raises:
        InvalidArgument: If it is no number; what `wrong` makes, where that is passed.
    """
    if value is None or type(value) is float:
        return value
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    raise wrong(name, "seconds as a number", value)


def timeout_setting(timeout_s: Any, timeout: Any, default_s: float | None) -> float | None:
    """The time-out that a client is made with, in seconds; `None` is no limit.

    Args:
        timeout_s: As the caller wrote it, or the default.
        timeout: The same argument under its short name.
        default_s: The default of both.

    Raises:
        ConfigError: If it is no number above 0, or both were passed.
    """
    if timeout == default_s and not isinstance(timeout, bool):
        return _limit("timeout_s", timeout_s, setting_error)
    if timeout_s != default_s:
        text = f"timeout and timeout_s mean the same, got {timeout!r} and {timeout_s!r}: pass one"
        raise ConfigError(text, key="timeout")
    return _limit("timeout", timeout, setting_error)


def _limit(name: str, value: Any, wrong: Callable[[str, str, object], AlipesError] = request_error) -> float | None:
    """A time-out in seconds, which is above 0; `None` is that none was passed, or that there is no limit."""
    limit_s = seconds(name, value, wrong)
    if limit_s is None or limit_s > 0:
        return limit_s
    raise wrong(name, "seconds above 0, or None", value)


def header_pairs(headers: Any) -> list[tuple[str, str]]:
    """Headers as the data plane takes them.

    Raises:
        ConfigError: If they are no dictionary of texts.
    """
    if headers is None:
        return []
    if not isinstance(headers, Mapping):
        raise setting_error("headers", "a dictionary of texts", headers)
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise setting_error(f"headers[{name!r}]", "a text, with a text as its name", value)
    return list(headers.items())


def split_of(weights: object, sticky_header: str | None, shadow: object) -> TrafficSplit:
    """How requests are to be divided.

    Raises:
        InvalidArgument: If the weights are no dictionary, or the shadow is no version.
    """
    if not isinstance(weights, Mapping):
        raise request_error("weights", "a dictionary of weights by version, such as {1: 90, 2: 10}", weights)
    if isinstance(shadow, int) and not isinstance(shadow, bool):
        shadow = Shadow(shadow)
    if shadow is not None and not isinstance(shadow, Shadow):
        raise request_error("shadow", "a version, or a Shadow with its settings", shadow)
    return TrafficSplit(weights, sticky_header, shadow=shadow)
