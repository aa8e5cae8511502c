"""Ensembles over real endpoints: chains, ensembles in ensembles, streams of responses, ends, reloads, crashes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http as http_client
from alipes import repository as qv
from support import text_models
from support.endpoints import ENDPOINTS
from support.exported import scaled
from support.models import add_model, times
from support.server import ServerProcess
from support.streams import Stream
from support.text_models import ask, stream
from support.traffic import Traffic
from support.waiting import until
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

# What a thousand answers take at most on a machine that has other things to do.
BUSY_S = 300.0

UPPER = """
class TritonPythonModel:
    def execute(self, requests):
        return [self.one(text(request)) for request in requests]

    def one(self, how):
        if how == "die":
            os._exit(3)
        if how == "fail":
            error = pb_utils.TritonError("it failed", pb_utils.TritonError.ALREADY_EXISTS)
            return pb_utils.InferenceResponse(error=error)
        return good(how.upper())
"""

QUOTE = """
class TritonPythonModel:
    def execute(self, requests):
        return [good(f"<{text(request)}>") for request in requests]
"""

# Batches, and says in which shape a text came.
SHAPED = """
class TritonPythonModel:
    def execute(self, requests):
        return [self.one(pb_utils.get_input_tensor_by_name(request, "HOW").as_numpy()) for request in requests]

    def one(self, given):
        said = [[f"{list(given.shape)}{row[0].decode()}"] for row in given]
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array(said, dtype=object))])
"""

# Says which sequence a text belongs to.
WHOSE = """
class TritonPythonModel:
    def execute(self, requests):
        return [good(f"{text(request)} {request.correlation_id()}:{request.flags()}") for request in requests]
"""

# Gives numbers until it has given enough, or the caller leaves.
COUNTER = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            given = 0
            while given < int(text(request)) and not sender.is_cancelled():
                sender.send(good(given))
                given += 1
            with open(os.environ["NOTES"], "a") as notes:
                notes.write(f"{given}\\n")
            sender.send(flags=FINAL)
"""

# Passes a text on to another model and returns its answer or error.
CALLER = """
class TritonPythonModel:
    def execute(self, requests):
        return [self.one(*text(request).split(" ", 1)) for request in requests]

    def one(self, model, how):
        given = pb_utils.Tensor("HOW", np.array([how], dtype=object))
        call = pb_utils.InferenceRequest(model_name=model, requested_output_names=["OUT"], inputs=[given])
        if model == "counted":
            responses = list(call.exec(decoupled=True))
            return good([tensor.as_numpy()[0].decode() for one in responses for tensor in one.output_tensors()])
        response = call.exec()
        if response.has_error():
            return good(response.error().message())
        return good(response.output_tensors()[0].as_numpy()[0].decode())
"""


def add_ensemble(repository: Path, name: str, *models: str, kind: str = "TYPE_STRING", dims: int = 1) -> None:
    """Adds an ensemble that calls models of one input and one output one after the other."""
    ports = ("X", "Y") if kind != "TYPE_STRING" else ("HOW", "OUT")
    tensors = [ports[0], *(f"t{number}" for number in range(1, len(models))), ports[1]]
    steps = [
        f'{{ model_name: "{model}" model_version: -1 input_map {{ key: "{ports[0]}" value: "{before}" }} '
        f'output_map {{ key: "{ports[1]}" value: "{after}" }} }}'
        for model, before, after in zip(models, tensors[:-1], tensors[1:], strict=True)
    ]
    (repository / name / "1").mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(
        f'platform: "ensemble" max_batch_size: {4 if kind != "TYPE_STRING" else 0} '
        f'input {{ name: "{ports[0]}" data_type: {kind} dims: {dims} }} '
        f'output {{ name: "{ports[1]}" data_type: {kind} dims: {dims} }} '
        f"ensemble_scheduling {{ step [ {', '.join(steps)} ] }}"
    )


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notes") / "notes"


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory, notes: Path) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    text_models.add_model(repository, "upper", UPPER)
    text_models.add_model(repository, "quote", QUOTE)
    text_models.add_model(repository, "counter", COUNTER, decoupled=True)
    text_models.add_model(repository, "caller", CALLER)
    add_ensemble(repository, "both", "upper", "quote")
    add_ensemble(repository, "nested", "both", "both", "quote")
    add_ensemble(repository, "counted", "counter", "both")
    add_ensemble(repository, "calls", "caller", "quote")
    text_models.add_model(repository, "shaped", SHAPED, more="max_batch_size: 4")
    add_ensemble(repository, "mixed", "upper", "shaped", "quote")
    text_models.add_model(repository, "whose", WHOSE)
    add_ensemble(repository, "theirs", "whose", "whose")
    return serve_module(repository, environment={"NOTES": str(notes)})


@pytest.mark.parametrize(
    ("model", "message"), [("both", "<A B>"), ("nested", "<<<A B>>>"), ("caller", "<A B>"), ("calls", "<<A B>>")]
)
def test_each_endpoint_passes_on_the_error_of_the_last_step(server: ServerProcess, model: str, message: str) -> None:
    how = "both a b" if model in ("caller", "calls") else "a b"
    assert ask(server, model, how) == (200, message)
    assert stream(server, model, how) == [message, "end"]


def test_a_batch_dimension_exists_only_inside_a_batching_step(server: ServerProcess) -> None:
    assert ask(server, "mixed", "a") == (200, "<[1, 1]A>")
    assert stream(server, "mixed", "a") == ["<[1, 1]A>", "end"]


@pytest.mark.parametrize(("start", "end", "flags"), [(True, False, 1), (False, False, 0), (False, True, 2)])
def test_each_step_knows_which_sequence_its_caller_is_in(
    server: ServerProcess, start: bool, end: bool, flags: int
) -> None:
    given = http_client.InferInput("HOW", [1], "BYTES")
    given.set_data_from_numpy(np.array(["a"], dtype=object))
    with http_client.InferenceServerClient(server.http) as client:
        answer = client.infer("theirs", [given], sequence_id=7, sequence_start=start, sequence_end=end)
    assert answer.as_numpy("OUT")[0].decode() == f"a 7:{flags} 7:{flags}"


def test_many_requests_at_a_time_get_each_their_own_answer(server: ServerProcess) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda number: ask(server, "nested", f"n{number}"), range(200)))
    assert answers == [(200, f"<<<N{number}>>>") for number in range(200)]


def test_an_error_of_a_step_names_every_ensemble_around_it(server: ServerProcess) -> None:
    assert ask(server, "nested", "fail") == (400, "in ensemble 'nested', in ensemble 'both', it failed")


def test_a_model_cannot_call_its_own_ensemble(server: ServerProcess) -> None:
    status, text = ask(server, "calls", "calls both a")
    assert (status, "the call would wait for itself" in text) == (200, True)


def test_a_decoupled_step_has_all_that_follows_it_run_for_each_response(server: ServerProcess) -> None:
    assert stream(server, "counted", "40") == [*(f"<{number}>" for number in range(40)), "end"]
    assert stream(server, "counted", "0") == ["end"]
    assert ask(server, "caller", "counted 3") == (200, "['<0>', '<1>', '<2>']")
    assert ask(server, "counted", "3") == (
        501,
        "HTTP end point doesn't support models with decoupled transaction policy",
    )


def test_a_decoupled_step_learns_that_the_caller_has_left(server: ServerProcess, notes: Path) -> None:
    before = notes.read_text() if notes.exists() else ""
    with Stream(server) as caller:
        caller.send("counted", {"HOW": ["1000000000"]})
        for _ in range(3):
            caller.receive()
    until(lambda: notes.exists() and notes.read_text() != before, "the model was told")
    assert 3 <= int(notes.read_text().splitlines()[-1]) < 1000000000


def test_a_step_whose_process_dies_fails_its_request_and_serves_on(server: ServerProcess) -> None:
    status, text = ask(server, "both", "die")
    assert (status, text.startswith("in ensemble 'both', ")) == (503, True)
    until(lambda: ask(server, "both", "a") == (200, "<A>"), "a new process serves")


def test_an_ensemble_and_its_steps_are_counted(server: ServerProcess) -> None:
    def successes(client: http_client.InferenceServerClient) -> list[int]:
        stats = [client.get_inference_statistics(name)["model_stats"][0] for name in ("both", "upper", "quote")]
        return [one["inference_stats"]["success"]["count"] for one in stats]

    with http_client.InferenceServerClient(server.http) as client:
        before = successes(client)
        assert ask(server, "both", "a") == (200, "<A>")
        until(lambda: successes(client) == [count + 1 for count in before], "all three are counted")


def add_scaled(repository: Path) -> Path:
    folder = add_model(repository, "scaled")
    add_ensemble(repository, "squared", "scaled", "scaled", kind="TYPE_FP32", dims=2)
    return folder


def test_models_whose_outputs_share_a_name_are_chained_and_answer(tmp_path: Path, serve: Serve) -> None:
    repo = qv.ModelRepository(tmp_path / "written")
    models = []
    for name, factor in (("two", 2.0), ("three", 3.0), ("five", 5.0)):
        models.append(repo.add(name, qv.Platform.ONNX))
        models[-1].export_version(scaled(factor=factor))
    two, three, five = models
    chain = repo.add("chain", qv.Platform.ENSEMBLE)
    assert isinstance(chain, qv.EnsembleModel)
    chain.add_input(two.inputs["x"])
    chain.pipe(two.outputs["y"], three.inputs["x"])
    chain.pipe(three.outputs["y"], five.inputs["x"])
    names = [chain.add_output(five.outputs["y"]).name, chain.add_output(three.outputs["y"], key="sixth").name]
    names.append(chain.add_output(two.outputs["y"]).name)
    assert names == ["y", "sixth", "two.y"]
    chain.export_version(None)
    server = serve(tmp_path / "written")
    x = np.arange(4, dtype=np.float32)[None]
    for endpoint in ENDPOINTS.values():
        with endpoint(server) as client:
            reply = client.ask("chain", {"x": x})
        for name, factor in zip(names, (30, 6, 2), strict=True):
            np.testing.assert_array_equal(reply[name], factor * x)


def test_each_request_keeps_its_versions_over_a_reload(repository: Path, serve: Serve) -> None:
    folder = add_scaled(repository)
    server = serve(repository, "--model-control-mode=explicit", "--load-model=squared")
    with http_client.InferenceServerClient(server.http) as client, Traffic(server, "squared") as traffic:
        for factor in (3.0, 2.0, 5.0):
            (folder / "1" / "model.onnx").write_bytes(times(factor).SerializeToString())
            later = time.time_ns() + int(factor) * 10**9
            os.utime(folder / "1" / "model.onnx", ns=(later, later))
            client.load_model("scaled")
    assert traffic.failures == []
    assert {4.0, 25.0} <= set(traffic.answers) <= {4.0, 9.0, 25.0}


@pytest.mark.timeout(BUSY_S + 120)
def test_batching_counts_each_request_once_per_model(repository: Path, serve: Serve) -> None:
    """Quick models are run on whole batches, at once, while others ask them too."""
    for name, factor in (("two", 2.0), ("three", 3.0), ("five", 5.0)):
        config = (
            'backend: "onnxruntime" max_batch_size: 4 dynamic_batching { } instance_group { kind: KIND_CPU count: 1 } '
            'input { name: "X" data_type: TYPE_FP32 dims: 2 } output { name: "Y" data_type: TYPE_FP32 dims: 2 }'
        )
        add_model(repository, name, times(factor), config=config)
    add_ensemble(repository, "thirty", "two", "three", "five", kind="TYPE_FP32", dims=2)
    add_ensemble(repository, "sixty", "thirty", "two", kind="TYPE_FP32", dims=2)
    server = serve(repository)
    expected = {"thirty": 30.0, "sixty": 60.0, "three": 3.0}
    traffic = {model: Traffic(server, model, callers=8) for model in expected}
    with ExitStack() as stack:
        for one in traffic.values():
            stack.enter_context(one)
        until(lambda: len(traffic["sixty"].answers) > 1000, "a thousand answers came", BUSY_S)
    counts = {}
    for model, answer in expected.items():
        assert traffic[model].failures == []
        assert set(traffic[model].answers) == {answer}
        counts[model] = len(traffic[model].answers)
    thirty = counts["thirty"] + counts["sixty"]
    expected = {
        "sixty": counts["sixty"],
        "thirty": thirty,
        "two": thirty + counts["sixty"],
        "three": thirty + counts["three"],
        "five": thirty,
    }
    with http_client.InferenceServerClient(server.http) as client:
        for model, count in expected.items():
            [statistics] = client.get_inference_statistics(model)["model_stats"]
            counts = statistics["inference_stats"]
            assert (statistics["inference_count"], counts["success"]["count"], counts["fail"]["count"]) == (
                count,
                count,
                0,
            )
            assert (counts["queue"]["count"], counts["compute_infer"]["count"]) == (count, count)
            # An ensemble counts each of its requests as one execution.
            rows = sum(
                int(batch["batch_size"]) * batch["compute_infer"]["count"] for batch in statistics["batch_stats"]
            )
            assert rows == count


def test_models_come_and_go_with_their_ensemble(repository: Path, serve: Serve) -> None:
    add_scaled(repository)
    server = serve(repository, "--model-control-mode=explicit")
    with http_client.InferenceServerClient(server.http) as client:
        client.load_model("squared")
        assert client.is_model_ready("scaled")
        client.unload_model("scaled")
        assert not client.is_model_ready("squared")
        client.load_model("scaled")
        assert client.is_model_ready("squared")
        client.unload_model("squared", unload_dependents=True)
        assert client.is_model_ready("scaled"), "it was loaded by name"


def test_a_polled_ensemble_is_ready_once_its_models_are(repository: Path, serve: Serve) -> None:
    server = serve(repository, "--model-control-mode=poll", "--repository-poll-secs=1")
    add_ensemble(repository, "squared", "scaled", "scaled", kind="TYPE_FP32", dims=2)
    with http_client.InferenceServerClient(server.http) as client:
        until(lambda: "absent" not in server.output and "scaled" in server.output, "the ensemble was looked at")
        add_model(repository, "scaled")
        until(lambda: client.is_model_ready("squared"), "it serves once its model does")


def test_an_impossible_ensemble_is_refused_and_harms_no_other(repository: Path, serve: Serve) -> None:
    add_scaled(repository)
    server = serve(repository, "--model-control-mode=explicit", "--load-model=scaled")
    steps = '{"model_name":"%s","model_version":-1,"input_map":{"X":"X"},"output_map":{"Y":"Y"}}'
    config = (
        '{"platform":"ensemble","max_batch_size":4,"input":[{"name":"X","data_type":"TYPE_FP32","dims":[2]}],'
        '"output":[{"name":"Y","data_type":"TYPE_FP32","dims":[2]}],"ensemble_scheduling":{"step":[%s]}}'
    )
    with http_client.InferenceServerClient(server.http) as client:
        for step in (steps % "squared", steps % "../scaled", steps % "absent", ",".join([steps % "scaled"] * 3)):
            with pytest.raises(InferenceServerException, match=r"failed to load|load failed"):
                client.load_model("squared", config=config % step)
        assert client.is_model_ready("scaled")
        client.load_model("squared", config=config % (steps % "scaled"))
        assert client.is_model_ready("squared")
