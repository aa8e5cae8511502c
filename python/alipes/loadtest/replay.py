"""Requests that a payload log recorded, sent again."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import numpy as np

from alipes.datatypes import array_type
from alipes.errors import ConfigError
from alipes.loadtest.log_files import LogRecord, log_records

if TYPE_CHECKING:
    from alipes._core import LoadTestRequests
    from alipes.client import Client

__all__ = ["Replay", "read_replay"]

_REQUEST: Final = "org.kubeflow.serving.inference.request"
_REDACTED: Final = "[redacted]"
"""What the log writes in the place of a value that is not logged."""
_MOST_BYTES: Final = 256 << 20
"""Of bodies: all requests are in memory before the first is sent."""

_PREDICT: Final = "predict"
_EXPLAIN: Final = "explain"

_NOT_WHOLE: Final = "lack the data of a tensor, which was redacted or which JSON does not have"
_HIDDEN: Final = "have values that were redacted"
_V1_OVER_GRPC: Final = "are of the V1 protocol, which is HTTP's: give --url such an address"
_NO_PATH: Final = "are of neither V2 nor V1, and their path is not recorded"
_NO_MODEL: Final = "do not say which model they asked: name it"


@dataclass(frozen=True)
class _Tensors:
    """A request of the V2 protocol."""

    model: str
    inputs: Sequence[tuple[Any, ...]]
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class _Body:
    """A `:predict` or `:explain` of the V1 protocol."""

    model: str
    body: bytes
    verb: str = _PREDICT


class _Unsent(Exception):
    """A request that cannot be sent again, with the reason."""


@dataclass(frozen=True)
class Replay:
    """The requests of a payload log, in the order in which they came.

    Attributes:
        requests: Those that are sent.
        unsent: Why others are not: their number by reason.
        version: The version of the model that is asked; the server chooses where it is empty.
    """

    requests: Sequence[_Tensors | _Body]
    unsent: Mapping[str, int]
    version: str = ""

    @property
    def notice(self) -> str:
        """How many are not sent, and why; empty where all are."""
        if not self.unsent:
            return ""
        reasons = ", ".join(f"{count} {reason}" for reason, count in self.unsent.items())
        missing = sum(self.unsent.values())
        return f"{missing} of {missing + len(self.requests)} recorded requests are not sent: {reasons}"

    def fill(self, requests: LoadTestRequests, client: Client) -> None:
        """Adds the requests."""
        del client  # the log says what tensors they have
        for one in self.requests:
            if isinstance(one, _Tensors):
                requests.infer(one.model, self.version, one.inputs, None, "", dict(one.parameters))
                continue
            version = f"/versions/{quote(self.version, safe='')}" if self.version else ""
            path = f"/v1/models/{quote(one.model, safe='')}{version}:{one.verb}"
            requests.post(path, "application/json", one.body)


def read_replay(paths: Sequence[Path], model: str = "", version: str = "", *, over_http: bool = True) -> Replay:
    """The requests of files of a payload log.

    Args:
        paths: The files, and folders of files.
        model: The model whose requests are sent; those of all models where it is empty.
        version: The version that is asked.
        over_http: Whether they go over HTTP, which those of the V1 protocol need.

    Raises:
        ConfigError: If a file cannot be read, there are too many bytes, or no request can be sent.
        Unsupported: If a package is missing that a file needs.
    """
    records, size = list[LogRecord](), 0
    for record in log_records(paths):
        if record["reqType"] != _REQUEST or (model and record.get("endpoint") not in (None, "", model)):
            continue
        size += len(record["bytes"])
        if size > _MOST_BYTES:
            raise ConfigError(f"there are more than {_MOST_BYTES >> 20} MiB of requests: name fewer files")
        records.append(record)
    requests, unsent = list[_Tensors | _Body](), Counter[str]()
    for record in sorted(records, key=_moment):
        try:
            requests.append(_request(record, model, over_http))
        except _Unsent as reason:
            unsent[str(reason)] += 1
    found = Replay(requests, unsent, version)
    if not requests:
        what = f" of model '{model}'" if model else ""
        raise ConfigError(found.notice or f"the log has no request{what}")
    return found


def _moment(record: LogRecord) -> datetime:
    """When it came; logs that say nothing of it, as KServe's own, stay in their order."""
    try:
        moment = datetime.fromisoformat(record.get("occurrenceTime") or "")
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _request(record: LogRecord, model: str, over_http: bool) -> _Tensors | _Body:
    try:
        body = base64.b64decode(record["bytes"], validate=True)
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _Unsent(_NO_PATH) from error
    name = record.get("endpoint") or model
    if not isinstance(document, dict):
        raise _Unsent(_HIDDEN if document == _REDACTED else _NO_PATH)
    if not name:
        raise _Unsent(_NO_MODEL)
    verb = _EXPLAIN if (record.get("path") or "").endswith(f":{_EXPLAIN}") else _PREDICT
    inputs = document.get("inputs") if verb == _PREDICT else None
    if isinstance(inputs, list) and inputs and all(isinstance(one, dict) and "datatype" in one for one in inputs):
        return _tensors(name, inputs, document.get("parameters") or {})
    if verb == _PREDICT and "instances" not in document and "inputs" not in document:
        raise _Unsent(_NO_PATH)
    if f'"{_REDACTED}"'.encode() in body:
        raise _Unsent(_HIDDEN)
    if not over_http:
        raise _Unsent(_V1_OVER_GRPC)
    return _Body(name, body, verb)


def _tensors(model: str, inputs: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]) -> _Tensors:
    if _REDACTED in parameters.values():
        raise _Unsent(_HIDDEN)
    return _Tensors(model, [_tensor(one) for one in inputs], parameters)


def _tensor(tensor: Mapping[str, Any]) -> tuple[Any, ...]:
    """Name, datatype, shape and array, as the engine takes them."""
    try:
        datatype, shape = str(tensor["datatype"]), tuple(map(int, tensor["shape"]))
        array = np.asarray(tensor["data"], np.object_ if datatype == "BYTES" else array_type(datatype)).reshape(shape)
        if datatype == "BYTES":
            array = np.array([text.encode() for text in array.flat], np.object_).reshape(shape)
        return str(tensor["name"]), datatype, shape, array
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _Unsent(_NOT_WHOLE) from error
