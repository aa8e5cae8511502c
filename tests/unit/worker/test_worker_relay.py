"""A worker in short supply of descriptors or threads, and the processes that it forks: a process of its own each."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# A worker whose link repeats the name of a call.
WORKER = """
import os
import resource
import sys
import threading
import time
from alipes.worker.current import current
from alipes.worker.relay import Relay


class Link:
    def call(self, name, question):
        return name + question


def forked(task):
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_NOFILE, (HARD, HARD))
        try:
            said = str(task())
        except Exception as error:
            said = str(error)
        print(said, flush=True)
        os._exit(0)
    return child


def call():
    return current.link.call("a", "b")


def limit(descriptors):
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, HARD))


HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
current.link = Link()
Relay(current.link).watch()
"""

# The thread may have taken a descriptor for the connection that it waits for: only the second one is refused for sure.
NO_DESCRIPTORS = """
os.waitpid(forked(call), 0)
limit(3)
waiting = [forked(call), forked(call)]
time.sleep(0.3)
limit(HARD)
for child in waiting:
    os.waitpid(child, 0)
"""

NO_THREADS = """
os.waitpid(forked(call), 0)
threading.stack_size(1 << 47)
os.waitpid(forked(call), 0)
threading.stack_size(0)
os.waitpid(forked(call), 0)
"""

NO_FIRST_THREAD = """
threading.stack_size(1 << 47)
os.waitpid(forked(call), 0)
threading.stack_size(0)
os.waitpid(forked(call), 0)
"""

OTHER_USER = """
def leave():
    os.setuid(65534)
    return call()

os.waitpid(forked(leave), 0)
os.waitpid(forked(call), 0)
"""

# An object that goes while a call is written, as the garbage collector may have it.
RELEASE_WITHIN_A_CALL = """
class Last(str):
    def __reduce__(self):
        current.link.call("metric.delete", "1")
        return str, ("b",)

released = []
Link.call = lambda self, name, question: released.append(question) or " ".join([name, *released])

def release():
    return current.link.call("a", Last()) + ", " + current.link.call("c", "d")

os.waitpid(forked(release), 0)
"""

GONE = "The server does not answer calls any more."


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (NO_DESCRIPTORS, ["ab", "ab", "ab"]),
        (NO_THREADS, ["ab", GONE, "ab"]),
        (NO_FIRST_THREAD, [GONE, "ab"]),
        pytest.param(OTHER_USER, [GONE, "ab"], marks=pytest.mark.skipif(os.geteuid() != 0, reason="changes its user")),
        (RELEASE_WITHIN_A_CALL, ["a b, c b 1 d"]),
    ],
    ids=["no descriptors", "no threads", "no first thread", "other user", "release within a call"],
)
def test_forked_processes_get_an_answer_or_an_error(script: str, said: list[str]) -> None:
    command = [sys.executable, "-c", WORKER + script]
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert run.stdout.splitlines() == said, run.stderr
