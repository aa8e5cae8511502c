"""A program may import the package in a thread that ends: what other threads do later does not depend on it."""

from __future__ import annotations

import os
import subprocess
import sys

from support.waiting import TIMEOUT_S

PROGRAM = """
from concurrent.futures import ThreadPoolExecutor

def make(_):
    from alipes._core import ClientLink

    return [ClientLink(f"127.0.0.1:{port}", "http") for port in range(1, 200)]

for _ in range(5):
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(make, range(4)))
print(sum(map(len, made)))
"""


def test_the_importing_thread_may_end_before_the_others() -> None:
    environment = os.environ | {"PYTHONFAULTHANDLER": "1"}
    command = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (ended.returncode, ended.stdout) == (0, "796\n"), ended.stderr
