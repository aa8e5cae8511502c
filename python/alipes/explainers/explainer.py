"""What all explainers have in common: limits, batches, a seed, and how they become a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from alipes.errors import ConfigError, InvalidArgument
from alipes.explainers.explanation import Explanation
from alipes.explainers.limits import LimitReached, Limits, Meter
from alipes.explainers.source import Evaluator, Source, source_of
from alipes.predictor.predictor import Predictor

__all__ = ["MOST_INSTANCES", "Explainer"]

MOST_INSTANCES: Final = 1024
"""Most inputs of one request: each takes a pass at least."""
_MOST_ROWS: Final = 65_536


class Explainer(ABC):
    """Explains the outputs of a predictor.

    Attributes:
        limits: What the explanations of one request may take.
    """

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        predictor: Predictor | Callable[[Any], Any],
        *,
        input: str = "",
        output: str = "",
        target: int | None = None,
        limits: Limits | None = None,
        batch_size: int | None = None,
        seed: int = 0,
    ) -> None:
        """Takes what is explained; it is first asked for an explanation, or when the model of `model` is made.

        Args:
            predictor: A handle, or a function of inputs that returns an output for each.
            input: The input tensor of the predictor; left out, its only one.
            output: The output tensor that is explained; left out, its only one.
            target: Which number of the output is explained; left out, the largest for each input.
            limits: What the explanations of one request may take.
            batch_size: Inputs of one call; left out, the predictor's `max_batch_size`, or else 64.
            seed: Makes explanations repeatable: the same inputs and the same seed give the same numbers.

        Raises:
            ConfigError: If an argument cannot be used.
        """
        if batch_size is not None and (type(batch_size) is not int or not 1 <= batch_size <= _MOST_ROWS):
            raise ConfigError(f"batch_size={batch_size!r} must be an integer from 1 to {_MOST_ROWS}", key="batch_size")
        if target is not None and (type(target) is not int or target < 0):
            raise ConfigError(f"target={target!r} must be the position of an output, from 0", key="target")
        if type(seed) is not int or not 0 <= seed < 2**31:
            raise ConfigError(f"seed={seed!r} must be an integer from 0 to {2**31 - 1}", key="seed")
        self.limits = limits if limits is not None else Limits()
        self._source: Source = source_of(predictor, input, output)
        self._target, self._batch_size, self._seed = target, batch_size, seed

    def explain(self, inputs: Sequence[Any]) -> list[Explanation]:
        """Explanations, one for each input.

        Args:
            inputs: As the predictor takes them, without the axis of the batch.

        Raises:
            InvalidArgument: If an input does not fit.
            DeadlineExceeded: If a limit is reached too early; the text says which, and how to raise it.
            InferError: If the predictor fails.
        """
        if not 0 < len(inputs) <= MOST_INSTANCES:
            raise InvalidArgument(f"expected 1 to {MOST_INSTANCES} instances to explain, got {len(inputs)}")
        checked = self._checked(inputs)
        self.prepare()  # before the time runs
        meter = Meter(self.limits)
        evaluator = Evaluator(self._source, meter, self._batch_size)
        try:
            predictions = evaluator(checked)
        except LimitReached:
            raise meter.exceeded(0) from None
        targets = self._targets(predictions)
        return self._explained(checked, predictions, targets, evaluator, meter)

    def model(self, name: str, *, instances: int = 1) -> Any:
        """A model for an app: `:explain` of V1 answers with explanations, and so does V2, with tensors.

        Args:
            name: The model's name.
            instances: Processes that explain; each works on one request at a time.

        Returns:
            A function, decorated with `alipes.model`: an app has it in a variable of its module.
        """
        from alipes.explainers.serving import explainer_model

        return explainer_model(self, name, instances)

    @abstractmethod
    def prepare(self) -> None:
        """Imports what explanations need, which takes seconds: when the model is made, not with its first request."""

    @abstractmethod
    def tensors(self) -> tuple[str, Any, dict[str, Any]]:
        """The input of the model by its name and annotation, and the annotations of its outputs by their names."""

    @abstractmethod
    def outputs(self, explanations: Sequence[Explanation]) -> dict[str, Any]:
        """Explanations as those outputs."""

    @abstractmethod
    def instance(self, value: Any) -> Any:
        """An input, as an instance of V1 has it.

        Raises:
            InvalidArgument: If it is none.
        """

    @abstractmethod
    def _checked(self, inputs: Sequence[Any]) -> npt.NDArray[Any]:
        """Inputs as one array.

        Raises:
            InvalidArgument: If they do not fit.
        """

    @abstractmethod
    def _explained(
        self,
        inputs: npt.NDArray[Any],
        predictions: npt.NDArray[np.float64],
        targets: Sequence[int],
        evaluator: Evaluator,
        meter: Meter,
    ) -> list[Explanation]:
        """Explanations of inputs whose predictions are known."""

    def _targets(self, predictions: npt.NDArray[np.float64]) -> list[int]:
        if self._target is None:
            return [int(at) for at in predictions.argmax(axis=1)]
        if self._target >= predictions.shape[1]:
            raise ConfigError(f"target={self._target}: the output has {predictions.shape[1]} numbers", key="target")
        return [self._target] * len(predictions)
