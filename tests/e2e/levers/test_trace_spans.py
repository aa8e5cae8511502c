"""Spans reach an OpenTelemetry collector, with the caller's trace above them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from support.certificates import Authority
from support.endpoints import HttpEndpoint
from support.held_requests import HOLD_ROW, OBEYS, ROW, X, held_requests
from support.notes import Notes
from support.otlp import Collector, Span
from support.python_models import DECOUPLED, REPORTS, add_python_model
from support.server import ServerProcess
from support.streams import Stream

Serve = Callable[..., ServerProcess]

ECHO = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(Y=given(request)) for request in requests]
"""

CALLS = """
class TritonPythonModel:
    def execute(self, requests):
        print("context", requests[0].trace().get_context())
        call = pb_utils.InferenceRequest(
            model_name="echo", requested_output_names=["Y"],
            inputs=[pb_utils.Tensor("X", given(requests[0]))], trace=requests[0].trace())
        call.exec()
        return [answer(Y=given(request)) for request in requests]
"""

CHAIN = """
platform: "ensemble"
input { name: "X" data_type: TYPE_INT32 dims: [ -1 ] }
output { name: "Y" data_type: TYPE_INT32 dims: [ -1 ] }
ensemble_scheduling { step [
  { model_name: "echo" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "M" } },
  { model_name: "echo" model_version: -1 input_map { key: "X" value: "M" } output_map { key: "Y" value: "Y" } }
] }
"""

EXPIRES = (
    "dynamic_batching { default_queue_policy { default_timeout_microseconds: 60000000 allow_timeout_override: true } }"
)

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "tracestate": "vendor=x"}


@pytest.fixture
def start(repository: Path, serve: Serve) -> Serve:
    """Serves an echo and a model that calls it, and sends spans soon."""
    add_python_model(repository, "echo", ECHO)
    add_python_model(repository, "calls", CALLS)

    def started(collector: Collector | str, *settings: str, **more: Any) -> ServerProcess:
        url = collector if isinstance(collector, str) else collector.url
        all_of_them = ("mode=opentelemetry", "level=TIMESTAMPS", f"opentelemetry,url={url}", *settings)
        return serve(repository, *(f"--trace-config={setting}" for setting in all_of_them), **more)

    return started


def ask(server: ServerProcess, model: str, headers: Mapping[str, str]) -> None:
    tensor = {"name": "X", "shape": [1], "datatype": "INT32", "data": [1]}
    connection = HTTPConnection(server.http, timeout=60)
    connection.request("POST", f"/v2/models/{model}/infer", json.dumps({"id": "7", "inputs": [tensor]}), dict(headers))
    assert connection.getresponse().status == 200
    connection.close()


def named(spans: list[Span], name: str) -> Span:
    (found,) = (span for span in spans if span.name == name)
    return found


SOON = "opentelemetry,bsp_schedule_delay=50"


def test_a_request_is_a_span_for_itself_its_model_and_the_execution(start: Serve) -> None:
    with Collector() as collector:
        server = start(collector, "rate=1", SOON, "opentelemetry,resource=team=a b")
        before = time.time_ns()
        ask(server, "echo", {})
        spans = collector.wait(3)
        root, model, compute = (named(spans, name) for name in ("InferRequest", "echo", "compute"))
        assert (root.parent, model.parent, compute.parent) == ("", root.number, model.number)
        assert len({span.trace for span in spans}) == 1
        assert {span.kind for span in spans} == {2}
        assert before <= root.start <= model.start <= compute.start < compute.end <= root.end <= time.time_ns()
        expected = {"triton.model_name": "echo", "triton.model_version": 1, "triton.request_id": "7"}
        assert model.attributes.items() >= expected.items()
        assert root.events == [
            "HTTP_RECV_START",
            "HTTP_RECV_END",
            "INFER_RESPONSE_COMPLETE",
            "HTTP_SEND_START",
            "HTTP_SEND_END",
        ]
        assert model.events == ["REQUEST_START", "QUEUE_START", "REQUEST_END"]
        assert compute.events == ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]
        assert collector.resource == {"service.name": "triton-inference-server", "team": "a b"}


def test_a_callers_trace_is_joined_and_no_other_begun(start: Serve) -> None:
    with Collector() as collector:
        server = start(collector, "rate=0", SOON)
        ask(server, "echo", {})
        ask(server, "echo", {"traceparent": "00-nonsense"})
        ask(server, "echo", CALLER)
        root = named(collector.wait(3), "InferRequest")
        assert (root.trace, root.parent, root.state) == (TRACE, "b7ad6b7169203331", "vendor=x")
        with grpc_client.InferenceServerClient(server.grpc) as client:
            tensor = grpc_client.InferInput("X", [1], "INT32")
            tensor.set_data_from_numpy(np.array([1], dtype=np.int32))
            client.infer("echo", [tensor], headers=CALLER)
        spans = collector.wait(6)[3:]
        assert {span.trace for span in spans} == {TRACE}
        assert "GRPC_WAITREAD_END" in named(spans, "InferRequest").events
        assert server.stop() == 0
        assert len(collector.spans) == 6


def test_each_model_on_the_way_is_a_span_below_its_caller(start: Serve) -> None:
    with Collector() as collector:
        server = start(collector, "rate=1", SOON)
        ask(server, "calls", CALLER)
        spans = collector.wait(5)
        caller, called = named(spans, "calls"), named(spans, "echo")
        assert (called.parent, called.trace) == (caller.number, TRACE)
        assert called.attributes["triton.trace_parent_id"] == caller.attributes["triton.trace_id"]
        assert sorted(span.parent for span in spans if span.name == "compute") == sorted([caller.number, called.number])
        server.wait_for_output(f'context {{"traceparent":"00-{TRACE}-{caller.number}-01","tracestate":"vendor=x"}}')


def test_each_step_of_an_ensemble_is_a_span(start: Serve, repository: Path) -> None:
    (repository / "chain" / "1").mkdir(parents=True)
    (repository / "chain" / "config.pbtxt").write_text(CHAIN)
    with Collector() as collector:
        ask(start(collector, "rate=1", SOON), "chain", {})
        spans = collector.wait(6)
        whole = named(spans, "chain")
        steps = sorted((span for span in spans if span.name == "echo"), key=lambda span: span.start)
        assert [step.parent for step in steps] == [whole.number, whole.number]
        assert whole.start <= steps[0].start < steps[0].end <= steps[1].start < steps[1].end <= whole.end
        assert whole.parent == named(spans, "InferRequest").number


def test_spans_of_every_end_lie_in_those_of_their_callers(start: Serve, repository: Path, tmp_path: Path) -> None:
    """Requests that fail, that never run, that have many responses, and an ensemble that a model calls."""
    add_python_model(repository, "obeys", OBEYS, config="max_batch_size: 1 " + EXPIRES)
    add_python_model(repository, "reports", REPORTS, config=DECOUPLED)
    add_python_model(repository, "asks", CALLS.replace('"echo"', '"chain"'))
    (repository / "chain" / "1").mkdir(parents=True)
    (repository / "chain" / "config.pbtxt").write_text(CHAIN)
    run = {("InferRequest", "obeys"), ("obeys", "compute")}
    with Collector() as collector:
        server = start(collector, "rate=1", SOON, environment=Notes(tmp_path / "notes").environment)

        def new_spans(count: int) -> list[tuple[str, str]]:
            """Spans that come next, with the names of those that they lie in."""
            spans = collector.wait(before + count)[before:]
            names = {span.number: span.name for span in spans}
            return sorted((names.get(span.parent, ""), span.name) for span in spans)

        with held_requests(server, Notes(tmp_path / "notes")) as held:
            before = len(collector.spans)
            held.fail("obeys", {"X": [[-1]]}, "negative")
            assert set(new_spans(3)) == run | {("", "InferRequest")}
            before = len(collector.spans)
            first = held.hold("obeys", HOLD_ROW)
            held.fail("obeys", ROW, "Request timeout expired", timeout_us=1000)
            assert set(new_spans(2)) == {("", "InferRequest"), ("InferRequest", "obeys")}
            before = len(collector.spans)
            held.go_on(first)
            assert set(new_spans(3)) == run | {("", "InferRequest")}
            before = len(collector.spans)
            with Stream(server) as stream:
                stream.send("reports", {"X": np.array([1, 2], np.int32)})
                assert len(list(stream.replies())) == 2
            assert new_spans(3) == [("", "InferRequest"), ("InferRequest", "reports"), ("reports", "compute")]
            before = len(collector.spans)
            held.ask("asks", X)
            assert new_spans(8) == [
                ("", "InferRequest"),
                ("InferRequest", "asks"),
                ("asks", "chain"),
                ("asks", "compute"),
                ("chain", "echo"),
                ("chain", "echo"),
                ("echo", "compute"),
                ("echo", "compute"),
            ]


def test_what_waits_is_sent_when_the_server_leaves(start: Serve) -> None:
    with Collector() as collector:
        server = start(collector, "rate=1", "opentelemetry,bsp_schedule_delay=3600000")
        ask(server, "echo", {})
        assert server.stop() == 0
        assert len(collector.wait(3)) == 3


def test_a_busy_collector_gets_its_spans_again(start: Serve) -> None:
    with Collector(statuses=(503, 429)) as collector:
        server = start(collector, "rate=1", SOON)
        ask(server, "echo", {})
        assert len(collector.wait(3)) == 3
        assert collector.received == 3
        assert server.stop() == 0
        assert "spans were not taken" not in server.output


def test_a_collector_that_refuses_or_is_away_hurts_no_request(start: Serve) -> None:
    with Collector(statuses=(400,)) as collector:
        server = start(collector, "rate=1", SOON)
        ask(server, "echo", {})
        server.wait_for_output(r"W\d{4} .*collector http://.*: 3 spans were not taken: status 400")
        ask(server, "echo", {})
        server.wait_for_output("spans are taken again")
    away = start("http://127.0.0.1:9/v1/traces", "rate=1", SOON)
    with HttpEndpoint(away) as endpoint:
        for _ in range(3):
            endpoint.ask("echo", {"X": [1]})
    assert away.stop() == 0


@pytest.mark.slow("the refused export is tried again before it is reported")
def test_spans_reach_an_encrypted_collector_with_a_trusted_root(start: Serve, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with Collector(tls=authority.server_context()) as collector:
        server = start(collector, "rate=1", SOON, f"opentelemetry,certificate={authority.root}")
        ask(server, "echo", {})
        assert len(collector.wait(3)) == 3
        assert server.stop() == 0
        stranger = start(collector, "rate=1", SOON)
        ask(stranger, "echo", {})
        stranger.wait_for_output(
            r"W\d{4} .*collector https://.*: 3 spans were not taken: the collector's certificate was issued by nobody "
            r"that this server trusts: name the authority's with --trace-config=opentelemetry,certificate=FILE"
        )
        assert stranger.stop() == 0
        assert len(collector.spans) == 3


def test_missing_roots_are_logged(start: Serve, tmp_path: Path) -> None:
    missing = tmp_path / "roots.pem"
    server = start("https://127.0.0.1:9/", "rate=1", SOON, f"opentelemetry,certificate={missing}")
    ask(server, "echo", {})
    server.wait_for_output(
        rf"spans cannot be sent: cannot use '{missing}' for encrypted connections: there is no such file"
    )
    assert server.stop() == 0


def test_the_environment_of_opentelemetry_is_read(start: Serve) -> None:
    environment = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_RESOURCE_ATTRIBUTES": "service.name=mine,zone=a%20b"}
    with Collector() as collector:
        server = start(collector, "rate=1", environment=environment)
        ask(server, "echo", {})
        collector.wait(3)
        assert collector.resource == {"service.name": "mine", "zone": "a b"}


def test_the_settings_name_the_mode_and_where_spans_go(start: Serve) -> None:
    with Collector() as collector:
        server = start(collector, "rate=5")
        connection = HTTPConnection(server.http, timeout=60)
        connection.request("GET", "/v2/trace/setting")
        settings = json.loads(connection.getresponse().read())
        connection.close()
        expected = {
            "trace_mode": "opentelemetry",
            "trace_rate": "5",
            "url": collector.url,
            "bsp_max_queue_size": "2048",
        }
        assert settings.items() >= expected.items()
        assert "trace_file" not in settings
