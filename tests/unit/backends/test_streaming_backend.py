"""Snapshotters and averagers: what their tensors and parameters tell the data plane, and what they may not say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alipes.backends.base import Draft
from alipes.backends.prepare import LoadPlan, Machine, prepare_version
from alipes.backends.registry import backend_of
from alipes.config.gpus import Gpu
from alipes.config.load import parse_flags
from alipes.config.poll import poll_model
from alipes.errors import ConfigError

Prepare = Callable[..., LoadPlan]

SNAPSHOTTER = 'backend: "snapshotter"'
AVERAGER = 'backend: "averager"'
UPDATE = 'input { name: "u" data_type: TYPE_FP32 dims: [ 1, 3, 8 ] }'
WINDOWS = """
output { name: "a" data_type: TYPE_FP32 dims: [ 2, 2, 10 ] }
output { name: "b" data_type: TYPE_FP32 dims: [ 2, 10 ] }
"""
KERNELS = 'input { name: "k" data_type: TYPE_FP64 dims: [ 2, 10 ] }'
MEANS = 'output { name: "m" data_type: TYPE_FP64 dims: [ 1, 6 ] }'


def parameters(**values: int | str) -> str:
    rows = (f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in values.items())
    return "\n".join(rows)


@pytest.fixture
def prepare(tmp_path: Path) -> Prepare:
    """Prepares a model of these lines of configuration."""

    def prepare(*lines: str, flags: tuple[str, ...] = (), machine: Machine = tuple) -> LoadPlan:
        folder = tmp_path / "m"
        (folder / "1").mkdir(parents=True, exist_ok=True)
        (folder / "config.pbtxt").write_text("\n".join(lines))
        options = parse_flags([str(tmp_path), *flags], {})
        config = poll_model(folder, "m", options)
        return prepare_version(Draft(config, folder, 1, options), backend_of=backend_of, machine=machine)

    return prepare


def engine(plan: LoadPlan) -> dict[str, Any]:
    made: dict[str, Any] = plan.spec["engine"]
    return made


def test_a_backend_of_the_cpu_alone_asks_for_no_gpus(prepare: Prepare) -> None:
    def machine() -> tuple[Gpu, ...]:
        raise AssertionError("the driver of the GPUs was loaded")

    group = "instance_group { name: 'g' kind: KIND_GPU gpus: 0 }"
    plan = prepare(SNAPSHOTTER, UPDATE, WINDOWS, group, machine=machine)
    assert plan.notices == ("instance group g of model m asks for a GPU and runs on the CPU",)
    expected = "instance group g of model m has kind KIND_GPU but its backend computes on the CPU alone"
    with pytest.raises(ConfigError, match=expected):
        prepare(SNAPSHOTTER, UPDATE, WINDOWS, group, machine=machine, flags=("--gpu-fallback=refuse",))


def test_the_tensors_of_a_snapshotter_say_all(prepare: Prepare) -> None:
    plan = prepare(SNAPSHOTTER, UPDATE, WINDOWS)
    assert engine(plan) == {
        "kind": "streaming",
        "update": {"kind": "snapshotter", "stride": 4, "snapshot": 10, "batch": 2, "channels": [2, 0]},
        "max_sequences": 10_000,
        "max_idle_us": 10_000_000,
    }
    assert (plan.spec["platform"], plan.notices) == ("snapshotter", ())
    assert engine(prepare('platform: "snapshotter"', UPDATE, WINDOWS)) == engine(plan)


def test_the_parameters_of_a_snapshotter_say_all(prepare: Prepare) -> None:
    sizes = parameters(stride_size=4, snapshot_size=10, batch_size=2, channels="a:2, b")
    plan = prepare(SNAPSHOTTER, sizes)
    assert engine(plan) == engine(prepare(SNAPSHOTTER, UPDATE, WINDOWS))
    assert [(one.name, list(one.dims)) for one in (*plan.config.input, *plan.config.output)] == [
        ("snapshot_update", [1, 3, 8]),
        ("a", [2, 2, 10]),
        ("b", [2, 10]),
    ]


def test_an_averager_is_found_by_its_tensors_and_updates(prepare: Prepare) -> None:
    plan = prepare(AVERAGER, KERNELS, MEANS, parameters(num_updates=3))
    expected = {"kind": "averager", "update": 3, "updates": 3, "batch": 2, "channels": 0, "kernel": 10}
    assert engine(plan)["update"] == expected
    plan = prepare(AVERAGER, KERNELS, MEANS, parameters(num_updates=3, unbiased_start=1))
    assert engine(plan)["update"] == {**expected, "unbiased": True}
    with pytest.raises(ConfigError, match="'unbiased_start' of model 'm' must be an integer from 0 to 1, got '2'"):
        prepare(AVERAGER, KERNELS, MEANS, parameters(num_updates=3, unbiased_start=2))
    sizes = parameters(update_size=3, num_updates=3, batch_size=2, kernel_size=10, channels=4)
    made = prepare(AVERAGER, sizes)
    assert engine(made)["update"] == {**expected, "channels": 4}
    assert [(one.name, list(one.dims)) for one in (*made.config.input, *made.config.output)] == [
        ("update", [2, 4, 10]),
        ("output_stream", [1, 4, 6]),
    ]


def test_silence_and_the_number_of_sequences_can_be_set(prepare: Prepare) -> None:
    idle = "sequence_batching { direct {} max_sequence_idle_microseconds: 25000000 }"
    made = engine(prepare(SNAPSHOTTER, UPDATE, WINDOWS, idle, flags=("--streaming-max-sequences=7",)))
    assert (made["max_idle_us"], made["max_sequences"]) == (25_000_000, 7)
    # Triton's default where the configuration speaks of sequences and of no time.
    assert engine(prepare(SNAPSHOTTER, UPDATE, WINDOWS, "sequence_batching {}"))["max_idle_us"] == 1_000_000


def test_complete_tensors_need_no_completion(prepare: Prepare) -> None:
    strict = ("--disable-auto-complete-config",)
    assert engine(prepare(SNAPSHOTTER, UPDATE, WINDOWS, flags=strict)) == engine(prepare(SNAPSHOTTER, UPDATE, WINDOWS))


def test_unknown_parameters_give_a_notice(prepare: Prepare) -> None:
    plan = prepare(SNAPSHOTTER, UPDATE, WINDOWS, parameters(colour="x", stride_size=4))
    assert plan.notices == ("parameter 'colour' of model 'm' is ignored: the backend knows no such key",)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([SNAPSHOTTER], "needs the parameter 'snapshot_size'"),
        ([SNAPSHOTTER, parameters(snapshot_size=4)], "needs outputs, or a parameter 'channels' such as"),
        ([SNAPSHOTTER, parameters(snapshot_size=4, channels="a,a")], "needs outputs, or a parameter 'channels'"),
        ([SNAPSHOTTER, parameters(snapshot_size=4, channels="a:0")], "needs outputs, or a parameter 'channels'"),
        ([SNAPSHOTTER, parameters(snapshot_size=4, channels="a")], "needs the parameter 'stride_size'"),
        (
            [SNAPSHOTTER, parameters(stride_size="1e3")],
            "parameter 'stride_size' of model 'm' must be an integer from 1",
        ),
        ([SNAPSHOTTER, parameters(stride_size=0)], "parameter 'stride_size' of model 'm' must be an integer from 1"),
        ([SNAPSHOTTER, UPDATE, WINDOWS, parameters(stride_size=8)], "'stride_size' of 8, but its tensors say 4"),
        ([SNAPSHOTTER, UPDATE, WINDOWS.replace("[ 2, 10 ]", "[ 2, 9 ]")], "expected as many windows of one length"),
        ([SNAPSHOTTER, UPDATE.replace("3, 8", "4, 8"), WINDOWS], "expected [1, 3, 2 x stride]"),
        ([SNAPSHOTTER, UPDATE.replace("3, 8", "3, 7"), WINDOWS], "expected [1, 3, 2 x stride]"),
        ([SNAPSHOTTER, UPDATE.replace("3, 8", "-1, 8"), WINDOWS], "'u' with dims [1, -1, 8], expected [1, channels"),
        ([SNAPSHOTTER, UPDATE.replace("FP32", "FP64"), WINDOWS], "'u' of TYPE_FP64, expected one type of numbers"),
        ([SNAPSHOTTER, "max_batch_size: 1", UPDATE, WINDOWS], "has a max_batch_size of 1, expected 0"),
        ([SNAPSHOTTER, UPDATE, WINDOWS, "dynamic_batching {}"], "dynamic_batching does nothing for it"),
        (
            [SNAPSHOTTER, UPDATE, WINDOWS, "response_cache { enable: true }"],
            "does not currently support model m with seq",
        ),
        ([SNAPSHOTTER, UPDATE, UPDATE.replace('"u"', '"v"'), WINDOWS], "has 2 inputs, expected 1"),
        ([AVERAGER, KERNELS, MEANS], "needs the parameter 'num_updates'"),
        (
            [AVERAGER, KERNELS, MEANS, parameters(num_updates=4)],
            "not enough data: 4 updates of 3 samples are more than",
        ),
        (
            [AVERAGER, KERNELS, MEANS.replace("FP64", "FP32"), parameters(num_updates=1)],
            "expected TYPE_FP32 or TYPE_FP64",
        ),
        (
            [AVERAGER, KERNELS, MEANS.replace("1, 6", "1, 5"), parameters(num_updates=1)],
            "and 2 x the size of an update",
        ),
        (
            [AVERAGER, KERNELS, MEANS, parameters(num_updates=1, channels="1x")],
            "parameter 'channels' of model 'm' must be",
        ),
    ],
)
def test_what_does_not_fit_is_refused(prepare: Prepare, lines: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare(*lines)
    assert message in str(caught.value)


STATE = """
state {
  input_name: "input_snapshot"
  output_name: "output_snapshot"
  data_type: TYPE_FP32
  dims: [ 1, 3, 10 ]
  initial_state { name: "snapshot" data_type: TYPE_FP32 dims: [ 1, 3, 10 ] zero_data: true }
}
"""


def sequences(*parts: str) -> str:
    return f"sequence_batching {{ direct {{}} {' '.join(parts)} }}"


def states(plan: LoadPlan) -> list[tuple[str, str, str, list[int], bool]]:
    return [
        (one.input_name, one.output_name, first.name, list(one.dims), first.dims == one.dims and first.zero_data)
        for one in plan.config.sequence_batching.state
        for first in one.initial_state
    ]


def test_the_configuration_of_a_streaming_model_lists_its_states(prepare: Prepare) -> None:
    plan = prepare(SNAPSHOTTER, UPDATE, WINDOWS)
    assert states(plan) == [("input_snapshot", "output_snapshot", "snapshot", [1, 3, 10], True)]
    plan = prepare(AVERAGER, KERNELS, MEANS, parameters(num_updates=3, unbiased_start=1))
    assert states(plan) == [
        ("input_online_average", "output_online_average", "online_average", [12], True),
        ("input_seen", "output_seen", "seen", [1], True),
    ]
    # The data plane has its own: it is told of none.
    assert plan.spec["scheduling"]["states"] == []


def test_listed_states_change_nothing(prepare: Prepare) -> None:
    listed, without = prepare(SNAPSHOTTER, UPDATE, WINDOWS, sequences(STATE)), prepare(SNAPSHOTTER, UPDATE, WINDOWS)
    assert states(listed) == states(without)
    assert engine(listed)["update"] == engine(without)["update"]
    strict = prepare(SNAPSHOTTER, UPDATE, WINDOWS, sequences(), flags=("--disable-auto-complete-config",))
    assert states(strict) == []


@pytest.mark.parametrize(
    "lines",
    [
        STATE.replace("3, 10", "3, 9"),
        STATE.replace("TYPE_FP32", "TYPE_FP64"),
        STATE.replace('"input_snapshot"', '"i"'),
        STATE.replace("zero_data: true", 'data_file: "zeros"'),
        STATE + STATE.replace("put_snapshot", "put_more"),
    ],
    ids=["sizes", "datatype", "name", "beginning", "number"],
)
def test_states_that_it_does_not_keep_are_refused(prepare: Prepare, tmp_path: Path, lines: str) -> None:
    (tmp_path / "m" / "initial_state").mkdir(parents=True)
    (tmp_path / "m" / "initial_state" / "zeros").write_bytes(bytes(120))
    with pytest.raises(
        ConfigError, match=r"input_snapshot -> output_snapshot of TYPE_FP32 \[1, 3, 10\], each from zer"
    ):
        prepare(SNAPSHOTTER, UPDATE, WINDOWS, sequences(lines))


@pytest.mark.parametrize(
    "more",
    [
        "oldest { max_candidate_sequences: 4 }",
        'control_input { name: "S" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }',
        "iterative_sequence: true",
    ],
)
def test_what_only_other_sequence_models_have_is_refused(prepare: Prepare, more: str) -> None:
    with pytest.raises(ConfigError, match="sequence_batching"):
        prepare(SNAPSHOTTER, UPDATE, WINDOWS, f"sequence_batching {{ {more} }}")
