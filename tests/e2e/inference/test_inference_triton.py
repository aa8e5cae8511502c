"""`InferenceClient` against NVIDIA's own server, whose models are Python ones: what it finds, order, and errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from alipes.client import InferenceClient
from alipes.errors import InferError, NotReady
from support.real_triton import MISSING, RealTriton, is_there
from support.switch import Switch
from support.waiting import TIMEOUT_S

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not is_there(), reason=MISSING),
    pytest.mark.xdist_group("real_triton"),
]

TWICE = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        xs = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [
            pb_utils.InferenceResponse(error=pb_utils.TritonError("negative"))
            if x.min() < 0
            else pb_utils.InferenceResponse([pb_utils.Tensor("Y", x * np.float32(2))])
            for x in xs
        ]
"""

WINDOWS = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.states = {}

    def execute(self, requests):
        return [self.one(request) for request in requests]

    def one(self, request):
        update = pb_utils.get_input_tensor_by_name(request, "snapshot_update").as_numpy()
        start = pb_utils.get_input_tensor_by_name(request, "START").as_numpy().ravel()[0]
        sequence = int(pb_utils.get_input_tensor_by_name(request, "ID").as_numpy().ravel()[0])
        known = np.zeros((1, 2, 32), np.float32) if start else self.states[sequence]
        window = self.states[sequence] = np.concatenate([known[..., 8:], update], axis=-1)
        return pb_utils.InferenceResponse([pb_utils.Tensor("w", window)])
"""

TWICE_CONFIG = """
backend: "python" max_batch_size: 0
input { name: "X" data_type: TYPE_FP32 dims: [ -1, 2, 32 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ -1, 2, 32 ] }
instance_group { kind: KIND_CPU count: 2 }
"""

WINDOWS_CONFIG = """
backend: "python" max_batch_size: 0
input { name: "snapshot_update" data_type: TYPE_FP32 dims: [ 1, 2, 8 ] }
output { name: "w" data_type: TYPE_FP32 dims: [ 1, 2, 32 ] }
instance_group { kind: KIND_CPU count: 1 }
sequence_batching {
  oldest { max_candidate_sequences: 8 }
  max_sequence_idle_microseconds: 60000000
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
  control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
}
"""

CHAIN_CONFIG = """
platform: "ensemble" max_batch_size: 0
input { name: "IN" data_type: TYPE_FP32 dims: [ 1, 2, 8 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1, 2, 32 ] }
ensemble_scheduling { step [
  { model_name: "windows" model_version: -1 input_map { key: "snapshot_update" value: "IN" }
    output_map { key: "w" value: "t" } },
  { model_name: "twice" model_version: -1 input_map { key: "X" value: "t" } output_map { key: "Y" value: "OUT" } }
] }
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = tmp_path_factory.mktemp("models")
    for name, code, config in (
        ("twice", TWICE, TWICE_CONFIG),
        ("windows", WINDOWS, WINDOWS_CONFIG),
        ("chain", "", CHAIN_CONFIG),
    ):
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(config)
        if code:
            (repository / name / "1" / "model.py").write_text(code)
    return repository


@pytest.fixture(scope="module")
def triton(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealTriton]:
    with RealTriton(models, tmp_path_factory.mktemp("triton")) as server:
        yield server


def noise(updates: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.random.default_rng(3).random((2, updates * 8), np.float32)


def expected(samples: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> bytes:
    known = np.concatenate([np.zeros((2, 32), np.float32), samples], axis=1)
    return b"".join((2 * known[:, end - 32 : end]).tobytes() for end in range(40, known.shape[1] + 1, 8))


def test_a_stream_through_an_ensemble_is_found_and_answered_in_order(triton: RealTriton) -> None:
    samples = noise(50)
    with InferenceClient(triton.grpc, "chain") as client:
        assert [part.keys for state in client.states for part in state.parts] == [("twice/X",)]
        answers = list(client.stream(samples))
    assert b"".join(y.tobytes() for y in answers) == expected(samples)


def test_requests_of_no_sequence_are_answered_with_their_ids(triton: RealTriton) -> None:
    with InferenceClient(triton.grpc, "twice", batch_size=1) as client:
        for number in range(30):
            client.infer(np.full((1, 2, 32), number, np.float32), request_id=number)
    answers = client.get(until_empty=True)
    assert [(y[0, 0, 0], request_id) for y, request_id, _ in answers] == [(2 * n, n) for n in range(30)]


def test_an_error_is_that_of_its_request(triton: RealTriton) -> None:
    with InferenceClient(triton.grpc, "twice") as client:
        futures = [client.submit(np.full((1, 2, 32), number, np.float32)) for number in (1, -1, 2)]
        assert futures[0].result(TIMEOUT_S)[0, 0, 0] == 2
        with pytest.raises(InferError, match="negative"):
            futures[1].result(TIMEOUT_S)
        assert futures[2].result(TIMEOUT_S)[0, 0, 0] == 4
    with pytest.raises(RuntimeError, match="START flag"), InferenceClient(triton.grpc, "chain") as client:
        client.submit(noise(1), sequence_id=5).result(TIMEOUT_S)


def test_a_missing_model_or_version_is_not_ready(triton: RealTriton) -> None:
    with pytest.raises(NotReady, match="nowhere"):
        InferenceClient(triton.grpc, "nowhere")
    with pytest.raises(NotReady, match="chain"):
        InferenceClient(triton.grpc, "chain", 7)


def test_a_stream_goes_on_where_it_was_behind_a_connection_that_breaks(triton: RealTriton) -> None:
    samples = noise(60)
    with Switch(triton.grpc) as switch:
        with InferenceClient(switch.address, "chain", checkpoint=4, reconnect_s=TIMEOUT_S) as client:
            for number, update in enumerate(np.split(samples, 60, axis=1)):
                if number in {20, 40}:
                    switch.cut()
                client.infer(update, number, 6, number == 0, number == 59)
        answers = client.get(until_empty=True)
    assert [request_id for _, request_id, _ in answers] == list(range(60))
    assert b"".join(y.tobytes() for y, _, _ in answers) == expected(samples)
