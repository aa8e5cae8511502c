"""Reads the configuration of the server: flags over environment over file over default, with each value's origin.

This is the only place that looks at the environment, and it looks once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from alipes.config import bare_batches
from alipes.config.api_keys import read_api_keys
from alipes.config.caching import read_cache
from alipes.config.cloud_events import read_cloud_events
from alipes.config.endpoints import check_endpoints
from alipes.config.environment import read_environment, unused_variables
from alipes.config.file import FILE_NAME, read_file
from alipes.config.flag_text import FlagText, spell_out
from alipes.config.flags import OPTION_FLAGS, Flag, Value, find
from alipes.config.forms import OURS, Form
from alipes.config.inherited import read_inherited
from alipes.config.listener_options import ConnectionOptions, Endpoint, KeepaliveOptions, TlsOptions
from alipes.config.networks import read_networks
from alipes.config.options import (
    GpuMetricsOptions,
    GraphOptions,
    ModelOptions,
    Origin,
    PathOptions,
    PredictorOptions,
    RepositoryOptions,
    Resource,
    ServerOptions,
    WorkerOptions,
)
from alipes.config.origins import read_hosts, read_origins
from alipes.config.payloads import read_payloads
from alipes.config.platform_variables import STORE, platform_texts
from alipes.config.record_options import LogOptions, PayloadOptions, TraceOptions
from alipes.config.restrictions import GRPC_PREFIX, read_restrictions
from alipes.config.settings import read_settings
from alipes.config.store_schemes import stores_of
from alipes.config.tracing import read_trace
from alipes.config.values import parse_value, read_seconds
from alipes.errors import ConfigError

__all__ = ["parse_flags"]

_GROUPS: Final = {
    "http": Endpoint,
    "grpc": Endpoint,
    "metrics": Endpoint,
    "connections": ConnectionOptions,
    "gpu_metrics": GpuMetricsOptions,
    "keepalive": KeepaliveOptions,
    "repository": RepositoryOptions,
    "predictor": PredictorOptions,
    "model": ModelOptions,
    "worker": WorkerOptions,
    "paths": PathOptions,
    "log": LogOptions,
    "trace": TraceOptions,
    "payloads": PayloadOptions,
    "graph": GraphOptions,
}
_ENDPOINTS: Final = ("http", "grpc", "metrics")

_DELAY_SCHEDULER: Final = "TRITONSERVER_DELAY_SCHEDULER"
_BACKLOG_DELAY_SCHEDULER: Final = "TRITONSERVER_BACKLOG_DELAY_SCHEDULER"
"""Triton's variable for tests: a queue is laid out before its first batch."""


def parse_flags(
    argv: Sequence[str], environ: Mapping[str, str], form: Form = OURS, folder: Path | None = None
) -> ServerOptions:
    """Read the command line of a server.

    Args:
        argv: The arguments after `serve`, or after `tritonserver`; positional ones are repositories.
        environ: The environment; `ALIPES_HTTP_PORT` stands for `--http-port`, and so on. A flag that may be given
            several times takes words separated by white space.
        form: How the command line is written.
        folder: Where to look for `alipes.toml` if no file is named; nowhere where this is None.

    Returns:
        The options, each with its origin, and a notice for each flag that was given and does nothing here.

    Raises:
        ConfigError: If a flag or a key is unknown, refused, badly formed, or contradicts another.
    """
    pairs, positional = form.split(argv)
    repositories = [FlagText(_row("model-repository"), text, "REPOSITORY") for text in positional]
    flags = [*repositories, *(FlagText(flag, text, f"--{flag.name}") for flag, text in pairs)]
    variables = read_environment(environ)
    path = _config_file(flags, variables, folder)
    written = read_file(path) if path is not None else []
    has_store = any((one.flag.alias or one.flag.name) == STORE for one in (*written, *variables, *flags))
    sources: list[tuple[Origin, list[FlagText]]] = [
        ("environment", platform_texts(environ, has_store=has_store) if form.on_platforms else []),
        ("file", written),
        ("environment", variables),
        ("flag", flags),
    ]
    texts: dict[str, list[FlagText]] = {}
    origins: dict[str, Origin] = {}
    for origin, ones in sources:
        for one in spell_out(ones):
            name = one.flag.alias or one.flag.name
            if origins.get(name) != origin:
                texts[name] = []  # what a weaker source said counts no more
            texts[name].append(one)
            origins[name] = origin
    rows = [flag for flag in OPTION_FLAGS if not flag.alias]
    values = {flag.name: _value(flag, texts.get(flag.name), form) for flag in rows}
    notices = [f"--{flag.name} is ignored: {flag.ignored}" for flag in rows if flag.ignored and flag.name in texts]
    notices += unused_variables(environ)
    options = _options(values, {flag.name: origins.get(flag.name, "default") for flag in rows}, notices, environ)
    return replace(options, config_file=str(path)) if path is not None else options


def _row(name: str) -> Flag:
    flag = find(name)
    assert flag is not None, name
    return flag


def _config_file(flags: Sequence[FlagText], variables: Sequence[FlagText], folder: Path | None) -> Path | None:
    """The file that is named, by a flag or else by the environment, or else the one that the folder has."""
    for source in (flags, variables):
        named = [one for one in source if one.flag.name == "config"]
        if named:
            return Path(named[-1].text) if named[-1].text else None
    found = folder / FILE_NAME if folder is not None else None
    return found if found is not None and found.is_file() else None


def _value(flag: Flag, texts: list[FlagText] | None, form: Form) -> Value:
    """The value of a flag that was given so, the last text counting unless it may be given several times."""
    if not texts:
        return form.defaults.get(flag.name, flag.default)
    parsed = [form.read(one) for one in texts]
    value: Value = tuple(dict.fromkeys(one.text for one in texts)) if flag.kind == "list" else parsed[-1]
    if flag.status == "refused" and value != flag.default:
        raise ConfigError(f'Bad option: "--{flag.name}".\nnot supported: {flag.refused}', key=flag.name)
    return value


def _options(
    values: dict[str, Value], origins: dict[str, Origin], notices: list[str], environ: Mapping[str, str]
) -> ServerOptions:
    fields: dict[str, Any] = {flag.option: values[flag.name] for flag in OPTION_FLAGS if flag.option and not flag.alias}
    for name in ("backend-config", "metrics-config"):
        settings, more = read_settings(name, _words(values[name]))
        fields |= settings
        notices = notices + more
    fields["model.names_batch"] = _names_batch(_words(values["backend-config"]))
    if _has_stores(fields) and not fields["model.names_batch"]:
        fields["model.default_max_batch_size"] = bare_batches.ROWS
        fields["model.default_max_batch_bytes"] = bare_batches.BYTES
    fields["response_cache_bytes"] = read_cache(
        _words(values["cache-config"]),
        fields["response_cache_bytes"],
        older_set=origins["response-cache-byte-size"] != "default",
    )
    traced, more = read_trace(_words(values["trace-config"]), fields, environ)
    fields |= traced
    notices = notices + more
    quantiles = _quantiles(str(fields["summary_quantiles"]))
    fields["summary_quantiles"] = quantiles if fields.pop("summary_latencies") else ()
    fields["model.delay_scheduler"] = _requests(environ.get(_DELAY_SCHEDULER, ""))
    fields["model.backlog_delay_scheduler"] = _requests(environ.get(_BACKLOG_DELAY_SCHEDULER, ""))
    fields["model.resources"] = tuple(_resource(text) for text in _words(values["rate-limit-resource"]))
    for option, flag, word in (
        ("http_restricted", "http-restricted-api", "api"),
        ("grpc_restricted", "grpc-restricted-protocol", "protocol"),
    ):
        fields[option] = read_restrictions(flag, word, _words(values[flag]))
    fields["api_keys"] = read_api_keys(
        _words(values["api-key"]), str(values["api-key-file"]), _words(values["api-key-open"])
    )
    keys = [one.header for one in fields["http_restricted"]]
    keys += [f"{GRPC_PREFIX}{one.header}" for one in fields["grpc_restricted"]]
    fields |= read_payloads(fields, keys, environ)
    fields["http_cors_origins"] = read_origins("cors-origins", _words(values["cors-origins"]))
    fields["http_allowed_hosts"] = read_hosts("allowed-hosts", _words(values["allowed-hosts"]))
    fields["connections.trusted_proxies"] = read_networks("trusted-proxies", _words(values["trusted-proxies"]))
    if fields["metrics.address"] is None:
        http = fields["http.address"]
        # A server with HTTP on a Unix socket should open no port beside it.
        fields["metrics.address"] = "127.0.0.1" if http.startswith("unix:") else http
    grouped: dict[str, dict[str, Any]] = {
        group: {} for group in (*_GROUPS, *(f"{endpoint}.tls" for endpoint in _ENDPOINTS))
    }
    plain: dict[str, Any] = {}
    for path, value in fields.items():
        group, _, name = path.rpartition(".")
        (grouped[group] if group else plain)[name] = value
    for endpoint in _ENDPOINTS:
        grouped[endpoint]["tls"] = TlsOptions(**grouped[f"{endpoint}.tls"])
    groups: dict[str, Any] = {group: make(**grouped[group]) for group, make in _GROUPS.items()}
    plain["cloud_events"] = read_cloud_events(environ)
    plain["inherited"] = read_inherited(environ, os.getpid())
    options = ServerOptions(**plain, **groups, origins=origins, notices=tuple(notices))
    _check(options)
    return options


def _has_stores(fields: Mapping[str, Any]) -> bool:
    """Whether models are bare files, as KServe's runtimes take them."""
    return bool(fields["repository.stores"] or fields["repository.model_list"])


def _names_batch(settings: Iterable[str]) -> bool:
    """Whether settings of all backends say how large a batch may be."""
    return any(one.partition("=")[0] == "default-max-batch-size" for one in settings)


def _words(value: Value) -> tuple[str, ...]:
    assert isinstance(value, tuple)
    return value


def _requests(text: str) -> int:
    """A number of requests; what is none stands for 0, as in Triton."""
    return int(text) if text.isascii() and text.isdecimal() else 0


def _quantiles(text: str) -> tuple[float, ...]:
    """Read `<quantile>:<error>,…`, both from 0 to 1."""
    found = []
    for pair in text.split(","):
        numbers = [read_seconds(number) for number in pair.split(":")]
        fits = len(numbers) == 2 and all(number is not None and number <= 1 for number in numbers)
        if not fits:
            flag, form = "metrics-config", "summary_quantiles=<quantile>:<error>,..."
            raise ConfigError(
                f"Bad option: \"--{flag}\".\nexpected {form} from 0 to 1, got '{text}'", key="summary_quantiles"
            )
        found.append(float(numbers[0] or 0))
    return tuple(dict.fromkeys(found))


def _resource(text: str) -> Resource:
    """Read `<name>:<count>[:<device>]`."""
    flag = "rate-limit-resource"
    name, *numbers = text.split(":")
    if not name or len(numbers) not in (1, 2):
        raise ConfigError(
            f"Bad option: \"--{flag}\".\n--{flag} option format is '<resource_name>:<count>:<device>' or "
            f"'<resource_name>:<count>'. Got {text}",
            key=flag,
        )
    count, *device = (int(str(parse_value(f"--{flag}", "int", number))) for number in numbers)
    return Resource(name=name, count=count, device=device[0] if device else None)


def _may_be_app(path: str) -> bool:
    """Whether a word in the place of a repository may name an app: `app.py`, `app.py:name`, `module:name`."""
    return "://" not in path and (path.endswith(".py") or ":" in path)


def _check(options: ServerOptions) -> None:
    """Refuse what contradicts itself, in Triton's words."""
    repository = options.repository
    if repository.model_list and repository.control_mode != "poll":
        raise ConfigError(
            "say --model-control-mode=poll\n--model-list is followed as it changes, and other modes follow nothing",
            key="model-list",
        )
    if options.graph.file and options.graph.text:
        raise ConfigError("say --graph or --graph-json: a server answers for one graph", key="graph")
    named = repository.paths or repository.stores or repository.model_list or options.graph.is_named
    if not named:
        raise ConfigError("--model-repository must be specified", key="model-repository")
    stores = stores_of(repository.paths, repository.stores)
    if repository.model_name and not stores and not any(map(_may_be_app, repository.paths)):
        raise ConfigError(
            "say where the model is: --model-store FOLDER; a file is named in a folder: alipes repo add models "
            "iris.onnx --name flower\n--model-name names the model of a store, or the only one of an app, and there is "
            "neither",
            key="model-name",
        )
    if len(stores) > 1 and options.origins.get("model-name") == "flag":
        raise ConfigError(
            f"leave out --model-name, or name one store: it cannot name the models of {len(stores)} stores",
            key="model-name",
        )
    if repository.load_models and repository.control_mode != "explicit":
        raise ConfigError(
            "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.", key="load-model"
        )
    if "*" in repository.load_models and len(repository.load_models) > 1:
        raise ConfigError(
            "Wildcard model name '*' must be the ONLY startup model if specified at all.", key="load-model"
        )
    check_endpoints(options)
