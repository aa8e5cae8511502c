"""A server whose store lies elsewhere: what is there is fetched, served, and refused with a reason."""

from __future__ import annotations

import io
import json
import socket
import ssl
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from alipes import Client
from support.certificates import Authority
from support.file_server import file_server
from support.models import times
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

MODEL = times(2.0, 2).SerializeToString()
SHA = "0123456789abcdef0123456789abcdef01234567"


def tar_gz(**files: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as written:
        for name, content in files.items():
            one = tarfile.TarInfo(name.replace("__", "/"))
            one.size = len(content)
            written.addfile(one, io.BytesIO(content))
    return made.getvalue()


def answers(server: ServerProcess, model: str) -> bool:
    with Client(server.http) as client:
        return client.infer(model, {"X": np.ones((1, 2), np.float32)})["Y"].tolist() == [[2, 2]]


def test_archives_and_single_files_are_served_beside_a_store_that_is_gone(serve: Serve, tmp_path: Path) -> None:
    with file_server() as files:
        files.files = {"/models.tar.gz": tar_gz(digits__1__model=MODEL, letters__any=MODEL), "/single.onnx": MODEL}
        files.files["/models.tar.gz"] = tar_gz(**{"digits__1__model.onnx": MODEL, "letters__any.onnx": MODEL})
        server = serve(
            f"--model-store={files.address}/models.tar.gz",
            f"{files.address}/single.onnx",
            f"--model-store={files.address}/gone.zip?signature=secret",
            environment={"TMPDIR": str(tmp_path)},
        )
    assert all(answers(server, model) for model in ("digits", "letters", "single"))
    assert "gone.zip: 127.0.0.1" in server.output and "secret" not in server.output


def test_files_of_archives_and_folders_that_are_not_wanted_are_no_models(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("one.onnx", "two.onnx"):
        (tmp_path / "folder" / name).write_bytes(MODEL)
    patterns = {"STORAGE_ALLOW_PATTERNS": "*.onnx", "STORAGE_IGNORE_PATTERNS": '["*two*", "letters/*"]'}
    with file_server() as files:
        files.files = {"/single-two.onnx": MODEL}
        files.files["/models.tar.gz"] = tar_gz(**{"digits__1__model.onnx": MODEL, "letters__any.onnx": MODEL})
        server = serve(
            f"--model-store={tmp_path / 'folder'}",
            f"--model-store={files.address}/models.tar.gz",
            f"--model-store={files.address}/single-two.onnx",
            environment=patterns | {"TMPDIR": str(tmp_path)},
        )
    with Client(server.http) as client:
        assert {entry.name for entry in client.models()} == {"folder", "digits", "single-two"}
    assert all(answers(server, model) for model in ("folder", "digits", "single-two"))


def test_a_store_that_cannot_be_had_ends_the_start_with_the_reason(tmp_path: Path) -> None:
    with file_server() as files:
        files.files = {"/models.tar.gz": tar_gz(**{"..__evil": b"evil"}), "/data.tar.gz": tar_gz(notes=b"no model")}
        for name, what in (("models", "leads out of its folder"), ("data", "holds notes; expected"), ("x", "404")):
            address = f"--model-store={files.address}/{name}.tar.gz"
            with ServerProcess(address, environment={"TMPDIR": str(tmp_path)}) as server:
                assert server.wait() == 1
            assert what in server.output.replace("\n  ", " ")


def test_stores_are_fetched_from_hosts_that_the_mounted_bundle_vouches_for(serve: Serve, tmp_path: Path) -> None:
    """KServe mounts its configured authorities into pods; a server without them does not trust the host."""
    authority = Authority(tmp_path)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files = authority.files("store")
    own.load_cert_chain(files.certificate, files.key)
    (tmp_path / "cabundle.crt").write_bytes(authority.root_pem)
    mounted = {"CA_BUNDLE_CONFIGMAP_NAME": "authorities", "CA_BUNDLE_VOLUME_MOUNT_POINT": str(tmp_path)}
    with file_server(own) as store:
        store.files = {"/single.onnx": MODEL}
        flags = (f"--model-store={store.address}/single.onnx",)
        server = serve(*flags, environment=mounted | {"TMPDIR": str(tmp_path)})
        assert answers(server, "single")
        with ServerProcess(*flags, environment={"TMPDIR": str(tmp_path)}) as stranger:
            assert stranger.wait() == 1
    assert "CERTIFICATE_VERIFY_FAILED" in stranger.output and "trust its authority" in stranger.output
    with ServerProcess(*flags, environment=mounted | {"CA_BUNDLE_VOLUME_MOUNT_POINT": str(tmp_path / "x")}) as lost:
        assert lost.wait() == 1
    assert "mount the bundle there" in lost.output


def test_a_signal_ends_a_start_whose_store_does_not_come(tmp_path: Path) -> None:
    """The time for a stop counts, and not the patience with who sends the store."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/models.tar.gz"
        with ServerProcess(
            f"--model-store={address}", "--exit-timeout-secs=1", environment={"TMPDIR": str(tmp_path)}
        ) as server:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1)  # it asks, and nobody answers
                server.signal()
                assert server.wait() == 1
    assert "Exit timeout expired" in server.output


@pytest.mark.extra("hf")
def test_a_model_of_the_hub_is_served_by_its_own_client(serve: Serve, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub", reason="the Hub's client: pip install 'alipes[hf]'")
    described = {"id": "team/digits", "sha": SHA, "siblings": [{"rfilename": "model.onnx"}, {"rfilename": "README.md"}]}
    tree = [{"type": "file", "path": name, "size": len(MODEL), "oid": "0"} for name in ("model.onnx", "README.md")]
    with file_server() as hub:
        hub.headers["X-Repo-Commit"] = SHA
        hub.files = {
            "/api/models/team/digits/revision/v1": json.dumps(described).encode(),
            f"/api/models/team/digits/revision/{SHA}": json.dumps(described).encode(),
            f"/api/models/team/digits/tree/{SHA}": json.dumps(tree).encode(),
            f"/team/digits/resolve/{SHA}/model.onnx": MODEL,
            f"/team/digits/resolve/{SHA}/README.md": b"words",
        }
        environment = {"HF_ENDPOINT": hub.address, "HF_TOKEN": "hf_secret", "TMPDIR": str(tmp_path)}
        server = serve("--model-store=hf://team/digits:v1", "--model-name=digits", environment=environment)
        assert answers(server, "digits")
        assert "Bearer hf_secret" in {headers.get("authorization") for _, headers in hub.requests}
        assert "hf_secret" not in server.output
        hub.requests.clear()
        (tmp_path / "other").mkdir()
        environment |= {"TMPDIR": str(tmp_path / "other"), "STORAGE_ALLOW_PATTERNS": '["*.onnx"]'}
        chosen = serve("--model-store=hf://team/digits:v1", "--model-name=digits", environment=environment)
        assert answers(chosen, "digits")
        asked = {path for path, _ in hub.requests if "/resolve/" in path}
        assert asked == {f"/team/digits/resolve/{SHA}/model.onnx"}
