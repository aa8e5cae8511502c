"""A server that outlives the script that started it, and is found again by its handle."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from alipes.errors import AlipesError, ServeError
from alipes.local_ports import PortMapping, reserved_ports
from alipes.local_ports.lifetime import started_at
from alipes.serve.arguments import check
from alipes.serve.context import announced, recipe
from alipes.serve.endpoints import (
    Endpoints,
    choose_ports,
    flag_words,
    named_ports,
    report_moved,
    requested_endpoints,
)
from alipes.serve.flags import FlagValue, keyword_words
from alipes.serve.handle import Handle
from alipes.serve.instance import Instance
from alipes.serve.readiness import in_use
from alipes.serve.recipe import Recipe, Runtime
from alipes.serve.running import Apart
from alipes.serve.server_key import key_among
from alipes.serve.supervisor import ATTEMPTS, end, environment

__all__ = ["Detached", "attach", "launch"]


class Detached(Instance):
    """A server that runs apart. As a context manager it is left running when the block ends; `stop` ends it.

    Attributes:
        handle: The file by which it is found.
    """

    def __init__(self, handle: Path, known: Handle) -> None:
        """Takes a server that was started; from now on clients of this process are led to it."""
        source = _Source(known, handle)
        endpoints = announced(known.recipe) if known.here else ()
        key = key_among(known.recipe.flags)
        super().__init__(known.recipe.name, source, Path(known.log), announced=endpoints, api_key=key)
        self.handle = handle
        self._apart = source

    def __enter__(self) -> Self:
        """The server."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the server running; clients of this process are no longer led to it."""
        self.close()

    def close(self) -> None:
        """Leaves the server alone. A second time does nothing."""
        self._apart.port_mapping.withdraw()


def launch(  # noqa: PLR0913, PLR0917  # the arguments of `serve`, behind the handle
    model_repo_dir: str | os.PathLike[str],
    handle: str | os.PathLike[str],
    image: str | os.PathLike[str] | None = None,
    name: str | None = None,
    gpus: int | Sequence[int] | None = None,
    server_args: Sequence[str] | str | None = None,
    log_file: str | os.PathLike[str] | None = None,
    *,
    runtime: Runtime = "apptainer",
    timeout: float | None = None,
    **flags: FlagValue,
) -> Detached:
    """Starts a server that outlives this process, and returns once it is ready.

        from alipes import attach, launch

        launch("models", "server.json", http_address="127.0.0.1")

        with attach("server.json") as server:  # in this script, or in another one
            print(server.status(), server.url)
            server.stop()

    Args:
        model_repo_dir: The repository: a folder, or the address of a bucket.
        handle: The file by which the server is found again; it goes when the server is stopped.
        image: A container image with Triton; `None` runs our own server.
        name: Name of the instance.
        gpus: GPUs that the server may see.
        server_args: Further flags of the server.
        log_file: Where the server's output goes; beside the handle by default.
        runtime: What runs the image.
        timeout: Longest wait in seconds; `None` waits without end.
        flags: Flags of `alipes serve` with `_` for `-`, such as `http_port=9000`; `port` and `host` as in `serve`.

    Raises:
        ServeError: If it cannot be started, ends before it is ready, or the handle's server still runs.
        ServeTimeout: If the time is up. Nothing is left of the server then.
    """
    check(handle=handle, log_file=log_file, timeout=timeout)
    path = Path(handle).absolute()
    _refuse_if_running(path)
    plan = recipe(model_repo_dir, image, name, gpus, [*flag_words(server_args), *keyword_words(flags)], runtime)
    log = Path(log_file).absolute() if log_file is not None else path.with_name(path.name + ".log")
    requested = requested_endpoints(plan.flags)
    attempts = 0
    while True:
        attempts += 1
        chosen = choose_ports(requested, reserved_ports())
        server = _start(plan, chosen, log, path)
        report_moved(plan.name, requested, chosen)
        try:
            server.wait_until_ready(timeout)
        except BaseException as error:
            server.stop()
            if attempts < ATTEMPTS and isinstance(error, AlipesError) and in_use(log):
                continue  # another process was quicker at one of the ports
            raise
        return server


def attach(handle: str | os.PathLike[str]) -> Detached:
    """The server of a handle, whether it is ready, starting or has ended: see `status`.

    Raises:
        ServeError: If there is no such file, or it is no handle.
    """
    check(handle=handle)
    path = Path(handle).absolute()
    return Detached(path, Handle.load(path))


class _Source:
    """What an instance asks of a server that runs apart."""

    def __init__(self, known: Handle, path: Path) -> None:
        self.endpoints: Endpoints = known.reachable()
        self.ports = {port for endpoint in self.endpoints.values() for port in (endpoint.requested, endpoint.port)}
        # The owner of the handle may stop the server.
        self.port_mapping = PortMapping(
            next((endpoint.host for endpoint in self.endpoints.values()), ""), lambda: self.how() is None
        )
        self._known = known
        self._path = path
        self._process = Apart(known.pid, known.started)
        if known.here and self.how() is None:
            self.port_mapping.publish(named_ports(self.endpoints), known.pid)

    @property
    def pid(self) -> int:
        return self._known.pid

    def how(self) -> str | None:
        # A process on another machine is reachable through its endpoints only.
        return self._process.ended() if self._known.here else None

    def wait_for_end(self, timeout_s: float) -> bool:
        if self._known.here:
            return self._process.wait(timeout_s)
        threading.Event().wait(timeout_s)
        return False

    def stop(self) -> None:
        if not self._known.here:
            raise ServeError(f"the server {self._known.recipe.name} runs on {self._known.host}: stop it there")
        self.port_mapping.withdraw()
        if self.how() is None:
            end(self._process, self._known.recipe)
        self._path.unlink(missing_ok=True)


def _refuse_if_running(path: Path) -> None:
    if not path.exists():
        return
    with attach(path) as before:
        if before.status() != "ended":
            raise ServeError(
                f"the server {before.name} of the handle {path} still runs: stop it, or name another handle"
            )


def _start(plan: Recipe, endpoints: Endpoints, log: Path, path: Path) -> Detached:
    """Starts the process and writes its handle, so that it is found even if this process ends now."""
    command = plan.command(endpoints)
    try:
        log.write_bytes(b"")
    except OSError as error:
        raise ServeError(f"the server's log {log} cannot be written: {error.strerror}") from error
    launcher = (sys.executable, "-m", "alipes.serve.child", "apart", str(log))
    done = subprocess.run(
        (*launcher, *command.words), env=environment(command), stdout=subprocess.PIPE, text=True, check=True
    )
    pid = int(done.stdout)
    known = Handle(plan, endpoints, socket.gethostname(), pid, started_at(pid), str(log))
    try:
        known.save(path)
    except ServeError:
        end(Apart(pid, known.started), plan)
        raise
    return Detached(path, known)
