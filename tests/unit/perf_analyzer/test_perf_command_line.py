"""A command line of perf_analyzer becomes settings, or the original's words about what is wrong with it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from alipes.compat.perf_analyzer import Exit, main
from alipes.compat.perf_analyzer.failures import Failed, OptionFailed
from alipes.compat.perf_analyzer.options import OPTIONS
from alipes.compat.perf_analyzer.parser import parse
from alipes.compat.perf_analyzer.reading import read_settings
from alipes.compat.perf_analyzer.settings import Load, Measuring, Reports, SentData, Settings, Target
from alipes.compat.perf_analyzer.usage import usage


def read(text: str) -> Settings:
    return read_settings(parse(shlex.split(text)))


def words(text: str) -> Sequence[tuple[str, str]]:
    return [(argument.option.name, argument.value) for argument in parse(shlex.split(text))]


def test_options_are_read_as_getopt_does() -> None:
    assert words("-m a -b2 -vaz --percentile=95 --shape x:1 rest -- -b 9") == [
        ("model", "a"),
        ("batch", "2"),
        ("verbose", ""),
        ("async", ""),
        ("zero", ""),
        ("percentile", "95"),
        ("shape", "x:1"),
    ]


def test_long_names_may_be_cut_short() -> None:
    assert words("--perc 95 --con 1") == [("percentile", "95"), ("concurrency-range", "1")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--nope", "unrecognized option '--nope'"),
        ("-j", "invalid option -- 'j'"),
        ("-b", "option requires an argument -- 'b'"),
        ("--percentile", "option '--percentile' requires an argument"),
        ("--sync=1", "option '--sync' doesn't allow an argument"),
        ("--ssl", "option '--ssl' is ambiguous"),
    ],
)
def test_what_is_no_option_is_named(text: str, message: str) -> None:
    with pytest.raises(OptionFailed, match=message) as caught:
        parse(shlex.split(text))
    assert caught.value.prefix == "perf_analyzer: "


def test_without_options_there_are_the_originals_defaults() -> None:
    settings = read("-m a")
    assert settings.target == Target("a", url="localhost:8000")
    assert settings.load == Load()
    assert settings.measuring == Measuring(5000, False, 50, 0, 0, 10.0, 10, None)
    assert settings.data == SentData()
    assert settings.reports == Reports()
    assert read("-m a -i gRPC").target.address == "grpc://localhost:8001"


def test_a_periodic_run_is_read() -> None:
    words = "--periodic-concurrency-range 1:9:2 --request-period 3 --streaming -i grpc --profile-export-file new.json"
    assert read(f"-m a {words}").load == Load("periodic", 1, 9, 2, is_range=True, streaming=True, period=3)


def test_a_count_of_no_requests_measures_in_windows() -> None:
    assert read("-m x --request-count 0 --concurrency-range 1:4").measuring == Measuring()


def test_trace_settings_have_the_servers_names() -> None:
    words = "--trace-file t.json --trace-level TIMESTAMPS --trace-level TENSORS --trace-rate 7 --trace-count -1"
    assert read(f"-m a {words} --log-frequency 2").trace == {
        "trace_file": ["t.json"],
        "trace_level": ["TIMESTAMPS", "TENSORS"],
        "trace_rate": ["7"],
        "trace_count": ["-1"],
        "log_frequency": ["2"],
    }
    assert read("-m a").trace == {}


def test_tensorflow_serving_has_a_port_of_its_own() -> None:
    target = read("-m a -i grpc --service-kind tfserving").target
    assert (target.url, target.signature) == ("localhost:8500", "serving_default")


def test_the_last_value_counts() -> None:
    assert read("-m a -b 1 -b 3 --percentile 90 --percentile=-1").data.batch == 3
    assert read("-m a --percentile 90 --percentile=-1").measuring.percentile is None


@pytest.mark.parametrize(
    ("text", "load"),
    [
        ("--concurrency-range 4", Load(start=4)),
        ("--concurrency-range 1:8:2", Load(start=1, end=8, step=2, is_range=True)),
        ("--request-rate-range 0.5:2", Load("request_rate", 0.5, 2, is_range=True)),
        ("--request-rate-range 9 --request-distribution poisson", Load("request_rate", 9, poisson=True)),
        ("-t 3", Load(start=3)),
        ("-d -c 4 -l 5", Load(end=4, is_range=True, latency_limit_ms=5)),
        (
            "--binary-search -l 5 --concurrency-range 1:4",
            Load(end=4, is_range=True, binary_search=True, latency_limit_ms=5),
        ),
    ],
)
def test_levels_are_read(text: str, load: Load) -> None:
    assert read(f"-m a {text}").load == load


def test_intervals_are_microseconds_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "intervals"
    file.write_text("1000\n3000\n")
    load = read(f"-m a --request-intervals {file}").load
    assert (load.mode, load.intervals_s, load.start) == ("intervals", (0.001, 0.003), 500)


def test_data_is_read(tmp_path: Path) -> None:
    settings = read(
        f"-m a -i grpc --shape x:1,2 --shape y.1:3 --request-parameter n:7:int --request-parameter f:true:bool "
        f"--input-data {tmp_path} --string-data abc -H a:b:c -H d:e"
    )
    assert settings.data.shapes == {"x": (1, 2), "y.1": (3,)}
    assert settings.data.parameters == {"n": 7, "f": True}
    assert settings.data.source == [tmp_path]
    assert settings.data.text == "abc"
    assert settings.target.headers == {"a": "b:c", "d": "e"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-b 0", "Failed to parse -b (batch size). The value must be > 0."),
        ("-b x", "Failed to parse -b. Invalid value provided: x"),
        ("--concurrency-range a:b", "Failed to parse --concurrency-range. Invalid value provided: a:b"),
        (
            "--concurrency-range 1:2:3:4",
            "Failed to parse --concurrency-range. The value does not match <start:end:step>.",
        ),
        ("--concurrency-range 0", "The start of the search range must be > 0"),
        (
            "--concurrency-range 1:0",
            "The end of the search range and the latency limit can not be both 0 (or 0.0) simultaneously",
        ),
        ("--request-rate-range 0", "Failed to parse --request-rate-range. The start of the search range must be > 0."),
        ("--request-rate-range nan", "Failed to parse --request-rate-range. Invalid value provided: nan"),
        ("--binary-search --concurrency-range 1:4", "The --latency-threshold cannot be 0 for binary search mode."),
        (
            "--binary-search --concurrency-range 4:1 -l 5",
            "The end of the range can not be less than start of the range for binary search mode.",
        ),
        ("-l -1", "Failed to parse --latency-threshold (-l). The value must be >= 0 msecs."),
        ("-p 0", "Failed to parse --measurement-interval (-p). The value must be > 0 msec."),
        ("-p x", "Failed to parse -p. Invalid value provided: x"),
        ("-s -1", "Failed to parse --stability-percentage (-s). The value must be >= 0.0."),
        ("-r 0", "Failed to parse --max-trials (-r). The value must be > 0."),
        ("-i foo", "Failed to parse -i (protocol). The value should be either HTTP or gRPC."),
        (
            "--measurement-mode foo",
            "Failed to parse --measurement-mode. Unsupported type provided: 'foo'. The available options are "
            "'time_windows' or 'count_windows'.",
        ),
        ("--measurement-request-count 0", "Failed to parse --measurement-request-count. The value must be > 0."),
        (
            "--request-distribution foo",
            "Failed to parse --request-distribution. Unsupported type provided: 'foo'. Choices are 'posson' or "
            "'constant'.",
        ),
        (
            "--shared-memory foo",
            "Failed to parse --shared-memory. Unsupported type provided: 'foo'. The available options are 'system', "
            "'cuda', or 'none'.",
        ),
        ("--output-shared-memory-size -1", "Failed to parse --output-shared-memory-size. The value must be >= 0."),
        ("--string-length 0", "Failed to parse --string-length. The value must be > 0"),
        (
            "--input-tensor-format foo",
            "Failed to parse --input-tensor-format. Unsupported type provided: 'foo'. The available options are "
            "'binary' or 'json'.",
        ),
        *(
            (
                f"--percentile {value}",
                "Failed to parse --percentile. The value must be -1 for not reporting or in range (0, 100).",
            )
            for value in ("0", "100", "101", "x")
        ),
        ("--streaming", "Streaming is only allowed with gRPC protocol."),
        (
            "--periodic-concurrency-range 5",
            "Failed to parse --periodic-concurrency-range. Both <start> and <end> values must be provided.",
        ),
        (
            "--periodic-concurrency-range 1:5:0",
            "Failed to parse --periodic-concurrency-range. The <step> value must be > 0.",
        ),
        (
            "--periodic-concurrency-range 5:1",
            "Failed to parse --periodic-concurrency-range. The <start> must be <= <end>.",
        ),
        (
            "--periodic-concurrency-range 100:400:7",
            "Failed to parse --periodic-concurrency-range. The <step> value must be a factor of the range size "
            "(<end> - <start>).",
        ),
        (
            "--periodic-concurrency-range 1:1000000",
            "Failed to parse --periodic-concurrency-range. The <end> must be <= 10000: each request has a stream of "
            "its own.",
        ),
        (
            "--periodic-concurrency-range 1:2.5",
            "Failed to parse --periodic-concurrency-range. Invalid value provided: 1:2.5",
        ),
        (
            "--periodic-concurrency-range 1:5 -i grpc",
            "The --periodic-concurrency-range option requires bi-directional gRPC streaming.",
        ),
        (
            "--periodic-concurrency-range 1:5 -i grpc --streaming",
            "Must provide --profile-export-file when using the --periodic-concurrency-range option.",
        ),
        ("--request-period 0", "Failed to parse --request-period. The value must be > 0"),
        (
            "-i grpc --grpc-compression-algorithm foo",
            "Failed to parse --grpc-compression-algorithm. Unsupported type provided: 'foo'. The available options are "
            "'gzip', 'deflate', or 'none'.",
        ),
        (
            "--trace-level foo",
            "Failed to parse --trace-level. Unsupported type provided: 'foo'. The available options are 'OFF', "
            "'TIMESTAMPS', or 'TENSORS'.",
        ),
        (
            "--trace-level OFF --trace-level TENSORS",
            "Failed to parse --trace-level. OFF cannot be combined with other levels.",
        ),
        ("--trace-rate -1", "Failed to parse --trace-rate. The value must be >= 0."),
        ("--trace-count -2", "Failed to parse --trace-count. The value must be >= -1."),
        ("-a --sync", "Cannot specify --async and --sync simultaneously."),
        ("--grpc-compression-algorithm gzip", "Using compression algorithm is only allowed with gRPC protocol."),
        ("--request-parameter a:1", "Failed to parse --request-parameter. The value does not match <name:value:type>."),
        ("--metrics-url foo", "Must specify --collect-metrics when using the --metrics-url option."),
        ("--metrics-interval 0", "Failed to parse --metrics-interval. The value must be > 0 msecs."),
        ("--max-threads 0", "Failed to parse --max-threads. The value must be > 0."),
        ("--num-of-sequences 0", "Failed to parse --num-of-sequences. The value must be > 0."),
        (
            "--sequence-id-range 5:1",
            "Failed to parse --sequence-id-range. The 'end' value must be greater than 'start' value.",
        ),
        ("--sequence-id-range 1:2:3", "Failed to parse --sequence-id-range. The value does not match <start:end>."),
        (
            "--sequence-length-variation -1",
            "Failed to parse --sequence-length-variation. The value must be >= 0.0.",
        ),
        ("--ssl-https-verify-peer 3", "Failed to parse --ssl-https-verify-peer. The value must be either 0 or 1."),
        ("--shape x", "Failed to parse --shape. There must be a colon after input name."),
        ("--shape x:a", "Failed to parse --shape. Invalid value provided: x:a"),
        ("--shape x:0", "Failed to parse --shape. The dimensions of input tensor must be > 0."),
        (
            "--input-data /no/such",
            "Failed to parse --input-data. Unsupported type provided: '/no/such'. The available options are 'zero', "
            "'random', path to a directory, or a json file.",
        ),
        ("--request-intervals /no/such", "Failed to parse --request-intervals. The value must be a valid file path"),
        ("--profile-export-file /dev/null", "Failed to parse --profile-export-file. Path must not already exist."),
        ("--request-rate-range 10 -t 2", "Cannot use concurrency options with --request-rate-range."),
        ("--request-count 5 --concurrency-range 8", "--request-count can not be less than concurrency"),
        (
            "--request-count 5 --concurrency-range 1:4",
            "--request-count not supported with multiple concurrency values in one run",
        ),
        ("-H nothing", "Failed to parse -H. The value does not match <name:value>."),
    ],
)
def test_a_wrong_option_is_answered_in_the_originals_words(text: str, message: str) -> None:
    with pytest.raises(OptionFailed) as caught:
        read(f"-m a {text}")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "--service-kind openai",
        "--service-kind triton_c_api",
        "--service-kind dynamic_grpc",
        "--enable-mpi",
        "--model-repository /models",
        "--session-concurrency 2",
        "--fixed-schedule",
    ],
)
def test_what_is_not_served_is_refused_by_name(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "a", *text.split()]) == Exit.OPTION == 3
    err = capsys.readouterr().err
    assert "is not served: " in err
    assert next(word for word in text.split() if word.startswith("--")) in err
    assert len(err.splitlines()) == 1


def test_a_file_of_intervals_has_to_hold_some(tmp_path: Path) -> None:
    file = tmp_path / "intervals"
    for text in ("", "0\n", "-1\n", "soon\n"):
        file.write_text(text)
        with pytest.raises(OptionFailed, match="microseconds"):
            read(f"-m a --request-intervals {file}")


def test_the_usage_lists_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert text.strip() == usage().strip()
    assert [option.name for option in OPTIONS if option.shown not in text] == []
    assert [line for line in text.splitlines() if len(line.expandtabs()) > 80] == []


def test_a_wrong_command_line_is_followed_by_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "a", "--nope"]) == Exit.GENERIC == 99
    err = capsys.readouterr().err.splitlines()
    assert err[:2] == ["perf_analyzer: unrecognized option '--nope'", "Usage: perf_analyzer [options]"]


def test_the_version_is_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert "Perf Analyzer of alipes " in capsys.readouterr().out


def test_an_error_of_a_run_is_no_option_error() -> None:
    assert not isinstance(Failed("x"), OptionFailed)
    assert Failed("x").status == Exit.GENERIC
