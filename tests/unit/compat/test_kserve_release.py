"""The KServe SDK of the package index has the names, the signatures and the texts that are answered to."""

from __future__ import annotations

import json
import subprocess

import pytest
from alipes.compat.kserve.names import MODULES
from alipes.compat.rows import Absent
from support.kserve_facts import SDK_MARKS, SDK_PYTHON, facts, recorded, scripts

pytestmark = [*SDK_MARKS, pytest.mark.timeout(300)]

# The modules of the SDK that scripts import, with the names that each of them defines or hands on from another.
PROGRAM = """
import importlib, json, sys
found = {}
for name in json.load(sys.stdin):
    try:
        found[name] = sorted(dir(importlib.import_module(name)))
    except ImportError:
        found[name] = None
print(json.dumps(found))
"""
# Extras bring these; the SDK alone cannot import them.
EXTRAS = {"kserve.protocol.rest.openai"}


@pytest.mark.parametrize("name", scripts())
def test_the_release_makes_of_the_calls_what_is_recorded(name: str) -> None:
    assert facts(name, python=str(SDK_PYTHON), way=()) == recorded(name)


def test_the_release_has_the_names_that_are_answered_to() -> None:
    modules = [name for name in MODULES if name.startswith("kserve")]
    command = [str(SDK_PYTHON), "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(command, input=json.dumps(modules), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.splitlines()[-1])
    for module in modules:
        if theirs[module] is None:
            assert module in EXTRAS
            continue
        row = MODULES[module]
        ours = set(row.names if isinstance(row, Absent) else row) - {"__version__"}
        assert ours - set(theirs[module]) == set(), module


def test_every_name_of_the_package_is_answered_to() -> None:
    program = "import json, kserve; print(json.dumps([n for n in dir(kserve) if n[0].isupper()]))"
    done = subprocess.run([str(SDK_PYTHON), "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert set(json.loads(done.stdout.splitlines()[-1])) <= set(MODULES["kserve"])
