"""The repository of a soak: a model of each kind, and what the faults need."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from support.models import add_model, counts_up, times
from support.python_models import DECOUPLED, REPORTS, add_python_model, instances
from support.sequences import LONG_IDLE, add_streaming

# ONNX: twice the numbers. It is loaded again and again while it answers.
DOUBLE: Final = "double"
# The same for any number of columns.
WIDE: Final = "wide"
# Python: twice the numbers. Its workers are killed.
PLAIN: Final = "plain"
# The same, and its worker lives as long as the server: what a worker keeps of requests shows here.
VETERAN: Final = "veteran"
# Python: a response for each number.
REPORTING: Final = "reporting"
# Ensembles: of ONNX alone, and with a step in Python whose worker is killed.
FOUR_TIMES: Final = "four-times"
MIXED: Final = "mixed"
# Python behind ONNX, in `mixed`.
HALVING: Final = "halving"
# It is loaded and unloaded.
PASSING: Final = "passing"
# Sequences: the sum of the numbers so far, and the newest samples.
SUMS: Final = "sums"
WINDOWS: Final = "windows"
# As `windows`, for clients that go away in the middle.
FORGOTTEN: Final = "forgotten"

CHANNELS, STRIDE, LENGTH = 2, 4, 16

# Models whose workers may be killed, or that may be unloaded, when a request comes.
MAY_REFUSE: Final = (PLAIN, MIXED, HALVING, REPORTING, PASSING)

_DOUBLES = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(Y=given(request) * 2) for request in requests]
"""

_HALVES = _DOUBLES.replace("* 2", "/ 2")

# It leaks by time, so that it does on a busy machine too. What it keeps is written to, so that it takes memory.
_LEAKS = """
class TritonPythonModel:
    def initialize(self, args):
        threading.Thread(target=self.leak, daemon=True).start()

    def leak(self):
        kept = []
        while True:
            kept.append(b"x" * (1 << 20))
            time.sleep(0.25)

    def execute(self, requests):
        return [answer(Y=given(request) * 2) for request in requests]
"""

_ROW = """
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1, 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1, 2 ] } ]
"""

_SUMS = """
backend: "onnxruntime"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
sequence_batching {
  max_sequence_idle_microseconds: 600000000
  oldest { max_candidate_sequences: 16 }
  state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ]
            initial_state { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } ]
}
"""

_SHORT_IDLE = LONG_IDLE.replace("600000000", "2000000")


def write_repository(repository: Path, *, leak: bool = False) -> None:
    """Writes all models; with a leak the model `veteran` keeps 4 MiB more each second."""
    for name in (DOUBLE, PASSING):
        add_model(repository, name)
    add_model(repository, WIDE, times(columns="columns"))
    add_python_model(repository, PLAIN, _DOUBLES, config=instances(2))
    add_python_model(repository, VETERAN, _LEAKS if leak else _DOUBLES)
    add_python_model(repository, REPORTING, REPORTS, config=DECOUPLED)
    add_python_model(repository, HALVING, _HALVES, signature="X: FP32[-1, 2] -> Y: FP32[-1, 2]")
    _add_ensemble(repository, FOUR_TIMES, DOUBLE, DOUBLE)
    _add_ensemble(repository, MIXED, DOUBLE, HALVING)
    add_model(repository, SUMS, counts_up(), config=_SUMS)
    for name, idle in ((WINDOWS, LONG_IDLE), (FORGOTTEN, _SHORT_IDLE)):
        channels = f"strain:{CHANNELS}"
        add_streaming(
            repository, name, "snapshotter", more=idle, stride_size=STRIDE, snapshot_size=LENGTH, channels=channels
        )


def _add_ensemble(repository: Path, name: str, first: str, second: str) -> None:
    steps = [
        f'{{ model_name: "{model}" model_version: -1 input_map {{ key: "X" value: "{before}" }} '
        f'output_map {{ key: "Y" value: "{after}" }} }}'
        for model, before, after in ((first, "X", "M"), (second, "M", "Y"))
    ]
    (repository / name / "1").mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(
        f'platform: "ensemble"{_ROW}ensemble_scheduling {{ step [ {", ".join(steps)} ] }}'
    )
