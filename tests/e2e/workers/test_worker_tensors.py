"""Tensors on their way through a worker: every kind of content, any size, and views that a model keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
import pytest
from support.endpoints import Endpoint, Refusal
from support.notes import Notes
from support.processes import shared_bytes
from support.python_models import ECHO, add_python_model, parameter
from support.server import ServerProcess
from support.waiting import until

Serve = Callable[..., ServerProcess]

LARGE_BYTES = 200 << 20
LEASE_LIMIT_BYTES = 1 << 20

DATATYPES = ("BOOL", "INT8", "INT64", "UINT16", "FP16", "FP32", "FP64")

# Gives back whichever inputs there are.
NUMBERS = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(**{f"OUT_{t.name()}": t.as_numpy() for t in request.inputs()}) for request in requests]
"""

PASSES_ON = """
class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor.from_dlpack("Y", pb_utils.get_input_tensor_by_name(request, "X").to_dlpack())]
            )
            for request in requests
        ]
"""

ADDS_IN_PLACE = """
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            numbers = given(request)
            numbers += 1
            responses.append(answer(Y=numbers))
        return responses
"""

# Keeps a view of every input; X of one number gives back what it kept under that number.
KEEPS = """
class TritonPythonModel:
    def initialize(self, args):
        self.kept = []

    def execute(self, requests):
        responses = []
        for request in requests:
            numbers = given(request)
            if len(numbers) > 1:
                self.kept.append(numbers)
                responses.append(answer(Y=np.array([len(self.kept)], np.int32)))
            else:
                responses.append(answer(Y=self.kept[numbers[0]]))
        return responses
"""

# Keeps views, and lets all of them go when a note says so.
HOARDS = """
class TritonPythonModel:
    def initialize(self, args):
        self.kept = []
        threading.Thread(target=self.let_go, daemon=True).start()

    def let_go(self):
        while True:
            await_note("let go")
            (NOTES / "let go").unlink()
            self.kept.clear()

    def execute(self, requests):
        self.kept += [given(request) for request in requests]
        return [answer(Y=np.array([1], np.int32)) for _ in requests]
"""

PARAMETERS = """
class TritonPythonModel:
    def execute(self, requests):
        seen = [json.loads(request.parameters()) for request in requests]
        own = {"text": "t", "number": -5, "truth": True}
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("Y", given(r))], parameters=own | {"seen": json.dumps(one)})
            for r, one in zip(requests, seen)
        ]
"""


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve, notes: Notes) -> Iterator[ServerProcess]:
    repository = tmp_path_factory.mktemp("models")
    add_python_model(repository, "bytes", signature="X: BYTES[-1, -1] -> Y: BYTES[-1, -1]")
    add_python_model(repository, "bf16", PASSES_ON, signature="X: BF16[-1] -> Y: BF16[-1]")
    add_python_model(repository, "raw", signature="X: UINT8[-1] -> Y: UINT8[-1]")
    add_python_model(
        repository,
        "plus",
        ECHO.replace("given(request)", "given(request) + 1"),
        signature="X: UINT8[-1] -> Y: UINT8[-1]",
    )
    add_python_model(repository, "in_place", ADDS_IN_PLACE)
    add_python_model(repository, "keeps", KEEPS)
    add_python_model(repository, "hoards", HOARDS, config=parameter("MAX_LEASED_BYTES", LEASE_LIMIT_BYTES))
    add_python_model(repository, "parameters", PARAMETERS)
    inputs = ", ".join(f"{datatype}: ?{datatype}[-1, 2]" for datatype in DATATYPES)
    outputs = ", ".join(f"OUT_{datatype}: {datatype}[-1, 2]" for datatype in DATATYPES)
    add_python_model(repository, "numbers", NUMBERS, signature=f"{inputs} -> {outputs}")
    yield serve_module(repository, "--disable-auto-complete-config", environment=notes.environment)


@pytest.mark.parametrize("datatype", DATATYPES)
def test_numbers_come_back_bit_for_bit(endpoint: Endpoint, datatype: str) -> None:
    numpy_type = datatype.lower().replace("fp", "float")
    raw = np.random.default_rng(1).integers(0, 2 if numpy_type == "bool" else 256, 3 * 2 * 8, np.uint8)
    numbers = raw.view(numpy_type)[: 3 * 2].reshape(3, 2)
    got = endpoint.ask("numbers", {datatype: numbers})[f"OUT_{datatype}"]
    assert got.dtype == numbers.dtype
    assert got.shape == (3, 2)
    assert got.tobytes() == numbers.tobytes()


def test_an_empty_tensor_comes_back_empty(endpoint: Endpoint) -> None:
    assert endpoint.ask("numbers", {"FP32": np.zeros((0, 2), np.float32)})["OUT_FP32"].shape == (0, 2)


def test_bytes_of_any_content_come_back(endpoint: Endpoint) -> None:
    content = np.array([[b"", b"\0\xff", "snö ☃".encode()], [b"x" * 100_000, b"1", b"22"]], object)
    assert endpoint.ask("bytes", {"X": content})["Y"].tolist() == content.tolist()


def test_brain_floats_come_back_by_way_of_dlpack(endpoint: Endpoint) -> None:
    numbers = np.array([0.0, 1.5, -2.0, 3e38], ml_dtypes.bfloat16)
    got = endpoint.ask("bf16", {"X": numbers})["Y"]
    assert np.array_equal(got.astype(np.float32), numbers.astype(np.float32))


@pytest.mark.slow("200 megabytes, several times")
@pytest.mark.timeout(400)
def test_200_megabytes_go_in_and_out_and_the_memory_goes_back(server: ServerProcess, endpoint: Endpoint) -> None:
    content = np.arange(LARGE_BYTES // 8, dtype=np.uint64).view(np.uint8)
    assert np.array_equal(endpoint.ask("raw", {"X": content})["Y"], content)
    # Once more as an output that is no input: through the worker's own memory.
    got = endpoint.ask("plus", {"X": content})["Y"]
    assert np.array_equal(got, content + np.uint8(1))
    until(lambda: shared_bytes(server.process.pid) < LARGE_BYTES / 4, "the shared memory stayed large")


def test_a_model_may_change_its_inputs(endpoint: Endpoint) -> None:
    numbers = np.arange(50_000, dtype=np.int32)
    for _ in range(3):
        assert np.array_equal(endpoint.ask("in_place", {"X": numbers})["Y"], numbers + 1)


def test_views_that_a_model_keeps_stay_as_they_were(endpoint: Endpoint) -> None:
    first = int(endpoint.ask("keeps", {"X": [0, 0]})["Y"][0])
    arrays = [np.arange(number, number + 5_000 + number, dtype=np.int32) for number in range(40)]
    for numbers in arrays:
        endpoint.ask("keeps", {"X": numbers})
    # Others that reuse whatever memory is free.
    for _ in range(20):
        endpoint.ask("in_place", {"X": np.zeros(20_000, np.int32)})
    for position, numbers in enumerate(arrays):
        assert np.array_equal(endpoint.ask("keeps", {"X": [first + position]})["Y"], numbers)


def test_a_model_that_hoards_its_inputs_gets_an_error_until_it_lets_go(endpoint: Endpoint, notes: Notes) -> None:
    piece = np.zeros(LEASE_LIMIT_BYTES // 16, np.int32)
    with pytest.raises(Refusal) as refusal:
        for _ in range(100):
            endpoint.ask("hoards", {"X": piece})
    assert refusal.value.code == "UNAVAILABLE"
    assert "model instance 'hoards_0_0' still looks at " in refusal.value.text
    assert f"more than the {LEASE_LIMIT_BYTES} that are allowed" in refusal.value.text
    notes.write("let go")

    def answers() -> bool:
        try:
            return bool(endpoint.ask("hoards", {"X": [1]})["Y"].tolist() == [1])
        except Refusal:
            return False

    until(answers)


def test_parameters_go_in_and_come_out(endpoint: Endpoint) -> None:
    reply = endpoint.ask("parameters", {"X": [1]}, parameters={"size": 3, "name": "n", "fast": True})
    assert reply.parameters["text"] == "t"
    assert reply.parameters["number"] == -5
    assert reply.parameters["truth"] is True
    assert '"size": 3' in reply.parameters["seen"].replace('":', '": ').replace("  ", " ")
