"""The peers: servers from the package registry, each in an environment of its own."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.models.repository import repository
from bench.paths import BENCH, ENVIRONMENTS, PROJECT
from bench.servers import triton
from bench.servers.endpoint import Endpoint
from bench.servers.probe import is_ready
from bench.servers.process import Process, StartFailed, free_ports

PEERS = BENCH / "peers"
MLP = "mlp"


@dataclass(frozen=True)
class Peer:
    """A peer: what it is, and how it is started."""

    name: str
    title: str
    #: Starts what serves the bench's small models; None where there are programs alone (`bench.servers.programs`).
    start: Callable[[Path], Endpoint] | None = None


def environment(peer: str) -> Path:
    """The peer's environment, made at its first use and again when its requirements change.

    Raises:
        StartFailed: If it cannot be made; the message says what was tried.
    """
    folder = ENVIRONMENTS / peer
    requirements = PEERS / peer / "requirements.txt"
    mark = folder / "complete"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if mark.exists() and mark.read_text() == wanted:
        return folder
    install = [str(folder / "bin" / "pip"), "install", "--quiet", *_wheels(), "--requirement", str(requirements)]
    for command in ([sys.executable, "-m", "venv", "--clear", str(folder)], install):
        made = subprocess.run(command, check=False, capture_output=True, text=True)
        if made.returncode != 0:
            reason = (made.stderr.strip().splitlines() or ["no message"])[-1]
            raise StartFailed(f"install it with `{' '.join(command)}`, which failed: {reason}")
    mark.write_text(wanted)
    return folder


def _wheels() -> list[str]:
    """Folders of wheels at hand, which go first: PyTorch without its gigabytes for GPUs."""
    named = os.environ.get("TORCH_WHEELS")
    folders = [Path(named)] if named else sorted(PROJECT.parent.glob("*/wheels"))
    return [part for folder in folders for part in ("--find-links", str(folder))]


def _start_fastapi(folder: Path) -> Endpoint:
    (port,) = free_ports(1)
    options = ["--host", "127.0.0.1", "--port", str(port), "--no-access-log", "--log-level", "warning"]
    command: list[str | Path] = [folder / "bin" / "uvicorn", "app:app", "--app-dir", PEERS / "fastapi", *options]
    process = Process("fastapi", command, _model_path())
    return _ready(process, Endpoint(process, http_port=port), "/v2/health/ready")


def _start_mosec(folder: Path) -> Endpoint:
    (port,) = free_ports(1)
    options = ["--address", "127.0.0.1", "--port", str(port), "--log-level", "warning"]
    process = Process("mosec", [folder / "bin" / "python", PEERS / "mosec" / "app.py", *options], _model_path())
    return _ready(process, Endpoint(process, http_port=port), "/")


def _start_triton(folder: Path) -> Endpoint:
    ports = free_ports(2)
    process = Process("triton", triton.command(folder, *ports), triton.variables(folder))
    return _ready(process, Endpoint(process, *ports), "/v2/health/ready")


def _model_path() -> dict[str, str]:
    return {"MODEL_PATH": str(repository() / MLP / "1" / "model.onnx")}


def _ready(process: Process, endpoint: Endpoint, path: str) -> Endpoint:
    try:
        process.wait_until(lambda: is_ready(endpoint.http_port, path))
    except BaseException:
        process.stop()
        raise
    return endpoint


ALL = {
    peer.name: peer
    for peer in (
        Peer("bentoml", "BentoML"),
        Peer("fastapi", "FastAPI + uvicorn", _start_fastapi),
        Peer("kserve", "KServe SDK"),
        Peer("litserve", "LitServe"),
        Peer("mlserver", "MLServer"),
        Peer("mosec", "Mosec", _start_mosec),
        Peer("torchserve", "TorchServe"),
        Peer("triton", "Triton 2.51, Python backend (nvidia-pytriton wheel)", _start_triton),
    )
}
