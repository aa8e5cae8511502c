"""The real PyTriton is still what was recorded of it, and its clients get from our server what ours do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.pytriton_facts import facts, recorded, scripts
from support.pytriton_models import FORWARD, write_models
from support.real_triton import ENVIRONMENT, MISSING, is_there
from support.server import ServerProcess

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not is_there(), reason=MISSING),
    pytest.mark.timeout(300),
]

PYTHON = str(ENVIRONMENT / "bin" / "python")


@pytest.mark.parametrize("name", scripts())
def test_the_record_is_that_of_pytriton(name: str) -> None:
    assert facts(name, python=PYTHON, way=()) == recorded(name)


def test_its_clients_get_from_our_server_what_was_recorded(
    serve: Callable[..., ServerProcess], repository: Path
) -> None:
    write_models(repository)
    server = serve(repository, *FORWARD)
    assert facts("calls", f"http://{server.http}", f"grpc://{server.grpc}", python=PYTHON, way=()) == recorded("calls")
