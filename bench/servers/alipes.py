"""alipes itself, started as a user starts it."""

import ssl
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.servers import probe
from bench.servers.endpoint import Endpoint
from bench.servers.interpreters import environment_of
from bench.servers.process import Process, StartFailed, free_ports

#: How often readiness is asked for; the start-up time is no finer than this.
POLL_S = 0.002


def start(
    repository: Path | None,
    name: str = "alipes",
    flags: Sequence[str] = (),
    tls: ssl.SSLContext | None = None,
    environment: Mapping[str, str] | None = None,
    python: Path | None = None,
) -> Endpoint:
    """Starts `alipes serve` on a repository, with further flags, and waits until it is ready.

    Args:
        repository: Folder of models; none where the flags say where they are.
        name: Names its log.
        flags: Further flags.
        tls: What knows its certificate, where the flags encrypt its HTTP endpoint.
        environment: Further environment variables.
        python: The interpreter of another environment, which has what the models need; alipes itself is this one.

    Raises:
        StartFailed: If it is not installed beside this interpreter, or does not become ready.
    """
    python = python or Path(sys.executable)
    command = python.parent / "alipes"
    if not command.exists():
        raise StartFailed(f"{command} does not exist: install alipes into this environment first")
    http_port, grpc_port, metrics_port = free_ports(3)
    ports = [f"--http-port={http_port}", f"--grpc-port={grpc_port}", f"--metrics-port={metrics_port}"]
    # Rows that share memory need the flag, and the others do not notice it.
    models = [] if repository is None else [repository]
    line: list[str | Path] = [command, "serve", *models, *ports, "--allow-client-shm=true", *flags]
    process = Process(name, line, {**environment_of(python), **(environment or {})})
    try:
        process.wait_until(lambda: probe.is_ready(http_port, tls=tls), pause_s=POLL_S)
    except BaseException:
        process.stop()
        raise
    return Endpoint(process, http_port, grpc_port, metrics_port, tls=tls)
