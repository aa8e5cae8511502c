"""Publishes a prepared version under a free number, with its configuration, while others may do the same."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from alipes.config.pbtxt import to_pbtxt
from alipes.progress.work import current
from alipes.repository.model_config import CONFIG_FILE, ModelConfig
from alipes.repository.store.base import PathExists

if TYPE_CHECKING:
    from alipes.repository.model import Model

__all__ = ["publish_version"]

_log = logging.getLogger(__name__)

_ATTEMPTS: Final = 64
"""Attempts to publish before the export is refused: more than there are processes that export one model."""


def publish_version(model: Model, draft: ModelConfig, prepared: Path, version: int | None) -> int:
    """Put a prepared folder into a model's folder, with the configuration that goes with it.

    Args:
        model: The model.
        draft: Its configuration after the export; the model's own becomes the same.
        prepared: The version's files, in a folder beside which others can be made.
        version: The number wanted; None for the next.

    Returns:
        The number that it got.

    Raises:
        RepositoryUseError: If the configuration has been changed elsewhere meanwhile.
    """
    store = model.fs
    current().step("publishing")
    with store.lock():
        for attempt in range(_ATTEMPTS):
            config = _merged(model, draft)
            existing = model.versions if store.isdir(model.name) else []
            number = version or max(existing, default=0) + 1 + attempt
            try:
                _publish(model, config, prepared, number, existing)
            except PathExists:
                # Where there are no locks, another process may be quicker, or may have been and was killed.
                continue
            model.config._adopt(config._proto, config._seen)
            return number
    raise PathExists(f"version {number} of model '{model.name}' is being exported by another program", model=model.name)


def _merged(model: Model, draft: ModelConfig) -> ModelConfig:
    """The configuration to write: the draft, or the newer file where the draft changes nothing."""
    now = draft._on_disk()
    if now is not None and now != draft._seen and draft._seen == to_pbtxt(draft._proto):
        fresh = draft._draft()
        fresh.reload()
        return fresh
    draft._check_unchanged()
    return draft


def _publish(model: Model, config: ModelConfig, prepared: Path, number: int, existing: list[int]) -> None:
    store, path = model.fs, f"{model.name}/{number}"
    if number in existing:
        _log.warning("version %d of model '%s' is replaced", number, model.name)
        store.replace(prepared, path)
        config._write_locked()
    elif store.whole_models and config._on_disk() is None and _is_empty(model):
        _publish_whole(model, config, prepared, number)
    else:
        store.publish(prepared, path)
        try:
            config._write_locked()
        except BaseException:
            store.remove(path)
            raise


def _publish_whole(model: Model, config: ModelConfig, prepared: Path, number: int) -> None:
    """The first version comes together with its configuration, so that no reader sees one without the other."""
    whole = prepared.with_name("model")
    whole.mkdir()
    inside = prepared.rename(whole / str(number))
    text = to_pbtxt(config._proto)
    (whole / CONFIG_FILE).write_text(text, encoding="utf-8")
    try:
        model.fs.publish(whole, model.name)
    except PathExists:
        inside.rename(prepared)
        shutil.rmtree(whole)
        raise
    config._adopt(config._proto, text)


def _is_empty(model: Model) -> bool:
    return not model.fs.isdir(model.name) or not model.fs.list(model.name)
