"""Failures that nobody reads are told once, and answers that nobody reads do not fill the memory."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.client import InferenceClient
from alipes.errors import InferError, Overloaded
from support.scripted import ScriptedServer, each, refused, twice
from support.waiting import TIMEOUT_S, until


def odd_ones_fail(requests: Iterator[Any]) -> Iterator[Any]:
    """Every second request is refused."""
    for at, request in enumerate(requests):
        yield refused(request, f"request {at} broke") if at % 2 else twice(request)


def number(n: float) -> np.ndarray[Any, Any]:
    return np.full((1, 1), n, np.float32)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings of clients so far."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "alipes.client" and record.levelno == logging.WARNING
    ]


def test_failures_that_nobody_reads_are_logged_when_the_block_ends(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedServer(odd_ones_fail) as server:
        with InferenceClient(server.address, "m") as client:
            for n in range(6):
                client.infer(number(n))
        assert told(caplog) == [
            "model 'm': 3 requests failed, not read yet (get() raises it); the first: Internal: request 1 broke"
        ]
        # It can still be read, and is told once.
        assert len(client.get(until_empty=True)) == 1
        with pytest.raises(InferError, match="request 1 broke"):
            client.get(until_empty=True)
        client.close()
    assert len(told(caplog)) == 1


def test_a_callback_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def look(y: Any, request_id: int, sequence_id: None) -> None:
        if request_id == 2:
            raise KeyError("no such bin")

    with (
        ScriptedServer(odd_ones_fail) as server,
        InferenceClient(server.address, "m", callback=look) as client,
    ):
        for n in range(4):
            client.infer(number(n))
    [line] = told(caplog)
    assert "2 requests failed and the callback raised 1 time, not read yet" in line
    assert "the first: Internal: request 1 broke" in line


def test_failures_that_were_read_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedServer(odd_ones_fail) as server, InferenceClient(server.address, "m") as client:
        client.infer(number(0))
        client.infer(number(1))
        assert client.get(timeout_s=TIMEOUT_S) is not None
        with pytest.raises(InferError):
            client.get(timeout_s=TIMEOUT_S)
        futures = [client.submit(number(n)) for n in (2, 3)]
        assert futures[1].exception(TIMEOUT_S) is not None
        del futures
        gc.collect()
    assert told(caplog) == []


def test_a_failed_future_that_is_dropped_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedServer(odd_ones_fail) as server, InferenceClient(server.address, "m") as client:
        kept = [client.submit(number(n)) for n in range(4)]
        until(lambda: all(future.done() for future in kept), "all are answered")
        del kept[1]
        gc.collect()
    [line] = told(caplog)
    assert "1 request failed" in line
    assert "request 1 broke" in line
    caplog.clear()
    # After the end it is told at once.
    kept.clear()
    gc.collect()
    assert [line.split(";")[0] for line in told(caplog)] == ["model 'm': 1 request failed, not read"]


def test_a_client_that_is_used_again_tells_its_failures_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedServer(odd_ones_fail) as server:
        client = InferenceClient(server.address, "m")
        for _ in range(2):
            with client:
                kept = [client.submit(number(n)) for n in range(4)]
                until(lambda kept=kept: all(future.done() for future in kept), "all are answered")
                kept.clear()
                gc.collect()
                assert told(caplog) == []
            assert ["2 requests failed" in line for line in told(caplog)] == [True]
            caplog.clear()


def test_what_a_cancelled_client_drops_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedServer(odd_ones_fail) as server:
        client = InferenceClient(server.address, "m")
        for n in range(4):
            client.infer(number(n))
        client.drain(TIMEOUT_S)
        client.cancel()
    assert "2 requests failed, not read and dropped" in told(caplog)[0]


def test_a_script_that_never_reads_gets_a_line_at_its_end(tmp_path: Path) -> None:
    with ScriptedServer(odd_ones_fail) as server:
        script = tmp_path / "script.py"
        script.write_text(
            textwrap.dedent(
                f"""
                import numpy as np
                from alipes.client import InferenceClient
                client = InferenceClient("{server.address}", "m")
                for n in range(4):
                    client.infer(np.full((1, 1), n, np.float32))
                future = client.submit(np.zeros((1, 1), np.float32))
                other = client.submit(np.zeros((1, 1), np.float32))
                client.drain()
                """
            )
        )
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == "model 'm': 3 requests failed, not read; the first: Internal: request 1 broke\n"


def test_answers_that_nobody_reads_are_bounded_and_none_is_lost() -> None:
    with ScriptedServer(each) as server, InferenceClient(server.address, "m", max_unread_bytes=4096) as client:
        sent = 0
        with pytest.raises(Overloaded, match=r"responses of model \"m\" are unread .*this request was not sent"):
            while True:
                client.infer(number(sent))
                sent += 1
                client.drain(TIMEOUT_S)
        assert sent == len(server.requests)
        # A future's answer lies in nobody's way.
        assert client.submit(number(1)).result(TIMEOUT_S)[0, 0] == 2
        assert [y[0, 0] for y, _, _ in client.get(until_empty=True)] == [2 * n for n in range(sent)]
        client.infer(number(7))
        assert client.get(timeout_s=TIMEOUT_S)[0][0, 0] == 14


def test_unread_answers_are_unbounded_without_a_limit() -> None:
    with ScriptedServer(each) as server, InferenceClient(server.address, "m", max_unread_bytes=None) as client:
        for n in range(100):
            client.infer(number(n))
        client.drain(TIMEOUT_S)
        assert client.callback_q.unread_bytes > 100 * 4
        client.get(until_empty=True)
        assert client.callback_q.unread_bytes == 0
