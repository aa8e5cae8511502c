"""Decoupled: asked for a number of responses, answers 0, 1, 2 and so on."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """The model."""

    def execute(self, requests):
        """Sends each response as soon as it is made."""
        for request in requests:
            sender = request.get_response_sender()
            for index in range(int(pb_utils.get_input_tensor_by_name(request, "x").as_numpy()[0])):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([index], np.float32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
