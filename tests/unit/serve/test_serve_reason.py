"""Why a server ended, from its log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from alipes.serve.reason import not_found, reason

START = 'I1122 00:25:58.992666 1 server.py:195] "loading: a:1"'
FAILED = "failed to load 'a' version 1: Internal: it is no ONNX"
ERROR = f'E1122 00:25:58.992667 1 builder.py:225] "{FAILED}"'
ISO_ERROR = f'2024-05-20T20:03:25Z E 1 builder.py:225] "{FAILED}"'
JSON_ERROR = json.dumps({"time": "now", "level": "error", "file": "builder.py", "message": FAILED})
TABLE = "+---+\n| a |\n+---+\n"
LEFT = "error: creating server: Internal - failed to load all models"
LEFT_TOLD = "creating server: Internal - failed to load all models"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], ""),
        ([LEFT], LEFT_TOLD),
        ([START, ERROR, TABLE, LEFT], f"{FAILED}\n{LEFT_TOLD}"),
        ([START, ISO_ERROR, LEFT], f"{FAILED}\n{LEFT_TOLD}"),
        ([JSON_ERROR, '{"level": "info", "message": "+-+"}', LEFT], f"{FAILED}\n{LEFT_TOLD}"),
        (["Usage: alipes serve", "  --a", "", 'Bad option: "--b".', "unrecognized option"], None),
        ([START, ERROR, ERROR], FAILED),
        ([START], START),
        (["1", "2", "3", "4"], "2\n3\n4"),
        (['{"no": json', LEFT], f'{{"no": json\n{LEFT_TOLD}'),
    ],
)
def test_a_reason_is_the_errors_at_the_end_of_a_log(log: Path, lines: list[str], told: str | None) -> None:
    log.write_text("\n".join(lines))
    assert reason(log) == ('Bad option: "--b".\nunrecognized option' if told is None else told)


def test_a_traceback_becomes_its_first_line_and_its_last(log: Path) -> None:
    message = "failed to load 'a' version 1:\nTraceback (most recent call last):\n  File\nValueError: no weights"
    log.write_text(f"E1122 00:25:58.992667 1 builder.py:225] {json.dumps(message)}\n")
    assert reason(log) == "failed to load 'a' version 1: ValueError: no weights"


def test_a_reason_is_short(log: Path) -> None:
    log.write_text(
        "".join(f"E1122 00:25:58.9 1 a.py:2] {json.dumps(f'{number} ' + 9999 * 'x')}\n" for number in range(9))
    )
    assert len(reason(log).splitlines()) == 3
    assert len(reason(log)) < 1500


def test_a_log_that_is_not_there_has_no_reason(log: Path) -> None:
    assert reason(log) == ""
    assert not_found(log) == ()


def test_models_that_a_start_did_not_find_are_read_from_the_log(log: Path) -> None:
    told = "failed to poll model 'nope': model not found in any model repository."
    log.write_text(f'{START}\nE1122 00:25:58.9 1 reader.py:44] "{told}"\n{ERROR}\n')
    assert not_found(log) == (told,)
