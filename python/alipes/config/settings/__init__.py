"""The table of settings inside flags: the keys that `--backend-config`, `--metrics-config` and others take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from alipes.config.flags import Value
from alipes.config.flags.flag import MAX_BYTES
from alipes.config.nearest import nearest
from alipes.config.settings.backends import ATTACHED, BACKENDS, PYTHON
from alipes.config.settings.observation import METRICS, TRACES
from alipes.config.settings.setting import Setting
from alipes.config.values import parse_value
from alipes.errors import ConfigError

__all__ = ["SETTINGS", "Setting", "read_settings"]

_CACHE: Final = (
    Setting(
        "cache-config",
        "local",
        "size",
        "int",
        0,
        "Bytes of answers, with the requests that they answer, that are kept for models that want it.",
        option="response_cache_bytes",
        high=MAX_BYTES,
    ),
)

_FORMS: Final = {
    "backend-config": "'<backend name>,<setting>=<value>'",
    "cache-config": "'<cache name>,<setting>=<value>'",
    "metrics-config": "<setting>=<value>",
    "trace-config": "'<trace mode>,<setting>=<value>'",
}
"""What a value looks like, in Triton's words."""

_NOT_SCOPED: Final = {
    "backend-config": "No backend specified. --backend-config option format is <backend name>,<setting>=<value> or "
    "<setting>=<value>",
    "trace-config": "No trace mode specified. --trace-config option format is <trace mode>,<setting>=<value> or "
    "<setting>=<value>",
}

SETTINGS: Final = (*_CACHE, *BACKENDS, *PYTHON, *ATTACHED, *METRICS, *TRACES)
"""Every setting, in the order of the reference page."""


def read_settings(flag: str, texts: Sequence[str]) -> tuple[dict[str, Value], list[str]]:
    """Take the values of a flag apart.

    Args:
        flag: `backend-config`, `metrics-config`, `trace-config` or `cache-config`.
        texts: The values in the order given, `<key>=<value>` or `<scope>,<key>=<value>`; a later one wins, unless the
            setting is a list.

    Returns:
        The value of each option that a setting of this flag fills, defaults included, and the notices.

    Raises:
        ConfigError: If a value has another form, or names no known key.
    """
    values = {row.option: row.default for row in SETTINGS if row.flag == flag and row.option}
    notices: list[str] = []
    for text in texts:
        row, value = _read_setting(flag, text)
        if row is None:
            notices.append(f"--{flag}={text} is ignored: no such backend is offered")
        elif row.ignored:
            notices.append(f"--{flag}={text} is ignored: {row.ignored}")
        elif row.kind == "list":
            before = values[row.option]
            values[row.option] = (*(before if isinstance(before, tuple) else ()), str(value))
        else:
            values[row.option] = value
    return values, notices


def _read_setting(flag: str, text: str) -> tuple[Setting | None, Value]:
    """The row and value of one setting; no row for the setting of a backend that is not offered."""
    name, _, value = text.partition("=")
    scope, comma, key = name.rpartition(",")
    if comma and not scope and flag in _NOT_SCOPED:
        raise ConfigError(f'Bad option: "--{flag}".\n{_NOT_SCOPED[flag]}. Got {text}', key=flag)
    if not key or not value:
        raise ConfigError(f'Bad option: "--{flag}".\n--{flag} option format is {_FORMS[flag]}. Got {text}', key=flag)
    rows = [row for row in SETTINGS if row.flag == flag and row.scope == scope]
    for row in rows:
        if row.key == key:
            return row, parse_value(f"--{flag}", row.kind, value, choices=row.choices, low=row.low, high=row.high)
    if scope and not rows:
        return None, value
    close = nearest(key, [row.key for row in rows])
    raise ConfigError(
        f"Bad option: \"--{flag}\".\nunknown setting '{name}'",
        key=name,
        hint=f"did you mean '{close}'?" if close else None,
    )
