"""Waits as long as a network on a processor of its own would compute for a batch of texts, and answers twice a number.

The longest text of a batch decides, and each row adds a little; a row is its number and the milliseconds of its text.
"""

import time

import triton_python_backend_utils as pb_utils

ROW_MS = 0.5


class TritonPythonModel:
    """The model."""

    def execute(self, requests):
        """Waits once for all requests."""
        rows = [pb_utils.get_input_tensor_by_name(request, "x").as_numpy() for request in requests]
        longest_ms = max(float(row[:, 1].max()) for row in rows)
        time.sleep((longest_ms + ROW_MS * sum(map(len, rows))) / 1e3)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", 2 * row[:, :1])]) for row in rows]
