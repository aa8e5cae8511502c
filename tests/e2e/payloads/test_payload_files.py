"""The payload log as files of a folder, of servers that really run."""

from __future__ import annotations

import base64
import csv
import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.models import add_model, times
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

BODY = {"id": "7", "inputs": [{"name": "X", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}


def post(server: ServerProcess) -> None:
    url = f"http://{server.http}/v2/models/double/infer"
    with urllib.request.urlopen(url, json.dumps(BODY).encode(), timeout=TIMEOUT_S) as answer:
        assert b'"Y"' in answer.read()


def failed(server: ServerProcess) -> float:
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=TIMEOUT_S) as answer:
        text = answer.read().decode()
    found = re.search(r'^alipes_logged_payloads_total\{outcome="failed"\} (\S+)$', text, re.M)
    assert found is not None
    return float(found[1])


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.rglob("*.jsonl")) for line in file.read_text().splitlines()]


def test_servers_write_their_files_side_by_side(
    repository: Path, serve: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    add_model(repository, "double", times(columns=2))
    place = tmp_path / "log"
    flags = (f"--payload-log-url={place.as_uri()}", "--payload-log-batch-size=8", "--payload-log-redact=X")
    servers = [serve(repository, *flags, environment={"POD_NAME": "iris-0"}) for _ in range(2)]
    for server in servers:
        for _ in range(10):  # two files of eight, and one of four
            post(server)
    until(lambda: len(lines(place)) >= 32, "files that are full are there")
    for server in servers:
        assert server.stop() == 0
    records = lines(place)
    assert sorted(len(file.read_text().splitlines()) for file in place.rglob("*.jsonl")) == [4, 4, 8, 8, 8, 8]
    assert len({record["id"] for record in records}) == 20
    assert {record["sourceUri"] for record in records} == {"iris-0"}
    bodies = [json.loads(base64.b64decode(record["bytes"])) for record in records]
    asked = [body["inputs"] for body in bodies if "inputs" in body]
    assert asked == [[{"name": "X", "datatype": "FP32", "shape": [1, 2]}]] * 20  # its values are redacted
    assert [body["outputs"][0]["data"] for body in bodies if "outputs" in body] == [[2, 4]] * 20


def test_a_file_is_written_once_its_time_is_over(
    repository: Path, serve: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    add_model(repository, "double", times(columns=2))
    place = tmp_path / "log"
    flags = (f"--payload-log-url={place.as_uri()}", "--payload-log-format=csv", "--payload-log-batch-interval=0.05")
    server = serve(repository, *flags)
    post(server)
    until(lambda: list(place.rglob("*.csv")), "a file")
    (first, *_) = sorted(place.rglob("*.csv"))
    with first.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["reqType"].endswith(".request")
    assert json.loads(base64.b64decode(rows[0]["bytes"]))["inputs"] == BODY["inputs"]


def test_a_folder_that_cannot_be_written_costs_no_request(
    repository: Path, serve: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    add_model(repository, "double", times(columns=2))
    place = tmp_path / "log"
    place.write_text("a file")
    server = serve(repository, f"--payload-log-url={place.as_uri()}", "--payload-log-batch-interval=0.05")
    for _ in range(20):
        post(server)
    until(lambda: failed(server) >= 2, "what was not written is counted")
    server.wait_for_output("the payload log's sink did not take")  # the log follows the counts
    assert server.output.count("the payload log's sink did not take") == 1
    place.unlink()
    post(server)
    server.wait_for_output("the payload log is taken again")
    assert lines(place)
