"""The log's lines, as scripts read them."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from alipes.config.options import LogOptions
from alipes.server.log import configure, log, log_table


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
    log_table('+--+\n| "|\n+--+')
    first, *rest = file.read_text().splitlines()
    assert first.endswith("] ")
    assert rest == ["+--+", '| "|', "+--+", ""]


def test_a_traceback_stays_on_the_line(file: Path) -> None:
    configure(options(file))
    try:
        raise ValueError("inner")
    except ValueError:
        log.exception("it failed")
    (line,) = file.read_text().splitlines()
    assert "ValueError: inner" in json.loads(line.split("] ", 1)[1])


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        configure(options(tmp_path / "nowhere" / "log"))
