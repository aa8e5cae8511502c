"""An in-memory stand-in for `alipes._core.Server`: records its calls and builds what a test allows."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, Queue

from alipes.errors import ModelLoadError


@dataclass(eq=False)
class Version:
    """A loaded version; clear ``idle`` to keep its requests from ending. ``released`` is set once it is given up."""

    name: str
    version: int
    spec: dict[str, object]
    idle: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.idle.set()

    def drain(self, deadline_s: float) -> bool:
        return self.idle.wait(deadline_s)

    def release(self) -> None:
        self.released.set()


@dataclass(eq=False)
class Control:
    """A control request and the reply to it."""

    kind: str
    model: str
    parameters: str = "{}"
    replies: Queue[tuple[str | None, str]] = field(default_factory=Queue)

    def reply(self, code: str | None, message: str = "") -> None:
        self.replies.put((code, message))


class DataPlane:
    """Holds what is published and the index, as the real one would."""

    def __init__(self) -> None:
        self.published: dict[str, list[Version]] = {}
        self.spaces: dict[tuple[str, str], list[Version]] = {}
        self.index: list[dict[str, str]] = []
        self.ready: bool | None = None
        self.history: list[str] = []
        self.built: list[Version] = []
        self.controls: Queue[Control] = Queue()
        self.events: Queue[str] = Queue()
        # (model, version) -> the error that `build` raises.
        self.refused: dict[tuple[str, int], ModelLoadError] = {}
        self.before_build: Callable[[str, int], None] = lambda name, version: None
        self.drains_in_time = True

    def limit_memory(self, inflight_bytes: int, connection_bytes: int) -> None:
        self.history.append(f"limit {inflight_bytes} {connection_bytes}")

    def start(self) -> str:
        self.history.append("start")
        return json.dumps({"http": "127.0.0.1:80", "grpc": None, "metrics": None})

    def build(self, spec: str, cancellation: object = None) -> Version:
        read = json.loads(spec)
        self.before_build(read["name"], read["version"])
        if error := self.refused.get((read["name"], read["version"])):
            raise error.with_traceback(None)  # raised before, perhaps
        self.history.append(f"build {read['name']} {read['version']}")
        version = Version(read["name"], read["version"], read)
        self.built.append(version)
        return version

    def adapt(self, version: Version, spec: str, cancellation: object = None) -> None:
        read = json.loads(spec)
        self.before_build(read["name"], read["version"])
        if error := self.refused.get((read["name"], read["version"])):
            raise error.with_traceback(None)  # raised before, perhaps
        self.history.append(f"adapt {version.name} {version.version} to {len(read['instances'])}")
        version.spec = read

    def publish(self, name: str, versions: list[Version], namespace: str = "") -> None:
        self.history.append(f"publish {name} {[version.version for version in versions]}")
        self.published[name] = versions
        self.spaces[name, namespace] = versions

    def forget(self, name: str, namespace: str = "") -> None:
        self.history.append(f"forget {name}")
        self.published.pop(name, None)

    def set_index(self, index: str, ready: bool) -> None:
        self.index = json.loads(index)
        self.ready = ready

    def next_control(self, timeout_s: float) -> Control | None:
        try:
            return self.controls.get(timeout=timeout_s)
        except Empty:
            return None

    def next_event(self, timeout_s: float) -> str | None:
        # As the real one: it returns at once after the stop, so that no caller waits for a server that is gone.
        wait_s = 0.0 if "stop" in self.history else 0.01
        try:
            return self.events.get(timeout=wait_s)
        except Empty:
            return None

    def drain(self, deadline_s: float) -> bool:
        self.history.append("drain")
        return self.drains_in_time

    def cut(self) -> None:
        self.history.append("cut")

    def reload(self) -> None:
        self.history.append("reload")

    def stop(self) -> None:
        self.history.append("stop")
