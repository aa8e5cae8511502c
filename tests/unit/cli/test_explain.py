"""`alipes config explain`: each value with where it comes from."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from alipes.cli.explain import explain, leaves
from alipes.config.pbtxt import parse_pbtxt
from rich.console import Console
from support.models import add_model


def explained(*arguments: str) -> list[list[str]]:
    """The cells of each row that was printed."""
    out = StringIO()
    assert explain(arguments, Console(file=out, width=200)) == 0
    return [[cell.strip() for cell in line.strip("│┃ ").split("│")] for line in out.getvalue().splitlines()]


def test_options_are_shown_with_their_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALIPES_GRPC_PORT", "9001")
    rows = explained("--http-port=9000")
    assert ["--http-port", "9000", "flag"] in rows
    assert ["--grpc-port", "9001", "environment"] in rows
    assert ["--metrics-port", "8002", "default"] in rows


def test_values_of_a_model_are_shown_with_their_origin(repository: Path) -> None:
    folder = add_model(repository, "m", config='backend: "onnxruntime"\nmax_batch_size: 8')
    rows = explained(str(folder))
    assert ["max_batch_size", "8", "file"] in rows
    assert ["name", "m", "auto-completed"] in rows
    assert ["input[0].name", "X", "auto-completed"] in rows
    assert ["input[0].data_type", "TYPE_FP32", "auto-completed"] in rows
    assert ["version_policy.latest.num_versions", "1", "default"] in rows


def test_flags_count_for_a_model_too(repository: Path) -> None:
    folder = add_model(repository, "m")
    assert ["max_batch_size", "4", "auto-completed"] in explained(str(folder))
    assert ["max_batch_size", "16", "auto-completed"] in explained(
        str(folder), "--backend-config=default-max-batch-size=16"
    )


def test_an_error_in_a_model_is_one_line(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = add_model(repository, "m", config="max_batch_sise: 8")
    assert explain([str(folder)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert "max_batch_size" in line


def test_a_model_without_versions_is_an_error(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = add_model(repository, "m", versions=(), config='backend: "onnxruntime"')
    assert explain([str(folder)]) == 1
    assert "at least one version must be available" in capsys.readouterr().err


def test_leaves_name_every_value_that_is_set() -> None:
    message = parse_pbtxt(
        'input { name: "X" data_type: TYPE_FP32 dims: [ 2, -1 ] reshape { shape: [ ] } }\n'
        'parameters { key: "k" value { string_value: "v" } }\n'
        "dynamic_batching { preserve_ordering: true }"
    )
    assert dict(leaves(message)) == {
        "input[0].name": "X",
        "input[0].data_type": "TYPE_FP32",
        "input[0].dims": "[2, -1]",
        "input[0].reshape": "{}",
        "parameters[k].string_value": "v",
        "dynamic_batching.preserve_ordering": "true",
    }


def test_flags_without_a_repository_are_explained_too() -> None:
    rows = explained("--http-port", "9000")
    assert ["--model-repository", "", "default"] in rows
    assert ["--http-port", "9000", "flag"] in rows


def test_a_wrong_flag_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(["--http-prot=1"]) == 2
    assert "did you mean --http-port?" in capsys.readouterr().err


def test_a_folder_that_is_absent_is_named_with_the_nearest(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_model(repository, "double")
    assert explain([str(repository / "duoble")]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "did you mean" in printed.err
    assert f"there is no folder {repository / 'duoble'}" in " ".join(printed.err.split())
    assert f"alipes explain {repository / 'duoble'}" in printed.err


def test_values_of_a_file_are_shown_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("alipes.toml").write_text('repository = "models"\nport = 9000\n', encoding="utf-8")
    rows = explained("--grpc-port=7")
    assert ["--model-repository", "models", "file alipes.toml"] in rows
    assert ["--http-port", "9000", "file alipes.toml"] in rows
    assert ["--grpc-port", "7", "flag"] in rows


def test_the_help_page_says_which_explain_is_which(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(["-h"]) == 0
    out = capsys.readouterr().out
    assert "alipes explain MODEL" in out
    assert max(map(len, out.splitlines())) <= 80
