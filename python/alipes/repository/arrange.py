"""Arranges a model of a store as Triton's layout has it: a folder of links, beside a configuration where it needs one.

Nothing is copied, and nothing is written to where the model lies.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from alipes.config.model_files import PLATFORMS
from alipes.config.paths import kind_of
from alipes.config.pbtxt import read_config, to_pbtxt
from alipes.config.schema import ModelConfig, new_config
from alipes.errors import ConfigError
from alipes.repository.bare_models import CONFIG, StoredModel, visible

__all__ = ["arrange", "configured_name"]

_WEIGHTS_OF: Final = {".xml": ".bin"}
"""What lies beside a model's one file and belongs to it: OpenVINO's weights."""


def configured_name(model: StoredModel) -> str:
    """What a model's own configuration calls it; empty where it does not, or cannot be read."""
    config = _config(model)
    return str(config.name) if config is not None else ""


def arrange(model: StoredModel, name: str, folder: Path) -> None:
    """Fill an empty folder so that it is a model of a repository.

    Args:
        model: What is to be served.
        name: What it is called.
        folder: The folder; a configuration in it has the model's name.

    Raises:
        OSError: If it cannot be written.
    """
    if model.is_arranged:
        _link_all(model.path, folder)
    else:
        if kind_of(model.path / CONFIG) != "nothing":
            _link_all(model.path, folder, but=tuple(path.name for path in model.versions.values()))
        for number, files in model.versions.items():
            _link_version(model, files, folder / str(number))
    _configure(model, name, folder)


def _link_all(source: Path, folder: Path, but: tuple[str, ...] = ()) -> None:
    for name in visible(source):
        if name != CONFIG and name not in but:
            (folder / name).symlink_to(source / name)


def _link_version(model: StoredModel, files: Path, version: Path) -> None:
    if kind_of(files) == "folder":
        version.symlink_to(files, target_is_directory=True)
        return
    assert model.kind is not None
    version.mkdir()
    (version / model.kind.filename).symlink_to(files)
    more = _WEIGHTS_OF.get(files.suffix)
    if more and kind_of(files.with_suffix(more)) == "file":
        (version / model.kind.filename).with_suffix(more).symlink_to(files.with_suffix(more))


def _configure(model: StoredModel, name: str, folder: Path) -> None:
    """Write the configuration, if the model has one or its file needs one to be found."""
    path, written = model.path / CONFIG, _config(model)
    if written is None and kind_of(path) == "file":
        (folder / CONFIG).symlink_to(path)  # it is no configuration: the load says where and why
        return
    config = written if written is not None else new_config()
    _name_file(config, model)
    if written is not None or config.ListFields():
        config.name = name
        (folder / CONFIG).write_text(to_pbtxt(config), encoding="utf-8")


def _name_file(config: ModelConfig, model: StoredModel) -> None:
    """Say which file is the model, where its name does not."""
    named = kind_of(model.path) == "folder" and model.kind is not None and model.file
    if not named or config.default_model_filename or model.kind is None or model.file == model.kind.filename:
        return
    config.default_model_filename = model.file
    config.backend = config.backend or model.kind.backend
    row = next((row for row in PLATFORMS if row.filename == model.kind.filename), None)
    if row is not None and config.backend == row.backend:  # two kinds of one backend have two platforms
        config.platform = config.platform or row.platform


def _config(model: StoredModel) -> ModelConfig | None:
    if kind_of(model.path) != "folder":
        return None
    try:
        return read_config(model.path)
    except ConfigError:
        return None
