from __future__ import annotations

import re
from pathlib import Path

import pytest
from alipes.config.forms import TRITONS
from alipes.config.load import parse_flags
from alipes.config.options import Resource
from alipes.errors import ConfigError


def test_defaults_are_tritons_but_for_the_documented_ones() -> None:
    options = parse_flags(["models"], {})
    assert (options.http.port, options.grpc.port, options.metrics.port) == (8000, 8001, 8002)
    assert (options.id, options.exit_timeout_s, options.http_max_input_bytes) == ("triton", 30, 64 * 1024 * 1024)
    assert options.repository.control_mode == "none"
    assert options.repository.strict_readiness
    assert not options.repository.exit_on_error
    assert options.model.default_max_batch_size == 4
    assert options.notices == ()


def test_flags_win_over_the_environment_and_the_environment_over_defaults() -> None:
    environ = {"ALIPES_HTTP_PORT": "1", "ALIPES_GRPC_PORT": "2"}
    options = parse_flags(["models", "--http-port=3"], environ)
    assert (options.http.port, options.grpc.port, options.metrics.port) == (3, 2, 8002)
    origins = [options.origins[name] for name in ("http-port", "grpc-port", "metrics-port")]
    assert origins == ["flag", "environment", "default"]


def test_a_repeatable_flag_replaces_what_the_environment_says() -> None:
    environ = {"ALIPES_MODEL_REPOSITORY": "a b"}
    assert parse_flags([], environ).repository.paths == ("a", "b")
    assert parse_flags(["c"], environ).repository.paths == ("c",)


def test_repositories_come_from_both_spellings_each_once_in_order() -> None:
    options = parse_flags(["one", "--model-repository=two", "--model-repository=one"], {})
    assert options.repository.paths == ("one", "two")
    assert options.origins["model-repository"] == "flag"


def test_a_store_is_no_repository_and_takes_the_place_of_one() -> None:
    options = parse_flags(["--model_store=/mnt/models", "--model_name", "iris", "--http_port=1", "--grpc_port=2"], {})
    assert (options.repository.paths, options.repository.stores) == ((), ("/mnt/models",))
    assert (options.repository.model_name, options.http.port, options.grpc.port) == ("iris", 1, 2)
    assert parse_flags(["--model_dir=/mnt/models"], {}).repository.stores == ("/mnt/models",)
    assert parse_flags(["hf://team/iris", "--model-name=iris"], {}).repository.model_name == "iris"


def test_triton_takes_a_store_for_a_repository_and_a_name_for_a_beginning() -> None:
    options = parse_flags(["--model-store=models", "--model-name=true"], {}, TRITONS)
    assert (options.repository.paths, options.repository.stores) == (("models",), ())
    assert options.repository.namespacing


@pytest.mark.parametrize("stores", [[], ["--model-store=a", "--model-store=b"]])
def test_a_model_is_named_in_one_store_alone(stores: list[str]) -> None:
    with pytest.raises(ConfigError, match="--model-name") as caught:
        parse_flags(["models", "--model-name=iris", *stores], {})
    assert caught.value.key == "model-name"


def test_what_a_platform_sets_is_the_weakest_source(tmp_path: Path) -> None:
    knative = {"PORT": "9123", "K_REVISION": "iris-1", "INFERENCE_SERVICE_NAME": "iris"}
    options = parse_flags(["--model-store=models"], knative)
    assert (options.http.port, options.grpc.port, options.repository.model_name) == (9123, 8001, "iris")
    assert options.origins["http-port"] == "environment"
    assert parse_flags(["models"], knative).http.port == 9123
    assert parse_flags(["models"], knative | {"ALIPES_HTTP_PORT": "2"}).http.port == 2
    assert parse_flags(["models", "--port=3"], knative).http.port == 3
    (tmp_path / "alipes.toml").write_text("http-port = 4\n")
    assert parse_flags(["models"], knative, folder=tmp_path).http.port == 4
    named = knative | {"MLSERVER_MODEL_NAME": "digits"}
    assert parse_flags(["--model-store=models"], named).repository.model_name == "digits"
    assert parse_flags(["--model-store=models", "--model-name=mine"], named).repository.model_name == "mine"


def test_a_port_that_no_platform_has_set_counts_for_a_store_alone() -> None:
    assert parse_flags(["models"], {"PORT": "9123"}).http.port == 8000
    assert parse_flags(["--model-store=models"], {"PORT": "9123"}).http.port == 9123
    assert parse_flags(["--model-repository=models"], {"PORT": "9123", "K_SERVICE": "s"}, TRITONS).http.port == 8000
    with pytest.raises(ConfigError, match="PORT"):
        parse_flags(["--model-store=models"], {"PORT": "http"})


def test_an_alias_fills_the_same_option_from_either_source() -> None:
    assert parse_flags(["models", "--strict-model-config=true"], {}).model.strict_config
    assert parse_flags(["models"], {"ALIPES_STRICT_MODEL_CONFIG": "true"}).model.strict_config
    assert parse_flags([], {"ALIPES_MODEL_DIR": "models"}).repository.stores == ("models",)


def test_a_variable_that_stands_for_no_flag_gives_a_notice() -> None:
    options = parse_flags(["models"], {"ALIPES_HTTP_PROT": "1", "HOME": "/"})
    assert options.notices == (
        "environment variable ALIPES_HTTP_PROT stands for no flag; did you mean ALIPES_HTTP_PORT?",
    )


@pytest.mark.parametrize("name", ["ALIPES_LOCAL_PORTS", "ALIPES_PROGRESS", "ALIPES_SERVE_IMAGE"])
def test_a_variable_of_scripts_gives_no_notice(name: str) -> None:
    assert parse_flags(["models"], {name: "0"}).notices == ()


def test_a_bad_value_in_the_environment_is_refused() -> None:
    with pytest.raises(ConfigError, match="--http-port"):
        parse_flags(["models"], {"ALIPES_HTTP_PORT": "many"})


def test_the_last_of_several_values_wins() -> None:
    assert parse_flags(["models", "--http-port=1", "--http-port=2"], {}).http.port == 2


def test_the_metrics_address_follows_the_http_address() -> None:
    assert parse_flags(["models", "--http-address=::1"], {}).metrics.address == "::1"
    assert parse_flags(["models", "--metrics-address=::2"], {}).metrics.address == "::2"


def test_a_repository_is_needed() -> None:
    with pytest.raises(ConfigError, match="--model-repository must be specified"):
        parse_flags([], {})


def test_loading_by_name_needs_explicit_mode() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_flags(["models", "--load-model=simple"], {})
    expected = "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well."
    assert str(caught.value) == expected


def test_the_wildcard_stands_alone() -> None:
    explicit = ["models", "--model-control-mode=explicit"]
    assert parse_flags([*explicit, "--load-model=*"], {}).repository.load_models == ("*",)
    with pytest.raises(ConfigError) as caught:
        parse_flags([*explicit, "--load-model=*", "--load-model=simple"], {})
    assert str(caught.value) == "Wildcard model name '*' must be the ONLY startup model if specified at all."


@pytest.mark.parametrize(
    ("flags", "pair"),
    [
        (["--metrics-port=8000"], "HTTP requests and metrics requests"),
        (["--grpc-port=8000"], "HTTP requests and GRPC requests"),
        (["--metrics-port=8001"], "GRPC requests and metrics requests"),
    ],
)
def test_two_endpoints_cannot_share_an_address_and_port(flags: list[str], pair: str) -> None:
    with pytest.raises(ConfigError, match=rf"cannot listen to {pair} at the same address and port 0\.0\.0\.0:800\d$"):
        parse_flags(["models", *flags], {})


@pytest.mark.parametrize(
    "flags",
    [
        ["--metrics-port=8000", "--allow-metrics=false"],
        ["--metrics-port=8000", "--metrics-address=127.0.0.1"],
        ["--http-port=0", "--grpc-port=0", "--metrics-port=0"],
    ],
)
def test_equal_ports_are_no_clash_where_they_cannot_meet(flags: list[str]) -> None:
    parse_flags(["models", *flags], {})


def test_resources_of_the_rate_limiter_are_read() -> None:
    options = parse_flags(["models", "--rate-limit-resource=R1:2", "--rate-limit-resource=R2:3:0"], {})
    assert options.model.resources == (
        Resource(name="R1", count=2),
        Resource(name="R2", count=3, device=0),
    )


@pytest.mark.parametrize("text", ["R1", ":1", "R1:x", "R1:1:2:3", "R1:-1", "R1:" + "9" * 5000])
def test_a_resource_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match='Bad option: "--rate-limit-resource"'):
        parse_flags(["models", f"--rate-limit-resource={text}"], {})


@pytest.mark.parametrize(
    ("flags", "cache_bytes"),
    [
        ((), 0),
        (("--cache-config=local,size=1048576",), 1 << 20),
        (("--cache-config=local,size=1", "--cache-config=local,size=2"), 2),
        (("--response-cache-byte-size=7",), 7),
    ],
)
def test_the_cache_has_the_size_that_either_flag_gives(flags: tuple[str, ...], cache_bytes: int) -> None:
    assert parse_flags(["models", *flags], {}).response_cache_bytes == cache_bytes


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (
            ("--cache-config=local,size=1", "--response-cache-byte-size=1"),
            "Incompatible flags --response-cache-byte-size and --cache-config both provided",
        ),
        (("--cache-config=size=1",), "No cache specified. --cache-config option format is"),
        (("--cache-config=redis,host=h",), "there is no cache 'redis'"),
        (
            ("--cache-config=local,size=8192", "--cache-config=redis,key=value"),
            "found multiple cache configurations, but only a single cache is currently supported",
        ),
        (("--cache-config=local,sise=1",), "unknown setting 'local,sise'"),
        (("--cache-config=local,size=-1",), "--cache-config"),
        (("--cache-config=local",), "No cache specified"),
    ],
)
def test_a_cache_that_cannot_be_had_is_refused(flags: tuple[str, ...], text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)):
        parse_flags(["models", *flags], {})


def test_what_tests_hold_back_is_read_from_tritons_variables() -> None:
    environ = {"TRITONSERVER_DELAY_SCHEDULER": "3", "TRITONSERVER_BACKLOG_DELAY_SCHEDULER": "2"}
    model = parse_flags(["models"], environ).model
    assert (model.delay_scheduler, model.backlog_delay_scheduler) == (3, 2)
    environ = dict.fromkeys(environ, "many")
    model = parse_flags(["models"], environ).model
    assert (model.delay_scheduler, model.backlog_delay_scheduler) == (0, 0)
