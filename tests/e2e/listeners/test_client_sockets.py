"""Our own clients over Unix sockets."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes.client import AsyncClient, Client, InferenceClient, Tls
from alipes.errors import ConfigError, TransportError
from support.certificates import Authority, encrypted
from support.models import add_model, times
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: the path of a socket has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="alipes-") as name:
        yield Path(name)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """One model, `double`, with any number of columns."""
    repository = tmp_path / "models"
    repository.mkdir()
    add_model(repository, "double", times(columns="columns"))
    return repository


def flags(folder: Path) -> list[str]:
    return [f"--{endpoint}-address=unix:{folder / endpoint}" for endpoint in ("http", "grpc")]


def rows(columns: int = 2) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.ones((1, columns), np.float32)


def test_every_client_asks_over_a_socket_in_a_folder(models: Path, folder: Path, serve: Serve) -> None:
    serve(models, *flags(folder))

    async def awaited(where: str) -> list[Any]:
        async with AsyncClient(where) as client:
            return list(await asyncio.gather(*(client.infer("double", rows()) for _ in range(4))))

    for where in (f"http://unix:{folder}/http", f"grpc://unix:{folder}/grpc", f"unix:{folder}/grpc"):
        with Client(where) as client:
            for columns in (1, 1_000_000):
                np.testing.assert_array_equal(client.infer("double", rows(columns)), 2 * rows(columns))
        assert [answer.tolist() for answer in asyncio.run(awaited(where))] == 4 * [[[2, 2]]]
    for where in (f"unix:{folder}/grpc", f"unix://{folder}/grpc"):
        with InferenceClient(where, "double") as client_of_streams:
            client_of_streams.infer(rows(1), 7)
        assert [(y.tolist(), number) for y, number, _ in client_of_streams.get(until_empty=True)] == [([[2]], 7)]


def test_a_socket_in_a_folder_can_be_encrypted_too(
    models: Path, folder: Path, authority: Authority, serve: Serve
) -> None:
    files = authority.files("server")
    serve(models, *flags(folder), *(flag for endpoint in ("http", "grpc") for flag in encrypted(endpoint, files)))
    for where in (f"https://unix:{folder}/http", f"grpcs://unix:{folder}/grpc"):
        with Client(where, tls=Tls(authority.root)) as client:
            assert client.infer("double", rows()).tolist() == [[2, 2]]


def test_a_path_without_a_server_is_an_error_that_names_it(folder: Path) -> None:
    with pytest.raises(TransportError, match=f"cannot connect to unix:{folder}/nobody: No such file") as caught:
        Client(f"unix:{folder}/nobody").server_metadata()
    assert not caught.value.reached
    with pytest.raises(TransportError, match="107 at most"):
        Client(f"unix:{folder}/{'x' * 108}")
    with pytest.raises(ConfigError, match="there are no streams"):
        InferenceClient(f"http://unix:{folder}/http", "double")
