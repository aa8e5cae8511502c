"""The data plane: what Python sees of the Rust crates.

Documents cross as JSON with a ``schema`` number; unknown fields are refused. Long calls release the interpreter.
The server uses `Server` and what it gives; a worker process uses `WorkerLink` and Triton's classes.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, final, overload

import numpy as np

__all__ = [
    "Cancellation",
    "ClientLink",
    "ClientMailbox",
    "ClientPlan",
    "ClientStream",
    "ClientTask",
    "ClientTls",
    "Control",
    "DatatypeRow",
    "ErrorCodeRow",
    "Gpu",
    "InferenceRequest",
    "InferenceResponse",
    "InferenceResponseSender",
    "InferenceTrace",
    "LoadTestEngine",
    "LoadTestRecord",
    "LoadTestRequests",
    "ModelVersion",
    "OnnxProbe",
    "PreferredMemory",
    "ResponseIterator",
    "RowReader",
    "Server",
    "Tensor",
    "TritonError",
    "TritonModelException",
    "WorkerLink",
    "call_response",
    "datatypes",
    "descriptor_set",
    "error_codes",
    "failure",
    "failure_exception",
    "gpus",
    "joint_inputs",
    "joint_responses",
    "offer_process",
    "read_call",
    "read_whole_call",
    "reserved_names",
    "row_responses",
    "version",
    "withdraw_process",
]

@final
class Server:
    """The doors of one server and the registry behind them."""

    def __new__(
        cls, config: str, http: int | None = None, grpc: int | None = None, metrics: int | None = None
    ) -> Server:
        """Binds the sockets; accepts nothing yet.

        Args:
            config: JSON, as `alipes.server.boundary.server_config` writes it.
            http: A descriptor of a listening socket that another process holds too, in the place of one of its own;
                the server closes it.
            grpc: The same for gRPC.
            metrics: The same for metrics.

        Raises:
            OSError: If an address is in use or cannot be bound; the text is one line.
            ValueError: If the document does not fit.
        """
    def start(self) -> str:
        """Begins to accept; returns the real addresses as JSON: ``{"http": "127.0.0.1:8000", "grpc": null, ...}``."""
    def build(self, spec: str, cancellation: Cancellation | None = None) -> ModelVersion:
        """Loads one version of a model; takes as long as the engine needs.

        Args:
            spec: JSON, as `alipes.config.spec.to_spec` makes it.
            cancellation: Ends the load; an engine that reads a model cannot be ended, and this returns once it has.

        Raises:
            ModelLoadError: If the engine refuses the model, or the load is cancelled.
        """
    def adapt(self, version: ModelVersion, spec: str, cancellation: Cancellation | None = None) -> None:
        """Gives a version that serves the instances and the configuration of a changed specification, in place.

        Instances that it has go on; further ones are loaded before any goes. Nothing else of the specification counts.

        Raises:
            ModelLoadError: If a further instance cannot be loaded, or the load is cancelled; the version is as it was
                then.
            ValueError: If the version was released.
        """
    def publish(self, name: str, versions: list[ModelVersion], namespace: str = "") -> None:
        """Replaces at once what is served under a name; older versions finish what they hold. No versions: unload.

        Args:
            name: The model.
            versions: Its versions.
            namespace: Where names are unique in a repository alone, the repository.

        Raises:
            ValueError: If a version was released.
        """
    def forget(self, name: str, namespace: str = "") -> None:
        """Makes a name unknown again, which `publish` made known."""
    def set_page(self, path: str, content_type: str, body: bytes) -> None:
        """Serves a page over HTTP, in the place of one with the same path.

        Args:
            path: ``/openapi.json``, ``/docs``, or one that begins with ``/docs/``.
            content_type: What the response names as its content type.
            body: What is sent.

        Raises:
            ValueError: If the path is another one, or the content type has a character that no header may have.
        """
    def remove_page(self, path: str) -> None:
        """Serves a page no longer; nothing changes where there is none."""
    def set_index(self, index: str, ready: bool) -> None:
        """Replaces the repository index (a JSON list of name, version, state, reason) and the server's readiness."""
    def next_control(self, timeout_s: float) -> Control | None:
        """The next control request; ``None`` when the time is up, and at once when the server has stopped."""
    def next_event(self, timeout_s: float) -> str | None:
        """The next line for the log, as JSON; ``None`` when the time is up, and at once when the server has stopped.

        ``{"kind": "log", "model", "version", "instance", "level", "file", "line", "text"}`` is a model's own line,
        ``{"kind": "worker", "model", "version", "instance", "state", "text"}`` a turn in the life of a worker process
        (``died``, ``restarting``, ``ready``, ``failed``, ``unready``), ``{"kind": "request", "model", "version",
        "request_id", "micros", "failure"}`` a request that is over, ``{"kind": "refused", "model", "version",
        "request_id", "failure"}`` one that no model had (both told to a verbose log alone), ``{"kind": "notice",
        "level", "text"}`` what concerns no model, and ``{"kind": "lost", "lines"}`` tells of lines that were
        lost.
        """
    def next_payload(self, timeout_s: float) -> tuple[str, bytes] | None:
        """The next request or response that is logged; ``None`` when the time is up, and once no more will come.

        The first is what it is about, as JSON: ``{"side", "exchange", "model", "version", "request_id", "unix_ns",
        "status", "content_type", "headers"}``. The second is its body.
        """
    def note_payloads(self, sent: int, failed: int) -> None:
        """Counts payloads that were sent, and those that could not be; the metrics show both."""
    def close_payloads(self) -> None:
        """Logs no further payload; what waits can still be taken."""
    def metrics_text(self) -> bytes:
        """What the metrics endpoint answers now."""
    def idle_s(self) -> float:
        """Seconds for which no client has asked for anything; 0 while a call is open. Needs `ends_idle`."""
    def pause_accepting(self, deadline_s: float) -> bool:
        """Accepts no connection of clients for a while: they wait in the queues of the listening sockets.

        Returns:
            False if a listener did not pause within `deadline_s` seconds; then accepting goes on.
        """
    def resume_accepting(self) -> None:
        """Accepts connections again."""
    def retire(self, deadline_s: float) -> bool:
        """Lets clients go, and serves what they still ask for, until none is connected.

        Returns:
            False if a client was still connected after `deadline_s` seconds.
        """
    def drain(self, deadline_s: float) -> bool:
        """Lets clients go, refuses what comes later, and waits for what came before.

        What is not finished within ``deadline_s`` seconds is cut.

        Returns:
            True if all of it was finished.
        """
    def cut(self) -> None:
        """Answers what is not finished with an error, and gives clients a moment to read that."""
    def reload(self) -> None:
        """Reads certificates again, and lets go of trace files that were moved away; what goes wrong is an event."""
    def set_api_keys(self, keys: list[str]) -> None:
        """Takes other keys of clients in the place of all; nothing changes where the server asks for none."""
    def limit_memory(self, inflight_bytes: int, connection_bytes: int) -> None:
        """Bounds requests and answers in flight, and connections unless their number was given, by other amounts."""
    def stop(self) -> None:
        """Closes every connection and ends the data plane's threads."""

@final
class Cancellation:
    """Ends one load before its time: kills the worker processes that it has started, and no further step is done."""

    def __new__(cls) -> Cancellation:
        """Ends nothing yet."""
    def cancel(self) -> None:
        """Ends the load, from whatever thread; a load that comes later ends at once."""

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
    """A request of a client to load or unload a model, or to log otherwise."""

    @property
    def kind(self) -> str:
        """``load``, ``unload`` or ``log``."""
    @property
    def model(self) -> str:
        """The model that it concerns; empty for ``log``."""
    @property
    def parameters(self) -> str:
        """The request's parameters as the JSON text of an object."""
    def reply(self, code: str | None, message: str = "") -> None:
        """Answers the client, once: ``None`` for success, else Triton's name of the code, such as ``INVALID_ARG``."""

_Reply = tuple[
    dict[str, np.ndarray[Any, Any] | tuple[str, tuple[int, ...]]], str, str, dict[str, bool | int | float | str]
]

@final
class ClientLink:
    """The calls to one server, from any thread; it connects when it is first used, and again where it has to.

    Who waits for a call drives its socket itself. A process that was forked begins connections of its own.
    """

    def __new__(
        cls,
        address: str,
        wire: str,
        connect_timeout_s: float = 10.0,
        headers: Sequence[tuple[str, str]] | None = None,
        tls: ClientTls | None = None,
    ) -> ClientLink:
        """Takes ``host:port`` (over HTTP also ``host:port/prefix``) or ``unix:path``, and ``"grpc"`` or ``"http"``.

        Connections are encrypted where ``tls`` says how.

        Raises:
            TransportError: If the address is none.
        """
    def infer(
        self,
        model: str,
        version: str,
        inputs: Sequence[tuple[Any, ...]],
        outputs: Sequence[str | tuple[str, dict[str, Any]]] | None = None,
        request_id: str = "",
        parameters: dict[str, bool | int | float | str] | None = None,
        timeout_s: float | None = None,
        headers: Sequence[tuple[str, str]] | None = None,
    ) -> _Reply:
        """Asks for an inference and waits for the answer, without the interpreter.

        Args:
            model: The model's name.
            version: Its version as text; empty leaves the choice to the server.
            inputs: As `ClientStream.send` has them. Large ones are sent from where they lie. Where the elements are
                ``None``, a fifth item holds the parameters that tell in which shared memory they lie.
            outputs: Names of the wanted outputs, or tuples of a name and the parameters of its place.
            request_id: Comes back with the response.
            parameters: The model's own, and those of the protocol: ``sequence_id``, ``sequence_start``, ``priority``...
            timeout_s: The longest wait; ``None`` waits for good.
            headers: Headers of this request alone, beside those of the link; metadata, over gRPC.

        Returns:
            Outputs by name (read-only arrays; datatype and shape of what lies in shared memory), the version, the
            request's id, the parameters of the response.

        Raises:
            InferError: If the server refuses or fails the call; the class tells the code.
            TransportError: If the server cannot be reached, or the connection breaks.
            DeadlineExceeded: If the time is up.
            ValueError: If the request cannot be sent.
        """
    def plain(self, plan: ClientPlan, inputs: object, timeout_s: float | None = None) -> Any:
        """As `infer`, for a request that says nothing beside its inputs.

        Args:
            plan: What the model takes.
            inputs: A dictionary of all inputs' arrays, or the array of the single one.
            timeout_s: The longest wait.

        Returns:
            Outputs by name, or the single one where the input had no name; ``None`` where an input is no array of the
            declared datatype and shape, row by row, or is large: then nothing was sent.
        """
    def call(self, path: str, body: bytes | None = None, timeout_s: float | None = None) -> bytes:
        """Asks for anything else and waits.

        Args:
            path: gRPC: the method; of another service `/its.name/Method`. HTTP: the path.
            body: gRPC: the serialized message. HTTP: what is posted; ``None`` gets.
            timeout_s: The longest wait.

        Returns:
            gRPC: the serialized response. HTTP: the body.
        """
    def begin_infer(
        self,
        mailbox: ClientMailbox,
        number: int,
        model: str,
        version: str,
        inputs: Sequence[tuple[Any, ...]],
        outputs: Sequence[str | tuple[str, dict[str, Any]]] | None = None,
        request_id: str = "",
        parameters: dict[str, bool | int | float | str] | None = None,
        timeout_s: float | None = None,
        headers: Sequence[tuple[str, str]] | None = None,
    ) -> ClientTask:
        """As `infer`, but the answer goes to a mailbox under a number. Large inputs stay unchanged until then."""
    def begin_plain(
        self, mailbox: ClientMailbox, number: int, plan: ClientPlan, inputs: object, timeout_s: float | None = None
    ) -> ClientTask | None:
        """As `plain`, but the answer goes to a mailbox under a number; ``None`` where nothing was sent."""
    def begin_call(
        self, mailbox: ClientMailbox, number: int, path: str, body: bytes | None = None, timeout_s: float | None = None
    ) -> ClientTask:
        """As `call`, but the answer goes to a mailbox under a number."""
    def close(self) -> None:
        """Closes the connections that no call uses now; later calls open new ones."""

@final
class ClientPlan:
    """What a model takes, against which `ClientLink.plain` and `begin_plain` check arrays."""

    def __new__(cls, model: str, inputs: Sequence[tuple[str, str, Sequence[int]]]) -> ClientPlan:
        """Takes names, datatypes and shapes, in which -1 is any size."""

@final
class ClientMailbox:
    """Answers of calls that were begun, for an event loop: it watches the descriptor and takes all that is there."""

    def __new__(cls) -> ClientMailbox: ...
    def fileno(self) -> int:
        """A descriptor that is readable while answers lie here."""
    def take(self) -> list[tuple[int, Any]]:
        """Each call's number, and its answer or an exception."""

@final
class ClientTask:
    """A call that was begun."""

    def cancel(self) -> None:
        """Withdraws the call; its answer comes no more, if it is not there yet."""

@final
class ClientTls:
    """How a client's connections are encrypted, with the files read."""

    def __new__(
        cls,
        roots: str | None = None,
        certificate: str | None = None,
        key: str | None = None,
        server_name: str | None = None,
    ) -> ClientTls:
        """Reads the files.

        Args:
            roots: Certificates of authorities to trust; those of the system without it.
            certificate: The client's own.
            key: The key to it.
            server_name: The name in the server's certificate; the one in the address without it.

        Raises:
            ConfigError: If a file is absent or does not hold what it should.
        """

@final
class LoadTestRequests:
    """Requests of a load, prepared for the server that they go to."""

    def __new__(
        cls,
        address: str,
        wire: str,
        connect_timeout_s: float = 10.0,
        headers: Sequence[tuple[str, str]] | None = None,
        tls: ClientTls | None = None,
        compression: str | None = None,
    ) -> LoadTestRequests:
        """Takes what `ClientLink` takes, and how messages of gRPC are compressed: `gzip` or `deflate`.

        Raises:
            TransportError: If the address is none.
            ValueError: If the compression is another one, or not for gRPC.
        """
    def infer(
        self,
        model: str,
        version: str,
        inputs: Sequence[tuple[Any, ...]],
        outputs: Sequence[str | tuple[str, dict[str, Any]]] | None = None,
        request_id: str = "",
        parameters: dict[str, bool | int | float | str] | None = None,
        stream: bool = False,
        decoupled: bool = False,
        in_sequence: bool = False,
    ) -> None:
        """Adds an inference; the arguments are those of `ClientLink.infer`, and three more.

        With `stream` it goes over a stream of gRPC (`ModelStreamInfer`), of which each caller has one; with `decoupled`
        it is over with the response that says so there, otherwise with the first response. With `in_sequence` it is
        for a chain, and gets the id of its sequence when it is sent: `parameters` have none.

        Raises:
            TransportError: If `in_sequence` is for a request without parameters.
            ValueError: If an argument does not fit, or a stream is asked for over HTTP.
        """
    def call(self, path: str, body: bytes | None = None) -> None:
        """Adds anything else; the arguments are those of `ClientLink.call`."""
    def post(self, path: str, content_type: str, body: bytes) -> None:
        """Adds a post of any kind, over HTTP."""
    def chain(self) -> None:
        """Ties the requests since the last chain together: one caller sends them one after the other, as a sequence.

        Chains are sent in turn, each time under the next id. Either all requests belong to chains, or none does.

        Raises:
            ValueError: If no request was added since the last chain.
        """
    def number(self, first: int, end: int | None = None, most: int | None = None) -> None:
        """Says which ids sequences get, one after the other: from `first` to before `end`, and then from `first` again.

        At most `most` sequences are under way; without it as many as there may be requests.

        Raises:
            ValueError: If there are no such ids.
        """
    def __len__(self) -> int: ...

@final
class LoadTestEngine:
    """A load that runs on threads of its own until it is stopped, or until everything is sent and answered."""

    def __new__(
        cls,
        requests: LoadTestRequests | Sequence[tuple[LoadTestRequests, float]],
        callers: int | None = None,
        rates: Sequence[tuple[float, float, float]] | None = None,
        intervals_s: Sequence[float] | None = None,
        seed: int | None = None,
        in_flight: int = 1024,
        threads: int = 1,
        calls_per_connection: int = 8,
        count: int | None = None,
        samples: int = 0,
        timeout_s: float | None = None,
        log: int = 0,
        repeats: bool = False,
        waves: tuple[int, int, int, int] | None = None,
    ) -> LoadTestEngine:
        """Begins.

        Args:
            requests: What is sent, in turn; several with their weights are mixed.
            callers: A closed loop: each sends its next request when its last one was answered.
            rates: An open loop: seconds, and requests per second at the beginning and at the end of each piece.
            intervals_s: An open loop: seconds in front of each request, over and over.
            seed: With rates: random arrivals (Poisson) instead of even ones.
            in_flight: An open loop: most requests under way, of each of several; what is due beyond waits.
            threads: Threads that send.
            calls_per_connection: gRPC: calls that share a connection.
            count: How many requests are sent; without end by default. Chains that have begun are ended.
            samples: Answers that each thread keeps between two cuts, spread over those that came.
            timeout_s: Longest wait for an answer, after which a request has failed; without limit by default.
            log: Requests whose moments are kept between two cuts; further ones are counted.
            repeats: With rates: the first piece follows the last one.
            waves: Requests that are sent once, in waves: how many are in the first, in each further one and in all, and
                how many responses each has had, unless it is over, before the next wave begins. One thread sends them.

        Raises:
            TransportError: If there is no request, or one is for another protocol.
            ValueError: If an argument is out of its range.
        """
    def cut(self) -> LoadTestRecord:
        """What was measured since the last cut."""
    def wait(self, seconds: float, answers: int | None = None) -> bool:
        """Waits without the interpreter.

        Returns:
            Whether the load is done, or so many answers came since the last cut, before the time was up.
        """
    def is_done(self) -> bool:
        """Whether everything was sent and answered."""
    def stop(self, grace_s: float) -> None:
        """Sends nothing more; what is not answered after so many seconds is cut off.

        Raises:
            TransportError: If a thread of the load ended before its time.
        """

@final
class LoadTestRecord:
    """What was measured between two cuts.

    Times are pairs of arrays of equal length: the times that were seen, ascending, and how often each was.
    """

    @property
    def latencies(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """From the moment a request was due until its answer was there, in nanoseconds."""
    @property
    def lateness(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """From the moment a request was due until the load turned to it."""
    @property
    def queueing(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """From then until a connection was free."""
    @property
    def answers(self) -> int:
        """Good answers."""
    @property
    def sending_ns(self) -> int:
        """Time that sending took, in all."""
    @property
    def waiting_ns(self) -> int:
        """Time until the first byte of answers, in all."""
    @property
    def receiving_ns(self) -> int:
        """Time that receiving took, in all."""
    @property
    def received_bytes(self) -> int:
        """Bytes of answers, in all."""
    @property
    def failures(self) -> dict[str, int]:
        """What went wrong, and how often."""
    @property
    def dropped(self) -> int:
        """Requests that were due and never sent."""
    @property
    def connections(self) -> int:
        """Connections that were opened."""
    @property
    def busy_ns(self) -> int:
        """Processor time of the threads that send."""
    @property
    def samples(self) -> list[tuple[int, bytes]]:
        """Which request, and its answer as it came; of several responses the last."""
    @property
    def parts(self) -> list[LoadTestRecord]:
        """What was measured of each of several requests with weights; empty for one.

        Numbers of requests in samples and logs mean those of a part.
        """
    @property
    def responses(self) -> int | None:
        """Responses on streams; `None` if no request went over one."""
    @property
    def first_responses(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """On streams: from the moment a request was due until its first response was there."""
    @property
    def response_gaps(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """On streams: between the responses of a request."""
    @property
    def log(self) -> dict[str, np.ndarray[Any, Any]]:
        """Arrays with an element for each request that is kept, in the order in which they ended.

        `request` says which it was, `due_ns`, `begun_ns` and `end_ns` when it was due, when its first byte was sent and
        when it was over, `failed` whether it failed, and `responses` how many moments it has in `responses_ns`. Moments
        are nanoseconds since the beginning of 1970.
        """
    @property
    def responses_ns(self) -> np.ndarray[Any, Any]:
        """Moments of the responses, request by request."""
    @property
    def unlogged(self) -> int:
        """Requests for which the log had no room."""

@final
class ClientStream:
    """One stream of inference requests to a server over gRPC (``ModelStreamInfer``).

    Requests of one or several threads go out in the order of `send`; responses come in the order in which the server
    sends them. All work on the socket is done beside the interpreter, and each wake-up brings everything that is ready.
    """

    def __new__(
        cls,
        address: str,
        timeout_s: float = 10.0,
        metadata: Sequence[tuple[str, str]] | None = None,
        tls: ClientTls | None = None,
    ) -> ClientStream:
        """Connects and opens the stream.

        Args:
            address: ``host:port`` of a server's gRPC door, or ``unix:path``.
            timeout_s: The longest time for the connection.
            metadata: Headers of the call, such as ``("authorization", "...")``.
            tls: How the connection is encrypted; plain without it.

        Raises:
            TransportError: If the server cannot be reached.
        """
    def send(
        self,
        model: str,
        version: str,
        inputs: Sequence[tuple[str, str, Sequence[int], Any]],
        outputs: Sequence[str] | None = None,
        request_id: str = "",
        sequence_id: int | str | None = None,
        sequence_start: bool = False,
        sequence_end: bool = False,
        parameters: dict[str, bool | int | float | str] | None = None,
        timeout_us: int = 0,
        priority: int = 0,
    ) -> None:
        """Puts a request behind those that wait to be sent; its tensors are copied and may be changed at once.

        Waits, without the interpreter, while more than `limits::CLIENT_OUTBOX_BYTES` wait for the server to take them.

        Args:
            model: The model's name.
            version: Its version as text; empty leaves the choice to the server.
            inputs: Name, datatype (``"FP32"``), shape and elements of each input. The elements are anything whose
                memory lies row by row, such as a C-contiguous array; for ``BYTES`` an array of objects or byte strings,
                or bytes that are serialized already.
            outputs: Names of the wanted outputs; none asks for all.
            request_id: Comes back with each response.
            sequence_id: The sequence; 0, an empty text and ``None`` are none.
            sequence_start: Whether it begins here.
            sequence_end: Whether it ends here.
            parameters: The model's own parameters.
            timeout_us: The longest wait in the server's queue, in microseconds; 0 is none.
            priority: 1 is highest; 0 is the model's default.

        Raises:
            TransportError: If the stream has ended, or was half-closed.
            ValueError: If an input's memory does not fit its shape, or a value cannot be sent.
        """
    def receive(
        self, most: int, timeout_s: float | None = None
    ) -> list[tuple[str, dict[str, np.ndarray[Any, Any]] | None, str | None, bool | None]] | None:
        """What has arrived, in order; waits for the first response without the interpreter.

        Args:
            most: Take no more than so many.
            timeout_s: The longest wait for the first; ``None`` waits for good, 0 only looks.

        Returns:
            A tuple for each response: the request's id; its outputs by name (read-only arrays), or ``None``; the
            error's text, or ``None``; and whether it is the request's last response, or ``None`` where the server does
            not say. The list is empty when the time is up. ``None`` when the stream has ended and nothing is left: see
            `status`.
        """
    def half_close(self) -> None:
        """Says that nothing more will be sent: what was sent is answered, then the server ends the stream."""
    def cancel(self) -> None:
        """Ends the stream at once. Waiting calls return; arrived responses can still be received."""
    def status(self) -> tuple[str, str] | None:
        """Why the stream ended: gRPC's name of the code (``"OK"``) and a text; ``None`` while it is open."""

@final
class WorkerLink:
    """A worker's link to its server. A process that is a worker has one, a script one for each attached instance."""

    def __new__(
        cls, link_fd: int, requests_fd: int, doorbell_fd: int, declaration: str, lifeline_fd: int | None = None
    ) -> WorkerLink:
        """Opens the link and takes the descriptors over.

        Args:
            link_fd: The link's memory.
            requests_fd: The memory that requests come in.
            doorbell_fd: The eventfd that wakes the server.
            declaration: JSON: ``instance``, ``inputs`` and ``outputs`` (each with a ``name``), ``decoupled``,
                ``endpoint`` (calls may come), and ``max_rows``, the most rows that are executed together (0: one
                request at a time, or, of quick models with an endpoint, some that are answered together).
            lifeline_fd: Of an attached instance: the socket whose end is the end of the instance.

        Raises:
            OSError: If the process has a link already, or the memory is not what this build understands.
            ValueError: If the declaration does not fit.
        """
    def ready(self, checks: bool) -> None:
        """Says that the model is initialized; from now on requests come, and models can be called.

        Args:
            checks: Whether the model can be asked if it is ready: somebody waits in `next_check`.
        """
    def next_check(self, last: int) -> int | None:
        """Waits to be asked whether the model is ready, again after the question ``last``, which is 0 at first.

        Returns:
            The question's number; ``None`` when the server asks the worker to leave.
        """
    def checked(self, number: int, ready: bool) -> None:
        """Answers a question of `next_check`."""
    def failed(self, text: str) -> None:
        """Says why the model could not be initialized."""
    def finalized(self) -> None:
        """Says that the model is finalized; no model can be called any more."""
    def log(self, level: int, file: str, line: int, text: str) -> None:
        """Writes to the server's log: level 0 is an error, 1 a warning, 2 information, 3 verbose."""
    def is_verbose(self) -> bool:
        """Whether the server wants verbose lines now."""
    def serve(
        self, execute: Callable[[list[InferenceRequest]], object], describe: Callable[[BaseException], str]
    ) -> None:
        """Claims requests, executes and answers them, until the server asks the worker to leave.

        A wrong return value fails the requests with Triton's text. Nothing here holds requests or responses when the
        answers are sent. Inputs that the model did not keep are therefore free at once, and outputs that lie in the
        memory of inputs are sent without a copy.

        Args:
            execute: Gives what the model returned; what it raises fails the requests.
            describe: The text of such an exception, after which nothing should hold it.
        """
    def claim(self) -> list[InferenceRequest] | None:
        """Claims the requests of one execution, which `answer` or `answer_failure` ends; for a thread of a script.

        Returns:
            The requests; ``None`` when the server asks the worker to leave.
        """
    def answer(self, returned: list[object]) -> None:
        """Answers what was claimed with the one element of a list, which is taken out: what the model returned.

        As with `serve`, nothing should hold requests or responses when this is called.
        """
    def answer_failure(self, text: str) -> None:
        """Answers what was claimed with the text of an exception."""
    def fail(self, requests: list[InferenceRequest], message: str) -> None:
        """Fails those of the requests that are not answered yet, after the `execute` for them has returned.

        Their callers read "Failed to process the request(s) for model ..." and the message.
        """
    def bind(self) -> None:
        """Has this thread work for the instance of this link: its calls of models go over it."""
    def close(self) -> None:
        """Lets go of the server, for an attached instance: it ends with this. Nothing waits on this link any more."""
    def is_abandoned(self) -> bool:
        """Whether the server has let go of an attached instance, or is gone. What is sent goes nowhere then."""
    def call(self, name: str, json: str) -> str:
        """Asks the server for something by name and waits for the answer.

        Raises:
            TritonModelException: If the server refuses.
        """

class TritonModelException(Exception):
    """Raised where a model uses its tools in a way that cannot work."""

@final
class TritonError:
    """What a response carries in place of outputs."""

    UNKNOWN: ClassVar[int]
    INTERNAL: ClassVar[int]
    NOT_FOUND: ClassVar[int]
    INVALID_ARG: ClassVar[int]
    UNAVAILABLE: ClassVar[int]
    UNSUPPORTED: ClassVar[int]
    ALREADY_EXISTS: ClassVar[int]
    CANCELLED: ClassVar[int]

    def __new__(cls, message: str | bytes, code: int = 1) -> TritonError:
        """An error; without a code it is INTERNAL."""
    def message(self) -> str: ...
    def code(self) -> int: ...

@final
class Tensor:
    """Named elements.

    The inputs of a request lie in memory that the server lends: it goes back when neither the tensors nor arrays over
    them are left.
    """

    def __new__(cls, name: str | bytes, ndarray: np.ndarray[Any, Any]) -> Tensor:
        """A tensor over an array's elements, which are copied only where they do not lie row by row.

        Raises:
            TritonModelException: If the name is empty or no datatype stands for the array's.
            TypeError: If the array is none.
        """
    def name(self) -> str: ...
    def as_numpy(self) -> np.ndarray[Any, Any]:
        """The elements, without a copy; strings as an array of objects.

        Raises:
            TritonModelException: If the datatype is BF16, which numpy lacks.
        """
    def triton_dtype(self) -> int:
        """Triton's number of the datatype, from 1 (``TYPE_BOOL``) to 14 (``TYPE_BF16``)."""
    def shape(self) -> list[int]: ...
    def is_cpu(self) -> bool: ...
    def to_dlpack(self) -> object:
        """A DLPack capsule over the elements; it keeps them.

        Raises:
            TritonModelException: If the elements are strings.
        """
    def __dlpack__(self, stream: object = None) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    @staticmethod
    def from_dlpack(name: str, tensor: object) -> Tensor:
        """A tensor over the elements of a DLPack capsule, or of an object that offers one, without a copy.

        Raises:
            TritonModelException: If the elements do not lie row by row in main memory, or have no datatype here.
        """

@final
class InferenceResponse:
    """Outputs, or an error."""

    def __new__(
        cls,
        output_tensors: Sequence[Tensor] = ...,
        error: TritonError | None = None,
        parameters: Mapping[str, bool | int | str] | None = None,
    ) -> InferenceResponse: ...
    def output_tensors(self) -> list[Tensor]: ...
    def has_error(self) -> bool: ...
    def error(self) -> TritonError | None: ...
    def parameters(self) -> str:
        """The text of a JSON object."""

@final
class InferenceResponseSender:
    """Answers a request from any thread, also after ``execute`` has returned.

    A request whose sender and object are gone without a last response is closed: with an error, or, in a decoupled
    model, with an end that carries no response.
    """

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """Sends a response, the end (flags 1), or both at once; waits while too much lies before the caller.

        Raises:
            TritonModelException: If the sender is closed, or used against Triton's rules.
        """
    def is_cancelled(self) -> bool:
        """Whether the caller has left."""

@final
class InferenceTrace:
    """The trace that a request is part of, to be handed on in calls."""

    def __new__(cls) -> InferenceTrace: ...
    def get_context(self) -> str | None:
        """The OpenTelemetry context that came with the request."""

@final
class PreferredMemory:
    """Where a caller prefers a response's tensors to lie; there is main memory only."""

    def __new__(cls, preferred_memory_type: object, preferred_device_id: int = 0) -> PreferredMemory: ...

@final
class InferenceRequest:
    """A request: one that was received, or one that a model makes to call another."""

    def __new__(
        cls,
        request_id: str | bytes = "",
        correlation_id: int | str = 0,
        inputs: Sequence[Tensor] = ...,
        requested_output_names: Sequence[str | bytes] = ...,
        model_name: str | bytes = ...,
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: PreferredMemory = ...,
        trace: InferenceTrace = ...,
        parameters: Mapping[str, bool | int | float | str] | None = None,
    ) -> InferenceRequest:
        """A call of a model. Inputs, the names of wanted outputs and the model's name must be given."""
    def inputs(self) -> list[Tensor]: ...
    def request_id(self) -> str: ...
    def correlation_id(self) -> int | str: ...
    def flags(self) -> int: ...
    def set_flags(self, flags: int) -> None: ...
    def timeout(self) -> int:
        """The caller's time-out in microseconds; 0 means none."""
    def parameters(self) -> str:
        """The text of a JSON object."""
    def trace(self) -> InferenceTrace: ...
    def requested_output_names(self) -> set[str]: ...
    def get_response_sender(self) -> InferenceResponseSender: ...
    def is_cancelled(self) -> bool:
        """Whether the caller has left."""
    def set_release_flags(self, flags: int) -> None: ...
    @overload
    def exec(self, decoupled: Literal[False] = False) -> InferenceResponse: ...
    @overload
    def exec(self, decoupled: Literal[True]) -> ResponseIterator: ...
    @overload
    def async_exec(self, decoupled: Literal[False] = False) -> Awaitable[InferenceResponse]: ...
    @overload
    def async_exec(self, decoupled: Literal[True]) -> Awaitable[ResponseIterator]: ...

@final
class ResponseIterator:
    """The responses of a decoupled model that was called, each as it comes. It can be gone through again."""

    def __iter__(self) -> Iterator[InferenceResponse]: ...
    def __next__(self) -> InferenceResponse: ...
    def cancel(self) -> None:
        """Has the called model see that its request is cancelled. Its responses still come, up to the last."""
    def take(self) -> InferenceResponse | None:
        """The next response, which is not kept to be gone through again; None after the last. Not of Triton's."""
    def close(self) -> None:
        """Takes no further response, also where a thread waits for one. Not a method of Triton's."""

@final
class OnnxProbe:
    """An ONNX file, loaded without optimizing it: asked what it takes and gives, and run to find out what it does."""

    def __new__(cls, library: str, path: str) -> Self:
        """Loads the file; slow.

        Raises:
            ModelLoadError: If the library or the file cannot be loaded.
        """

    def signature(self) -> str:
        """Inputs and outputs as JSON; a size that is not fixed is -1, and `symbols` has its name."""

    def run(self, inputs: Sequence[tuple[Sequence[int], bytes]]) -> list[tuple[str, list[int], bytes]]:
        """Runs it once.

        Args:
            inputs: Shape and row-major bytes of each input, in the signature's order.

        Returns:
            Datatype, shape and bytes of each output, in the signature's order.

        Raises:
            ModelLoadError: If it does not run on them.
        """

@final
class DatatypeRow:
    """A row of the table of datatypes."""

    @property
    def name(self) -> str:
        """The V2 name, such as ``FP32``."""
    @property
    def config_name(self) -> str:
        """The name in model configurations, such as ``TYPE_FP32``."""
    @property
    def size(self) -> int | None:
        """Bytes per element; ``None`` for ``BYTES``, whose elements carry their own length."""
    @property
    def numpy_name(self) -> str | None:
        """The numpy type, such as ``float32``; ``None`` for ``BF16``, which numpy lacks."""

def datatypes() -> list[DatatypeRow]:
    """The table of datatypes, in the order of the model configuration's enumeration, which counts from 1."""

@final
class Gpu:
    """A GPU that programs of this process may use: a whole one, or the part of one that NVIDIA calls a MIG device."""

    def __new__(
        cls,
        index: int,
        uuid: str,
        name: str,
        memory_total_bytes: int | None,
        compute_capability: tuple[int, int],
    ) -> Gpu: ...
    @property
    def index(self) -> int:
        """Its number among the GPUs that are visible, as CUDA counts them in PCI order."""
    @property
    def uuid(self) -> str:
        """As the driver writes it: ``GPU-``, or ``MIG-`` for a part, and 36 characters."""
    @property
    def name(self) -> str:
        """Its product name."""
    @property
    def memory_total_bytes(self) -> int | None:
        """Its memory; ``None`` where it has none of its own and uses that of the machine."""
    @property
    def compute_capability(self) -> tuple[int, int]:
        """Its generation as CUDA counts: major and minor number."""

def gpus() -> list[Gpu]:
    """The GPUs that CUDA lets this process see; an empty list, and no message, without NVIDIA's driver.

    The driver is asked once in a process. `CUDA_VISIBLE_DEVICES` is read at each call, as CUDA reads it: numbers or
    UUIDs, to the first that names no GPU; a GPU that is named twice leaves none. Where a visible GPU is divided, CUDA
    sees its first part and nothing else.

    Numbers are those of the PCI bus. On a machine with GPUs of several kinds CUDA counts so with
    ``CUDA_DEVICE_ORDER=PCI_BUS_ID`` alone.
    """

@final
class ErrorCodeRow:
    """A row of the table of error codes."""

    @property
    def name(self) -> str:
        """The code, such as ``InvalidArgument``."""
    @property
    def http_status(self) -> int: ...
    @property
    def grpc_code(self) -> int:
        """Number of the gRPC status code."""
    @property
    def grpc_name(self) -> str:
        """Name of the gRPC status code, such as ``INVALID_ARGUMENT``."""
    @property
    def word(self) -> str:
        """Triton's word for it in load failures, such as ``Invalid argument``."""
    @property
    def triton_name(self) -> str | None:
        """The name in Triton's error enumeration, such as ``INVALID_ARG``; ``None`` where it has none."""
    @property
    def exception(self) -> str:
        """The class of `alipes.errors` that clients raise."""
    @property
    def retry(self) -> str:
        """Whether the same request may succeed later."""

def error_codes() -> list[ErrorCodeRow]:
    """The table of error codes. Where rows share a gRPC code, clients raise the exception of the first."""

@final
class RowReader:
    """Reads the documents of calls whose arguments are numbers, texts and arrays of numbers into columns of a batch."""

    def __new__(cls, arguments: list[tuple[str, str, list[int] | None, bool]]) -> RowReader:
        """Takes the arguments of a function that takes batches.

        Args:
            arguments: Of each, its name, its datatype of the V2 protocol, the sizes of a row, -1 for one that varies
                (None where any shape will do), and whether the rows become an array; else they become a list.

        Raises:
            ValueError: If one of them cannot be read here: of 16-bit floats, or texts in arrays.
        """
    def read(self, requests: list[InferenceRequest] | list[bytes]) -> list[tuple[list[int], dict[str, Any]]]:
        """Reads the requests that are calls with a JSON document which is free of anything unusual.

        Args:
            requests: A list of them, or of documents by themselves.

        Returns:
            For each shape of rows the positions of the requests, and the arguments of one call of the function. A
            request that is in none of them is to be read by other means, which find what is wrong with it.

        Raises:
            TritonModelException: If a request was answered before.
        """

def failure(text: str, exception: str) -> TritonError:
    """An error of a response that has the code of an exception, such as ``"NotFound"``; INTERNAL for an unknown one."""

def failure_exception(error: TritonError) -> str:
    """The name of the exception that stands for an error: of a called model's, that which the model had."""

def reserved_names() -> list[str]:
    """Names of models that can have no endpoint: the paths are the server's own."""

def offer_process(key: str, pid: int, socket: int) -> None:
    """Leaves a child process that has imported an app for the worker of a key that starts first.

    Args:
        key: What the worker has as ``waiting``.
        pid: The process, of a group of its own. Nobody else waits for it, from now on.
        socket: Descriptor over which it takes what a worker inherits; it is the data plane's from now on.

    Raises:
        OSError: If there is no such process.
    """

def withdraw_process(key: str) -> None:
    """Ends the process that waits under a key, unless a worker has taken it."""

def read_call(request: InferenceRequest) -> tuple[bytes, str, str, str, str] | None:
    """What a plain HTTP request to the model's endpoint brings; ``None`` where the request is none.

    Returns:
        Body, content type (empty where none was given), method, query string without its question mark, and the text
        of a JSON object with the headers: lower-case names to texts.

    Raises:
        TritonModelException: If the request was answered before.
    """

def read_whole_call(request: InferenceRequest) -> tuple[bytes, str, dict[str, str]] | None:
    """What a request of V1, V2 or gRPC brings to a model that takes them as calls; ``None`` where the request is none.

    Returns:
        Body, path (the method's over gRPC), and its headers by names in small letters.

    Raises:
        TritonModelException: If the request was answered before.
    """

def call_response(
    body: bytes, status: int = 200, content_type: str = "application/json", headers: str = "", more: bool = False
) -> InferenceResponse:
    """The response to a plain HTTP request.

    Args:
        body: What is sent.
        status: 200 to 599.
        content_type: Empty for none.
        headers: Further ones, the text of a JSON object of texts and lists of texts; empty for none. The server refuses
            what is no header, or is its own, when it sends the response.
        more: Whether the bodies of further responses continue this one; for models that take requests of the protocols
            as calls, and stream.

    Raises:
        TritonModelException: If the status is another number, or the body is longer than 2 GiB.
    """

def joint_inputs(requests: list[InferenceRequest]) -> tuple[dict[str, np.ndarray], list[int]] | None:
    """The inputs of several requests as one array each, row after row.

    Args:
        requests: Requests of a model with a batch axis.

    Returns:
        The arrays by name, and how many rows each request has; None where the requests differ in more than their number
        of rows, or have texts, or elements that numpy does not know.

    Raises:
        TritonModelException: If a request was answered before.
    """

def joint_responses(outputs: list[tuple[str, np.ndarray]], rows: list[int]) -> list[InferenceResponse] | None:
    """The responses that carry the rows of each request.

    Args:
        outputs: Names and arrays, whose rows are those of all requests. The responses hold them: nobody may resize them
            from then on.
        rows: How many rows each request has.

    Returns:
        One response for each request; None where an output is no plain array of numbers in the order of C, or has
        another number of rows.
    """

def row_responses(result: object, rows: int) -> list[InferenceResponse] | None:
    """The responses to calls that carry the rows of an array as JSON, as `call_response` would.

    Args:
        result: What the function returned.
        rows: How many rows it has to have.

    Returns:
        One response for each row; None where the result is no plain array of so many rows, or its elements are neither
        numbers nor truth values, or are 16-bit floats.
    """

def descriptor_set() -> bytes:
    """The serialized ``FileDescriptorSet`` of the protocol's files, so that Python needs no protobuf compiler."""

def version() -> str:
    """Version of the data plane; equal to the package's."""
