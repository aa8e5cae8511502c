"""Plays a group of scenarios against a server of its own and lists the differences."""

from __future__ import annotations

import math
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from support.ports import free_ports
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until

from .exchange import grpc, http, metrics, shared_memory, stream
from .matchers import begin_scenario, differences
from .scenarios import Group, Scenario, Step
from .server import copy_repository, holding, is_about_to_be_taken, launch, running, under_way

# What a step may expect; `response` and `error` exclude each other.
_EXPECTATIONS = (
    "response",
    "error",
    "answers",
    "status",
    "exit_code",
    "output",
    "samples",
    "types",
    "text",
    "found",
    "content",
    "script",
)

# Within this a server answers that holds nothing back, unless it has no time.
_SOON_S = 0.3

Differences = Mapping[str, list[str]]


def replay(group: Group, folder: Path) -> Differences:
    """The differences of every scenario in the group, by its id, none where it passes.

    All of them are played, in order, because some look at what earlier ones counted.
    """
    if group.repository is None:
        harness = Harness(folder, folder, None)
        return {scenario.id: harness.play(scenario) for scenario in group.scenarios}
    repository = copy_repository(group.repository, folder)
    args = [arg.replace("{tmp}", str(folder)) for arg in group.args]
    with running(repository, args, group.awaited) as server:
        harness = Harness(folder, repository, server)
        return {scenario.id: harness.play(scenario) for scenario in group.scenarios}


@dataclass
class _Progress:
    """How far a branch is.

    Attributes:
        steps: What it does.
        order: Its place among those that have one: each has to wait for the last step of the one before it.
        at: The step that it is at.
        begun_s: When that began.
        ended_s: When it was over.
    """

    steps: Sequence[Step]
    order: int | None
    at: int = 0
    begun_s: float = 0.0
    ended_s: float = math.inf


@dataclass(frozen=True)
class Harness:
    """Where steps are played: a folder for what they leave behind, the live repository and its server, if any."""

    folder: Path
    repository: Path
    server: ServerProcess | None

    def play(self, scenario: Scenario) -> list[str]:
        """The differences of one scenario."""
        begin_scenario()
        return self._play(scenario.steps, "step")

    def _play(self, steps: Sequence[Step], at: str, progress: _Progress | None = None) -> list[str]:
        found: list[str] = []
        paused = False
        for number, step in enumerate(steps):
            here = f"{at} {number}"
            if progress is not None:
                progress.at, progress.begun_s = number, time.monotonic()
            try:
                found += self._parallel(step, here) if "parallel" in step else self._one(step, here, paused)
            except OSError as error:
                found.append(f"{here}: {error!r}")
            paused = "sleep_ms" in step
        return found

    def _one(self, step: Step, at: str, paused: bool) -> list[str]:
        # What a pause leaves the server time for is looked at until it has come.
        awaited = paused and _only_looks(step)
        return _compare(step, _awaited(step, lambda: self._perform(step)) if awaited else self._perform(step), at)

    def _parallel(self, step: Step, at: str) -> list[str]:
        """The differences of branches, each of which begins when the requests of those before it have been received.

        `at_ms` only orders the branches, and long work begins once all have begun: so they overlap on a busy machine,
        too.
        """
        found: list[str] = []
        branches = [_Progress(branch["steps"], branch.get("order")) for branch in step["parallel"]]

        def play(number: int, branch: _Progress) -> None:
            found.extend(self._play(branch.steps, f"{at} branch {number} step", branch))
            branch.ended_s = time.monotonic()

        threads = [threading.Thread(target=play, args=item) for item in enumerate(branches)]
        ranked = [branch for branch in branches if branch.order is not None]
        with holding(self.repository):
            for number in sorted(range(len(branches)), key=lambda number: step["parallel"][number]["at_ms"]):
                self._begin(threads[number], branches[number])
            if len(ranked) > 1:
                time.sleep(_SOON_S)
        let_go_s = time.monotonic()
        for thread in threads:
            thread.join()
        for earlier, later in pairwise(sorted(ranked, key=lambda branch: branch.order or 0)):
            # Of several steps, a pause orders the last one: it may be over before long work is let go.
            if later.ended_s < (let_go_s if len(earlier.steps) == 1 else earlier.begun_s):
                found.append(f"{at}: branch {branches.index(later)} did not wait for {branches.index(earlier)}")
        return found

    def _begin(self, thread: threading.Thread, branch: _Progress) -> None:
        """Begins a branch, and returns once its first request is in, if it asks a model, or over.

        One that nothing holds up is with its worker then: it would meet the next one otherwise, where a worker is late.
        """
        server, path = self.server, branch.steps[0].get("request", {}).get("path", "")
        assert server is not None
        model = re.fullmatch(r"/v2/models/(\w+)/infer", path)
        before = under_way(server, self.repository, model[1]) if model else 0
        thread.start()
        if model:
            until(
                lambda: branch.at or not thread.is_alive() or under_way(server, self.repository, model[1]) > before,
                f"a request for '{model[1]}' did not come in",
            )
            soon_s = time.monotonic() + _SOON_S
            while is_about_to_be_taken(server, model[1]) and time.monotonic() < soon_s:
                time.sleep(0.005)

    def _perform(self, step: Step) -> dict[str, Any]:
        if "sleep_ms" in step:
            time.sleep(step["sleep_ms"] / 1000)
            return {}
        if "fs" in step:
            return self._change(step["fs"])
        if "file" in step:
            return self._file(step)
        if "shm" in step:
            return shared_memory.exchange(step)
        if "start_fails" in step:
            return self._start_fails(step["start_fails"])
        assert self.server is not None, f"no server for {step}"
        door = next(door for kind, door in _DOORS.items() if kind in step)
        return door(self.server, step)

    def _change(self, spec: Mapping[str, str]) -> dict[str, Any]:
        place = self.repository / spec["path"]
        match spec["op"]:
            case "replace":
                place.write_text(place.read_text().replace(spec["old"], spec["new"]))
            case "copy":
                shutil.copytree(self.repository / spec["from"], place)
            case operation:
                raise AssertionError(f"unknown operation {operation}")
        return {}

    def _file(self, step: Step) -> dict[str, Any]:
        path = Path(step["file"].replace("{repository}", str(self.repository)))
        return _awaited(step, lambda: {"content": {"text": path.read_text() if path.exists() else None}})

    def _start_fails(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        folder = self.folder / f"start_{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        (port,) = free_ports(1)
        args = [arg.replace("{tmp}", str(folder)).replace("{http}", str(port)) for arg in spec["args"]]
        with launch(copy_repository(spec["repository"], folder), [f"--http-port={port}", *args]) as server:
            try:
                exit_code: int | None = server.wait()
            except subprocess.TimeoutExpired:
                exit_code = None
            return {"exit_code": exit_code, "output": {text: text in server.output for text in spec["texts"]}}


def _only_looks(step: Step) -> bool:
    return (
        "metrics" in step or step.get("rpc") == "ModelStatistics" or step.get("request", {}).get("method", "") == "GET"
    )


def _awaited(step: Step, look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What is seen once it is as expected, or when the patience is over."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        seen = look()
        if not _compare(step, seen, "") or time.monotonic() > deadline:
            return seen
        time.sleep(0.02)


def _log(server: ServerProcess, step: Step) -> dict[str, Any]:
    """Whether a line of the log has what a pattern looks for."""
    return _awaited(step, lambda: {"found": re.search(step["log"], server.output) is not None})


def _log_after(server: ServerProcess, step: Step) -> dict[str, Any]:
    """What the last line of the log with a text says behind it, without the closing quote."""

    def look() -> dict[str, Any]:
        lines: list[str] = re.findall(re.escape(step["log_after"]) + '(.*)"', server.output)
        return {"text": lines[-1] if lines else None}

    return _awaited(step, look)


def _stop(server: ServerProcess, step: Step) -> dict[str, Any]:
    """Sends a signal and waits for nothing; an `exit` step does."""
    assert step["stop"]["wait_s"] == 0, f"unknown wait {step}"
    server.signal(getattr(signal, step["stop"]["signal"]))
    return {}


# `rpc` stands before `request`, because a call has both.
_DOORS: dict[str, Callable[[ServerProcess, Step], dict[str, Any]]] = {
    "rpc": lambda server, step: grpc.exchange(server.grpc, step),
    "stream": lambda server, step: stream.exchange(server.grpc, step),
    "raw": lambda server, step: http.raw(server.http, step),
    "metrics": lambda server, step: metrics.exchange(server.metrics, step),
    "metrics_request": lambda server, step: metrics.request(server.metrics, step),
    "log": _log,
    "log_after": _log_after,
    "until": lambda server, step: http.until(server.http, step),
    "stop": _stop,
    "exit": lambda server, step: {"exit_code": server.wait()},
    "request": lambda server, step: http.exchange(server.http, step),
}


def _compare(step: Step, answer: Mapping[str, Any], at: str) -> list[str]:
    found: list[str] = []
    for key in _EXPECTATIONS:
        if key in step and key in answer:
            wanted = stream.expected(step[key]) if key == "script" else step[key]
            found += differences(wanted, answer[key], f"{at} {key}")
        elif key in step or key in answer:
            found.append(f"{at}: expected {step.get(key, 'no ' + key)}, got {dict(answer)}")
    return found
