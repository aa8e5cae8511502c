"""`with serve(repository) as instance:` - a server for as long as the block runs."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alipes.process_folder import ProcessFolder
from alipes.serve.arguments import check
from alipes.serve.block import ServerBlock
from alipes.serve.endpoints import EndpointName, flag_words, requested_endpoints
from alipes.serve.flags import FlagValue, keyword_words
from alipes.serve.folder import are_functions, repository_of
from alipes.serve.gpus import has_gpu, say_without_gpu, visible_devices
from alipes.serve.instance import Instance
from alipes.serve.recipe import Recipe, Runtime, find_image
from alipes.serve.supervisor import Inherited, Supervisor

__all__ = ["announced", "recipe", "serve", "supervised"]

_numbers = itertools.count(1)

# Flags that shorten a server's log: it may then lack the lines that announce its endpoints.
_QUIET = ("--log-info", "--log_info", "--log-file", "--log_file", "--quiet", "-q")


def serve(  # noqa: PLR0913, PLR0917  # the names and the order are those that scripts use
    model_repo_dir: str | os.PathLike[str] | Callable[..., Any] | Sequence[Callable[..., Any]],
    image: str | os.PathLike[str] | None = None,
    name: str | None = None,
    gpus: int | Sequence[int] | None = None,
    server_args: Sequence[str] | str | None = None,
    log_file: str | os.PathLike[str] | None = None,
    wait: bool = False,
    *,
    runtime: Runtime = "apptainer",
    **flags: FlagValue,
) -> ServerBlock:
    """Serves a model repository while the block of its `with` runs.

        from alipes import serve

        with serve("models", wait=True, http_address="127.0.0.1") as server:
            with server.client() as client:
                print(client.infer("louder", [[1.0, 2.0, 3.0]]))

    The endpoints use the ports 8000, 8001 and 8002. If one of them is in use, the server takes another, and clients and
    monitors of this process that connect to `localhost:8001` reach it there; `instance.grpc` is the real address.

    Args:
        model_repo_dir: The repository: a folder, or the address of a bucket; an app, `"app.py"`; or a function or a
            class of this script, or several in a list, which then run on threads of it.
        image: A container image with Triton; `None` runs our own server.
        name: Name of the instance.
        gpus: GPUs that the server may see. Without a GPU here this is said once, and the CPU is used.
        server_args: Further flags of the server. A port that they name is the port: if it is taken, that is an error.
        log_file: Where the server's output goes; `None` keeps it for as long as the block runs, `instance.log`.
        wait: Whether to wait until the server is ready before the block begins.
        runtime: What runs the image: `apptainer` (or its older name), `docker`, `podman`.
        flags: Flags of `alipes serve` with `_` for `-`, such as `http_port=9000` or `model_control_mode="explicit"`.
            `port` is that of HTTP, followed by those of gRPC and metrics; `host` is the address of all three.

    Raises:
        ServeError: If something that is named here is not there; where the block begins, if the server cannot be
            started. It is a `ValueError`.

    Units: the server is asked to finish within 10 seconds when the block ends, unless flags say otherwise.
    """
    check(log_file=log_file)
    if are_functions(model_repo_dir):
        from alipes.attached.functions import functions_served  # most scripts serve folders

        more: dict[str, Any] = {"image": image, "gpus": gpus, "name": name, "log_file": log_file, **flags}
        return ServerBlock(functions_served(model_repo_dir, server_args=server_args, **more))
    words = [*flag_words(server_args), *keyword_words(flags)]
    return ServerBlock(_serving(recipe(model_repo_dir, image, name, gpus, words, runtime), log_file, wait=wait))


@contextmanager
def _serving(plan: Recipe, log_file: str | os.PathLike[str] | None, *, wait: bool) -> Iterator[Instance]:
    with supervised(plan, log_file) as (supervisor, log):
        instance = Instance(plan.name, supervisor, log, announced=announced(plan))
        if wait:
            instance.wait_until_ready()
        yield instance


@contextmanager
def supervised(
    plan: Recipe, log_file: str | os.PathLike[str] | None, inherited: Inherited | None = None
) -> Iterator[tuple[Supervisor, Path]]:
    """Runs a server, and stops it at the end. A process that was forked meanwhile leaves it alone at its own end.

    Args:
        plan: How it is started.
        log_file: Where its output goes; `None` for a file that goes with it.
        inherited: What it inherits beside the environment.
    """
    folder = ProcessFolder("serve")
    try:
        log = Path(log_file).absolute() if log_file is not None else folder.path / "server.log"
        supervisor = Supervisor(plan, requested_endpoints(plan.flags), log, inherited)
        supervisor.start()
        try:
            yield supervisor, log
        finally:
            supervisor.stop()
    finally:
        folder.close()


def recipe(
    model_repo_dir: Any,
    image: str | os.PathLike[str] | None,
    name: str | None,
    gpus: int | Sequence[int] | None,
    server_args: Sequence[str] | str | None,
    runtime: Runtime,
) -> Recipe:
    """How to start the server that a script asks for.

    Raises:
        ServeError: If something that it names is not there, or is of another kind.
    """
    check(image=image, name=name, gpus=gpus, runtime=runtime)
    devices = visible_devices(gpus, os.environ)
    say_without_gpu(gpus)
    return Recipe(
        name=name or f"alipes-{os.getpid()}-{next(_numbers)}",
        repository=repository_of(model_repo_dir),
        image=find_image(image, runtime),
        runtime=runtime,
        devices=devices,
        gpu=has_gpu(),
        flags=tuple(flag_words(server_args)),
    )


def announced(plan: Recipe) -> Collection[EndpointName]:
    """The endpoints that a server's output will announce when they are open."""
    if any(word.startswith(_QUIET) for word in plan.flags):
        return ()
    endpoints = requested_endpoints(plan.flags)
    # An image may have a server that was built without metrics.
    return {name for name in endpoints if plan.image is None or name != "metrics"}
