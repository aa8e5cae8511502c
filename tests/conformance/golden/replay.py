"""Plays a group of scenarios against a server of its own and lists the differences."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.server import ServerProcess

from . import stand_ins
from .exchange import grpc, http
from .matchers import differences
from .scenarios import Group, Scenario, Step
from .server import copy_repository, launch, running

# What a step may expect; `response` and `error` exclude each other.
_EXPECTATIONS = ("response", "error", "answers", "status", "exit_code", "output")

Differences = Mapping[str, list[str]]


def replay(group: Group, folder: Path) -> Differences:
    """The differences of every scenario in the group, by its id, none where it passes.

    All of them are played, in order, because some look at what earlier ones counted.
    """
    scenarios = [stand_ins.with_typed_echo(scenario) for scenario in group.scenarios]
    if group.repository is None:
        stage = Stage(folder, None)
        return {scenario.id: stage.play(scenario) for scenario in scenarios}
    repository = copy_repository(group.repository, folder)
    stand_ins.install(repository)
    if scenarios != list(group.scenarios):
        stand_ins.install_typed_echoes(repository)
    with running(repository, group.args) as server:
        stage = Stage(folder, server)
        return {scenario.id: stage.play(scenario) for scenario in scenarios}


@dataclass(frozen=True)
class Stage:
    """Where steps are played: a folder for what they leave behind, and the server, unless they start their own."""

    folder: Path
    server: ServerProcess | None

    def play(self, scenario: Scenario) -> list[str]:
        """The differences of one scenario."""
        found: list[str] = []
        for number, step in enumerate(scenario.steps):
            try:
                answer = self._perform(step)
            except OSError as error:
                found.append(f"step {number}: {error!r}")
            else:
                found += _compare(step, answer, f"step {number}")
        return found

    def _perform(self, step: Step) -> dict[str, Any]:
        if "sleep_ms" in step:
            time.sleep(step["sleep_ms"] / 1000)
            return {}
        if "start_fails" in step:
            return self._start_fails(step["start_fails"])
        assert self.server is not None, f"no server for {step}"
        door = next(door for kind, door in _DOORS.items() if kind in step)
        return door(self.server, step)

    def _start_fails(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        folder = self.folder / f"start_{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        port = _free_port()
        args = [arg.replace("{tmp}", str(folder)).replace("{http}", port) for arg in spec["args"]]
        with launch(copy_repository(spec["repository"], folder), [f"--http-port={port}", *args]) as server:
            try:
                exit_code: int | None = server.wait()
            except subprocess.TimeoutExpired:
                exit_code = None
            return {"exit_code": exit_code, "output": {text: text in server.output for text in spec["texts"]}}


# `rpc` stands before `request`, because a call has both.
_DOORS: dict[str, Callable[[ServerProcess, Step], dict[str, Any]]] = {
    "rpc": lambda server, step: grpc.exchange(server.grpc, step),
    "raw": lambda server, step: http.raw(server.http, step),
    "until": lambda server, step: http.until(server.http, step),
    "request": lambda server, step: http.exchange(server.http, step),
}


def _compare(step: Step, answer: Mapping[str, Any], at: str) -> list[str]:
    found: list[str] = []
    for key in _EXPECTATIONS:
        if key in step and key in answer:
            found += differences(step[key], answer[key], f"{at} {key}")
        elif key in step or key in answer:
            found.append(f"{at}: expected {step.get(key, 'no ' + key)}, got {dict(answer)}")
    return found


def _free_port() -> str:
    """A port that nobody listens on, for starts that end before they listen."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])
