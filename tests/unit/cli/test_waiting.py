"""`alipes explain`: what the server tells, as people read it, and what is said where there is none to ask."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from threading import Thread
from typing import Any

import pytest
from alipes.cli import main
from alipes.cli.amounts import span
from alipes.cli.verdict import verdict
from alipes.cli.waiting_view import decided, view
from rich.console import Console

QUEUE: dict[str, Any] = {
    "waiting": 3,
    "instances": 2,
    "busy_instances": 1,
    "execution_us": 2500,
    "hold": "company",
    "next": {"requests": 3, "due_in_us": 4000, "why": "company"},
    "oldest": [{"rows": 1, "waited_us": 1000, "priority": 0, "cancelled": False}] * 2
    + [{"rows": 1, "waited_us": 9, "priority": 0, "cancelled": True}],
    "decisions": [{"ago_us": 1000, "decision": "waits", "instance": 0, "at_most_us": 5000}],
}
MODEL: dict[str, Any] = {
    "name": "m",
    "version": "2",
    "ready": True,
    "scheduling": {
        "kind": "dynamic",
        "max_batch_size": 8,
        "preferred_batch_sizes": [4, 8],
        "max_queue_delay_us": 5000,
    },
    "queue": QUEUE,
}


def shown(*models: dict[str, Any]) -> list[str]:
    out = StringIO()
    Console(file=out, width=200).print(view({"models": models}))
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_a_queue_is_shown_in_sentences() -> None:
    assert shown(MODEL) == [
        "m, version 2: dynamic batches of up to 8 rows, at once with 4 or 8, waiting up to 5 ms for company",
        "verdict requests wait up to 5 ms for company: lower max_queue_delay_microseconds",
        "waiting 3 requests, the first for 1 ms; 1 of the first 3 have no caller any more",
        "next batch 3 requests; the requests wait for company, for 4 ms at most",
        "instances 1 of 2 busy",
        "an execution up to 2.5 ms, nine times of ten",
        "decisions, newest first",
        "1 ms instance 0 waits for company, 5 ms at most",
    ]


def test_a_busy_model_says_what_will_go_and_why() -> None:
    busy = QUEUE | {"hold": "instances_busy", "next": {"requests": 1, "due_in_us": 0, "why": "unlike"}}
    line = "next batch 1 request (the next request has other shapes or inputs); every instance is busy"
    assert line in shown(MODEL | {"queue": busy})
    workers = [{"instance": "m_0", "up": True, "requests": 32}, {"instance": "m_1", "up": False, "requests": 0}]
    output = shown(MODEL | {"queue": busy, "workers": workers})
    assert line.replace("instance is busy", "worker holds as much as it may") in output
    assert "workers m_0 (32 in hand), m_1 (down)" in output


def test_limits_on_waiting_and_priorities_are_shown() -> None:
    limits = {"priority_levels": 2, "timeout_us": 5000, "delayed": False, "max_queue_size": 10}
    waiting = [{"rows": 1, "waited_us": 9, "priority": priority, "cancelled": False} for priority in (1, 2, 2)]
    model = MODEL | {"scheduling": MODEL["scheduling"] | {"limits": limits}, "queue": QUEUE | {"oldest": waiting}}
    output = shown(model)
    assert "limits 2 priority levels, what has waited 5 ms is given back, no more than 10 may wait" in output
    assert "waiting 3 requests, the first for 9 µs, at priorities 1 (1), 2 (2)" in output
    delayed = limits | {"priority_levels": 0, "delayed": True, "max_queue_size": 0}
    model["scheduling"]["limits"] = delayed
    assert "limits what has waited 5 ms stands behind the others" in shown(model)


def test_an_ensemble_is_shown_with_its_members() -> None:
    ensemble = {
        "name": "e",
        "version": "1",
        "ready": False,
        "scheduling": {"kind": "ensemble", "max_batch_size": 0, "max_queue_delay_us": 0},
        "ensemble": {"requests": 5, "held_back": 2, "members": ["m:2"]},
    }
    output = shown(ensemble, MODEL)
    under_way = "under way 5 requests; 2 calls held back by max_inflight_requests"
    assert output[:3] == ["e, version 1, not ready: an ensemble", under_way, "steps m:2"]
    assert output[4].startswith("m, version 2:")


def test_a_streaming_model_is_shown_with_its_sequences() -> None:
    streaming = {
        "name": "s",
        "version": "1",
        "ready": True,
        "scheduling": {"kind": "streaming", "max_batch_size": 0, "max_queue_delay_us": 0},
        "streaming": {"sequences": 1, "max_sequences": 10_000, "waiting": 2},
    }
    assert shown(streaming) == [
        "s, version 1: the state of each sequence is kept",
        "live 1 sequence of 10000",
        "waiting 2 requests",
    ]


def test_decisions_that_are_alike_are_one_line() -> None:
    took = {"decision": "took", "instance": 0, "requests": 1, "rows": 1, "why": "alone"}
    decisions = [took | {"ago_us": 1000 * at, "left": at} for at in range(1, 121)]
    decisions.append({"decision": "refused", "requests": 2, "ago_us": 500_000})
    lines = shown(MODEL | {"queue": QUEUE | {"decisions": decisions}})
    assert lines[-2:] == [
        "1 ms instance 0 took 1 request, 1 row, 1 left waiting: requests of this model run alone (120 times in a row)",
        "500 ms 2 requests turned away",
    ]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"waiting": 0}, "nothing waits: the time is spent in the model itself, or on the way"),
        ({"hold": "no_instance"}, "no instance is in service: the server's log says why"),
        (
            {"hold": "instances_busy", "instances": 1, "execution_us": 20_000},
            "1 instance cannot keep up, since an execution takes up to 20 ms; add an instance: ",
        ),
        ({"hold": "no_slot"}, "every slot belongs to another sequence: add an instance"),
        ({"hold": "first_batch"}, "requests wait until more have arrived"),
    ],
)
def test_the_verdict_is_one_sentence_with_one_thing_to_do(change: dict[str, Any], sentence: str) -> None:
    assert verdict(MODEL | {"queue": QUEUE | change}).startswith(sentence)


@pytest.mark.parametrize(
    ("decision", "sentence"),
    [
        (
            {"decision": "took", "instance": 1, "requests": 2, "rows": 4, "left": 3, "why": "preferred"},
            "instance 1 took 2 requests, 4 rows, 3 left waiting: a preferred size was reached",
        ),
        ({"decision": "withdrew", "requests": 1}, "1 request withdrawn: their callers have gone"),
        ({"decision": "put_back", "requests": 2}, "2 requests came back to the head, not executed"),
        ({"decision": "refused", "requests": 7}, "7 requests turned away"),
        ({"decision": "stopped"}, "no more requests are taken in: the version drains"),
        ({"decision": "rearranged", "instances": 3}, "3 instances in service from here on"),
        ({"decision": "of a newer server"}, "of a newer server"),
    ],
)
def test_each_decision_is_a_sentence(decision: dict[str, Any], sentence: str) -> None:
    assert decided(decision) == sentence


def test_a_span_has_the_unit_that_suits_it() -> None:
    assert [span(us) for us in (0, 999, 1500, 99_900, 250_000, 3_210_000, 1e9)] == [
        "0 µs",
        "999 µs",
        "1.5 ms",
        "99.9 ms",
        "250 ms",
        "3.21 s",
        "1000 s",
    ]


@pytest.fixture
def stranger() -> Iterator[str]:
    """Something that answers every request, and is not alipes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"[]" if "json" in self.path else b"hello")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("model", ["m", "json"])
def test_another_server_is_an_error(stranger: str, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", model, f"--url={stranger}"]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert error.startswith("error: say with --url where the server is")
    assert error.endswith("is not alipes")


def test_an_address_without_a_server_is_named(stranger: str, capsys: pytest.CaptureFixture[str]) -> None:
    # A server that is asked in the wrong protocol answers nothing that could be understood.
    assert main(["explain", "m", f"--url={stranger.replace('http', 'https')}"]) == 1
    assert "  no server answers at https://127.0.0.1" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "named"), [("--url=ftp://here", "HTTP port"), ("--header=word", "NAME:VALUE")])
def test_a_wrong_option_is_named(option: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "m", option]) in {1, 2}
    assert named in capsys.readouterr().err
