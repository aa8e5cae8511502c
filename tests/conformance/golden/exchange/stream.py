"""gRPC streams: a script of what is sent, received and waited for."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import grpc
from google.protobuf import json_format

from . import messages
from .grpc import OPTIONS

_TIMEOUT_S = 60.0
# How long nothing has to come where nothing is expected.
_QUIET_S = 3.0
_HALF_CLOSE = object()
_NOTHING = {"nothing": True}

Action = Mapping[str, Any]


def exchange(address: str, step: Mapping[str, Any]) -> dict[str, Any]:
    """What really happened in a `stream` step, as a script of the same form."""
    method = messages.find(step["stream"])
    assert method is not None, f"no method {step['stream']}"
    metadata = tuple(step.get("metadata", {}).items())
    with grpc.insecure_channel(address, options=OPTIONS) as channel:
        open_stream = _OpenStream(channel.stream_stream(method.path), method, metadata)
        try:
            return {"script": [open_stream.play(action) for action in step["script"]]}
        finally:
            open_stream.hang_up()


def expected(script: Sequence[Action]) -> list[Action]:
    """The script as it is compared: what may come in any order is a set."""
    return [
        {"receive_any_order": {"$set": action["receive_any_order"]}} if "receive_any_order" in action else action
        for action in script
    ]


class _OpenStream:
    """One call, its requests fed from a queue and its responses collected by a thread."""

    def __init__(self, open_stream: Any, method: messages.Method, metadata: tuple[tuple[str, str], ...]) -> None:
        self._method = method
        self._outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._inbox: list[Any] = []
        self._ended = False
        self._call = open_stream(iter(self._sent()), metadata=metadata, timeout=_TIMEOUT_S)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def play(self, action: Action) -> Action:
        """Does what an action says; the action as it came out."""
        ((kind, value),) = action.items()
        return {kind: getattr(self, f"_{kind}")(value)}

    def hang_up(self) -> None:
        """Ends the call, whatever state it is in."""
        self._outbox.put(_HALF_CLOSE)
        self._call.cancel()
        self._reader.join(_TIMEOUT_S)

    def _sent(self) -> Iterator[bytes]:
        while (message := self._outbox.get()) is not _HALF_CLOSE:
            yield message

    def _read(self) -> None:
        try:
            for wire in self._call:
                response = self._method.response.FromString(wire)
                with self._changed:
                    self._inbox.append(json_format.MessageToDict(response, preserving_proto_field_name=True))
                    self._changed.notify_all()
        except grpc.RpcError:
            pass  # `end` tells how it ended
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _take(self, count: int, timeout_s: float = _TIMEOUT_S) -> list[Any]:
        with self._changed:
            self._changed.wait_for(lambda: len(self._inbox) >= count or self._ended, timeout_s)
            received, self._inbox[:] = self._inbox[:count], self._inbox[count:]
            return received

    def _send(self, request: dict[str, Any]) -> Any:
        self._outbox.put(json_format.ParseDict(request, self._method.request()).SerializeToString())
        return request

    def _receive(self, wanted: Mapping[str, Any]) -> Any:
        quiet = _NOTHING in (wanted, *wanted.get("$oneof", ()))
        return next(iter(self._take(1, _QUIET_S if quiet else _TIMEOUT_S)), _NOTHING)

    def _receive_any_order(self, wanted: Sequence[Any]) -> Any:
        return self._take(len(wanted))

    def _nothing_for_ms(self, span: int) -> Any:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._inbox), span / 1000)
            return self._inbox[0] if self._inbox else span

    def _sleep_ms(self, span: int) -> Any:
        time.sleep(span / 1000)
        return span

    def _half_close(self, value: Any) -> Any:
        self._outbox.put(_HALF_CLOSE)
        return value

    def _cancel(self, value: Any) -> Any:
        self._call.cancel()
        return value

    def _end(self, _: Any) -> dict[str, Any]:
        self._outbox.put(_HALF_CLOSE)
        with self._changed:
            self._changed.wait_for(lambda: self._ended, _TIMEOUT_S)
            rest = list(self._inbox)
        end = {"code": self._call.code().name}
        if end["code"] != "OK":
            end["message"] = self._call.details() or ""
        return {**end, "rest": rest} if rest else end
