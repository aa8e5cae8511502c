"""Drives every row of the table of parameters of Python models."""

from __future__ import annotations

from dataclasses import replace

import pytest
from alipes.config.load import parse_flags
from alipes.config.parameters import Parameter
from alipes.config.worker_parameters import WORKER_PARAMETERS, WorkerParameters, read_worker_parameters
from alipes.errors import ConfigError

OPTIONS = parse_flags(["models"], {}).worker
DEFAULTS = read_worker_parameters({}, "m", OPTIONS)

SAMPLES = {"text": "some", "seconds": "1.5", "bytes": "4096"}

# Keys that change nothing here: inputs are where the model wants them anyway, `spec` reads the endpoint, and a worker
# whether there is a trial.
WITHOUT_EFFECT = {"FORCE_CPU_ONLY_INPUT_TENSORS", "TRIAL_REQUEST", "endpoint"}


def rows(status: str) -> list[object]:
    return [pytest.param(row, id=row.key) for row in WORKER_PARAMETERS if row.status == status]


def test_no_parameters_give_the_defaults() -> None:
    assert WorkerParameters("", 0.0, 0.0, 30.0, 0, 1 << 30, ()) == DEFAULTS


def test_the_servers_options_are_the_defaults() -> None:
    options = replace(OPTIONS, execute_timeout_s=2.5, max_memory_bytes=7)
    made = read_worker_parameters({"EXECUTE_TIMEOUT_SECONDS": "1"}, "m", options)
    assert (made.execute_timeout_s, made.max_memory_bytes) == (1.0, 7)
    assert read_worker_parameters({}, "m", options).execute_timeout_s == 2.5


@pytest.mark.parametrize("row", rows("works"))
def test_a_parameter_that_works_is_read(row: Parameter) -> None:
    made = read_worker_parameters({row.key: SAMPLES[row.kind]}, "m", OPTIONS)
    assert (made == DEFAULTS) == (row.key in WITHOUT_EFFECT)
    assert made.notices == ()


@pytest.mark.parametrize("row", rows("ignored"))
def test_an_ignored_parameter_gives_one_notice(row: Parameter) -> None:
    made = read_worker_parameters({row.key: SAMPLES[row.kind]}, "m", OPTIONS)
    assert made.notices == (f"parameter '{row.key}' of model 'm' is ignored: {row.note}",)


def test_other_parameters_are_the_models_own() -> None:
    assert read_worker_parameters({"colour": "blue"}, "m", OPTIONS) == DEFAULTS


@pytest.mark.parametrize("text", ["", "soon", "-1", "1e3", "inf", "nan", "1.", ".5", "9" * 30, "٣", " 1"])
def test_a_time_that_makes_no_sense_is_refused(text: str) -> None:
    expected = "parameter 'EXECUTE_TIMEOUT_SECONDS' of model 'm' must be seconds, such as 30 or 0.5, got"
    with pytest.raises(ConfigError, match=expected) as caught:
        read_worker_parameters({"EXECUTE_TIMEOUT_SECONDS": text}, "m", OPTIONS)
    assert caught.value.key == "parameters.EXECUTE_TIMEOUT_SECONDS"


@pytest.mark.parametrize("text", ["", "1.5", "-1", "1G", "9" * 30])
def test_a_size_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="'MAX_WORKER_MEMORY_BYTES' of model 'm' must be an integer from 0 to"):
        read_worker_parameters({"MAX_WORKER_MEMORY_BYTES": text}, "m", OPTIONS)
