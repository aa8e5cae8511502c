"""The loggers of the KServe SDK, and how a server sets them up."""

from __future__ import annotations

import json
import logging
import logging.config
from pathlib import Path
from typing import Any, Final

from alipes.compat.kserve.constants import KSERVE_LOGLEVEL

__all__ = [
    "KSERVE_LOGGER_DATE_FORMAT",
    "KSERVE_LOGGER_FORMAT",
    "KSERVE_LOGGER_NAME",
    "KSERVE_LOG_CONFIG",
    "KSERVE_TRACE_LOGGER_FORMAT",
    "KSERVE_TRACE_LOGGER_NAME",
    "configure_logging",
    "logger",
    "trace_logger",
]

KSERVE_LOGGER_NAME: Final = "kserve"
KSERVE_TRACE_LOGGER_NAME: Final = "kserve.trace"
KSERVE_LOGGER_FORMAT: Final = (
    "%(asctime)s.%(msecs)03d %(process)s %(name)s %(levelname)s [%(filename)s:%(funcName)s():%(lineno)s] %(message)s"
)
KSERVE_TRACE_LOGGER_FORMAT: Final = "%(asctime)s.%(msecs)03d %(process)s %(name)s %(message)s"
KSERVE_LOGGER_DATE_FORMAT: Final = "%Y-%m-%d %H:%M:%S"


def _formatter(text: str) -> dict[str, Any]:
    return {"()": "logging.Formatter", "fmt": text, "datefmt": KSERVE_LOGGER_DATE_FORMAT}


def _handler(name: str) -> dict[str, Any]:
    return {"formatter": name, "class": "logging.StreamHandler", "stream": "ext://sys.stderr"}


def _logger(name: str) -> dict[str, Any]:
    return {"handlers": [name], "level": KSERVE_LOGLEVEL, "propagate": False}


KSERVE_LOG_CONFIG: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "kserve": _formatter(KSERVE_LOGGER_FORMAT),
        "kserve_trace": _formatter(KSERVE_TRACE_LOGGER_FORMAT),
    },
    "handlers": {"kserve": _handler("kserve"), "kserve_trace": _handler("kserve_trace")},
    "loggers": {KSERVE_LOGGER_NAME: _logger("kserve"), KSERVE_TRACE_LOGGER_NAME: _logger("kserve_trace")},
}
"""How the loggers are set up by default. The SDK's has uvicorn's too, which is not here."""

logger: Final = logging.getLogger(KSERVE_LOGGER_NAME)
trace_logger: Final = logging.getLogger(KSERVE_TRACE_LOGGER_NAME)


def configure_logging(log_config: dict[str, Any] | str | None = None) -> None:
    """Set up the loggers.

    Args:
        log_config: What `logging.config.dictConfig` takes, or a file with it: JSON by `.json`, YAML by `.yaml` or
            `.yml`, and otherwise what `logging.config.fileConfig` takes. By default that of the SDK, unless the
            script has set up the loggers.
    """
    if log_config is None:
        if not logger.hasHandlers():
            logging.config.dictConfig(KSERVE_LOG_CONFIG)
        return
    if isinstance(log_config, dict):
        logging.config.dictConfig(log_config)
    elif log_config.endswith(".json"):
        logging.config.dictConfig(json.loads(Path(log_config).read_text(encoding="utf-8")))
    elif log_config.endswith((".yaml", ".yml")):
        import yaml  # a script with such a file has it

        logging.config.dictConfig(yaml.safe_load(Path(log_config).read_text(encoding="utf-8")))
    else:
        logging.config.fileConfig(log_config, disable_existing_loggers=False)
