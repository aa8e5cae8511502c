"""The table: what is measured, with which contenders, and what alipes must reach."""

from bench.fleet import ALIPES, CACHING, ENCRYPTED, FLOOR
from bench.load.h2load import Streams
from bench.rows.app_start import AppStartRow
from bench.rows.batch_runs import batch_rows
from bench.rows.books import BooksRow
from bench.rows.calls import calls_rows
from bench.rows.contenders import FASTAPI, HYPER, MOSEC, TONIC, TRITON, beside
from bench.rows.conv import ConvRow
from bench.rows.exports import export_rows
from bench.rows.forests import ForestRow
from bench.rows.framework_conv import framework_conv_rows
from bench.rows.functions import function_rows
from bench.rows.graphs import GraphRow
from bench.rows.idle import IdleMemoryRow, IdleRow
from bench.rows.kserve import kserve_rows
from bench.rows.lateness import lateness_rows
from bench.rows.listed import ListedRow
from bench.rows.load import LATENCY_PIECES, MEDIAN, RATE, Contender, LoadRow
from bench.rows.many import ManyMemoryRow, ManyRow
from bench.rows.payloads import PayloadCostRow, PayloadLatencyRow
from bench.rows.pictures import pictures_rows
from bench.rows.priority import PriorityRow
from bench.rows.python import python_rows
from bench.rows.reload import ReloadRow
from bench.rows.row import Better, Facts, Row, Target
from bench.rows.selftuning import self_tuning_rows
from bench.rows.sentences import sentence_rows
from bench.rows.several import several_rows
from bench.rows.shadow import ShadowRow
from bench.rows.shared import SharedRow
from bench.rows.slow import SlowRow
from bench.rows.start import MemoryRow, StartRow
from bench.rows.streaming import streaming_rows
from bench.rows.testers import tester_rows
from bench.rows.torchscript import TorchscriptRow
from bench.rows.updates import updates_rows
from bench.work import BINARY, GRPC, JSON, JSON_DOUBLES, STREAM_ONE, work

IMAGE = "3x224x224 FP32"
#: One thread of h2load cannot write images as fast as the floor reads them.
IMAGE_STREAMS = Streams(4, 1, tool_threads=2)


def rows(soak_requests: int) -> list[Row]:
    """All rows, in the order of the table.

    Args:
        soak_requests: Requests that the memory row answers.
    """
    return [
        _http_json(),
        _http_json_latency(),
        _http_json_tls(),
        _http_json_cached(),
        _grpc(),
        _grpc_latency(),
        _grpc_stream(),
        _image(),
        _image_grpc(),
        _image_json(),
        SharedRow(),
        ConvRow(),
        ShadowRow(),
        SlowRow(),
        BooksRow(),
        IdleRow(),
        IdleMemoryRow(),
        StartRow(),
        MemoryRow(soak_requests),
        PriorityRow(),
        ReloadRow(),
        ManyRow(),
        ManyMemoryRow(),
        ListedRow(),
        PayloadCostRow(),
        PayloadLatencyRow(),
        *python_rows(),
        *pictures_rows(),
        *streaming_rows(),
        *updates_rows(),
        *calls_rows(),
        *several_rows(),
        *batch_rows(),
        GraphRow(),
        *export_rows(),
        *sentence_rows(),
        *function_rows(),
        AppStartRow(),
        TorchscriptRow(),
        *framework_conv_rows(),
        ForestRow(),
        *kserve_rows(),
        *tester_rows(),
        *lateness_rows(),
        *self_tuning_rows(),
    ]


def _http_json() -> Row:
    mlp = work("mlp", JSON)
    targets = (
        Target(ALIPES, HYPER, 0.5),
        Target(ALIPES, MOSEC, 5),
        Target(ALIPES, FASTAPI, 25),
        Target(ALIPES, TRITON),
    )
    facts = Facts("http_json", "HTTP JSON, 64 connections", RATE, Better.MORE, targets)
    return LoadRow(facts, beside(mlp, HYPER, mosec=MOSEC, fastapi=FASTAPI, triton=TRITON), Streams(64, 1))


def _http_json_latency() -> Row:
    mlp = work("mlp", JSON)
    targets = (Target(ALIPES, HYPER, 1.8), Target(ALIPES, MOSEC), Target(ALIPES, FASTAPI), Target(ALIPES, TRITON))
    facts = Facts("http_json_latency", "HTTP JSON, 1 connection", MEDIAN, Better.LESS, targets, pieces=LATENCY_PIECES)
    return LoadRow(facts, beside(mlp, HYPER, mosec=MOSEC, fastapi=FASTAPI, triton=TRITON), Streams(1, 1))


def _http_json_tls() -> Row:
    """What encryption costs requests on connections that stay: a quarter of the rate at most."""
    mlp = work("mlp", JSON)
    label = "alipes, TLS"
    facts = Facts("http_json_tls", "HTTP JSON, 64 connections, TLS", RATE, Better.MORE, (Target(label, ALIPES, 0.75),))
    contenders = (Contender(label, ENCRYPTED, mlp), Contender(ALIPES, ALIPES, mlp))
    return LoadRow(facts, contenders, Streams(64, 1))


def _http_json_cached() -> Row:
    """What is left to do where the model is not asked: to read a request, to find its answer and to write it."""
    mlp = work("mlp", JSON)
    label = "alipes, from the cache"
    targets = (Target(label, HYPER, 0.9), Target(label, ALIPES))
    facts = Facts("http_json_cached", "HTTP JSON, 64 connections, response cache", RATE, Better.MORE, targets)
    contenders = (Contender(label, CACHING, mlp), Contender(HYPER, FLOOR, mlp), Contender(ALIPES, ALIPES, mlp))
    return LoadRow(facts, contenders, Streams(64, 1))


def _grpc() -> Row:
    targets = (Target(ALIPES, TONIC, 0.65), Target(ALIPES, TRITON))
    facts = Facts("grpc", "gRPC, 8 connections x 8 streams", RATE, Better.MORE, targets)
    return LoadRow(facts, beside(work("mlp", GRPC), TONIC, triton=TRITON), Streams(8, 8))


def _grpc_latency() -> Row:
    targets = (Target(ALIPES, TONIC, 1.4), Target(ALIPES, TRITON))
    facts = Facts("grpc_latency", "gRPC, 1 connection x 1 stream", MEDIAN, Better.LESS, targets, pieces=LATENCY_PIECES)
    return LoadRow(facts, beside(work("mlp", GRPC), TONIC, triton=TRITON), Streams(1, 1))


def _grpc_stream() -> Row:
    """What a stream costs that many requests share, whose responses have to come in their order, against calls."""
    calls, stream = Streams(8, 8), Streams(1, 64)
    contenders = (
        Contender("alipes, stream", ALIPES, work("mlp", STREAM_ONE), stream),
        Contender("alipes, 8 x 8 calls", ALIPES, work("mlp", GRPC), calls),
    )
    targets = (Target("alipes, stream", "alipes, 8 x 8 calls", 0.8),)
    facts = Facts("grpc_stream", "gRPC, 1 stream with 64 requests in flight", RATE, Better.MORE, targets)
    return LoadRow(facts, contenders, calls)


def _image() -> Row:
    targets = (Target(ALIPES, HYPER, 0.55), Target(ALIPES, TRITON))
    facts = Facts("image", f"{IMAGE}, HTTP binary, 4 connections", RATE, Better.MORE, targets)
    return LoadRow(facts, beside(work("image", BINARY), HYPER, triton=TRITON), Streams(4, 1))


def _image_grpc() -> Row:
    targets = (Target(ALIPES, TONIC, 0.55), Target(ALIPES, TRITON))
    facts = Facts("image_grpc", f"{IMAGE}, gRPC, 4 connections", RATE, Better.MORE, targets)
    return LoadRow(facts, beside(work("image", GRPC), TONIC, triton=TRITON), IMAGE_STREAMS)


def _image_json() -> Row:
    """The question of the KFServing talk: what does a small image cost as JSON, against the same image as bytes?"""
    forms = {JSON: "JSON", JSON_DOUBLES: "JSON with float64 digits", BINARY: "binary"}
    contenders = [Contender(f"alipes, {title}", ALIPES, work("image", form)) for form, title in forms.items()]
    contenders += [
        Contender(f"Triton, {title}", "triton", work("image", form))
        for form, title in forms.items()
        if form != JSON_DOUBLES
    ]
    targets = (
        Target("alipes, JSON", "alipes, binary", 0.12),
        Target("alipes, JSON with float64 digits", "alipes, binary"),
        Target("Triton, JSON", "Triton, binary"),
        Target("alipes, JSON", "Triton, JSON"),
    )
    facts = Facts("image_json", f"{IMAGE}, JSON against binary, 4 connections", RATE, Better.MORE, targets)
    return LoadRow(facts, tuple(contenders), Streams(4, 1))
