"""Repositories that people get wrong: what they see, and what clients read in the index."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.models import add_model
from support.server import ServerDidNotStart, ServerProcess

# The paths of a model's folder, and the advice that the index has of it.
MISTAKES = {
    "flat": (["model.onnx"], "move flat/model.onnx to flat/1/model.onnx: "),
    "flat_py": (["model.py"], "move flat_py/model.py to flat_py/1/model.py: "),
    "flat_joblib": (
        ["model.joblib"],
        "move flat_joblib/model.joblib to flat_joblib/1/model.joblib, and start ",
    ),
    "flat_pt": (["net.pt"], "move flat_pt/net.pt to flat_pt/1/model.pt: "),
    "letters": (["one/model.onnx"], "rename letters/one to letters/1: "),
    "empty": ([], "put the model's file at empty/1/model.onnx (or model.py), or remove the folder"),
    "renamed": (["1/mymodel.onnx"], "rename renamed/1/mymodel.onnx to model.onnx, or write "),
    "pt": (["1/net.pt"], "rename pt/1/net.pt to model.pt, or write "),
    "joblib": (["1/model.joblib"], "install it with: pip install 'alipes[sklearn]'"),
    "ubj": (["1/model.ubj"], "install it with: pip install 'alipes[xgboost]'"),
    "txt": (["1/model.txt"], "install it with: pip install 'alipes[lightgbm]'"),
    "cbm": (["1/model.cbm"], "install it with: pip install 'alipes[catboost]'"),
    "flat_ubj": (["model.ubj"], "move flat_ubj/model.ubj to flat_ubj/1/model.ubj: "),
    "renamed_skops": (["1/mine.skops"], "rename renamed_skops/1/mine.skops to model.skops, or write backend: "),
    "pkl": (["1/forest.pkl"], "rename pkl/1/forest.pkl to model.pkl, or write "),
    "saved": (["1/saved/saved_model.pb"], "rename saved/1/saved to model.savedmodel: "),
    "keras": (["net.keras"], "move keras/net.keras to keras/1/model.keras: "),
    "xml": (["1/net.xml"], "rename xml/1/net.xml to model.xml, or write "),
    "lfs": (["1/model.onnx"], "fetch lfs/1/model.onnx with: git lfs pull: it is a pointer of Git LFS, not the model"),
    "plan": (["1/model.plan"], "serve the ONNX file that plan/1/model.plan was built from, as "),
}


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 4\n"


def write(folder: Path, paths: list[str]) -> None:
    folder.mkdir(parents=True)
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(LFS if folder.name == "lfs" else "no model")


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of every mistake, of a file beside their folders, and of one good model."""
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "double")
    for name, (paths, _) in MISTAKES.items():
        write(repository / name, paths)
    (repository / "loose.h5").write_text("no model")
    with ServerProcess(repository) as server:
        server.wait_for_output("alipes .* is ready")
        yield server


def index(server: ServerProcess) -> dict[str, dict[str, str]]:
    request = urllib.request.Request(f"http://{server.http}/v2/repository/index", data=b"{}", method="POST")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return {entry["name"]: entry for entry in json.loads(answer.read())}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_index_and_the_log_say_what_to_do(mistaken: ServerProcess, name: str) -> None:
    advice = MISTAKES[name][1]
    assert advice in index(mistaken)[name]["reason"]
    warnings = [line for line in mistaken.output.splitlines() if line.startswith(("W", "E"))]
    assert any(json.dumps(advice)[1:-1] in line for line in warnings)


def test_a_loose_file_beside_models_is_named_and_is_no_model(mistaken: ServerProcess) -> None:
    (said,) = re.findall(r"'(\S+)' holds a loose file: save the model of (\S+) as (\S+), with Keras", mistaken.output)
    assert said == (said[0], f"{said[0]}/loose.h5", f"{said[0]}/loose/1/model.keras")
    assert "loose" not in index(mistaken)


def test_the_log_of_a_pipe_ends_with_version_and_models(mistaken: ServerProcess) -> None:
    *_, grpc, http, metrics, last = mistaken.output.splitlines()
    assert [" at " in line and "Started" in line for line in (grpc, http, metrics)] == [True] * 3
    assert f'is ready; models: double:1; not served: {len(MISTAKES)}"' in last


def on_terminal(*arguments: str, until: str, columns: int = 80) -> str:
    """What a terminal without colours shows of a server, up to these words or its end."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
    environment = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "alipes", *arguments, *ports],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment | {"TERM": "dumb", "NO_COLOR": "1"},
    )
    os.close(theirs)
    shown = b""
    try:
        while until.encode() not in shown:
            shown += os.read(ours, 4096)
    except OSError:  # the process has ended
        pass
    finally:
        process.terminate()
        process.wait(60)
        os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_ends_with_addresses_and_what_to_type(tmp_path: Path) -> None:
    add_model(tmp_path, "double")
    write(tmp_path / "net", MISTAKES["plan"][0])
    arguments = ("serve", str(tmp_path), "--http-address=0.0.0.0", "--metrics-address=127.0.0.1")
    shown = on_terminal(*arguments, until=" alone.")
    table, _, block = shown.partition("\nalipes ")
    first, *rest = block.splitlines()
    assert first.endswith(" is ready")
    addresses = "\n".join(rest).strip().partition("\n\n")[0]
    assert [line.split(":")[0].split() for line in addresses.splitlines()] == [
        ["HTTP", "http"],
        ["gRPC", "grpc"],
        ["metrics", "http"],
    ]
    assert "http://localhost:" in block
    assert "  Try it:  curl localhost:" in block
    warned = " ".join(block.rpartition("\n\n")[2].split())
    assert warned.startswith("Anybody who reaches http://0.0.0.0 and grpc://0.0.0.0 can ask its models: --api-key ")
    assert "/v2/models/double" in block
    assert all(len(line) <= 80 for line in (*block.splitlines(), *table[table.index("┏") :].splitlines()))
    words = "".join(character for character in table if character not in "│ \n")
    assert "servetheONNXfilethatnet/1/model.planwasbuiltfrom" in words, "the table has the advice"
    assert "Started" not in shown


def test_a_terminal_sees_of_tritonserver_what_triton_says(tmp_path: Path) -> None:
    add_model(tmp_path, "double")
    shown = on_terminal("tritonserver", f"--model-repository={tmp_path}", until="Started Metrics")
    assert "Started HTTPService at 0.0.0.0:" in shown
    assert "is ready" not in shown


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        ([], "holds no model: put one at {models}/NAME/1/model.onnx (alipes help files)"),
        (["net.onnx"], "holds no model: move {models}/net.onnx to {models}/net/1/model.onnx: "),
        (["1/model.onnx"], "serve its parent: alipes serve {parent} (model repository '{models}' looks like the"),
        (["config.pbtxt", "1/x"], "serve its parent: alipes serve {parent} (model repository '{models}' looks like"),
    ],
)
def test_a_repository_without_models_says_what_is_missing(tmp_path: Path, paths: list[str], said: str) -> None:
    write(tmp_path / "models", paths)
    with ServerProcess(tmp_path / "models") as server:
        server.wait_for_output("alipes .* is ready; models: none")
        assert said.format(models=tmp_path / "models", parent=tmp_path) in server.output
        if paths[-1:] == ["1/model.onnx"]:
            assert index(server)["1"]["reason"] == (
                "serve the parent of 'models': it is no repository, but the folder of one model"
            )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("models/net/1/model.onnx", "serve the folder of its repository: alipes serve {root}/models "),
        (
            "net.bin",
            "net.bin is no file of a model: serve a folder of models, a program in Python (app.py), or a file ",
        ),
        ("modles", "did you mean {root}/models? failed to stat file {root}/modles"),
    ],
)
def test_a_path_that_is_no_repository_says_what_to_serve(tmp_path: Path, path: str, said: str) -> None:
    write(tmp_path / "models" / "net", ["1/model.onnx"])
    (tmp_path / "net.bin").write_text("no model")
    with ServerProcess(tmp_path / path) as server, pytest.raises(ServerDidNotStart) as failure:
        server.wait_until_started()
    assert failure.value.exit_code == 1
    assert " ".join(failure.value.output.split()).startswith(f"error: {said.format(root=tmp_path)}")


def test_tritonserver_keeps_tritons_words_for_an_absent_path(tmp_path: Path) -> None:
    with (
        ServerProcess(tmp_path / "nowhere", command="tritonserver") as server,
        pytest.raises(ServerDidNotStart) as failure,
    ):
        server.wait_until_started()
    assert failure.value.output == f"error: creating server: Internal - failed to stat file {tmp_path}/nowhere\n"


def test_the_recorded_release_hears_no_advice(tmp_path: Path) -> None:
    for name in ("flat", "plan"):
        write(tmp_path / name, MISTAKES[name][0])
    with ServerProcess(tmp_path, "--triton-release=2.51") as server:
        server.wait_for_output("alipes .* is ready")
        entries = index(server)
        assert entries["flat"] == {"name": "flat"}
        assert "export" not in entries["plan"]["reason"]
        assert "move flat/model.onnx to flat/1/model.onnx" in server.output


def test_a_load_on_request_is_refused_with_the_advice(tmp_path: Path) -> None:
    write(tmp_path / "net", MISTAKES["plan"][0])
    with ServerProcess(tmp_path, "--model-control-mode=explicit") as server:
        server.wait_until_started()
        address = f"http://{server.http}/v2/repository/models/net/load"
        with pytest.raises(urllib.error.HTTPError) as failure:
            urllib.request.urlopen(urllib.request.Request(address, data=b"{}", method="POST"), timeout=60)
        text = json.loads(failure.value.read())["error"]
    assert text.startswith("load failed for model 'net': version 1 is at UNAVAILABLE state: Unsupported: backend")
    assert text.endswith(
        "serve the ONNX file that net/1/model.plan was built from, as net/1/model.onnx (alipes help gpus): it "
        "is a TensorRT plan\n"
    )
