"""The system calls that move bytes, with their bytes, their process and their target."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from support.waiting import until

# Everything that moves a caller's bytes into or out of the kernel, or to another process.
_CALLS = (
    "read,readv,pread64,preadv,preadv2,write,writev,pwrite64,pwritev,pwritev2,"
    "recvfrom,recvmsg,recvmmsg,sendto,sendmsg,sendmmsg,process_vm_readv,process_vm_writev,"
    "splice,tee,vmsplice,sendfile,copy_file_range,io_uring_setup,mq_timedsend,mq_timedreceive,msgsnd,msgrcv"
)

# The whole of any buffer of these tests is printed.
_LONGEST = 4 << 20


@dataclass(frozen=True)
class Call:
    """One system call.

    Attributes:
        process: Which of the traced processes made it.
        name: Its name.
        target: The meaning of its first argument, as in ``<TCP:[127.0.0.1:8000->127.0.0.1:40000]>``.
        text: All of it, bytes included.
    """

    process: int
    name: str
    target: str
    text: str


class Tracer:
    """strace on running processes. A context manager: leaving it lets them go."""

    def __init__(self, output: Path, *processes: int) -> None:
        """Returns once every process is traced.

        Raises:
            pytest.skip.Exception: If strace is not here or may not trace.
        """
        strace = shutil.which("strace")
        if strace is None:
            pytest.skip("strace is not installed: apt-get install strace")
        self._processes = processes
        self._output = output
        attach = [part for process in processes for part in ("-p", str(process))]
        options = ["-f", "-qqq", "-yy", "-s", str(_LONGEST), "-e", f"trace={_CALLS}", "-e", "signal=none"]
        self._strace = subprocess.Popen(
            [strace, *options, "-o", str(output), *attach], stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        until(lambda: self._traces() or self._strace.poll() is not None)
        if self._strace.poll() is not None:
            assert self._strace.stderr is not None
            pytest.skip(f"strace may not trace here: {self._strace.stderr.read().strip()}")

    def _traces(self) -> bool:
        threads = [thread for process in self._processes for thread in Path(f"/proc/{process}/task").iterdir()]
        return all(self._is_traced(thread) for thread in threads)

    def _is_traced(self, thread: Path) -> bool:
        try:
            return f"TracerPid:\t{self._strace.pid}\n" in (thread / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            return True

    def __enter__(self) -> Self:
        self._owners = {
            int(thread.name): process
            for process in self._processes
            for thread in Path(f"/proc/{process}/task").iterdir()
        }
        return self

    def __exit__(self, *_: object) -> None:
        if self._strace.poll() is None:
            self._strace.send_signal(signal.SIGINT)
        self._strace.wait(60)
        if self._strace.stderr is not None:
            self._strace.stderr.close()

    def calls(self) -> list[Call]:
        """All calls, once tracing has ended. Threads that began meanwhile count as process 0."""
        found = []
        # Where another thread called in the middle of a call, its end stands on a line of its own, without its target.
        begun: dict[str, str] = {}
        for line in self._output.read_text(errors="replace").splitlines():
            match = re.match(r"(\d+) +(?:<\.\.\. )?(\w+)(?: resumed>|\((\d+(<.*?>)?)?)", line)
            if match:
                thread, name, _, target = match.groups()
                if line.endswith("<unfinished ...>"):
                    begun[thread] = target or ""
                elif " resumed>" in match[0]:
                    target = begun.pop(thread, "")
                found.append(Call(self._owners.get(int(thread), 0), name, target or "", line))
        return found
