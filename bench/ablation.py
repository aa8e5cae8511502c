"""What a piece of alipes brings: builds with and without it, side by side in one run.

    python -m bench.ablation with=FOLDER without=FOLDER[,NAME=VALUE...] --on http_json,grpc [--rounds 9] [--seconds 2]

A folder holds the package `alipes` of one build, for example an unpacked wheel; further settings are environment
variables of that contender. Everything is divided by the first contender, round by round; the order of the contenders
turns round with each round. Answers are compared with the model's own before the first round and after the last.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.load import calls, h2load, wrk
from bench.load.h2load import Streams
from bench.models.repository import repository
from bench.servers import alipes, caching
from bench.servers.endpoint import Endpoint
from bench.work import BINARY, GRPC, JSON, JSON_DOUBLES, Work, work

IN_FLIGHT = 64


@dataclass(frozen=True)
class Contender:
    """A build, and the environment in which it runs."""

    name: str
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Load:
    """A server of each contender under the load of a tool."""

    work: Work
    streams: Streams
    cached: bool = False


@dataclass(frozen=True)
class Calls:
    """A Python client of each contender, all against a server of the first one."""

    work: Work
    client: str
    in_flight: int = 1


MLP, IMAGE, IDENTITY = "mlp", "image", "identity"
ROWS: dict[str, Load | Calls] = {
    "http_json": Load(work(MLP, JSON), Streams(64, 1)),
    "http_json_1": Load(work(MLP, JSON), Streams(1, 1)),
    "http_json_cached": Load(work(MLP, JSON), Streams(64, 1), cached=True),
    "http_binary_cached": Load(work(MLP, BINARY), Streams(64, 1), cached=True),
    "image": Load(work(IMAGE, BINARY), Streams(4, 1)),
    "image_json": Load(work(IMAGE, JSON), Streams(4, 1)),
    "image_json_doubles": Load(work(IMAGE, JSON_DOUBLES), Streams(4, 1)),
    "image_json_cached": Load(work(IMAGE, JSON), Streams(4, 1), cached=True),
    "image_cached": Load(work(IMAGE, BINARY), Streams(4, 1), cached=True),
    "python": Load(work(IDENTITY, BINARY), Streams(64, 1)),
    "python_1": Load(work(IDENTITY, BINARY), Streams(1, 1)),
    "grpc": Load(work(MLP, GRPC), Streams(8, 8)),
    "grpc_1": Load(work(MLP, GRPC), Streams(1, 1)),
    "client_grpc": Calls(work(MLP, GRPC), "grpc"),
    "client_grpc_image": Calls(work(IMAGE, GRPC), "grpc"),
    "client_grpc_64": Calls(work(MLP, GRPC), "grpc", IN_FLIGHT),
    "client_http": Calls(work(MLP, BINARY), "http"),
    "client_http_image": Calls(work(IMAGE, BINARY), "http"),
    "client_http_64": Calls(work(MLP, BINARY), "http", IN_FLIGHT),
}

#: Requests in a second, and microseconds of the processors for one: of the server, or of the client that calls.
Figures = dict[str, float]


def main() -> None:
    """Measures what the command line names, and prints a line for each row and contender."""
    options = _parser().parse_args()
    contenders = [_contender(text) for text in options.contenders]
    for contender in contenders:
        _check(contender)
    print("| row | contender | requests/s | rate against the first (quartiles; all) | processor time, likewise |")
    print("|---|---|---:|---:|---:|", flush=True)
    for name in options.on.split(","):
        _row(name, contenders, options.rounds, options.seconds)


def _row(name: str, contenders: Sequence[Contender], rounds: int, seconds: float) -> None:
    row = ROWS[name]
    with ExitStack() as stack:
        endpoints = _endpoints(stack, row, contenders)
        sizes = [endpoint.check(row.work) for endpoint in endpoints]
        measures = [_measure(row, *each) for each in zip(contenders, endpoints, sizes, strict=True)]
        for measure in measures:
            measure(min(1.0, seconds))
        taken: list[list[Figures]] = [[] for _ in contenders]
        for number in range(rounds):
            order = range(len(contenders)) if number % 2 == 0 else reversed(range(len(contenders)))
            for index in order:
                taken[index].append(measures[index](seconds))
        for endpoint in endpoints:
            endpoint.check(row.work)
    for contender, figures in zip(contenders, taken, strict=True):
        rates = f"{statistics.median(each['rate'] for each in figures):,.0f}"
        ratios = " | ".join(_ratios(figures, taken[0], key) for key in ("rate", "cpu_us"))
        print(f"| {name} | {contender.name} | {rates} | {ratios} |", flush=True)


def _ratios(figures: Sequence[Figures], first: Sequence[Figures], key: str) -> str:
    """Median, quartiles and range of the ratios within a round."""
    ratios = [own[key] / other[key] for own, other in zip(figures, first, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return f"{middle:.2f} ({low:.2f} to {high:.2f}; all {min(ratios):.2f} to {max(ratios):.2f})"


def _endpoints(stack: ExitStack, row: Load | Calls, contenders: Sequence[Contender]) -> list[Endpoint]:
    if isinstance(row, Load):
        return [_server(stack, row, contender) for contender in contenders]
    return [_server(stack, row, contenders[0])] * len(contenders)


def _server(stack: ExitStack, row: Load | Calls, contender: Contender) -> Endpoint:
    start = caching.start if isinstance(row, Load) and row.cached else alipes.start
    folder, name = repository(row.work.model.name), f"ablation_{contender.name}"
    endpoint = start(folder, name, environment=contender.environment)
    stack.enter_context(endpoint.process)
    return endpoint


def _measure(row: Load | Calls, contender: Contender, endpoint: Endpoint, size: int) -> Callable[[float], Figures]:
    port = endpoint.port(row.work)

    def called(seconds: float) -> Figures:
        assert isinstance(row, Calls)
        model = row.work.model
        what = [f"{row.client}://127.0.0.1:{port}", model.name, row.in_flight, seconds, *model.input_shape]
        return calls.figures("bench.load.checked_calls", what, seconds, contender.environment)

    def loaded(seconds: float) -> Figures:
        assert isinstance(row, Load)
        before_s = endpoint.process.cpu_seconds()
        if row.work.is_grpc:
            measurement = h2load.post(port, row.work, row.streams, seconds, size, latency=False)
        else:
            measurement = wrk.post(port, row.work, row.streams.connections, seconds)
        used_s = endpoint.process.cpu_seconds() - before_s
        return {"rate": measurement.rate, "cpu_us": used_s / measurement.requests * 1e6}

    return called if isinstance(row, Calls) else loaded


def _contender(text: str) -> Contender:
    name, _, rest = text.partition("=")
    folder, *settings = rest.split(",")
    variables = dict(setting.split("=", 1) for setting in settings)
    return Contender(name, {"PYTHONPATH": str(Path(folder).resolve()), **variables})


def _check(contender: Contender) -> None:
    """Ends the run where another alipes would be measured than the one in the folder."""
    command = [sys.executable, "-c", "import alipes._core; print(alipes._core.__file__)"]
    environment = {**os.environ, **contender.environment}
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()
    if not found.startswith(contender.environment["PYTHONPATH"]):
        sys.exit(f"{contender.name}: {found} is not in {contender.environment['PYTHONPATH']}")
    print(json.dumps({contender.name: found}), file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.ablation", description=__doc__)
    parser.add_argument("contenders", nargs="+", help="NAME=FOLDER[,VARIABLE=VALUE...]")
    parser.add_argument("--on", required=True, help=f"rows, separated by commas: {', '.join(ROWS)}")
    parser.add_argument("--rounds", type=int, default=9, help="rounds (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=2.0, help="time of a contender in a round (%(default)s)")
    return parser


if __name__ == "__main__":
    main()
