"""KServe's own agent beside a server, as two containers of a pod: its downloads, its requests, and what it forgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from alipes import Client
from alipes.errors import AlipesError
from support.config_map import ConfigMap
from support.file_server import FileServer, file_server
from support.kserve_agent import SERVER_PORT, Agent
from support.kube import Missing
from support.models import times
from support.network import own_network
from support.server import ServerProcess
from support.waiting import until

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300)]

Serve = Callable[..., ServerProcess]


@dataclass
class Pod:
    """What the containers of a pod share.

    Attributes:
        configs: The volume with the list of models.
        models: The volume that the agent fills.
        store: The server that it downloads from.
    """

    folder: Path
    configs: ConfigMap
    models: Path
    store: FileServer
    serve: Serve
    stack: ExitStack
    agents: int = 0

    def address(self, model: str) -> str:
        return f"{self.store.address}/{model}/model.onnx"

    def publish(self, model: str, factor: float) -> str:
        """Puts a model into the store; its address."""
        self.store.files[f"/{model}/model.onnx"] = times(factor, 2).SerializeToString()
        return self.address(model)

    def start_server(self) -> ServerProcess:
        flags = ("--model-name=service", "--model-control-mode=explicit", f"--http-port={SERVER_PORT}")
        return self.serve(f"--model-store={self.models}", *flags)

    def start_agent(self) -> Agent:
        self.agents += 1
        flags = ("--enable-puller", f"--config-dir={self.configs.folder}", f"--model-dir={self.models}")
        return self.stack.enter_context(Agent(self.folder / f"agent-{self.agents}.log", *flags))


@pytest.fixture
def pod(tmp_path: Path, serve: Serve) -> Iterator[Pod]:
    with ExitStack() as stack:
        try:
            stack.enter_context(own_network("10.9.8.7/32"))
            (tmp_path / "models").mkdir()
            store = stack.enter_context(file_server())
            found = Pod(tmp_path, ConfigMap(tmp_path / "configs"), tmp_path / "models", store, serve, stack)
            found.configs.write()
            found.start_agent().kill()
        except (Missing, PermissionError) as reason:
            pytest.skip(str(reason))
        yield found


def answer(model: str) -> float | None:
    """What a model makes of 1; nothing where it is not served."""
    with Client(f"http://127.0.0.1:{SERVER_PORT}") as client:
        try:
            return float(client.infer(model, {"X": np.ones((1, 2), np.float32)})["Y"][0, 0])
        except AlipesError:
            return None


def until_answers(**expected: float | None) -> None:
    """Returns once each model answers so."""
    until(lambda: {model: answer(model) for model in expected} == expected, f"answers {expected}")


def test_models_follow_the_list_through_the_agent(pod: Pod) -> None:
    pod.start_server()
    agent = pod.start_agent().wait_until_it_listens()
    pod.configs.write(("a", pod.publish("first", 2)), ("b", pod.publish("second", 3)))
    until_answers(a=2, b=3)
    assert [path.name[:8] for path in (pod.models / "a").glob("SUCCESS*")] == ["SUCCESS."]
    pod.configs.write(("a", pod.publish("third", 5)))
    until_answers(a=5, b=None)
    assert not (pod.models / "b").exists()
    pod.configs.write(("a", pod.address("third")), ("b", pod.address("first")))
    until_answers(a=5, b=2)
    assert "Successfully unloaded model b" in agent.output


def test_a_model_without_files_costs_the_others_nothing(pod: Pod) -> None:
    server = pod.start_server()
    pod.start_agent().wait_until_it_listens()
    pod.store.files["/broken/model.onnx"] = b"no model"
    pod.configs.write(("none", pod.address("none")), ("broken", pod.address("broken")), ("a", pod.publish("first", 2)))
    until_answers(a=2, none=None, broken=None)
    server.wait_for_output("failed to load 'broken'")
    pod.configs.write(("a", pod.address("first")))
    until(lambda: not (pod.models / "broken").exists(), "the broken model is removed")
    until_answers(a=2)


def test_loads_that_came_before_the_server_are_served(pod: Pod) -> None:
    pod.configs.write(("a", pod.publish("first", 2)), ("b", pod.publish("second", 3)))
    agent = pod.start_agent().wait_until_it_listens()
    assert {"Failed to Load model a", "Failed to Load model b"} <= _messages(agent)
    pod.start_server()
    assert (answer("a"), answer("b")) == (2, 3)
    pod.configs.write(("b", pod.address("second")))
    until_answers(a=None, b=3)


def test_a_restarted_server_serves_what_the_agent_forgot(pod: Pod) -> None:
    server = pod.start_server()
    agent = pod.start_agent().wait_until_it_listens()
    pod.configs.write(("a", pod.publish("first", 2)), ("b", pod.publish("second", 3)))
    until_answers(a=2, b=3)
    before = agent.output.count("Successfully loaded")
    server.kill()
    pod.configs.write(("b", pod.address("second")), ("c", pod.publish("third", 5)))  # while no server is there
    until(lambda: {"Failed to Load model c", "Failed to Unload model a"} <= _messages(agent), "it asks in vain")
    pod.start_server()
    assert [answer(model) for model in "abc"] == [None, 3, 5]
    assert agent.output.count("Successfully loaded") == before


def test_a_restarted_agent_removes_what_left_the_list(pod: Pod) -> None:
    pod.start_server()
    first = pod.start_agent().wait_until_it_listens()
    pod.configs.write(("a", pod.publish("first", 2)), ("b", pod.publish("second", 3)))
    until_answers(a=2, b=3)
    first.kill()
    pod.configs.write(("b", pod.address("second")))
    # KServe 0.20 waits at its start for removals that nobody reports, and never listens: it has to start once more.
    second = pod.start_agent()
    until_answers(a=None, b=3)
    second.kill()
    pod.start_agent().wait_until_it_listens()
    pod.configs.write(("b", pod.address("second")), ("c", pod.publish("third", 5)))
    until_answers(a=None, b=3, c=5)


def _messages(agent: Agent) -> set[str]:
    """What it says that could not be done."""
    return {
        f"Failed to {verb} model {model}"
        for verb in ("Load", "Unload")
        for model in "abc"
        if f"Failed to {verb} model {model}" in agent.output
    }
