"""The unit and the image of the page about deployment are what systemd and a container engine take."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.blocks import blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
FLAGS = (ROOT / "docs" / "reference" / "cli-serve.md").read_text(encoding="utf-8")
INSTRUCTIONS = {"FROM", "RUN", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT"}


def block(name: str) -> str:
    """The content of the file that the page shows."""
    (found,) = [block.text for block in blocks(PAGE) if block.argument == name]
    return found


def settings() -> dict[str, str]:
    """The unit's settings; of one that stands twice, the last."""
    return dict(re.findall(r"^(\w+)=(.*)$", block("alipes.service"), re.MULTILINE))


def instructions() -> list[list[str]]:
    """The instructions of the Dockerfile, each as its name and the rest."""
    lines = re.sub(r"\\\n\s*", "", block("Dockerfile")).splitlines()
    return [line.split(" ", 1) for line in lines if line and not line.startswith("#")]


def test_systemd_takes_the_unit_without_a_warning(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    # A program that is there, in the place of one that this machine need not have.
    program = shutil.which("true")
    assert program is not None
    unit = tmp_path / "alipes.service"
    unit.write_text(block("alipes.service").replace("/opt/alipes/bin/alipes", program))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if unit.name in line]) == (0, [])


def test_systemd_waits_longer_than_the_server_drains() -> None:
    unit = settings()
    timeout = re.search(r"--exit-timeout-secs=(\d+)", unit["ExecStart"])
    assert timeout is not None
    assert int(unit["TimeoutStopSec"]) > int(timeout[1]) + 1
    assert unit["KillSignal"] == "SIGTERM"


def test_the_flags_of_unit_and_image_exist() -> None:
    named = set(re.findall(r"--[a-z0-9-]+", settings()["ExecStart"]))
    assert named
    assert {flag for flag in named if f"| `{flag}` |" not in FLAGS} == set()


def test_the_image_is_made_of_known_instructions_and_serves_without_root() -> None:
    found = dict(instructions())
    assert set(found) == INSTRUCTIONS
    assert found["USER"].isdigit() and found["USER"] != "0"
    assert f"--uid {found['USER']} " in found["RUN"]
    assert found["STOPSIGNAL"] == settings()["KillSignal"]
    assert json.loads(found["ENTRYPOINT"])[:2] == ["alipes", "serve"]


def test_the_health_check_of_the_image_is_the_one_that_the_page_tries() -> None:
    check = json.loads(dict(instructions())["HEALTHCHECK"].split("CMD ", 1)[1])
    assert check[:2] == ["python", "-c"]
    compile(check[2], "healthcheck", "exec")
    assert f'python -c "{check[2]}"\n' in PAGE


def test_the_health_check_fails_without_a_server() -> None:
    command = json.loads(dict(instructions())["HEALTHCHECK"].split("CMD ", 1)[1])[2]
    # Port 9 is the port of `discard`, where nothing listens.
    done = subprocess.run([sys.executable, "-c", command.replace(":8000", ":9")], capture_output=True, check=False)
    assert done.returncode == 1
