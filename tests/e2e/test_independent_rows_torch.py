"""Files of PyTorch that no configuration describes: requests are run together only where a row's answer is its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from alipes import Client
from support.server import ServerProcess

torch = pytest.importorskip("torch", reason="models of PyTorch need PyTorch")

from support.torch_models import add, linear, save_exported, save_script  # noqa: E402

pytestmark = [
    pytest.mark.extra("torch"),
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
]

CLIENTS, REQUESTS = 8, 8


class Centred(torch.nn.Module):  # type: ignore[misc]
    """Takes the mean over axis 0 away."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0)


class Recurrent(torch.nn.Module):  # type: ignore[misc]
    """An LSTM as PyTorch makes it where nothing is said: axis 0 is the time."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.LSTM(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...], Any]] = {
    "traced_mean": (Centred, (4, 3), save_script),
    "exported_mean": (Centred, (4, 3), save_exported),
    "traced_lstm": (Recurrent, (3, 2, 3), save_script),
    "traced_linear": (linear, (2, 3), save_script),
}


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]
) -> Iterator[ServerProcess]:
    repository = tmp_path_factory.mktemp("models")
    for name, (make, shape, save) in MODELS.items():
        add(repository, name, save(make().eval(), torch.zeros(shape)))
    temporary = str(tmp_path_factory.mktemp("temporary"))
    environment = {"OMP_NUM_THREADS": "1", "TMPDIR": temporary}
    yield serve_module(repository, "--model-control-mode=explicit", environment=environment)


@pytest.mark.parametrize("name", MODELS)
def test_every_answer_is_right_whoever_asks_beside(server: ServerProcess, name: str) -> None:
    make, shape, _ = MODELS[name]
    module = make().eval()
    with Client(server.http, timeout_s=240) as client:
        client.load(name)
        config = client.config(name)
    assert config["max_batch_size"] == (4 if name == "traced_linear" else 0)
    (taken,), (given,) = ([tensor["name"] for tensor in config[side]] for side in ("input", "output"))

    def ask(number: int) -> bool:
        random = np.random.default_rng(number)
        with Client(server.http, timeout_s=240) as client:
            for _ in range(REQUESTS):
                x = random.normal(size=shape).astype("f4")
                with torch.no_grad():
                    expected = module(torch.from_numpy(x)).numpy()
                if not np.allclose(client.infer(name, {taken: x})[given], expected, atol=1e-5):
                    return False
        return True

    with ThreadPoolExecutor(CLIENTS) as pool:
        assert all(pool.map(ask, range(CLIENTS)))
