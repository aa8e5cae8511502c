"""Files of PyTorch are served as they are: TorchScript, torch.export, weights beside a factory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import AlipesError, Client, InferError, ModelRepository
from support.server import ServerProcess

torch = pytest.importorskip("torch", reason="models of PyTorch need PyTorch")

from support.torch_models import (  # noqa: E402
    LINEAR,
    Seen,
    Total,
    Two,
    add,
    linear,
    ports,
    save_exported,
    save_script,
    to_file,
    weights,
)

pytestmark = [pytest.mark.extra("torch"), pytest.mark.timeout(300)]

Serve = Callable[..., ServerProcess]

ROWS = np.array([[1, 2, 3], [-1, 0.5, 4]], "f4")
OLDEST = "sequence_batching { oldest { max_candidate_sequences: 8 } max_sequence_idle_microseconds: 60000000 }\n"
BATCHED = 'backend: "pytorch"\nmax_batch_size: 8\ninstance_group [{ kind: KIND_CPU count: 1 }]\n'
TOGETHER = "dynamic_batching { preferred_batch_size: [4] max_queue_delay_microseconds: 2000000 }\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> Iterator[ServerProcess]:
    """Models of each kind beside some that cannot be served; each is loaded by the test that needs it.

    A load takes the time to import PyTorch.
    """
    repository = tmp_path_factory.mktemp("models")
    script, example = save_script(linear()), torch.zeros(2, 3)
    add(repository, "script", script, BATCHED.replace('backend: "pytorch"', 'platform: "pytorch_libtorch"') + LINEAR)
    add(repository, "traced", save_script(linear(), example))
    add(repository, "exported", save_exported(linear(), example))
    add(repository, "factory", weights(), BATCHED + ports({"input": "FP32 3"}, {"y": "FP32 2"}))
    add(repository, "triton", weights(name="model.pt"), f'{BATCHED}runtime: "model.py"\n{LINEAR}')
    add(repository, "rows", script, 'backend: "pytorch"\n' + ports({"input": "FP32 -1,-1"}, {"y": "FP32 -1,2"}))
    add(repository, "batches", save_script(Seen()), BATCHED + TOGETHER + ports({"x": "FP32 3"}, {"y": "FP32 1"}))
    add(repository, "pickled", to_file("model.pt", lambda path: torch.save(linear(), path)), BATCHED + LINEAR)
    add(repository, "allowed", to_file("model.pt", lambda path: torch.save(linear(), path)), BATCHED + LINEAR)
    add(repository, "untraced", script)
    kept = "instance_group [{ kind: KIND_CPU count: 1 }]\n" + ports({"x": "FP32 1,1"}, {"y": "FP32 1,1"})
    add(repository, "total", save_script(Total()), f'backend: "pytorch"\n{kept}')
    add(repository, "totals", save_script(Total()), f'backend: "pytorch"\n{kept}{OLDEST}')
    add(repository, "empty", lambda folder: None, BATCHED + LINEAR)
    other = LINEAR.replace('"INPUT__0" data_type: TYPE_FP32', '"INPUT__0" data_type: TYPE_FP64')
    add(repository, "other", save_exported(linear(), example), BATCHED + other)
    flags = ("--model-control-mode=explicit", "--allow-pickles=allowed")
    yield serve_module(repository, *flags, environment={"OMP_NUM_THREADS": "1"})


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.http, timeout_s=240) as found:
        yield found


def expected(rows: np.ndarray = ROWS) -> Any:
    with torch.no_grad():
        return linear()(torch.from_numpy(rows)).numpy()


@pytest.mark.parametrize(
    ("model", "x", "y"),
    [
        ("script", "INPUT__0", "OUTPUT__0"),
        ("traced", "input", "OUTPUT__0"),
        pytest.param("exported", "input", "output_0", marks=pytest.mark.slow("imports the compiler of PyTorch")),
        ("factory", "input", "y"),
        ("triton", "INPUT__0", "OUTPUT__0"),
        ("rows", "input", "y"),
        ("allowed", "INPUT__0", "OUTPUT__0"),
    ],
)
def test_answers_are_the_modules_bits(client: Client, model: str, x: str, y: str) -> None:
    client.load(model)
    for _ in range(3):  # the first batch is run on copies, and the executor of TorchScript profiles two
        assert np.array_equal(client.infer(model, {x: ROWS})[y], expected())


@pytest.mark.parametrize(
    ("model", "platform", "output"),
    [
        ("traced", "pytorch_libtorch", "OUTPUT__0"),
        pytest.param("exported", "torch_aoti", "output_0", marks=pytest.mark.slow("imports the compiler of PyTorch")),
    ],
)
def test_the_file_completes_its_configuration(client: Client, model: str, platform: str, output: str) -> None:
    client.load(model)
    config = client.config(model)
    assert (config["max_batch_size"], config["platform"], config["backend"]) == (4, platform, "pytorch")
    tensors = [(one["name"], one["data_type"], one["dims"]) for one in config["input"] + config["output"]]
    assert tensors == [("input", "TYPE_FP32", [3]), (output, "TYPE_FP32", [2])]


def test_requests_run_together_and_get_their_own_rows(client: Client) -> None:
    client.load("batches")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: client.infer("batches", {"x": ROWS[:1]})["y"], range(4)))
    assert [answer.tolist() for answer in answers] == [[[4]]] * 4


def test_each_sequence_of_a_module_with_buffers_has_its_own_state(client: Client) -> None:
    client.load("totals")

    def step(sequence: int, value: float, **flags: bool) -> float:
        found = client.infer("totals", {"x": np.full((1, 1), value, "f4")}, sequence_id=sequence, **flags)
        return float(found["y"].item())

    assert [step(sequence, 4, sequence_start=True) for sequence in range(1, 5)] == [4, 4, 4, 4]
    assert [step(sequence, sequence, sequence_end=True) for sequence in range(1, 5)] == [5, 6, 7, 8]


def test_a_request_that_the_module_refuses_fails_alone(client: Client) -> None:
    client.load("rows")
    with pytest.raises(InferError, match="mat1 and mat2 shapes cannot be multiplied"):
        client.infer("rows", {"input": np.zeros((2, 4), "f4")})
    assert np.array_equal(client.infer("rows", {"input": ROWS})["y"], expected())


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("untraced", "list input and output in config.pbtxt"),
        ("pickled", "start the server with --allow-pickles=pickled"),
        ("total", "it keeps a state from one call to the next (the model writes to total)"),
        ("empty", "holds no model.pt or model.pt2 or model.safetensors or model.py"),
        ("other", "input 'INPUT__0': the configuration has datatype FP64, the file FP32"),
    ],
)
def test_what_cannot_be_served_says_why(client: Client, model: str, words: str) -> None:
    with pytest.raises(AlipesError) as caught:
        client.load(model)
    assert words in str(caught.value)


@pytest.mark.parametrize("platform", ["torchscript", "torchexport"])
def test_what_is_exported_is_served(tmp_path: Path, serve: Serve, platform: str) -> None:
    model = ModelRepository(tmp_path).add("m", platform, max_batch_size=4)
    model.export_version(Two(), input_shapes={"left": (None, 3), "right": (None, 3)})
    server = serve(tmp_path, "--model-control-mode=explicit")
    with Client(server.http, timeout_s=240) as client:
        client.load("m")
        answer = client.infer("m", {"right": ROWS[::-1].copy(), "left": ROWS})
    first, second = model.outputs
    assert np.array_equal(answer[first], 2 * ROWS - ROWS[::-1])
    assert np.array_equal(answer[second], (ROWS[::-1] < ROWS).sum(1, keepdims=True))
