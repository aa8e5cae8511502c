//! Every bound on what comes from outside, with its default and its reason.

use std::time::Duration;

/// Largest HTTP body in bytes that is read as JSON, or as one raw input. Source: Triton's `--http-max-input-size`, 64
/// MiB.
pub const HTTP_MAX_INPUT_BYTES: usize = 1 << 26;

/// Largest HTTP body in bytes, binary tensors included: 2 GiB - 1, where 32-bit lengths of peers end.
pub const HTTP_MAX_BODY_BYTES: u64 = i32::MAX as u64;

/// Largest gRPC message in bytes, either way. Source: Triton sets INT32_MAX.
pub const GRPC_MAX_MESSAGE_BYTES: usize = i32::MAX as usize;

/// Largest gRPC request in bytes once it is expanded, where it came compressed: a few bytes of a hostile client would
/// else become two gigabytes. As much as HTTP takes; a server of large compressed tensors raises it.
pub const GRPC_MAX_EXPANDED_BYTES: usize = 1 << 26;

/// Largest gRPC request in bytes that is neither an inference nor a load: names and settings, which a network thread
/// reads itself.
pub const GRPC_MAX_CONTROL_BYTES: usize = 64 << 10;

/// Most entries of a request of each kind: inputs, outputs, parameters, settings. Models have some, and a request with
/// millions would cost the server seconds and gigabytes before its model could refuse it.
pub const REQUEST_MAX_ENTRIES: usize = 16 * 1024;

/// Most fields of an inference message over gRPC outside of its tensors' contents: entries, their names and parameters,
/// sizes of shapes.
pub const GRPC_MAX_FIELDS: usize = 8 * REQUEST_MAX_ENTRIES;

/// Largest request in bytes, tensors that stay as they are apart, that a network thread reads itself: it takes less
/// than a millisecond. Larger ones are read on other threads, so that nobody else waits for them.
pub const READ_AT_ONCE_BYTES: usize = 128 << 10;

/// Largest inference message in bytes, large tensors for workers apart, that is parsed without a look at what it may
/// become: two bytes of it may become three hundred, one message at a time on each network thread.
pub const GRPC_WEIGHED_BYTES: usize = 64 * 1024;

/// Deepest nesting of a JSON document. Source: Triton refuses more than 100 levels.
pub const JSON_MAX_DEPTH: usize = 100;

/// Largest head of a request in bytes (`--max-header-bytes`): generous for cookies and traces, small enough that 5,000
/// connections stay cheap.
pub const HTTP_MAX_HEADER_BYTES: usize = 64 * 1024;

/// Most dimensions of a tensor; engines stop at 8 to 32, and a longer shape is an attack on the error text.
pub const MAX_DIMENSIONS: usize = 64;

/// Largest read from an HTTP connection in bytes: one read takes in a picture of 3x224x224 FP32, yet an idle
/// connection, whose buffer grows only with what it receives, stays small.
pub const HTTP_READ_BUFFER_BYTES: usize = 1 << 20;

/// Bytes of a body that have to come before its announced length is believed; until then twice what has come is
/// reserved, so that three hundred bodies of one byte each take no memory worth naming.
pub const BODY_PROVEN_BYTES: usize = 64 << 10;

/// Most bytes that are reserved for a tensor that is received into the memory of a model's workers, where what is
/// reserved is addresses: a picture of 3x224x224 FP32 needs no second step, and sixteen thousand that never come leave
/// room for one that does.
pub const ARENA_RESERVE_BYTES: usize = 1 << 20;

/// How many times what has arrived of a body is set aside for the rest of its announced length.
pub const BODY_TRUST: usize = 16;

/// Most calls that one gRPC connection may have open: clients that multiplex a whole load over one connection reach
/// a few hundred, and each open call costs memory.
pub const GRPC_MAX_CONCURRENT_CALLS: u32 = 4096;

/// Most requests that one gRPC stream may have in flight; beyond it, what the client sends waits on its side. Enough to
/// keep any model busy over one stream, and what a stream may make the server hold stays bounded.
pub const GRPC_MAX_STREAM_REQUESTS: usize = 1024;

/// Longest error text in bytes that leaves over HTTP: a long traceback of a model, and no body that a client sent.
pub const HTTP_MAX_ERROR_BYTES: usize = 64 * 1024;

/// Most numbered trace files of a server: a client that may change the settings has each trace written into one. For a
/// further one the oldest is removed.
pub const TRACE_MAX_FILES: u32 = 1000;

/// Longest error text in bytes, escaped, that leaves as gRPC metadata: clients refuse metadata beyond 8 KiB by default.
pub const GRPC_MAX_STATUS_BYTES: usize = 4096;

/// Longest id of a sequence in bytes, where it is a text: ids are kept as long as their sequences live. Source: Triton.
pub const SEQUENCE_ID_MAX_BYTES: usize = 128;

/// Most elements of an output of which the best classes are given. Source: Triton refuses to sort more.
pub const CLASSIFICATION_MAX_ELEMENTS: usize = 1_000_000;

/// Most requests that one body of the V1 protocol becomes, where it has more instances than its model takes at once:
/// ten thousand instances of a model that takes one pass, and nobody has the server hold millions of answers at a time.
pub const PREDICT_MAX_REQUESTS: usize = 16 * 1024;

/// How many of them wait for the model at a time: enough to keep its instances busy, and few beside what others send.
pub const PREDICT_REQUESTS_AT_ONCE: usize = 32;

/// Most attributes of a CloudEvent that its answer repeats, where `CE_MERGE` is `true`: CloudEvents names ten, and
/// those who add some of their own add few.
pub const CLOUD_EVENT_MAX_ATTRIBUTES: usize = 64;

/// Most bytes of a refused body that are taken off a connection so that its client can read the refusal.
pub const HTTP_DISCARD_BYTES: usize = 1 << 26;

/// Longest time that is spent on it.
pub const HTTP_DISCARD_TIME: Duration = Duration::from_secs(10);

/// Most chunks of a chunked body that are small, that is smaller than the next limit on average: each costs the server
/// more than it brings. Source: Triton, which refuses more chunks of any size.
pub const HTTP_MAX_SMALL_CHUNKS: usize = 65_536;

/// Mean size in bytes from which the chunks of a body are not small: so many of them are the largest JSON body.
pub const HTTP_SMALL_CHUNK_BYTES: usize = 1024;

/// Most bodies and messages that are expanded, read or compressed beside the network threads at a time. The others wait
/// for their turn: clients that send nothing else take neither all cores nor all memory.
pub const OFFLOADED_AT_A_TIME: usize = 4;

/// Longest compressed body that a network thread expands itself: at most a thousand times as much comes out of it,
/// which takes two milliseconds.
pub const HTTP_EXPAND_AT_ONCE_BYTES: usize = 1 << 10;

/// Longest answer that a network thread compresses itself: that takes a fraction of a millisecond.
pub const HTTP_COMPRESS_AT_ONCE_BYTES: usize = 1 << 15;

/// Shortest answer to a call that is compressed: gzip adds 20 bytes, so that a shorter one hardly becomes smaller.
pub const CALL_COMPRESS_FROM_BYTES: usize = 256;

/// Longest text in bytes of the headers that a model gives the response to a call: as much as a request may bring, and
/// more than most clients and proxies take.
pub const CALL_MAX_HEADER_BYTES: usize = 64 * 1024;

/// Most headers of a request (`--max-header-count`): proxies and tracing add a few dozen. Source: what HTTP libraries
/// take by default.
pub const HTTP_MAX_HEADERS: usize = 100;

/// Longest time that a new connection, or a head of which something has come, may take to become a request
/// (`--header-timeout-secs`): a byte every now and then would hold a connection for good otherwise.
pub const HEADER_TIME: Duration = Duration::from_secs(30);

/// Longest time that a connection is kept between requests (`--idle-timeout-secs`): longer than any load balancer keeps
/// its own, so that none sends into a connection that has just been closed.
pub const IDLE_TIME: Duration = Duration::from_secs(3600);

/// Time from the signal to stop until a connection without a request is closed (`--exit-grace-secs`): enough for
/// clients that call all the time to be told with an answer that their connection ends.
pub const EXIT_GRACE: Duration = Duration::from_millis(500);

/// Longest time in which a body, or the reader of an answer, may make next to no progress (`--stall-timeout-secs`).
pub const STALL_TIME: Duration = Duration::from_secs(60);

/// Bytes of a body that have to come in that time, unless it ends: what a modem brings in a second.
pub const STALL_BYTES: usize = 4096;

/// Frames of HTTP/2 that cost the server something and bring it nothing, a second, that one connection may send on
/// average (`--http2-max-control-frames`): calls withdrawn before they were served, and pings, settings, window
/// updates, empty data and frames of any other kind for which nothing pays. Proxies that withdraw calls as a habit stay
/// below, and a flood is cut off before it costs a core. Source: nghttp2 takes 33 resets a second, of any call.
pub const HTTP2_CONTROL_FRAMES_PER_SECOND: u32 = 1000;

/// Seconds of that budget that may be spent at once: five thousand calls that a server whose cores are busy elsewhere
/// finds together with their resets. Calls that execute are not counted, however many somebody's Ctrl-C withdraws.
/// Source: nghttp2 takes 1,000 resets at once, Envoy 500.
pub const HTTP2_CONTROL_BURST_SECONDS: u32 = 5;

/// Frames of that budget that are charged before the clock is read: it is read rarely, and a flood is noticed soon.
pub const HTTP2_FRAMES_PER_SETTLEMENT: u32 = 64;

/// Frames that a call pays for when it begins, and its response when it does: a priority, a window update, a reset that
/// crosses with the answer.
pub const HTTP2_CREDIT_PER_HEAD: u32 = 2;

/// Frames that a frame of data sent to the client pays for: the window of the call and of the connection, and a ping.
/// Clients of Go ping after each frame of data that they receive while no other ping is out. Source: Envoy takes 20
/// window updates for each frame of data, and 2 for each call.
pub const HTTP2_CREDIT_PER_DATA: u32 = 3;

/// Bytes of data sent to the client that pay for one frame more: clients of gRPC open a window after each message of a
/// stream that they read, and a frame of data may hold a hundred messages of this size.
pub const HTTP2_BYTES_PER_CREDIT: usize = 64;

/// Fewest bytes of a frame of data that pays: a client that opens its window byte by byte pays for its own frames.
pub const HTTP2_PAYING_DATA_BYTES: usize = 32;

/// Frames that are paid for by a call that the server answers before its request has ended: what its client still sends
/// until it reads that.
pub const HTTP2_CREDIT_PER_EARLY_ANSWER: u32 = 8;

/// Most frames that are paid for in advance: what a client that reads 64 MiB at once may acknowledge late.
pub const HTTP2_MAX_CREDIT: u32 = 1 << 16;

/// Bytes of a frame that brings nothing that count as one frame more: they are read and thrown away.
pub const HTTP2_BYTES_PER_FRAME: usize = 4096;

/// Open calls of a client that count as one frame more where it changes its settings, which touches each of them.
pub const HTTP2_CALLS_PER_SETTINGS: u32 = 64;

/// Fewest bytes of a piece of a request's head, its last piece excepted, and of a frame of data for a call that has
/// ended, that is not counted: it carries as much as it costs.
pub const HTTP2_SMALL_PIECE_BYTES: usize = 1024;

/// Frames of data with fewer bytes are counted, the last one of a call excepted, unless larger frames make up for them:
/// any request is longer, and the prefix of a message, which some clients send by itself, comes with its message.
pub const HTTP2_SMALL_DATA_BYTES: usize = 16;

/// Most bytes of larger frames that make up for small ones later: some thousand prefixes.
pub const HTTP2_DATA_CREDIT_BYTES: usize = 64 * 1024;

/// Frames of HTTP/2 that one connection may bring before others on its thread have their turn: some hundred calls,
/// about a millisecond's work.
pub const HTTP2_FRAMES_PER_QUANTUM: u32 = 512;

/// Frames of HTTP/2 that a connection which owes more than `HTTP2_FRAMES_ON_TRUST` frames may bring in a turn: a few
/// calls. Of these connections one has its turn in each `HTTP2_DEBTOR_INTERVAL`, so that floods take a tenth of a core
/// of each network thread, and others wait for a fraction of a millisecond, however many flood.
pub const HTTP2_FRAMES_PER_SMALL_QUANTUM: u32 = 32;

/// Time between two such turns on a network thread.
pub const HTTP2_DEBTOR_INTERVAL: Duration = Duration::from_millis(1);

/// Frames of the budget that a connection may owe before it takes turns with others that do.
pub const HTTP2_FRAMES_ON_TRUST: u32 = 128;

/// How long an address is on probation after a connection of it was closed for a flood: its new connections have full
/// budgets again when it has kept quiet for a minute.
pub const FLOOD_PROBATION_TIME: Duration = Duration::from_secs(60);

/// What a connection of such an address may send on average beside the shared budget: this part of the limit, ten
/// frames a second by default, so that a client which withdraws a call now and then does not pay for others.
pub const FLOOD_HABIT_SHARE: u32 = 100;

/// Frames that a connection of such an address may bring before its budget is looked at, and before it takes turns: its
/// settings, and a few calls that it withdraws.
pub const HTTP2_FRAMES_ON_PROBATION: u32 = 8;

/// Most addresses on probation; the one that would be free first gives way.
pub const FLOOD_MAX_ADDRESSES: usize = 4096;

/// How long a connection that floods is held, unread, before it is closed: a client that connects again at once would
/// else flood on.
pub const FLOOD_HOLD_TIME: Duration = Duration::from_secs(1);

/// Most connections that are held at a time; further ones are closed at once.
pub const FLOOD_MAX_HELD: usize = 256;

/// Longest turn of a network thread that nobody hears of. Each is far shorter by design; a longer one, during which
/// nobody else on the thread is served, is counted and logged.
pub const TURN_TIME: Duration = Duration::from_millis(250);

/// Most processor time of one turn of a network thread, where turns are measured in it (`--turn-clock=cpu`): a turn may
/// not cost more on a slow machine, however large the request is.
pub const TURN_CPU_TIME: Duration = Duration::from_millis(20);

/// Most bytes that a connection receives and sends before others on its thread have their turn: a fast client could
/// else keep the thread for as long as its tensor is large. The copies take a millisecond, and some where they are the
/// first to touch the memory.
pub const TURN_BYTES: usize = 2 << 20;

/// Most bytes that a connection receives and sends in each further turn, where it had more to move than fits into one
/// turn: several such connections share a thread, and a small request waits for a turn of each, more than once.
pub const FURTHER_TURN_BYTES: usize = 128 << 10;

/// Most connections that a network thread takes on in a turn. Each has its first turn right behind, which reads its
/// first request: of 1,500 that came at once, others on the thread waited for all of them, some 40 ms.
pub const CONNECTIONS_PER_TURN: usize = 16;

/// Most bytes of a body that a network thread copies when it needs more room for the rest.
pub const MOVED_AT_ONCE_BYTES: usize = 2 << 20;

/// Most bytes that a network thread copies to a worker as one batch, or of one answer into memory that a client shares.
pub const COPIED_AT_ONCE_BYTES: usize = 1 << 20;

/// Most bytes of a request that a network thread looks through itself: words, whose lengths stand among them, and
/// everything that is compared with requests whose answers are kept.
pub const CHECKED_AT_ONCE_BYTES: usize = 512 << 10;

/// Most bytes of an answer that a network thread turns into JSON or classes itself.
pub const WRITTEN_AT_ONCE_BYTES: usize = 256 << 10;

/// Largest tensor in bytes whose memory a network thread gives back to the system itself.
pub const FREED_HERE_BYTES: usize = 4 << 20;

/// Most model versions of which a network thread writes metrics or statistics itself.
pub const VERSIONS_AT_ONCE: usize = 16;

/// Largest piece of an answer that the HTTP/2 library is given at once: this much has to be taken in the stall time,
/// four kibibytes a second by default.
pub const HTTP2_PIECE_BYTES: usize = 256 * 1024;

/// Largest last piece of an answer: what a client may leave with the HTTP/2 library once the call is over.
pub const HTTP2_LAST_PIECE_BYTES: usize = 4096;

/// Time between two pings of a client without calls that gRPC asks for (`--grpc-keepalive-permit-without-calls`).
/// Source: gRPC, after RFC 1122.
pub const GRPC_IDLE_PING_TIME: Duration = Duration::from_secs(7200);

/// Most connections to the metrics endpoint: scrapers are few, and they must connect while the other endpoints are
/// full. One more takes the place of the oldest that is idle.
pub const METRICS_MAX_CONNECTIONS: usize = 128;

/// Longest time that a connection to the metrics endpoint is kept between requests, where `--idle-timeout-secs` is not
/// shorter: longer than a minute, at which most scrapers come again.
pub const METRICS_IDLE_TIME: Duration = Duration::from_secs(75);

/// Memory that a connection may take before its requests are charged, in bytes: twice the largest head. As many
/// connections are admitted as fit into a quarter of the memory (`--max-connections`).
pub const CONNECTION_BYTES: u64 = 128 << 10;

/// Most connections at a time that wait for their clients to read that there are too many.
pub const REFUSALS_AT_A_TIME: usize = 256;

/// Longest time that is spent on it.
pub const REFUSAL_TIME: Duration = Duration::from_secs(1);

/// Most calls that were withdrawn before anybody looked at them, at a time: a server whose cores are busy elsewhere
/// finds all the resets of such a Ctrl-C at once. Floods are cut off by the budget above.
pub const HTTP2_MAX_RESETS_AT_ONCE: usize = 1 << 14;

/// Most regions of shared memory that clients may have registered at a time: some hundred clients with a region for
/// each input and output, while what a client that forgets its regions can pile up stays bounded
/// (`--shared-memory-max-regions`).
pub const REGIONS_MAX: usize = 4096;

/// Most regions of all servers of a process together, and so the largest value of that flag: a table of fixed size,
/// since the handler that looks into it can wait for nobody.
pub const REGION_MAX_WATCHED: usize = 65_536;

/// Longest name of a region in bytes: names come back in status answers.
pub const REGION_MAX_NAME_BYTES: usize = 1024;

/// Largest input in a region in bytes, as in a message: a region costs its client nothing until somebody reads it, so
/// it may claim to be as large as the address space.
pub const REGION_MAX_TENSOR_BYTES: usize = i32::MAX as usize;

/// Largest input of a warm-up sample in bytes, as in a message: a few words of a configuration would else fill the
/// memory.
pub const WARMUP_MAX_TENSOR_BYTES: usize = i32::MAX as usize;

/// Most requests of a sample that are executed together: as many as a worker process may hold.
pub const WARMUP_MAX_BATCH: u32 = 4096;

/// Most executions of a sample: a load that takes for ever keeps others waiting, and a model is warm long before.
pub const WARMUP_MAX_COUNT: u32 = 100_000;

/// Most live sequences of a model whose state the server keeps (`--streaming-max-sequences`): each holds that state
/// until it ends or goes silent, and a client that can start a sequence can start many.
pub const STREAMING_MAX_SEQUENCES: usize = 10_000;

/// Longest `tracestate` header in bytes that is kept with a traced request; of a longer one nothing is. Source: what
/// W3C Trace Context asks to be passed on at least.
pub const TRACESTATE_MAX_BYTES: usize = 512;

/// Most bytes of a collector's answer to spans that are read: it says hardly anything.
pub const COLLECTOR_MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Longest time that a collector may take to answer. Source: OTLP's exporters.
pub const COLLECTOR_TIME: Duration = Duration::from_secs(10);

/// Largest body in bytes that is not counted among the bytes in flight: what a request costs besides is as much.
pub const BUDGET_FREE_BYTES: u64 = 4 << 10;

/// Largest body in bytes that may use all of the bytes in flight; larger ones leave an eighth for those that are not,
/// so that small requests pass while large ones are refused.
pub const BUDGET_LARGE_BYTES: u64 = 1 << 18;

/// Most bytes that wait to be sent on a stream of a client before who sends more has to wait: some hundred updates of a
/// detector, enough to keep a connection busy while the sender is elsewhere.
pub const CLIENT_OUTBOX_BYTES: usize = 4 << 20;

/// Most bytes of responses that a client holds until the program receives them; then the server is made to wait.
pub const CLIENT_INBOX_BYTES: usize = 64 << 20;

/// Window of HTTP/2 that a client opens, for a call and for a connection: a round trip of a long line stays filled, and
/// what lies unread is bounded by it.
pub const CLIENT_WINDOW_BYTES: u32 = 16 << 20;

/// Largest frame of HTTP/2 that a client takes: a picture of 3x224x224 FP32 comes in one.
pub const CLIENT_FRAME_BYTES: u32 = 1 << 20;

/// Withdrawn calls of which a client remembers for a second that an answer may still come; later frames of others are
/// answered with a reset each.
pub const CLIENT_WITHDRAWN_CALLS: usize = 1024;

/// Most bytes that a client hands to the HTTP/2 library before they have left.
pub const CLIENT_SEND_BUFFER_BYTES: usize = 1 << 20;

/// How long a call of an ensemble's step waits for room where `max_inflight_requests` bounds them; then it goes on
/// without, so that calls that never end do not hold up all others. Source: Triton waits as long.
pub const ENSEMBLE_STEP_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a worker that executes nothing may leave a request unclaimed; then its process is ended and another one
/// started. Long enough that no load of the machine gets there. An execution may take as long as it takes.
pub const WORKER_SILENCE: Duration = Duration::from_secs(30);

/// Longest body of an answer that a client takes over HTTP.
pub const CLIENT_MAX_BODY_BYTES: usize = i32::MAX as usize;

/// Longest body that a client receives together with its head; a longer one gets memory of its own, with its first
/// tensor aligned.
pub const CLIENT_SMALL_BODY_BYTES: usize = 16 * 1024;

/// How long a client's connection lives on when the other machine acknowledges nothing: a network may fail for some
/// seconds.
pub const CLIENT_SILENCE: Duration = Duration::from_secs(80);

/// Most connections that a client keeps for threads that may call again.
pub const CLIENT_MAX_IDLE_CONNECTIONS: usize = 64;

/// Most connections that calls of an asynchronous client are spread over, over HTTP; further calls wait for one.
pub const CLIENT_MAX_HTTP_CONNECTIONS: usize = 16;

/// Longest id of a request that is taken from a header, in bytes: every id that proxies make is shorter.
pub const REQUEST_ID_BYTES: usize = 128;

/// Longest text of a client, such as a path, in the log's line about its request, in bytes. A head may be far longer,
/// and thousands of lines can wait for the log.
pub const LOG_FIELD_BYTES: usize = 512;

/// Most rows of models on the page for browsers: it stays below a megabyte, and the index has all of them.
pub const PAGE_MAX_ROWS: usize = 1000;

/// Longest reason on the page for browsers, in bytes. A traceback has a tenth of that.
pub const PAGE_REASON_BYTES: usize = 16 * 1024;

/// Longest side of a picture in pixels, also on its way to another size. Source: JPEG, whose sizes have 16 bits; the
/// tables for a row that is resized stay small.
pub const PICTURE_MAX_SIDE: u32 = 65_535;
