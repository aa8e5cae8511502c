"""What can be asked of a running server through the object that stands for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from alipes.errors import NotReady

if TYPE_CHECKING:
    from alipes.client import Client
    from alipes.types import IndexEntry

__all__ = ["Verbs"]


class Verbs(ABC):
    """The addresses of a server, and the calls that need no client kept: each opens one and closes it."""

    _api_key: str | None = None
    """The key that it asks for, where more than the environment says it."""

    @property
    @abstractmethod
    def http(self) -> str:
        """Where HTTP requests go, `host:port`."""

    @property
    @abstractmethod
    def grpc(self) -> str:
        """Where gRPC requests go, `host:port`."""

    @property
    @abstractmethod
    def metrics(self) -> str:
        """The address of the metrics endpoint, `host:port`."""

    @property
    def url(self) -> str:
        """The address of its HTTP endpoint, `http://127.0.0.1:8000`; `https://` where flags encrypt it."""
        return f"{'https' if self._is_encrypted() else 'http'}://{self.http}"

    @property
    def grpc_url(self) -> str:
        """The address of its gRPC endpoint, `grpc://127.0.0.1:8001`."""
        return f"grpc://{self.grpc}"

    @property
    def metrics_url(self) -> str:
        """Where its metrics are, `http://127.0.0.1:8002/metrics`."""
        return f"http://{self.metrics}/metrics"

    def client(self, **options: Any) -> Client:
        """A client of this server, to be used in a `with`, or closed. Waits until the server listens.

        Args:
            options: As in `alipes.Client`: `timeout_s`, `retry`, `headers`. The key that its flags name is among them.

        Returns:
            A client over gRPC; over HTTP where flags close gRPC.

        Raises:
            ServeError: If the server has ended.
        """
        from alipes.client import Client

        self._wait_until_live()
        options.setdefault("api_key", self._api_key)
        return Client(self.grpc_url if self._offers_grpc() else self.url, **options)

    def ready(self, model: str = "", version: str | int = "") -> bool:
        """Whether the server and all of its models can answer; of one model, whether that can."""
        with self.client() as client:
            return client.is_model_ready(model, str(version)) if model else client.is_ready()

    def models(self) -> list[IndexEntry]:
        """The models of the repository, each with its versions, its state and the reason where it is not served."""
        with self.client() as client:
            return client.models()

    def statistics(self, model: str = "", version: str | int = "") -> list[dict[str, Any]]:
        """The statistics of all models, or of one, as in `alipes.Client.statistics`."""
        with self.client() as client:
            return client.statistics(model, str(version))

    def load(self, model: str, **options: Any) -> None:
        """Loads a model, or loads it again; returns when it can answer.

        Args:
            model: Its name.
            options: As in `alipes.Client.load`: `config`, `files`, `timeout_s`.

        Raises:
            NotReady: If the server does not load by name: start it with `model_control_mode="explicit"`.
            InferError: If there is no such model, or it cannot be loaded.
        """
        with self.client() as client, _Explicit():
            client.load(model, **options)

    def unload(self, model: str, **options: Any) -> None:
        """Unloads a model; returns when it answers no more. As in Triton, a name that is not loaded is no error.

        Args:
            model: Its name.
            options: As in `alipes.Client.unload`: `dependents`, `timeout_s`.

        Raises:
            NotReady: If the server does not unload by name: start it with `model_control_mode="explicit"`.
            NotFound: If it does not, and has no such model either.
        """
        with self.client() as client, _Explicit():
            client.unload(model, **options)

    if not TYPE_CHECKING:  # a type checker reports names that are not there

        def __getattr__(self, name: str) -> object:
            """Names the client, for what a client has, and what stands for names of other packages."""
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name.startswith("_"):
                raise AttributeError(message, name=name, obj=self)
            from alipes.client import Client
            from alipes.synonyms import synonym

            if row := synonym("server.", name):
                raise AttributeError(f"{message}: {row.hint}")
            if hasattr(Client, name):
                mend = f"write `with server.client() as client: client.{name}(...)`"
                message = f"a server has no '{name}', and its client does: {mend}"
            raise AttributeError(message, name=name, obj=self)

    @abstractmethod
    def _wait_until_live(self) -> None:
        """Returns once the server listens."""

    @abstractmethod
    def _offers_grpc(self) -> bool:
        """Whether it has a gRPC endpoint."""

    @abstractmethod
    def _is_encrypted(self) -> bool:
        """Whether its HTTP endpoint speaks TLS alone."""


class _Explicit:
    """Adds to the server's refusal to load by name how it is started to do so."""

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, NotReady) and "explicit model load" in str(error):
            mend = 'start the server with model_control_mode="explicit", and load_model=["*"] to have all at its start'
            from alipes.client.plain.base import EXPLICIT_MEND

            text = error.message.removesuffix(f": {EXPLICIT_MEND}")
            raise NotReady(f"{text}: {mend}", model=error.model) from error
