"""Starts that fail, and starts beside something that fails: one line, the right exit code, the others served."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from support.models import add_model
from support.server import ServerDidNotStart, ServerProcess

Serve = Callable[..., ServerProcess]


def status(address: str, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def refused(repository: Path | str, *flags: str, exit_code: int = 1) -> ServerDidNotStart:
    with ServerProcess(repository, *flags) as server, pytest.raises(ServerDidNotStart) as failure:
        server.wait_until_started()
    assert failure.value.exit_code == exit_code
    assert "Traceback" not in failure.value.output
    return failure.value


@pytest.mark.parametrize(("endpoint", "service"), [("http", "HTTP"), ("grpc", "GRPC"), ("metrics", "Metrics")])
def test_a_port_in_use_is_named_with_its_holder_before_any_load(repository: Path, endpoint: str, service: str) -> None:
    add_model(repository, "double")
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        output = refused(repository, f"--{endpoint}-port={port}").output
    mend, *reason = output.splitlines()
    assert mend.startswith("error: say --")
    assert f"or stop process {os.getpid()} (" in mend
    text = " ".join(" ".join(reason).split())
    assert text.startswith(f"port {port} of 127.0.0.1 is already in use, and {service} needs it")


def test_an_address_of_another_machine_is_named_behind_its_mend(repository: Path) -> None:
    mend, *seen = refused(repository, "--http-address=192.0.2.1").output.splitlines()
    assert mend == "error: say an address of this machine, such as --host 127.0.0.1"
    assert " ".join(seen).strip().startswith("HTTP cannot listen at 192.0.2.1: Cannot assign requested address")


def test_an_absent_repository_is_named(tmp_path: Path) -> None:
    output = " ".join(refused(tmp_path / "nowhere").output.split())
    said = f"there is no folder {tmp_path}/nowhere: make it, or name the one that holds the models"
    assert output == f"error: {said} failed to stat file {tmp_path}/nowhere"


def test_exit_on_error_names_an_absent_repository_in_tritons_words(repository: Path, tmp_path: Path) -> None:
    flags = [f"--model-repository={tmp_path / 'nowhere'}", "--exit-on-error=true"]
    output = refused(repository, *flags).output
    assert output == f"error: creating server: Internal - failed to stat file {tmp_path}/nowhere\n"


def test_what_is_there_is_served_beside_an_absent_repository(repository: Path, tmp_path: Path, serve: Serve) -> None:
    add_model(repository, "good")
    server = serve(repository, f"--model-repository={tmp_path / 'nowhere'}", "--exit-on-error=false")
    assert status(server.http, "/v2/health/ready") == 200
    assert status(server.http, "/v2/models/good/ready") == 200
    server.wait_for_output(f"failed to poll model repository '{tmp_path}/nowhere': failed to open directory")
    server.wait_for_output("the others are served; start the server again once it can be read")


def test_a_folder_that_holds_no_model_leaves_the_server_ready(repository: Path, serve: Serve) -> None:
    add_model(repository, "double")
    (repository / "never_exported").mkdir()
    server = serve(repository)
    assert status(server.http, "/v2/health/ready") == 200
    server.wait_for_output(f"folder '{repository}/never_exported' holds neither a configuration nor a version")


def test_a_repository_that_is_a_folder_of_one_model_is_reported(repository: Path, serve: Serve) -> None:
    server = serve(add_model(repository, "double"))
    server.wait_for_output(
        f"serve its parent: alipes serve {repository} .model repository '{repository}/double' looks like the folder"
    )
    output = refused(repository / "double", "--exit-on-error=true").output
    assert "looks like the folder of one model" in output


def test_the_log_names_the_model_nearest_to_a_misspelt_one(repository: Path, serve: Serve) -> None:
    add_model(repository, "double")
    server = serve(repository, "--model-control-mode=explicit", "--load-model=duoble")
    server.wait_for_output("failed to poll model 'duoble': model not found in any .* Did you mean 'double'")
    request = urllib.request.Request(f"http://{server.http}/v2/repository/models/doubel/load", data=b"", method="POST")
    with pytest.raises(urllib.error.HTTPError) as failure:
        urllib.request.urlopen(request, timeout=60)
    assert json.load(failure.value) == {"error": "failed to load 'doubel', failed to poll from model repository"}
    server.wait_for_output("failed to poll model 'doubel': model not found in any .* Did you mean 'double'")


def test_an_unknown_flag_is_named(repository: Path) -> None:
    output = refused(repository, "--no-such-flag", exit_code=2).output
    assert output.startswith("error: there is no flag --no-such-flag")


def test_a_broken_model_does_not_stop_the_others(repository: Path, serve: Serve) -> None:
    add_model(repository, "good")
    add_model(repository, "unreadable", config="{")
    add_model(repository, "no_versions", versions=(), config='backend: "onnxruntime"')
    folder = add_model(repository, "no_model")
    (folder / "1" / "model.onnx").write_bytes(b"not a model")
    server = serve(repository)
    assert status(server.http, "/v2/health/live") == 200
    assert status(server.http, "/v2/health/ready") == 400
    assert status(server.http, "/v2/models/good/ready") == 200
    request = urllib.request.Request(f"http://{server.http}/v2/repository/index", data=b"{}", method="POST")
    with urllib.request.urlopen(request, timeout=60) as answer:
        index = {entry["name"]: (entry["state"], entry.get("reason", "")) for entry in json.load(answer)}
    assert index["good"] == ("READY", "")
    for name, reason in (("unreadable", "config.pbtxt"), ("no_versions", "at least one version"), ("no_model", "")):
        assert index[name][0] == "UNAVAILABLE"
        assert reason in index[name][1]
        server.wait_for_output(rf"\| {name} +\| \S+ +\| UNAVAILABLE: \S")


def test_readiness_can_leave_broken_models_out(repository: Path, serve: Serve) -> None:
    add_model(repository, "unreadable", config="{")
    server = serve(repository, "--strict-readiness=false")
    assert status(server.http, "/v2/health/ready") == 200


def test_a_broken_model_ends_the_start_with_exit_on_error(repository: Path) -> None:
    add_model(repository, "good")
    add_model(repository, "bad", config="{")
    output = refused(repository, "--exit-on-error=true").output
    assert output.endswith("error: creating server: Internal - failed to load all models\n")


def test_without_onnxruntime_the_model_says_what_to_install(repository: Path, tmp_path: Path, serve: Serve) -> None:
    add_model(repository, "double")
    # A package of that name without a library hides the installed one.
    (tmp_path / "hides" / "onnxruntime").mkdir(parents=True)
    (tmp_path / "hides" / "onnxruntime" / "__init__.py").write_text("")
    paths = [str(tmp_path / "hides"), *filter(None, [os.environ.get("PYTHONPATH")])]
    server = serve(repository, environment={"PYTHONPATH": os.pathsep.join(paths)})
    server.wait_for_output(r"failed to load 'double' version 1: .*pip install --upgrade onnxruntime")


def test_a_model_in_two_repositories_is_served_from_neither(tmp_path: Path, serve: Serve) -> None:
    for name in ("one", "two"):
        add_model(tmp_path / name, "double")
    add_model(tmp_path / "two", "alone")
    server = serve(tmp_path / "one", f"--model-repository={tmp_path / 'two'}")
    assert status(server.http, "/v2/models/alone/ready") == 200
    assert status(server.http, "/v2/models/double/ready") == 404
    server.wait_for_output("failed to poll model 'double': not unique across all model repositories")


def test_a_terminal_sees_a_drawn_table(repository: Path) -> None:
    add_model(repository, "double")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "alipes", "serve", str(repository), "--http-address=127.0.0.1"]
    command += ["--grpc-address=127.0.0.1", "--http-port=0", "--grpc-port=0", "--metrics-port=0"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while b"Ctrl-C" not in shown:
            shown += os.read(ours, 4096)
    finally:
        process.terminate()
        process.wait(60)
        os.close(ours)
    assert "│ double".encode() in shown
    assert b"READY" in shown
