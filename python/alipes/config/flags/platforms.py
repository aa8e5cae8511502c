"""Flags on what cloud platforms ask for."""

from __future__ import annotations

from typing import Final

from alipes.config.flags.flag import Flag

__all__ = ["PLATFORMS"]

_SAGEMAKER: Final = "only used with --allow-sagemaker"
_VERTEX_AI: Final = "only used with --allow-vertex-ai"

PLATFORMS: Final[tuple[Flag, ...]] = (
    Flag(
        "allow-sagemaker",
        "bool",
        False,
        "Offer the SageMaker routes.",
        refused="the SageMaker routes are not offered yet",
    ),
    Flag("sagemaker-port", "int", 8080, "Port of the SageMaker routes.", ignored=_SAGEMAKER),
    Flag(
        "sagemaker-safe-port-range",
        "str",
        "",
        "Ports that SageMaker may ask for.",
        ignored=_SAGEMAKER,
    ),
    Flag(
        "sagemaker-thread-count",
        "int",
        8,
        "Threads of the SageMaker routes.",
        ignored=_SAGEMAKER,
    ),
    Flag(
        "allow-vertex-ai",
        "bool",
        False,
        "Offer the Vertex AI routes.",
        refused="the Vertex AI routes are not offered yet",
    ),
    Flag("vertex-ai-port", "int", 8080, "Port of the Vertex AI routes.", ignored=_VERTEX_AI),
    Flag(
        "vertex-ai-thread-count",
        "int",
        8,
        "Threads of the Vertex AI routes.",
        ignored=_VERTEX_AI,
    ),
    Flag(
        "vertex-ai-default-model",
        "str",
        "",
        "Model of the default Vertex AI route.",
        ignored=_VERTEX_AI,
    ),
)
