"""An OpenTelemetry collector for tests: takes OTLP over HTTP and keeps the spans."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from support.waiting import TIMEOUT_S

# Messages of opentelemetry-proto, as far as they are read: name -> fields by number, each a name with its type. A name
# of a message stands for a list of them, with `?` for one.
_MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "Request": {1: ("resource_spans", "ResourceSpans")},
    "ResourceSpans": {1: ("resource", "Resource?"), 2: ("scope_spans", "ScopeSpans")},
    "Resource": {1: ("attributes", "KeyValue")},
    "ScopeSpans": {1: ("scope", "Scope?"), 2: ("spans", "Span")},
    "Scope": {1: ("name", "string"), 2: ("version", "string")},
    "Span": {
        1: ("trace_id", "bytes"),
        2: ("span_id", "bytes"),
        3: ("trace_state", "string"),
        4: ("parent_span_id", "bytes"),
        5: ("name", "string"),
        6: ("kind", "int32"),
        7: ("start_time_unix_nano", "fixed64"),
        8: ("end_time_unix_nano", "fixed64"),
        9: ("attributes", "KeyValue"),
        11: ("events", "Event"),
    },
    "Event": {1: ("time_unix_nano", "fixed64"), 2: ("name", "string")},
    "KeyValue": {1: ("key", "string"), 2: ("value", "AnyValue?")},
    "AnyValue": {1: ("string_value", "string"), 3: ("int_value", "int64")},
}
_TYPES = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "fixed64": FieldDescriptorProto.TYPE_FIXED64,
}


@cache
def _request() -> Any:
    file = FileDescriptorProto(name="otlp.proto", package="otlp", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = DescriptorProto(name=name)
        for number, (label, kind) in fields.items():
            field = message.field.add(name=label, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL)
            if kind in _TYPES:
                field.type = _TYPES[kind]
                continue
            field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".otlp.{kind.rstrip('?')}"
            if not kind.endswith("?"):
                field.label = FieldDescriptorProto.LABEL_REPEATED
        file.message_type.append(message)
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("otlp.Request"))


@dataclass(frozen=True)
class Span:
    """A span that was sent."""

    name: str
    trace: str
    number: str
    parent: str
    state: str
    kind: int
    start: int
    end: int
    attributes: dict[str, Any]
    events: list[str]


class Collector:
    """Listens on a port that the system picks."""

    def __init__(self, *, statuses: Sequence[int] = (), tls: ssl.SSLContext | None = None) -> None:
        """Answers the first requests with these statuses, and all others with 200.

        Args:
            statuses: The HTTP statuses of its first answers.
            tls: Its certificate, where connections are to be encrypted.
        """
        self.spans: list[Span] = []
        self.resource: dict[str, Any] = {}
        self.received = 0
        self._statuses = list(statuses)
        self._changed = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                kind = self.headers["Content-Type"]
                self.send_response(collector._take(self.path, kind, body))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            # Clients that turn away in the middle of that must not hold up the others.
            listener = self._server.socket
            self._server.socket = tls.wrap_socket(listener, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where spans are to be sent."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}/v1/traces"

    def wait(self, count: int) -> list[Span]:
        """The spans, once there are so many.

        Raises:
            AssertionError: If they do not come.
        """
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.spans) >= count, TIMEOUT_S), self.spans
            return list(self.spans)

    def _take(self, path: str, kind: str, body: bytes) -> int:
        with self._changed:
            self.received += 1
            if self._statuses:
                return self._statuses.pop(0)
            if (path, kind) != ("/v1/traces", "application/x-protobuf"):
                return 400
            for group in _request().FromString(body).resource_spans:
                self.resource = _attributes(group.resource.attributes)
                self.spans += [_span(span) for scope in group.scope_spans for span in scope.spans]
            self._changed.notify_all()
            return 200


def _span(span: Any) -> Span:
    events = [event.name for event in span.events]
    numbers = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
    times = (span.start_time_unix_nano, span.end_time_unix_nano)
    return Span(span.name, *numbers, span.trace_state, span.kind, *times, _attributes(span.attributes), events)


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: pair.value.string_value or pair.value.int_value for pair in pairs}
