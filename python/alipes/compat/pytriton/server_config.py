"""What a PyTriton script says about its server, and the flags of `alipes serve` that it stands for."""

from __future__ import annotations

import dataclasses
import logging
import os
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from alipes.compat.pytriton.exceptions import PyTritonValidationError

__all__ = ["TritonConfig"]

_LOG: Final = logging.getLogger("alipes.compat.pytriton")
_PREFIX: Final = "PYTRITON_TRITON_CONFIG_"
_LIST_ENTRY: Final = re.compile(r"(.+?)_([0-9]{1,4})$")


@dataclass(kw_only=True)
class TritonConfig:
    """Options of the server; those that are None stay as `alipes serve` has them.

    Each is the flag of `alipes serve` of the same name, with `-` for `_`; the reference of the command line says what
    it does.
    """

    model_repository: Path | None = None
    id: str | None = None
    log_verbose: int | None = None
    log_file: Path | None = None
    exit_timeout_secs: int | None = None
    exit_on_error: bool | None = None
    strict_readiness: bool | None = None
    allow_http: bool | None = None
    http_address: str | None = None
    http_port: int | None = None
    http_header_forward_pattern: str | None = None
    http_thread_count: int | None = None
    http_restricted_api: str | None = None
    allow_grpc: bool | None = None
    grpc_address: str | None = None
    grpc_port: int | None = None
    grpc_header_forward_pattern: str | None = None
    grpc_infer_allocation_pool_size: int | None = None
    grpc_use_ssl: bool | None = None
    grpc_use_ssl_mutual: bool | None = None
    grpc_server_cert: Path | None = None
    grpc_server_key: Path | None = None
    grpc_root_cert: Path | None = None
    grpc_infer_response_compression_level: str | None = None
    grpc_keepalive_time: int | None = None
    grpc_keepalive_timeout: int | None = None
    grpc_keepalive_permit_without_calls: bool | None = None
    grpc_http2_max_pings_without_data: int | None = None
    grpc_http2_min_recv_ping_interval_without_data: int | None = None
    grpc_http2_max_ping_strikes: int | None = None
    grpc_restricted_protocol: str | None = None
    allow_metrics: bool | None = None
    allow_gpu_metrics: bool | None = None
    allow_cpu_metrics: bool | None = None
    metrics_interval_ms: int | None = None
    metrics_port: int | None = None
    metrics_address: str | None = None
    allow_sagemaker: bool | None = None
    sagemaker_port: int | None = None
    sagemaker_safe_port_range: str | None = None
    sagemaker_thread_count: int | None = None
    allow_vertex_ai: bool | None = None
    vertex_ai_port: int | None = None
    vertex_ai_thread_count: int | None = None
    vertex_ai_default_model: str | None = None
    metrics_config: list[str] | None = None
    trace_config: list[str] | None = None
    cache_config: list[str] | None = None
    cache_directory: str | None = None
    buffer_manager_thread_count: int | None = None

    def __new__(cls, *arguments: object, **_: object) -> Self:
        """Refuses arguments without a name, which would mean something else in the next release."""
        if arguments:
            raise TypeError(f"{cls.__name__} initialization can't be used with positional arguments")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Refuses a server that speaks neither protocol."""
        if self.allow_http not in (True, None) and self.allow_grpc not in (True, None):
            raise PyTritonValidationError("The `http` or `grpc` endpoint has to be allowed.")

    def to_dict(self) -> dict[str, Any]:
        """All options by name."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> Self:
        """The options out of a dictionary; texts become what the option takes, unknown names are logged.

        Raises:
            ValueError: If a text is none of a number.
        """
        hints = typing.get_type_hints(cls)
        known = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
        for name, value in config.items():
            if name not in known:
                _LOG.warning(
                    "Ignoring %s=%s as could not find matching config field. Available fields: %s",
                    name,
                    value,
                    ", ".join(known),
                )
        return cls(**{name: _cast(known[name], value) for name, value in config.items() if name in known})

    @classmethod
    def from_env(cls) -> Self:
        """The options out of the environment: `PYTRITON_TRITON_CONFIG_HTTP_PORT=8000`.

        An option that is a list has a variable for each entry, with its number behind: `..._CACHE_CONFIG_0`.
        """
        config: dict[str, Any] = {}
        entries: dict[str, dict[int, str]] = {}
        for variable, value in os.environ.items():
            if not variable.startswith(_PREFIX):
                continue
            name = variable.removeprefix(_PREFIX).lower()
            if (entry := _LIST_ENTRY.fullmatch(name)) is not None:
                entries.setdefault(entry[1], {})[int(entry[2])] = value
            else:
                config[name] = value
        for name, values in entries.items():
            config[name] = [value for _, value in sorted(values.items())]
        return cls.from_dict(config)

    def flags(self) -> dict[str, Any]:
        """The options that are set, as keywords of `alipes.Server`."""
        return {
            name: os.fspath(value) if isinstance(value, Path) else value
            for name, value in self.to_dict().items()
            if value is not None and name != "model_repository"
        }


def _cast(hint: Any, value: Any) -> Any:
    """A value as the type of its option."""
    kind = next(one for one in typing.get_args(hint) if one is not types.NoneType)
    if typing.get_origin(kind) is list:
        return None if value is None else list(value)
    return kind(value)
