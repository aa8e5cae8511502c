"""Peers that serve a trained file, with settings in the place of a program."""

import os
import shutil
import subprocess
from pathlib import Path

from bench.document import Document
from bench.paths import WORK
from bench.servers.endpoint import Endpoint
from bench.servers.process import Process, StartFailed, free_ports
from bench.servers.programs import PEERS, started


def start_mlserver(environment: Path, settings: str, model: Path, document: Document) -> Endpoint:
    """Starts MLServer on one model with settings of `bench/peers/mlserver`; waits until it answers.

    Args:
        environment: Folder of its environment.
        settings: The folder with its `model-settings.json`, which names the model's file.
        model: That file.
        document: What it must answer.

    Raises:
        StartFailed: If it does not start.
        WrongAnswer: If its answer is wrong.
    """
    folder = WORK / "mlserver" / settings
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PEERS / "mlserver" / settings, folder)
    shutil.copy(model, folder)
    http_port, grpc_port, metrics_port = free_ports(3)
    variables = {
        "MLSERVER_DEBUG": "false",
        "MLSERVER_GRPC_PORT": str(grpc_port),
        "MLSERVER_HOST": "127.0.0.1",
        "MLSERVER_HTTP_PORT": str(http_port),
        "MLSERVER_METRICS_PORT": str(metrics_port),
        # Else it makes a folder where it is started.
        "MLSERVER_METRICS_DIR": str(folder / "metrics"),
    }
    process = Process(f"mlserver_{settings}", [environment / "bin" / "mlserver", "start", folder], variables)
    return started(process, http_port, document)


def start_torchserve(environment: Path, model: Path, document: Document) -> Endpoint:
    """Starts TorchServe on a TorchScript file with the handler and settings of `bench/peers/torchserve`.

    Args:
        environment: Folder of its environment.
        model: The file.
        document: What it must answer.

    Raises:
        StartFailed: If there is no Java, the archive cannot be made, or it does not start.
        WrongAnswer: If its answer is wrong.
    """
    if shutil.which("java") is None:
        raise StartFailed("TorchServe needs Java: install a runtime such as Debian's default-jre-headless")
    folder = WORK / "torchserve"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PEERS / "torchserve", folder)
    path = f"{environment / 'bin'}:{os.environ['PATH']}"
    pack = ["--model-name=mlp", "--version=1.0", f"--serialized-file={model}", f"--handler={folder / 'handler.py'}"]
    archiver = [str(environment / "bin" / "torch-model-archiver"), *pack, f"--export-path={folder}"]
    made = subprocess.run(archiver, check=False, capture_output=True, text=True, env={**os.environ, "PATH": path})
    if made.returncode != 0:
        raise StartFailed(f"the archive cannot be made:\n{made.stderr[-2000:]}")
    inference, *others = free_ports(5)
    settings = (folder / "config.properties").read_text()
    for named, port in zip((8080, 8081, 8082), (inference, *others), strict=False):
        settings = settings.replace(f"127.0.0.1:{named}", f"127.0.0.1:{port}")
    settings += f"grpc_inference_port={others[2]}\ngrpc_management_port={others[3]}\n"
    (folder / "config.properties").write_text(settings)
    options = [f"--model-store={folder}", f"--ts-config={folder / 'config.properties'}", "--ncs"]
    command: list[str | Path] = [environment / "bin" / "torchserve", "--start", "--foreground", *options]
    variables = {"PATH": path, "LOG_LOCATION": str(folder / "logs"), "METRICS_LOCATION": str(folder / "logs")}
    return started(Process("torchserve", command, variables), inference, document)
