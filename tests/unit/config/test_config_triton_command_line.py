"""The command line of `tritonserver`: its grammar, its defaults, its words."""

from __future__ import annotations

import pytest
from alipes.config.forms import TRITONS
from alipes.config.load import parse_flags
from alipes.config.options import ServerOptions
from alipes.errors import ConfigError

REPOSITORY = "--model-repository=models"


def parsed(*words: str) -> ServerOptions:
    return parse_flags([REPOSITORY, *words], {}, TRITONS)


def refused(*words: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parsed(*words)
    return str(caught.value)


def test_a_model_that_does_not_load_ends_the_start_by_default() -> None:
    assert parsed().repository.exit_on_error
    assert not parsed("--exit-on-error=false").repository.exit_on_error
    assert not parse_flags([REPOSITORY], {"ALIPES_EXIT_ON_ERROR": "0"}, TRITONS).repository.exit_on_error
    assert not parse_flags([REPOSITORY], {}).repository.exit_on_error


def test_every_option_takes_the_word_behind_it() -> None:
    options = parsed("--strict-readiness", "off", "--id", "--http-port", "--http-port", "1", "--model-store", "more")
    assert (options.repository.strict_readiness, options.id, options.http.port) == (False, "--http-port", 1)
    assert options.repository.paths == ("models", "more")


def test_completion_is_turned_off_without_a_value() -> None:
    assert parsed("--disable-auto-complete-config", "--http-port=1").model.strict_config
    assert refused("--disable-auto-complete-config=true") == (
        "tritonserver: option '--disable-auto-complete-config' doesn't allow an argument"
    )


def test_the_beginning_of_a_name_is_enough_where_no_other_begins_so() -> None:
    assert parsed("--http-po=3").http.port == 3
    assert refused("--exit-t") == "tritonserver: option '--exit-timeout-secs' requires an argument"
    ambiguous = refused("--grpc-server=x")
    assert ambiguous == (
        "tritonserver: option '--grpc-server' is ambiguous; possibilities: '--grpc-server-cert' '--grpc-server-key'"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--no-such-flag"], "tritonserver: unrecognized option '--no-such-flag'"),
        (["--no-such-flag=3"], "tritonserver: unrecognized option '--no-such-flag'"),
        (["-h"], "tritonserver: invalid option -- 'h'"),
        (["--http-port"], "tritonserver: option '--http-port' requires an argument"),
        (["models"], "Unexpected argument: models"),
        (["models", "--http-port=1"], "Unexpected argument: models"),
        (["models", "--no-such"], "tritonserver: unrecognized option '--no-such'"),
        (["--", "--id=x"], "Unexpected argument: --id=x"),
        (["--help"], ""),
        (["--http-port=many"], 'Bad option: "--http-port".\nInvalid option value. Got many'),
        (["--http-port="], 'Bad option: "--http-port".\nInvalid option value. Got '),
        (
            ["--http-port=99999999999"],
            'Bad option: "--http-port".\nProvided option value is out of bound. Got 99999999999',
        ),
        (["--allow-http=maybe"], 'Bad option: "--allow-http".\ninvalid value for bool option: maybe'),
        (["--model-control-mode=x"], 'Bad option: "--model-control-mode".\ninvalid argument for --model-control-mode'),
        (["--rate-limit=x"], 'Bad option: "--rate-limit".\ninvalid argument for --rate-limit'),
        (["--log-format=iso8601"], 'Bad option: "--log-format".\ninvalid argument for --log-format'),
        (
            ["--grpc-infer-response-compression-level=x"],
            'Bad option: "--grpc-infer-response-compression-level".\ninvalid argument for '
            "--grpc_infer_response_compression_level",
        ),
        (
            ["--cache-config=size=1"],
            'Bad option: "--cache-config".\nNo cache specified. --cache-config option format is <cache name>,<setting>='
            "<value>. Got size=1",
        ),
        (
            ["--cache-config=local,size="],
            "Bad option: \"--cache-config\".\n--cache-config option format is '<cache name>,<setting>=<value>'. Got "
            "local,size=",
        ),
        (
            ["--backend-config=,a=1"],
            'Bad option: "--backend-config".\nNo backend specified. --backend-config option format is <backend name>,'
            "<setting>=<value> or <setting>=<value>. Got ,a=1",
        ),
        (
            ["--backend-config=python,a"],
            "Bad option: \"--backend-config\".\n--backend-config option format is '<backend name>,<setting>=<value>'. "
            "Got python,a",
        ),
        (
            ["--metrics-config=a"],
            'Bad option: "--metrics-config".\n--metrics-config option format is <setting>=<value>. Got a',
        ),
        (
            ["--trace-config=a"],
            "Bad option: \"--trace-config\".\n--trace-config option format is '<trace mode>,<setting>=<value>'. Got a",
        ),
        (
            ["--rate-limit-resource=R"],
            'Bad option: "--rate-limit-resource".\n--rate-limit-resource option format is '
            "'<resource_name>:<count>:<device>' or '<resource_name>:<count>'. Got R",
        ),
        (
            ["--http-restricted-api=health"],
            'Bad option: "--http-restricted-api".\n--http-restricted-api option format is '
            "'<config name>:<setting>=<value>'. Got health",
        ),
        (
            ["--grpc-port=8000"],
            "The server cannot listen to HTTP requests and GRPC requests at the same address and port 0.0.0.0:8000",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_tritons_words(words: list[str], message: str) -> None:
    assert refused(*words) == message


@pytest.mark.parametrize(
    ("text", "port"),
    [("8", 8), (" 8", 8), ("+8", 8), ("08", 8), ("8x", 8), ("8.5", 8), ("0x10", 0), ("000000000000000000008", 8)],
)
def test_a_number_ends_where_it_stops_being_one(text: str, port: int) -> None:
    assert parsed(f"--http-port={text}").http.port == port


def test_a_word_may_be_in_capitals_where_triton_says_so() -> None:
    assert parsed("--model-control-mode=POLL").repository.control_mode == "poll"
    assert parsed("--rate-limit=OFF").model.rate_limit == "off"


def test_a_number_that_makes_no_sense_becomes_the_nearest_that_does() -> None:
    options = parsed("--exit-timeout-secs=-5", "--model-load-thread-count=0", "--model-load-retry-count=-1")
    assert (options.exit_timeout_s, options.repository.load_threads, options.repository.load_retries) == (0, 1, 0)
    traced = parsed("--trace-count=-5", "--trace-rate=-1", "--trace-log-frequency=-1").trace
    assert (traced.count, traced.rate, traced.log_frequency) == (-1, 0, 0)
    assert [parsed(f"--log-verbose={level}").log.verbose_level for level in (-1, 100)] == [0, 16]


@pytest.mark.parametrize(("text", "level"), [("true", 1), ("FALSE", 0), ("2", 2)])
def test_a_level_is_a_number_or_yes_or_no(text: str, level: int) -> None:
    assert parsed(f"--log-verbose={text}").log.verbose_level == level


def test_a_number_that_this_server_cannot_have_is_refused_with_its_range() -> None:
    assert refused("--http-port=-1") == "Bad option: \"--http-port\".\nexpected an integer from 0 to 65535, got '-1'"
