"""Explanations of rows of numbers, by SHAP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt

from alipes.errors import ConfigError, InvalidArgument
from alipes.explainers.columns import arrays_of, column_types
from alipes.explainers.explainer import Explainer
from alipes.explainers.explanation import Explanation
from alipes.explainers.libraries import shap_library
from alipes.explainers.limits import Meter
from alipes.explainers.shapley import shapley_explanations
from alipes.explainers.source import Evaluator
from alipes.predictor.predictor import Predictor

__all__ = ["TabularExplainer"]

_MOST_BACKGROUND: Final = 10_000
_MOST_COLUMNS: Final = 100_000


class TabularExplainer(Explainer):
    """Says what each column of a row adds to an output, against rows of a background.

    Where a column is left out, its value is that of each row of the background in turn, and the outputs are averaged.
    So a pass over one row asks for `(2 * columns + 1) * rows of the background` outputs at most: ten to a hundred
    typical rows are enough.

    Examples:
        >>> import numpy as np
        >>> from alipes.explainers import TabularExplainer
        >>> explainer = TabularExplainer(lambda rows: rows @ [1.0, 10.0], np.zeros((1, 2)))  # doctest: +SKIP
        >>> explainer.explain([[2.0, 3.0]])[0].attributions.tolist()  # doctest: +SKIP
        [2.0, 30.0]
    """

    def __init__(
        self,
        predictor: Predictor | Callable[[Any], Any],
        background: npt.ArrayLike,
        *,
        columns: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        """Takes what is explained.

        Args:
            predictor: A handle, or a function of rows that returns an output for each.
            background: Typical rows; their type is that of the rows which the predictor gets.
            columns: Names of the columns.
            **options: `input`, `output`, `target`, `limits`, `batch_size` and `seed`, as `Explainer` takes them.

        Raises:
            ConfigError: If an argument cannot be used.
        """
        super().__init__(predictor, **options)
        self._background = np.asarray(background)
        if self._background.ndim != 2 or self._background.dtype.kind not in "iuf":
            raise ConfigError("background: expected rows of numbers, in two dimensions", key="background")
        if not 0 < len(self._background) <= _MOST_BACKGROUND or not 0 < self._columns <= _MOST_COLUMNS:
            raise ConfigError(
                f"background: expected 1 to {_MOST_BACKGROUND} rows of 1 to {_MOST_COLUMNS} columns, got "
                f"{list(self._background.shape)}",
                key="background",
            )
        self._names = tuple(columns or ())
        if self._names and len(self._names) != self._columns:
            raise ConfigError(f"columns: expected {self._columns} names, got {len(self._names)}", key="columns")

    @property
    def _columns(self) -> int:
        return int(self._background.shape[1])

    def prepare(self) -> None:
        """Imports SHAP."""
        shap_library()

    def tensors(self) -> tuple[str, Any, dict[str, Any]]:
        """Rows, and for each row its attributions, base, prediction, target, and whether it is approximate."""
        rows = Annotated[np.ndarray, self._background.dtype.type, (None, self._columns)]
        return "rows", rows, column_types(self._columns)

    def outputs(self, explanations: Sequence[Explanation]) -> dict[str, Any]:
        """Explanations as those outputs."""
        return arrays_of(explanations)

    def instance(self, value: Any) -> Any:
        """A row, as a list or as an object by the names of the columns.

        Raises:
            InvalidArgument: If it is none.
        """
        if not isinstance(value, dict):
            return value
        if not self._names or set(value) != set(self._names):
            known = ", ".join(self._names) or "none that has a name"
            raise InvalidArgument(f"an instance is a list, or an object of all columns: {known}")
        return [value[name] for name in self._names]

    def _checked(self, inputs: Sequence[Any]) -> npt.NDArray[Any]:
        try:
            rows = np.asarray(inputs, self._background.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgument(f"instances: expected rows of {self._columns} numbers: {error}") from error
        if rows.ndim != 2 or rows.shape[1] != self._columns:
            raise InvalidArgument(f"instances: expected rows of {self._columns} numbers, got {list(rows.shape)}")
        return rows

    def _explained(
        self,
        inputs: npt.NDArray[Any],
        predictions: npt.NDArray[np.float64],
        targets: Sequence[int],
        evaluator: Evaluator,
        meter: Meter,
    ) -> list[Explanation]:
        kind = self._background.dtype

        def evaluate(rows: Any) -> npt.NDArray[np.float64]:
            return evaluator(np.ascontiguousarray(rows, kind))

        masker = shap_library().maskers.Independent(self._background, max_samples=len(self._background))
        found = shapley_explanations(list(inputs), predictions, targets, evaluate, masker, meter, self._seed)
        return [replace(one, parts=self._names) for one in found]
