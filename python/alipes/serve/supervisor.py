"""The supervisor of a `with` block's server: starts it, restarts it on other ports if its own were taken."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from alipes.errors import ServeError
from alipes.local_ports import PortMapping, reserved_ports
from alipes.serve.endpoints import Endpoints, choose_ports, named_ports, report_moved
from alipes.serve.readiness import in_use
from alipes.serve.recipe import EXIT_TIMEOUT_S, Command, Recipe
from alipes.serve.running import Child, Running

__all__ = ["ATTEMPTS", "Inherited", "Supervisor", "end", "environment"]

ATTEMPTS: Final = 5
"""How often a server is started on other ports: other processes may take free ports before the server binds them."""

_STOP_MARGIN_S: Final = 5.0
_log = logging.getLogger("alipes.serve")


@dataclass(frozen=True, slots=True)
class Inherited:
    """What a server inherits from its script, beside the environment.

    Attributes:
        descriptors: Descriptors, under the numbers that they have here.
        variables: Further variables.
    """

    descriptors: Sequence[int] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


class Supervisor:
    """Supervises one server as a child process.

    A dedicated thread starts the process and waits for it. The kernel ends a server when the thread that started it
    ends: this thread lives as long as the interpreter, while the one that called `serve` may end earlier.
    """

    def __init__(self, recipe: Recipe, requested: Endpoints, log: Path, inherited: Inherited | None = None) -> None:
        """Starts nothing yet."""
        self.endpoints: Endpoints = {}
        self.ports: set[int] = set()
        self.ended = threading.Event()
        self._recipe = recipe
        self._inherited = inherited or Inherited()
        self._requested = requested
        self._log_path = log
        self._port_mapping = PortMapping(next((endpoint.host for endpoint in requested.values()), ""))
        self._lock = threading.Lock()
        self._running: Child | None = None
        self._stopping = False
        self._stopped = False
        self._begun = threading.Event()
        self._error: BaseException | None = None
        self._owner = os.getpid()

    def start(self) -> None:
        """Starts the process and returns.

        Raises:
            ServeError: If it cannot be started.
        """
        threading.Thread(target=self._supervise, name=f"alipes-serve-{self._recipe.name}", daemon=True).start()
        self._begun.wait()
        if self._error is not None:
            raise self._error

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._child().pid

    def how(self) -> str | None:
        """The way in which the server ended, as text; `None` while it runs."""
        if not self.ended.is_set():
            return None
        return "it was stopped" if self._stopped else self._child().ended()

    def wait_for_end(self, timeout_s: float) -> bool:
        """Whether the server has ended, as soon as it has or when the time is up."""
        return self.ended.wait(timeout_s)

    def stop(self) -> None:
        """Asks the server to drain and exit, and kills it after its exit time-out. A second time does nothing.

        A process that was forked from the one that started the server does nothing either.
        """
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._stopping = True
            running = self._running
            self._stopped |= running is not None and running.ended() is None
        self._port_mapping.withdraw()
        if running is not None:
            end(running, self._recipe)
            self.ended.wait()

    def _supervise(self) -> None:
        try:
            self._attempts()
        except BaseException as error:
            self._error = error
        finally:
            self._port_mapping.withdraw()
            self._begun.set()
            self.ended.set()

    def _attempts(self) -> None:
        attempts = 0
        while (child := self._start()) is not None:
            child.wait(None)
            attempts += 1
            if self._stopping or attempts == ATTEMPTS or not in_use(self._log_path):
                break
        if child is not None and not self._stopping:
            _log.error("the server %s has ended: %s; its log is %s", self._recipe.name, child.ended(), self._log_path)

    def _start(self) -> Child | None:
        """Starts the process; `None` if the block has ended meanwhile."""
        with self._lock:
            if self._stopping:
                return None
            self.endpoints = choose_ports(self._requested, reserved_ports())
            self.ports |= {port for endpoint in self.endpoints.values() for port in (endpoint.requested, endpoint.port)}
            command = self._recipe.command(self.endpoints)
            ports = named_ports(self.endpoints)
            variables = {**self._port_mapping.variables(ports), **self._inherited.variables}
            self._running = child = Child(spawn(command, self._log_path, variables, self._inherited.descriptors))
            self._port_mapping.publish(ports, child.pid)
        report_moved(self._recipe.name, self._requested, self.endpoints)
        self._begun.set()
        return child

    def _child(self) -> Child:
        if self._running is None:
            raise ServeError("the server was not started: use it in a `with` block")
        return self._running


def spawn(
    command: Command, log: Path, variables: Mapping[str, str], descriptors: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Starts a command that ends with the calling thread, its output in a file, with further variables.

    It inherits the descriptors under the numbers that they have here.

    Raises:
        ServeError: If the log cannot be written.
    """
    launcher = (sys.executable, "-m", "alipes.serve.child", "with", str(os.getpid()))
    try:
        output = log.open("wb")
    except OSError as error:
        raise ServeError(f"the server's log {log} cannot be written: {error.strerror}") from error
    with output:
        return subprocess.Popen(
            (*launcher, *command.words),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**environment(command), **variables},
            pass_fds=descriptors,
            start_new_session=True,  # Ctrl-C reaches the script alone, which ends the server in its own order
        )


def end(running: Running, recipe: Recipe) -> None:
    """Ends a server: a request, time to finish, then force; and what is left of a container."""
    running.signal(signal.SIGTERM)
    if not running.wait(_exit_timeout_s(recipe.flags) + _STOP_MARGIN_S):
        running.signal(signal.SIGKILL)
        if recipe.removal:
            with contextlib.suppress(FileNotFoundError):
                subprocess.run(recipe.removal, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _exit_timeout_s(flags: tuple[str, ...]) -> float:
    """How long a server may take to finish what is in."""
    texts = [word.partition("=")[2] for word in flags if word.startswith("--exit-timeout-secs=")]
    return float(texts[-1]) if texts and texts[-1].isdecimal() else float(EXIT_TIMEOUT_S)


def environment(command: Command) -> dict[str, str]:
    """The environment of a command."""
    return {**os.environ, **_reachable(), **command.environment}


def _reachable() -> Mapping[str, str]:
    """What lets the child find this package, where it was imported from a folder that only `sys.path` names."""
    home = str(Path(__file__).parents[2])
    known = os.environ.get("PYTHONPATH", "")
    return {} if home in known.split(os.pathsep) else {"PYTHONPATH": os.pathsep.join(filter(None, (home, known)))}
