"""The cells of a lecture about inference as a service that export models and ask for them, as they stand there.

Left out is what trains and compares on GPUs and what rents clusters. The cells import the toolkit under its oldest
name; `utils` and `cluster`, which are the speaker's own, are stood in for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.cells import Cell
from support.hermes_names import hermes
from support.lecture import CONFIG, SCALED
from support.lecture_space import CELLS, bucket, check_answers, space
from support.server import ServerProcess

__all__ = ["bucket", "hermes", "space"]  # fixtures are found where they are imported

pytestmark = [
    pytest.mark.extra("torch"),
    pytest.mark.filterwarnings("ignore"),
]  # the clients of buckets warn of each other

TREE = "my-repo/\n    my-model/\n{versions}        config.pbtxt\n"
VERSION = "        {}/\n            model.onnx\n"


def export(space: dict[str, Any], read: Callable[[], str]) -> None:
    """Cells 13 to 17, and what they show."""
    assert str(CELLS[13].run(space)) == 'name: "my-model"\nplatform: "onnxruntime_onnx"\n'
    assert read() == "my-repo/\n    my-model/\nModel config:\n"
    assert str(CELLS[14].run(space)) == CONFIG
    assert space["export_path"] == "my-model/1/model.onnx"
    CELLS[15].run(space)
    assert read() == TREE.format(versions=VERSION.format(1))
    CELLS[16].run(space)
    assert read() == TREE.format(versions=VERSION.format(1) + VERSION.format(2))
    assert repr(CELLS[17].run(space)) == SCALED


@pytest.mark.slow("a whole notebook is run")
@pytest.mark.timeout(600)
def test_every_cell_does_what_it_shows(
    space: dict[str, Any],
    bucket: None,
    serve: Callable[..., ServerProcess],
    capsys: pytest.CaptureFixture[str],
) -> None:
    export(space, lambda: capsys.readouterr().out)

    CELLS[19].run(space)
    assert not Path("my-repo").exists()
    assert str(space["entry"].config) == SCALED
    assert space["export_path"] == "my-model/1/model.onnx"

    server = serve("gs://ligo-quiver-demo", "--model-control-mode=explicit")
    # The cell puts its port behind the address. In an address that has one already, gRPC takes that for a fragment.
    address = f"ipv4:{server.grpc}#"
    space["cluster"] = SimpleNamespace(k8s_client=SimpleNamespace(wait_for_service=lambda _name: address))
    try:
        for number in (23, 24):
            CELLS[number].run(space)
        Cell(0, 'do_some_iaas_inference("my-model")').run(space)
        for number in (25, 27, 29):
            CELLS[number].run(space)
        check_answers(space)
    finally:
        space["client"].close()
