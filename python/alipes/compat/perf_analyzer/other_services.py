"""Requests of services that do not speak the V2 protocol: posts over HTTP."""

from __future__ import annotations

import json
import math
import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from alipes.compat.perf_analyzer.data_files import document_streams
from alipes.compat.perf_analyzer.failures import Failed
from alipes.compat.perf_analyzer.model import Model
from alipes.compat.perf_analyzer.requests import Prepared, empty_requests
from alipes.compat.perf_analyzer.settings import SentData, Settings

__all__ = ["model_of", "prepare_posts"]

_FILE_INPUT: Final = "TORCHSERVE_INPUT"
_PAYLOAD: Final = "payload"
_MAX_BYTES: Final = 256 << 20
"""Largest file that is posted."""
_VARIETY: Final = 16
_JSON: Final = "application/json"
_Post: TypeAlias = tuple[str, bytes]
"""A content type, and a body."""


def model_of(settings: Settings) -> Model:
    """What is known of the model of such a service: its name."""
    return Model(settings.target.model, settings.target.version, {}, {}, max_batch=settings.data.batch)


def prepare_posts(settings: Settings) -> Prepared:
    """The requests.

    Raises:
        Failed: If the data does not hold them.
    """
    target, data = settings.target, settings.data
    requests = empty_requests(target)
    posts = {"torchserve": _files, "http": _payloads}.get(target.kind)
    if posts is not None and data.batch > 1:
        raise Failed("can not specify batch size > 1 as the model does not support batching")
    try:
        bodies = list(posts(data) if posts is not None else _instances(data))
    except OSError as error:
        raise _failed(f"failed to open file for reading provided data: {error}") from error
    for content_type, body in bodies:
        requests.post(_path(settings), content_type, body)
    streams = 0 if isinstance(data.source, str) else len(data.source)
    message = f" Successfully read data for {streams} stream/streams with {len(bodies)} step/steps."
    return Prepared(requests, [], message if streams else "")


def _path(settings: Settings) -> str:
    target = settings.target
    if target.kind == "http":
        return "/" + target.endpoint.removeprefix("/")
    if target.kind == "torchserve":
        return f"/predictions/{target.model}" + (f"/{target.version}" if target.version else "")
    version = f"/versions/{target.version}" if target.version else ""
    return f"/v1/models/{target.model}{version}:predict"


def _steps(data: SentData) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The steps of all documents, each with its place."""
    paths: Sequence[Path] = () if isinstance(data.source, str) else data.source
    for path in paths:
        streams, _ = document_streams(path)
        for number, stream in enumerate(streams):
            for step, values in enumerate(stream):
                yield values, f"( Location stream id: {number}, step id: {step})"


def _files(data: SentData) -> Iterator[_Post]:
    for step, place in _steps(data):
        names = step.get(_FILE_INPUT)
        if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
            raise _failed(f"missing tensor {_FILE_INPUT}, a list with the path of one file {place}")
        path = Path(names[0])
        if path.stat().st_size > _MAX_BYTES:
            raise _failed(f"'{path}' has more than {_MAX_BYTES} bytes")
        yield mimetypes.guess_type(path.name)[0] or "application/octet-stream", path.read_bytes()


def _payloads(data: SentData) -> Iterator[_Post]:
    for step, place in _steps(data):
        payload = step.get(_PAYLOAD)
        if not isinstance(payload, list) or len(payload) != 1:
            raise _failed(f"missing {_PAYLOAD}, a list with one JSON document {place}")
        yield _JSON, json.dumps(payload[0], separators=(",", ":")).encode()


def _instances(data: SentData) -> Iterator[_Post]:
    """Bodies of the V1 protocol: rows as a list of instances."""
    rows = list(_rows(data))
    for first in range(0, len(rows), data.batch):
        group = [rows[(first + row) % len(rows)] for row in range(data.batch)]
        yield _JSON, json.dumps({"instances": group}, separators=(",", ":")).encode()


def _rows(data: SentData) -> Iterator[Any]:
    if isinstance(data.source, str):
        if not data.shapes:
            raise _failed("the V1 protocol does not tell a model's inputs: give each with --shape, or --input-data")
        random = np.random.default_rng(0)
        for _ in range(_VARIETY * data.batch):
            values = {
                name: (np.zeros(shape) if data.source == "zero" else random.random(shape)).tolist()
                for name, shape in data.shapes.items()
            }
            yield _row(values)
        return
    for step, place in _steps(data):
        yield _row({name: _nested(value, data.shapes.get(name), place) for name, value in step.items()})


def _row(values: Mapping[str, Any]) -> Any:
    """A row of a model with one input is its value; of one with several, the values by name."""
    return next(iter(values.values())) if len(values) == 1 else values


def _nested(value: Any, shape: tuple[int, ...] | None, place: str) -> Any:
    if isinstance(value, dict):
        if "content" not in value:
            raise _failed(f"missing content field. {place}")
        wanted = value.get("shape", shape)
        shape = None if wanted is None else tuple(int(size) for size in wanted)
        value = value["content"]
    if not isinstance(value, list) or shape is None:
        return value
    array = np.array(value, dtype=object).ravel()
    if array.size != math.prod(shape):
        raise _failed(f"{array.size} elements do not fit the shape {list(shape)} {place}")
    return array.reshape(shape).tolist()


def _failed(message: str) -> Failed:
    return Failed(f"error: Failed to init manager inputs: {message}\n")
