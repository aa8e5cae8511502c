"""The published page: `docs/benchmarks.md` with its picture and its raw data."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bench.paths import DOCS
from bench.report import picture, raw
from bench.report.lines import MISSING, lines
from bench.report.run import Run
from bench.results import RowResult
from bench.rows.row import Facts

PAGE = DOCS / "benchmarks.md"
PICTURE = DOCS / "benchmarks.svg"
DATA = DOCS / "benchmarks.json"
VERDICTS = {True: "reached", False: "missed", None: MISSING}

HEAD = """\
# Benchmarks

<!-- Written by `make bench WRITE_DOCS=1`; the words live in bench/report/page.py. -->

This page compares alipes with three kinds of programs. One command starts all of them on one machine, sends them the
same requests and checks their responses:

- **floors**: tiny servers that read the whole request and send a fixed response, with the same libraries, the same
  network threads and the same compiler settings as alipes (`hyper` for HTTP, `tonic` for gRPC). No server
  that uses these libraries can be faster; the ratio is the cost of everything between the sockets;
- **peers** from the package registry, each in an environment of its own: BentoML, FastAPI, LitServe, MLServer, Mosec,
  TorchServe, and the real Triton of the `nvidia-pytriton` wheel, whose only backend is Python (where alipes runs a
  graph, Triton runs numpy);
- **the engine itself**: a bare loop of ONNX Runtime, PyTorch, OpenVINO or XGBoost.

Server and load tool share the machine, so only ratios within one run are meaningful: the programs are measured in turn
(A B C A B C …) and figures are divided within a round. Each line shows the median ratio, and in brackets the smallest
and the largest of the rounds. *CPU* is the processor time that the other program uses for a request, in multiples of
what alipes uses: it holds where a rate is limited by something else, such as the load tool.
"""

METHOD = """\
## What is sent

- The model is a perceptron 64-256-128-64-1 with one instance of one thread and dynamic batching, unless a row says
  otherwise; a request is one row of it. Before anything is measured, every server's answer is compared with
  ONNX Runtime's own.
- HTTP is measured with `wrk -t1`; gRPC with `h2load -t1`, for images `-t2`: one thread of it writes images more slowly
  than the floor reads them. A failed request, or a gRPC answer without a body, ends the run.
- The rate over TLS is that of the same requests on connections that stay, to a server of its own with a certificate on
  P-256 (TLS 1.3, which the load tool offers). The load tool encrypts on the same machine, so the ratio is the cost of
  both ends.
- Numbers in JSON have the digits that a float32 needs, as Python prints it (`0.49019608`); pixels are eight-bit values
  divided by 255. `json.dumps(array.tolist())` prints seventeen digits instead: the row with float64 digits.
- JSON against binary is the experiment of the KFServing talk of 2020, which sent 128 images of 3x224x224 both ways
  and found the binary form 17 times as fast.
- Batch runs (`batch_network`, `batch_small`) put eight clients, four for each of two servers, in front of files: one
  file of 64 rows under as many names as the seconds need. Their rate is that of the middle of a run, without the start
  of the clients. It is compared with what saturates both servers, which sends batches of the same size over HTTP, and
  for the small model with the loop of a talk, which sends eight rows a request to one server by `tritonclient`, without
  waiting. Every row of every answer is compared with the model's.
- The payload log (`payload_log`) sends 1 % of the requests and their responses to a sink on the same machine. The
  processor time of a request is compared with that of a server without a log, not the rate: the sink takes processors
  here that belong to another machine in production. With a dead sink (`payload_log_dead`) nothing listens at its
  address, and the 99th percentile of latency is compared with that without a log. Each figure is that of a server of
  its own.
- The shadow (`shadow`) is a second version with the same convolution net that gets copies of all requests. The rate
  of the first version is compared with its rate without a shadow, on the same server. Both versions compute the same
  on the same cores, so half of the rate pays for the shadow's own compute; the target allows a twentieth more. The
  raw data has how many copies were compared, and how many were dropped.
- The graph (`graph`) is a sequence of three models, each of which multiplies its input. `alipes graph` executes it with
  the models in its own process. KServe's own router executes the same graph with the same models, which a server of
  alipes behind it answers one after the other; the processor time of both counts. Both get the same V1 documents. The
  router is built by `make kube ARGS=kserve-router` and listens at port 8080 alone: without it the row shows alipes.
- Pairs (`kserve_pair`, `kserve_pair_rows`) are a transformer that adds one to its input and a predictor that doubles
  it, each a process of its own. Our transformer asks by tensors over gRPC, that of KServe's SDK by V1 in JSON, and by
  gRPC. Ours gets one document at a time in the first row; in the second it gets the rows of several requests at once.
  Clients send all of them the same instances, and the answers are compared with the right ones.
- The raw loop runs batches of the sizes, and in the proportions, that alipes formed in the same round.
- Functions are the files of `bench/apps` and `bench/peers`, one process of each peer, the peer's default settings but
  for the log of each request; the pages [From other servers](index.md#from-other-servers) show them. Every document is
  the same but BentoML's batch, which is an array of one row. The first answer of an app is timed from the command.
- Files of frameworks run on one thread, as their raw loops do, which repeat the batches of the same round. OpenVINO
  computes in FP32 in both, since bfloat16, where a processor has it, gives other numbers. TorchScript and XGBoost over
  gRPC are loaded by `alipes loadtest`, which uses as much of the two cores as `wrk`; `h2load` uses half as much again.
  The peers are asked over HTTP, so alipes is compared with Mosec over both.
- Pictures are the JPEG of 30 kB and 512 x 384 pixels of `examples/serving-lab`, whose `run.py` starts and measures its
  variants, and checks each answer. The lab's `model.py` and FastAPI pages get base64, the ensemble gets the file.
  Decoding is compared by CPU: that of the server for a request, and that of Pillow in a loop.
- Sentences are the 24 known questions of `examples/questions` and the 26 sentences of its `held_out.tsv`. The step
  alone is compared by CPU, as decoding is: that of the server for requests of all fifty as one batch, JSON in and out,
  and that of the package `tokenizers` in a loop, which encodes one text at a time and makes its two numpy arrays, as a
  `model.py` does. The step remembers words, so it finds here what it finds in the traffic of one shop: nearly all of
  them are known. Over HTTP, one sentence in a request, both forms pay for the request, and the rates show what is left.
- Python models are the same `model.py` and `config.pbtxt` for alipes and for Triton, out of the same folder
  (`bench/models/python`), one instance of each. A gRPC stream is read by a client of our own that compares every
  response and its place with what must come; the floor of that row says what this client can take.
- The worker is killed with SIGKILL by the process id that it answers; the time ends with the first answer that carries
  another one, and what the new worker's `initialize` took is subtracted. Each request is followed to its end.
- The busy Python model has one thread of work, so the fair share of the others is all cores but one.
- Streaming models take windows of 2 x 1,024 samples of FP32 that are 128 samples apart: the plain model is sent whole
  windows, the ensemble of a snapshotter, the same model and an averager what is new of them. Sequences take turns on a
  stream, on which 64 requests are under way; so are they for the ensemble of three steps, each of which gives back what
  it is given.
- The day is a minute of arrivals from a seed: one long text after the other at night, single users, pages that ask for
  twelve short texts at once. The model waits as long as a network on a processor of its own would compute, so ten of
  them fit on one machine: one with `tuning.objective_p99_ms`, nine with fixed delays and batches, the default among
  them. All are sent the same day at once over gRPC, shifted by 9 ms from one to the next, and answers are compared with
  the right ones. The day is judged in stretches of 2 s: the objective is kept where at most one of a hundred requests
  took longer, from the moment it was due. The best fixed setting is looked up afterwards, for each day anew, as nobody
  could choose it before.
- The lateness of an open loop is the time from the moment at which a request is due until the tester turns to it, at
  half of the rate that its closed loop has just reached. The timer loop (`bench/floors/src/bin/timer_floor.rs`) sleeps
  until the same moments and sends nothing, while another open loop loads the same server at the same rate, so that one
  program more shares the processors; and once more with nothing beside it. What is late is inside the latencies.
- Latencies of one connection depend on where the system puts two threads, and stay as they are for as long as the
  connection lives; so they are taken in many short pieces.

## Repeat it

```bash
make bench-tools                                  # installs wrk and h2load where they are missing (Debian, Ubuntu)
make bench                                        # everything; the first time it makes the peers' environments
make bench PEERS=none                             # alipes and the floors, some six minutes
make bench ROWS=http_json,grpc PEERS=mosec ROUNDS=3 SECONDS=2
make bench ROWS=memory SOAK=10000000              # ten million requests
make bench ROWS=selftuning,selftuning_rate ROUNDS=5   # five days, five minutes
make bench ROWS=payload_log,payload_log_dead,shadow,batch_network,batch_small PEERS=none
make bench ROWS=graph,kserve_pair,kserve_pair_rows PEERS=kserve   # the graph needs make kube ARGS=kserve-router
make bench WRITE_DOCS=1                           # this page
make bench ROWS=tokens WRITE_DOCS=1               # one row of it; the others stay, with their date
```

Raw data of each run is left in `bench/results`. `bench/profile.sh ROW` records where alipes and its
workers spend their time.

The wheel is that of `make wheel`. Those for an index are compiled with a profile of these rows besides, and faster:
`make guided`, and the build in `dist/guided` by ablation.

What a single piece of alipes brings is taken by ablation: two builds, with and without the piece, measured in one run.
`python -m bench.ablation` does it in the bench's environment, from folders with unpacked wheels. The figure stands
beside the piece, in the first comment of its module.
"""


def write(run: Run, table: Sequence[Facts]) -> Path:
    """Writes page, picture and raw data; rows of the table that the run left out stay as they were.

    Returns:
        The page.
    """
    if DATA.exists():
        run = raw.with_rows_of(DATA, run, table)
    PAGE.write_text(text(run))
    PICTURE.write_text(picture.svg(run))
    DATA.write_text(raw.text(run))
    return PAGE


def text(run: Run) -> str:
    """The page."""
    parts = [HEAD, "\n".join(_table(run)), f"![The figures as bars]({PICTURE.name})", _circumstances(run), METHOD]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _table(run: Run) -> Iterator[str]:
    yield "| work | alipes | compared with | found | CPU | to reach | |"
    yield "|---|---|---|---|---|---|---|"
    for result in run.results:
        for line in lines(result):
            found = (line.found, line.processor_time, line.to_reach)
            cells = (line.work, line.of, line.against, *found, VERDICTS[line.reached])
            yield f"| {' | '.join(cells)} |"


def _circumstances(run: Run) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in run.machine.items())
    plan = f"{run.plan.rounds} rounds of {run.plan.seconds:g} s for each contender"
    left_out = "".join(f" Left out: {name} ({reason.splitlines()[0]})." for name, reason in run.skipped.items())
    earlier = "".join(
        f" Taken on {date}: {'; '.join(titles)}." for date, titles in sorted(_earlier(run.results).items())
    )
    return f"Taken on {run.date[:10]}, {plan}. {machine}. [Raw data]({DATA.name}).{left_out}{earlier}"


def _earlier(results: Iterable[RowResult]) -> dict[str, list[str]]:
    """The titles of rows of earlier runs, by day."""
    found: dict[str, list[str]] = {}
    for result in results:
        if result.date:
            found.setdefault(result.date[:10], []).append(result.facts.title)
    return found
