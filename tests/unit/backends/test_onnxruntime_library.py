"""Where the ONNX Runtime library is found, and what is said when it is not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from alipes.backends.onnxruntime.library import find_library, silence_telemetry
from alipes.backends.registry import OFFERED, backend_of
from alipes.errors import ModelLoadError


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all that can be imported from."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    sys.path_importer_cache.clear()
    return tmp_path


def wheel(site: Path, *files: str) -> None:
    (site / "onnxruntime" / "capi").mkdir(parents=True)
    (site / "onnxruntime" / "__init__.py").write_text("raise ImportError('must not be imported')")
    for name in files:
        (site / "onnxruntime" / "capi" / name).write_bytes(b"")


def test_library_is_found_without_importing_the_package(site: Path) -> None:
    wheel(site, "libonnxruntime.so.1.20.1", "libonnxruntime_providers_shared.so", "onnxruntime_pybind11_state.so")
    assert find_library() == site / "onnxruntime" / "capi" / "libonnxruntime.so.1.20.1"
    assert "onnxruntime" not in sys.modules


def test_the_name_with_the_full_version_is_preferred(site: Path) -> None:
    wheel(site, "libonnxruntime.so", "libonnxruntime.so.1", "libonnxruntime.so.1.20.1")
    assert find_library().name == "libonnxruntime.so.1.20.1"


def test_without_the_wheel_the_text_says_what_to_install(site: Path) -> None:
    with pytest.raises(ModelLoadError, match="pip install onnxruntime") as failure:
        find_library()
    assert failure.value.reason.startswith("Unavailable: ONNX Runtime is not installed")


def test_a_wheel_without_a_library_is_to_be_upgraded(site: Path) -> None:
    wheel(site, "onnxruntime_pybind11_state.so")
    with pytest.raises(ModelLoadError, match="pip install --upgrade onnxruntime"):
        find_library()


def test_an_unknown_backend_has_the_text_of_triton() -> None:
    with pytest.raises(ModelLoadError) as failure:
        backend_of("nosuch")
    assert failure.value.reason == (
        "Invalid argument: unable to find backend library for backend 'nosuch', "
        "try specifying runtime on the model configuration."
    )


def test_a_backend_that_is_not_offered_is_named() -> None:
    message = f"backend 'vllm' is not offered by this release; offered: {', '.join(sorted(OFFERED))}"
    with pytest.raises(ModelLoadError, match=message):
        backend_of("vllm")


@pytest.mark.parametrize(("paths", "then"), [(None, "1"), ("0", "0")])
def test_telemetry_is_off_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, paths: str | None, then: str
) -> None:
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    if paths is not None:
        monkeypatch.setenv("ORT_DISABLE_TELEMETRY", paths)
    silence_telemetry()
    assert os.environ["ORT_DISABLE_TELEMETRY"] == then
