"""The flags of `alipes serve` that stand for others, and the variables of the environment."""

from __future__ import annotations

import pytest
from alipes.config.load import parse_flags
from alipes.errors import ConfigError


def ports(*words: str, **environ: str) -> tuple[int, int, int]:
    options = parse_flags(["models", *words], environ)
    return options.http.port, options.grpc.port, options.metrics.port


def test_grpc_and_metrics_follow_the_port() -> None:
    assert ports("--port=9000") == (9000, 9001, 9002)
    assert ports("--port=0") == (0, 0, 0)
    assert ports("--port", "9000", "--port", "9100") == (9100, 9101, 9102)


def test_a_longer_name_wins_over_the_short_one_in_any_order() -> None:
    assert ports("--port=9000", "--grpc-port=7") == (9000, 7, 9002)
    assert ports("--grpc-port=7", "--port=9000") == (9000, 7, 9002)


def test_a_flag_wins_over_the_environment_whichever_name_is_longer() -> None:
    assert ports("--port=9000", ALIPES_GRPC_PORT="7") == (9000, 9001, 9002)
    assert ports("--grpc-port=7", ALIPES_PORT="9000") == (9000, 7, 9002)


def test_the_host_is_the_address_of_all_three() -> None:
    options = parse_flags(["models", "--host=127.0.0.1", "--grpc-address=::1"], {})
    assert (options.http.address, options.grpc.address, options.metrics.address) == ("127.0.0.1", "::1", "127.0.0.1")
    assert options.origins["metrics-address"] == "flag"


@pytest.mark.parametrize(
    ("words", "level", "info"),
    [
        ([], 0, True),
        (["-v"], 1, True),
        (["-vv"], 2, True),
        (["-v", "-v"], 2, True),
        (["-q"], 0, False),
        (["-v", "--log-verbose=4"], 4, True),
    ],
)
def test_verbose_and_quiet_set_levels_of_the_log(words: list[str], level: int, info: bool) -> None:
    log = parse_flags(["models", *words], {}).log
    assert (log.verbose_level, log.info) == (level, info)


@pytest.mark.parametrize("text", ["json", "JSON", "Json"])
def test_a_choice_is_read_in_any_case(text: str) -> None:
    assert parse_flags(["models", "--log-format", text], {}).log.format == "JSON"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--port=abc"], "--port takes a number from 0 to 65533, not 'abc'"),
        (["--port=65534"], "--port takes a number from 0 to 65533, not '65534'"),
        (["--http-port=abc"], "--http-port takes a number from 0 to 65535, not 'abc'"),
        (["--host=localhost:9000"], "say --host localhost --port 9000: --host takes a name or an address alone, not "
         "'localhost:9000'"),
        (["--host=http://here:9000/"], "say --host here --port 9000: --host takes a name or an address alone, not "
         "'http://here:9000/'"),
        (["--host=:9000"], "say --host 0.0.0.0 --port 9000: --host takes a name or an address alone, not ':9000'"),
        (["--host=http://here"], "say --host here: --host takes a name or an address alone, not 'http://here'"),
        (["--host=http://here/"], "say --host here: --host takes a name or an address alone, not 'http://here/'"),
        (["--host=http://here/a"], "--host takes a name or an address, such as 127.0.0.1, not 'http://here/a'"),
        (["--port=localhost:9361"], "say --host localhost --port 9361: --port takes a number alone, not "
         "'localhost:9361'"),
        (["--port=http://here:9361/"], "say --host here --port 9361: --port takes a number alone, not "
         "'http://here:9361/'"),
        (["--port=:9361"], "say --host 0.0.0.0 --port 9361: --port takes a number alone, not ':9361'"),
        (["--host="], "--host takes a name or an address, such as 127.0.0.1, not ''"),
        (["--host=unix:/run/a"], "say --http-address unix:/run/a for HTTP alone: --host is the address of three "
         "endpoints, which cannot share a Unix socket"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_mend(words: list[str], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_flags(["models", *words], {})
    assert str(caught.value) == text


def test_a_wrong_value_of_a_variable_is_named_by_the_variable() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_flags(["models"], {"ALIPES_HTTP_PORT": "many"})
    assert str(caught.value) == "ALIPES_HTTP_PORT (--http-port) takes a number from 0 to 65535, not 'many'"


def test_variables_that_kubernetes_sets_for_a_service_are_no_flags() -> None:
    link = "tcp://10.0.0.1:8000"
    environ = {
        "ALIPES_PORT": link,
        "ALIPES_SERVICE_HOST": "10.0.0.1",
        "ALIPES_SERVICE_PORT": "8000",
        "ALIPES_SERVICE_PORT_HTTP": "8000",
        "ALIPES_PORT_8000_TCP": link,
        "ALIPES_PORT_8000_TCP_ADDR": "10.0.0.1",
        "ALIPES_HTTP_PORT": link,
        "ALIPES_HTTP_SERVICE_HOST": "10.0.0.2",
    }
    options = parse_flags(["models"], environ)
    assert options.http.port == 8000
    assert [notice.split()[2] for notice in options.notices] == ["ALIPES_HTTP_PORT", "ALIPES_PORT"]
    assert all("Kubernetes" in notice for notice in options.notices)


def test_variables_of_no_service_give_a_notice() -> None:
    (notice,) = parse_flags(["models"], {"ALIPES_SERVICE_HOST": "10.0.0.1"}).notices
    assert notice.startswith("environment variable ALIPES_SERVICE_HOST stands for no flag")


def test_tritonserver_has_none_of_the_short_names() -> None:
    from alipes.config.forms import TRITONS

    for word in ("--port=9000", "--quiet=true", "--config=x"):
        with pytest.raises(ConfigError, match=r"unrecognized option|ambiguous"):
            parse_flags(["--model-repository=models", word], {}, TRITONS)
    # As in Triton, this is the beginning of --host-policy.
    assert parse_flags(["--model-repository=models", "--host=a,b=c"], {}, TRITONS).notices != ()
