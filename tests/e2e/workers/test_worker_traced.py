"""No socket, pipe or copy between processes carries a tensor's bytes: the system calls of both sides are looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.endpoints import ENDPOINTS
from support.processes import workers_of
from support.python_models import ECHO, add_python_model
from support.server import ServerProcess
from support.tracing import Tracer

Start = Callable[..., ServerProcess]

# 64 KiB that no system call carries by chance: 4,096 numbered lines, and what the model makes of them.
LINES = 4096
EXPECTED = "".join(f"asked-bytes-{number:04}" for number in range(LINES)).encode()
ANSWERED = EXPECTED.replace(b"asked", b"ASKED")

SHOUTS = ECHO.replace(
    "answer(Y=given(request))",
    "answer(Y=np.frombuffer(given(request).tobytes().replace(b'asked', b'ASKED'), np.uint8))",
)


@pytest.mark.parametrize("protocol", ENDPOINTS)
def test_tensors_reach_the_worker_by_no_system_call(
    repository: Path, start: Start, tmp_path: Path, protocol: str
) -> None:
    add_python_model(repository, "shouts", SHOUTS, signature="X: UINT8[-1] -> Y: UINT8[-1]")
    server = start()
    (worker,) = workers_of(server)
    with ENDPOINTS[protocol](server) as endpoint:
        endpoint.ask("shouts", {"X": np.frombuffer(EXPECTED, np.uint8)})  # connects, and starts what is started once
        with Tracer(tmp_path / "trace", server.process.pid, worker.pid) as tracer:
            reply = endpoint.ask("shouts", {"X": np.frombuffer(EXPECTED, np.uint8)})
        assert reply["Y"].tobytes() == ANSWERED
    calls = tracer.calls()
    carried = [call for call in calls if "asked-bytes-" in call.text or "ASKED-bytes-" in call.text]
    # The trace sees what it should: the request comes in and the answer goes out, both by the client's connection.
    # Where one call ends and the next begins, a line may be cut in two.
    for line in ("asked-bytes-", "ASKED-bytes-"):
        assert sum(call.text.count(line) for call in carried) > LINES / 2
    assert {call.process for call in carried} == {server.process.pid}
    assert not [call.text[:200] for call in carried if not call.target.startswith("<TCP")]
    # Nor is there any other channel between the two: the worker neither reads nor writes more than a doorbell's eight
    # bytes at a time.
    assert not [call.text[:200] for call in calls if call.process == worker.pid and len(call.text) > 200]
