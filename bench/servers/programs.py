"""Small programs of `bench/apps` and `bench/peers`: the same function or file, as each server wants it written."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.document import Document
from bench.paths import BENCH
from bench.servers.alipes import POLL_S
from bench.servers.endpoint import Endpoint
from bench.servers.process import Process, free_ports

APPS = BENCH / "apps"
PEERS = BENCH / "peers"
#: Some of them import for long.
START_TIMEOUT_S = 180.0

#: From the folder of an environment, the program and a port to the command line.
Command = Callable[[Path, str, int], Sequence[str | Path]]


def _fastapi(folder: Path, program: str, port: int) -> Sequence[str | Path]:
    options = ["--host", "127.0.0.1", "--port", str(port), "--no-access-log", "--log-level", "warning"]
    return [folder / "bin" / "uvicorn", f"{program}:app", "--app-dir", PEERS / "fastapi", *options]


def _litserve(folder: Path, program: str, port: int) -> Sequence[str | Path]:
    return [folder / "bin" / "python", PEERS / "litserve" / f"{program}.py", str(port)]


def _mosec(folder: Path, program: str, port: int) -> Sequence[str | Path]:
    options = ["--address", "127.0.0.1", "--port", str(port), "--log-level", "warning"]
    return [folder / "bin" / "python", PEERS / "mosec" / f"{program}.py", *options]


def _bentoml(folder: Path, program: str, port: int) -> Sequence[str | Path]:
    options = ["--host", "127.0.0.1", "--port", str(port), "--working-dir", str(PEERS / "bentoml")]
    return [folder / "bin" / "bentoml", "serve", f"{program}:{program.capitalize()}", *options]


#: How each peer's programs are started.
COMMANDS: Mapping[str, Command] = {
    "bentoml": _bentoml,
    "fastapi": _fastapi,
    "litserve": _litserve,
    "mosec": _mosec,
}
#: No report to their makers.
VARIABLES: Mapping[str, Mapping[str, str]] = {"bentoml": {"BENTOML_DO_NOT_TRACK": "True"}}


@dataclass(frozen=True)
class Program:
    """One program of a peer."""

    #: Name of the peer.
    peer: str
    #: Its file below the peer's folder, without the suffix.
    name: str
    #: The folder of `bench/peers` whose requirements it needs, where that is not the peer's own.
    requirements: str | None = None
    #: Environment variables of its own.
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def environment(self) -> str:
        """The name of its environment."""
        return self.requirements or self.peer

    def start(self, environment: Path, document: Document) -> Endpoint:
        """Starts it, and waits until it answers ``document``.

        Raises:
            StartFailed: If it does not.
            WrongAnswer: If its answer is wrong.
        """
        (port,) = free_ports(1)
        command = COMMANDS[self.peer](environment, self.name, port)
        process = Process(f"{self.peer}_{self.name}", command, {**VARIABLES.get(self.peer, {}), **self.variables})
        return started(process, port, document)


def started(process: Process, port: int, document: Document) -> Endpoint:
    """The endpoint of a process, once it answers ``document``; a process that does not is stopped.

    Raises:
        StartFailed: If it ends, or does not answer in time.
        WrongAnswer: If its answer is wrong.
    """
    try:
        process.wait_until(lambda: document.is_answered(port), START_TIMEOUT_S, POLL_S)
    except BaseException:
        process.stop()
        raise
    return Endpoint(process, http_port=port)


def start_app(name: str, document: Document, flags: Sequence[str] = ()) -> Endpoint:
    """Starts `alipes serve` on a file of `bench/apps`, and waits until it answers ``document``.

    Raises:
        StartFailed: If it does not.
        WrongAnswer: If its answer is wrong.
    """
    http_port, grpc_port, metrics_port = free_ports(3)
    ports = [f"--http-port={http_port}", f"--grpc-port={grpc_port}", f"--metrics-port={metrics_port}"]
    command: list[str | Path] = [Path(sys.executable).parent / "alipes", "serve", APPS / f"{name}.py", *ports, *flags]
    return started(Process(f"alipes_{name}", command), http_port, document)
