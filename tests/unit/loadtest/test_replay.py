"""Which recorded requests are sent again, and what is said of the others."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import ConfigError
from alipes.loadtest.replay import Replay, read_replay
from alipes.server.payloads.formats import FORMATS
from alipes.server.payloads.record import record
from alipes.server.payloads.sink import Payload

ROWS = {"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
TEXTS = {"name": "T", "datatype": "BYTES", "shape": [2, 1], "data": ["a", "é"]}


def payload(document: Any, model: str = "m", side: str = "request", second: int = 0, path: str = "") -> Payload:
    head = {
        "side": side,
        "exchange": "e",
        "model": model,
        "version": 1,
        "request_id": "",
        "unix_ns": 1_700_000_000_000_000_000 + second * 1_000_000_000,
        "status": 200,
        "content_type": "application/json",
        "path": path,
        "headers": {},
    }
    return Payload(head, document if isinstance(document, bytes) else json.dumps(document).encode())


def written(place: Path, *payloads: Payload, form: str = "json") -> Path:
    """A file as the log writes it."""
    kind = FORMATS[form]
    file = place / f"log.{kind.ending}"
    file.write_bytes(kind.encode([record(one, "file:///log", {"source": "here"}) for one in payloads]))
    return file


class Filled:
    """What a load got of a replay."""

    def __init__(self, replay: Replay) -> None:
        self.calls: list[tuple[Any, ...]] = []
        replay.fill(self, None)  # type: ignore[arg-type]  # it takes what the engine's requests take

    def infer(
        self, model: str, version: str, inputs: Any, outputs: Any, name: str, parameters: Mapping[str, Any]
    ) -> None:
        assert (outputs, name) == (None, "")
        tensors = [(one, kind, shape, array.tolist()) for one, kind, shape, array in inputs]
        self.calls.append((model, version, tensors, dict(parameters)))

    def post(self, path: str, content_type: str, body: bytes) -> None:
        self.calls.append((path, content_type, body))


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_requests_are_sent_as_they_came(tmp_path: Path, form: str) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs it: pip install 'alipes[tables]'")
    explained = payload({"row": [1]}, "w", second=4, path="/v1/models/w/versions/1:explain")
    late = payload({"model_name": "m", "inputs": [TEXTS], "parameters": {"k": 1}}, second=2)
    early = payload({"model_name": "n", "inputs": [ROWS]}, "n", second=1)
    answer = payload({"outputs": []}, side="response")
    body = b'{"instances": [[1, 2]]}'
    file = written(tmp_path, late, answer, payload(body, "a/b", second=3), early, explained, form=form)
    replay = read_replay([file])
    assert Filled(replay).calls == [
        ("n", "", [("X", "FP32", (1, 2), [[1, 2]])], {}),
        ("m", "", [("T", "BYTES", (2, 1), [[b"a"], ["é".encode()]])], {"k": 1}),
        ("/v1/models/a%2Fb:predict", "application/json", body),
        ("/v1/models/w:explain", "application/json", b'{"row": [1]}'),
    ]
    assert replay.notice == ""
    assert Filled(read_replay([tmp_path], "n", "3")).calls == [("n", "3", [("X", "FP32", (1, 2), [[1, 2]])], {})]
    assert Filled(read_replay([tmp_path], "a/b", "3")).calls[0][0] == "/v1/models/a%2Fb/versions/3:predict"


def test_what_is_not_whole_is_counted_with_its_reason(tmp_path: Path) -> None:
    half = {"name": "H", "datatype": "FP16", "shape": [1]}
    short = ROWS | {"data": [1]}
    nothing = ROWS | {"datatype": "INT32", "data": [None, 1]}
    requests = [
        {"inputs": [ROWS]},
        *({"inputs": [ROWS, one]} for one in (half, short, nothing)),
        {"inputs": [ROWS], "parameters": {"key": "[redacted]"}},
        {"instances": [{"x": 1, "name": "[redacted]"}]},
        "[redacted]",
        {"instances": [1]},
        {"text": "of a function"},
        b"\x89PNG",
    ]
    file = written(tmp_path, *map(payload, requests))
    replay = read_replay([file], over_http=False)
    assert len(replay.requests) == 1
    assert replay.notice == (
        "9 of 10 recorded requests are not sent: 3 lack the data of a tensor, which was redacted or which JSON does "
        "not have, 3 have values that were redacted, 1 are of the V1 protocol, which is HTTP's: give --url such an "
        "address, 2 are of neither V2 nor V1, and their path is not recorded"
    )


def test_values_keep_the_datatype_that_they_had(tmp_path: Path) -> None:
    kinds = {"BOOL": [True, False], "UINT64": [2**64 - 1, 0], "FP64": [0.1, -1e300], "INT8": [-128, 127]}
    inputs = [{"name": kind, "datatype": kind, "shape": [2], "data": data} for kind, data in kinds.items()]
    (request,) = read_replay([written(tmp_path, payload({"inputs": inputs}))]).requests
    found: Any = request
    assert {name: array.tolist() for name, _, _, array in found.inputs} == kinds
    assert [array.dtype for *_, array in found.inputs] == [np.bool_, np.uint64, np.float64, np.int8]


def test_files_of_kserves_own_logger_name_no_model(tmp_path: Path) -> None:
    own = {
        "bytes": base64.b64encode(b'{"instances": [1]}').decode(),
        "reqType": "org.kubeflow.serving.inference.request",
    }
    file = tmp_path / "kserve.jsonl"
    file.write_text(json.dumps(own))
    with pytest.raises(ConfigError, match="1 do not say which model they asked: name it"):
        read_replay([file])
    assert Filled(read_replay([file], "iris")).calls[0][0] == "/v1/models/iris:predict"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("log.csv", "url,bytes", "is no file that is replayed: expected .jsonl or .parquet, or a folder"),
        ("log.jsonl", '{"a": 1}', "record 1 of .* is none of a payload log"),
        ("log.jsonl", "[" * 100_000, "has lines that are no JSON"),
        ("log.jsonl", "", "the log has no request"),
        ("gone", "", "is no file that is replayed"),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path: Path, name: str, content: str, words: str) -> None:
    file = tmp_path / name
    if name != "gone":
        file.write_text(content)
    with pytest.raises(ConfigError, match=words):
        read_replay([file])


def test_a_folder_without_such_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no file in '.*' ends in \.jsonl or \.parquet"):
        read_replay([tmp_path])


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="Parquet needs it: pip install 'alipes[tables]'")
    (tmp_path / "log.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ConfigError, match="cannot be read as Parquet"):
        read_replay([tmp_path])
