"""GPUs on a machine that has none: a stub of NVIDIA's management library, and the GPUs that it tells of."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

__all__ = ["StubGpu", "StubMachine", "has_real_gpu"]

_SOURCES: Final = Path(__file__).with_name("gpu_stub")


@dataclass(frozen=True)
class StubGpu:
    """A GPU, or in the state `part` a part of the one before it; `None` is what it does not tell.

    Memory in bytes, power in milliwatts, energy in millijoules.
    """

    uuid: str
    state: str = "ok"
    name: str = "Stub GPU"
    compute_capability: str = "9.0"
    memory_total: int | None = 80 << 30
    memory_used: int | None = 3 << 30
    utilization_percent: int | None = 25
    power: int | None = 120_500
    power_limit: int | None = 700_000
    energy: int | None = 5_250

    def line(self) -> str:
        """As the stub reads it."""
        uuid, state, *others = astuple(self)
        return "\t".join("-" if value is None else str(value) for value in (state, uuid, *others))


class StubMachine:
    """A folder with the built stub, and the file that says which GPUs there are."""

    def __init__(self, folder: Path, *gpus: StubGpu) -> None:
        """Builds the stub with the C compiler that Rust links with."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._file = folder / "gpus.tsv"
        library = folder / "libnvidia-ml.so.1"
        words = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o", str(library)]
        subprocess.run([*words, str(_SOURCES / "nvml.c")], check=True)
        self.write(*gpus)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process is started with to see these GPUs: the loader reads its path at the start alone."""
        return {"LD_LIBRARY_PATH": str(self._folder), "GPU_STUB_MACHINE": str(self._file)}

    def write(self, *gpus: StubGpu) -> None:
        """Changes the GPUs, for running processes, too."""
        new = self._file.with_suffix(".new")
        new.write_text("".join(f"{gpu.line()}\n" for gpu in gpus))
        new.replace(self._file)


def has_real_gpu() -> bool:
    """Whether this machine has a GPU, for tests that need one."""
    from alipes import _core  # every collection of tests imports this file

    return bool(_core.gpus())
