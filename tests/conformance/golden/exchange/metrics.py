"""The metrics endpoint: samples and types of its exposition, and its answers as HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from ..bodies import describe
from . import http

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
# Longer bodies are an exposition, which the recording does not compare as text.
_LONGEST_TEXT = 400


def exchange(address: str, step: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a `metrics` step: what its patterns select, samples under ``name{labels in order}``."""
    _, _, raw = http.send(address, {"method": "GET", "path": "/metrics"})
    lines = raw.decode().splitlines()
    selected = step["metrics"]["select"]
    samples = dict(_sample(line) for line in lines if line and not line.startswith("#"))
    answer: dict[str, Any] = {"samples": _select(samples, selected)}
    if "families" in step["metrics"]:
        types = dict(line.split(" ")[2:4] for line in lines if line.startswith("# TYPE "))
        answer["types"] = _select(types, step["metrics"]["families"])
    return answer


def request(address: str, step: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a `metrics_request` step."""
    status, headers, raw = http.send(address, step["metrics_request"])
    body = {"text": "(long)"} if len(raw) > _LONGEST_TEXT else describe(raw, headers)
    return {"response": {"status": status, "headers": {"content-type": headers.get("content-type")}, "body": body}}


def _sample(line: str) -> tuple[str, float]:
    key, value = line.rsplit(" ", 1)
    name, _, labels = key.partition("{")
    pairs = sorted(_LABEL.findall(labels))
    joined = ",".join(f'{label}="{text}"' for label, text in pairs)
    return f"{name}{{{joined}}}", float(value)


def _select(values: Mapping[str, Any], patterns: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if any(fnmatchcase(key, pattern) for pattern in patterns)}
