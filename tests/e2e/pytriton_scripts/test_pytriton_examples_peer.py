"""The same scripts, run by the real PyTriton with NVIDIA's server, print the same."""

from __future__ import annotations

import sysconfig
import tempfile
from pathlib import Path

import pytest
from support.pytriton_script import EXAMPLES, PRINTED, ServingScript, run_client
from support.real_triton import ENVIRONMENT, MISSING, is_there

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not is_there(), reason=MISSING),
    pytest.mark.timeout(300),
]

PYTHON = str(ENVIRONMENT / "bin" / "python")


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_the_same_on_pytriton(name: str, tmp_path: Path) -> None:
    server = EXAMPLES / f"{name}_server.py"
    with (
        tempfile.TemporaryDirectory() as home,  # PyTriton's sockets lie there, and must have short paths
        ServingScript(
            server,
            tmp_path,
            python=PYTHON,
            way=(),
            # NVIDIA's stub has to find the library of the interpreter that it is to be.
            environment={"PYTRITON_HOME": home, "LD_LIBRARY_PATH": str(sysconfig.get_config_var("LIBDIR"))},
        ) as script,
    ):
        url = script.grpc if name == "streams" else script.http
        assert run_client(EXAMPLES / f"{name}_client.py", url, python=PYTHON, way=()) == PRINTED[name]
        script.interrupt()
