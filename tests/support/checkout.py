"""A copy of the checkout that a test may change, and the folder in which cargo builds it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

from alipes import _core

ROOT = Path(__file__).parents[2]
_LARGE = ("bench/", "docs/how-to/", "examples/", "tests/golden/")


@dataclass(frozen=True)
class Checkout:
    """A copy of the files that git knows, without pictures and recordings."""

    folder: Path

    @classmethod
    def copy_to(cls, folder: Path) -> Checkout:
        """Copies the files, and the extension as it is built, so that Python runs from the copy."""
        # Files that are not committed yet belong to the checkout too.
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in listed.split("\0"):
            if name and not name.startswith(_LARGE) and (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, folder / name)
        built = Path(_core.__file__)
        (folder / "python" / "alipes" / built.name).symlink_to(built)
        return cls(folder)

    def run(
        self, *command: str, environment: Mapping[str, str] | None = None, path: tuple[Path, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command in the copy, with the copy's Python before any that is installed."""
        folders = [*path, self.folder / "python", self.folder / "tests"]
        variables = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))} | dict(environment or {})
        return subprocess.run(command, cwd=self.folder, env=variables, capture_output=True, text=True, check=False)

    def pytest(self, *arguments: str, path: tuple[Path, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Runs tests of the copy."""
        return self.run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, path=path)

    def state(self) -> dict[str, tuple[int, int]]:
        """Size and time of change of every file: what is written differs in one of them."""
        found = {}
        for folder, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in names:
                file = Path(folder) / name
                seen = file.lstat()
                found[str(file.relative_to(self.folder))] = (seen.st_size, seen.st_mtime_ns)
        return found


def cargo_environment() -> dict[str, str]:
    """What cargo is told where it builds a copy: nothing is kept for the next copy but dependencies."""
    return {"CARGO_TARGET_DIR": str(_cargo_target()), "CARGO_INCREMENTAL": "0"}


def _cargo_target() -> Path:
    """Where cargo builds copies: a folder beside the builds of this checkout, which it leaves alone.

    It begins with hard links to their compiled dependencies, as a new checkout does.
    """
    config = tomllib.loads((ROOT / ".cargo" / "config.toml").read_text(encoding="utf-8"))
    builds = Path(config["build"]["target-dir"])
    target = builds / "copies"
    if not target.exists() and (builds / "debug").is_dir():
        settings = _settings()
        begun = builds / f"copies-{os.getpid()}"
        try:
            shutil.copytree(
                builds / "debug",
                begun / "debug",
                copy_function=settings.link,
                ignore=settings.our_own,
                symlinks=True,
            )
            begun.rename(target)
        except OSError:  # cargo builds there at this moment, or another test was quicker
            shutil.rmtree(begun, ignore_errors=True)
    return target


def _settings() -> ModuleType:
    loader = SourceFileLoader("settings", str(ROOT / "tools" / "settings"))
    spec = spec_from_loader("settings", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module
