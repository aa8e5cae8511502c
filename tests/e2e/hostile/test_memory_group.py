"""A server in a small control group takes no more connections and requests than its memory allows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support import heavy
from support.attack import connect, links
from support.memory_group import MemoryGroup, memory_group
from support.models import add_model
from support.server import ServerProcess

pytestmark = pytest.mark.alone

LIMIT_BYTES = 600 << 20
CONNECTIONS = 1500

# As many as fit into a quarter of the limit.
PLACES = LIMIT_BYTES // 4 // (128 << 10)

# The head of a request and some of its body, of which the rest never comes.
BEGUN = b"POST /v2/models/double/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + b" " * 75


@pytest.fixture
def group() -> Iterator[MemoryGroup]:
    with memory_group(LIMIT_BYTES) as made:
        yield made


@pytest.fixture
def server(repository: Path, group: MemoryGroup) -> Iterator[ServerProcess]:
    add_model(repository, "double")
    with ServerProcess(repository, launcher=group.launcher) as started:
        yield started.wait_until_started()


def test_many_connections_do_not_end_a_small_server(server: ServerProcess) -> None:
    with links(server.http, CONNECTIONS, BEGUN):
        server.wait_for_output(f"connections are refused: {PLACES} are open, see --max-connections")
        assert server.process.poll() is None
    heavy.get(server.http, "/v2/health/live")


@pytest.mark.slow("the limit is looked at every ten seconds")
def test_a_changed_limit_is_noticed(server: ServerProcess, group: MemoryGroup) -> None:
    group.limit(LIMIT_BYTES // 4)
    server.wait_for_output(rf"The memory limit has changed: requests in flight may take {LIMIT_BYTES // 16} bytes\.")
    # A body of more than that is refused by its length.
    with connect(server.http) as link:
        link.sendall(BEGUN.replace(b"100000", str(LIMIT_BYTES // 16 + 1).encode()))
        assert link.recv(4096).startswith(b"HTTP/1.1 503")
