"""A chain of models, written by `a >> b >> c` and served: one request passes through all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from alipes import repository as qv
from support.endpoints import ENDPOINTS, Refusal
from support.exported import scaled
from support.server import ServerProcess


def shifted(y: np.ndarray, shift: np.ndarray) -> np.ndarray:
    return y + shift


def named(total: np.ndarray) -> np.ndarray:
    if np.isnan(total).any():
        raise ValueError("not a number")
    return np.array([[f"{value:.0f}" for value in row] for row in total], object)


@pytest.mark.parametrize("largest", [0, 8])
def test_one_request_passes_through_a_chain_of_three_models(
    tmp_path: Path, serve: Callable[..., ServerProcess], largest: int
) -> None:
    repo = qv.ModelRepository(tmp_path / "models")
    double = repo.add("double", "onnx", max_batch_size=largest)
    double.export_version(scaled("x", "y", factor=2.0))
    shift = repo.add("shift", "python", max_batch_size=largest)
    shift.export_version(shifted, input_shapes={"y": (None, 4), "shift": (None, 1)}, output_names=["total"])
    names = repo.add("names", "python", max_batch_size=largest)
    names.export_version(named, input_shapes={"total": (None, 4)}, output_names=["words"])
    (double >> shift >> names).export("all")

    server = serve(str(repo.fs))
    x, by = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32), np.array([[10], [20]], np.float32)
    for endpoint in ENDPOINTS.values():
        with endpoint(server) as client:
            reply = client.ask("all", {"x": x, "shift": by})
            assert reply["words"].tolist() == [[b"12", b"14", b"16", b"18"], [b"30", b"32", b"34", b"36"]]
            with pytest.raises(Refusal, match=r"in ensemble 'all', .*not a number"):
                client.ask("all", {"x": x * np.float32("nan"), "shift": by})
