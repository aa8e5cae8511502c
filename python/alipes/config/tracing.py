"""The settings of tracing: settings over older flags over OpenTelemetry's own environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from alipes.config.settings import SETTINGS, read_settings
from alipes.config.values import parse_value
from alipes.errors import ConfigError

__all__ = ["read_trace"]

_FLAG: Final = "trace-config"

# Names of a level, whatever their case -> what is recorded. Source: Triton.
_LEVELS: Final = {
    "off": (),
    "false": (),
    "timestamps": ("TIMESTAMPS",),
    "true": ("TIMESTAMPS",),
    "on": ("TIMESTAMPS",),
    "min": ("TIMESTAMPS",),
    "max": ("TIMESTAMPS",),
    "tensors": ("TENSORS",),
}

# Variables that OpenTelemetry's libraries read -> the option that they fill here.
_VARIABLES: Final = {
    "OTEL_BSP_MAX_QUEUE_SIZE": "trace.max_queue_size",
    "OTEL_BSP_SCHEDULE_DELAY": "trace.schedule_delay_ms",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "trace.max_export_batch_size",
}

# Those that name a file of roots, the first that is set. Source: OpenTelemetry's exporters.
_CERTIFICATES: Final = ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE")

_SERVICE: Final = "triton-inference-server"


def read_trace(
    texts: Sequence[str], older: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Take the settings of tracing together.

    Args:
        texts: The values of `--trace-config`.
        older: The values of the older flags, by option, among others.
        environ: The environment.

    Returns:
        The value of each option, and the notices.

    Raises:
        ConfigError: If a value has another form, or settings contradict each other.
    """
    settings, notices = read_settings(_FLAG, texts)
    values: dict[str, Any] = dict(settings)
    defaults = {row.option: row.default for row in SETTINGS if row.flag == _FLAG}
    for option, default in defaults.items():
        if values[option] == default:
            values[option] = older.get(option, default)
    for name, option in _VARIABLES.items():
        if name in environ and values[option] == defaults[option]:
            values[option] = parse_value(name, "int", environ[name], low=1)
    if values["trace.max_export_batch_size"] == defaults["trace.max_export_batch_size"]:
        # A short queue alone says enough: no batch holds more spans than wait.
        values["trace.max_export_batch_size"] = min(
            values["trace.max_export_batch_size"], values["trace.max_queue_size"]
        )
    if "://" not in values["trace.url"]:  # as OpenTelemetry's exporters read it
        values["trace.url"] = f"http://{values['trace.url']}"
    if values["trace.url"].startswith("https://") and not values["trace.certificate"]:
        values["trace.certificate"] = next((environ[name] for name in _CERTIFICATES if environ.get(name)), "")
    values["trace.level"] = _level(values["trace.level"])
    values["trace.resource"] = _resource(values["trace.resource"], environ.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    if values["trace.mode"] == "opentelemetry":
        _check_collector(values)
        if "TENSORS" in values["trace.level"]:
            notices.append(f"--{_FLAG}=level=TENSORS is ignored: spans have no tensors")
            values["trace.level"] = tuple(level for level in values["trace.level"] if level != "TENSORS")
    elif values["trace.level"] and not values["trace.file"]:
        notices.append(f"--{_FLAG}=level has no effect: trace file name is not given")
    return values, notices


def _level(names: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        if name.lower() not in _LEVELS:
            raise _bad(f"invalid value for trace level option: {name}")
        found += _LEVELS[name.lower()]
    return tuple(dict.fromkeys(found))


def _resource(texts: Sequence[str], variable: str) -> tuple[tuple[str, str], ...]:
    """Attributes by their key, those of the command line last and so in force."""
    found = {"service.name": _SERVICE}
    for pair in filter(None, variable.split(",")):
        key, _, value = pair.partition("=")
        found[unquote(key.strip())] = unquote(value.strip())
    for pair in texts:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise _bad(f"expected {_FLAG}=opentelemetry,resource=<key>=<value>, got '{pair}'")
        found[key] = value
    return tuple(found.items())


def _check_collector(values: Mapping[str, Any]) -> None:
    url = values["trace.url"]
    if not url.startswith(("http://", "https://")):
        raise _bad(f"url must begin with http:// or https://, got '{url}'")
    if values["trace.certificate"] and not url.startswith("https://"):
        raise _bad(f"certificate is for a url that begins with https://, got '{url}'")
    if values["trace.max_export_batch_size"] > values["trace.max_queue_size"]:
        raise _bad("bsp_max_export_batch_size must not be larger than bsp_max_queue_size")


def _bad(text: str) -> ConfigError:
    return ConfigError(f'Bad option: "--{_FLAG}".\n{text}', key=_FLAG)
