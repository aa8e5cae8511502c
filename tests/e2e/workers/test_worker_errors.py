"""Errors of the model's code: told, counted, and without a consequence for its process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.endpoints import ENDPOINTS, Endpoint, HttpEndpoint, Refusal
from support.processes import metric, workers_of
from support.python_models import ECHO, add_python_model, parameter
from support.server import ServerProcess
from support.waiting import until

Start = Callable[..., ServerProcess]

WRONG = """
class TritonPythonModel:
    def execute(self, requests):
        how = word(requests[0])
        good = answer(PID=np.array([os.getpid()], np.int64))
        if how == "raises":
            raise ValueError("went wrong")
        if how == "leaves":
            sys.exit("done")
        if how == "recurses":
            return self.execute(requests)
        if how == "none":
            return None
        if how == "too many":
            return [good, good]
        if how == "no list":
            return (good,)
        if how == "no response":
            return ["text"]
        if how == "error":
            return [pb_utils.InferenceResponse(error=pb_utils.TritonError("said no", pb_utils.TritonError.NOT_FOUND))]
        return [good]
"""

FAILED = "Failed to process the request(s) for model 'wrong_0_0', message: "

# The errors that the caller gets.
TEXTS = {
    "raises": "ValueError: went wrong\n\nAt:\n  ",
    "leaves": "SystemExit: done\n\nAt:\n  ",
    "recurses": "RecursionError: ",
    "none": "Expected a list in the execute return, found type '<class 'NoneType'>'.",
    "too many": "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
    "InferenceRequest(s) size is:1, and InferenceResponse(s) size is:2\n",
    "no list": "Expected a list in the execute return, found type '<class 'tuple'>'.",
    "no response": "Expected an 'InferenceResponse' object in the execute function return list, "
    "found type '<class 'str'>'.",
}


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]
) -> Iterator[ServerProcess]:
    repository = tmp_path_factory.mktemp("models")
    add_python_model(repository, "wrong", WRONG, signature="HOW: BYTES[1] -> PID: INT64[1]")
    yield serve_module(repository)


def pid_of(endpoint: Endpoint) -> int:
    return int(endpoint.ask("wrong", {"HOW": ["well"]})["PID"][0])


@pytest.mark.parametrize("how", TEXTS)
def test_a_failed_execution_is_reported_and_counted_once(server: ServerProcess, endpoint: Endpoint, how: str) -> None:
    pid = pid_of(endpoint)
    before = endpoint.statistics("wrong")["inference_stats"]["fail"].get("count", 0)
    failures = metric(server, "nv_inference_request_failure", model="wrong", reason="BACKEND")
    with pytest.raises(Refusal) as refusal:
        endpoint.ask("wrong", {"HOW": [how]})
    assert refusal.value.code == "INTERNAL"
    assert refusal.value.text.startswith(FAILED + TEXTS[how])
    assert endpoint.statistics("wrong")["inference_stats"]["fail"]["count"] == before + 1
    assert metric(server, "nv_inference_request_failure", model="wrong", reason="BACKEND") == failures + 1
    assert pid_of(endpoint) == pid


def test_an_error_that_the_model_says_itself_counts_as_an_answer(server: ServerProcess, endpoint: Endpoint) -> None:
    pid_of(endpoint)
    before = endpoint.statistics("wrong")["inference_stats"]
    with pytest.raises(Refusal) as refusal:
        endpoint.ask("wrong", {"HOW": ["error"]})
    assert refusal.value.text == "said no"
    after = endpoint.statistics("wrong")["inference_stats"]
    assert after["success"]["count"] == before["success"]["count"] + 1
    assert after["fail"].get("count", 0) == before["fail"].get("count", 0)


STARTS = {
    "raises": ("raise KeyError('weights')", "KeyError: 'weights'"),
    "exits": ("os._exit(5)", "worker process of 'broken_0_0' left with exit code 5 while it was loading its model"),
    "crashes": ("ctypes.string_at(0)", "signal 11 (SIGSEGV: segmentation fault) while it was loading its model"),
    "hangs": ("await_note('never')", "its model was not loaded within 0.5 s"),
}


@pytest.mark.parametrize("how", STARTS)
@pytest.mark.parametrize("protocol", ENDPOINTS)
def test_a_model_that_does_not_start_says_why_and_leaves_nothing(
    repository: Path, start: Start, how: str, protocol: str
) -> None:
    code, text = STARTS[how]
    source = ECHO + f"    def initialize(self, args):\n        {code}\n"
    limit = parameter("START_TIMEOUT_SECONDS", "0.5") if how == "hangs" else ""
    add_python_model(repository, "broken", source, config=limit)
    add_python_model(repository, "good")
    server = start("--model-control-mode=explicit", "--load-model=good")
    with ENDPOINTS[protocol](server) as endpoint:
        with pytest.raises(Refusal) as refusal:
            endpoint.load("broken")
        assert text in refusal.value.text
        assert text in endpoint.index("broken")["reason"]
        assert endpoint.index("broken")["state"] == "UNAVAILABLE"
        assert not endpoint.is_ready("broken")
        assert endpoint.ask("good", {"X": [1]})["Y"].tolist() == [1]
    until(lambda: len(workers_of(server)) == 1)


def test_a_broken_model_does_not_keep_the_others_from_starting(repository: Path, start: Start) -> None:
    (add_python_model(repository, "broken") / "1" / "model.py").write_text("import no_such_module\n")
    add_python_model(repository, "empty", "class Other: pass\n")
    add_python_model(repository, "good")
    server = start(all_load=False)
    with HttpEndpoint(server) as endpoint:
        assert endpoint.ask("good", {"X": [1]})["Y"].tolist() == [1]
        assert "ModuleNotFoundError: No module named 'no_such_module'" in endpoint.index("broken")["reason"]
        assert "TritonPythonModel" in endpoint.index("empty")["reason"]


def test_an_exception_of_a_model_is_lines_of_the_log_that_begin_at_its_own(
    server: ServerProcess, endpoint: Endpoint
) -> None:
    with pytest.raises(Refusal, match="went wrong"):
        endpoint.ask("wrong", {"HOW": ["raises"]})
    server.wait_for_output(r'model\.py:\d+\] "wrong_0_0: ValueError: went wrong"\n')
    server.wait_for_output(r'model\.py:\d+\]     File "[^"]+model\.py", line \d+, in execute\n')
