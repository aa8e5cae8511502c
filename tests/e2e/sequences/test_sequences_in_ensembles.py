"""Models with slots and states as steps of ensembles, and decoupled models before and behind them."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.models import add_model, counts_up
from support.python_models import DECOUPLED, REPORTS, add_python_model, instances
from support.sequence_callers import Caller
from support.sequences import Refused, SequenceStream
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

STATE = 'state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ] } ]'

STRATEGIES = {"direct": "direct { }", "oldest": "oldest { max_candidate_sequences: 4 }"}

# Adds X to a number that the server keeps, and tells it.
SUMS = """
class TritonPythonModel:
    def execute(self, requests):
        totals = [given(r) + given(r, "OLD") for r in requests]
        return [answer(Y=total, NEW=total) for total in totals]
"""

# Takes as long as its input says, so that those that came later are done earlier.
UNEVEN = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            time.sleep(int(given(request).flat[0]) % 4 / 400)
        return [answer(Y=given(request)) for request in requests]
"""

NUMBER = "X: INT32[1] -> Y: INT32[1]"


def batching(strategy: str, rows: int = 4) -> str:
    # No sequence is forgotten while a busy machine has no time for its caller.
    idle = "max_sequence_idle_microseconds: 600000000"
    return f"max_batch_size: {rows}\nsequence_batching {{ {idle} {STRATEGIES[strategy]} {STATE} }}"


def add_chain(repository: Path, name: str, models: list[str], rows: int = 4, dims: int = 1) -> None:
    """Adds an ensemble of models from X to Y, one behind the other."""
    tensors = ["X", *(f"t{number}" for number in range(1, len(models))), "Y"]
    steps = ", ".join(
        f'{{ model_name: "{model}" model_version: -1 input_map {{ key: "X" value: "{before}" }} '
        f'output_map {{ key: "Y" value: "{after}" }} }}'
        for model, before, after in zip(models, tensors[:-1], tensors[1:], strict=True)
    )
    (repository / name / "1").mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(
        f'platform: "ensemble" max_batch_size: {rows} ensemble_scheduling {{ step [ {steps} ] }} '
        f'input {{ name: "X" data_type: TYPE_INT32 dims: {dims} }} output {{ name: "Y" data_type: TYPE_INT32 dims: 1 }}'
    )


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    repository: Path = tmp_path_factory.mktemp("models")
    add_python_model(repository, "uneven", UNEVEN, signature=NUMBER, config="max_batch_size: 4\n" + instances(3))
    for strategy in STRATEGIES:
        add_python_model(repository, f"python_{strategy}", SUMS, signature=NUMBER, config=batching(strategy))
        config = f"""
            backend: "onnxruntime" {batching(strategy)} {instances(1)}
            input {{ name: "X" data_type: TYPE_INT32 dims: 1 }} output {{ name: "Y" data_type: TYPE_INT32 dims: 1 }}
        """
        add_model(repository, f"onnx_{strategy}", counts_up(), config=config)
        for kind in ("python", "onnx"):
            add_chain(repository, f"around_{kind}_{strategy}", ["uneven", f"{kind}_{strategy}", "uneven"])
    add_python_model(repository, "tells", REPORTS, config=DECOUPLED)
    add_python_model(repository, "alone", SUMS, signature=NUMBER, config=batching("direct", rows=0))
    add_chain(repository, "told_and_summed", ["tells", "alone"], rows=0, dims=-1)
    add_chain(repository, "summed_and_told", ["alone", "tells"], rows=0)
    add_chain(repository, "nested", ["around_onnx_oldest", "around_python_direct"])
    return serve_module(repository)


def numbers(*values: int) -> NDArray[np.int32]:
    return np.array(values, np.int32)


AROUND = [f"around_{kind}_{strategy}" for kind in ("python", "onnx") for strategy in STRATEGIES]


@pytest.mark.parametrize("model", AROUND)
def test_sequences_on_one_stream_keep_state_and_order(server: ServerProcess, model: str) -> None:
    """Three instances in front answer out of order, and more sequences come than there are slots."""
    sequences, steps = 10, 12
    with SequenceStream(server) as caller:
        for step in range(steps):
            for sequence in range(1, sequences + 1):
                flags = {"start": step == 0, "end": step == steps - 1}
                caller.send(model, "X", numbers(sequence * 10 + step).reshape(1, 1), sequence, **flags)
        answers = [int(answer.flat[0]) for answer in caller.receive_all(sequences * steps)]
    expected = [
        sum(sequence * 10 + before for before in range(step + 1))
        for step in range(steps)
        for sequence in range(1, sequences + 1)
    ]
    assert sorted(answers) == sorted(expected)


@pytest.mark.parametrize("model", [*AROUND, "nested"])
def test_a_state_begins_anew_with_start_and_goes_with_end(server: ServerProcess, model: str) -> None:
    refused = f"in ensemble '{model}', "
    twice = model == "nested"
    with ThreadPoolExecutor(4) as pool:

        def play(sequence: int) -> list[int]:
            with Caller(server, "http") as caller:
                answers = [
                    caller.step(model, sequence, {"X": [[sequence]]}, start=step in (0, 3), end=step == 4)["Y"][0][0]
                    for step in range(5)
                ]
                text = caller.refusal(model, sequence, {"X": [[1]]})
            assert refused in text and "must specify the START flag" in text
            return answers

        answers = list(pool.map(play, range(101, 105)))
    factors = [1, 3, 6, 1, 3] if twice else [1, 2, 3, 1, 2]
    assert answers == [[sequence * factor for factor in factors] for sequence in range(101, 105)]


def test_each_response_of_a_decoupled_step_meets_the_state_in_its_order(server: ServerProcess) -> None:
    with SequenceStream(server) as caller:
        caller.send("told_and_summed", "X", numbers(5), 7, start=True)
        assert [int(answer.flat[0]) for answer in caller.receive_all(1)] == [5]
        caller.send("told_and_summed", "X", numbers(1, 2, 3), 7)
        assert [int(answer.flat[0]) for answer in caller.receive_all(3)] == [6, 8, 11]
        caller.send("told_and_summed", "X", numbers(*[1] * 40), 7)
        assert [int(answer.flat[0]) for answer in caller.receive_all(40)] == list(range(12, 52))
        caller.send("told_and_summed", "X", numbers(0), 7, end=True)
        assert int(caller.receive().flat[0]) == 51
        caller.send("told_and_summed", "X", numbers(1), 7)
        with pytest.raises(Refused, match="must specify the START flag"):
            caller.receive()


def test_a_decoupled_step_follows_a_stateful_one(server: ServerProcess) -> None:
    with SequenceStream(server) as caller:
        for step in range(20):
            caller.send("summed_and_told", "X", numbers(1), 9, start=step == 0, end=step == 19)
        assert [int(answer.flat[0]) for answer in caller.receive_all(20)] == list(range(1, 21))


def test_steps_with_states_count_their_requests(server: ServerProcess) -> None:
    def counted(model: str) -> int:
        with urllib.request.urlopen(f"http://{server.http}/v2/models/{model}/stats") as answer:
            statistics = json.load(answer)["model_stats"][0]["inference_stats"]
        return int(statistics["success"]["count"])

    before = [counted(model) for model in ("around_onnx_direct", "onnx_direct", "uneven")]
    with Caller(server, "grpc") as caller:
        for step in range(5):
            caller.step("around_onnx_direct", 55, {"X": [[1]]}, start=step == 0, end=step == 4)
    after = [counted(model) for model in ("around_onnx_direct", "onnx_direct", "uneven")]
    assert [now - then for now, then in zip(after, before, strict=True)] == [5, 5, 10]
