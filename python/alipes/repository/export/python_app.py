"""A decorated function or class as a model: the folder that `alipes serve app.py` makes for it, with its source."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, ClassVar, Final

import numpy as np

from alipes.errors import ExportError
from alipes.repository.app_folder import app_config, write_version
from alipes.repository.export.app_source import app_source
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.request import ExportRequest
from alipes.repository.platform import Platform
from alipes.worker.apps.describe import described
from alipes.worker.apps.options import options_of
from alipes.worker.apps.source import declared
from alipes.worker.apps.steps import Step

__all__ = ["PythonApp"]

_ARRAYS: Final = "arrays.npz"
_FILE: Final = "app.py"


class PythonApp(Exporter):
    """Writes what `@alipes.model` stands above, with all that it uses: its annotations are the configuration."""

    platform: ClassVar[Platform] = Platform.PYTHON

    @classmethod
    def handles(cls, source: Any) -> bool:
        """Decorated functions and classes."""
        return options_of(source) is not None

    def export(self, source: Any, request: ExportRequest) -> None:
        """Copies the source out of its module, reads the copy as a worker will, and declares what it says."""
        options = options_of(source)
        name = request.config.name
        assert options is not None, "only decorated functions and classes come here"
        if options.before is not None or options.after is not None:
            raise ExportError(
                f"export of model '{name}': before= and after= are models of their own: serve the app as it is, with "
                "alipes serve app.py"
            )
        if request.input_shapes is not None or request.output_names is not None:
            raise ExportError(
                f"export of model '{name}': what @alipes.model stands above says its inputs and outputs by its "
                "annotations; leave out input_shapes= and output_names="
            )
        extracted = app_source(source)
        if extracted.arrays:
            np.savez(request.folder / _ARRAYS, **extracted.arrays)  # type: ignore[arg-type]
        text = f'"""Written by alipes.repository from {source.__name__}."""\n\n{extracted.text(_ARRAYS)}'
        (request.folder / _FILE).write_text(text, encoding="utf-8")
        model = described(_read(text, request, options.name))
        written = app_config({**model, "name": name})
        proto = request.config._proto
        for field in ("input", "output", "instance_group"):
            proto.ClearField(field)
        proto.MergeFrom(written)
        write_version(request.folder, {"file": _FILE, "name": options.name})


def _read(text: str, request: ExportRequest, name: str) -> Step:
    """The function in the copy of its source."""
    module = ModuleType(f"{request.config.name}.app")
    module.__file__ = str(request.folder / _FILE)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(text, module.__file__, "exec"), vars(module))  # our own text, made of the caller's source
        return declared(module, name)[name]
    finally:
        del sys.modules[module.__name__]
