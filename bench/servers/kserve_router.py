"""KServe's own router in front of alipes, as `make kube` builds it."""

import json
import runpy
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.document import Document
from bench.paths import PROJECT
from bench.servers.endpoint import Endpoint
from bench.servers.process import Process, StartFailed
from bench.servers.programs import started

PROGRAM = "kserve-router"
#: Where it listens, at all addresses of the machine, whatever it is told.
PORT = 8080


class RouterProcess(Process):
    """The router; the processor time of the server behind it is part of what a request costs."""

    def __init__(self, program: Path, spec: Mapping[str, Any], behind: Endpoint) -> None:
        """Starts it with a graph whose steps are models of a server that runs."""
        self._behind = behind
        super().__init__(PROGRAM, [program, "--graph-json", json.dumps(spec)])

    def cpu_seconds(self) -> float:
        """Processor time of both."""
        return super().cpu_seconds() + self._behind.process.cpu_seconds()


def program() -> Path:
    """The router's file.

    Raises:
        StartFailed: If it is not built.
    """
    known = runpy.run_path(str(PROJECT / "tools" / "kube" / "programs.py"))
    file = Path(known["PROGRAMS"][PROGRAM].folder() / "bin" / PROGRAM)
    if not file.exists():
        raise StartFailed(f"{PROGRAM} is not built: make kube ARGS={PROGRAM}")
    return file


def start(spec: Mapping[str, Any], behind: Endpoint, document: Document) -> Endpoint:
    """Starts the router, and waits until it answers ``document``.

    Raises:
        StartFailed: If it is not built, its port is taken, or it does not start.
        WrongAnswer: If its answer is wrong.
    """
    found = program()
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", PORT)) == 0:
            raise StartFailed(f"{PROGRAM} listens at port {PORT} alone, which another program has")
    return started(RouterProcess(found, spec, behind), PORT, document)
