"""A real podman, with an image of this machine's own files in which our server stands where Triton would."""

from __future__ import annotations

import io
import os
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import alipes
from alipes.serve.recipe import TRITONSERVER

IMAGE = "localhost/alipes-test:latest"
_TIMEOUT_S = 120.0
# More than a server needs. An engine must not ask for more than its own limits, which podman lowers.
_PROCESSES = 4096


class Missing(Exception):
    """Podman is not installed, or may not run containers here."""


@dataclass(frozen=True)
class Podman:
    """An engine with its own containers and images.

    Attributes:
        environment: What makes every `podman` use it.
    """

    environment: dict[str, str]

    def __call__(self, *words: str, stdin: bytes = b"") -> str:
        """What a command prints.

        Raises:
            Missing: If it fails.
        """
        done = subprocess.run(
            ["podman", *words],
            input=stdin,
            capture_output=True,
            env=os.environ | self.environment,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise Missing(done.stderr.decode(errors="replace").strip())
        return done.stdout.decode()


@contextmanager
def podman() -> Iterator[Podman]:
    """An engine with the image `IMAGE`, and nothing of it left at the end.

    Raises:
        Missing: If there is none.
    """
    shown = {"/usr", sys.prefix, sys.base_prefix, str(Path(alipes.__file__).parents[1])}
    inner = {path for path in shown if any(path != other and Path(path).is_relative_to(other) for other in shown)}
    with engine(volumes=sorted(shown - inner)) as made:
        made("import", "-", IMAGE, stdin=_image())
        made("run", "--rm", "--init", "--network=host", IMAGE, "/bin/bash", "-c", "true")
        yield made


@contextmanager
def engine(volumes: Sequence[str] = ()) -> Iterator[Podman]:
    """An engine without images, and nothing of it left at the end.

    Args:
        volumes: Folders of this machine that every container is shown.

    Raises:
        Missing: If there is none.
    """
    if missing := [program for program in ("podman", "runc", "catatonit") if shutil.which(program) is None]:
        raise Missing(f"not installed: {', '.join(missing)}")
    # Podman needs a short path for its run folder.
    with TemporaryDirectory(prefix="alipes-") as name:
        folder = Path(name)
        (folder / "storage.conf").write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
        )
        (folder / "containers.conf").write_text(_settings(folder, volumes))
        made = Podman(
            {
                "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
                "CONTAINERS_CONF": str(folder / "containers.conf"),
            }
        )
        try:
            yield made
        finally:
            made("rm", "--all", "--force")
            made("rmi", "--all", "--force")


def _settings(folder: Path, volumes: Sequence[str]) -> str:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    shown = ", ".join(f'"{path}:{path}:ro"' for path in volumes)
    return f"""
[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={_PROCESSES}:{_PROCESSES}"]
volumes = [{shown}]
[network]
network_config_dir = "{folder}/networks"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
static_dir = "{folder}/static"
tmp_dir = "{folder}/tmp"
volume_path = "{folder}/volumes"
"""


def _image() -> bytes:
    """A file system with links into the folders that are shown to every container, and a server."""
    path = Path(alipes.__file__).parents[1]
    server = f'#!/bin/bash\nexport PYTHONPATH="{path}"\nexec "{sys.executable}" -m alipes serve "$@"\n'.encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as image:
        for name in ("usr", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o777
            image.addfile(folder)
        for name in ("bin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            image.addfile(link)
        program = tarfile.TarInfo(TRITONSERVER.lstrip("/"))
        program.size, program.mode = len(server), 0o755
        image.addfile(program, io.BytesIO(server))
    return buffer.getvalue()
