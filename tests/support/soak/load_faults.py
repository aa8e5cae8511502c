"""Models that come and go, are loaded again while they answer, or cannot be loaded."""

from __future__ import annotations

import base64
import json
from typing import Final

from support import heavy
from support.damaged import add_damaged, remove_all
from support.models import times
from support.soak.fault import Scene
from support.soak.models import DOUBLE, PASSING

# Kinds of models that cannot be loaded: broken files, configurations and sources, workers that end, circles.
_BROKEN: Final = (
    "config-cut",
    "config-backend",
    "config-deep",
    "version-absent",
    "onnx-latin",
    "onnx-pipe",
    "source-syntax",
    "source-raises",
    "source-exits",
    "source-killed",
    "ensemble-itself",
    "ensemble-absent",
)

_CONFIG: Final = json.dumps({"backend": "onnxruntime", "max_batch_size": 4})


def reload(scene: Scene) -> None:
    """Loads a model again, whose file is new, while clients ask it: nobody's request may fail."""
    (scene.repository / DOUBLE / "1" / "model.onnx").write_bytes(times().SerializeToString())
    _control(scene, DOUBLE, "load", 200)


def come_and_go(scene: Scene) -> None:
    """Unloads a model that clients ask, and loads it again."""
    _control(scene, PASSING, "unload", 200)
    scene.pause(0.3)
    _control(scene, PASSING, "load", 200)


def fail_to_load(scene: Scene) -> None:
    """Loads a model that is damaged."""
    damage = scene.dice.choice(_BROKEN)
    if not (scene.repository / damage).exists():
        add_damaged(scene.repository, damage)
    _control(scene, damage, "load", 400, 500)
    if scene.dice.random() < 0.3:
        remove_all(scene.repository / damage)


def conjure(scene: Scene) -> None:
    """Loads a model that only the request knows, and lets it go; every second one is damaged."""
    is_whole = scene.dice.random() < 0.5
    content = times().SerializeToString() if is_whole else scene.dice.randbytes(10_000)
    parameters = {"config": _CONFIG, "file:1/model.onnx": base64.b64encode(content).decode()}
    _control(scene, "conjured", "load", 200 if is_whole else 400, body={"parameters": parameters})
    if is_whole:
        _control(scene, "conjured", "unload", 200)


def load_nothing(scene: Scene) -> None:
    """Loads what is not there, under a short name and a long one."""
    _control(scene, "x" * scene.dice.choice((1, 1_000, 60_000)), "load", 400, 414, 431, 500)


def _control(scene: Scene, model: str, verb: str, *statuses: int, body: object = None) -> None:
    content = json.dumps({} if body is None else body).encode()
    status, text = heavy.ask(scene.server.http, f"/v2/repository/models/{model}/{verb}", content)
    assert status in statuses, f"{verb} of {model[:100]}: {status} {text[:300]!r}"
