"""The plain clients against NVIDIA's own server, over both wires and shared memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest
from alipes.client import AsyncClient, Client
from alipes.errors import InferError, InvalidArgument, NotFound, NotReady
from alipes.types import ModelState
from support.real_triton import MISSING, RealTriton, is_there

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
        return [self.one(request) for request in requests]

    def one(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
        words = pb_utils.get_input_tensor_by_name(request, "W").as_numpy()
        if x.size and x.min() < 0:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("negative"))
        outputs = [pb_utils.Tensor("Y", x * np.float32(2)), pb_utils.Tensor("V", words)]
        return pb_utils.InferenceResponse(outputs)
"""

CONFIG = """
backend: "python" max_batch_size: 0
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "W" data_type: TYPE_STRING dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "V" data_type: TYPE_STRING dims: [ -1 ] } ]
instance_group { kind: KIND_CPU count: 1 }
"""

WORDS = np.array(["one", "zwölf"], object)


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealTriton]:
    repository = tmp_path_factory.mktemp("models")
    version = repository / "twice" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(TWICE)
    (version.parent / "config.pbtxt").write_text(CONFIG)
    with RealTriton(repository, tmp_path_factory.mktemp("triton")) as server:
        yield server


@pytest.fixture(params=["grpc", "http"])
def address(request: pytest.FixtureRequest, triton: RealTriton) -> str:
    return f"{request.param}://{triton.grpc if request.param == 'grpc' else triton.http}"


@pytest.fixture
def client(address: str) -> Client:
    return Client(address)


@pytest.mark.parametrize("size", [0, 1, 5_000, 1_000_000])
def test_numbers_and_strings_go_there_and_back(client: Client, size: int) -> None:
    ramp = np.arange(size, dtype=np.float32)
    outputs = client.infer("twice", {"X": ramp, "W": WORDS})
    np.testing.assert_array_equal(outputs["Y"], ramp * 2)
    assert outputs["V"].tolist() == [b"one", "zwölf".encode()]


def test_health_metadata_configuration_statistics_and_index_are_understood(client: Client) -> None:
    assert client.is_live()
    assert client.is_ready()
    assert client.is_model_ready("twice", "1")
    assert client.server_metadata()["name"] == "triton"
    assert set(client.signature("twice").inputs) == {"X", "W"}
    assert client.config("twice")["backend"] == "python"
    assert client.statistics("twice")[0]["name"] == "twice"
    assert [(entry.name, entry.state) for entry in client.models()] == [("twice", ModelState.READY)]


def test_errors_of_models_and_of_the_server_are_typed(client: Client) -> None:
    with pytest.raises(InferError, match="negative"):
        client.infer("twice", {"X": np.array([-1], np.float32), "W": WORDS})
    with pytest.raises((NotFound, NotReady, InvalidArgument), match="nobody"):
        client.infer("nobody", np.zeros(1, np.float32))


def test_arrays_in_shared_memory_are_read_and_written_there(client: Client) -> None:
    with client.share(1 << 16) as region:
        buffer, wanted = region.empty((100,)), region.empty((100,))
        buffer[:] = 4
        outputs = client.infer("twice", {"X": buffer, "W": WORDS}, outputs={"Y": wanted, "V": None})
        assert np.all(wanted == 8)
        assert np.shares_memory(outputs["Y"], wanted)
        assert outputs["V"].tolist() == [b"one", "zwölf".encode()]


def test_coroutines_ask_many_things_at_a_time(address: str) -> None:
    async def ask() -> list[float]:
        async with AsyncClient(address) as client:
            values = [np.full(1, value, np.float32) for value in range(30)]
            answers = await asyncio.gather(*(client.infer("twice", {"X": value, "W": WORDS}) for value in values))
            return [float(answer["Y"][0]) for answer in answers]

    assert asyncio.run(ask()) == [2.0 * value for value in range(30)]
