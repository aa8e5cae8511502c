"""Explanations of texts, by SHAP: which words a prediction rests on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from alipes.errors import ConfigError, InvalidArgument
from alipes.explainers.explainer import Explainer
from alipes.explainers.explanation import Explanation
from alipes.explainers.libraries import shap_library
from alipes.explainers.limits import Meter
from alipes.explainers.shapley import shapley_explanations
from alipes.explainers.source import Evaluator
from alipes.predictor.predictor import Predictor

__all__ = ["TextExplainer"]

MOST_LETTERS: Final = 100_000


class TextExplainer(Explainer):
    """Says what each word of a text adds to an output, against the text in which the word is masked.

    A pass over a text asks for `2 * words + 1` outputs at most.

    Examples:
        >>> from alipes.explainers import TextExplainer
        >>> explainer = TextExplainer(lambda texts: [float("good" in text) for text in texts])  # doctest: +SKIP
        >>> explainer.explain(["a good day"])[0].document()["parts"]  # doctest: +SKIP
        ['a ', 'good ', 'day']
    """

    def __init__(
        self,
        predictor: Predictor | Callable[[Any], Any],
        *,
        separator: str = r"\W+",
        mask: str = "...",
        **options: Any,
    ) -> None:
        """Takes what is explained.

        Args:
            predictor: A handle to a model that takes texts, a tensor of BYTES, or a function of texts.
            separator: What stands between two words, as a regular expression.
            mask: What stands for words that are left out; several in a row have one.
            **options: `input`, `output`, `target`, `limits`, `batch_size` and `seed`, as `Explainer` takes them.

        Raises:
            ConfigError: If an argument cannot be used.
        """
        super().__init__(predictor, **options)
        try:
            re.compile(separator)
        except re.error as error:
            raise ConfigError(f"separator: {separator!r} is no regular expression: {error}", key="separator") from error
        self._separator, self._mask = separator, mask

    def prepare(self) -> None:
        """Imports SHAP."""
        shap_library()

    def tensors(self) -> tuple[str, Any, dict[str, Any]]:
        """Texts, and for each text its explanation as JSON: texts have different numbers of words."""
        return "texts", list[str], {"explanations": list[str]}

    def outputs(self, explanations: Sequence[Explanation]) -> dict[str, Any]:
        """Explanations as that output."""
        return {"explanations": [json.dumps(one.document()) for one in explanations]}

    def instance(self, value: Any) -> Any:
        """A text, alone or as the only member of an object.

        Raises:
            InvalidArgument: If it is none.
        """
        if isinstance(value, dict) and len(value) == 1:
            value = next(iter(value.values()))
        if not isinstance(value, str):
            raise InvalidArgument(f"an instance is a text, got a {type(value).__name__}")
        return value

    def _checked(self, inputs: Sequence[Any]) -> npt.NDArray[Any]:
        for text in inputs:
            if not isinstance(text, str) or not text.strip():
                raise InvalidArgument("instances: expected texts with at least one word")
            if len(text) > MOST_LETTERS:
                raise InvalidArgument(f"instances: a text has at most {MOST_LETTERS} letters, got {len(text)}")
        texts = np.empty(len(inputs), object)
        texts[:] = list(inputs)
        return texts

    def _explained(
        self,
        inputs: npt.NDArray[Any],
        predictions: npt.NDArray[np.float64],
        targets: Sequence[int],
        evaluator: Evaluator,
        meter: Meter,
    ) -> list[Explanation]:
        def evaluate(texts: Any) -> npt.NDArray[np.float64]:
            plain = np.empty(len(texts), object)
            plain[:] = [str(text) for text in texts]
            return evaluator(plain)

        masker = shap_library().maskers.Text(self._separator, mask_token=self._mask)
        return shapley_explanations([*inputs], predictions, targets, evaluate, masker, meter, self._seed)
