"""What the tour says of its load, and how it ends early."""

from __future__ import annotations

import signal
import socket

import numpy as np
import pytest
from alipes.loadtest import Posts
from alipes.quickstart.load import LoadResult, run
from support.load_windows import histogram, window


def test_figures_are_those_of_the_good_answers() -> None:
    result = LoadResult(8, window(latencies=histogram(1, 2, 3, 4), failures={"no": 3}, tester_cores=0.5))
    assert (result.window.rate, result.window.failed, result.client_busy) == (4, 3, 0.5)
    assert result.percentile_ms(50) == 2
    assert result.percentile_ms(100) == 4


def test_without_a_good_answer_there_is_no_latency() -> None:
    result = LoadResult(8, window(0))
    assert result.window.rate == 0
    assert np.isnan(result.percentile_ms(99))


def test_a_signal_stops_a_load_and_closes_its_connections() -> None:
    """The server never answers, so that only the signal can end the load."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        signals: list[float] = []
        connections: list[socket.socket] = []

        def interrupt(elapsed_s: float) -> None:
            if elapsed_s and not signals:
                connections.extend(server.accept()[0] for _ in range(2))
                signals.append(elapsed_s)
                signal.raise_signal(signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            run(f"{host}:{port}", Posts("/path", [b"request"]), seconds=60, connections=2, tick=interrupt)
        for connection in connections:
            with connection:
                connection.settimeout(60)
                received = b""
                while part := connection.recv(1024):
                    received += part
                assert received.startswith(b"POST /path HTTP/1.1")
