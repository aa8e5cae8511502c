"""Random small TorchScript modules: some work on each row by itself, some do not, and nothing in them says which."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

__all__ = ["WIDTH", "RandomModule", "random_module"]

WIDTH = 4
"""Numbers in a row, for every tensor between input and output."""


@dataclass(frozen=True)
class RandomModule:
    """A traced module of one tensor FP32 `[n, 4]` to one of the same shape.

    Attributes:
        run: Runs it on an array.
        steps: The names of its steps, in their order.
        mixes: Whether a step was drawn that has to do with axis 0. Even so its answers may be the rows' own.
    """

    run: Callable[[np.ndarray], np.ndarray]
    steps: tuple[str, ...]
    mixes: bool


Step = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]
"""Makes of a tensor and constants `[4, 4]` a new tensor of the same shape."""


def _by_row() -> dict[str, Step]:
    import torch

    return {
        "relu": lambda x, _: torch.relu(x),
        "tanh": lambda x, _: torch.tanh(x),
        "sigmoid": lambda x, _: torch.sigmoid(x),
        "softmax": lambda x, _: torch.softmax(x, 1),
        "add": lambda x, c: x + c[0],
        "mul": lambda x, c: x * c[0],
        "linear": lambda x, c: x @ c,
        "square": lambda x, _: x * x,
        "centred": lambda x, _: x - x.mean(1, keepdim=True),
        "normalised": lambda x, _: torch.nn.functional.layer_norm(x, (WIDTH,)),
        "sorted": lambda x, _: x.sort(1).values,
        "cumulated": lambda x, _: x.cumsum(1),
        "clamped": lambda x, _: x.clamp(-1, 1),
        "attention in a row": lambda x, c: (
            torch.softmax(x[:, :, None] * c[0], 2) @ x[:, :, None] @ c[:1, :1] + x[:, :, None]
        ),
    }


def _over_rows() -> dict[str, Step]:
    import torch

    return {
        "softmax of rows": lambda x, _: torch.softmax(x, 0),
        "centred by rows": lambda x, _: x - x.mean(0),
        "normalised by rows": lambda x, _: (x - x.mean(0)) / (x.std(0, unbiased=False) + 1e-3),
        "largest of rows": lambda x, _: x - x.amax(0),
        "median of rows": lambda x, _: x + x.median(0).values,
        "cumulated over rows": lambda x, _: x.cumsum(0),
        "reversed": lambda x, _: x.flip(0),
        "rolled": lambda x, _: x.roll(1, 0),
        "first row": lambda x, _: x[:1].expand_as(x),
        "sorted over rows": lambda x, _: x.sort(0).values,
        "attention": lambda x, _: torch.softmax(x @ x.T, 1) @ x,
        "rows counted": lambda x, _: x / x.shape[0],
        "a little of the mean": lambda x, _: x + 0.01 * x.mean(0),
        "largest where positive": lambda x, _: torch.where(x > 0, x.amax(0).expand_as(x), x),
        "over time": lambda x, c: torch.rnn_tanh_cell(x, torch.cat([x[:1] * 0, x[:-1]]), c, c),
    }


def random_module(number: int) -> RandomModule:
    """The module of that number, the same each time: one of two has steps over rows."""
    import torch

    random = np.random.default_rng([number, 7])
    by_row, over_rows = _by_row(), _over_rows()
    steps = [str(name) for name in random.choice(list(by_row), random.integers(1, 6))]
    mixes = bool(random.integers(2))
    if mixes:
        steps.insert(int(random.integers(len(steps) + 1)), str(random.choice(list(over_rows))))
    constants = [torch.from_numpy(random.normal(size=(WIDTH, WIDTH)).astype("f4")) for _ in steps]
    functions = [over_rows.get(name) or by_row[name] for name in steps]

    class Drawn(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            for function, constant in zip(functions, constants, strict=True):
                x = function(x, constant).reshape(-1, WIDTH)
            return x

    # Traced with a number of rows that no trial has: what a trace froze would show.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # people have such files all the same
        traced = torch.jit.trace(Drawn().eval(), torch.zeros(13, WIDTH), check_trace=False)

    def run(rows: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            found: np.ndarray = traced(torch.from_numpy(rows)).numpy()
        return found

    return RandomModule(run, tuple(steps), mixes)
