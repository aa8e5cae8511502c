"""A package that brings a backend: models are `.npz` files with a matrix, which its program multiplies rows with."""

from __future__ import annotations

from pathlib import Path

import numpy as np

BACKEND = """
from alipes.backends.framework import FrameworkBackend


class MatrixBackend(FrameworkBackend):
    program = "alipes_matrix.program"
    extra = "alipes-matrix"
    files = ("model.npz",)
"""

PROGRAM = '''
import os

import numpy as np
from alipes.signature import Port, Signature
from alipes.worker.frameworks.opened import OpenedModel, reading


class Matrix(OpenedModel):
    def __init__(self, weights):
        self.weights = weights
        rows, columns = weights.shape
        self.signature = Signature((Port("X", "FP32", (-1, rows)),), (Port("Y", "FP32", (-1, columns)),))

    def run(self, inputs):
        if np.isnan(inputs["X"]).any():
            raise ValueError("X has a number that is none")
        return {"Y": inputs["X"] @ self.weights}


class Speechless(Matrix):
    def __init__(self, weights):
        super().__init__(weights)
        self.signature = None


class Batches(Matrix):
    """Answers how many rows came together, and the threads that it may use."""

    def __init__(self, weights, threads):
        super().__init__(weights)
        self.threads = threads

    def run(self, inputs):
        rows = len(inputs["X"])
        return {"Y": np.full((rows, 2), [rows, self.threads], "f4")}


def open_model(opening):
    kind = opening.parameter("kind")
    if kind == "lacks":
        import alipes_matrix_of_tomorrow
    if kind == "pickles":
        opening.need_pickles("a pickle")
    with reading(opening):
        weights = np.load(opening.file)["weights"]
    if kind == "batches":
        return Batches(weights, opening.threads)
    return Speechless(weights) if kind == "speechless" else Matrix(weights)
'''


def install_package(folder: Path) -> Path:
    """Writes the package as pip would install it; its folder belongs into `PYTHONPATH`."""
    package, about = folder / "alipes_matrix", folder / "alipes_matrix-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "__init__.py").write_text("")
    (package / "backend.py").write_text(BACKEND)
    (package / "program.py").write_text(PROGRAM)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: alipes-matrix\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[alipes.backends]\nmatrix = alipes_matrix.backend:MatrixBackend\n")
    return folder


def add_matrix(repository: Path, name: str, *, kind: str = "", more: str = "", weights: object = None) -> Path:
    """A model that multiplies rows of three numbers to two; gives its folder."""
    folder = repository / name
    (folder / "1").mkdir(parents=True)
    parameters = f'parameters {{ key: "kind" value {{ string_value: "{kind}" }} }}\n' if kind else ""
    (folder / "config.pbtxt").write_text(f'backend: "matrix"\n{parameters}{more}')
    np.savez(folder / "1" / "model.npz", weights=np.arange(6, dtype="f4").reshape(3, 2) if weights is None else weights)
    return folder
