"""The Python backend beside Triton's: the same `model.py` files, out of the same folder."""

from bench.fleet import ALIPES
from bench.load.h2load import Streams
from bench.models.python_models import BATCH, RESPONSES, WIDTH
from bench.rows.busy import BusyLiveRow, BusyRow
from bench.rows.contenders import HYPER, TONIC, TRITON, beside
from bench.rows.killed import KilledRequestsRow, KilledRow
from bench.rows.load import LATENCY_PIECES, MEDIAN, RATE, RESPONSE_RATE, LoadRow
from bench.rows.row import Better, Facts, Row, Target
from bench.work import BINARY, GRPC, STREAM, Work, work

FLOATS = f"Python identity of {WIDTH:,} floats"
BATCHED = f"{FLOATS}, batches of up to {BATCH}, gRPC, 8 connections x 8 streams"
IMAGE = "3x224x224 FP32, HTTP binary, 4 connections, Python"
CHAIN = "Python model that calls a second that calls a third"
ONE = Streams(1, 1)


def python_rows() -> list[Row]:
    """All rows of Python models."""
    identity, batched, chain = work("identity", BINARY), work("identity_batched", GRPC), work("first", BINARY)
    pixels, pixels_twice = work("pixels", BINARY), work("pixels_twice", BINARY)
    return [
        _rate("identity", f"{FLOATS}, HTTP binary, 16 connections", identity, Streams(16, 1), 4),
        _rate("identity_32", f"{FLOATS}, HTTP binary, 32 connections", identity, Streams(32, 1), 4),
        _rate("identity_grpc", BATCHED, batched, Streams(8, 8), 4),
        _latency("identity_latency", f"{FLOATS}, HTTP binary, 1 connection", identity, 0.7),
        _rate("pixels", f"{IMAGE} identity", pixels, Streams(4, 1), 2),
        _rate("pixels_twice", f"{IMAGE} times two", pixels_twice, Streams(4, 1), 2),
        _decoupled(),
        _rate("chain", f"{CHAIN}, HTTP binary, 16 connections", chain, Streams(16, 1), 3),
        _latency("chain_latency", f"{CHAIN}, HTTP binary, 1 connection", chain, 0.33),
        KilledRow(),
        KilledRequestsRow(),
        BusyRow(),
        BusyLiveRow(),
    ]


def _rate(name: str, title: str, piece: Work, streams: Streams, bound: float) -> Row:
    floor = TONIC if piece.is_grpc else HYPER
    targets = (Target(ALIPES, TRITON, bound), Target(ALIPES, floor))
    return LoadRow(Facts(name, title, RATE, Better.MORE, targets), beside(piece, floor, triton=TRITON), streams)


def _latency(name: str, title: str, piece: Work, bound: float) -> Row:
    targets = (Target(ALIPES, TRITON, bound), Target(ALIPES, HYPER))
    facts = Facts(name, title, MEDIAN, Better.LESS, targets, pieces=LATENCY_PIECES)
    return LoadRow(facts, beside(piece, HYPER, triton=TRITON), ONE)


def _decoupled() -> Row:
    """The floor says what the load tool can take, which is not to be the limit.

    One request at a time, since Triton is fastest so: 6,200 responses/s against 5,800 with two under way and 5,300 with
    eight (medians of two rounds on two busy cores).
    """
    title = f"Decoupled Python model, {RESPONSES} responses a request, 1 gRPC stream, one request after the other"
    targets = (Target(ALIPES, TRITON, 3), Target(ALIPES, TONIC))
    facts = Facts("decoupled", title, RESPONSE_RATE, Better.MORE, targets)
    return LoadRow(facts, beside(work("counts", STREAM), TONIC, triton=TRITON), ONE)
