"""Answers its input after 20 ms of work in Python itself: it never gives the interpreter away."""

import time

import triton_python_backend_utils as pb_utils

BUSY_S = 0.02


class TritonPythonModel:
    """The model."""

    def execute(self, requests):
        """Works for each request, then answers it."""
        return [self._respond(pb_utils.get_input_tensor_by_name(request, "x")) for request in requests]

    def _respond(self, tensor):
        # Processor time, so that sharing a core makes the model slower, as it would any other.
        end, total = time.process_time() + BUSY_S, 0
        while time.process_time() < end:
            for number in range(1000):
                total += number * number
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", tensor.as_numpy())])
