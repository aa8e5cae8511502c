"""A client's side of shared memory: objects that it makes, changes, cuts and removes."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

import numpy as np
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from tritonclient.utils import np_to_triton_dtype

from support.server import ServerProcess

# Without it no client may register anything.
ALLOWED = "--allow-client-shm=true"

# The environment of a server that sees no GPU, whatever the machine has.
NO_GPUS = {"CUDA_VISIBLE_DEVICES": "-1"}

_FOLDER = Path("/dev/shm")
_COUNT = itertools.count()


def mapped_regions(process: int) -> dict[str, int]:
    """Where a process has regions of an alipes client mapped, by their names, which may be removed already."""
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    places = (line.split(maxsplit=5) for line in lines if f"{_FOLDER}/alipes-" in line)
    return {Path(place[5].removesuffix(" (deleted)")).name: int(place[0].partition("-")[0], 16) for place in places}


def ask(server: ServerProcess, method: str, path: str, body: str | None = None) -> tuple[int, Any]:
    """Status and document of an answer."""
    connection = HTTPConnection(server.http, timeout=60)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content else None
    finally:
        connection.close()


class SharedObject:
    """An object of shared memory, removed at the end of the context."""

    def __init__(self, byte_size: int) -> None:
        """An object full of zeroes, under a key of its own."""
        self.key = f"/alipes_test_{os.getpid()}_{next(_COUNT)}"
        self.byte_size = byte_size
        self._path = _FOLDER / self.key.lstrip("/")
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self.resize(byte_size)

    @classmethod
    def of(cls, *arrays: np.ndarray[Any, Any]) -> Self:
        """An object that holds these arrays, one behind the other."""
        made = cls(sum(array.nbytes for array in arrays))
        made.write(b"".join(array.tobytes() for array in arrays))
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unlink()
        os.close(self._file)

    def write(self, content: bytes, offset: int = 0) -> None:
        """Changes bytes of it."""
        assert os.pwrite(self._file, content, offset) == len(content)

    def read(self, datatype: type[np.generic], shape: tuple[int, ...], offset: int = 0) -> np.ndarray[Any, Any]:
        """A tensor that lies in it."""
        size = int(np.prod(shape)) * np.dtype(datatype).itemsize
        return np.frombuffer(os.pread(self._file, size, offset), datatype).reshape(shape)

    def resize(self, byte_size: int) -> None:
        """Makes it longer or cuts it off."""
        os.ftruncate(self._file, byte_size)

    def unlink(self) -> None:
        """Takes its name away."""
        self._path.unlink(missing_ok=True)


CLIENTS: Mapping[str, Any] = {"http": http_client, "grpc": grpc_client}


class RegionClient:
    """One of Triton's clients, over HTTP or gRPC."""

    def __init__(self, kind: str, server: ServerProcess) -> None:
        """Connects. HTTP clients belong to the thread that makes them."""
        self._kind, self._server = kind, server
        self.module = CLIENTS[kind]
        self._client = self.module.InferenceServerClient(getattr(server, kind))

    def close(self) -> None:
        """Ends the connection."""
        self._client.close()

    def later(self, call: Callable[[Self], Any]) -> Later:
        """What a client of the same kind does on a thread of its own."""

        def attempt() -> Any:
            client = type(self)(self._kind, self._server)
            try:
                return call(client)
            finally:
                client.close()

        return Later(attempt)

    def register(self, name: str, shared: SharedObject, byte_size: int | None = None, offset: int = 0) -> None:
        """Registers an object, or a part of it."""
        size = shared.byte_size if byte_size is None else byte_size
        self._client.register_system_shared_memory(name, shared.key, size, offset)

    def unregister(self, name: str = "") -> None:
        """Takes a region away, or all."""
        self._client.unregister_system_shared_memory(name)

    def regions(self) -> list[str]:
        """The names of the regions that are registered."""
        if self.module is grpc_client:
            return sorted(self._client.get_system_shared_memory_status().regions)
        return [region["name"] for region in self._client.get_system_shared_memory_status()]

    def status(self, name: str) -> Any:
        """What the server says of one region."""
        status = self._client.get_system_shared_memory_status(name)
        return status.regions[name] if self.module is grpc_client else status[0]

    def place(self, name: str, array: np.ndarray[Any, Any], region: str, offset: int = 0) -> Any:
        """An input that lies in a region, with the datatype, shape and size of the array."""
        made = self.module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        made.set_shared_memory(region, array.nbytes, offset)
        return made

    def send(self, name: str, array: np.ndarray[Any, Any]) -> Any:
        """An input that travels."""
        made = self.module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        made.set_data_from_numpy(array)
        return made

    def into(self, name: str, region: str, byte_size: int, offset: int = 0) -> Any:
        """An output that goes into a region."""
        made = self.module.InferRequestedOutput(name)
        made.set_shared_memory(region, byte_size, offset)
        return made

    def infer(self, model: str, inputs: Sequence[Any], outputs: Sequence[Any] | None = None) -> Any:
        """Triton's result."""
        return self._client.infer(model, inputs, outputs=outputs)


class Later:
    """A call on a thread of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._outcome: list[Any] = []
        self._thread = threading.Thread(target=lambda: self._outcome.append(_attempt(call)), daemon=True)
        self._thread.start()

    def is_under_way(self) -> bool:
        """Whether it has not ended yet."""
        return self._thread.is_alive()

    def result(self) -> Any:
        self._thread.join(60)
        (outcome,) = self._outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def _attempt(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return error
