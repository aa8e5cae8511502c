"""PyTorch modules as they are: the code that makes them, and their weights as safetensors."""

from __future__ import annotations

import dataclasses
import shutil
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, ClassVar

from alipes.errors import ExportError
from alipes.progress.work import current
from alipes.repository.export.exporter import Exporter
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.torch_check import check_traced, run_like_module
from alipes.repository.export.torch_probes import Written
from alipes.repository.export.torch_source import inference_mode, is_module, trace
from alipes.repository.platform import Platform, conventions
from alipes.worker.frameworks.pytorch.maker import CODE, FACTORY, NoFactoryError, find_factory
from alipes.worker.sources import UncachedLoader

__all__ = ["TorchModule"]


class TorchModule(Exporter):
    """Writes the weights of a module beside the code that makes it: a way in for what cannot be traced.

    Option `factory`: the path of a Python file whose function `make()` gives such a module, or that defines one class
    derived from `torch.nn.Module` and made without arguments. It becomes the version's `model.py`.
    """

    platform: ClassVar[Platform] = Platform.TORCHMODULE
    options: ClassVar[frozenset[str] | None] = frozenset({"factory"})

    @classmethod
    def handles(cls, source: Any) -> bool:
        """Modules; scripts have a format of their own."""
        return is_module(source) and not hasattr(source, "save_to_buffer")

    def export(self, source: Any, request: ExportRequest) -> None:
        """Copy the code, save the weights, and run the module that both make."""
        name = request.config.name
        if find_spec("safetensors") is None:
            raise ExportError("exporting weights needs the package safetensors: pip install 'alipes[torch]'")
        code = request.folder / CODE
        _copy(name, request.options.get("factory"), code)
        current().step("writing the weights")
        weights = request.folder / conventions[self.platform]
        safetensors: Any = import_module("safetensors.torch")
        safetensors.save_model(source, str(weights))
        made = _made(name, code)
        try:
            safetensors.load_model(made, str(weights))
        except RuntimeError as error:
            text = " ".join(str(error).split())
            raise ExportError(f"model '{name}': the module that {CODE} makes is another one: {text}") from error
        with inference_mode(source), inference_mode(made):
            traced = trace(source, dataclasses.replace(request, options={}))
            if request.check:
                check_traced(traced, run_like_module(made), request, Written.MADE)


def _copy(name: str, factory: Any, code: Path) -> None:
    if not isinstance(factory, str | Path):
        raise ExportError(
            f"model '{name}': a module is exported beside the code that makes it: factory='network.py', a file with a "
            f"function {FACTORY}() that gives the module"
        )
    try:
        shutil.copyfile(factory, code)
    except OSError as error:
        raise ExportError(f"model '{name}': cannot read {factory}: {error.strerror}") from error


def _made(name: str, code: Path) -> Any:
    """What the code makes."""
    torch: Any = import_module("torch")
    called = f"alipes_export_{name}"
    spec = spec_from_file_location(called, code, loader=UncachedLoader(called, str(code)))
    assert spec is not None, "it is a Python file"
    assert spec.loader is not None, "it is a Python file"
    source = module_from_spec(spec)
    try:
        spec.loader.exec_module(source)
        made = find_factory(source, torch.nn.Module)()
    except NoFactoryError as error:
        raise ExportError(f"model '{name}': {error}") from error
    except Exception as error:
        raise ExportError(
            f"model '{name}': {CODE} cannot make the module: {type(error).__name__}: {error}; a server runs it in a "
            "process of its own, so it needs to import what it uses"
        ) from error
    if not isinstance(made, torch.nn.Module):
        raise ExportError(
            f"model '{name}': the factory of {CODE} gave a {type(made).__name__}, expected a torch.nn.Module"
        )
    return made
