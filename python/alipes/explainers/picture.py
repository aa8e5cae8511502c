"""Explanations of pictures, by captum: which cells or pixels a prediction rests on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Literal

import numpy as np
import numpy.typing as npt

from alipes.errors import ConfigError, InvalidArgument
from alipes.explainers.columns import arrays_of, column_types
from alipes.explainers.explainer import Explainer
from alipes.explainers.explanation import Explanation
from alipes.explainers.libraries import captum_methods
from alipes.explainers.limits import Meter
from alipes.explainers.passes import averaged
from alipes.explainers.source import Evaluator
from alipes.predictor.predictor import Predictor
from alipes.worker.apps.custom import from_json
from alipes.worker.apps.misfit import Misfit

__all__ = ["PictureExplainer"]

_MOST_PIXELS: Final = 1 << 24
_MOST_CELLS: Final = 4096
_STEPS: Final = 8
"""Points of the first pass of integrated gradients between baseline and picture; each pass has twice as many."""
_MOST_DOUBLINGS: Final = 6


class PictureExplainer(Explainer):
    """Says what each cell of a picture adds to an output, against a picture of one colour.

    A predictor, or a function of arrays, is asked for the outputs of pictures in which cells of a grid have the
    baseline's colour: Shapley values by sampling, `cells + 1` pictures for a pass. A module of PyTorch is explained by
    its gradients instead: each pixel has its attribution, and no cells are left out.

    Examples:
        >>> from alipes.explainers import PictureExplainer
        >>> explainer = PictureExplainer(lambda pictures: pictures.mean((1, 2, 3)), (8, 8, 1))  # doctest: +SKIP
        >>> explainer.explain([[[[1.0]] * 8] * 8])[0].attributions.shape  # doctest: +SKIP
        (8, 8)
    """

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        predictor: Predictor | Callable[[Any], Any],
        shape: tuple[int, int, int],
        *,
        layout: Literal["HWC", "CHW"] = "HWC",
        datatype: npt.DTypeLike = np.float32,
        grid: tuple[int, int] = (8, 8),
        baseline: float = 0.0,
        scale: float = 1.0,
        **options: Any,
    ) -> None:
        """Takes what is explained.

        Args:
            predictor: A handle, a function of arrays, or a module of PyTorch that this process runs.
            shape: Sizes of a picture in the order of `layout`.
            layout: Whether the channels come last or first.
            datatype: The type of its numbers.
            grid: Cells in a column and in a row.
            baseline: The number of all pixels of a cell that is left out.
            scale: What numbers of encoded pictures, from 0 to 255, are multiplied by; numbers in lists stay as they
                are.
            **options: `input`, `output`, `target`, `limits`, `batch_size` and `seed`, as `Explainer` takes them.

        Raises:
            ConfigError: If an argument cannot be used.
        """
        super().__init__(_function_of(predictor), **options)
        self._module: Any = predictor if _is_module(predictor) else None
        if layout not in ("HWC", "CHW"):
            raise ConfigError(f"layout={layout!r} must be 'HWC' or 'CHW'", key="layout")
        if len(shape) != 3 or any(type(size) is not int or size < 1 for size in shape) or np.prod(shape) > _MOST_PIXELS:
            raise ConfigError(f"shape={shape!r} must be three sizes of a picture, {_MOST_PIXELS} numbers at most")
        self._shape, self._layout, self._type = tuple(shape), layout, np.dtype(datatype)
        height, width = shape[:2] if layout == "HWC" else shape[1:]
        if len(grid) != 2 or not (0 < grid[0] <= height and 0 < grid[1] <= width) or grid[0] * grid[1] > _MOST_CELLS:
            raise ConfigError(
                f"grid={grid!r} must be cells in a column and in a row, {_MOST_CELLS} at most", key="grid"
            )
        self._sizes, self._grid = (height, width), tuple(grid)
        self._baseline, self._scale = float(baseline), float(scale)

    def prepare(self) -> None:
        """Imports captum and PyTorch."""
        captum_methods()

    def tensors(self) -> tuple[str, Any, dict[str, Any]]:
        """Pictures, and for each its attributions, base, prediction, target, and whether it is approximate."""
        pictures = Annotated[np.ndarray, self._type.type, (None, *self._shape)]
        return "pictures", pictures, column_types(*self._result_sizes)

    def outputs(self, explanations: Sequence[Explanation]) -> dict[str, Any]:
        """Explanations as those outputs."""
        return arrays_of(explanations)

    def instance(self, value: Any) -> Any:
        """A picture as nested lists, or encoded as `{"b64": "..."}`, alone or as the only member of an object.

        Raises:
            InvalidArgument: If it is none.
        """
        if isinstance(value, dict) and len(value) == 1 and "b64" not in value:
            value = next(iter(value.values()))
        if not isinstance(value, dict):
            return value
        if set(value) != {"b64"} or not isinstance(value["b64"], str):
            raise InvalidArgument('an instance is nested lists of numbers, or {"b64": "..."} with an encoded picture')
        return self._decoded(value["b64"])

    @property
    def _result_sizes(self) -> tuple[int, ...]:
        return self._sizes if self._module is not None else self._grid

    def _decoded(self, text: str) -> npt.NDArray[Any]:
        from PIL import Image

        try:
            picture = from_json(Image.Image, text)
        except Misfit as error:
            raise InvalidArgument(f"an instance's picture cannot be read: {error}") from error
        height, width = self._sizes
        channels = self._shape[2] if self._layout == "HWC" else self._shape[0]
        mode = {1: "L", 3: "RGB", 4: "RGBA"}.get(channels)
        if mode is None:
            raise InvalidArgument(f"encoded pictures have 1, 3 or 4 channels, and the predictor takes {channels}")
        if picture.size != (width, height):
            seen = f"{picture.width} x {picture.height}"
            raise InvalidArgument(f"expected a picture of {width} x {height} pixels, got {seen}")
        numbers = np.asarray(picture.convert(mode), np.float64).reshape(height, width, channels) * self._scale
        return (numbers if self._layout == "HWC" else numbers.transpose(2, 0, 1)).astype(self._type)

    def _checked(self, inputs: Sequence[Any]) -> npt.NDArray[Any]:
        try:
            pictures = np.asarray(inputs, self._type)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgument(f"instances: expected pictures of shape {list(self._shape)}: {error}") from error
        if pictures.shape[1:] != self._shape:
            found = list(pictures.shape[1:])
            raise InvalidArgument(f"instances: expected pictures of shape {list(self._shape)}, got {found}")
        return pictures

    def _explained(
        self,
        inputs: npt.NDArray[Any],
        predictions: npt.NDArray[np.float64],
        targets: Sequence[int],
        evaluator: Evaluator,
        meter: Meter,
    ) -> list[Explanation]:
        empty = evaluator(np.full((1, *self._shape), self._baseline, self._type))
        one_pass = self._by_gradients if self._module is not None else self._by_cells
        estimates = averaged(
            [*inputs], lambda at, number: one_pass(inputs[at], targets[at], number, evaluator, meter), meter
        )
        return [
            Explanation(
                attributions=estimate.attributions,
                base=float(empty[0, targets[at]]),
                prediction=float(predictions[at, targets[at]]),
                target=targets[at],
                is_approximate=estimate.passes < meter.limits.passes,
                passes=estimate.passes,
            )
            for at, estimate in enumerate(estimates)
        ]

    def _by_cells(
        self, picture: npt.NDArray[Any], target: int, number: int, evaluator: Evaluator, meter: Meter
    ) -> npt.NDArray[np.float64]:
        """One permutation of the cells."""
        del meter
        torch, sampling, _ = captum_methods()

        def forward(pictures: Any) -> Any:
            return torch.from_numpy(evaluator(np.ascontiguousarray(pictures.numpy(), self._type)))

        mask = torch.from_numpy(self._cells())
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(self._seed + number)
            found = sampling(forward).attribute(
                torch.from_numpy(np.asarray(picture, np.float64))[None],
                baselines=self._baseline,
                target=target,
                feature_mask=mask,
                n_samples=1,
                perturbations_per_eval=evaluator.batch_size,
            )
        each = found[0].numpy()
        first = each[..., 0] if self._layout == "HWC" else each[0]  # all pixels of a cell have its attribution
        rows, columns = _starts(self._sizes[0], self._grid[0]), _starts(self._sizes[1], self._grid[1])
        return np.asarray(first[np.ix_(rows, columns)], np.float64)

    def _cells(self) -> npt.NDArray[np.int64]:
        """The number of the cell of each pixel, as captum's mask."""
        (height, width), (rows, columns) = self._sizes, self._grid
        down, across = np.arange(height) * rows // height, np.arange(width) * columns // width
        cells = down[:, None] * columns + across[None, :]
        return (cells[None, :, :, None] if self._layout == "HWC" else cells[None, None]).astype(np.int64)

    def _by_gradients(
        self, picture: npt.NDArray[Any], target: int, number: int, evaluator: Evaluator, meter: Meter
    ) -> npt.NDArray[np.float64]:
        """The gradients along the way from the baseline, at twice as many points as in the pass before."""
        torch, _, integrated = captum_methods()

        def forward(pictures: Any) -> Any:
            meter.count_call()
            return self._module(pictures)

        found = integrated(forward).attribute(
            torch.from_numpy(np.asarray(picture))[None],
            baselines=self._baseline,
            target=target,
            n_steps=_STEPS << min(number, _MOST_DOUBLINGS),
            internal_batch_size=evaluator.batch_size,
        )
        each = found[0].detach().double().numpy()
        return np.asarray(each.sum(axis=2 if self._layout == "HWC" else 0), np.float64)


def _starts(pixels: int, cells: int) -> npt.NDArray[np.int64]:
    """The first pixel of each cell along one side."""
    return np.searchsorted(np.arange(pixels) * cells // pixels, np.arange(cells))


def _is_module(predictor: Any) -> bool:
    return any(kind.__module__ == "torch.nn.modules.module" for kind in type(predictor).__mro__)


def _function_of(predictor: Any) -> Any:
    """What is asked for the outputs of arrays; of a module, a function that calls it without gradients."""
    if not _is_module(predictor):
        return predictor

    def outputs(pictures: Any) -> Any:
        torch, _, _ = captum_methods()
        with torch.no_grad():
            return predictor(torch.from_numpy(np.asarray(pictures))).double().numpy()

    return outputs
