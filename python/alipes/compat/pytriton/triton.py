"""`Triton`: a server for the functions of a script, in PyTriton's words, on `alipes.attached`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final, Self

from alipes.attached import AttachedModel, Attachment
from alipes.attached.guard import Guard
from alipes.compat.pytriton.base import MONITORING_PERIOD_S, TritonBase
from alipes.compat.pytriton.client.auth import TRITON_ACCESS_HEADER
from alipes.compat.pytriton.constants import DEFAULT_GRPC_PORT, DEFAULT_HTTP_PORT, TRITON_LOCAL_IP
from alipes.compat.pytriton.instance import FunctionInstance
from alipes.compat.pytriton.model import BoundModel
from alipes.compat.pytriton.policy import (
    DefaultTritonLifecyclePolicy,
    TritonLifecyclePolicy,
    TritonSecurityConfig,
    VertextAILifecyclePolicy,
)
from alipes.compat.pytriton.server_config import TritonConfig
from alipes.compat.pytriton.workspace import Workspace

__all__ = ["Triton"]

_LOG: Final = logging.getLogger("alipes.compat.pytriton")
_ANYWHERE: Final = (None, "", "0.0.0.0")


class Triton(TritonBase):
    """A server for the functions of this script. It is a child of the script and ends with it."""

    def __init__(
        self,
        *,
        config: TritonConfig | None = None,
        workspace: Workspace | str | Path | None = None,
        triton_lifecycle_policy: TritonLifecyclePolicy | None = None,
        security_config: TritonSecurityConfig | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            config: Options of the server; those that are None come from the environment (`TritonConfig.from_env`).
            workspace: A folder for files of the script, which is made, and removed by `stop`.
            triton_lifecycle_policy: When the server starts; as soon as the context is entered by default.
            security_config: Which groups of the server's verbs need a token; all that change or observe the server by
                default, with a random token.

        Raises:
            FileExistsError: If the folder is there already.
            PyTritonValidationError: If options do not go together.
        """
        vertex = config is not None and bool(config.allow_vertex_ai)
        super().__init__(
            url="",
            workspace=workspace,
            triton_lifecycle_policy=triton_lifecycle_policy
            or (VertextAILifecyclePolicy if vertex else DefaultTritonLifecyclePolicy),
        )
        self._config = _merged(config)
        self._security_config = security_config or TritonSecurityConfig()
        self._url = _url(self._config)
        self._attachment: Attachment | None = None

    def __enter__(self) -> Self:
        """Starts the server, unless the policy says that `run` or `serve` will."""
        super().__enter__()
        return self

    def run(self) -> None:
        """Start the server, bring the models to it, and return."""
        self.connect()

    def serve(self, monitoring_period_s: float = MONITORING_PERIOD_S) -> None:
        """Start the server, and return when it ends, `stop` is called, or Ctrl-C is pressed.

        Args:
            monitoring_period_s: How often the server is looked at, at least.
        """
        super().serve(monitoring_period_s)

    def get_access_token(self) -> str | None:
        """The token of the restricted verbs; None where none is restricted."""
        return self._security_config.access_token

    def _open_server(self) -> None:
        if self._attachment is None or not self._attachment.is_running:
            self._attachment = Attachment(guard=self._guard(), **self._config.flags())
            self._attachment.start()
            level = self._config.log_verbose or 0
            if level > 0:  # the text is PyTriton's: tests of scripts look for it
                _LOG.warning(
                    "Triton Inference Server is running with enabled verbose logs (log_verbose_level=%d). "
                    "It may affect inference performance.",
                    level,
                )

    def _attach(self, model: BoundModel) -> None:
        assert self._attachment is not None
        instances = [FunctionInstance(calls) for calls in model.calls(self._stop_after)]
        document = {name: value for name, value in model.document.items() if name not in ("name", "backend")}
        self._attachment.add(AttachedModel(model.model_name, document, instances, version=model.model_version))

    def _is_reachable(self) -> bool:
        return self._attachment is not None and self._attachment.is_running

    def _close_server(self) -> None:
        attachment, self._attachment = self._attachment, None
        if attachment is not None:
            attachment.stop()

    def _guard(self) -> Guard:
        """The groups that need the token; beside them stand those that the script restricts by flags of its own."""
        settings = self._security_config
        groups = settings.restricted_endpoints if settings.access_token else None
        return Guard(TRITON_ACCESS_HEADER, settings.access_token, groups or ())


def _merged(config: TritonConfig | None) -> TritonConfig:
    """The options of the script above those of the environment."""
    set_here = {name: value for name, value in (config or TritonConfig()).to_dict().items() if value is not None}
    return TritonConfig(**{**TritonConfig.from_env().to_dict(), **set_here})


def _url(config: TritonConfig) -> str:
    """Where the server can be reached from this machine."""
    if config.allow_http in (True, None):
        scheme, address, port = "http", config.http_address, config.http_port or DEFAULT_HTTP_PORT
    else:
        scheme, address, port = "grpc", config.grpc_address, config.grpc_port or DEFAULT_GRPC_PORT
    return f"{scheme}://{TRITON_LOCAL_IP if address in _ANYWHERE else address}:{port}"
