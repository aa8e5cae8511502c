"""On what a run was made: figures without it mean nothing to anybody else."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from bench.paths import PROJECT


def facts() -> dict[str, str]:
    """Machine, system and versions, in the order in which they are shown."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "alipes": _version("alipes"),
        "commit": _printed("git", "-C", str(PROJECT), "describe", "--always", "--dirty"),
        "ONNX Runtime": _version("onnxruntime"),
        "wrk": _printed("wrk", "-v").partition(" [")[0].removeprefix("wrk "),
        "h2load": _printed("h2load", "--version").removeprefix("h2load "),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _printed(*command: str) -> str:
    """The first line that a command prints; wrk ends with status 1 after its version."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return (done.stdout or done.stderr).partition("\n")[0]
