"""`serve` as scripts of hermes call it: with the image of a container, whose place our own server takes.

The environment variable `ALIPES_SERVE_IMAGE` says `require` where the image itself has to run.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from alipes.compat.release import release_flags
from alipes.errors import ServeError
from alipes.local_ports import reserved_ports
from alipes.serve.context import serve as serve_anything
from alipes.serve.endpoints import DEFAULT_PORTS, flag_words
from alipes.serve.endpoints import free_ports as find_free_ports
from alipes.serve.instance import Instance
from alipes.serve.recipe import CVMFS, TRITONSERVER, Runtime

__all__ = ["LDG_REGISTRY", "TRITON_BINARY", "VARIABLE", "image_required", "serve"]

VARIABLE: Final = "ALIPES_SERVE_IMAGE"

TRITON_BINARY: Final = TRITONSERVER
LDG_REGISTRY: Final = str(CVMFS)

_CHOICES: Final = ("ignore", "require")
_log = logging.getLogger("alipes.serve")
_lock = threading.Lock()
_reported: set[str] = set()


@contextmanager
def serve(  # noqa: PLR0913, PLR0917  # the names and the order are those that scripts use
    model_repo_dir: str | os.PathLike[str],
    image: str | os.PathLike[str] | None = None,
    name: str | None = None,
    gpus: int | Sequence[int] | None = None,
    server_args: Sequence[str] | str | None = None,
    log_file: str | os.PathLike[str] | None = None,
    wait: bool = False,
    free_ports: bool = False,
    *,
    runtime: Runtime | None = None,
) -> Iterator[Instance]:
    """Serves a model repository while the block runs, with our own server.

    It follows Triton 2.51, unless a flag says otherwise.

    Args:
        model_repo_dir: The repository: a folder, or the address of a bucket.
        image: The container image that the script names. It is not used, which is logged once as a warning, unless
            `ALIPES_SERVE_IMAGE=require` or `runtime` asks for it.
        name: Name of the instance.
        gpus: GPUs that the server may see.
        server_args: Further flags of the server.
        log_file: Where the server's output goes.
        wait: Whether to wait until the server is ready before the block begins.
        free_ports: Whether the server takes free ports even where 8000, 8001 and 8002 are free.
        runtime: What runs the image; a script that says it wants the image.

    Raises:
        ServeError: If the server cannot be started, or `ALIPES_SERVE_IMAGE` says something else. It is a `ValueError`.
    """
    used = image
    if image is not None and runtime is None and not image_required(os.environ):
        _report_unused(os.fspath(image))
        used = None
    words = [*flag_words(server_args), *(_port_flags() if free_ports else ())]
    if used is None:
        words = [*release_flags(words, os.environ), *words]
    with serve_anything(model_repo_dir, used, name, gpus, words, log_file, wait, runtime=runtime or "apptainer") as one:
        yield one


def image_required(environment: Mapping[str, str]) -> bool:
    """Whether an image that a script names has to run.

    Raises:
        ServeError: If the environment says neither `ignore` nor `require`.
    """
    text = environment.get(VARIABLE, "").strip().lower() or _CHOICES[0]
    if text not in _CHOICES:
        raise ServeError(f"{VARIABLE} is {environment[VARIABLE]!r}: expected {' or '.join(_CHOICES)}")
    return text == "require"


def _report_unused(image: str) -> None:
    """Logs once in this process that an image is not used."""
    with _lock:
        if image in _reported:
            return
        _reported.add(image)
    _log.warning(
        "the container image %s is not used: alipes serves with its own server; %s=require runs the image",
        image,
        VARIABLE,
    )


def _port_flags() -> list[str]:
    """Flags with a free port for each endpoint. They come last, so that they count."""
    ports = find_free_ports([""] * len(DEFAULT_PORTS), reserved_ports())
    return [f"--{name}-port={port}" for name, port in zip(DEFAULT_PORTS, ports, strict=True)]
