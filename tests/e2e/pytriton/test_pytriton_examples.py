"""Scripts in the style of PyTriton's examples: each serves, and each is asked by another, with the opt-in alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.pytriton_script import EXAMPLES, ServingScript, run_client

pytestmark = pytest.mark.timeout(120)

SAID = [[["header1", "value"], ["header_2", "7"], ["number", 5], ["text", "t"], ["truth", True]], ["said", "x"]]

# What the client's script prints; it compares arrays itself.
PRINTED = {
    "add_sub": "[[4.0, 6.0], [12.0, 18.0], [4.5, 6.25], [12.5, 18.25]]",
    "identity": "the same",
    "linear": "Seen [4]",
    "multi_layer": "(4, 6)",
    "several_models": "[7.0, 3.0, 21.0, 8.0, 7.0, 7.0]",
    "headers_and_parameters": f"{json.dumps(SAID)} 5",
    "streams": "[[0, 1, 2], [[[0], [0]], [[1], [1]]], [0, 1, 2], [[[0], [0]], [[1], [1]]], 3, True, [], [0, 1, 2]]",
}
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
