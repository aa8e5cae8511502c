"""Reads Triton's trace files, and sums them up as its users do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.waiting import until

Documents = list[dict[str, Any]]

# The times that a summary shows of a record: from one moment to another.
_TIMES = {
    "http": ("HTTP_RECV_START", "HTTP_SEND_END"),
    "http receive": ("HTTP_RECV_START", "HTTP_RECV_END"),
    "http send": ("HTTP_SEND_START", "HTTP_SEND_END"),
    "grpc": ("GRPC_WAITREAD_START", "GRPC_SEND_END"),
    "grpc wait and read": ("GRPC_WAITREAD_START", "GRPC_WAITREAD_END"),
    "grpc send": ("GRPC_SEND_START", "GRPC_SEND_END"),
    "request": ("REQUEST_START", "REQUEST_END"),
    "queue": ("QUEUE_START", "COMPUTE_START"),
    "compute": ("COMPUTE_START", "COMPUTE_END"),
    "compute input": ("COMPUTE_START", "COMPUTE_INPUT_END"),
    "compute infer": ("COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START"),
    "compute output": ("COMPUTE_OUTPUT_START", "COMPUTE_END"),
}


def read(path: Path) -> Documents:
    """The elements of a trace file, once it is complete."""
    until(lambda: _is_complete(path), f"{path} is not complete")
    documents: Documents = json.loads(path.read_text())
    return documents


def _is_complete(path: Path) -> bool:
    try:
        json.loads(path.read_text())
    except (FileNotFoundError, ValueError):  # a part of it may end like the whole
        return False
    return True


def heads(documents: Documents) -> Documents:
    """The head of each record, which names the model."""
    return [one for one in documents if "model_name" in one]


def moments(documents: Documents, number: int) -> dict[str, int]:
    """The moments of one record, in the order of the file."""
    stamps = [stamp for one in documents if one["id"] == number for stamp in one.get("timestamps", [])]
    return {stamp["name"]: stamp["ns"] for stamp in stamps}


@dataclass(frozen=True)
class Trace:
    """One request as a summary sees it."""

    head: Mapping[str, Any]
    moments: Mapping[str, int]

    @property
    def times(self) -> dict[str, int]:
        """Nanoseconds of each part whose two moments are both known."""
        ends = {name: (self.moments.get(begin), self.moments.get(end)) for name, (begin, end) in _TIMES.items()}
        return {name: end - begin for name, (begin, end) in ends.items() if begin is not None and end is not None}


def summarize(documents: Documents) -> list[Trace]:
    """The requests of a file, checked by the rules that a summary relies on.

    Every element has the number of its record, and is a head, a list of timestamps or an activity. A record has one
    head, which comes first and names model and version; no moment appears twice; times are not negative, and parts are
    no longer than their whole. The request that led to another is in the file, and lasts at least as long.
    """
    # By when they began: their records may be complete in another order.
    numbers = sorted({one["id"] for one in documents})
    traces = {number: _trace(documents, number) for number in numbers}
    for trace in traces.values():
        _check_times(trace)
        parent = trace.head.get("parent_id")
        if parent is not None:
            outer, inner = traces[parent].moments, trace.moments
            assert outer["REQUEST_START"] <= inner["REQUEST_START"], trace
            assert inner["REQUEST_END"] <= outer["REQUEST_END"], trace
    return list(traces.values())


def _trace(documents: Documents, number: int) -> Trace:
    elements = [one for one in documents if one["id"] == number]
    assert all(
        isinstance(number, int) and len({"model_name", "timestamps", "activity"} & set(one)) == 1 for one in elements
    )
    head, *rest = elements
    assert isinstance(head["model_name"], str) and isinstance(head["model_version"], int), head
    assert not heads(rest), rest
    stamps = [stamp for one in rest for stamp in one.get("timestamps", [])]
    names = [stamp["name"] for stamp in stamps]
    assert len(set(names)) == len(names), names
    assert [stamp["ns"] for stamp in stamps] == sorted(stamp["ns"] for stamp in stamps)
    return Trace(head, {stamp["name"]: stamp["ns"] for stamp in stamps})


def _check_times(trace: Trace) -> None:
    times = trace.times
    assert all(time >= 0 for time in times.values()), trace
    for whole, parts in {
        "http": ("http receive", "request", "http send"),
        "grpc": ("grpc wait and read", "request", "grpc send"),
        "request": ("queue", "compute"),
        "compute": ("compute input", "compute infer", "compute output"),
    }.items():
        if whole in times:
            assert sum(times.get(part, 0) for part in parts) <= times[whole], (whole, trace)
