"""Which address stands for the one that a script names."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from alipes.local_ports import PortMapping, is_ours, reserved_ports, resolve

# Ports below the range from which the system hands any out, which no server of these tests asks for.
NAMED, REAL, NEWER = 1001, 1002, 1003


@pytest.fixture
def server() -> Iterator[PortMapping]:
    server = PortMapping()
    server.publish({NAMED: REAL})
    yield server
    server.withdraw()


def test_without_a_server_an_address_means_itself() -> None:
    assert resolve(f"localhost:{NAMED}") == f"localhost:{NAMED}"


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("named", "found"),
    [
        (f"localhost:{NAMED}", f"localhost:{REAL}"),
        (f"127.0.0.1:{NAMED}", f"127.0.0.1:{REAL}"),
        (f"[::1]:{NAMED}", f"[::1]:{REAL}"),
        (f"http://localhost:{NAMED}/metrics", f"http://localhost:{REAL}/metrics"),
        (f"localhost:{REAL}", f"localhost:{REAL}"),
        (f"192.0.2.1:{NAMED}", f"192.0.2.1:{NAMED}"),
        ("localhost", "localhost"),
        ("unix:/run/server", "unix:/run/server"),
        ("", ""),
    ],
)
def test_a_local_port_leads_to_its_server(named: str, found: str) -> None:
    assert resolve(named) == found


@pytest.mark.usefixtures("server")
def test_this_machine_has_a_name_too() -> None:
    assert resolve(f"{socket.gethostname()}:{NAMED}") == f"{socket.gethostname()}:{REAL}"


def test_a_server_is_reached_at_its_own_address() -> None:
    server = PortMapping("127.0.0.7")
    server.publish({NAMED: REAL})
    assert resolve(f"localhost:{NAMED}") == f"127.0.0.7:{REAL}"
    server.withdraw()


def test_the_newest_server_hides_the_older_one_until_it_goes(server: PortMapping) -> None:
    newer = PortMapping()
    newer.publish({NAMED: NEWER})
    assert resolve(f"localhost:{NAMED}") == f"localhost:{NEWER}"
    newer.withdraw()
    newer.withdraw()
    assert resolve(f"localhost:{NAMED}") == f"localhost:{REAL}"
    server.withdraw()
    assert resolve(f"localhost:{NAMED}") == f"localhost:{NAMED}"


def test_what_a_server_publishes_again_takes_the_place_of_what_it_had(server: PortMapping) -> None:
    server.publish({NAMED: NEWER})
    assert resolve(f"localhost:{NAMED}") == f"localhost:{NEWER}"
    server.withdraw()
    assert resolve(f"localhost:{NAMED}") == f"localhost:{NAMED}"


def test_a_server_that_others_have_ended_is_nobodys_any_more() -> None:
    running = [True]
    server = PortMapping(alive=lambda: bool(running))
    server.publish({NAMED: REAL})
    assert resolve(f"localhost:{NAMED}") == f"localhost:{REAL}"
    running.clear()
    assert resolve(f"localhost:{NAMED}") == f"localhost:{NAMED}"
    assert reserved_ports() == frozenset()
    server.withdraw()


def test_addresses_of_this_machine_are_recognised() -> None:
    assert is_ours("127.0.0.1")
    assert is_ours("127.1.2.3")
    assert not is_ours("192.0.2.1")  # kept free for examples


def test_the_former_module_name_still_works() -> None:
    from alipes import handover

    assert handover.resolve is resolve
