"""Which address stands for the one that a script names."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from alipes.local_ports import PortMapping, is_ours, reserved_ports, resolve
from alipes.local_ports.lifetime import started_at
from alipes.local_ports.variable import VARIABLE, Entry, read_entries, write_entries

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


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "127.0.0.9"])
def test_the_real_address_of_a_server_is_not_led_to_a_newer_one(host: str) -> None:
    older, newer = PortMapping("127.0.0.9" if host == "127.0.0.9" else ""), PortMapping()
    older.publish({NAMED: NAMED})
    newer.publish({NAMED: NEWER})
    try:
        assert resolve(f"{host}:{NAMED}") == f"{host}:{NAMED}"
        assert resolve(f"http://{host}:{NAMED}/metrics") == f"http://{host}:{NAMED}/metrics"
        assert resolve(f"localhost:{NAMED}") == f"localhost:{NEWER}"
    finally:
        newer.withdraw()
        older.withdraw()


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


def test_a_server_that_others_have_ended_is_not_inherited() -> None:
    running = [True]
    ended = PortMapping(alive=lambda: bool(running))
    ended.publish({NAMED: REAL})
    assert VARIABLE in os.environ
    running.clear()
    newer = PortMapping()
    newer.publish({NAMED: NEWER})
    newer.withdraw()
    assert VARIABLE not in os.environ


def test_addresses_of_this_machine_are_recognised() -> None:
    assert is_ours("127.0.0.1")
    assert is_ours("127.1.2.3")
    assert not is_ours("192.0.2.1")  # kept free for examples


def test_the_former_module_name_still_works() -> None:
    from alipes import handover

    assert handover.resolve is resolve


def resolved_by_a_child(address: str, environment: dict[str, str] | None = None) -> str:
    """What an address means to a process that this one starts."""
    script = "import sys; from alipes.local_ports import resolve; print(resolve(sys.argv[1]), end='')"
    command = [sys.executable, "-c", script, address]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_a_child_inherits_the_map_for_as_long_as_the_server_is_there(server: PortMapping) -> None:
    newer = PortMapping("127.0.0.7")
    newer.publish({NAMED: NEWER})
    assert resolved_by_a_child(f"localhost:{NAMED}") == f"127.0.0.7:{NEWER}"
    newer.withdraw()
    assert resolved_by_a_child(f"localhost:{NAMED}") == f"localhost:{REAL}"
    left_over = dict(os.environ)
    server.withdraw()
    assert VARIABLE not in os.environ
    assert resolved_by_a_child(f"localhost:{NAMED}") == f"localhost:{NAMED}"
    assert resolved_by_a_child(f"localhost:{NAMED}", left_over) == f"localhost:{REAL}"


def test_an_entry_counts_while_its_process_runs() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        server = PortMapping()
        server.publish({NAMED: REAL}, process.pid)
        environment = dict(os.environ)
        assert resolved_by_a_child(f"localhost:{NAMED}") == f"localhost:{REAL}"
        process.communicate(b"\n")
    assert resolved_by_a_child(f"localhost:{NAMED}", environment) == f"localhost:{NAMED}"
    assert resolve(f"localhost:{NAMED}") == f"localhost:{NAMED}"
    server.withdraw()


def test_what_was_inherited_comes_back_when_a_childs_server_has_gone(server: PortMapping) -> None:
    script = (
        "import os, sys\nfrom alipes.local_ports import PortMapping, resolve\nbefore = dict(os.environ)\n"
        f"server = PortMapping()\nserver.publish({{{NAMED}: {NEWER}}})\nprint(resolve('localhost:{NAMED}'))\n"
        f"server.withdraw()\nprint(resolve('localhost:{NAMED}'), dict(os.environ) == before)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"localhost:{NEWER}\nlocalhost:{REAL} True\n"


def test_a_server_knows_itself_before_it_is_published(server: PortMapping) -> None:
    newer = PortMapping()
    environment = {**os.environ, **newer.variables({NAMED: NEWER})}
    assert resolved_by_a_child(f"localhost:{NAMED}", environment) == f"localhost:{NEWER}"
    assert resolve(f"localhost:{NAMED}") == f"localhost:{REAL}"


def test_the_variable_is_read_as_it_was_written() -> None:
    entries = (Entry("", {8001: 4001}, os.getpid(), started_at(os.getpid())), Entry("127.0.0.7", {}, 1, -1))
    assert read_entries(write_entries(entries)) == entries
    assert [entry.alive() for entry in entries] == [True, False]


@pytest.mark.parametrize("text", ["", "8001=4001", "{}", "7", "[1]", '[{"host":""}]', '[{"host":"","ports":{"x":1}}]'])
def test_a_variable_of_another_kind_says_nothing(text: str) -> None:
    assert read_entries(text) == ()
