"""Programs of Go modules, built outside their repositories."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from programs import (
    KNATIVE_FILES,
    KSERVE_KINDS,
    KSERVE_KINDS_FILE,
    KSERVE_KINDS_FOLDER,
    KSERVE_SETTINGS,
    KSERVE_SETTINGS_FILE,
    KSERVE_WEBHOOKS,
    KSERVE_WEBHOOKS_FILE,
    KWOK_FILE,
    PROGRAMS,
    STAGES,
    Module,
    Program,
)

# A `replace` by a folder: it leads to a place in the module's own repository.
_REPLACED_BY_FOLDER = re.compile(r"^\s*(?:replace )?\S+ => \.\.?/\S+\n", re.MULTILINE)
_STAGED = re.compile(r"^\s*(?:replace )?(\S+) => \./staging/\S+$", re.MULTILINE)


def build(program: Program, name: str) -> Path:
    """Build a program, unless it is there, and return its path.

    Raises:
        subprocess.CalledProcessError: If the module or what it requires cannot be had, or does not compile.
    """
    binary = program.folder() / "bin" / name
    if binary.exists():
        return binary
    binary.parent.mkdir(parents=True, exist_ok=True)
    unfinished = binary.with_name(f".{name}.{os.getpid()}")
    flags = f"-s -w {program.linker_flags}"
    _go("build", "-trimpath", "-ldflags", flags, "-o", str(unfinished), program.package, cwd=_module(program))
    # Whoever looks for the program meanwhile finds all of it or nothing.
    unfinished.rename(binary)
    return binary


def write_files(name: str) -> None:
    """Write what a program needs beside itself, from its own source, unless it is there."""
    if name == "kwok":
        _write_stages(PROGRAMS[name])
    if name == "kserve-render":
        _write_kinds(PROGRAMS[name])
    if name == "kn-controller":
        _write_knative(PROGRAMS[name])


def _write_stages(program: Program) -> None:
    """What kwok's nodes and pods do."""
    if (program.folder() / KWOK_FILE).exists():
        return
    source = _source(program.module) / "kustomize" / "stage"
    files = [file for stage in STAGES for file in sorted((source / stage).glob("*.yaml"))]
    _write_documents(files, program.folder() / KWOK_FILE)


def _write_kinds(program: Program) -> None:
    """The kinds that KServe adds to an API server, its settings and its webhooks."""
    if (program.folder() / KSERVE_WEBHOOKS_FILE).exists():
        return
    source = _source(program.module)
    kinds = [file for name in KSERVE_KINDS for file in sorted((source / KSERVE_KINDS_FOLDER).rglob(name))]
    _write_documents(kinds, program.folder() / KSERVE_KINDS_FILE)
    _write_documents([source / KSERVE_SETTINGS], program.folder() / KSERVE_SETTINGS_FILE)
    _write_documents([source / KSERVE_WEBHOOKS], program.folder() / KSERVE_WEBHOOKS_FILE)


def _write_knative(program: Program) -> None:
    """The kinds that Knative adds to an API server, its settings and its webhooks."""
    for name, parts in KNATIVE_FILES.items():
        if not (program.folder() / name).exists():
            files = [file for module, pattern in parts for file in sorted(_source(module).glob(pattern))]
            _write_documents(files, program.folder() / name)


def _write_documents(files: Iterable[Path], into: Path) -> None:
    documents = [file.read_text(encoding="utf-8") for file in files if file.name != "kustomization.yaml"]
    into.write_text("\n---\n".join(documents), encoding="utf-8")


def _module(program: Program) -> Path:
    """A module of our own that requires a program's module just as that module requires others.

    `go install` refuses modules with a `replace`, as Kubernetes has, and ignores those of what it requires.
    """
    module = program.module
    own = program.folder() / "modules" / module.path.replace("/", "-")
    if program.own_source is not None:
        shutil.copytree(program.own_source, own / program.package, dirs_exist_ok=True)
    if (own / "go.mod").exists():
        return own
    source = _source(module)
    own.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "go.sum", own / "go.sum")
    requirements = _requirements(program, (source / "go.mod").read_text(encoding="utf-8"))
    (own / "go.mod").write_text(requirements, encoding="utf-8")
    return own


def _requirements(program: Program, requirements: str) -> str:
    """The `go.mod` of our own module, from that of the module it requires."""
    module = program.module
    staged = _STAGED.findall(requirements)
    requirements = re.sub(r"^module .*$", "module alipes.test/kube", requirements, count=1, flags=re.MULTILINE)
    requirements = _REPLACED_BY_FOLDER.sub("", requirements)
    for path in staged:
        requirements = requirements.replace(f"{path} v0.0.0\n", f"{path} {module.staged_version}\n")
    replaced = [f"replace {path} => {path} {module.staged_version}" for path in staged]
    replaced += [f"replace {other.path} => {other.path} {other.version}" for other in program.replaced]
    return "\n".join([requirements, f"require {module.path} {module.version}", *replaced, ""])


def _source(module: Module) -> Path:
    """The folder of a module in Go's cache, after it is there."""
    found = subprocess.run(
        ["go", "mod", "download", "-json", f"{module.path}@{module.version}"],
        env=_environment(),
        cwd=Path.home(),  # no module's folder
        stdout=subprocess.PIPE,
        check=True,
    )
    return Path(json.loads(found.stdout)["Dir"])


def _go(*arguments: str, cwd: Path) -> None:
    """Runs Go behind everything else that the machine does: a cold build keeps all cores busy for minutes."""
    subprocess.run(["nice", "-n", "10", "go", *arguments], cwd=cwd, env=_environment(), check=True)


def _environment() -> dict[str, str]:
    return os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false -mod=mod", "GOTOOLCHAIN": "local"}


def missing(names: Iterable[str]) -> list[str]:
    """Those of some programs that are not built."""
    return [name for name in names if not (PROGRAMS[name].folder() / "bin" / name).exists()]
