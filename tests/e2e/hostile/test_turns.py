"""No request costs a network thread more than 20 ms of processor time in one turn."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from support import heavy
from support.call_models import add_call_model
from support.heavy_attacks import ATTACKS, CROWDED, Attack, binary
from support.models import add_model, times
from support.python_models import add_python_model
from support.regions import ALLOWED
from support.server import ServerProcess

pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow("sends requests of hundreds of megabytes"),
]

CPU: Final = "--turn-clock=cpu"
LONG: Final = r"spent .* s of processor time in one turn on .*"

# Times that a request may be sent until no turn is long. Memory that is touched for the first time can cost a turn many
# milliseconds of the system's: where huge pages have to be made room for, and where the machine is a guest whose host
# finds the memory only then. What the server itself does in a turn, it does every time.
TRIES: Final = 6
MODELS: Final = 300

SAYS: Final = """
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            sender.send(reply(body(request)))
            sender.send(flags=FINAL)
"""

CHAIN: Final = """
platform: "ensemble"
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
ensemble_scheduling { step [
  { model_name: "echo" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "M" } },
  { model_name: "echo" model_version: -1 input_map { key: "X" value: "M" } output_map { key: "Y" value: "Y" } }
] }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add_model(repository, "any", times(columns="columns"))
    add_model(repository, "kept", times(columns="columns"), config="response_cache { enable: true }\n")
    add_python_model(repository, "echo", signature="X: FP32[-1, -1] -> Y: FP32[-1, -1]")
    add_python_model(repository, "words", signature="X: BYTES[-1, -1] -> Y: BYTES[-1, -1]")
    add_call_model(repository, "says", SAYS, stream=True)
    (repository / "chain" / "1").mkdir(parents=True)
    (repository / "chain" / "config.pbtxt").write_text(CHAIN)
    flags = (ALLOWED, CPU, "--cache-config=local,size=2000000000", "--max-inflight-bytes=4000000000")
    server = serve_module(repository, *flags)
    for model in ("any", "kept"):
        # Quick models run on the network threads.
        for number in range(100):
            heavy.ask(server.http, f"/v2/models/{model}/infer", heavy.json_tensor([str(number)], 1))
    return server


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    repository = tmp_path_factory.mktemp("many")
    for number in range(MODELS):
        add_model(repository, f"model-{number}")
    return serve_module(repository, CPU, "--metrics-config=summary_latencies=true")


def long_turns(server: ServerProcess) -> int:
    """Turns of more than 20 ms so far."""
    text = heavy.get(server.metrics, "/metrics").decode()
    return sum(int(count) for count in re.findall(r"^alipes_network_long_turns_total\{.*\} (\d+)$", text, re.M))


def assert_short_turns(server: ServerProcess, attack: Attack) -> None:
    """Sends a request until it costs no long turn, a few times at most."""
    for _ in range(TRIES):
        before, written = long_turns(server), len(server.output)
        attack(server)
        if long_turns(server) == before:
            return
    server.wait_for_output(LONG)
    pytest.fail("\n".join(re.findall(LONG, server.output[written:])))


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_request_costs_a_long_turn(server: ServerProcess, attack: str) -> None:
    assert_short_turns(server, ATTACKS[attack]())


@pytest.mark.parametrize("attack", CROWDED)
def test_many_models_cost_no_long_turn(crowded: ServerProcess, attack: str) -> None:
    assert_short_turns(crowded, CROWDED[attack])


def test_a_long_turn_is_counted_and_logged_with_what_ran(repository: Path, serve: Callable[..., ServerProcess]) -> None:
    add_model(repository, "any", times(columns="columns"))
    # Told to, the server has network threads run whatever comes.
    server = serve(repository, CPU, "--execution-threads=network")
    assert long_turns(server) == 0
    binary("any", 200)(server)
    assert long_turns(server) > 0
    server.wait_for_output(
        r"spent 0\.\d+ s of processor time in one turn on the run-to-completion queue \(an execution"
    )
