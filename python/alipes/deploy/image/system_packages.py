"""Which packages of the system its libraries are of, as Debian and its relatives note it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["SystemPackage", "system_packages"]

_TIMEOUT_S: Final = 30.0
_FORM: Final = "${Package}\\t${Version}\\t${Architecture}\\n"


@dataclass(frozen=True, slots=True)
class SystemPackage:
    """One package of the system.

    Attributes:
        name: Its name.
        version: Its version.
        architecture: The processor that it is for.
        distribution: The distribution, such as `debian`.
        terms: The file with its licence; None where there is none.
    """

    name: str
    version: str
    architecture: str
    distribution: str
    terms: Path | None


def system_packages(files: Iterable[Path]) -> dict[Path, SystemPackage]:
    """The package of each file; without those that are of none, and empty where dpkg is not installed."""
    program = shutil.which("dpkg-query")
    if program is None:
        return {}
    names = {name: path for path in files for name in _names(path)}
    owners = {}
    for line in _printed(program, "--search", *names).splitlines():
        owner, _, name = line.partition(": ")
        if name in names:
            owners[names[name]] = owner.partition(",")[0]
    if not owners:
        return {}
    known = {}
    distribution = _distribution()
    for line in _printed(program, "--show", f"--showformat={_FORM}", *sorted(set(owners.values()))).splitlines():
        name, version, architecture = line.split("\t")
        terms = Path("/usr/share/doc") / name / "copyright"
        known[name] = SystemPackage(name, version, architecture, distribution, terms if terms.is_file() else None)
    found = {path: known.get(owner.partition(":")[0]) for path, owner in owners.items()}
    return {path: package for path, package in found.items() if package is not None}


def _names(path: Path) -> set[str]:
    """By which names dpkg may know a file: `/lib` may be a link to `/usr/lib`, and a file a link to another."""
    plain = {str(path), str(path.resolve())}
    return plain | {one.removeprefix("/usr") for one in plain} | {f"/usr{one}" for one in plain}


def _printed(*command: str) -> str:
    """What a command prints, whatever its exit status: it is 1 where some files are of no package."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _distribution() -> str:
    try:
        lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "linux"
    return next((line[3:].strip('"') for line in lines if line.startswith("ID=")), "linux")
