"""A repository that every test of this folder serves."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.certificates import Authority
from support.models import add_model


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """One model, `double`: Y is twice X."""
    folder = tmp_path / "models"
    folder.mkdir()
    add_model(folder, "double")
    return folder


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """An authority that issues certificates."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    return Authority(folder)
