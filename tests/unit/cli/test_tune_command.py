"""What `alipes tune` and `alipes model_analyzer` read."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.cli.app import run


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--search=guess"], 2, "give --search as quick, brute or optuna"),
        (["--try=instances=one"], 2, "write --try KNOB=1,2,4"),
        (["--try=instances"], 2, "write --try KNOB=1,2,4"),
        (["--objective=rate:much"], 2, "write --objective FIGURE"),
        (["--objective=speed"], 2, "no figure 'speed'"),
        (["--limit=p99_ms=3"], 1, "is no limit: expected p99_ms<=20"),
        (["--objective=cost"], 1, "needs the price of a server-hour: give it, --server-hour"),
        (
            ["--objective=cost_per_hour", "--server-hour=1"],
            1,
            "needs the demand, in inferences per second: give it, --d",
        ),
        (["--shape=x"], 2, "write --shape INPUT:D,D"),
        ([], 1, "there is no model 'm'"),
    ],
)
def test_a_wrong_option_says_what_to_write(
    words: list[str], code: int, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["tune", str(tmp_path), "--model=m", f"--output={tmp_path / 'out'}", *words]) == code
    assert text in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_model_has_to_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tune", str(tmp_path)]) == 2
    assert "--model" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tune", str(tmp_path / "none"), "--model=m", f"--output={tmp_path / 'out'}"]) == 1
    assert "error: there is no folder" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "missing"),
    [(["--profile-models=m"], "model_repository"), (["--model-repository=x"], "profile_models")],
)
def test_model_analyzer_names_what_is_missing(
    words: list[str], missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["model_analyzer", "profile", *words]) == 1
    shown = " ".join(capsys.readouterr().err.split())
    assert f"option '{missing}' is not given" in shown
    assert f"give --{missing.replace('_', '-')}" in shown
