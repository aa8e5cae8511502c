"""The options of `@alipes.model`, checked as they are given."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from alipes._core import reserved_names
from alipes.errors import ConfigError

__all__ = ["DEFAULT_BATCH", "MARK", "RESERVED_NAMES", "Options", "checked", "options_of"]

MARK: Final = "__alipes_model__"
"""Attribute of a decorated function or class that holds its options."""

RESERVED_NAMES: Final = frozenset(reserved_names())
"""First parts of paths that the server has for itself: no `POST /<name>` could reach a model of such a name."""

DEFAULT_BATCH: Final = 32
"""Rows that `batch=True` stands for."""

MAX_BATCH: Final = 65_536
MAX_INSTANCES: Final = 1024
MAX_CONCURRENCY: Final = 10_000
MAX_DELAY_S: Final = 60.0
MAX_TIMEOUT_S: Final = 30 * 86_400.0

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True)
class Options:
    """What `@alipes.model` was told.

    Attributes:
        name: Name of the model, and of its path `POST /<name>`.
        max_batch_size: Rows that one call of the function may get; 0 where it gets one request at a time.
        instances: Processes that run it.
        max_delay_s: Longest wait for further requests of a batch, in seconds.
        concurrency: Requests that an `async` function, or a generator, works on at a time, in each instance.
        device: `cpu`, or `gpu` where there are that many instances on each GPU.
        before: Function that runs in a process of its own on the arguments; its result is the function's argument.
        after: Function that runs in a process of its own on the function's result.
        before_instances: Processes that run `before`.
        after_instances: Processes that run `after`.
        start: Called once in each instance before its first request.
        stop: Called once in each instance after its last request.
        timeout_s: Longest call, in seconds, of a function that is neither `async` nor a generator; 0 sets no limit, and
            None leaves it to the server.
        explain: Function that explains the model's answers, to requests of V1 for explanations.
        example: Arguments that the API page shows; made from the annotations where left out.
    """

    name: str
    max_batch_size: int = 0
    instances: int = 1
    max_delay_s: float = 0.0
    concurrency: int = 64
    device: str = "cpu"
    before: Callable[..., Any] | None = None
    after: Callable[..., Any] | None = None
    before_instances: int = 1
    after_instances: int = 1
    start: Callable[[], object] | None = None
    stop: Callable[[], object] | None = None
    timeout_s: float | None = None
    explain: Callable[..., Any] | None = None
    example: dict[str, Any] | None = None


def checked(options: Options) -> Options:
    """The options again.

    Raises:
        ConfigError: If one of them cannot be; the text says which, and what would be right.
    """
    name = options.name
    _require(_NAME.fullmatch(name) is not None, name, "name", name, "letters, digits, '.', '_' and '-', at most 128")
    if name in RESERVED_NAMES:
        others = ", ".join(sorted(RESERVED_NAMES))
        raise ConfigError(f"model '{name}': the server has /{name} for itself ({others}); choose another name=")
    for key, most, least in (
        ("max_batch_size", MAX_BATCH, 0),
        ("instances", MAX_INSTANCES, 1),
        ("before_instances", MAX_INSTANCES, 1),
        ("after_instances", MAX_INSTANCES, 1),
        ("concurrency", MAX_CONCURRENCY, 1),
    ):
        value = getattr(options, key)
        fits = type(value) is int and least <= value <= most
        _require(fits, name, key, value, f"an integer from {least} to {most}")
    _require_seconds(name, "max_delay", options.max_delay_s, MAX_DELAY_S)
    if options.timeout_s is not None:
        _require_seconds(name, "timeout", options.timeout_s, MAX_TIMEOUT_S)
    _require(options.device in ("cpu", "gpu"), name, "device", options.device, "'cpu' or 'gpu'")
    for key in ("before", "after", "start", "stop", "explain"):
        value = getattr(options, key)
        _require(value is None or callable(value), name, key, value, "a function")
    _require(not isinstance(options.explain, type), name, "explain", options.explain, "a function, and no class")
    if options.max_delay_s and not options.max_batch_size:
        raise ConfigError(f"model '{name}': max_delay waits for a batch: give max_batch_size= too")
    return options


def options_of(thing: object) -> Options | None:
    """The options of a decorated function or class; None for anything else, and for what inherits from one."""
    found = getattr(thing, "__dict__", {}).get(MARK)
    return found if isinstance(found, Options) else None


def _require_seconds(model: str, key: str, value: object, most: float) -> None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
    _require(fits, model, key, value, f"seconds from 0 to {most:g}")


def _require(fits: bool, model: str, key: str, value: object, wanted: str) -> None:
    if not fits:
        raise ConfigError(f"model '{model}': {key}={value!r} must be {wanted}", key=key)
