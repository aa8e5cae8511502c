"""What the load tools print is read as it is meant, and failures among successes are not overlooked."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from bench.load import h2load, stream, wrk
from bench.load.tool import LoadFailed, Measurement, run
from bench.work import JSON, STREAM, work

PRINTED = """\
finished in 1.50s, {rate} req/s, 6.59MB/s
requests: 1500 total, 1564 started, 1500 done, {succeeded} succeeded, {failed} failed, 0 errored, 0 timeout
status codes: 1500 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 9.89MB (10368988) total, 467.93KB (479160) headers (space savings 95.77%), 5.17MB ({data}) data
"""


def _printed(rate: str = "1000.00", succeeded: int = 1500, failed: int = 0, data: int = 51000) -> str:
    return PRINTED.format(rate=rate, succeeded=succeeded, failed=failed, data=data)


def test_h2load_figures() -> None:
    assert h2load._figures(_printed(), answer_bytes=34) == (1500, 1000.0)


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        (_printed(failed=1), "1 failures"),
        (_printed(succeeded=0), "0 successes"),
        # A gRPC error has status 200 and no body.
        (_printed(data=0), "0 bytes in 1500 answers"),
        ("usage: h2load", "printed no"),
    ],
)
def test_h2load_failures_are_noticed(printed: str, message: str) -> None:
    with pytest.raises(LoadFailed, match=message):
        h2load._figures(printed, answer_bytes=34)


def test_h2load_percentiles_are_those_of_the_third_column(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"{index}\t200\t{100 + index}\n" for index in range(101)))
    median, percentile_99 = h2load._percentiles(log)
    assert median == 150
    assert percentile_99 == pytest.approx(199, abs=1)


def _wrk(printed: str, monkeypatch: pytest.MonkeyPatch) -> Measurement:
    monkeypatch.setattr(wrk, "run", lambda command, duration_s, interrupt: printed)
    return wrk.get(1, "/", 1, 1.0)


def test_wrk_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    line = 'FIGURES {"requests": 300, "duration_us": 1500000, "p50_us": 20, "p99_us": 90, "errors": 0}'
    measurement = _wrk(f"Running\n{line}\n", monkeypatch)
    assert measurement == Measurement(requests=300, duration_s=1.5, p50_us=20, p99_us=90)
    assert measurement.rate == 200


@pytest.mark.parametrize(("requests", "errors"), [(300, 1), (0, 0)])
def test_wrk_failures_are_noticed(requests: int, errors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    line = f'FIGURES {{"requests": {requests}, "duration_us": 1, "p50_us": 1, "p99_us": 1, "errors": {errors}}}'
    with pytest.raises(LoadFailed, match=f"{errors} errors in {requests} requests"):
        _wrk(f"{line}\n", monkeypatch)


@pytest.mark.parametrize(("encrypted", "scheme"), [(False, "http"), (True, "https")])
def test_wrk_is_sent_to_an_encrypted_port_as_to_any_other(
    encrypted: bool, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    line = 'FIGURES {"requests": 1, "duration_us": 1, "p50_us": 1, "p99_us": 1, "errors": 0}\n'
    monkeypatch.setattr(wrk, "run", lambda command, duration_s, interrupt: commands.append(command) or line)
    wrk.post(8000, work("mlp", JSON), 2, 1.0, encrypted=encrypted)
    assert f"{scheme}://127.0.0.1:8000/v2/models/mlp/infer" in commands[0]


def test_figures_of_a_stream_are_those_of_its_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = '{"requests": 30, "duration_us": 1500000, "p50_us": 20, "p99_us": 90}'
    monkeypatch.setattr(stream, "run", lambda command, duration_s, interrupt: printed)
    measurement = stream.post(1, work("counts", STREAM), 1, 1.5)
    assert measurement == Measurement(requests=30, duration_s=1.5, p50_us=20, p99_us=90)


@pytest.mark.parametrize(("sequences", "report"), [(0, []), (10, ["10"])])
def test_the_stream_tool_gets_the_number_of_sequences(
    sequences: int, report: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    printed = '{"requests": 30, "duration_us": 1500000, "p50_us": 20, "p99_us": 90}'
    monkeypatch.setattr(stream, "run", lambda command, duration_s, interrupt: commands.append(command) or printed)
    stream.post_sequences(8001, Path("message"), sequences, 64, 1.5)
    assert commands[0][1:] == ["8001", "message", "any", "64", "1500", *report]


def test_a_tool_is_interrupted_and_heard_out() -> None:
    # However late the program begins to listen, the signal waits for it: it inherits that interrupts are held back.
    program = "import signal\nsignal.sigwait([signal.SIGINT])\nprint('figures')"
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        assert "figures" in run([sys.executable, "-c", program], 0.1, interrupt=True)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def test_a_tool_that_fails_says_why() -> None:
    with pytest.raises(LoadFailed, match=r"status 3:\nno such option"):
        run([sys.executable, "-c", "print('no such option'); raise SystemExit(3)"], 1.0, interrupt=False)
