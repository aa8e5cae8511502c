"""`PredictorConfig`: where a transformer or an explainer finds its predictor."""

from __future__ import annotations

from alipes.compat.kserve.constants import PredictorProtocol

__all__ = ["PredictorConfig"]


class PredictorConfig:
    """A predictor, and how it is asked."""

    def __init__(
        self,
        predictor_host: str | None,
        predictor_protocol: str = PredictorProtocol.REST_V1.value,
        predictor_use_ssl: bool = False,
        predictor_request_timeout_seconds: int = 600,
        predictor_request_retries: int = 0,
        predictor_health_check: bool = False,
    ) -> None:
        """Takes them.

        Args:
            predictor_host: Host, with a port where it is not the usual one.
            predictor_protocol: `v1`, `v2` or `grpc-v2`.
            predictor_use_ssl: Whether to use TLS.
            predictor_request_timeout_seconds: Longest wait for an answer.
            predictor_request_retries: How often a connection that fails is tried again.
            predictor_health_check: Whether the server counts as ready only where the predictor is.
        """
        self._host = predictor_host
        self._protocol = predictor_protocol
        self._use_ssl = predictor_use_ssl
        self._timeout_s = predictor_request_timeout_seconds
        self._retries = predictor_request_retries
        self._health_check = predictor_health_check

    @property
    def predictor_host(self) -> str | None:
        """Host and port; None where there is no predictor."""
        return self._host

    @property
    def predictor_protocol(self) -> str:
        """`v1`, `v2` or `grpc-v2`."""
        return self._protocol

    @property
    def predictor_use_ssl(self) -> bool:
        """Whether to use TLS."""
        return self._use_ssl

    @property
    def predictor_request_timeout_seconds(self) -> int:
        """Longest wait for an answer."""
        return self._timeout_s

    @property
    def predictor_request_retries(self) -> int:
        """How often a connection that fails is tried again."""
        return self._retries

    @property
    def predictor_health_check(self) -> bool:
        """Whether the server counts as ready only where the predictor is."""
        return self._health_check

    @property
    def predictor_base_url(self) -> str:
        """The address in front of the paths of requests."""
        return f"{'https' if self._use_ssl else 'http'}://{self._host}"

    @property
    def protocol(self) -> str:
        """`predictor_protocol` under its former name."""
        return self._protocol

    @property
    def timeout(self) -> int:
        """`predictor_request_timeout_seconds` under its former name."""
        return self._timeout_s

    @property
    def retries(self) -> int:
        """`predictor_request_retries` under its former name."""
        return self._retries

    @property
    def use_ssl(self) -> bool:
        """`predictor_use_ssl` under its former name."""
        return self._use_ssl
