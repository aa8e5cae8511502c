"""What an index gets: `alipes-core` serves and asks without an engine, `alipes` adds the usual one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.proof, pytest.mark.slow("installs packages"), pytest.mark.timeout(600)]


def run(*words: object) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two distributions of the wheel that was built last."""
    built = [*(ROOT / "dist").glob("*.whl"), *(ROOT / "dist" / "gate").glob("*.whl")]
    if not built:
        pytest.skip("no wheel was built: make wheel")
    assert "-linux_" not in built[0].name, "no index takes a wheel with this tag"
    folder = tmp_path_factory.mktemp("wheels")
    run(ROOT / ".venv-tools" / "bin" / "python", ROOT / "tools" / "distributions", built[0], folder)
    return folder


def test_core_serves_no_onnx_model_until_the_engine_is_there(wheels: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", venv)
    python = venv / "bin" / "python"
    install = (
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--find-links",
        wheels,
        "--constraint",
        ROOT / "constraints.txt",
    )

    run(*install, "alipes-core")
    assert "onnxruntime" not in run(python, "-m", "pip", "list")
    assert run(venv / "bin" / "alipes", "version").startswith("alipes ")
    run(python, "-c", "from alipes import Client, ModelRepository, serve")
    tour = subprocess.run([venv / "bin" / "alipes", "quickstart"], capture_output=True, text=True, check=False)
    assert tour.returncode == 1
    assert "ONNX Runtime is not installed; install it with: pip install onnxruntime" in tour.stdout

    run(*install, "alipes")
    assert "98.9 %" in run(venv / "bin" / "alipes", "quickstart", "--seconds=0.2")
    # The second distribution brings no file of the package, so both may be there.
    assert "Location" in run(python, "-m", "pip", "show", "alipes", "alipes-core")
