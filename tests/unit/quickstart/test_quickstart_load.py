import signal
import socket

import numpy as np
import pytest
from alipes.errors import TransportError
from alipes.quickstart.load import LoadResult, answer_length, http_request, run

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello"


def test_an_answer_is_as_long_as_its_head_says() -> None:
    assert answer_length(ANSWER) == len(ANSWER)
    assert answer_length(ANSWER + ANSWER) == len(ANSWER)
    assert answer_length(ANSWER.replace(b"Content-Length", b"content-length")) == len(ANSWER)


def test_an_unfinished_head_has_no_length_yet() -> None:
    end_of_head = ANSWER.index(b"\r\n\r\n") + 4
    assert {answer_length(ANSWER[:size]) for size in range(end_of_head)} == {None}
    assert answer_length(ANSWER[:end_of_head]) == len(ANSWER)


def test_an_answer_without_a_length_is_refused() -> None:
    with pytest.raises(TransportError, match="Content-Length"):
        answer_length(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")


def test_a_request_says_how_long_its_body_is() -> None:
    head, body = http_request("127.0.0.1:8000", "/v2/models/digits/infer", b"{} ").split(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"POST /v2/models/digits/infer HTTP/1.1"
    assert b"Content-Length: 3" in head.split(b"\r\n")
    assert body == b"{} "


def test_figures_are_those_of_the_good_answers() -> None:
    result = LoadResult(8, 2.0, 3, 0.5, np.array([1_000_000, 2_000_000, 3_000_000, 4_000_000]))
    assert result.per_second == 2.0
    assert result.percentile_ms(50) == pytest.approx(2.5)
    assert result.percentile_ms(100) == pytest.approx(4.0)


def test_without_a_good_answer_there_is_no_latency() -> None:
    result = LoadResult(8, 2.0, 3, 0.5, np.array([], np.int64))
    assert result.per_second == 0
    assert np.isnan(result.percentile_ms(99))


def test_a_signal_stops_a_load_and_closes_its_connections() -> None:
    """The server never answers, so that only the signal can end the load."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
        signals: list[float] = []

        def interrupt(elapsed_s: float) -> None:
            if not signals:
                signals.append(elapsed_s)
                signal.raise_signal(signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            run(f"{host}:{port}", [b"request"], seconds=60, connections=2, tick=interrupt)
        for _ in range(2):
            with server.accept()[0] as connection:
                connection.settimeout(60)
                assert connection.recv(64) == b"request"
                assert connection.recv(64) == b""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
