"""`StreamClient`: a stream of requests to one model, in the words of `Client`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import cached_property
from typing import Any, Final, TypeAlias, overload

import numpy.typing as npt

from alipes.client.api_key import keyed_headers
from alipes.client.arguments import (
    Version,
    check_request,
    check_type,
    model_name,
    seconds,
    setting_error,
    timeout_setting,
    version_number,
)
from alipes.client.inference.backoff import Backoff
from alipes.client.inference.calls import Calls
from alipes.client.inference.control_verbs import ControlVerbs
from alipes.client.inference.discovery import Found, find_model
from alipes.client.inference.endpoints import open_endpoint
from alipes.client.inference.reader import Reader, Values
from alipes.client.inference.recovery import RecoveryPolicy
from alipes.client.inference.request_stream import (
    HALF_OF_MEMORY,
    MOST_IN_FLIGHT,
    RequestReader,
    RequestStream,
    StreamSettings,
)
from alipes.client.inference.sequence_queue import SequenceId
from alipes.client.inference.signature_reader import SignatureReader
from alipes.client.inference.transport import GrpcEndpoint
from alipes.client.plain.options import flag, identifier
from alipes.client.plain.request import Array, check_tensors
from alipes.client.plain.retry import Retry
from alipes.client.plain.sync import Client
from alipes.client.servers.addresses import Address
from alipes.client.signature import read_signature
from alipes.client.tls import Tls
from alipes.errors import InvalidArgument, NotFound

__all__ = ["StreamClient"]

Callback: TypeAlias = Callable[[Any, Any, Any], Any]

_CONNECT_S: Final = 10.0
"""The longest time for a connection, and for a question about the model."""


class StreamClient(ControlVerbs, RequestStream):
    """A client that sends one model of one server, or of several, many requests at a time, over gRPC, on one stream.

    Answers come in the order of the requests of a sequence, and of all requests that belong to none: `infer` waits for
    its own, `submit` returns a future, and those to `send` go to the callback or to `get` and `for` loops over the
    client. Inputs whose state the server keeps are found: an update is passed in their place, with the `sequence_id` of
    its sequence. Any number of threads may send. A context manager: leaving it waits for all answers.

    >>> with StreamClient("localhost:8001", "double") as client:
    ...     futures = [client.submit([[number, 1.0]]) for number in (1.0, 2.0)]
    ...     print([future.result().tolist() for future in futures])
    [[[2.0, 2.0]], [[4.0, 2.0]]]

    Attributes:
        address: The server's gRPC endpoint, as it was passed.
        inputs: Plain inputs, by position or by name.
        states: Inputs that are streams, each with the shapes of its parts by `model/input`.
        callback: What is called with each answer.
        clock: Latencies, with `profile`.
    """

    def __init__(  # noqa: PLR0913 - each is an option of its own
        self,
        address: Address,
        model: str,
        *,
        version: Version = None,
        model_version: Version = None,
        callback: Callback | None = None,
        ordered: bool = True,
        max_in_flight: int | None = MOST_IN_FLIGHT,
        max_unread_bytes: int | None = HALF_OF_MEMORY,
        rate: float | None = None,
        timeout_s: float | None = None,
        timeout: float | None = None,
        connect_timeout_s: float | None = None,
        retry: Retry | None = None,
        reconnect_s: float = 30.0,
        checkpoint: bool | int = False,
        cast: bool = False,
        pad: bool = True,
        batch_size: int = 1,
        profile: bool = False,
        headers: Mapping[str, str] | None = None,
        api_key: str | None = None,
        tls: Tls | None = None,
    ) -> None:
        """Connects, loads the model where it is not loaded, and finds out what it takes.

        Args:
            address: The server's gRPC endpoint: `host:port`, `grpc://`, `grpcs://` or `unix:path`. Several, as `Client`
                takes them, have a stream each, over which the requests are spread; a sequence stays on its stream.
            model: The model's name.
            version: Its version, a number or the same as text; the latest by default.
            model_version: The same under tritonclient's name.
            callback: Called with `(y, request_id, sequence_id)` for each answer to `send`, on a thread of the client's
                own. What it returns is queued instead of the answer, unless it is `None`; what it raises, `get` raises.
            ordered: Whether answers are held back until those of earlier requests of their sequence are there.
            max_in_flight: Most requests in flight: a further send waits. `None` is no limit.
            max_unread_bytes: What answers that `get` has not taken may take of the memory: beyond it `send` raises
                `Overloaded`. Half of what the process may use by default; `None` is no limit.
            rate: Requests per second at most; they are spread evenly.
            timeout_s: A request that is not answered so many seconds after it was sent fails; no limit by default.
            timeout: The same under its short name.
            connect_timeout_s: The longest time for a connection, and for a control call: 10 s by default; for a
                connection to one of several servers 1 s.
            retry: Policy for requests that belong to no sequence, when the server is too busy or the connection breaks;
                they fail by default, and with several servers are sent twice more.
            reconnect_s: How long a broken connection is tried again.
            checkpoint: Whether the client keeps the last updates of each sequence and resends them when the server has
                lost its state. A number is how many updates are kept.
            cast: Whether arrays of another type are converted.
            pad: Whether the last update of a sequence is filled with zeros where it is short, and its answer cut.
            batch_size: What stands for sizes that the server leaves open, in streamed inputs.
            profile: Whether `clock` counts latencies.
            headers: Headers of each call: gRPC's metadata.
            api_key: The key that each call shows; by default that of the environment's `ALIPES_API_KEY`, and empty for
                none.
            tls: Trusted roots and the client's certificate; connections are encrypted with it.

        Raises:
            ConfigError: If an argument is of another type, or the address is one of HTTP: it says where gRPC is.
            TransportError: If the server cannot be reached, or something else answers there: it says what.
            NotFound: If the server has no model of that name; the error names those that it has.
            NotReady: If the model cannot be loaded.
        """
        if callback is not None and not callable(callback):
            raise setting_error("callback", "a function", callback)
        check_type("retry", Retry, "a Retry, such as Retry(times=3)", retry)
        limit_s = seconds("connect_timeout_s", connect_timeout_s, setting_error)
        self._limit_s = limit_s or _CONNECT_S
        pairs = keyed_headers(headers, api_key)
        self._headers, self._tls = dict(pairs), tls
        settings = StreamSettings(
            ordered=ordered,
            max_in_flight=max_in_flight,
            max_unread_bytes=max_unread_bytes,
            rate=seconds("rate", rate, setting_error),
            timeout_s=timeout_setting(timeout_s, timeout, None),
            checkpoint=checkpoint,
            profile=profile,
            names_outputs=True,
        )
        endpoint = open_endpoint(address, tls, limit_s, _CONNECT_S, pairs)
        self._addresses = address
        number = version_number(version, model_version)

        def look(calls: Calls, where: str) -> Found:
            return find_model(calls, where, model_name(model), number, batch_size, tls, missing=NotFound)

        found, calls = endpoint.find(look)
        calls.close()
        reader: RequestReader
        if found.signature.states:
            reader = Reader(model, found.signature, cast=cast, pad=pad)
        else:
            reader = SignatureReader(read_signature(found.metadata, found.config), cast=cast)
        policy = retry or Retry(times=0 if isinstance(endpoint, GrpcEndpoint) else 2)
        recovery = RecoveryPolicy(policy.times, reconnect_s, Backoff(policy.first_s, policy.most_s))
        super().__init__(endpoint, model, found, reader, recovery, callback, settings)

    def __repr__(self) -> str:
        """The class, the server's address and the model."""
        return f"StreamClient('{self.address}', '{self.model}')"

    @property
    def model(self) -> str:
        """The model's name."""
        return self.model_name

    @property
    def version(self) -> int:
        """The model's version."""
        return self.model_version

    @overload
    def infer(
        self,
        inputs: Mapping[str, npt.ArrayLike],
        request_id: SequenceId | None = None,
        sequence_id: SequenceId | None = None,
        sequence_start: bool = False,
        sequence_end: bool = False,
        *,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> dict[str, Array]: ...
    @overload
    def infer(
        self,
        inputs: npt.ArrayLike,
        request_id: SequenceId | None = None,
        sequence_id: SequenceId | None = None,
        sequence_start: bool = False,
        sequence_end: bool = False,
        *,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> Array: ...
    def infer(  # noqa: PLR0913 - as `send`
        self,
        inputs: Values,
        request_id: SequenceId | None = None,
        sequence_id: SequenceId | None = None,
        sequence_start: bool = False,
        sequence_end: bool = False,
        *,
        timeout_s: float | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Sends a request and waits for its outputs.

        Args:
            inputs: Arrays by the name of their input, streams by `model/input`; or the array alone, where the model
                takes one.
            request_id: Repeated in errors; a number that counts up by default.
            sequence_id: The sequence that the request belongs to.
            sequence_start: Whether this request starts the sequence.
            sequence_end: Whether this request ends the sequence.
            timeout_s: The request fails when it is not answered in so many seconds.
            timeout: The same under its short name.

        Returns:
            Arrays by the name of their output; for a single array, the single output where the model has one. A list of
            these, where a decoupled model does not give exactly one response.

        Raises:
            InvalidArgument: If the inputs do not fit the model's declaration; nothing was sent then.
            InferError: If the server refuses or fails the request; the class tells the code.
            DeadlineExceeded: If the time is up.
            TransportError: If the server cannot be reached, or the state of the sequence is lost.
            RuntimeError: In a callback, which answers would wait for.
        """
        if self._link.receiving:
            raise RuntimeError(
                "infer() waits for its response, which a callback cannot do: use submit() or send() there"
            )
        return self.submit(
            inputs, request_id, sequence_id, sequence_start, sequence_end, timeout_s=timeout_s, timeout=timeout
        ).result()

    def _send(  # noqa: PLR0913, PLR0917 - as `send`
        self,
        x: Values,
        request_id: SequenceId | None,
        sequence_id: SequenceId | None,
        start: bool,
        end: bool,
        timeout_s: float | None,
        future: Future[Any] | None,
    ) -> None:
        if isinstance(x, str) and x == self.model:
            raise InvalidArgument(f"inputs: this client asks '{x}' alone, so pass the inputs without the model's name")
        check_tensors(x, None)
        check_request("request_id", (int, str), "a whole number or text", request_id)
        sequence_id = None if sequence_id is None else identifier("sequence_id", sequence_id)
        start, end = flag("sequence_start", start), flag("sequence_end", end)
        super()._send(x, request_id, sequence_id, start, end, timeout_s, future)

    def close(self) -> None:
        """Waits for all answers, then ends the stream; what `get` has not taken can still be taken."""
        super().close()
        self._close_control()

    def cancel(self) -> None:
        """Ends the stream at once: pending requests are not answered, and unread answers are dropped."""
        super().cancel()
        self._close_control()

    def _close_control(self) -> None:
        if "_control" in vars(self):
            self._control.close()

    @cached_property
    def _control(self) -> Client:
        return Client(self._addresses, timeout_s=self._limit_s, headers=self._headers, api_key="", tls=self._tls)
