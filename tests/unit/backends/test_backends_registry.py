"""Which backend a name stands for: ours first, then those that other packages bring by entry points."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
from alipes.backends.base import Backend
from alipes.backends.registry import GROUP, OFFERED, backend_of, entry_points
from alipes.errors import ModelLoadError
from support.gpus import has_real_gpu

Install = Callable[..., None]

MODULE = """
from alipes.backends.base import Backend, Engine

class Mine(Backend):
    def complete(self): ...
    def engine(self): return Engine({})

number = 7
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package with one backend: ``install(package, name, value, source=...)``."""
    monkeypatch.syspath_prepend(str(tmp_path))
    entry_points.cache_clear()

    def install(package: str, name: str, value: str, *, source: str = MODULE) -> None:
        (tmp_path / f"{value.partition(':')[0]}.py").write_text(source)
        about = tmp_path / f"{package.replace('-', '_')}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {value}\n")

    yield install
    entry_points.cache_clear()


def refusal(name: str) -> str:
    with pytest.raises(ModelLoadError) as caught:
        backend_of(name)
    assert caught.value.backend == name
    return str(caught.value)


def test_our_own_backends_are_found_without_a_look_at_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "entry_points", None)
    entry_points.cache_clear()
    assert {name: backend_of(name) for name in OFFERED} == dict(OFFERED)


def test_another_package_brings_a_backend(install: Install) -> None:
    install("alipes-mine", "mine", "first_backend:Mine")
    found = backend_of("mine")
    assert issubclass(found, Backend)
    assert found.__module__ == "first_backend"


def test_a_package_may_bring_what_this_release_does_not_offer(install: Install) -> None:
    assert "not offered by this release" in refusal("vllm")
    entry_points.cache_clear()
    install("alipes-vllm", "vllm", "vllm_backend:Mine")
    assert backend_of("vllm").__module__ == "vllm_backend"


def test_a_plan_of_tensorrt_says_that_it_needs_a_gpu() -> None:
    text = refusal("tensorrt")
    assert "backend 'tensorrt' is not offered by this release: a plan runs on the NVIDIA GPU" in text
    assert ("this machine has none" in text) != has_real_gpu()
    assert "serve the ONNX file that it was built from" in text


def test_no_package_takes_the_name_of_one_of_ours(install: Install) -> None:
    install("other-python", "python", "other_python:Mine")
    assert backend_of("python") is OFFERED["python"]


def test_packages_are_looked_at_once(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("alipes-mine", "mine", "once_backend:Mine")
    backend_of("mine")
    monkeypatch.setattr(metadata, "entry_points", None)
    assert backend_of("mine").__module__ == "once_backend"
    assert refusal("yours").startswith("unable to find backend library for backend 'yours'")


def test_a_name_that_several_packages_bring_is_refused(install: Install) -> None:
    install("alipes-mine", "mine", "one_backend:Mine")
    install("alipes-theirs", "mine", "two_backend:Mine")
    assert refusal("mine") == (
        "backend 'mine' is offered by several packages: alipes-mine, alipes-theirs; uninstall all but one"
    )


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("raise SystemExit('not on this machine')", "SystemExit: not on this machine"),
        ("", "AttributeError: module 'broken_backend' has no attribute 'Mine'"),
    ],
)
def test_a_backend_that_cannot_be_imported_names_its_package(
    install: Install, monkeypatch: pytest.MonkeyPatch, source: str, why: str
) -> None:
    monkeypatch.delitem(sys.modules, "broken_backend", raising=False)
    install("alipes-mine", "mine", "broken_backend:Mine", source=source)
    assert refusal("mine") == (
        f"backend 'mine' cannot be imported: 'broken_backend:Mine' of package 'alipes-mine' raised {why}; "
        "install what it lacks, or update or uninstall the package"
    )


@pytest.mark.parametrize("value", ["strange_backend:number", "strange_backend"])
def test_what_is_no_backend_is_refused(install: Install, value: str) -> None:
    install("alipes-mine", "mine", value)
    assert refusal("mine") == (
        f"backend 'mine' cannot be used: '{value}' of package 'alipes-mine' is no subclass of "
        "alipes.backends.base.Backend; update or uninstall the package"
    )
