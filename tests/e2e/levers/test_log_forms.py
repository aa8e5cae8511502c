"""Every line of the log has the chosen form, whatever stands in it, and each level its own switch."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from support.endpoints import ENDPOINTS, GrpcEndpoint, Refusal
from support.python_models import add_python_model
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

TALKS = """
class TritonPythonModel:
    def execute(self, requests):
        name = requests[0].request_id()
        for level in ("verbose", "info", "warn", "error"):
            getattr(pb_utils.Logger, f"log_{level}")(f"{level} of {name}")
        return [answer(Y=given(request)) for request in requests]
"""

FORMS = {
    "default": r'[IWE]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ \S+:\d+\] ("([^"\\]|\\.)*"|)',
    "ISO8601": r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ [IWE] \d+ \S+:\d+\] ("([^"\\]|\\.)*"|)',
}


@pytest.mark.parametrize("form", FORMS)
def test_names_and_ids_with_line_ends_forge_no_line(repository: Path, serve: Serve, form: str) -> None:
    name = 'two\n| "lines" '
    add_python_model(repository, name, TALKS)
    # A later release refuses such a name for a Python model.
    server = serve(repository, f"--log-format={form}", "--log-verbose=1", "--triton-release=2.51")
    with GrpcEndpoint(server) as endpoint:
        endpoint.ask(name, {"X": [1]}, request_id='one\n"id"')
        with pytest.raises(Refusal, match="unknown model"):
            endpoint.ask("no\nmodel", {"X": [1]})
    assert server.stop() == 0
    lines = server.output.splitlines()
    table = [line for line in lines if re.fullmatch(r"|\+[-+]+\+|\| .* \|", line)]
    assert [line for line in lines if line not in table and not re.fullmatch(FORMS[form], line)] == []
    assert [line.split("|")[-3:-1] for line in table if "lines" in line] == [[" 1       ", " READY  "]]
    for level, letter in {"verbose": "I", "info": "I", "warn": "W", "error": "E"}.items():
        (line,) = (line for line in lines if f"{level} of one" in line)
        assert re.search(rf'(^{letter}|Z {letter} ).* model\.py:\d+\] ".*_0_0: {level} of one\\n\\"id\\""$', line)


# What is set, and what the model's lines are then; each setting is put back.
SWITCHES = [
    ({"log_verbose_level": 2}, ["verbose", "info", "warn", "error"]),
    ({"log_info": False}, ["warn", "error"]),
    ({"log_warning": False}, ["info", "error"]),
    ({"log_error": False}, ["info", "warn"]),
    ({"log_info": False, "log_warning": False, "log_error": False}, []),
    ({"log_info": False, "log_verbose_level": 1}, ["verbose", "warn", "error"]),
]
USUAL = {"log_info": True, "log_warning": True, "log_error": True, "log_verbose_level": 0, "log_format": "default"}


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_each_level_has_a_switch_while_the_server_runs(repository: Path, serve: Serve, kind: str) -> None:
    add_python_model(repository, "talks", TALKS)
    server = serve(repository)
    module: Any = {"http": http_client, "grpc": grpc_client}[kind]
    with module.InferenceServerClient(getattr(server, kind)) as client, ENDPOINTS[kind](server) as endpoint:
        for number, (settings, _) in enumerate(SWITCHES):
            client.update_log_settings(settings)
            endpoint.ask("talks", {"X": [1]}, request_id=f"request {number}.")
            client.update_log_settings(USUAL)
        with pytest.raises(InferenceServerException):
            client.update_log_settings({"log_info": False, "log_file": "/tmp/elsewhere"})
        endpoint.ask("talks", {"X": [1]}, request_id="the last")
        server.wait_for_output("error of the last")
    for number, (settings, levels) in enumerate(SWITCHES):
        found = re.findall(rf'model\.py:\d+\] "talks_0_0: (\w+) of request {number}\."', server.output)
        assert found == levels, settings
