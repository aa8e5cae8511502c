"""The rows of KServe's contract for runtimes that the server answers for, each a test named after its row.

Rows 1, 5, 8, 9 and 10 are what `alipes deploy kserve` writes. The V1 routes of row 7, and CloudEvents, row 19, have
tests of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from alipes import Client
from alipes.config.load import parse_flags
from support.models import times
from support.notes import Notes
from support.other_user import USER, launcher, private_folder, why_not
from support.ports import free_ports
from support.python_models import add_python_model
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

KEEP_ALIVE_OF_ENVOY_S = 60

# Waits before it is ready, and in a request that says so.
SLOW = """
class TritonPythonModel:
    def initialize(self, args):
        note("loading")
        await_note("ready")

    def execute(self, requests):
        if given(requests[0])[0] < 0:
            note("computing")
            await_note("answer")
        return [answer(Y=given(request)) for request in requests]
"""


@dataclass(frozen=True)
class Runtime:
    """A server as KServe starts a container: the model's files at one place, the ports that the pod lists."""

    server: ServerProcess
    store: Path
    scratch: Path
    ports: tuple[int, int, int]
    other_user: str
    before: list[tuple[str, int]]


def looks(folder: Path) -> list[tuple[str, int]]:
    """Everything below a folder, with its time."""
    return sorted((str(one), one.lstat().st_mtime_ns) for one in (folder, *folder.rglob("*")))


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    """A bare ONNX model, as storage initializers leave one, served by a user that owns nothing where that can be."""
    refusal = why_not()
    scratch = tmp_path_factory.mktemp("scratch") if refusal else private_folder()
    (store := scratch / "mnt").mkdir()
    (store / "digits.onnx").write_bytes(times(2.0, "columns").SerializeToString())
    for stray in ("SUCCESS.0a1b2c", "README.md", ".gitattributes"):
        (store / stray).write_text("")
    (store / "lost+found").mkdir()
    store.chmod(0o555)
    (temporary := scratch / "tmp").mkdir()
    if not refusal:
        os.chown(temporary, USER, USER)
    http, grpc, metrics = free_ports(3)
    ports = (f"--http_port={http}", f"--grpc_port={grpc}", f"--metrics_port={metrics}")
    before = looks(store)
    server = ServerProcess(
        f"--model_store={store}",
        "--model_name=iris",
        launcher=() if refusal else launcher(temporary),
        environment={"TMPDIR": str(temporary)},
        folder=Path("/"),
        ports=ports,
    )
    with server:
        yield Runtime(server.wait_until_started(), store, temporary, (http, grpc, metrics), refusal, before)
    store.chmod(0o755)
    shutil.rmtree(scratch, ignore_errors=True)


def status(address: str, path: str) -> int:
    """The status of a probe; 0 where nobody answers, as a kubelet sees it."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=TIMEOUT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def infer_body(values: list[float]) -> str:
    shape = [1, len(values)]
    return json.dumps({"inputs": [{"name": "X", "datatype": "FP32", "shape": shape, "data": values}]})


def test_row_2_http_answers_at_the_port_that_the_pod_lists(runtime: Runtime) -> None:
    assert runtime.server.http.endswith(f":{runtime.ports[0]}")
    assert status(f"127.0.0.1:{runtime.ports[0]}", "/v2/models/iris/ready") == 200


def test_row_12_the_root_says_that_the_server_is_alive(runtime: Runtime) -> None:
    """KServe's own server has it, and clients of its SDK ask there."""
    for accept in ("*/*", "application/json"):
        request = urllib.request.Request(f"http://{runtime.server.http}/", headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            assert json.loads(answer.read()) == {"status": "alive"}


def test_row_3_grpc_answers_without_encryption_at_its_port(runtime: Runtime) -> None:
    with grpc_client.InferenceServerClient(f"127.0.0.1:{runtime.ports[1]}") as client:
        assert client.is_model_ready("iris") and client.is_server_ready()


def test_row_4_files_without_folders_of_name_and_version_are_served(runtime: Runtime) -> None:
    with Client(runtime.server.http) as client:
        assert client.infer("iris", {"X": np.ones((1, 3), np.float32)})["Y"].tolist() == [[2, 2, 2]]
        assert [(model.name, model.version, model.state) for model in client.models()] == [("iris", "1", "READY")]


@pytest.mark.parametrize(
    "layout",
    [
        ["digits/1/model.onnx", "letters/3/model.onnx"],
        ["digits/model.onnx", "letters/any.onnx"],
        ["digits/model.onnx", "letters/1/model.onnx"],
    ],
    ids=["repository", "bare", "mixed"],
)
def test_row_4_a_parent_of_models_is_served_by_their_names(layout: list[str], tmp_path: Path, serve: Serve) -> None:
    for path in layout:
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(times(2.0, 2).SerializeToString())
    server = serve(f"--model-store={tmp_path}", "--model-name=service")
    with Client(server.http) as client:
        assert sorted(model.name for model in client.models()) == ["digits", "letters"]
        assert client.infer("letters", {"X": np.ones((1, 2), np.float32)})["Y"].tolist() == [[2, 2]]


@pytest.mark.parametrize(
    "flags",
    [
        ["--model_name=iris", "--model_dir=/mnt/models", "--http_port=8080", "--grpc_port=9000"],
        ["--model_name", "iris", "--model_dir", "/mnt/models", "--http_port", "8080", "--grpc_port", "9000"],
        ["--model-name=iris", "--model-store=/mnt/models", "--http-port=8080", "--grpc-port=9000"],
    ],
)
def test_row_6_the_conventional_flags_are_read_in_their_spellings(flags: list[str]) -> None:
    options = parse_flags(flags, {})
    assert (options.repository.model_name, options.repository.stores) == ("iris", ("/mnt/models",))
    assert (options.http.port, options.grpc.port) == (8080, 9000)


def test_rows_2_11_14_and_15_of_a_slow_model(tmp_path: Path) -> None:
    """`INFERENCE_SERVICE_NAME` names it, `PORT` is its port; probes wait for it, and a stop for its answer."""
    notes = Notes(tmp_path / "notes")
    store = add_python_model(tmp_path, "files", SLOW)
    shutil.move(store / "1" / "model.py", store / "model.py")
    (store / "1").rmdir()
    (port,) = free_ports(1)
    environment = {"INFERENCE_SERVICE_NAME": "slow", "PORT": str(port), **notes.environment}
    more = ("--grpc-port=0", "--metrics-port=0")
    with ServerProcess(f"--model-store={store}", "--exit-grace-secs=0", environment=environment, ports=more) as server:
        address = f"127.0.0.1:{port}"
        notes.read("loading")
        assert status(address, "/v2/health/ready") != 200  # row 11: a probe fails until the model serves
        assert status(address, "/v2/models/slow/ready") != 200
        notes.write("ready")
        until(lambda: status(address, "/v2/health/ready") == 200, server.output)
        assert status(address, "/v2/models/slow/ready") == 200
        answers: list[tuple[int, bytes]] = []
        waiting = threading.Thread(target=lambda: answers.append(post(address, "slow", -1)))
        waiting.start()
        notes.read("computing")
        server.signal()
        until(lambda: status(address, "/v2/health/ready") != 200, server.output)
        assert status(address, "/v2/health/live") == 200  # row 14: nothing ends before what is in flight
        notes.write("answer")
        waiting.join(TIMEOUT_S)
        assert server.wait() == 0
    assert {path.name for path in store.iterdir()} == {"config.pbtxt", "model.py"}
    [(code, answer)] = answers
    assert (code, json.loads(answer)["outputs"][0]["data"]) == (200, [-1])


def post(address: str, model: str, value: int) -> tuple[int, bytes]:
    connection = HTTPConnection(address, timeout=TIMEOUT_S)
    given = [{"name": "X", "datatype": "INT32", "shape": [1], "data": [value]}]
    connection.request("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": given}))
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_row_12_startup_and_liveness_have_paths_of_their_own(runtime: Runtime) -> None:
    assert status(runtime.server.http, "/v2/health/live") == 200
    assert status(runtime.server.http, "/v2/health/ready") == 200


def test_row_13_any_user_serves_and_writes_temporary_files_alone(runtime: Runtime) -> None:
    if runtime.other_user:
        pytest.skip(runtime.other_user)
    facts = Path(f"/proc/{runtime.server.process.pid}/status").read_text().split("\n")
    said = dict(line.split(":\t", 1) for line in facts if ":\t" in line)
    assert said["Uid"].split() == [str(USER)] * 4 and said["NoNewPrivs"] == "1"
    assert int(said["CapBnd"], 16) == int(said["CapEff"], 16) == 0
    assert looks(runtime.store) == runtime.before
    written = [path.name for path in runtime.scratch.iterdir()]
    assert written and all(name.startswith("alipes-") for name in written)


def test_row_16_connections_outlive_the_idle_time_of_a_proxy(runtime: Runtime) -> None:
    assert parse_flags(["--model-store=/mnt/models"], {}).connections.idle_timeout_s > KEEP_ALIVE_OF_ENVOY_S + 5
    connection = HTTPConnection(runtime.server.http, timeout=TIMEOUT_S)
    for _ in range(2):
        connection.request("GET", "/v2/health/live")
        answer = connection.getresponse()
        answer.read()
        assert answer.getheader("Connection") != "close" and connection.sock is not None
    connection.close()


def test_row_17_grpc_messages_are_larger_than_grpcs_own_limit(runtime: Runtime) -> None:
    rows = np.ones((1, 1_500_000), np.float32)  # 6 MB, where gRPC's own limit is 4
    with Client(f"grpc://{runtime.server.grpc}") as client:
        assert float(client.infer("iris", {"X": rows})["Y"].sum()) == 2 * rows.size


def test_a_request_of_v2_may_have_many_rows(runtime: Runtime) -> None:
    # As many as KServe's own runtimes take; without a configuration nobody has said that there are fewer.
    rows = np.ones((1000, 3), np.float32)
    with Client(runtime.server.http) as client:
        assert client.infer("iris", {"X": rows})["Y"].shape == rows.shape


def test_requests_of_every_protocol_are_one_batch_of_a_bare_model(tmp_path: Path, serve: Serve) -> None:
    """As KServe's batcher joins those of V1. None is answered before the batch is full: the wait is an hour."""
    (tmp_path / "model.onnx").write_bytes(times(2.0, 2).SerializeToString())
    settings = {"default-max-batch-size": 8, "default-max-queue-delay-microseconds": 3600 * 10**6}
    flags = [f"--backend-config={name}={value}" for name, value in settings.items()]
    server = serve(f"--model-store={tmp_path}", "--model-name=iris", *flags)

    def predict(first: int) -> list[list[float]]:
        body = json.dumps({"instances": [[first, 1], [first, 2]]}).encode()
        request = urllib.request.Request(f"http://{server.http}/v1/models/iris:predict", body)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            rows: list[list[float]] = json.loads(answer.read())["predictions"]
            return rows

    def infer(address: str, first: int) -> list[list[float]]:
        with Client(address, timeout=TIMEOUT_S) as client:
            rows: list[list[float]] = client.infer("iris", {"X": np.float32([[first, 1], [first, 2]])})["Y"].tolist()
            return rows

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(predict, 0), pool.submit(predict, 1)]
        asked += [pool.submit(infer, server.http, 2), pool.submit(infer, f"grpc://{server.grpc}", 3)]
        assert [one.result(TIMEOUT_S) for one in asked] == [[[2 * n, 2], [2 * n, 4]] for n in range(4)]
    with Client(server.http) as client:
        (counts,) = client.statistics("iris")
        assert (int(counts["inference_count"]), int(counts["execution_count"])) == (8, 1)


def test_row_18_the_id_of_a_proxy_is_that_of_the_request(runtime: Runtime) -> None:
    connection = HTTPConnection(runtime.server.http, timeout=TIMEOUT_S)
    headers = {"x-request-id": "b7f0-12ab", "authorization": "Bearer of-nothing", "x-b3-traceid": "0a"}
    connection.request("POST", "/v2/models/iris/infer", infer_body([1.0, 2.0]), headers)
    answer = connection.getresponse()
    document = json.loads(answer.read())
    assert (answer.status, answer.getheader("X-Request-Id"), document["id"]) == (200, "b7f0-12ab", "b7f0-12ab")
    assert "of-nothing" not in runtime.server.output
    connection.close()


def test_row_20_pages_for_people_are_off_as_in_kserves_own_server(runtime: Runtime) -> None:
    assert [status(runtime.server.http, path) for path in ("/docs", "/openapi.json")] == [404, 404]


def test_row_20_a_flag_of_kserves_server_offers_them(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "digits.onnx").write_bytes(times(2.0, 2).SerializeToString())
    server = serve(f"--model-store={tmp_path}", "--model_name=iris", "--enable_docs_url=True")
    with urllib.request.urlopen(f"http://{server.http}/openapi.json", timeout=TIMEOUT_S) as answer:
        paths = json.loads(answer.read())["paths"]
    assert {"/v1/models/iris:predict", "/v2/models/iris/infer", "/v1/models", "/v2/health/ready"} <= set(paths)
    assert status(server.http, "/docs") == 200


def test_a_store_without_a_model_ends_the_start_with_what_was_found(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "weights.bin").write_text("no model")
    with ServerProcess(f"--model-store={tmp_path / 'store'}", "--model-name=iris") as server:
        assert server.wait() == 1
    assert "holds weights.bin" in server.output.replace("\n  ", " ") and "expected a model's file" in server.output
