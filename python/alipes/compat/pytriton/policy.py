"""Policies of a PyTriton server: when it starts, and which of its verbs need a token."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from alipes.compat.pytriton.exceptions import PyTritonValidationError

__all__ = [
    "DEFAULT_PROTECTED_ENDPOINTS",
    "VALID_TRITON_ENDPOINTS",
    "DefaultTritonLifecyclePolicy",
    "TritonLifecyclePolicy",
    "TritonSecurityConfig",
    "VertextAILifecyclePolicy",
]

DEFAULT_PROTECTED_ENDPOINTS: Final = ["shared-memory", "model-repository", "statistics", "trace", "logging"]
VALID_TRITON_ENDPOINTS: Final = {*DEFAULT_PROTECTED_ENDPOINTS, "health", "metadata", "inference", "model-config"}


@dataclass
class TritonLifecyclePolicy:
    """When the server starts.

    Attributes:
        launch_triton_on_startup: Whether entering the context of `Triton` starts the server; `run` and `serve` do.
        local_model_store: Whether models are bound before the server starts. Nothing is written for it here: models
            are the script's own objects, wherever they were bound.
    """

    launch_triton_on_startup: bool = True
    local_model_store: bool = False


DefaultTritonLifecyclePolicy: Final = TritonLifecyclePolicy()
VertextAILifecyclePolicy: Final = TritonLifecyclePolicy(launch_triton_on_startup=False, local_model_store=True)


@dataclass
class TritonSecurityConfig:
    """Which groups of the server's verbs need a token.

    Attributes:
        access_token: The token; a random one is made where groups are restricted and none is given.
        restricted_endpoints: The groups; None stands for all that change or observe the server, an empty list for none.
    """

    access_token: str | None = None
    restricted_endpoints: list[str] | None = None

    def __post_init__(self) -> None:
        """Checks the names and makes a token where one is needed."""
        if self.restricted_endpoints is None:
            self.restricted_endpoints = list(DEFAULT_PROTECTED_ENDPOINTS)
        self._validate_endpoint_names(self.restricted_endpoints)
        if self.access_token is None and self.restricted_endpoints:
            self.access_token = secrets.token_urlsafe(32)

    @staticmethod
    def _validate_endpoint_names(endpoints: Collection[str]) -> None:
        if unknown := set(endpoints) - VALID_TRITON_ENDPOINTS:
            raise PyTritonValidationError(
                f"Invalid endpoint names: {', '.join(sorted(unknown))}. "
                f"Valid endpoints are: {', '.join(sorted(VALID_TRITON_ENDPOINTS))}"
            )
