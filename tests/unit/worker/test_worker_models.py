"""Other models of the server, asked for through the link."""

from __future__ import annotations

from typing import Any

import pytest
from alipes._core import TritonModelException
from alipes.worker.current import current
from alipes.worker.triton.models import get_model_dir, is_model_ready, load_model, unload_model


def test_a_load_names_the_model(link: Any) -> None:
    load_model("m")
    assert link.calls == [("model.load", {"model": "m", "config": "", "files": {}})]


def test_files_travel_in_base64(link: Any) -> None:
    load_model("m", config="{}", files={"file:1/model.py": b"\xff"})
    assert link.calls == [("model.load", {"model": "m", "config": "{}", "files": {"file:1/model.py": "/w=="}})]


def test_files_must_be_named(link: Any) -> None:
    with pytest.raises(TritonModelException, match="failed to load model 'm', files should be a dictionary"):
        load_model("m", files=[b""])  # type: ignore[arg-type]
    assert link.calls == []


def test_an_unload_may_take_others_along(link: Any) -> None:
    unload_model("m", unload_dependents=True)
    assert link.calls == [("model.unload", {"model": "m", "unload_dependents": True})]


@pytest.mark.parametrize(("version", "number"), [("", -1), ("3", 3)])
def test_readiness_is_of_a_version(link: Any, version: str, number: int) -> None:
    link.answers = [{"ready": True}, {"ready": False}]
    assert is_model_ready("m", version) is True
    assert is_model_ready("m", version) is False
    assert link.calls[0] == ("model.ready", {"model": "m", "version": number})


@pytest.mark.parametrize("version", ["one", "-2", "1.5"])
def test_a_version_is_a_number(link: Any, version: str) -> None:
    with pytest.raises(TritonModelException, match=f"version string '{version}', version should be an integral value"):
        is_model_ready("m", version)
    assert link.calls == []


def test_a_refusal_is_raised(link: Any) -> None:
    link.answers = ["explicit model load / unload is not allowed if polling is enabled"]
    with pytest.raises(TritonModelException, match=r"^Failed to load model: explicit model load"):
        load_model("m")


def test_the_folder_is_that_of_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "version_directory", "/models/m/1")
    assert get_model_dir() == "/models/m/1"
