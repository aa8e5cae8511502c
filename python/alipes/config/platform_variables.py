"""Variables that platforms set for every program which they run, and what `alipes serve` takes from them.

They are the weakest source: a flag, a variable of our own and a file win over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from alipes.config.flag_text import FlagText
from alipes.config.flags import find_for_serve

__all__ = ["STORE", "platform_texts"]

STORE: Final = "model-store"

_PORT: Final = "PORT"
"""Where a platform asks a program to listen for HTTP. Source: Knative's runtime contract; Cloud Run's."""

_PLATFORMS: Final = ("K_SERVICE", "K_REVISION", "INFERENCE_SERVICE_NAME")
"""Set by Knative, Cloud Run and KServe. `PORT` alone may be somebody's shell that means another program."""

_HEADERS: Final = "PROPAGATE_HEADERS"
"""Patterns of headers for the steps of a graph, separated by commas. Source: KServe's router."""

_NAMES: Final = ("MLSERVER_MODEL_NAME", "INFERENCE_SERVICE_NAME")
"""What KServe calls a service's only model, the more particular first."""


def platform_texts(environ: Mapping[str, str], *, has_store: bool) -> list[FlagText]:
    """The flags that variables of platforms stand for.

    Args:
        environ: The environment.
        has_store: Whether a store is served: that is how platforms start servers, and what `--model-name` is about.
    """
    found = []
    if environ.get(_PORT) and (has_store or any(environ.get(name) for name in _PLATFORMS)):
        found.append(_text("http-port", environ, _PORT))
    if environ.get(_HEADERS):
        row = find_for_serve("propagate-headers")
        assert row is not None
        source = f"{_HEADERS} (--{row.name})"
        found += [FlagText(row, pattern, source) for pattern in environ[_HEADERS].split(",") if pattern]
    name = next((name for name in _NAMES if environ.get(name)), None)
    if has_store and name is not None:
        found.append(_text("model-name", environ, name))
    return found


def _text(flag: str, environ: Mapping[str, str], name: str) -> FlagText:
    row = find_for_serve(flag)
    assert row is not None, flag
    return FlagText(row, environ[name], f"{name} (--{flag})")
