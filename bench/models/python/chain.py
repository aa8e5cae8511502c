"""Adds one to what the next model answers, or to its own input where there is no next one."""

import json

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """The model."""

    def initialize(self, arguments):
        """Reads which model comes next."""
        parameters = json.loads(arguments["model_config"])["parameters"]
        self._next = parameters["next"]["string_value"] if "next" in parameters else None

    def execute(self, requests):
        """Asks for each request on its own."""
        return [self._respond(pb_utils.get_input_tensor_by_name(request, "x")) for request in requests]

    def _respond(self, tensor):
        if self._next is not None:
            call = pb_utils.InferenceRequest(model_name=self._next, requested_output_names=["y"], inputs=[tensor])
            response = call.exec()
            if response.has_error():
                raise pb_utils.TritonModelException(response.error().message())
            tensor = pb_utils.get_output_tensor_by_name(response, "y")
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", tensor.as_numpy() + 1)])
