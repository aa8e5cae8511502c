"""Answers the process it lives in, and how long it took to load: it is there to be killed."""

import os
import time

import numpy as np
import triton_python_backend_utils as pb_utils

#: What stands for reading weights, and for computing: long enough that a signal hits an execution.
LOAD_S = 0.2
EXECUTE_S = 0.005


class TritonPythonModel:
    """The model."""

    def initialize(self, arguments):
        """Loads, and takes the time."""
        begin = time.perf_counter()
        time.sleep(LOAD_S)
        self._facts = np.array([[os.getpid(), time.perf_counter() - begin]], np.float32)

    def execute(self, requests):
        """Takes its time, then tells."""
        time.sleep(EXECUTE_S * len(requests))
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", self._facts)]) for _ in requests]
