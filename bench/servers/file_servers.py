"""Peers that serve a trained file, with settings in the place of a program."""

import shutil
from pathlib import Path

from bench.document import Document
from bench.paths import WORK
from bench.servers.endpoint import Endpoint
from bench.servers.process import Process, free_ports
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
