"""The data plane: what Python sees of the Rust crates.

Documents cross as JSON with a ``schema`` number; unknown fields are refused. Long calls release the interpreter.
"""

from typing import final

__all__ = ["Control", "ModelVersion", "Server", "describe_onnx", "descriptor_set", "version"]

@final
class Server:
    """The doors of one server and the registry behind them."""

    def __new__(cls, config: str) -> Server:
        """Binds the sockets; accepts nothing yet.

        Args:
            config: JSON, as `alipes.server.boundary.server_config` writes it.

        Raises:
            OSError: If an address is in use or cannot be bound; the text is one line.
            ValueError: If the document does not fit.
        """
    def start(self) -> str:
        """Begins to accept; returns the real addresses as JSON: ``{"http": "127.0.0.1:8000", "grpc": null, ...}``."""
    def build(self, spec: str) -> ModelVersion:
        """Loads one version of a model; takes as long as the engine needs.

        Raises:
            ModelLoadError: If the engine refuses the model.
        """
    def publish(self, name: str, versions: list[ModelVersion]) -> None:
        """Replaces at once what is served under a name; older versions finish what they hold. No versions: unload.

        Raises:
            ValueError: If a version was released.
        """
    def set_index(self, index: str, ready: bool) -> None:
        """Replaces the repository index (a JSON list of name, version, state, reason) and the server's readiness."""
    def next_control(self, timeout_s: float) -> Control | None:
        """The next load or unload request; ``None`` when the time is up, and at once when the server has stopped."""
    def next_event(self, timeout_s: float) -> str | None:
        """The next line for the log, as JSON; ``None`` when the time is up, and at once when the server has stopped.

        ``{"kind": "log", "model", "version", "instance", "level", "file", "line", "text"}`` is a model's own line,
        ``{"kind": "worker", "model", "version", "instance", "state", "text"}`` a turn in the life of a worker process
        (``died``, ``restarting``, ``ready``, ``failed``), ``{"kind": "lost", "lines"}`` tells of lines that were lost.
        """
    def metrics_text(self) -> bytes:
        """What the metrics endpoint answers now."""
    def drain(self, deadline_s: float) -> bool:
        """Refuses what is new and waits for what is in; true if all of it ended within ``deadline_s`` seconds."""
    def stop(self) -> None:
        """Closes every connection and ends the data plane's threads."""

@final
class ModelVersion:
    """One loaded version. It stays loaded while it is published, in use, or held here."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    def release(self) -> None:
        """Lets go of the version; while it is published it stays loaded."""
    def drain(self, deadline_s: float) -> bool:
        """Lets go of the version and waits until its last request has ended and its engines are freed.

        Returns:
            True if that came within ``deadline_s`` seconds.
        """

@final
class Control:
    """A load or unload request that a client sent."""

    @property
    def kind(self) -> str:
        """``load`` or ``unload``."""
    @property
    def model(self) -> str: ...
    @property
    def parameters(self) -> str:
        """The request's parameters as the JSON text of an object."""
    def reply(self, code: str | None, message: str = "") -> None:
        """Answers the client, once: ``None`` for success, else Triton's name of the code, such as ``INVALID_ARG``."""

def describe_onnx(library: str, path: str) -> str:
    """Inputs and outputs of an ONNX file as JSON; a size that is not fixed is -1.

    Raises:
        ModelLoadError: If the library or the file cannot be loaded.
    """

def descriptor_set() -> bytes:
    """The serialized ``FileDescriptorSet`` of the protocol's files, so that Python needs no protobuf compiler."""

def version() -> str:
    """Version of the data plane; equal to the package's."""
