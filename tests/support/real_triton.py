"""NVIDIA's own server, out of the `nvidia-pytriton` wheel in an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from support.ports import free_ports

_ROOT = Path(__file__).parents[2]
_SERVER = "lib/python3.*/site-packages/pytriton/tritonserver/bin/tritonserver"
# The bench has one too, and the environment may name a path.
_PLACES = [_ROOT / ".venv-clients" / "triton", _ROOT / "bench" / ".envs" / "triton"]
ENVIRONMENT = Path(
    os.environ.get("ALIPES_TRITON_ENV") or next((one for one in _PLACES if [*one.glob(_SERVER)]), _PLACES[0])
)
MISSING = "the real Triton is not there: `make clients` brings it"

_ATTEMPTS = 3
_TIMEOUT_S = 120.0
_LOOK_S = 0.1


def is_there() -> bool:
    """Whether it can be started."""
    return any(ENVIRONMENT.glob(_SERVER))


class RealTriton:
    """A running server with Python models. A context manager."""

    def __init__(self, repository: Path, folder: Path) -> None:
        """Starts it on ports that are free; `folder` is its own for what it needs."""
        packages = next(ENVIRONMENT.glob("lib/python3.*/site-packages"))
        self._server = packages / "pytriton" / "tritonserver"
        backends = _backends(self._server, folder, packages.parent.name.removeprefix("python"))
        self._log = folder / "triton.log"
        libraries = [packages / "nvidia_pytriton.libs", Path(str(sysconfig.get_config_var("LIBDIR")))]
        self._environment = os.environ | {
            "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
            "PATH": f"{ENVIRONMENT / 'bin'}:{os.environ['PATH']}",
        }
        # Its own Python must find its own packages, not ours.
        self._environment.pop("PYTHONPATH", None)
        self._flags = [f"--model-repository={repository}", f"--backend-directory={backends}", "--allow-metrics=false"]
        for attempt in range(1, _ATTEMPTS + 1):
            self._http, self.port = free_ports(2)
            with self._log.open("wb") as log:
                self.process = subprocess.Popen(
                    [self._server / "bin" / "tritonserver", *self._flags, *self._endpoints()],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self._environment,
                )
            if self._wait():
                return
            if attempt == _ATTEMPTS:  # another program may have used the ports meanwhile; hardly three times
                raise RuntimeError(self._log.read_text(errors="replace")[-4000:])

    @property
    def grpc(self) -> str:
        """Address of the gRPC endpoint, ``host:port``."""
        return f"127.0.0.1:{self.port}"

    @property
    def http(self) -> str:
        """Address of the HTTP endpoint, ``host:port``."""
        return f"127.0.0.1:{self._http}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends it, with the processes that it has started."""
        self.process.terminate()
        try:
            self.process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _endpoints(self) -> list[str]:
        return [
            "--http-address=127.0.0.1",
            "--grpc-address=127.0.0.1",
            f"--http-port={self._http}",
            f"--grpc-port={self.port}",
        ]

    def _wait(self) -> bool:
        """Whether it became ready, which only polling shows."""
        deadline_s = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline_s and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._http}/v2/health/ready", timeout=5):
                    return True
            except (OSError, urllib.error.URLError):
                time.sleep(_LOOK_S)
        self.stop()
        return False


def _backends(server: Path, folder: Path, version: str) -> Path:
    """The backend folder, with the stub for the environment's Python beside the backend."""
    backend = folder / "backends" / "python"
    shutil.copytree(server / "backends" / "python", backend)
    stub = backend / "triton_python_backend_stub"
    shutil.copy(server / "python_backend_stubs" / version / stub.name, stub)
    stub.chmod(0o755)
    return backend.parent
