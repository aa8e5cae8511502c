"""Instance groups where there are GPUs: which kind a group gets, which GPUs, and how its instances are named."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from alipes.config.gpus import NO_GPUS, Gpus, GpuUse, count_gpus_as_listed, usable_gpus
from alipes.config.instances import instance_names, placements
from alipes.config.limits import MAX_INSTANCES
from alipes.config.normalize import normalize_instance_groups
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.validate.instance_groups import check_instance_groups
from alipes.errors import ConfigError

TWO = Gpus((0, 1), GpuUse.PREFERRED)
TWO_IF_NAMED = Gpus((0, 1), GpuUse.EXPLICIT)
ON_CPU_ALONE = Gpus((), GpuUse.NEVER)


@dataclass(frozen=True)
class Card:
    """A GPU of a machine."""

    index: int
    compute_capability: tuple[int, int]


def settled(text: str, gpus: Gpus, fallback: Literal["cpu", "refuse"] = "cpu") -> tuple[Any, list[str]]:
    config = parse_pbtxt(f'name: "m" backend: "onnxruntime" {text}')
    return config, normalize_instance_groups(config, fallback, gpus)


def groups(text: str, gpus: Gpus) -> list[tuple[str, list[int], int]]:
    config, notices = settled(text, gpus)
    assert notices == []
    return [(group.Kind.Name(group.kind), list(group.gpus), group.count) for group in config.instance_group]


def refusal(text: str, gpus: Gpus, fallback: Literal["cpu", "refuse"] = "cpu") -> str:
    config, _ = settled(text, gpus, fallback)
    with pytest.raises(ConfigError) as caught:
        check_instance_groups(config, gpus)
    return str(caught.value.reason)


def test_gpus_that_are_too_old_are_left_out() -> None:
    machine = [Card(2, (9, 0)), Card(0, (5, 2)), Card(1, (6, 0))]
    assert usable_gpus(machine, GpuUse.PREFERRED) == Gpus((1, 2), GpuUse.PREFERRED)
    assert usable_gpus(machine, GpuUse.NEVER) == ON_CPU_ALONE


@pytest.mark.parametrize(
    ("text", "preferred", "explicit"),
    [
        ("", [("KIND_GPU", [0, 1], 1)], [("KIND_CPU", [], 2)]),
        ("instance_group { count: 3 }", [("KIND_GPU", [0, 1], 3)], [("KIND_CPU", [], 3)]),
        ("instance_group { gpus: 1 }", [("KIND_GPU", [1], 1)], [("KIND_GPU", [1], 1)]),
        ("instance_group { kind: KIND_GPU }", [("KIND_GPU", [0, 1], 1)], [("KIND_GPU", [0, 1], 1)]),
        ("instance_group { kind: KIND_CPU }", [("KIND_CPU", [], 2)], [("KIND_CPU", [], 2)]),
        ("instance_group { kind: KIND_MODEL }", [("KIND_MODEL", [], 1)], [("KIND_MODEL", [], 1)]),
    ],
)
def test_a_group_gets_kind_gpus_and_count(text: str, preferred: object, explicit: object) -> None:
    assert groups(text, TWO) == preferred
    assert groups(text, TWO_IF_NAMED) == explicit


@pytest.mark.parametrize("gpus", [NO_GPUS, ON_CPU_ALONE])
def test_a_group_that_cannot_have_its_gpu_runs_on_the_cpu(gpus: Gpus) -> None:
    config, notices = settled("instance_group { kind: KIND_GPU gpus: 0 count: 2 }", gpus)
    assert notices == ["instance group m_0 of model m asks for a GPU and runs on the CPU"]
    assert instance_names(config) == ["m_0_0", "m_0_1"]
    check_instance_groups(config, gpus)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: KIND_GPU gpus: [ 0, 7 ]", "specifies invalid or unsupported gpu id 7. GPUs with at least the minimum "
         "required CUDA compute compatibility of 6.000000 are: 0, 1"),
        ("kind: KIND_GPU gpus: [ 1, 1 ]", "names a GPU twice: raise its count for more instances on each of its GPUs"),
        ("kind: KIND_CPU gpus: 0", "has kind KIND_CPU but specifies one or more GPUs"),
    ],
)  # fmt: skip
def test_gpus_that_make_no_sense_are_refused(text: str, expected: str) -> None:
    text = f"instance_group {{ {text} }}"
    assert refusal(text, TWO) == f"Invalid argument: instance group m_0 of model m {expected}"


def test_a_group_of_kind_auto_with_unknown_gpus_is_one_for_the_cpu() -> None:
    assert "has kind KIND_CPU but specifies" in refusal("instance_group { gpus: 7 }", TWO, "refuse")
    assert settled("instance_group { gpus: 7 }", TWO)[1] != []


def test_a_backend_for_the_cpu_alone_says_so() -> None:
    text = refusal("instance_group { kind: KIND_GPU }", ON_CPU_ALONE, "refuse")
    assert text.endswith("has kind KIND_GPU but its backend computes on the CPU alone")


def test_instances_on_gpus_are_counted_on_each() -> None:
    half = MAX_INSTANCES // 2
    config, _ = settled(f"instance_group {{ kind: KIND_GPU count: {half} }}", TWO)
    check_instance_groups(config, TWO)
    assert f"ask for {2 * half + 2} instances" in refusal(f"instance_group {{ kind: KIND_GPU count: {half + 1} }}", TWO)


def test_each_instance_has_a_name_and_a_place() -> None:
    text = (
        'instance_group [ { kind: KIND_CPU }, { kind: KIND_GPU count: 2 name: "g" }, { kind: KIND_MODEL }, '
        "{ kind: KIND_GPU gpus: 1 passive: true } ]"
    )
    config, _ = settled(text, TWO)
    on_gpus = ["g_0_gpu0", "g_0_gpu1", "g_1_gpu0", "g_1_gpu1"]
    assert instance_names(config) == ["m_0_0", "m_0_1", *on_gpus, "m_2_0"]
    assert placements(config) == {
        **{name: {"kind": "GPU", "device_id": int(name[-1])} for name in on_gpus},
        "m_2_0": {"kind": "MODEL", "device_id": 0},
        "m_3_0_gpu1": {"kind": "GPU", "device_id": 1},
    }


def test_cuda_counts_as_the_list_does_unless_it_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    count_gpus_as_listed()
    assert os.environ["CUDA_DEVICE_ORDER"] == "FASTEST_FIRST"
    monkeypatch.delenv("CUDA_DEVICE_ORDER")
    count_gpus_as_listed()
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
