"""Without PyTorch a model of it says what to install, and the other models serve."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from alipes import Client, NotFound
from support.models import add_model
from support.server import ServerProcess

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed here")


@pytest.mark.parametrize("file", ["model.pt", "model.pt2"])
def test_a_model_without_its_framework_says_what_to_install(
    repository: Path, serve: Callable[..., ServerProcess], file: str
) -> None:
    add_model(repository, "double")
    (repository / "net" / "1").mkdir(parents=True)
    (repository / "net" / "1" / file).write_text("whatever it holds")
    server = serve(repository)
    with Client(server.http) as client:
        [row] = [row for row in client.list_models() if row.name == "net"]
        assert "needs the package 'torch'" in row.reason
        assert "install it with: pip install 'alipes[torch]'" in row.reason
        with pytest.raises(NotFound):
            client.infer("net", {"x": np.zeros(1, "f4")})
        assert client.ready("double")
