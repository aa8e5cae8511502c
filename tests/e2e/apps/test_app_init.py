"""`alipes init` writes an app whose test passes, and whose requests are answered."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from support.server import ServerProcess


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def init(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "alipes", "init", *arguments, folder=folder)


def test_what_is_written_passes_its_test_and_answers(tmp_path: Path, serve: Callable[..., ServerProcess]) -> None:
    done = init(tmp_path, "my app")
    assert done.returncode == 0, done.stderr
    assert "cd 'my app' && alipes serve app.py --reload" in done.stdout
    folder = tmp_path / "my app"
    assert sorted(path.name for path in folder.iterdir()) == ["app.py", "request.py", "request.sh", "test_app.py"]
    tested = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=folder)
    assert "2 passed" in tested.stdout, tested.stdout
    assert run(sys.executable, "test_app.py", folder=folder).stdout == "all is well\n"
    server = serve(folder / "app.py")
    asked = run(sys.executable, "request.py", server.http, folder=folder)
    assert asked.stdout == "{'text': 'What a great day', 'score': 1.0}\n", asked.stderr
    asked = run("sh", "request.sh", server.http, folder=folder)
    assert asked.stdout == '{"text":"What a great day","score":1.0}'


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "request.py").write_text("mine")
    done = init(tmp_path)
    assert done.returncode == 1
    assert "request.py exists: name another folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["request.py"]


def test_a_folder_that_cannot_be_made_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = init(tmp_path, "file/app")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
