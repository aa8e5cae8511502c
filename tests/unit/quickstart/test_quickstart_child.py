from pathlib import Path

from alipes.config.load import parse_flags
from alipes.quickstart.child import Addresses, announced, serve_command

LOG = b"""\
I1121 11:40:00.000001 7 server.py:41] "Started HTTPService at 127.0.0.1:41001"
I1121 11:40:00.000002 7 server.py:41] "Started GRPCInferenceService at 127.0.0.1:41002"
I1121 11:40:00.000003 7 server.py:41] "Started Metrics Service at 127.0.0.1:41003"
"""


def test_the_log_gives_the_addresses_of_all_endpoints() -> None:
    assert announced(LOG) == Addresses("127.0.0.1:41001", "127.0.0.1:41002", "127.0.0.1:41003")


def test_a_log_that_is_still_being_written_gives_none() -> None:
    lines = LOG.splitlines(keepends=True)
    assert announced(b"") is None
    assert announced(b"".join(lines[:2])) is None
    assert announced(LOG[:-3]) is None


def test_the_server_binds_loopback_and_free_ports() -> None:
    arguments = serve_command(Path("/some models"))
    options = parse_flags(arguments[arguments.index("serve") + 1 :], {})
    endpoints = (options.http, options.grpc, options.metrics)
    assert {(endpoint.address, endpoint.port) for endpoint in endpoints} == {("127.0.0.1", 0)}
    assert [str(path) for path in options.repository.paths] == ["/some models"]
