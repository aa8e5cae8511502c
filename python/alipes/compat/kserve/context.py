"""The predictor that models of this process ask, as the server sets it."""

from __future__ import annotations

from alipes.compat.kserve.predictor_config import PredictorConfig

__all__ = ["get_predictor_config", "set_predictor_config"]

# Of the process, and not of a context: models are called on several threads.
_current: list[PredictorConfig | None] = [None]


def set_predictor_config(config: PredictorConfig | None) -> None:
    """Set it, for all models of this process."""
    _current[0] = config


def get_predictor_config() -> PredictorConfig | None:
    """The predictor; None before a server was made."""
    return _current[0]
