"""The log's lines, as scripts read them."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from alipes.config.record_options import LogOptions
from alipes.server.log import LONGEST_MESSAGE, change, configure, log, log_table, reopen


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "log"
    for handler in log.handlers[:]:
        log.removeHandler(handler)
        handler.close()


def options(file: Path, **changes: object) -> LogOptions:
    values = {"verbose_level": 0, "info": True, "warning": True, "error": True, "format": "default", "file": str(file)}
    return LogOptions(**(values | changes))  # type: ignore[arg-type]


def test_default_line_has_level_time_process_place_and_message(file: Path) -> None:
    configure(options(file))
    log.info("Started %s at %s", "HTTPService", "0.0.0.0:8000")
    pattern = (
        rf'I\d{{4}} \d\d:\d\d:\d\d\.\d{{6}} {os.getpid()} test_log\.py:\d+\] "Started HTTPService at 0\.0\.0\.0:8000"\n'
    )
    assert re.fullmatch(pattern, file.read_text())


def test_iso_line_has_the_time_first(file: Path) -> None:
    configure(options(file, format="ISO8601"))
    log.warning("careful")
    pattern = rf'\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ W {os.getpid()} test_log\.py:\d+\] "careful"\n'
    assert re.fullmatch(pattern, file.read_text())


def test_json_line_is_a_document_with_the_time_in_microseconds(file: Path) -> None:
    configure(options(file, format="JSON"))
    log.warning('careful\n"%s"', "é", extra={"request_id": "7", "model": "m"})
    (line,) = file.read_text().splitlines()
    document = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", document.pop("time"))
    assert isinstance(document.pop("line"), int)
    assert document == {
        "level": "warning",
        "pid": os.getpid(),
        "file": "test_log.py",
        "message": 'careful\n"é"',
        "model": "m",
        "request_id": "7",
    }


def test_in_json_a_table_is_a_document_for_each_row(file: Path) -> None:
    configure(options(file, format="JSON"))
    log_table("+--+\n|  |\n+--+", [{"message": "m is READY", "model": "m"}, {"message": "x", "reason": "a\nb"}])
    first, second = (json.loads(line) for line in file.read_text().splitlines())
    assert (first["message"], first["model"], first["level"]) == ("m is READY", "m", "info")
    assert (second["message"], second["reason"]) == ("x", "a\nb")


def test_in_json_a_record_has_further_fields(file: Path) -> None:
    configure(options(file, format="JSON"))
    log.info("over", extra={"fields": {"status": 200}})
    assert json.loads(file.read_text())["status"] == 200


def test_in_json_a_traceback_stays_on_the_line(file: Path) -> None:
    configure(options(file, format="JSON"))
    try:
        raise ValueError("inner")
    except ValueError:
        log.exception("it failed")
    (traceback,) = (json.loads(line) for line in file.read_text().splitlines())
    assert (traceback["level"], "ValueError: inner" in traceback["message"]) == ("error", True)


def test_levels_and_form_change_while_the_file_stays(file: Path) -> None:
    configure(options(file))
    log.debug("before")
    change(options(Path("elsewhere"), verbose_level=1, info=False, format="JSON"))
    log.debug("detail")
    log.info("silent")
    change(options(Path("elsewhere")))
    log.debug("after")
    log.info("last")
    detail, last = file.read_text().splitlines()
    assert json.loads(detail)["message"] == "detail"
    assert last.endswith('] "last"')


def test_time_is_that_of_the_record(file: Path) -> None:
    configure(options(file))
    record = logging.LogRecord("alipes", logging.ERROR, "a.py", 1, "x", None, None)
    record.created = 1_700_000_000.25
    log.handle(record)
    assert file.read_text().startswith("E1114 22:13:20.250000 ")


def test_quotes_and_line_ends_are_escaped_so_that_a_message_is_one_line(file: Path) -> None:
    configure(options(file))
    message = 'invalid value "FP32"\nfor é'
    log.error(message)
    (line,) = file.read_text().splitlines()
    assert json.loads(line.split("] ", 1)[1]) == message
    assert "é" in line


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, ["info", "warning", "error"]),
        ({"verbose_level": 1}, ["verbose", "info", "warning", "error"]),
        ({"info": False}, ["warning", "error"]),
        ({"warning": False}, ["info", "error"]),
        ({"error": False}, ["info", "warning"]),
    ],
)
def test_each_level_has_its_own_switch(file: Path, changes: dict[str, object], shown: list[str]) -> None:
    configure(options(file, **changes))
    log.debug("verbose")
    log.info("info")
    log.warning("warning")
    log.error("error")
    assert re.findall(r'"(\w+)"', file.read_text()) == shown


def test_a_table_follows_its_line_as_it_is(file: Path) -> None:
    configure(options(file))
    log_table('+--+\n| "|\n+--+', [])
    first, *rest = file.read_text().splitlines()
    assert first.endswith("] ")
    assert rest == ["+--+", '| "|', "+--+", ""]


def test_a_traceback_is_lines_that_look_like_no_records(file: Path) -> None:
    configure(options(file))
    try:
        raise ValueError('in\x1bner\nI0520 20:03:25.829575 1 server.py:41] "forged"')
    except ValueError:
        log.exception("it failed")
    first, *others = file.read_text().splitlines()
    start, message = first.split("] ", 1)
    assert json.loads(message) == "it failed"
    assert [line.startswith(f"{start}]   ") for line in others] == [True] * len(others)
    trace = [line.removeprefix(f"{start}]   ") for line in others]
    assert trace[0] == "Traceback (most recent call last):"
    assert trace[1].startswith(f'  File "{__file__}", line ')
    assert trace[-2:] == ["ValueError: in\\u001bner", 'I0520 20:03:25.829575 1 server.py:41] "forged"']


def test_the_log_goes_on_in_a_new_file_once_the_old_one_is_moved(file: Path) -> None:
    configure(options(file))
    log.info("one")
    reopen()  # nobody has moved it: nothing of it is lost
    log.info("two")
    old = file.rename(file.with_suffix(".old"))
    log.info("three")
    reopen()
    log.info("four")
    texts = [[line.rsplit(" ", 1)[1] for line in one.read_text().splitlines()] for one in (old, file)]
    assert texts == [['"one"', '"two"', '"three"'], ['"four"']]


def test_a_log_that_cannot_be_opened_again_goes_on_in_its_old_file(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    configure(options(folder / "log"))
    moved = folder.rename(tmp_path / "old")
    with pytest.raises(OSError):
        reopen()
    log.info("still here")
    assert '"still here"' in (moved / "log").read_text()


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        configure(options(tmp_path / "nowhere" / "log"))


@pytest.mark.parametrize("format", ["default", "JSON"])
def test_a_message_of_megabytes_is_cut(file: Path, format: str) -> None:
    configure(options(file, format=format))
    log.error("failed to load '%s'", "x" * 5_000_000)
    (line,) = file.read_text().splitlines()
    assert len(line) < LONGEST_MESSAGE + 300
    assert "... (5000017 characters in all)" in line


@pytest.mark.parametrize("format", ["default", "JSON"])
def test_odd_bytes_are_spelled_out(file: Path, format: str) -> None:
    configure(options(file, format=format))
    log.info("caf\u00e9 %s", "\udcff")
    assert "caf\u00e9 \\\\udcff" in file.read_text()
