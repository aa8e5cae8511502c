"""PyTriton's clients, answered by alipes, against a server: results and exceptions are those of the real ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.pytriton_facts import facts, recorded
from support.pytriton_models import FORWARD, write_models
from support.server import ServerProcess

# Where PyTriton fails by accident: a client for gRPC that is made from another asks over HTTP, an exception of
# `tritonclient` comes through, an array without elements is looked into, and two streams would share one queue.
ACCIDENTS: dict[str, Any] = {
    "http: no bytes at all": {"returns": {"y": {"dtype": "object", "shape": [1, 0], "values": "[]"}}},
    "grpc: no bytes at all": {"returns": {"y": {"dtype": "object", "shape": [1, 0], "values": "[]"}}},
    "stream: twice at a time": recorded("calls")["stream: a sample"],
    "grpc futures: many": recorded("calls")["http futures: many"],
    **{
        name: recorded("calls")[name.replace("grpc", "http")]
        for name in ("grpc: no such model, in time", "grpc: no such version", "grpc: wait for nothing")
    },
}


@pytest.mark.slow("some of the calls run into their time-outs")
def test_calls_are_answered_as_by_pytriton(serve: Callable[..., ServerProcess], repository: Path) -> None:
    write_models(repository)
    server = serve(repository, *FORWARD)
    theirs = recorded("calls") | ACCIDENTS
    ours = facts("calls", f"http://{server.http}", f"grpc://{server.grpc}")
    assert ours.keys() == theirs.keys()
    assert {fact: ours[fact] for fact in theirs if ours[fact] != theirs[fact]} == {}
