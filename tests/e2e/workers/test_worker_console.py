"""What a model prints and logs reaches the server's console, with the model's name where it is logged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from support.endpoints import HttpEndpoint
from support.python_models import add_python_model
from support.server import ServerProcess

Start = Callable[..., ServerProcess]

TALKS = """
class TritonPythonModel:
    def initialize(self, args):
        print("printed at the start")
        pb_utils.Logger.log_info("logged at the start")

    def execute(self, requests):
        print("printed to stdout")
        print("printed to stderr", file=sys.stderr)
        pb_utils.Logger.log_info("an information")
        pb_utils.Logger.log_warn("a warning")
        pb_utils.Logger.log_error("an error")
        pb_utils.Logger.log_verbose("a detail")
        return [answer(Y=given(request)) for request in requests]

    def finalize(self):
        print("printed at the end")
        pb_utils.Logger.log_info("logged at the end")
"""


def test_lines_appear_as_they_are_written(repository: Path, start: Start) -> None:
    add_python_model(repository, "talker", TALKS)
    server = start()
    server.wait_for_output("printed at the start\n")
    server.wait_for_output("talker.*logged at the start")
    with HttpEndpoint(server) as endpoint:
        endpoint.ask("talker", {"X": [1]})
    server.wait_for_output("printed to stdout\n")
    server.wait_for_output("printed to stderr\n")
    server.wait_for_output(r"I\d{4} .*talker.*an information")
    server.wait_for_output(r"W\d{4} .*talker.*a warning")
    server.wait_for_output(r"E\d{4} .*talker.*an error")
    assert server.stop() == 0
    assert "printed at the end\n" in server.output
    assert "logged at the end" in server.output
    assert "a detail" not in server.output


def test_details_appear_in_a_verbose_log(repository: Path, start: Start) -> None:
    add_python_model(repository, "talker", TALKS)
    server = start("--log-verbose=1")
    with HttpEndpoint(server) as endpoint:
        endpoint.ask("talker", {"X": [1]})
    server.wait_for_output("talker.*a detail")
