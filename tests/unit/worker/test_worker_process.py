"""What a worker owes the machine, seen from outside."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PRELUDE = "import os, signal, subprocess, sys, threading\nfrom alipes.worker import process\n"


class Script:
    """A Python program that tells what it does line by line."""

    def __init__(self, code: str, *, environment: dict[str, str] | None = None, inherit: tuple[int, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
            pass_fds=inherit,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def end(self) -> tuple[int, str]:
        """Status and errors, once it has ended."""
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


@pytest.fixture
def run() -> Iterator[type[Script]]:
    made: list[Script] = []

    class HeldScript(Script):
        def __init__(self, *arguments: str, **more: object) -> None:
            super().__init__(*arguments, **more)  # type: ignore[arg-type]
            made.append(self)

    yield HeldScript
    for script in made:
        script.process.kill()
        script.process.communicate()


def wait_for_end(pid: int) -> None:
    """Waits until a process that is no child of ours is gone."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        os.waitid(os.P_PIDFD, watched, os.WEXITED)
    except ChildProcessError:
        import select

        assert select.select([watched], [], [], 30)[0], f"process {pid} is still there"
    finally:
        os.close(watched)


def test_a_worker_ends_with_its_server(run: type[Script]) -> None:
    child = f"{PRELUDE}process.end_with(os.getppid(), 'x')\nprint(os.getpid(), flush=True)\nsignal.pause()"
    server = run(
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE, text=True)\n"
        "print(child.stdout.readline(), end='', flush=True)\nsignal.pause()"
    )
    pid = int(server.line())
    server.process.kill()
    wait_for_end(pid)


def test_a_worker_whose_server_is_gone_leaves_at_once(run: type[Script]) -> None:
    script = run(f"process.end_with({os.getpid() + 1}, 'x')\nprint('alive')")
    assert script.line() == ""
    status, errors = script.end()
    assert status == 1
    assert f"the server, process {os.getpid() + 1}, is gone (the parent is process {os.getpid()}): leaving" in errors


def test_a_worker_carries_its_name(run: type[Script]) -> None:
    script = run("process.end_with(None, 'alipes:a_very_long_name_0_0')\nprint(open('/proc/self/comm').read())")
    assert script.line() == "alipes:a_very_l"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_left_to_the_server(run: type[Script], number: signal.Signals) -> None:
    script = run("process.leave_signals()\nprint('ready', flush=True)\nprint(sys.stdin.readline(), end='', flush=True)")
    assert script.line() == "ready"
    script.process.send_signal(number)
    assert script.process.stdin is not None
    script.process.stdin.write("still here\n")
    script.process.stdin.flush()
    assert script.line() == "still here"
    assert script.end()[0] == 0


def test_programs_of_the_model_can_be_stopped(run: type[Script]) -> None:
    script = run(
        "process.leave_signals()\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; print(1, flush=True); signal.pause()'],"
        " stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\nchild.terminate()\nprint(child.wait(30), flush=True)"
    )
    assert script.line() == str(-signal.SIGTERM)


def test_forked_children_of_the_model_can_be_stopped(run: type[Script]) -> None:
    script = run(
        "process.leave_signals()\nread, write = os.pipe()\nchild = os.fork()\n"
        "if child == 0:\n    os.write(write, b'.')\n    signal.pause()\n"
        "os.read(read, 1)\nos.kill(child, signal.SIGTERM)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)"
    )
    assert script.line() == str(-signal.SIGTERM)


def test_programs_of_the_model_do_not_inherit_the_link(run: type[Script], tmp_path: Path) -> None:
    with (tmp_path / "link").open("w") as link:
        number = link.fileno()
        look = f"import os; print(os.path.exists('/proc/self/fd/{number}'))"
        script = run(
            f"print(os.path.exists('/proc/self/fd/{number}'), flush=True)\nprocess.keep_descriptors({number})\n"
            f"print(subprocess.check_output([sys.executable, '-c', {look!r}], close_fds=False, text=True))",
            inherit=(number,),
        )
        assert script.line() == "True"
        assert script.line() == "False"


def test_printed_lines_arrive_at_once(run: type[Script]) -> None:
    script = run("process.show_output()\nprint('now')\nsys.stdin.readline()")
    assert script.line() == "now"


def test_a_line_is_written_in_one_piece() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)  # one message for each write
    with ours, theirs:
        code = PRELUDE + "process.show_output()\nprint('one', 'line')\nprint('two', 'lines', file=sys.stderr)"
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        subprocess.run([sys.executable, "-c", code], stdout=theirs, stderr=theirs, env=environment, check=True)
        assert ours.recv(100) == b"one line\n"
        assert ours.recv(100) == b"two lines\n"


def test_a_fatal_fault_tells_its_place(run: type[Script]) -> None:
    script = run("process.show_output()\ndef execute():\n    os.kill(os.getpid(), signal.SIGSEGV)\nexecute()")
    status, errors = script.end()
    assert status == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in errors
    assert "in execute" in errors


def test_exit_handlers_run_and_the_status_stays(run: type[Script]) -> None:
    script = run("leaving = process.Leaving()\nimport atexit\natexit.register(print, 'handled')\nleaving.now(7)")
    assert script.line() == "handled"
    assert script.end()[0] == 7


def test_a_main_function_that_raises_ends_with_status_one(run: type[Script]) -> None:
    script = run("process.Leaving()\nraise RuntimeError('broken')")
    status, errors = script.end()
    assert status == 1
    assert "RuntimeError: broken" in errors


def test_threads_of_the_model_do_not_keep_the_process(run: type[Script]) -> None:
    script = run(
        "process.LEAVE_WITHIN_S = 0.1\nleaving = process.Leaving()\n"
        "threading.Thread(target=threading.Event().wait).start()\nleaving.now(0)"
    )
    assert script.end()[0] == 0


def test_a_forked_child_may_end_as_it_likes(run: type[Script]) -> None:
    script = run(
        "process.Leaving()\nchild = os.fork()\nif child == 0:\n    sys.exit(5)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)"
    )
    assert script.line() == "5"
