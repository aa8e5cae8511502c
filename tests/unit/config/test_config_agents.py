"""Repository agents: what is compared before a model is taken up, and in which words it is refused."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from alipes.config.load import parse_flags
from alipes.config.options import ServerOptions
from alipes.config.override import parse_override
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.poll import poll_model
from alipes.errors import ConfigError

MODEL = b"what a model file holds"
SUM = hashlib.md5(MODEL).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.onnx").write_bytes(MODEL)
    return tmp_path / "m"


@pytest.fixture
def options() -> ServerOptions:
    return parse_flags(["models"], {})


def agent(key: str, value: str = SUM, name: str = "checksum") -> str:
    return (
        'backend: "onnxruntime" model_repository_agents { agents [ '
        f'{{ name: "{name}" parameters {{ key: "{key}" value: "{value}" }} }} ] }}'
    )


@pytest.mark.parametrize("key", ["MD5:1/model.onnx", "md5:1/model.onnx", "MD5:/1/model.onnx", "MD5:./1//model.onnx"])
def test_a_file_with_the_sum_that_is_expected_is_loaded(folder: Path, options: ServerOptions, key: str) -> None:
    assert poll_model(folder, "m", options, parse_pbtxt(agent(key))).name == "m"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("MD5:1/absent", "failed to open text file for read 1/absent: No such file or directory"),
        ("MD5:1", "failed to open text file for read 1: it is no regular file"),
        ("MD5:", "failed to open text file for read : it is no regular file"),
        ("1/model.onnx", "failed to parse key: 1/model.onnx"),
        ("SHA256:1/model.onnx", "Unsupported checksum algorithm: SHA256"),
        (":1/model.onnx", "Unsupported checksum algorithm: "),
    ],
)
def test_a_file_that_cannot_be_compared_is_refused(folder: Path, options: ServerOptions, key: str, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        poll_model(folder, "m", options, parse_pbtxt(agent(key)))
    assert str(refused.value) == text


@pytest.mark.parametrize("expected", ["0" * 32, "", SUM.upper(), f" {SUM}"])
def test_another_sum_is_refused_with_both(folder: Path, options: ServerOptions, expected: str) -> None:
    with pytest.raises(ConfigError) as refused:
        poll_model(folder, "m", options, parse_pbtxt(agent("MD5:1/model.onnx", expected)))
    assert str(refused.value) == f"Mismatched MD5 hash for file 1/model.onnx, expect: {expected}, got: {SUM}"


@pytest.mark.parametrize("path", ["../other", "1/../../other", "/../other"])
def test_no_file_outside_of_the_folder_is_looked_at(folder: Path, options: ServerOptions, path: str) -> None:
    (folder.parent / "other").write_bytes(MODEL)
    with pytest.raises(ConfigError, match="must name a file inside the model's folder"):
        poll_model(folder, "m", options, parse_pbtxt(agent(f"MD5:{path}")))


def test_a_pipe_is_not_waited_for(folder: Path, options: ServerOptions) -> None:
    os.mkfifo(folder / "1" / "pipe")
    with pytest.raises(ConfigError, match="it is no regular file"):
        poll_model(folder, "m", options, parse_pbtxt(agent("MD5:1/pipe")))


def test_sums_are_compared_before_anything_else_is(folder: Path, options: ServerOptions) -> None:
    with pytest.raises(ConfigError, match="Mismatched MD5"):
        poll_model(folder, "m", options, parse_pbtxt('name: "another" ' + agent("MD5:1/model.onnx", "0")))


def test_the_sums_of_an_override_count_in_place_of_the_files(folder: Path, options: ServerOptions) -> None:
    (folder / "config.pbtxt").write_text(agent("MD5:1/model.onnx", "0"))
    with pytest.raises(ConfigError, match="Mismatched MD5"):
        poll_model(folder, "m", options)
    text = '{"model_repository_agents": {"agents": [{"name": "checksum", "parameters": {"MD5:1/model.onnx": "%s"}}]}}'
    assert poll_model(folder, "m", options, parse_override(text % SUM)).name == "m"
    with pytest.raises(ConfigError, match="Mismatched MD5"):
        poll_model(folder, "m", options, parse_override(text % "0"))


def test_another_agent_is_refused_by_name(folder: Path, options: ServerOptions) -> None:
    with pytest.raises(ConfigError, match=r"unable to find 'libtritonrepoagent_decrypt.so' for repo agent 'decrypt'"):
        poll_model(folder, "m", options, parse_pbtxt(agent("key", name="decrypt")))
