"""Answers its input times two: an array of its own, which numpy makes."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """The model."""

    def execute(self, requests):
        """Answers each request on its own."""
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("y", pb_utils.get_input_tensor_by_name(request, "x").as_numpy() * 2)]
            )
            for request in requests
        ]
