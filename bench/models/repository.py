"""Writes the model repository of the bench, and the right answers to what its models are asked."""

import hashlib
from pathlib import Path

import numpy as np

from bench.models.model import Array, Model
from bench.models.onnx_models import ONNX_MODELS
from bench.models.python_models import PYTHON_MODELS, SHARED_MODELS
from bench.paths import WORK

MODELS: dict[str, Model] = {model.name: model for model in (*ONNX_MODELS, *PYTHON_MODELS)}

#: Models that one server holds, by their backend: two servers, so that neither has the other's threads and workers.
SERVED_TOGETHER = {
    "onnxruntime": tuple(model.name for model in ONNX_MODELS),
    "python": tuple(model.name for model in SHARED_MODELS),
}


def reference_answer(model: Model) -> Array:
    """The right answer to a model's row: shape ``[1, *output_dims]``."""
    return np.asarray(np.load(_written() / "reference" / f"{model.name}.npy"), dtype=np.float32)


def repository(*names: str) -> Path:
    """The repository that holds the named models, or all of them; written where it is missing."""
    root = _written()
    if not names:
        return root / "repository"
    # Small repositories of their own: a server holds what is measured in it, and nothing else.
    chosen = root / ("only_" + "_".join(names))
    for name in names:
        link = chosen / name
        if not link.exists():
            chosen.mkdir(parents=True, exist_ok=True)
            link.symlink_to(root / "repository" / name, target_is_directory=True)
    return chosen


def _written() -> Path:
    """The folder with models and answers, complete."""
    root = _folder()
    if not (root / "complete").exists():
        for model in MODELS.values():
            _write(root, model)
        (root / "complete").touch()
    return root


def _folder() -> Path:
    """A folder for this very set of models: a change of whatever makes them takes a new one."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    return WORK / f"models-{hashlib.sha256(b''.join(path.read_bytes() for path in sources)).hexdigest()[:12]}"


def _write(root: Path, model: Model) -> None:
    version = root / "repository" / model.name / "1"
    version.mkdir(parents=True, exist_ok=True)
    model.write(version)
    (version.parent / "config.pbtxt").write_text(model.config_text())
    (root / "reference").mkdir(exist_ok=True)
    np.save(root / "reference" / f"{model.name}.npy", model.answer(version))
