"""A `model.py` that is there already."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import Any, ClassVar

from alipes.errors import ExportError
from alipes.repository.declare import declare
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.request import ExportRequest
from alipes.repository.platform import Platform, conventions

__all__ = ["PythonFile"]


class PythonFile(Exporter):
    """Takes a file for Triton's Python backend, or a folder that holds one beside what it needs.

    Inputs and outputs are declared with `config.add_input` and `config.add_output` before, or by the file's
    `auto_complete_config` when it is served.
    """

    platform: ClassVar[Platform] = Platform.PYTHON

    @classmethod
    def handles(cls, source: Any) -> bool:
        """The path of a `.py` file, or of a folder with a `model.py`."""
        if not isinstance(source, str | Path):
            return False
        return Path(source).suffix == ".py" or Path(source, conventions[cls.platform]).is_file()

    def export(self, source: Any, request: ExportRequest) -> None:
        """Copy, and look whether the file has what a server asks for."""
        path, name = Path(source), request.config.name
        file = request.folder / conventions[self.platform]
        try:
            if path.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", ".*")
                shutil.copytree(path, request.folder, dirs_exist_ok=True, ignore=ignored)
            else:
                shutil.copyfile(path, file)
            classes = [node.name for node in ast.parse(file.read_bytes()).body if isinstance(node, ast.ClassDef)]
        except OSError as error:
            raise ExportError(f"model '{name}': cannot read {source}: {error.strerror}") from error
        except SyntaxError as error:
            raise ExportError(f"model '{name}': {source} is no Python: {error}") from error
        if "TritonPythonModel" not in classes:
            raise ExportError(f"model '{name}': {source} defines no class TritonPythonModel, which servers look for")
        if request.input_shapes is not None:
            declare(request.config._proto, "input", request.input_shapes, request.input_dtypes or {})
