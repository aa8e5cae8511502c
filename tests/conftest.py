"""Fixtures that every test folder may use."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `support` is shared by folders that are no packages

from support import selection
from support.kube_fixtures import api_server, kserve_kinds, kubernetes, namespace
from support.server import ServerProcess

__all__ = ["api_server", "kserve_kinds", "kubernetes", "namespace"]  # fixtures are found where they are imported

Serve = Callable[..., ServerProcess]

# pytest caches rewritten assertions unless the environment forbids it; without a cache each process takes 10 s more.
# Programs under test still follow the environment.
sys.dont_write_bytecode = False

# A shell ignores interrupts in what it runs in the background; programs under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of `support.selection`."""
    selection.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Lists slow tests, with the option for it."""
    selection.note_slow_tests(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects without looking for garbage: next to nothing is any, and to look took a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Selects and orders tests, before `-m` and xdist look at them."""
    selection.select(config, items)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """An empty model repository."""
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers: ``serve(repository, *flags)`` returns one that accepts requests. All are gone afterwards."""
    yield from _servers()


@pytest.fixture(scope="module")
def serve_module() -> Iterator[Serve]:
    """`serve` for a server that the tests of a module share."""
    yield from _servers()


def _servers() -> Iterator[Serve]:
    started: list[ServerProcess] = []

    def start(repository: Path | str, *arguments: str, environment: dict[str, str] | None = None) -> ServerProcess:
        server = ServerProcess(repository, *arguments, environment=environment)
        started.append(server)
        return server.wait_until_started()

    try:
        yield start
    finally:
        for server in started:
            server.kill()
