"""Flags that people type because other servers have them, and what stands for them here."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from alipes.config.flags import SERVE_FLAGS, find_for_serve

__all__ = ["guess"]

_REPOSITORY: Final = "name the folder of models by itself: alipes serve FOLDER"
_INSTANCES: Final = "a model's config.pbtxt says how many instances of it run: instance_group { count: 2 }"
_LEVEL: Final = "-v says more, -vv still more, -q less"

_ELSEWHERE: Final = {
    "bind": "--host",
    "ip": "--host",
    "listen": "--host / --port",
    "p": "--port",
    "c": "--config",
    "f": "--config",
    "name": "--id",
    "grpc": "--allow-grpc / --grpc-port",
    "http": "--allow-http / --http-port",
    "metrics": "--allow-metrics / --metrics-port",
    "json": "--log-format=JSON",
    "log-json": "--log-format=JSON",
    "timeout": "--exit-timeout-secs / --idle-timeout-secs",
    "watch": "--model-control-mode=poll",
    "reload": "--model-control-mode=poll",
    "cache": "--cache-config=local,size=BYTES",
    "max-body-size": "--http-max-input-size",
    "shm": "--allow-client-shm",
    "tls": "--http-use-ssl",
    "ssl": "--http-use-ssl",
    "ssl-certfile": "--http-server-cert",
    "cert": "--http-server-cert",
    "ssl-keyfile": "--http-server-key",
    "key": "--http-server-key",
}
"""Name -> the flag that was probably meant."""

_SENTENCES: Final = {
    **dict.fromkeys(
        ("model", "models", "m", "repo", "repository", "path", "folder", "model-path", "models-dir"),
        _REPOSITORY,
    ),
    **dict.fromkeys(("workers", "replicas", "instances", "num-workers"), _INSTANCES),
    **dict.fromkeys(("device", "devices", "gpu", "gpus"), _INSTANCES.replace("how many", "where, and how many")),
    **dict.fromkeys(("debug", "log-level", "loglevel", "d"), _LEVEL),
}
"""Name -> what to do, where that is no flag."""

_SHOWN: Final = 3


def guess(name: str) -> str:
    """What to do instead of typing a flag that there is not, in one sentence; empty where nothing comes to mind.

    Args:
        name: The flag without its dashes.
    """
    plain = name.lower().replace("_", "-")
    switch = find_for_serve(plain.removeprefix("no-"))
    if plain.startswith("no-") and switch is not None and switch.kind == "bool":
        return f"say --{switch.name}=false"
    if plain in _SENTENCES:
        return _SENTENCES[plain]
    close = _ELSEWHERE.get(plain) or " / ".join(dict.fromkeys(f"--{one}" for one in _near(plain)))
    return f"did you mean {close}?" if close else ""


def _near(name: str) -> Iterator[str]:
    """Names that look like this one, the nearest first; behind a short form the flag that it stands for."""
    names = [flag.name for flag in SERVE_FLAGS]
    found = [name] if name in names else get_close_matches(name, names, n=_SHOWN)
    for close in found[:1] if len(name) > len("port") else found:
        yield close
        yield from {"port": ("http-port",), "host": ("http-address",)}.get(close, ())
