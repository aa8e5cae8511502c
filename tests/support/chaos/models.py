"""The repository that is troubled: ordinary, batching, decoupled and calling Python models, and one of ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from support.models import add_model
from support.python_models import DECOUPLED, add_python_model, instances, parameter

# What the first number of a request does to the model that executes it.
EXITS: Final = -1
CRASHES: Final = -2
RAISES: Final = -3
HANGS: Final = -4
POISONS: Final = (EXITS, CRASHES, RAISES, HANGS)

# Models that answer with twice the numbers, by unary calls.
UNARY: Final = ("plain", "batching", "caller")
STREAM: Final = "stream"
# Only `caller` sends requests to it.
CALLEE: Final = "callee"
# Runs in the server's own process: whatever happens to workers, it answers.
NATIVE: Final = "native"

INSTANCES: Final = {"plain": 2, "batching": 2, "caller": 2, "callee": 1, "stream": 1}

_EXECUTE_TIMEOUT_S = 1.5

_POISON = f"""
def suffer(number):
    if number == {EXITS}:
        os._exit(3)
    if number == {CRASHES}:
        ctypes.string_at(0)
    if number == {RAISES}:
        raise ValueError("poisoned")
    while number == {HANGS}:
        pass
"""

_DOUBLES = (
    _POISON
    + """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            suffer(given(request).flat[0])
        return [answer(Y=given(request) * 2) for request in requests]
"""
)

_CALLS = (
    _POISON
    + """
class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            suffer(given(request).flat[0])
            call = pb_utils.InferenceRequest(
                model_name="callee", requested_output_names=["Y"], inputs=[pb_utils.Tensor("X", given(request))]
            )
            response = call.exec()
            if response.has_error():
                raise pb_utils.TritonModelException(response.error().message())
            responses.append(answer(Y=response.output_tensors()[0].as_numpy()))
        return responses
"""
)

_STREAMS = (
    _POISON
    + """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            suffer(given(request).flat[0])
            sender = request.get_response_sender()
            for index in range(int(given(request).flat[0])):
                sender.send(answer(Y=np.array([index], np.int32)))
            sender.send(flags=FINAL)
"""
)


def write_repository(repository: Path) -> None:
    """Writes all models."""
    limit = parameter("EXECUTE_TIMEOUT_SECONDS", _EXECUTE_TIMEOUT_S)
    batches = "max_batch_size: 8\ndynamic_batching { }\n"
    configs = {"plain": "", "batching": batches, "caller": "", "callee": "", "stream": DECOUPLED}
    sources = {"caller": _CALLS, "stream": _STREAMS}
    for name, config in configs.items():
        full = config + limit + instances(INSTANCES[name])
        add_python_model(repository, name, sources.get(name, _DOUBLES), config=full)
    add_model(repository, NATIVE)
