"""Who listens on a port, and what a server that needs it says."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alipes.cli.port_holder import port_holder
from alipes.cli.start_mistakes import start_mistake
from alipes.config.load import parse_flags
from alipes.errors import ServerStartError


@pytest.fixture
def busy() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def mend(port: int, *flags: str, service: str = "HTTP") -> list[str]:
    error = ServerStartError(
        f"failed to start {service} service: Unavailable - Socket '127.0.0.1:{port}' already in use "
    )
    return start_mistake(parse_flags(["models", *flags], {}), error).splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone says who listens")
def test_the_process_that_listens_is_found(busy: int) -> None:
    holder = port_holder(busy)
    assert holder is not None
    assert holder.pid == os.getpid()
    assert holder.name == Path("/proc/self/comm").read_text(encoding="utf-8").strip()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone says who listens")
def test_a_port_that_is_connected_from_is_nobodys(busy: int) -> None:
    with socket.create_connection(("127.0.0.1", busy)) as client:
        assert port_holder(client.getsockname()[1]) is None


def test_where_the_system_tells_nothing_nobody_is_found(busy: int, tmp_path: Path) -> None:
    assert port_holder(busy, tmp_path) is None


def test_a_usual_port_in_use_is_answered_with_three_free_ones(busy: int) -> None:
    first, *rest = mend(busy)
    match = re.fullmatch(rf"say --port (\d+), or stop process {os.getpid()} \(.+\)", first)
    assert match is not None
    port = int(match[1])
    assert " ".join(" ".join(rest).split()) == (
        f"port {busy} of 127.0.0.1 is already in use, and HTTP needs it; "
        f"gRPC and metrics follow at {port + 1} and {port + 2}"
    )


def test_a_port_that_a_flag_names_is_answered_with_another_for_it(busy: int) -> None:
    first, reason = mend(busy, f"--grpc-port={busy}", service="GRPC")
    assert re.fullmatch(r"say --grpc-port \d+, or stop process \d+ \(.+\)", first)
    assert reason.strip() == f"port {busy} of 127.0.0.1 is already in use, and GRPC needs it"


def test_other_errors_of_a_start_stay_as_they_are() -> None:
    options = parse_flags(["models"], {})
    text = "creating server: Internal - failed to load all models"
    assert start_mistake(options, ServerStartError(text)) == text
