"""Opens a folder of MLflow: by the program of the framework that it names, else as a function of Python.

The program of a framework runs the model as if its file lay there alone, with inputs and outputs as it names them.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from alipes.signature import Side, Signature
from alipes.worker.frameworks.mlflow.folder import MlflowFolder, read_folder
from alipes.worker.loading import LoadError

if TYPE_CHECKING:
    from alipes.worker.frameworks.opened import OpenedModel, Opening

__all__ = ["open_model"]

_FUNCTION: Final = "python_function"
_CHOICE: Final = "MLFLOW_FLAVOR"

Flavor = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Program:
    """Which program opens a flavour.

    Attributes:
        module: The program's module, below that of the frameworks.
        extra: What brings the framework.
        file: What of the folder the program is given, by what the flavour says; empty where the program cannot open it.
    """

    module: str
    extra: str
    file: Callable[[Path, Flavor], str]


def _data(_folder: Path, flavor: Flavor) -> str:
    return str(flavor.get("data", ""))


def _keras(folder: Path, flavor: Flavor) -> str:
    found = [f"{flavor.get('data', 'data')}/{name}" for name in ("model.keras", "model")]
    return next((name for name in found if (folder / name).exists()), "")


def _tensorflow(folder: Path, flavor: Flavor) -> str:
    return str(flavor.get("saved_model_dir") or _keras(folder, flavor))


def _lightgbm(_folder: Path, flavor: Flavor) -> str:
    found = str(flavor.get("data", ""))
    return found if found.endswith((".lgb", ".txt")) else ""  # a model of its scikit-learn classes is a pickle


def _catboost(_folder: Path, flavor: Flavor) -> str:
    return str(flavor.get("data", "")) if flavor.get("save_format", "cbm") == "cbm" else ""


def _sklearn(_folder: Path, flavor: Flavor) -> str:
    return str(flavor.get("pickled_model", ""))


def _pytorch(folder: Path, flavor: Flavor) -> str:
    """An exported program, or TorchScript, which holds its code as text; any other module is a pickle."""
    data = str(flavor.get("model_data", "data"))
    if (folder / data / "model.pt2").is_file():
        return f"{data}/model.pt2"
    name = f"{data}/model.pth"
    if not zipfile.is_zipfile(folder / name):
        return ""
    with zipfile.ZipFile(folder / name) as archive:
        return name if any("/code/" in one for one in archive.namelist()) else ""


_PROGRAMS: Final[Mapping[str, _Program]] = {
    "onnx": _Program("onnx_session", "alipes", _data),
    "tensorflow": _Program("tensorflow", "alipes[keras]", _tensorflow),
    "keras": _Program("tensorflow", "alipes[keras]", _keras),
    "pytorch": _Program("pytorch.program", "alipes[torch]", _pytorch),
    "xgboost": _Program("xgboost", "alipes[xgboost]", _data),
    "lightgbm": _Program("lightgbm", "alipes[lightgbm]", _lightgbm),
    "catboost": _Program("catboost", "alipes[catboost]", _catboost),
    "sklearn": _Program("sklearn", "alipes[sklearn]", _sklearn),
}
"""In the order in which flavours are looked for: scikit-learn comes last, for others build on it."""


def open_model(opening: Opening) -> OpenedModel:
    """Opens the folder with the first flavour that there is a program for, or the one in `MLFLOW_FLAVOR`.

    Raises:
        LoadError: If the folder cannot be read, has no such flavour, or runs code without being allowed to.
    """
    folder = read_folder(opening)
    wanted = opening.parameter(_CHOICE)
    if wanted and wanted not in folder.flavors:
        raise opening.refuse(f"it has no flavor '{wanted}', its flavors are: {', '.join(sorted(folder.flavors))}")
    for name, program in _PROGRAMS.items():
        if name not in folder.flavors or wanted not in ("", name):
            continue
        if file := program.file(folder.path, folder.flavors[name]):
            return _run(opening, folder, name, program, file)
    if _FUNCTION not in folder.flavors:
        raise opening.refuse(
            f"none of its flavors is served: {', '.join(sorted(folder.flavors))}; there are "
            f"{', '.join((*_PROGRAMS, _FUNCTION))}"
        )
    opening.need_pickles("a Python function")
    from alipes.worker.frameworks.mlflow.function import open_function  # MLflow takes seconds to import

    return open_function(opening, folder)


def _run(opening: Opening, folder: MlflowFolder, name: str, program: _Program, file: str) -> OpenedModel:
    """Opens a file with the program of its framework."""
    inner, signature = replace(opening, file=folder.inside(opening, file)), folder.signature
    if name == "sklearn" and len(folder.columns) > 1:
        inner = replace(inner, config=_listed(opening, signature, ("input",)))
    if file.endswith(".pth") and signature is not None:
        signature = _numbered(signature)
        inner = replace(inner, config=_listed(opening, signature, ("input", "output")))
    try:
        module: Any = import_module(f"alipes.worker.frameworks.{program.module}")
        found: OpenedModel = module.open_model(inner)
    except ModuleNotFoundError as error:
        raise LoadError(
            f"model '{opening.model_name}' is of the flavor '{name}' and needs the package '{error.name}': install it "
            f"with: pip install '{program.extra}'"
        ) from error
    if found.signature is None:
        found.signature = signature
    return found


def _numbered(signature: Signature) -> Signature:
    """A signature with the names that TorchScript's inputs and outputs have, for want of others."""
    inputs = (replace(port, name=f"INPUT__{at}") for at, port in enumerate(signature.inputs))
    return Signature(
        tuple(inputs), tuple(replace(port, name=f"OUTPUT__{at}") for at, port in enumerate(signature.outputs))
    )


def _listed(opening: Opening, signature: Signature | None, sides: Sequence[Side]) -> Mapping[str, Any]:
    """The configuration, with inputs or outputs of a signature where it lists none."""
    config = dict(opening.config)
    if signature is None or config.get("input"):
        return config
    begin = 1 if sides == ("input",) else 0  # a column is one element of each row; a whole signature has its rows
    for side in sides:
        config[side] = [
            {"name": port.name, "data_type": _type(port.datatype), "dims": [str(size) for size in port.shape[begin:]]}
            for port in signature.side(side)
        ]
    return config


def _type(datatype: str) -> str:
    return "TYPE_STRING" if datatype == "BYTES" else f"TYPE_{datatype}"
