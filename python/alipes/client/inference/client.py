"""`InferenceClient`: a stream of requests in the words of hermes, whose arguments it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from alipes.client.inference.backoff import Backoff
from alipes.client.inference.calls import Calls
from alipes.client.inference.discovery import Found, find_model
from alipes.client.inference.endpoints import open_endpoint
from alipes.client.inference.reader import Reader, Values
from alipes.client.inference.recovery import RecoveryPolicy
from alipes.client.inference.request_stream import HALF_OF_MEMORY, MOST_IN_FLIGHT, RequestStream, StreamSettings
from alipes.client.inference.sequence_queue import SequenceId
from alipes.client.inference.transport import GrpcEndpoint
from alipes.client.inference.tritonclient_options import read_options
from alipes.client.servers.addresses import Address
from alipes.client.tls import Tls

__all__ = ["InferenceClient"]

_CONNECT_S: Final = 10.0
"""The longest time for a connection, and for a question about the model."""


class InferenceClient(RequestStream):
    """Asks one model of one server for inference, many requests at a time.

    Requests go out as they are given, on one stream. What comes back goes to the callback if there is one, and else
    into a queue that `get` reads; requests that `submit` sends have a future instead. Answers come in the order of the
    requests of their sequence.

    Inputs whose state the server keeps are found automatically: an update is given in their place, with the id of its
    sequence. Requests may be sent by several threads at once. Use as a context manager: leaving waits for all answers.

    Attributes:
        address: The server's gRPC endpoint, `host:port`.
        client: Asks the server other things, under `tritonclient`'s names too: `client.client.load_model("m")`.
        model_name: The model.
        model_version: Its version; the latest one's number where -1 was passed.
        inputs: Plain inputs, by position or by name.
        states: Inputs that are streams, each with the shapes of its parts by `model/input`.
        num_states: Number of the named parts that updates are made of.
        config: The model's configuration: a document, `config["input"]`, and a message, `config.input`.
        metadata: The model's metadata, likewise.
        callback: What is called with each answer.
        clock: Latencies, with `profile`.
        callback_q: Answers that were not read yet.
    """

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        address: Address,
        model_name: str,
        model_version: int = -1,
        batch_size: int = 1,
        callback: Callable[[Any, Any, Any], Any] | None = None,
        profile: bool = False,
        *,
        ordered: bool = True,
        max_in_flight: int | None = MOST_IN_FLIGHT,
        max_unread_bytes: int | None = HALF_OF_MEMORY,
        rate: float | None = None,
        timeout_s: float | None = None,
        retries: int | None = None,
        reconnect_s: float = 30.0,
        backoff: Backoff | None = None,
        checkpoint: bool | int = False,
        cast: bool = False,
        pad: bool = True,
        connect_timeout_s: float | None = None,
        tls: Tls | None = None,
        **tritonclient_options: Any,
    ) -> None:
        """Connects, loads the model where it is not loaded, and finds out what it takes.

        Args:
            address: `host:port` of a server's gRPC endpoint, `grpcs://host:port` for encrypted connections, or
                `unix:path` for a Unix socket. A list, or a text with commas, spreads the requests over several servers.
            model_name: The model; an ensemble, or any other.
            model_version: Its version; -1 is the latest that is served.
            batch_size: What stands for sizes that the server leaves open.
            callback: Called with `(y, request_id, sequence_id)` for each answer, on a thread of the client's own. What
                it returns is queued instead of the answer, unless it is `None`; what it raises is raised by `get`.
            profile: Whether `clock` counts latencies.
            ordered: Whether answers are held back until those of earlier requests of their sequence are there.
            max_in_flight: Most requests in flight: a further send waits. `None` is no limit.
            max_unread_bytes: What answers that `get` has not taken may take of the memory, in bytes: beyond it `infer`
                raises `Overloaded` and sends nothing. Half of what the process may use by default; `None` is no limit.
            rate: Requests per second at most; they are spread evenly.
            timeout_s: A request that is not answered so many seconds after it was sent fails.
            retries: How often a request that belongs to no sequence is sent again, when the server is too busy or the
                connection breaks; not at all by default, with several servers twice.
            reconnect_s: How long a broken connection is tried again.
            backoff: The pauses between.
            checkpoint: Whether the client keeps the last updates of each sequence and resends them when the server has
                lost its state: the answers continue as if nothing had happened. A number is how many updates are kept,
                for models whose state the client does not know.
            cast: Whether arrays of another type are converted.
            pad: Whether batches that are too short, and the last update of a sequence, are filled with zeros, and the
                answers cut accordingly.
            connect_timeout_s: The longest time for a connection, in seconds: 10 by default, to one of several 1.
            tls: Trusted roots and the client's certificate; connections are encrypted with it.
            tritonclient_options: What scripts say to `tritonclient`: `ssl` with its files has the same effect, anything
                else is without one; a warning says so.

        Raises:
            ConfigError: If a file of encryption cannot be used, or an address is none of gRPC; a `ValueError`.
            TlsError: If client and server do not agree on encryption; a `TransportError`.
            TransportError: If the server cannot be reached or is not live; a `RuntimeError`.
            Unsupported: If what answers there knows nothing of inference; a `RuntimeError`.
            NotReady: If the model is not there, or cannot be loaded; a `RuntimeError`.
            ValueError: If an argument is out of range, or the size of a checkpoint is unknown.
        """
        tls = read_options(tritonclient_options, tls)
        endpoint = open_endpoint(address, tls, connect_timeout_s, _CONNECT_S)
        settings = StreamSettings(ordered, max_in_flight, max_unread_bytes, rate, timeout_s, checkpoint, profile)
        if retries is None:
            retries = 0 if isinstance(endpoint, GrpcEndpoint) else 2
        recovery = RecoveryPolicy(retries, reconnect_s, backoff or Backoff())

        def look(calls: Calls, where: str) -> Found:
            return find_model(calls, where, model_name, model_version, batch_size, tls)

        self.client: Calls
        found, self.client = endpoint.find(look)
        try:
            reader = Reader(model_name, found.signature, cast=cast, pad=pad)
            super().__init__(endpoint, model_name, found, reader, recovery, callback, settings)
        except BaseException:
            self.client.close()
            raise
        self.metadata, self.config = found.metadata, found.config

    def infer(
        self,
        x: Values,
        request_id: SequenceId | None = None,
        sequence_id: SequenceId | None = None,
        sequence_start: bool = False,
        sequence_end: bool = False,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """Sends a request and does not wait for its answer, which goes to the callback or to `get`.

        Args:
            x: One array, or an array by name: inputs by their names, streams by `model/input`.
            request_id: Comes back with the answer; a number that counts up where it is not given.
            sequence_id: The sequence that an update belongs to.
            sequence_start: Whether it begins here.
            sequence_end: Whether it ends here.
            timeout_s: The request fails when it is not answered in so many seconds.

        Raises:
            ValueError: If something is missing or does not fit.
            Overloaded: If answers that nobody has read fill `max_unread_bytes`; a `RuntimeError`.
            TransportError: If the server cannot be reached, or the state of the sequence is lost; a `RuntimeError`.
        """
        self._check_room()
        self._send(x, request_id, sequence_id, sequence_start, sequence_end, timeout_s, None)

    async def ask(self, x: Values, **how: Any) -> Any:
        """The answer to a request, for event loops; takes what `submit` takes."""
        import asyncio

        loop = asyncio.get_running_loop()
        return await asyncio.wrap_future(await loop.run_in_executor(None, lambda: self.submit(x, **how)))
