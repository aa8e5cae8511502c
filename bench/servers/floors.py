"""The floors: what a server costs that reads the whole request and sends a fixed answer."""

import subprocess

from bench.paths import FLOORS, compiled
from bench.servers.endpoint import Endpoint
from bench.servers.process import Process, StartFailed
from bench.work import Work


def build() -> None:
    """Compiles the floors, and the load tool beside them, where they are missing or older than their sources.

    Raises:
        StartFailed: If cargo is missing or fails.
    """
    places = ["--manifest-path", str(FLOORS / "Cargo.toml"), "--target-dir", str(FLOORS / "target")]
    command = ["cargo", "build", "--release", "--locked", "--quiet", *places]
    try:
        built = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise StartFailed("the floors need a Rust toolchain: cargo is not on the path") from error
    if built.returncode != 0:
        raise StartFailed(f"the floors do not compile:\n{built.stderr[-2000:]}")


def start(work: Work) -> Endpoint:
    """Starts the floor for one piece of work; its fixed answer is the correct one."""
    binary = "tonic-floor" if work.is_grpc else "hyper-floor"
    command = [str(compiled(binary)), "--answer", str(work.answer_file)]
    if work.is_grpc:
        command += ["--responses", str(work.responses)]
    else:
        for name, value in work.answer_headers.items():
            command += ["--header", f"{name}:{value}"]
    process = Process(f"{binary}_{work.name}", command)
    try:
        port = int(process.first_line())
    except BaseException:
        process.stop()
        raise
    return Endpoint(process, http_port=port, grpc_port=port)
