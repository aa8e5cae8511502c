"""A TorchScript file beside it, called once for the whole batch."""

from pathlib import Path

import numpy as np
import torch
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """The model."""

    def initialize(self, arguments):
        """Loads the file, for one thread."""
        torch.set_num_threads(1)
        folder = Path(arguments["model_repository"]) / arguments["model_version"]
        self._module = torch.jit.load(folder / "model.pt")

    def execute(self, requests):
        """Runs all requests as one batch."""
        inputs = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        joined = inputs[0] if len(inputs) == 1 else np.concatenate(inputs)
        with torch.inference_mode():
            values = self._module(torch.from_numpy(joined)).numpy()
        ends = np.cumsum([len(rows) for rows in inputs])[:-1]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT__0", rows)]) for rows in np.split(values, ends)]
