"""One model under several settings of its queue, each with a name of its own: one tunes itself, others are fixed."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.models.model import setting
from bench.models.python_models import SOURCES

OBJECTIVE_MS = 40
#: How often the model that tunes itself looks at the traffic: a day of this bench is a minute long.
PERIOD_MS = 100

TUNED = "tuned"

CONFIG = """\
backend: "python"
max_batch_size: {batch}
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 2 ] }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }} ]
instance_group [ {{ kind: KIND_CPU count: 1 }} ]
dynamic_batching {{ max_queue_delay_microseconds: {delay_us} }}
"""


@dataclass(frozen=True)
class Fixed:
    """A setting that stays."""

    delay_ms: float
    #: Largest batch, in rows.
    batch: int

    @property
    def model(self) -> str:
        """Name of the model that has it."""
        return f"fixed_{1000 * self.delay_ms:g}us_{self.batch}"

    def __str__(self) -> str:
        """For people."""
        return f"{self.delay_ms:g} ms, {self.batch} rows"


#: What a configuration without a word about the delay means; the model that tunes itself begins with it.
DEFAULT = Fixed(0, 32)
#: What a careful person would try.
SWEEP = (DEFAULT, *(Fixed(delay_ms, 32) for delay_ms in (2, 4, 6, 8, 10, 14, 20)), Fixed(20, 12))
MODELS = (TUNED, *(fixed.model for fixed in SWEEP))


def write(folder: Path) -> Path:
    """Writes the repository."""
    tuning = (setting("tuning.objective_p99_ms", f"{OBJECTIVE_MS}"), setting("tuning.period_ms", f"{PERIOD_MS}"))
    _add(folder, TUNED, DEFAULT, tuning)
    for fixed in SWEEP:
        _add(folder, fixed.model, fixed, ())
    return folder


def _add(folder: Path, name: str, fixed: Fixed, parameters: Sequence[str]) -> None:
    version = folder / name / "1"
    version.mkdir(parents=True, exist_ok=True)
    text = CONFIG.format(batch=fixed.batch, delay_us=round(1000 * fixed.delay_ms))
    (folder / name / "config.pbtxt").write_text(text + "".join(f"{line}\n" for line in parameters))
    shutil.copyfile(SOURCES / "texts.py", version / "model.py")
