"""The multi-layer perceptron in numpy, once for the whole batch; for Triton's Python backend."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """The model."""

    def initialize(self, arguments):
        """Reads the weights."""
        folder = Path(arguments["model_repository"]) / arguments["model_version"]
        weights = np.load(folder / "weights.npz")
        self._layers = [(weights[f"w{layer}"], weights[f"b{layer}"]) for layer in range(4)]

    def execute(self, requests):
        """Runs all requests as one batch."""
        inputs = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        values = np.concatenate(inputs)
        for matrix, bias in self._layers[:-1]:
            values = np.maximum(values @ matrix + bias, 0)
        matrix, bias = self._layers[-1]
        values = values @ matrix + bias
        outputs = np.split(values, np.cumsum([len(rows) for rows in inputs])[:-1])
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", rows)]) for rows in outputs]
