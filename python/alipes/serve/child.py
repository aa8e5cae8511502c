"""Becomes a command, in the place of this process: `python -m alipes.serve.child with PID WORDS...`.

`with PID` asks the kernel to end the command when its parent does: a script that is killed leaves no server behind.
`apart LOG WORDS...` starts the command apart from everything, prints its process id and ends: a detached server belongs
to no session. The interpreter does this itself since code between fork and exec may not, in a process with threads.
"""

from __future__ import annotations

import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def become(parent: int, words: list[str]) -> None:
    """Replaces this process by the command, which gets SIGTERM when the parent's thread that started it has ended."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it ended before the line above took effect
            os._exit(1)
    os.execvp(words[0], words)


def apart(log: str, words: list[str]) -> None:
    """Starts the command in a session of its own, its output in a file, and prints its process id."""
    import subprocess

    with open(log, "ab") as output:  # noqa: PTH123  # a process that starts another imports as little as it can
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    print(process.pid, flush=True)
    os._exit(0)  # what is started apart is not waited for


if __name__ == "__main__":
    how, argument, *command = sys.argv[1:]
    if how == "with":
        become(int(argument), command)
    else:
        apart(argument, command)
