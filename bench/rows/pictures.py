"""The serving lab's JPEG in, a label out: the example's own variants, and a raw loop and Pillow beside the server."""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from bench.fleet import ALIPES, Fleet
from bench.load.tool import LoadFailed, run
from bench.models import lab
from bench.paths import PROJECT, WORK
from bench.rows.batches import Batches, Engine
from bench.rows.load import RATE
from bench.rows.row import CPU_US, Better, Cell, Facts, Row, Sample, Target
from bench.servers import probe
from bench.servers.endpoint import Endpoint
from bench.servers.interpreters import environment_of
from bench.work import WrongAnswer

SENDERS = 8
NATIVE = "native ensemble"
#: Variants of the example, and what the table calls them.
VARIANTS = {
    "native": NATIVE,
    "model-py-pt": "the lab's model.py, PyTorch",
    "model-py": "the lab's model.py, ONNX",
    "fastapi-pt": "the lab's FastAPI, PyTorch",
    "fastapi-onnx": "the lab's FastAPI, ONNX",
}
RAW = "raw ONNX Runtime loop"
PILLOW = "Pillow"
#: Servers that import PyTorch on a busy machine take their time.
LONGEST_S = 240.0
#: Parts of a run of the example, whose medians count: in each, every variant has its turn.
PARTS = 3


def pictures_rows() -> list[Row]:
    """The rows, in the order of the table."""
    return [LabRow(), NetworkRow(), DecodeRow()]


@dataclass
class LabRow:
    """The example's variants, which it measures in turn; a round here is a run of the example.

    Beside other programs, rates say less than the processor time: a server's own threads that compute step back for
    them, and worker processes and FastAPI do not.
    """

    facts: Facts = field(
        default_factory=lambda: Facts(
            "pictures",
            f"A JPEG of 30 kB in, a label out, {SENDERS} connections, a network below 1 ms",
            RATE,
            Better.MORE,
            tuple(Target(NATIVE, VARIANTS[name], 3 if "model" in name else 6) for name in VARIANTS if name != "native"),
        )
    )
    #: What the latest run of the example found.
    _found: dict[str, Sample] = field(default_factory=dict)

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The variants that can run here; none where FastAPI is not installed."""
        python = lab_python()
        if python is None:
            fleet.skipped["pictures"] = (
                "no FastAPI here and no .venv-torch, which `python tools/gate gate --only 'extra torch'` makes"
            )
            return []
        # The first cell runs the example for all of them.
        self._run(python, 0.1)
        if missing := [label for label in VARIANTS.values() if label not in self._found]:
            fleet.skipped["pictures"] = f"without {'; '.join(missing)}, whose packages are not installed"
        first, *others = self._found
        return [
            Cell(first, partial(self._measure, python, first)),
            *(Cell(label, partial(self._last, label)) for label in others),
        ]

    def _measure(self, python: Path, label: str, seconds: float) -> Sample:
        self._run(python, seconds)
        return self._found[label]

    def _last(self, label: str, _seconds: float) -> Sample:
        return self._found[label]

    def _run(self, python: Path, seconds: float) -> None:
        folder = WORK / "serving-lab"
        options = ["--no-picture", "--rounds", str(PARTS), "--senders", str(SENDERS), "--seconds", str(seconds)]
        command = [str(python), str(lab.LAB / "run.py"), *options, "--output", str(folder), "--variants", *VARIANTS]
        run(command, LONGEST_S, interrupt=False, environment=environment_of(python))
        measured = json.loads((folder / "results.json").read_text())["measured"]
        self._found = {
            VARIANTS[row["variant"]]: Sample(row["rate"], {**row, CPU_US: row["cpu_ms"] * 1e3}) for row in measured
        }


@dataclass
class NetworkRow:
    """An ensemble whose network takes its time, beside a raw loop over the same batches of it alone."""

    facts: Facts = field(
        default_factory=lambda: Facts(
            "pictures_network",
            f"A JPEG of 30 kB in, a label out, {SENDERS} connections, a network of about 20 ms",
            RATE,
            Better.MORE,
            (Target(ALIPES, RAW, 0.95),),
        )
    )
    #: How often the network ran with a batch of each size in the latest round.
    _batches: Batches = field(default_factory=lambda: Batches("network"))

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """alipes first, as the loop repeats its batches."""
        endpoint = fleet.alipes_on("lab", lab.repository())
        asked = lab.asked("food", "label", "Soup")
        _check(endpoint, asked)
        return [Cell(ALIPES, partial(self._alipes, endpoint, asked)), Cell(RAW, self._raw)]

    def _alipes(self, endpoint: Endpoint, asked: lab.Asked, seconds: float) -> Sample:
        before = self._batches.counted(endpoint)
        loaded = _send(endpoint, asked, SENDERS, seconds)
        counts = {size: count - before.get(size, 0) for size, count in self._batches.counted(endpoint).items()}
        self._batches.counts = {size: count for size, count in counts.items() if count > 0}
        return Sample(loaded["rate"], {**loaded, "batches": dict(self._batches.counts)})

    def _raw(self, seconds: float) -> Sample:
        engine = Engine("onnx", lab.network_file(lab.repository()), (3, lab.SIDE, lab.SIDE))
        return self._batches.raw(engine, seconds)


@dataclass(frozen=True)
class DecodeRow:
    """A picture decoded and resized: by the step, with all that its server does for a request, and by Pillow in a loop.

    Their CPU is compared: on a busy machine, a server that often sleeps gets a core sooner than a loop that never does.
    """

    facts: Facts = field(
        default_factory=lambda: Facts(
            "pictures_decode",
            "A JPEG of 30 kB decoded and resized to 224 x 224",
            "pictures for each second of CPU",
            Better.MORE,
            (Target(ALIPES, PILLOW, 1.5),),
        )
    )

    def cells(self, fleet: Fleet) -> Sequence[Cell]:
        """The step, and Pillow."""
        endpoint = fleet.alipes_on("lab", lab.repository())
        asked = lab.asked("resized", "tensor", f"[1,{lab.SIDE},{lab.SIDE},3]")
        _check(endpoint, asked)
        return [Cell(ALIPES, partial(_step, endpoint, asked)), Cell(PILLOW, _pillow)]


def lab_python() -> Path | None:
    """An interpreter that has FastAPI, with PyTorch before others: this one, or that of an environment of the gate."""
    here = Path(sys.executable) if find_spec("fastapi") is not None else None
    if here is not None and find_spec("torch") is not None:
        return here
    torch, examples = (PROJECT / f".venv-{name}" / "bin" / "python" for name in ("torch", "examples"))
    beside = (torch, *([here] if here is not None else []), examples)
    return next((python for python in beside if python.exists()), None)


def _check(endpoint: Endpoint, asked: lab.Asked) -> None:
    answer = probe.post(endpoint.http_port, asked.path, asked.body, asked.headers)
    if asked.says not in answer:
        raise WrongAnswer(f"{asked.path}: expected {asked.says!r} in {answer[:200]!r}")


def _send(endpoint: Endpoint, asked: lab.Asked, senders: int, seconds: float) -> dict[str, float]:
    """Loads the server with the example's senders, which compare each answer with the first one."""
    folder = WORK / "bodies"
    folder.mkdir(parents=True, exist_ok=True)
    request, expected = folder / "lab.request", folder / "lab.answer"
    request.write_bytes(asked.message())
    expected.write_bytes(probe.post(endpoint.http_port, asked.path, asked.body, asked.headers))
    options = [f"--port={endpoint.http_port}", f"--senders={senders}", f"--seconds={seconds}"]
    printed = run([sys.executable, str(lab.SENDERS), str(request), str(expected), *options], seconds, interrupt=False)
    try:
        loaded: dict[str, float] = json.loads(printed)
    except json.JSONDecodeError as error:
        raise LoadFailed(f"the senders printed no figures:\n{printed[-2000:]}") from error
    return loaded


def _step(endpoint: Endpoint, asked: lab.Asked, seconds: float) -> Sample:
    batches = Batches("resized")
    before, before_s = batches.counted(endpoint), endpoint.process.cpu_seconds()
    _send(endpoint, asked, 1, seconds)
    cpu_s = endpoint.process.cpu_seconds() - before_s
    count = sum(batches.counted(endpoint).values()) - sum(before.values())
    return Sample(count / cpu_s, {"pictures": count})


def _pillow(seconds: float) -> Sample:
    content = lab.picture()
    count, begin_s, end = 0, time.process_time(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        lab.pillow(content)
        count += 1
    return Sample(count / (time.process_time() - begin_s), {"pictures": count})
