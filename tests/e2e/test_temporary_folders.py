"""What a server keeps in folders for temporary files: gone with it, and where it was killed with the next one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import tritonclient.http as http_client
from support.models import add_model, times
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

# Copies a bucket as a server does, and is killed.
COPIES = """
import os, signal
from alipes.process_folder import ProcessFolder
folder = ProcessFolder("repository")
(folder.path / "models" / "m" / "1").mkdir(parents=True)
(folder.path / "models" / "m" / "1" / "model.onnx").write_text("x")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_server_left_goes_with_the_next(repository: Path, serve: Serve, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {"TMPDIR": str(temporary)}
    add_model(repository, "m")
    server = serve(repository, "--model-control-mode=explicit", environment=environment)
    with http_client.InferenceServerClient(server.http) as client:
        files = {"file:1/model.onnx": times().SerializeToString()}
        client.load_model("conjured", config=json.dumps({"backend": "onnxruntime"}), files=files)
    # Before the server is killed: whoever makes a folder removes those that were left.
    copied = subprocess.run([sys.executable, "-c", COPIES], env=os.environ | environment, check=False)
    assert copied.returncode == -signal.SIGKILL
    server.process.kill()
    server.wait()
    # What servers side by side share stays: what they found out about model files.
    shared = f"alipes-{os.getuid()}"
    left = sorted(path.name.rpartition("-")[0] for path in temporary.iterdir() if path.name != shared)
    assert left == ["alipes-load", "alipes-repository"]
    following = serve(repository, environment=environment)
    assert [path.name for path in temporary.iterdir() if path.name != shared] == []
    assert following.stop() == 0
