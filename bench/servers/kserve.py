"""KServe's SDK and alipes in its place: scripts of the SDK, and a model store."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.document import Document
from bench.paths import BENCH
from bench.servers.endpoint import Endpoint
from bench.servers.interpreters import environment_of
from bench.servers.pairs import Pair
from bench.servers.process import Process, free_ports
from bench.servers.programs import APPS, started

SCRIPTS = BENCH / "peers" / "kserve"


def start_sdk(environment: Path, script: str, workers: int, document: Document, flags: Sequence[str] = ()) -> Endpoint:
    """Starts a script of `bench/peers/kserve` with the SDK's own server, and waits until it answers ``document``.

    Args:
        environment: Folder of the SDK's environment.
        script: The script's name.
        workers: Its processes.
        document: What it must answer.
        flags: Further ones.

    Raises:
        StartFailed: If it does not start.
        WrongAnswer: If its answer is wrong.
    """
    command = [environment / "bin" / "python", SCRIPTS / f"{script}.py", f"--workers={workers}", *flags]
    return _started(f"kserve_{script}_{workers}", command, document)


def start_script(script: str, document: Document) -> Endpoint:
    """Starts the same script with alipes in the SDK's place.

    Raises:
        StartFailed: If it does not start.
        WrongAnswer: If its answer is wrong.
    """
    command = [Path(sys.executable), "-m", "alipes.compat", "kserve", SCRIPTS / f"{script}.py"]
    return _started(f"alipes_kserve_{script}", command, document)


def start_store(store: Path, name: str, document: Document, python: Path) -> Endpoint:
    """Starts `alipes serve` as KServe starts a runtime: on a model's files, by the model's name.

    Args:
        store: The files.
        name: The model's.
        document: What it must answer.
        python: An interpreter that has the model's framework.

    Raises:
        StartFailed: If it does not start.
        WrongAnswer: If its answer is wrong.
    """
    http_port, grpc_port, metrics_port = free_ports(3)
    ports = [f"--http-port={http_port}", f"--grpc-port={grpc_port}", f"--metrics-port={metrics_port}"]
    # The file of joblib is a pickle.
    words = [f"--model-name={name}", f"--model-store={store}", f"--allow-pickles={name}", *ports]
    line = [python.parent / "alipes", "serve", *words]
    return started(Process(f"alipes_store_{name}", line, environment_of(python)), http_port, document)


def start_sdk_pair(environment: Path, protocol: str, document: Document, behind: Document) -> Endpoint:
    """Starts a transformer of the SDK in front of a predictor of the SDK; waits until both answer.

    Args:
        environment: Folder of the SDK's environment.
        protocol: How the transformer asks the predictor: `v1` or `grpc-v2`.
        document: What the transformer must answer.
        behind: What the predictor must answer.

    Raises:
        StartFailed: If one of them does not start.
        WrongAnswer: If an answer is wrong.
    """
    python = environment / "bin" / "python"
    http_port, grpc_port = free_ports(2)
    ports = [f"--http_port={http_port}", f"--grpc_port={grpc_port}"]
    predictor = started(Process("kserve_rows", [python, SCRIPTS / "rows.py", *ports]), http_port, behind)
    host = f"127.0.0.1:{grpc_port if protocol == 'grpc-v2' else http_port}"
    words = ["--model_name=shift", f"--predictor_host={host}", f"--predictor_protocol={protocol}"]
    return _in_front(
        predictor, lambda: _started("kserve_shift", [python, SCRIPTS / "transformer.py", *words], document)
    )


def start_pair(transformer: str, document: Document, behind: Document) -> Endpoint:
    """Starts a transformer of `bench/apps` in front of a predictor of ours, which it asks over gRPC.

    Args:
        transformer: The transformer's file, without its suffix.
        document: What the transformer must answer.
        behind: What the predictor must answer.

    Raises:
        StartFailed: If one of them does not start.
        WrongAnswer: If an answer is wrong.
    """
    program = Path(sys.executable).parent / "alipes"
    http_port, grpc_port, metrics_port = free_ports(3)
    ports = [f"--http-port={http_port}", f"--grpc-port={grpc_port}", f"--metrics-port={metrics_port}"]
    command = [program, "serve", APPS / "doubler.py", *ports]
    predictor = started(Process("alipes_doubler", command), http_port, behind)
    words = [f"--predictor_host=127.0.0.1:{grpc_port}", "--predictor_protocol=grpc-v2", "--metrics-port=0"]
    line = [program, "serve", APPS / f"{transformer}.py", *words]
    return _in_front(predictor, lambda: _started(f"alipes_{transformer}", line, document))


def _in_front(predictor: Endpoint, start: Callable[[], Endpoint]) -> Endpoint:
    """A transformer in front of a predictor, which ends where the transformer does not start."""
    try:
        return Pair.of(start(), predictor)
    except BaseException:
        predictor.process.stop()
        raise


def _started(name: str, command: Sequence[str | Path], document: Document) -> Endpoint:
    http_port, grpc_port = free_ports(2)
    line = [*command, f"--http_port={http_port}", f"--grpc_port={grpc_port}"]
    return started(Process(name, line), http_port, document)
