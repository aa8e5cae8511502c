"""Typical mistakes on the command line, as a person reads them: at 80 columns, in a pipe, with and without colour."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from alipes.cli.mistakes import fold
from support.command import alipes

# What is typed -> the mend that the first line names.
MISTAKES = {
    "": "name a folder of models: alipes serve FOLDER",
    "models --prot 1": "did you mean --port / --http-port?",
    "models --http-prot=1": "did you mean --http-port?",
    "models --http-port abc": "--http-port takes a number from 0 to 65535, not 'abc'",
    "models --http-port 70000": "--http-port takes a number from 0 to 65535, not '70000'",
    "models --http-port": "--http-port takes a value, such as --http-port 8000",
    "models --port 65535": "--port takes a number from 0 to 65533, not '65535'",
    "models -p 9000": "did you mean --port?",
    "models -port 9000": "did you mean --port / --http-port?",
    "models --host localhost:9000": "say --host localhost --port 9000",
    "models 127.0.0.1:9361": "say --host 127.0.0.1 --port 9361 a word by itself is a folder of models",
    "models [::1]:9361": "say --host ::1 --port 9361",
    "models :9361": "say --host 0.0.0.0 --port 9361",
    "models --allow-grpc maybe": "say --allow-grpc=true or --allow-grpc=false 'maybe' behind --allow-grpc is neither",
    "models --allow-grpc=maybe": "--allow-grpc takes true or false, not 'maybe'",
    "models --hsot localhost": "did you mean --host / --http-address?",
    "models --log-format yaml": "--log-format takes one of default, ISO8601, JSON, not 'yaml'",
    "models --model-control-mode=pol": "--model-control-mode takes one of none, poll, explicit, not 'pol'; did you",
    "models --log-level debug": "-v says more, -vv still more, -q less",
    "models --model-path models": "name the folder of models by itself: alipes serve FOLDER",
    "models --workers 4": "a function says @alipes.model(instances=4), and a folder's config.pbtxt",
    "models --no-allow-metrics": "say --allow-metrics=false",
    "models --load-model digits": "add --model-control-mode=explicit",
    "models --grpc-port 8000": "give one of them another port",
    "models --http-use-ssl": "--http-use-ssl needs --http-server-cert",
    "models --allow-sagemaker": "leave --allow-sagemaker out",
    "models --config nope.toml": "the configuration file nope.toml cannot be read",
    "models --backend-config x": "--backend-config",
    "models --exit-grace-secs soon": "--exit-grace-secs takes seconds, such as 30 or 0.5, not 'soon'",
}


def typed(words: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {name: text for name, text in os.environ.items() if not name.startswith("ALIPES_")} | variables
    command = [sys.executable, "-m", "alipes", *words.split()]
    return subprocess.run(command, capture_output=True, text=True, env=environ, cwd=folder, check=False)


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_answered_with_its_mend_in_four_lines(words: str, tmp_path: Path) -> None:
    done = alipes("serve", *words.split(), folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    lines = done.err.splitlines()
    assert len(lines) <= 4
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("error: ")
    assert done.message.startswith(f"error: {MISTAKES[words]}")
    assert "Traceback" not in done.err
    assert "\033" not in done.err
    assert "Usage" not in done.err


@pytest.mark.parametrize(
    ("words", "mend", "code"),
    [
        ("serve mdoels", "did you mean models?", 1),
        ("serve hdfs://host/model", "copy it to this machine with `hdfs dfs -get`, and serve that folder", 1),
        ("serve modelscope://a/b", "download it with `modelscope download --local_dir FOLDER`, and serve", 1),
        ("serve https://host/models.git", "clone it, and serve that folder; with Git LFS, run `git lfs pull`", 1),
        ("serve digits.h5", "save the model of it as MODELS/digits/1/model.keras, with Keras", 1),
        ("serve models --host 999.1.1.1", "say an address of this machine, such as --host 127.0.0.1\n", 1),
        ("serve models --host 192.0.2.1", "say an address of this machine, such as --host 127.0.0.1\n", 1),
        ("serve file:///nope", "there is no folder /nope: make it, or name the one that holds the models\n", 1),
        ("serve azure://x/y", "say az://CONTAINER/FOLDER (pip install 'alipes[azure]')", 1),
        ("launch mdoels", "did you mean", 1),
        ("launch nothing.py", "there is no file nothing.py; alipes init writes a first app\n", 1),
        ("serve digist.h5", "did you mean digits.h5?\n", 1),
        ("serve digits", "did you mean digits.h5?\n", 1),
        ("serve other.onnx", "there is no file other.onnx: name one that is there\n", 1),
        ("serve huggingface.co/owner/name", "say hf://owner/name\n", 1),
        ("serve notes.ipynb", "call alipes.Server(function) in the notebook, or move its function into", 1),
        ("serve data.csv", "data.csv is no file of a model: serve a folder of models, a program in\n", 1),
        ("serve applicatoin.py", "did you mean application.py? There is no file applicatoin.py\n", 1),
        ("launch elsewhere", "name a folder of models\n", 1),
        ("stop", "name the handle that alipes launch wrote; Ctrl-C ends alipes serve\n", 1),
        ("-x", "there is no option -x; alipes --help lists them", 2),
        ("monitor -x", "there is no option -x; alipes monitor --help lists them", 2),
        ("monitor --rate 0", "--rate takes a number from 0.01 on; see\n", 2),
        ("monitor --rate 2000", "--rate takes a number up to 1000; see\n", 2),
        ("monitor --rate often", "--rate takes a number; see\n", 2),
        ("monitor --http-port a", "--http-port takes a whole number; see\n", 2),
        ("sreve models", "did you mean alipes serve?", 2),
        ("./models", "to serve a folder, type", 2),
        ("launch models --prot 1", "did you mean --port / --http-port?", 2),
        ("config explain mdoels", "did you mean models?", 1),
        ("config explain --prot", "did you mean --port / --http-port?", 2),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(words: str, mend: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for name in ("digits.h5", "notes.ipynb", "data.csv", "application.py"):
        (tmp_path / name).touch()
    run = typed(words, tmp_path)
    assert run.returncode == code
    assert run.stderr.startswith(f"error: {mend}")
    assert len(run.stderr.splitlines()) <= 4
    paths = str(tmp_path)  # stay whole, so that they can be copied
    assert max(len(line) for line in run.stderr.splitlines() if paths not in line) <= 80


def test_a_folder_of_the_usual_name_is_offered(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    first = typed("serve", tmp_path).stderr.splitlines()[0]
    assert first == "error: did you mean alipes serve models?"


def test_a_mistake_in_a_file_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "alipes.toml").write_text('repository = "models"\nhttp_prot = 9000\n', encoding="utf-8")
    run = typed("serve", tmp_path)
    assert run.returncode == 2
    assert run.stderr.startswith("error: alipes.toml:2: did you mean http-port? There is no key")


def test_long_commands_and_paths_stay_whole() -> None:
    path = "/a/folder/" + "with/many/others/in/it/" * 5
    assert fold(f"error: type\nalipes serve {path} {path}").splitlines() == [
        "error: type",
        f"  alipes serve {path} {path}",
    ]
    many = "\n".join([f"did you mean {path}?", f"there is no {path} here", f"alipes serve {path}"])
    assert len(fold(many).splitlines()) == 3
