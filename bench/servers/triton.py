"""The real Triton out of the `nvidia-pytriton` wheel, with its Python backend: laid out as the server expects it."""

import os
import shutil
import sysconfig
from pathlib import Path

import numpy as np

from bench.models import graphs
from bench.models.repository import MODELS, SERVED_TOGETHER, repository
from bench.paths import BENCH, WORK

#: The wheel carries no ONNX Runtime backend, so the stand-ins for these models are numpy.
STAND_INS = ("mlp", "image")


def command(environment: Path, http_port: int, grpc_port: int) -> list[str | Path]:
    """The command line that serves the stand-ins, and the Python models out of the very folder that alipes serves."""
    server = _server(environment)
    return [
        server / "bin" / "tritonserver",
        f"--model-repository={_stand_ins()}",
        f"--model-repository={repository(*SERVED_TOGETHER['python'])}",
        f"--backend-directory={_backends(environment)}",
        "--http-address=127.0.0.1",
        f"--http-port={http_port}",
        "--grpc-address=127.0.0.1",
        f"--grpc-port={grpc_port}",
        "--allow-metrics=false",
        "--log-info=false",
        "--log-warning=false",
    ]


def variables(environment: Path) -> dict[str, str]:
    """The environment variables that the server and its Python processes need."""
    libraries = [_packages(environment) / "nvidia_pytriton.libs", Path(str(sysconfig.get_config_var("LIBDIR")))]
    return {
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        # The interpreter inside the server takes its packages from the environment of the first python on the path.
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
        # One instance, one core, as for every other contender.
        "OPENBLAS_NUM_THREADS": "1",
    }


def _packages(environment: Path) -> Path:
    return next(environment.glob("lib/python3.*/site-packages"))


def _server(environment: Path) -> Path:
    return _packages(environment) / "pytriton" / "tritonserver"


def _backends(environment: Path) -> Path:
    """The backend folder, with the stub for this environment's Python beside the backend."""
    folder = WORK / "triton" / "backends" / "python"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_server(environment) / "backends" / "python", folder)
    version = _packages(environment).parent.name.removeprefix("python")
    stub = _server(environment) / "python_backend_stubs" / version / "triton_python_backend_stub"
    shutil.copy(stub, folder / stub.name)
    (folder / stub.name).chmod(0o755)
    return folder.parent


def _stand_ins() -> Path:
    root = WORK / "triton" / "repository"
    shutil.rmtree(root, ignore_errors=True)
    for name in STAND_INS:
        version = root / name / "1"
        version.mkdir(parents=True)
        shutil.copy(BENCH / "peers" / "triton" / f"{name}.py", version / "model.py")
        (version.parent / "config.pbtxt").write_text(MODELS[name].config_text("python"))
    np.savez(root / "mlp" / "1" / "weights.npz", allow_pickle=False, **graphs.mlp()[1])
    np.savez(root / "image" / "1" / "weights.npz", allow_pickle=False, **graphs.image()[1])
    return root
