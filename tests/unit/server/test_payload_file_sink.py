"""Files of the payload log: what they hold, what they are called, and what does not reach them."""

from __future__ import annotations

import base64
import csv
import io
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from alipes.errors import ConfigError, RepositoryError
from alipes.repository.store.base import Store
from alipes.server.payloads import file_sink
from alipes.server.payloads.file_sink import FileSink
from alipes.server.payloads.record import COLUMNS
from alipes.server.payloads.sink import Payload, SinkFailed

SOURCE = {"source": "iris-0", "inferenceservicename": "iris", "namespace": "ns", "component": "predictor"}
HEAD: dict[str, Any] = {
    "side": "request",
    "exchange": "e-1",
    "model": "double",
    "version": 2,
    "request_id": "",
    "unix_ns": 1_790_000_000_000_001_000,
    "status": 200,
    "content_type": "application/json",
    "path": "/v1/models/double:explain",
    "headers": {"x-team": "waves, «ö»"},
}
PAYLOADS = [
    Payload(HEAD, b'{"inputs":[]}'),
    Payload(HEAD | {"side": "response", "status": 500, "request_id": "7", "headers": {}}, b"\xff\n"),
]
ROW = {
    "bytes": base64.b64encode(b'{"inputs":[]}').decode(),
    "contentType": "application/json",
    "reqType": "org.kubeflow.serving.inference.request",
    "id": "e-1",
    "sourceUri": "iris-0",
    "inferenceService": "iris",
    "namespace": "ns",
    "component": "predictor",
    "endpoint": "double",
    "occurrenceTime": "2026-09-21T14:13:20.000001Z",
    "modelVersion": "2",
    "path": "/v1/models/double:explain",
}


def written(folder: Path, file_format: str) -> tuple[Path, str]:
    """The one file that a sink writes, and its address."""
    address = folder.as_uri()
    FileSink(address, file_format, SOURCE).send(PAYLOADS)
    (file,) = (one for one in folder.rglob("*") if one.is_file())
    return file, address


def test_lines_of_json_leave_out_what_is_empty(tmp_path: Path) -> None:
    file, address = written(tmp_path, "json")
    first, second = (json.loads(line) for line in file.read_text().splitlines())
    assert first == {**ROW, "url": address, "status": 200, "metadata": {"x-team": ["waves, «ö»"]}}
    assert base64.b64decode(second["bytes"]) == b"\xff\n"
    assert (second["requestId"], second["status"], "metadata" in second) == ("7", 500, False)


def test_csv_has_the_columns_of_kserve_first(tmp_path: Path) -> None:
    file, address = written(tmp_path, "csv")
    header, first, second = csv.reader(io.StringIO(file.read_text()))
    assert header == list(COLUMNS)
    kserves = "url,bytes,contentType,reqType,id,sourceUri,inferenceService,namespace,component,endpoint,metadata"
    assert ",".join(header).startswith(f"{kserves},annotations,certName,tlsSkipVerify,")
    row = dict(zip(header, first, strict=True))
    assert {**ROW, "url": address, "tlsSkipVerify": "false", "status": "200"}.items() <= row.items()
    assert json.loads(row["metadata"]) == {"x-team": ["waves, «ö»"]}
    assert dict(zip(header, second, strict=True))["requestId"] == "7"


def test_a_file_lies_where_kserve_puts_it_under_a_name_of_its_own(tmp_path: Path) -> None:
    for _ in range(2):  # two servers of one name
        sink = FileSink(tmp_path.as_uri(), "json", SOURCE)
        for _ in range(3):
            sink.send(PAYLOADS)
    files = sorted(tmp_path.rglob("*.jsonl"))
    assert len(files) == 6
    assert {str(file.parent.relative_to(tmp_path)) for file in files} == {"ns/iris/predictor/2026-09-21"}
    assert all(file.name.startswith("20260921T141320.000001Z-iris-0-") for file in files)
    assert not list(tmp_path.rglob(".*")), "a draft was left"


def test_names_of_the_environment_lead_nowhere_else(tmp_path: Path) -> None:
    FileSink((tmp_path / "log").as_uri(), "json", {"source": "../../x", "namespace": "../.."}).send(PAYLOADS)
    assert [one.name for one in tmp_path.iterdir()] == ["log"]


def test_a_place_that_cannot_be_written_is_a_failure_until_it_can(tmp_path: Path) -> None:
    place = tmp_path / "log"
    place.write_text("a file")
    sink = FileSink(place.as_uri(), "json", SOURCE)
    with pytest.raises(SinkFailed, match=r"File exists|Not a directory"):
        sink.send(PAYLOADS)
    place.unlink()
    sink.send(PAYLOADS)
    assert len(list(place.rglob("*.jsonl"))) == 1


class Hanging:
    """A store whose first file waits."""

    def __init__(self) -> None:
        self.may_write = threading.Event()
        self.paths: list[str] = []

    def write(self, obj: bytes, path: str) -> None:
        self.paths.append(path)
        self.may_write.wait()


def test_a_store_that_hangs_holds_one_thread_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Hanging()

    def open_hanging(*_: object, **__: object) -> Store:
        return store  # type: ignore[return-value]  # the sink asks a store for nothing else

    monkeypatch.setattr(file_sink, "open_store", open_hanging)
    sink = FileSink("file:///nowhere", "json", SOURCE, timeout_s=0.01)
    with pytest.raises(SinkFailed, match=r"not written within 0\.01 s"):
        sink.send(PAYLOADS)
    for _ in range(3):
        with pytest.raises(SinkFailed, match="an earlier file is still being written"):
            sink.send(PAYLOADS)
    assert len(store.paths) == 1
    store.may_write.set()


@pytest.mark.parametrize("address", ["nowhere://x/y", "hf://a/b"])
def test_an_address_that_nothing_opens_is_refused_at_once(address: str) -> None:
    with pytest.raises(RepositoryError, match=r"is unknown|is not offered|needs the package fsspec"):
        FileSink(address, "json", SOURCE)


def test_files_of_a_missing_package_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alipes.server.payloads.formats.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="files of parquet need the package pyarrow"):
        FileSink("file:///nowhere", "parquet", SOURCE)


@pytest.mark.extra("plots")  # which comes with tables
def test_parquet_has_typed_columns(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    file, address = written(tmp_path, "parquet")
    table = parquet.read_table(file)
    assert table.column_names == list(COLUMNS)
    assert {name: str(table.schema.field(name).type) for name in ("bytes", "tlsSkipVerify", "status")} == {
        "bytes": "string",
        "tlsSkipVerify": "bool",
        "status": "int32",
    }
    first, second = table.to_pylist()
    assert {**ROW, "url": address, "status": 200, "tlsSkipVerify": False}.items() <= first.items()
    assert (second["status"], base64.b64decode(second["bytes"])) == (500, b"\xff\n")
