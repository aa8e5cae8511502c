"""Points that are left out before any server is started for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes import ConfigError
from alipes.config.pbtxt import parse_pbtxt
from alipes.tune import Machine, Point
from alipes.tune.knobs import Value
from alipes.tune.models import present_values, read_models
from alipes.tune.possible import Checks

MEMORY = 1 << 20

CONFIGS = {
    "batches": "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 50 }",
    "single": "max_batch_size: 0",
    "chain": """
        platform: "ensemble"
        max_batch_size: 8
        ensemble_scheduling { step { model_name: "single" } step { model_name: "batches" } }
    """,
}


@pytest.fixture
def checks(tmp_path: Path) -> Checks:
    for name, text in CONFIGS.items():
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(text)
        if name != "chain":
            (tmp_path / name / "1" / "model.onnx").write_bytes(b"x" * 1000)
    models = read_models(tmp_path, ["chain"])
    completed = {name: parse_pbtxt(text) for name, text in CONFIGS.items()}
    return Checks(Machine("a processor", 2, MEMORY), models, completed, {"chain": 1, "batches": 4})


@pytest.mark.parametrize(
    ("model", "values", "text"),
    [
        ("single", {"max_batch_size": 2}, "takes no batches"),
        ("batches", {"max_batch_size": 0}, "takes batches: its clients send a batch axis"),
        ("batches", {"max_batch_size": 2}, "requests have 4 rows, more than the largest batch of 2"),
        ("batches", {"preferred": (4, 16)}, "preferred batch of 16 is larger than the largest batch of 8"),
        ("batches", {"max_batch_size": 4, "queue_delay_us": 100}, "full with one request"),
        ("single", {"queue_delay_us": 100}, "full with one request"),
        ("chain", {"instances": 2}, "is an ensemble: instances is a matter of its models single, batches"),
        ("batches", {"instances": 2000}, "need 2 MiB at least, and the machine has 1 MiB"),
        ("batches", {"max_batch_size": 4}, "ensemble 'chain' sends batches of up to 8, more than 4 for 'batches'"),
        ("other", {"instances": 1}, "'other' is not served"),
    ],
)
def test_a_point_that_cannot_be_is_left_out(checks: Checks, model: str, values: dict[str, Value], text: str) -> None:
    assert text in checks.reason(Point.of({model: values}))


@pytest.mark.parametrize(
    ("model", "values"),
    [
        ("single", {"instances": 4, "queue_delay_us": 0}),
        ("batches", {"max_batch_size": 16, "preferred": (8, 16), "queue_delay_us": 100, "instances": 100}),
        ("chain", {"callers": 64}),
    ],
)
def test_any_other_point_is_tried(checks: Checks, model: str, values: dict[str, Value]) -> None:
    assert checks.reason(Point.of({model: values})) == ""


def test_what_an_instance_was_seen_to_hold_counts(checks: Checks) -> None:
    checks.instance_bytes = {"batches": MEMORY // 2}
    assert checks.reason(Point.of({"batches": {"instances": 2}})) != ""
    assert checks.reason(Point.of({"batches": {"instances": 1}})) == ""


def test_an_ensemble_brings_its_models(checks: Checks) -> None:
    assert list(checks.models) == ["chain", "single", "batches"]
    assert checks.models["chain"].is_ensemble
    assert checks.models["batches"].byte_size == 1000


def test_a_model_that_is_not_there_is_named_with_those_that_are(tmp_path: Path, checks: Checks) -> None:
    for name in ("nobody", "", "..", "single/1"):
        with pytest.raises(ConfigError, match="it has batches, chain, single"):
            read_models(tmp_path, [name])


def test_a_digest_changes_with_any_file(tmp_path: Path, checks: Checks) -> None:
    model = checks.models["single"]
    before = model.digest()
    (model.folder / "1" / "model.onnx").write_bytes(b"y" * 1000)
    assert model.digest() != before


def test_the_present_values_are_those_of_the_configuration() -> None:
    text = """
        max_batch_size: 8
        instance_group { count: 2 } instance_group { count: 1 }
        dynamic_batching { max_queue_delay_microseconds: 50 preferred_batch_size: [8, 4] }
        parameters { key: "intra_op_thread_count" value { string_value: "2" } }
    """
    assert present_values(parse_pbtxt(text)) == {
        "instances": 3,
        "max_batch_size": 8,
        "queue_delay_us": 50,
        "preferred": (4, 8),
        "engine_threads": 2,
    }
    assert present_values(parse_pbtxt("")) == {"instances": 1, "max_batch_size": 0}
