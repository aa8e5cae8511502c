"""Explanations by SHAP: Shapley values of the parts of an input, estimated from permutations of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from alipes.explainers.explanation import Explanation
from alipes.explainers.libraries import seeded, shap_library
from alipes.explainers.limits import Meter
from alipes.explainers.passes import averaged

__all__ = ["shapley_explanations"]


def shapley_explanations(  # noqa: PLR0913, PLR0917 - what one request brings together
    inputs: Sequence[Any],
    predictions: npt.NDArray[np.float64],
    targets: Sequence[int],
    evaluate: Callable[[Any], npt.NDArray[np.float64]],
    masker: Any,
    meter: Meter,
    seed: int,
) -> list[Explanation]:
    """The explanations of inputs.

    A pass is one permutation of the parts, taken forwards and backwards: a part's attribution is how much the output
    changes where it joins those before it.

    Args:
        inputs: The inputs.
        predictions: Their outputs.
        targets: Which output is explained, for each input.
        evaluate: The outputs of perturbed inputs.
        masker: SHAP's masker, which perturbs inputs.
        meter: Ends the passes.
        seed: Draws the permutations.

    Raises:
        DeadlineExceeded: If a limit is reached too early.
    """
    explainer = shap_library().explainers.Permutation(evaluate, masker)
    bases: dict[int, float] = {}
    parts: dict[int, list[str]] = {}

    def one_pass(at: int, number: int) -> npt.NDArray[np.float64]:
        target, count = targets[at], _count(masker, inputs[at])
        if count == 1:  # one order alone; SHAP's clusters of words need two
            bases[at] = float(evaluate(masker(np.zeros(1, bool), inputs[at])[0])[:, target].mean())
            parts[at] = [str(inputs[at])]
            return np.array([float(predictions[at, target]) - bases[at]])
        with seeded((seed + number) % 2**31):
            found = explainer(_alone(inputs, at), max_evals=2 * count + 1, silent=True)
        bases[at] = float(np.asarray(found.base_values).reshape(1, -1)[0, target])
        if isinstance(inputs[at], str):
            parts[at] = [str(part) for part in found.data[0]]
        values = np.asarray(found.values, np.float64)[0]
        return np.asarray(values[:, target] if values.ndim == 2 else values)

    estimates = averaged(inputs, one_pass, meter)
    return [
        Explanation(
            attributions=estimate.attributions,
            base=bases[at],
            prediction=float(predictions[at, targets[at]]),
            target=targets[at],
            is_approximate=estimate.passes < meter.limits.passes,
            passes=estimate.passes,
            parts=parts.get(at, ()),
        )
        for at, estimate in enumerate(estimates)
    ]


def _alone(inputs: Sequence[Any], at: int) -> Any:
    return [inputs[at]] if isinstance(inputs[at], str) else np.asarray(inputs[at])[None]


def _count(masker: Any, value: Any) -> int:
    """Parts of an input."""
    shape = masker.shape(value) if callable(masker.shape) else masker.shape
    return int(shape[1])
