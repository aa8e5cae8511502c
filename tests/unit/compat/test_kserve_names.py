"""Scripts of the KServe SDK find the names that they import, on request alone, and whoever has the SDK keeps it."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from alipes.compat.rows import Absent
from alipes.errors import NotOffered

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from alipes.compat import kserve
    from alipes.compat.kserve.names import MODULES

ABSENT = [
    (module, name)
    for module, row in MODULES.items()
    for name in (row.names if isinstance(row, Absent) else row)
    if isinstance(row, Absent) or isinstance(row[name], Absent)
]


@pytest.fixture(autouse=True)
def names() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kserve.install()
    yield
    kserve.uninstall()


@pytest.mark.parametrize("module", MODULES)
def test_every_name_can_be_imported(module: str) -> None:
    row, found = MODULES[module], import_module(module)
    for name in row.names if isinstance(row, Absent) else row:
        assert getattr(found, name) is not None
        assert name in dir(found)


@pytest.mark.parametrize("module", sorted({module for module, _ in ABSENT}))
def test_what_is_not_offered_says_so_on_use(module: str) -> None:
    for name in [name for home, name in ABSENT if home == module]:
        with pytest.raises(NotOffered, match=rf"{module}\.{name} is not offered: "):
            getattr(import_module(module), name)()


def run(code: str, folder: Path, *way: str) -> str:
    """What a script prints, or its error."""
    file = folder / "script.py"
    file.write_text(code)
    done = subprocess.run([sys.executable, *way, str(file)], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_names_are_there_on_request_alone(tmp_path: Path) -> None:
    code = (
        "from kserve import Model; from kfserving import KFModel; print(Model.__module__, issubclass(KFModel, Model))"
    )
    assert "No module named 'kserve'" in run(f"import alipes; {code}", tmp_path)
    assert run(f"import alipes.compat.kserve; {code}", tmp_path).strip() == "alipes.compat.kserve.model True"
    assert run(code, tmp_path, "-m", "alipes.compat", "kserve").strip() == "alipes.compat.kserve.model True"


def test_names_bring_no_framework_with_them(tmp_path: Path) -> None:
    code = "import kserve, sys; kserve.ModelServer, kserve.InferRequest, kserve.InferenceGRPCClient\n"
    code += "print(sorted({'pandas', 'orjson', 'fastapi', 'httpx', 'grpc', 'google'} & set(sys.modules)))"
    assert run(code, tmp_path, "-m", "alipes.compat", "kserve").strip() == "[]"


def test_a_folder_of_that_name_beside_a_script_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "kserve").mkdir()
    (tmp_path / "kserve" / "service.yaml").touch()
    (tmp_path / "kserve" / "mine.py").write_text("WHO = 'the folder'")
    code = "from kserve import Model; from kserve.errors import InvalidInput; from kserve.mine import WHO; print(WHO)"
    assert run(f"import alipes.compat.kserve; {code}", tmp_path) == "the folder\n"
    assert run(code, tmp_path, "-m", "alipes.compat", "kserve") == "the folder\n"
