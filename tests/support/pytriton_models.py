"""The models that PyTriton's clients are asked about: ordinary ones, served by an ordinary server."""

from __future__ import annotations

from pathlib import Path

from support.python_models import add_python_model

__all__ = ["FORWARD", "write_models"]

FORWARD = "--http-header-forward-pattern=forwarded.*", "--grpc-header-forward-pattern=forwarded.*"

_ADD_SUB = """
class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            a, b = given(request, "a"), given(request, "b")
            c = pb_utils.get_input_tensor_by_name(request, "c")
            more = 0 if c is None else c.as_numpy()
            answers.append(answer(add=a + b + more, sub=a - b))
        return answers
"""

_ECHO = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(y=given(request, "x")) for request in requests]
"""

_PARAMETERS = """
class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            said = sorted(json.loads(request.parameters()).items())
            text = json.dumps([item for item in said if not item[0].startswith("triton_")])
            answers.append(answer(y=np.array([[text.encode()]], np.object_)))
        return answers
"""

_FAILS = """
class TritonPythonModel:
    def execute(self, requests):
        raise ValueError("went wrong")
"""

_SLOW = """
class TritonPythonModel:
    def execute(self, requests):
        time.sleep(2)
        return [answer(y=given(request, "x")) for request in requests]
"""

_COUNTS = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            number = int(given(request, "n")[0, 0])
            if number < 0:
                sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("below zero")), FINAL)
                continue
            for i in range(number):
                sender.send(answer(i=np.array([[i]], np.int32)))
            sender.send(flags=FINAL)
"""

_POLICY = """
dynamic_batching {
  preferred_batch_size: [ 2, 4 ]
  max_queue_delay_microseconds: 100
  priority_levels: 2
  default_priority_level: 1
  default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5000000 }
  priority_queue_policy { key: 2 value { max_queue_size: 3 } }
}
instance_group { kind: KIND_CPU count: 2 }
"""


def write_models(repository: Path, *wanted: str) -> None:
    """Writes them all, or some."""
    rows = "max_batch_size: 8\n"
    decoupled = rows + "model_transaction_policy { decoupled: true }\n"
    signature = "a: FP32[2], b: FP32[2], c: ?FP32[1] -> add: FP32[2], sub: FP32[2]"
    for name, source, ports, config in (
        ("add_sub", _ADD_SUB, signature, rows + "dynamic_batching { }\n"),
        ("queued", _ECHO, "x: FP32[1] -> y: FP32[1]", rows + _POLICY),
        ("flat", _ECHO, "x: INT32[-1] -> y: INT32[-1]", ""),
        ("bytes", _ECHO, "x: STRING[-1] -> y: STRING[-1]", rows),
        ("said", _PARAMETERS, "x: FP32[1] -> y: STRING[1]", rows),
        ("fails", _FAILS, "x: FP32[1] -> y: FP32[1]", rows),
        ("slow", _SLOW, "x: FP32[1] -> y: FP32[1]", rows),
        ("counts", _COUNTS, "n: INT32[1] -> i: INT32[1]", decoupled),
    ):
        if not wanted or name in wanted:
            add_python_model(repository, name, source, signature=ports, config=config)
