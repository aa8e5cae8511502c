"""The second stage of a load: what is completed, checked and told of one version."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from alipes.backends.base import Draft
from alipes.backends.onnxruntime.backend import OnnxruntimeBackend
from alipes.backends.prepare import LoadPlan, prepare_version
from alipes.config.options import ServerOptions
from alipes.config.override import parse_override
from alipes.config.poll import poll_model
from alipes.config.schema import copy_config
from alipes.errors import ConfigError, ModelLoadError
from support.configurations import COMPLETE, LIBRARY, SIGNATURE, backend_of
from support.described_file import opening

Prepare = Callable[..., LoadPlan]


def test_a_model_file_alone_is_enough(prepare: Prepare) -> None:
    plan = prepare(None)
    assert plan.spec["max_batch_size"] == 4
    assert plan.spec["scheduling"]["kind"] == "dynamic"
    assert plan.spec["instances"] == ["m_0", "m_1"]
    assert plan.spec["engine"]["library"] == str(LIBRARY)
    assert plan.notices == ()


def test_a_complete_configuration_is_used_unchanged(prepare: Prepare) -> None:
    plan = prepare(COMPLETE)
    assert plan.spec["scheduling"] == {"kind": "direct"}
    assert plan.spec["instances"] == ["m_0_0"]
    assert plan.config_json == plan.spec["config_json"]
    assert json.loads(plan.config_json)["instance_group"][0]["name"] == "m_0"


def test_the_default_batch_size_is_the_backends_own_before_the_one_for_all(prepare: Prepare) -> None:
    for_all, own = "--backend-config=default-max-batch-size=7", "--backend-config=onnxruntime,default-max-batch-size=9"
    assert prepare(None, for_all).spec["max_batch_size"] == 7
    assert prepare(None, for_all, own).spec["max_batch_size"] == 9


def test_polling_and_preparing_leave_their_arguments_alone(folder: Path, options: ServerOptions) -> None:
    override = parse_override('{"backend": "onnxruntime"}')
    before = copy_config(override)
    polled = poll_model(folder, "m", options, override)
    assert override == before
    before = copy_config(polled)
    prepare_version(Draft(polled, folder, 1, options), backend_of=backend_of)
    assert polled == before


def test_strict_mode_completes_nothing_from_the_model_file(prepare: Prepare) -> None:
    with pytest.raises(ConfigError, match="configuration expects 0 inputs, model provides 1"):
        prepare('backend: "onnxruntime"', "--disable-auto-complete-config")
    assert prepare(COMPLETE, "--disable-auto-complete-config").config.default_model_filename == "model.onnx"


def test_a_group_for_gpus_follows_the_flag(prepare: Prepare) -> None:
    text = COMPLETE.replace("KIND_CPU", "KIND_GPU")
    assert prepare(text).notices == ("instance group m_0 of model m asks for a GPU and runs on the CPU",)
    with pytest.raises(ConfigError) as caught:
        prepare(text, "--gpu-fallback=refuse")
    expected = "Invalid argument: instance group m_0 of model m has kind KIND_GPU but no GPUs are available"
    assert caught.value.reason == expected


def test_notices_of_fields_and_parameters_come_together(prepare: Prepare) -> None:
    plan = prepare(
        COMPLETE + 'parameters { key: "colour" value { string_value: "x" } } response_cache { enable: true }'
    )
    assert [notice.split(" of ")[0] for notice in plan.notices] == [
        "response_cache",
        "parameter 'colour'",
    ]


def test_impossible_resources_are_refused(prepare: Prepare) -> None:
    limiter = 'rate_limiter { resources [ { name: "R1" count: 2 }, { name: "R1" count: 1 } ] priority: 3 }'
    text = COMPLETE.replace("kind: KIND_CPU", f"kind: KIND_CPU {limiter}")
    on = "--rate-limit=execution_count"
    # Where any resource has a number, there is nothing of one that has none on this device. Source: Triton's limiter.
    for limit, limited in (("R1:1", 1), ("R2:1", 0), ("R1:1:7", 0)):
        with pytest.raises(ConfigError) as caught:
            prepare(text, on, f"--rate-limit-resource={limit}")
        assert str(caught.value) == (
            f'Resource count for "R1" is limited to {limited} which will prevent scheduling of one or more model '
            "instances, the minimum required count is 2"
        )
    for limits in ([], ["--rate-limit-resource=R1:2"], ["--rate-limit-resource=R1:5", "--rate-limit-resource=R1:1:0"]):
        plan = prepare(text, on, *limits)
        resources = [{"name": "R1", "global": False, "count": count} for count in (2, 1)]
        assert plan.spec["limits"][0] == {"resources": resources, "priority": 3}
        assert plan.notices == ()
    (notice,) = prepare(text, "--rate-limit-resource=R1:1").notices
    assert notice.endswith("does nothing: start the server with --rate-limit=execution_count")


def test_a_missing_backend_is_reported_before_the_file_is_checked(prepare: Prepare) -> None:
    with pytest.raises(ModelLoadError, match="no backend mine"):
        prepare('backend: "mine" input { name: "X" }')


def test_an_ensemble_needs_neither_backend_nor_instances(prepare: Prepare) -> None:
    plan = prepare("""
        platform: "ensemble"
        input { name: "A" data_type: TYPE_FP32 dims: 2 } output { name: "B" data_type: TYPE_FP32 dims: 2 }
        ensemble_scheduling { max_inflight_requests: 7
                              step { model_name: "n" model_version: 3 input_map { key: "X" value: "A" }
                                     output_map { key: "Y" value: "B" } } }
    """)
    step = {"model": "n", "version": 3, "inputs": {"X": "A"}, "outputs": {"Y": "B"}, "decoupled": False}
    assert plan.spec["engine"] == {"kind": "ensemble", "steps": [step], "max_inflight_requests": 7}
    assert (plan.spec["instances"], plan.notices) == ([], ())


def test_an_absurd_number_of_instances_is_refused(prepare: Prepare) -> None:
    with pytest.raises(ConfigError, match="ask for 2147483647 instances, more than the limit of 1024"):
        prepare(COMPLETE.replace("count: 1", "count: 2147483647"))


def test_the_model_file_is_described_once(folder: Path, options: ServerOptions) -> None:
    calls: list[tuple[Any, ...]] = []

    def describe(library: str, path: str) -> str:
        calls.append((library, path))
        return json.dumps(SIGNATURE)

    backend = partial(OnnxruntimeBackend, find_library=lambda: LIBRARY, open_file=opening(describe))
    prepare_version(Draft(poll_model(folder, "m", options), folder, 1, options), backend_of=lambda name: backend)
    assert calls == [(str(LIBRARY), str(folder / "1" / "model.onnx"))]


@pytest.mark.parametrize("place", ["1/model.onnx", "config.pbtxt", "labels.txt"])
def test_a_pipe_is_refused_rather_than_waited_for(prepare: Prepare, folder: Path, place: str) -> None:
    labels = COMPLETE.replace('name: "Y"', 'name: "Y" label_filename: "labels.txt"')
    (folder / "config.pbtxt").write_text(labels)
    (folder / "labels.txt").write_text("a\nb\n")
    (folder / place).unlink()
    os.mkfifo(folder / place)
    with pytest.raises(ConfigError, match="no regular file"):
        prepare(None)


def test_a_slow_model_file_holds_up_no_other_model(folder: Path, options: ServerOptions) -> None:
    begun, others, prepared = threading.Event(), threading.Event(), []

    def describe(library: str, path: str) -> str:
        if threading.current_thread() is slow:
            begun.set()
            others.wait(10)
        return json.dumps(SIGNATURE)

    def load() -> None:
        made = partial(OnnxruntimeBackend, find_library=lambda: LIBRARY, open_file=opening(describe))
        polled = poll_model(folder, "m", options)
        prepared.append(prepare_version(Draft(polled, folder, 1, options), backend_of=lambda name: made))

    slow = threading.Thread(target=load)
    slow.start()
    assert begun.wait(30)
    load()
    assert len(prepared) == 1, "the other model was held up"
    others.set()
    slow.join()
    assert len(prepared) == 2
