"""The backend of attached models: its specification, and the servers that no script has started."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from alipes.backends.attached.backend import AttachedBackend
from alipes.backends.attached.socket import keep_socket
from alipes.backends.base import Draft
from alipes.config.load import parse_flags
from alipes.config.pbtxt import parse_pbtxt
from alipes.errors import ConfigError, ModelLoadError

CONFIG = 'name: "m" backend: "attached" input { name: "x" data_type: TYPE_FP32 dims: -1 }'


def draft(folder: Path, *flags: str, config: str = CONFIG) -> Draft:
    options = parse_flags([f"--model-repository={folder}", *flags], {})
    return Draft(parse_pbtxt(config), folder / "m", 1, options)


def test_the_specification_names_the_socket_and_no_command(tmp_path: Path) -> None:
    ours, servers = socket.socketpair()
    with ours, servers:
        flag = f"--backend-config=attached,socket={servers.fileno()}"
        spec = AttachedBackend(draft(tmp_path, flag)).engine().spec
        assert (spec["kind"], spec["command"], spec["attached"]) == ("worker", [], servers.fileno())
        assert (spec["setup"]["model_name"], spec["setup"]["model_file"]) == ("m", "attached")


def test_limits_that_need_a_process_are_ignored_with_a_notice(tmp_path: Path) -> None:
    ours, servers = socket.socketpair()
    limited = CONFIG + ' parameters { key: "EXECUTE_TIMEOUT_SECONDS" value { string_value: "5" } }'
    with ours, servers:
        flags = (
            f"--backend-config=attached,socket={servers.fileno()}",
            "--backend-config=python,start-timeout-seconds=7",
        )
        engine = AttachedBackend(draft(tmp_path, *flags, config=limited)).engine()
    assert engine.notices == (
        "parameter 'EXECUTE_TIMEOUT_SECONDS' of model 'm' is ignored: its instances are threads of a script",
    )
    assert (engine.spec["execute_timeout_s"], engine.spec["start_timeout_s"]) == (0.0, 7.0)


@pytest.mark.parametrize(
    "flags", [(), ("--backend-config=attached,socket=0",), ("--backend-config=attached,socket=9999",)]
)
def test_a_server_that_no_script_started_says_so(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with pytest.raises(ModelLoadError, match="no script started this server"):
        AttachedBackend(draft(tmp_path, *flags))


def test_further_processes_do_not_inherit_the_socket() -> None:
    ours, servers = socket.socketpair()
    with ours, servers:
        servers.set_inheritable(True)
        keep_socket(servers.fileno())
        assert not servers.get_inheritable()


@pytest.mark.parametrize("number", [0, 9999])
def test_a_number_that_is_no_socket_is_refused_at_the_start(number: int) -> None:
    with pytest.raises(ConfigError, match="names no socket that this process has inherited"):
        keep_socket(number)
