"""What is made of the process that completes a configuration, however it ends."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alipes.backends.python import completion
from alipes.backends.python.completion import ask_model
from alipes.errors import ModelLoadError
from support.waiting import until

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Asks a script that is run in the place of a worker's: ``question`` and ``answer`` are paths in it."""

    def run(script: str, timeout_s: float = 60, variables: dict[str, str] | None = None) -> dict[str, Any]:
        program = tmp_path / "program.py"
        head = "import json, os, pathlib, signal, subprocess, sys, time\n_, option, question, answer = sys.argv\n"
        program.write_text(f"{head}def say(value): pathlib.Path(answer).write_text(json.dumps(value))\n{script}")
        return ask_model([sys.executable, str(program)], variables or {}, {"model_name": "m", "more": 1}, timeout_s)

    return run


def failure_of(ask: Ask, script: str, **more: Any) -> str:
    with pytest.raises(ModelLoadError) as failure:
        ask(script, **more)
    return failure.value.reason


def test_the_process_reads_its_setup(ask: Ask) -> None:
    assert ask("say({'answer': json.loads(pathlib.Path(question).read_text()) | {'option': option}})") == {
        "model_name": "m",
        "more": 1,
        "option": "--complete",
    }


def test_the_process_has_its_environment_and_knows_its_server(ask: Ask) -> None:
    environment = ask("say({'answer': dict(os.environ)})", variables={"COLOUR": "blue"})
    assert environment["COLOUR"] == "blue"
    assert environment["ALIPES_SERVER_PID"] == str(os.getpid())
    assert environment["HOME"] == os.environ["HOME"]


def test_the_models_own_error_is_the_reason(ask: Ask) -> None:
    assert failure_of(ask, "say({'error': 'ValueError: no'})") == "Internal: ValueError: no"


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ("sys.exit(3)", "ended with exit code 3 and gave no answer"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL and gave no answer"),
        ("os.kill(os.getpid(), signal.SIGRTMIN + 1)", "was killed by signal 35 and gave no answer"),
        ("pathlib.Path(answer).write_text('{')", "ended with exit code 0 and gave no answer"),
        ("pathlib.Path(answer).write_text('[' * 100000)", "ended with exit code 0 and gave no answer"),
        ("say([])", "gave an answer of another form"),
        ("say({'answer': 1})", "gave an answer of another form"),
    ],
)
def test_a_process_without_a_good_answer_is_described_by_its_end(ask: Ask, script: str, how: str) -> None:
    text = failure_of(ask, script)
    assert text.startswith(f"Internal: the process that completes the configuration of model 'm' {how}")


def test_an_endless_answer_is_refused(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "MAX_COMPLETION_BYTES", 1000)
    assert "answered more than 1000 bytes" in failure_of(ask, "say({'answer': {'a': 'b' * 1000}})")


def test_a_model_that_takes_too_long_is_killed_with_all_that_it_started(ask: Ask, tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = f"""
inner = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
place = pathlib.Path({str(child)!r})
place.with_suffix('.part').write_text(str(inner.pid))
place.with_suffix('.part').rename(place)
time.sleep(600)
"""
    for timeout_s in (2.0, 20.0):
        text = failure_of(ask, script, timeout_s=timeout_s)
        expected = f"Internal: auto_complete_config of model 'm' did not end within {timeout_s:g} s; --backend-config="
        assert text.startswith(expected)
        if child.exists():
            break  # else the machine was so busy that nothing had been started yet
    wait_until_gone(int(child.read_text()))


def test_what_the_model_started_ends_with_the_answer(ask: Ask) -> None:
    inner = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    wait_until_gone(ask(f"say({{'answer': {{'pid': {inner}.pid}}}})")["pid"])


def test_an_interpreter_that_cannot_be_run_is_named() -> None:
    with pytest.raises(ModelLoadError, match="cannot run /nowhere/python: No such file or directory"):
        ask_model(["/nowhere/python"], {}, {"model_name": "m"}, 0)


def test_nothing_stays_open(ask: Ask) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    ask("say({'answer': {}})")
    failure_of(ask, "sys.exit(1)")
    # What other tests of this process have left is closed whenever it may be.
    until(lambda: set(Path("/proc/self/fd").iterdir()) <= before, "something stays open")


def wait_until_gone(pid: int) -> None:
    """Waits until a process has ended; whoever inherited it may take a moment to reap it."""
    state = Path(f"/proc/{pid}/stat")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if state.read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} is still there: {json.dumps(state.read_text())}")
