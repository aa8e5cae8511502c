"""How a script with attached models ends: by itself, an exception, Ctrl-C or SIGKILL. Its server ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alipes import AlipesError, Client, InferError, NotReady, TransportError
from alipes.client import Retry
from alipes.process_folder import sweep
from support.attached import numbers
from support.processes import assert_none_stays, is_gone, memory_files, shared_memory_files
from support.waiting import TIMEOUT_S, until

TESTS = Path(__file__).parents[2]

# A script whose model waits for a file before it answers, and notes each request that it has begun.
HEAD = """
import os, signal, sys, threading, time
from pathlib import Path

sys.path.insert(0, {tests!r})
from support.attached import answer, attach, attached, first_input

FOLDER = Path({folder!r})


def slow(requests):
    (FOLDER / "begun").touch()
    while not (FOLDER / "go").exists():
        time.sleep(0.002)
    return [answer(2 * first_input(request)) for request in requests]


def quick(requests):
    return [answer(2 * first_input(request)) for request in requests]


class Tidy:
    execute = staticmethod(quick)

    def finalize(self):
        (FOLDER / "finalized").touch()


def say(attachment):
    print(attachment.server.pid, attachment.grpc_url, flush=True)
"""


class Script:
    """A running script, which has told its server's process and address."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        assert process.stdout is not None
        server, self.address = process.stdout.readline().split()
        self.process, self.folder, self.server = process, folder, int(server)

    def wait(self) -> int:
        """Its exit status, once it has ended; its server has ended too."""
        status = self.process.wait(TIMEOUT_S)
        until(lambda: is_gone(self.server), "the server outlives its script")
        return status

    def begun(self) -> None:
        """Returns once the slow model executes a request."""
        until((self.folder / "begun").exists)

    def go(self) -> None:
        """Lets the slow model answer."""
        (self.folder / "go").touch()


Run = Callable[[str], Script]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Runs a script in a session of its own; what it says of the server stands before its end."""
    processes: list[subprocess.Popen[str]] = []

    def start(text: str) -> Script:
        head = HEAD.format(tests=str(TESTS), folder=str(tmp_path))
        words = [sys.executable, "-c", head + textwrap.dedent(text)]
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        processes.append(process)
        return Script(process, tmp_path)

    yield start
    for process in processes:
        process.kill()
        process.communicate()


WAITING = """
with attach(attached("slow", slow), attached("quick", Tidy())) as attachment:
    say(attachment)
    attachment.wait()
"""


def infer(script: Script, model: str, value: float = 1) -> list[float]:
    with Client(script.address, timeout_s=TIMEOUT_S, retry=Retry(times=0)) as client:
        found: list[float] = client.infer(model, numbers(value)).tolist()
        return found


def test_a_killed_script_takes_its_server_with_it(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    before = shared_memory_files()
    script = run(WAITING)
    names = sorted(path.name.rpartition("-")[0] for path in temporary.iterdir())
    assert names == ["alipes-attached", "alipes-serve"]
    assert infer(script, "quick") == [2]
    script.process.kill()
    assert script.wait() == -signal.SIGKILL
    assert memory_files(script.server) == []
    assert_none_stays(before)
    sweep()  # as whoever makes such a folder next
    assert list(temporary.iterdir()) == []


def test_requests_fail_with_one_error_when_their_script_is_killed(run: Run) -> None:
    script = run(WAITING)
    with ThreadPoolExecutor(3) as pool:
        executing = pool.submit(infer, script, "slow")
        script.begun()
        waiting = [pool.submit(infer, script, "slow") for _ in range(2)]
        script.process.kill()
        with pytest.raises(NotReady, match="attached worker 'slow_0_0' was let go of by the script") as failure:
            executing.result(TIMEOUT_S)
        assert "while it was executing this request" in str(failure.value)
        for request in waiting:
            # Unless it came when the server was gone.
            with pytest.raises((NotReady, TransportError)) as waited:
                request.result(TIMEOUT_S)
            assert isinstance(waited.value, TransportError) or "is gone" in str(waited.value)
    script.wait()


def test_ctrl_c_answers_what_is_executed_and_ends_both(run: Run) -> None:
    script = run(WAITING)
    with ThreadPoolExecutor(1) as pool:
        executing = pool.submit(infer, script, "slow", 21)
        script.begun()
        os.killpg(script.process.pid, signal.SIGINT)  # a terminal signals the whole group
        with pytest.raises(AlipesError):
            until_refused(script)
        script.go()
        assert executing.result(TIMEOUT_S) == [42]
    # A KeyboardInterrupt that nobody catches.
    assert script.wait() == -signal.SIGINT
    assert (script.folder / "finalized").exists()
    _, errors = script.process.communicate()
    assert "KeyboardInterrupt" in errors


def until_refused(script: Script) -> None:
    """Asks until the server refuses: it drains."""
    while infer(script, "quick"):
        pass


def test_a_script_that_raises_ends_its_server(run: Run) -> None:
    script = run("""
        with attach(attached("quick", Tidy())) as attachment:
            say(attachment)
            raise LookupError("something else went wrong")
    """)
    assert script.wait() == 1
    assert (script.folder / "finalized").exists()


def test_a_script_that_ends_without_a_stop_ends_its_server(run: Run) -> None:
    script = run("""
        attachment = attach(attached("quick", Tidy())).start()
        say(attachment)
    """)
    assert script.wait() == 0
    assert (script.folder / "finalized").exists()


@pytest.mark.slow("the end of a script waits five seconds for its callables")
def test_a_callable_that_never_returns_keeps_nobody_from_leaving(run: Run) -> None:
    script = run("""
        attachment = attach(attached("slow", slow), timeout=60, exit_timeout_secs=1).start()
        say(attachment)
        while not (FOLDER / "begun").exists():
            time.sleep(0.002)
    """)
    with ThreadPoolExecutor(1) as pool:
        executing = pool.submit(infer, script, "slow")
        assert script.wait() == 0
        with pytest.raises(InferError):
            executing.result(TIMEOUT_S)


def test_a_script_that_stands_still_holds_up_its_requests_alone(run: Run) -> None:
    script = run(WAITING)
    os.kill(script.process.pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(infer, script, "quick", 4)
        with Client(script.address, timeout_s=TIMEOUT_S) as client:
            assert client.is_live()
        assert not waiting.done()
        os.kill(script.process.pid, signal.SIGCONT)
        assert waiting.result(TIMEOUT_S) == [8]


def test_a_child_that_outlives_the_script_keeps_no_server(run: Run) -> None:
    script = run("""
        with attach(attached("slow", slow)) as attachment:
            child = os.fork()
            if child == 0:
                time.sleep(600)
                os._exit(0)
            (FOLDER / "child").write_text(str(child))
            say(attachment)
            attachment.wait()
    """)
    child = int((script.folder / "child").read_text())
    try:
        with ThreadPoolExecutor(1) as pool:
            executing = pool.submit(infer, script, "slow")
            script.begun()
            script.process.kill()
            # The child would hold the lifeline, were it not closed there.
            with pytest.raises(NotReady, match="was let go of by the script"):
                executing.result(TIMEOUT_S)
        assert script.wait() == -signal.SIGKILL
        assert not is_gone(child)
        assert memory_files(script.server) == []
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_server_that_is_killed_leaves_the_script_running(run: Run) -> None:
    script = run("""
        with attach(attached("quick", Tidy())) as attachment:
            say(attachment)
            attachment.wait()
            print("it has ended", attachment.is_running, flush=True)
    """)
    os.kill(script.server, signal.SIGKILL)
    assert script.process.wait(TIMEOUT_S) == 0
    output, _ = script.process.communicate()
    assert output == "it has ended False\n"
    assert (script.folder / "finalized").exists()
