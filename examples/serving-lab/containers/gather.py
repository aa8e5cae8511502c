"""Gathers what the image of the lab is built from: a root file system of this machine's own Python, and the lab.

    python containers/gather.py build      # in an environment with alipes[examples]
    podman build --tag lab --file containers/Dockerfile build

No registry is asked. The tree has Python with its standard library in /usr/local, the packages that the lab imports and
those that they require, the shared libraries of all of them, and no shell.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

import alipes
from packaging.requirements import Requirement

LAB: Final = Path(__file__).parents[1]
# What the containers run, and the extras of it that they need.
PACKAGES: Final = {
    "alipes": (),
    "fastapi": (),
    "flask": (),
    "pillow": (),
    "requests": (),
    "tritonclient": ("http",),
    "uvicorn": (),
}
# Parts of the standard library that no server needs.
_UNUSED: Final = ("site-packages", "test", "idlelib", "lib2to3", "ensurepip", "tkinter", "turtledemo", "config-*")
_LIBRARY: Final = re.compile(r"(?:=> )?(/\S+) \(0x")


def gather(build: Path) -> None:
    """Fills the folder `build` with `root` and `lab`."""
    root = build / "root"
    if build.exists() and not root.exists():
        sys.exit(f"{build} was not made by this, and would be replaced: name another folder")
    shutil.rmtree(build, ignore_errors=True)
    for folder in ("tmp", "etc", "usr/local/bin"):
        (root / folder).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/:/bin/false\n")
    _copy_python(root / "usr" / "local")
    _copy_libraries(root)
    kept = shutil.ignore_patterns(".*", "__pycache__", "serving-lab", "containers", build.name)
    shutil.copytree(LAB, build / "lab", ignore=kept)


def _copy_python(prefix: Path) -> None:
    version = f"python{sysconfig.get_python_version()}"
    program = Path(sys.executable).resolve()
    shutil.copy2(program, prefix / "bin" / version)
    (prefix / "bin" / "python").symlink_to(version)
    unused = shutil.ignore_patterns("__pycache__", *_UNUSED)
    shutil.copytree(sysconfig.get_path("stdlib"), prefix / "lib" / version, ignore=unused)
    packages = prefix / "lib" / version / "site-packages"
    for name in sorted(_required(PACKAGES)):
        _copy_package(name, packages)
    # alipes may be used as it stands in a checkout, where no list of installed files has it.
    own = Path(alipes.__file__).parent
    shutil.copytree(own, packages / "alipes", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


def _required(wanted: dict[str, tuple[str, ...]]) -> set[str]:
    """The names of the packages, and of all that they require here."""
    found: set[str] = set()
    pending = list(wanted.items())
    seen = set()
    while pending:
        name, extras = pending.pop()
        package = metadata.distribution(name)
        if (package.name, extras) in seen:
            continue
        seen.add((package.name, extras))
        found.add(package.name)
        for line in package.requires or ():
            needed = Requirement(line)
            places = [{"extra": extra} for extra in ("", *extras)]
            if needed.marker is None or any(needed.marker.evaluate(place) for place in places):
                pending.append((needed.name, tuple(sorted(needed.extras))))
    return found


def _copy_package(name: str, packages: Path) -> None:
    for file in metadata.distribution(name).files or ():
        source = Path(str(file.locate()))
        # Commands lie beside the packages and are not needed.
        if ".." not in file.parts and "__pycache__" not in file.parts and source.is_file():
            target = packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def _copy_libraries(root: Path) -> None:
    """The shared libraries that programs and extension modules of the tree load from outside of it."""
    programs = [root / "usr" / "local" / "bin" / "python", *root.rglob("*.so"), *root.rglob("*.so.*")]
    for library in sorted(set(_libraries(programs))):
        if not library.is_relative_to(root):
            target = root / library.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(library, target)
            if library.name.startswith("libpython"):
                shutil.copy2(library, root / "usr" / "local" / "lib" / library.name)


def _libraries(programs: Iterable[Path]) -> Iterator[Path]:
    for program in programs:
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        yield from map(Path, _LIBRARY.findall(listed))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python containers/gather.py FOLDER, which is made anew")
    gather(Path(sys.argv[1]).resolve())
