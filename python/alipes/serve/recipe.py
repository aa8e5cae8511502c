"""What has to be run to have a server: our own, or one inside a container image."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from alipes.errors import ServeError
from alipes.serve.endpoints import EndpointName, Endpoints
from alipes.serve.gpus import VISIBLE

__all__ = ["CVMFS", "TRITONSERVER", "Command", "Recipe", "Runtime", "find_image", "flags_of"]

Runtime = Literal["apptainer", "docker", "podman"]

CVMFS: Final = Path("/cvmfs/singularity.opensciencegrid.org/ml4gw")
"""Where images are looked for that are not in the working folder."""

TRITONSERVER: Final = "/opt/tritonserver/bin/tritonserver"
"""The server inside an image."""

EXIT_TIMEOUT_S: Final = 10
"""How long a server may finish what is in when its block ends, unless flags say otherwise."""


@dataclass(frozen=True, slots=True)
class Command:
    """A process to run.

    Attributes:
        words: The command line.
        environment: What is added to the environment.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to start a server.

    Attributes:
        name: Name of the instance, and of the container where there is one.
        repository: The model repository: a folder, or the address of a bucket.
        image: A container image; `None` for our own server.
        runtime: What runs the image.
        devices: What `CUDA_VISIBLE_DEVICES` says; `None` for no word about GPUs.
        gpu: Whether the machine has one.
        flags: Flags of the server, ports among them.
    """

    name: str
    repository: str
    image: str | None
    runtime: Runtime
    devices: str | None
    gpu: bool
    flags: tuple[str, ...]

    def command(self, endpoints: Endpoints) -> Command:
        """The process that serves at these endpoints.

        Raises:
            ServeError: If what runs the image is not installed.
        """
        if self.image is None:
            return self._own(endpoints)
        return {"apptainer": self._apptainer, "docker": self._docker, "podman": self._docker}[self.runtime](endpoints)

    @property
    def removal(self) -> tuple[str, ...]:
        """A command line that makes sure that nothing is left, where ending the process may not. It may be empty.

        It names the program alone: a server is ended also where the program has gone meanwhile.
        """
        contained = self.image is not None and self.runtime != "apptainer"
        return (self.runtime, "rm", "--force", self.name) if contained else ()

    def _own(self, endpoints: Endpoints) -> Command:
        exit_timeout = () if _names(self.flags, "exit-timeout-secs") else (f"--exit-timeout-secs={EXIT_TIMEOUT_S}",)
        # No `alipes.toml` of the folder that a script happens to run in; a file that the flags name comes behind.
        words = (sys.executable, "-m", "alipes", "serve", "--config=", *exit_timeout, *self._flags(endpoints))
        return Command(words, {} if self.devices is None else {VISIBLE: self.devices})

    def _apptainer(self, endpoints: Endpoints) -> Command:
        program = _program("apptainer", "singularity")
        # The variable is given to the very command that runs the server: what an instance was started with is not
        # what a later `exec` in it sees.
        visible = () if self.devices is None else ("--env", f"{VISIBLE}={self.devices}")
        nv = ("--nv",) if self.gpu else ()
        words = (program, "exec", *nv, *visible, *self._bound("--bind", "{0}:{0}"), str(self.image))
        return Command((*words, TRITONSERVER, *self._flags(endpoints)), {})

    def _docker(self, endpoints: Endpoints) -> Command:
        program = _program(self.runtime)
        gpus = _container_gpus(self.runtime, self.devices) if self.gpu else ()
        # The network is the machine's own, so that ports mean the same inside and outside.
        words = (program, "run", "--rm", "--init", "--name", self.name, "--network=host", *gpus)
        inside = (*self._bound("--volume", "{0}:{0}"), str(self.image), TRITONSERVER, *self._flags(endpoints))
        return Command((*words, *inside), {})

    def _bound(self, option: str, form: str) -> tuple[str, ...]:
        """The option that shows the repository's folder to a container, at the same place."""
        return (option, form.format(self.repository)) if "://" not in self.repository else ()

    def _flags(self, endpoints: Endpoints) -> tuple[str, ...]:
        return (f"--model-repository={self.repository}", *self.flags, *flags_of(endpoints))


def flags_of(endpoints: Endpoints) -> tuple[str, ...]:
    """The flags that put the endpoints where they are; they stand last, since the last one counts."""
    names: dict[EndpointName, str] = {
        name: f"--{name}-port={endpoint.port}" for name, endpoint in endpoints.items() if endpoint.port
    }
    return tuple(names.values())


def find_image(image: str | os.PathLike[str] | None, runtime: Runtime, shared: Path = CVMFS) -> str | None:
    """The image to run.

    For apptainer an absolute path has to be there; a relative one is looked for in the working folder, then below
    `shared`. What has a scheme (`docker://...`), and whatever docker and podman run, is their own to find.

    Raises:
        ServeError: If there is no such file.
    """
    if image is None:
        return None
    text = os.fspath(image)
    if runtime != "apptainer" or "://" in text:
        return text
    places = [Path(text)] if Path(text).is_absolute() else [Path.cwd() / text, shared / text]
    for place in places:
        if place.exists():
            return str(place)
    looked = " or ".join(str(place) for place in places)
    raise ServeError(f"could not find the container image {text!r}: there is no {looked}")


def _container_gpus(runtime: Runtime, devices: str | None) -> tuple[str, ...]:
    if runtime == "podman":
        names = ["all"] if devices is None else [name for name in devices.split(",") if name]
        return tuple(f"--device=nvidia.com/gpu={name}" for name in names)
    return ("--gpus", "all" if devices is None else f'"device={devices}"')


def _program(*names: str, which: Callable[[str], str | None] = shutil.which) -> str:
    for name in names:
        if (found := which(name)) is not None:
            return found
    wanted = " or ".join(names)
    raise ServeError(
        f"{wanted} is not on the PATH, and a container image needs it; without `image` our own server runs"
    )


def _names(words: Sequence[str], flag: str) -> bool:
    return any(word.partition("=")[0] == f"--{flag}" for word in words)
