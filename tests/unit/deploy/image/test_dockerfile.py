"""`alipes deploy image --dockerfile`."""

from __future__ import annotations

import sys
from pathlib import Path

import alipes
import pytest
from alipes.deploy.image.dockerfile import dockerfile
from support import command
from support.blocks import blocks
from support.command import check_readable

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "deploy.md"


def test_the_dockerfile_is_that_of_the_page_with_the_releases_of_here() -> None:
    (page,) = [block.text for block in blocks(PAGE.read_text(encoding="utf-8")) if block.argument == "Dockerfile"]
    instructions = "".join(line for line in page.splitlines(keepends=True) if not line.startswith("#"))
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    here = instructions.replace("python:3.13", f"python:{python}").replace(
        " alipes \\", f" alipes=={alipes.__version__} \\"
    )
    assert dockerfile() == here


def test_a_dockerfile_of_an_app_has_its_folder_and_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.py").touch()
    lines = dockerfile("app.py").splitlines()
    assert 'COPY ["./", "/app/"]' in lines
    assert lines[-1] == 'ENTRYPOINT ["alipes", "serve", "/app/app.py"]'
    assert not [line for line in lines if "requirements.txt" in line]
    Path("requirements.txt").touch()
    lines = dockerfile("app.py").splitlines()
    packages = lines.index("RUN pip install --no-cache-dir -r /tmp/requirements.txt")
    assert lines[packages - 1] == 'COPY ["./requirements.txt", "/tmp/"]'
    assert packages < lines.index('COPY ["./", "/app/"]')
    assert 'COPY ["models/", "/models/"]' in dockerfile("models/").splitlines()


def test_the_dockerfile_is_printed_or_written(tmp_path: Path) -> None:
    file = tmp_path / "Dockerfile"
    printed = command.alipes("deploy", "image", "--dockerfile")
    written = command.alipes("deploy", "image", "--dockerfile", "--output", str(file))
    assert (printed.code, printed.out, written.code, written.out) == (0, dockerfile(), 0, "")
    assert file.read_text(encoding="utf-8") == dockerfile()


def test_a_dockerfile_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    done = command.alipes("deploy", "image", "--dockerfile", "--output", str(tmp_path / "absent" / "Dockerfile"))
    check_readable(done)
    assert (done.code, "choose another --output" in done.message) == (1, True)
