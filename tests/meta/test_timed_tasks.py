"""Whatever runs on the event loops of the network threads has its turns timed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CRATES = Path(__file__).parents[2] / "crates"

# Crates of the server, any of which may start a task on a network thread.
SERVER = [
    *("driver-ensemble", "driver-native", "driver-streaming", "driver-worker", "grpc", "http", "net", "request"),
    *("runtime", "server", "service", "shared-memory", "stats"),
]

# What is started: a future that is timed, a closure or function of a thread, or a process.
TIMED = ("timed(", "RunQueue::open().serve()")
OTHERS = ("move ||", "||", "load)", "work)", "submit)", "watch)", "command)", ")")
STARTED = re.compile(r"\bspawn\(\s*([^;]{0,40})")


def untimed(code: str) -> list[str]:
    """What code starts without having its turns timed; comments and tests do not count."""
    code = re.split(r"^#\[cfg\(test\)\]\n(?:pub )?mod \w+ \{", code, maxsplit=1, flags=re.M)[0]
    started = STARTED.findall(re.sub(r"//.*", "", code))
    declared = re.findall(r"fn spawn\(\s*([^;]{0,40})", code)
    return [what for what in started if what not in declared and not what.startswith(TIMED + OTHERS)]


@pytest.mark.parametrize("crate", SERVER)
def test_every_task_of_a_network_thread_is_timed(crate: str) -> None:
    files = sorted((CRATES / crate / "src").rglob("*.rs"))
    found = {str(file.relative_to(CRATES)): untimed(file.read_text(encoding="utf-8")) for file in files}
    assert {file: started for file, started in found.items() if started} == {}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("tokio::spawn(timed(Task::Call, call));", []),
        ("tokio::spawn(async move { work().await });", ["async move { work().await })"]),
        ("reactor.spawn(\n    supervise(worker),\n);", ["supervise(worker),\n)"]),
        ("builder.spawn(move || run())?;", []),
        ("// tokio::spawn(call)", []),
    ],
)
def test_the_search_finds_tasks_and_no_threads(code: str, expected: list[str]) -> None:
    assert untimed(code) == expected
