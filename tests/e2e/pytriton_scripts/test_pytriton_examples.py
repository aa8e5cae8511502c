"""Scripts in the style of PyTriton's examples: each serves, and each is asked by another, with the opt-in alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pytriton_script import EXAMPLES, PRINTED, ServingScript, run_client

pytestmark = pytest.mark.timeout(120)

BOTH = {"add_sub", "identity", "headers_and_parameters", "several_models"}
CASES = [*((name, "grpc") for name in PRINTED), *((name, "http") for name in sorted(BOTH))]


@pytest.mark.parametrize(("name", "protocol"), CASES)
def test_an_example_runs_as_it_stands(name: str, protocol: str, tmp_path: Path) -> None:
    with ServingScript(EXAMPLES / f"{name}_server.py", tmp_path) as script:
        url = script.grpc if protocol == "grpc" else script.http
        assert run_client(EXAMPLES / f"{name}_client.py", url) == PRINTED[name]
        script.interrupt()
        assert list(script.home.iterdir()) == [], "the folder of the server is left behind"


def test_every_example_is_run() -> None:
    assert {file.stem.removesuffix("_server") for file in EXAMPLES.glob("*_server.py")} == set(PRINTED)
    assert {file.stem.removesuffix("_client") for file in EXAMPLES.glob("*_client.py")} == set(PRINTED)
