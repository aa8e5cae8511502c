"""What an export adds to torch's own: the first one of a process, with all that it imports, and later ones."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.fleet import ALIPES, Fleet
from bench.load.tool import LoadFailed, run
from bench.rows.row import Better, Cell, Facts, Row, Sample, Target
from bench.servers.interpreters import advice, environment_of, python_with

ALONE = "torch.onnx.export"
DYNAMO = "dynamo"
TRACING = "tracing"
#: Exports of one process: the first pays for imports.
LATER_EXPORTS = 4
#: An export takes as long as it takes; the row's seconds are for loads.
LONGEST_S = 120.0


@dataclass(frozen=True)
class ExportRow:
    """Exports of a small convolutional model by one of torch's exporters, in processes of their own."""

    facts: Facts
    exporter: str
    first: bool = False

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """With alipes and without; none where there is no PyTorch."""
        python = torch_python()
        if python is None:
            fleet.skipped["exports"] = advice("torch", "torch")
            return []
        return [
            Cell(label, partial(self._export, python, who)) for label, who in ((ALIPES, "alipes"), (ALONE, "torch"))
        ]

    def _export(self, python: Path, who: str, _seconds: float) -> Sample:
        exports = 1 if self.first else 1 + LATER_EXPORTS
        command = [str(python), "-m", "bench.load.export_loops", who, self.exporter, str(exports)]
        printed = run(command, LONGEST_S, interrupt=False, environment=environment_of(python))
        try:
            times: list[float] = json.loads(printed.splitlines()[-1])["seconds"]
        except (json.JSONDecodeError, IndexError) as error:
            raise LoadFailed(f"the export printed no figures:\n{printed[-2000:]}") from error
        return Sample(times[0] if self.first else statistics.median(times[1:]), {"seconds": times})


def export_rows() -> list[Row]:
    """The rows, in the order of the table."""
    return [
        ExportRow(_facts("export_first", "PyTorch to ONNX, first export of a process", 1.1), DYNAMO, first=True),
        ExportRow(_facts("export", "PyTorch to ONNX, a later export", 1.1), DYNAMO),
        # Milliseconds: what is checked costs as much again.
        ExportRow(_facts("export_traced", "PyTorch to ONNX by tracing, a later export", None), TRACING),
    ]


def torch_python() -> Path | None:
    """An interpreter that has PyTorch."""
    return python_with("torch", "torch")


def _facts(name: str, title: str, bound: float | None) -> Facts:
    return Facts(name, title, "s", Better.LESS, (Target(ALIPES, ALONE, bound),))
