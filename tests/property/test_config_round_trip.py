"""Any configuration survives both of its text forms, and none breaks the checks."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from alipes.backends.base import Draft
from alipes.backends.prepare import prepare_version
from alipes.config.load import parse_flags
from alipes.config.override import parse_override
from alipes.config.pbtxt import parse_pbtxt, to_pbtxt
from alipes.config.poll import poll_model
from alipes.config.render import config_json
from alipes.config.schema import descriptor, is_map, is_repeated, new_config
from alipes.errors import AlipesError, ConfigError
from hypothesis import given, settings
from hypothesis import strategies as st
from support.configurations import backend_of

INTEGERS = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
KINDS = {5: "int32", 3: "int64", 13: "uint32", 4: "uint64"}  # by the number of the field's type in descriptor.proto
FLOAT, DOUBLE, BOOL, TEXT = 2, 1, 8, 9


def scalars(field: Any) -> st.SearchStrategy[Any]:
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.type in KINDS:
        low, high = INTEGERS[KINDS[field.type]]
        return st.one_of(st.integers(0, 4), st.integers(low, high)).filter(lambda number: low <= number <= high)
    if field.type in (FLOAT, DOUBLE):
        return st.floats(allow_nan=False, width=32 if field.type == FLOAT else 64)
    return st.booleans() if field.type == BOOL else st.text(max_size=8)


def field_values(field: Any) -> st.SearchStrategy[Any]:
    if is_map(field):
        inner = field.message_type.fields_by_name
        return st.dictionaries(scalars(inner["key"]), singles(inner["value"]), max_size=2)
    return st.lists(singles(field), max_size=2) if is_repeated(field) else singles(field)


def singles(field: Any) -> st.SearchStrategy[Any]:
    return scalars(field) if field.message_type is None else st.deferred(lambda: messages(field.message_type))


def one_of_each_choice(value: dict[str, Any], message: Any) -> dict[str, Any]:
    """Keep the first member of each oneof."""
    seen: set[str] = set()
    remaining = {}
    for name, content in value.items():
        oneof = message.fields_by_name[name].containing_oneof
        if oneof is None or oneof.name not in seen:
            remaining[name] = content
            seen.add(oneof.name if oneof is not None else "")
    return remaining


@cache
def messages(message: Any) -> st.SearchStrategy[dict[str, Any]]:
    fields = {field.name: field_values(field) for field in message.fields}
    names = st.lists(st.sampled_from(sorted(fields)), unique=True, max_size=6) if fields else st.just([])
    chosen = names.flatmap(lambda given: st.fixed_dictionaries({name: fields[name] for name in given}))
    return chosen.map(lambda value: one_of_each_choice(value, message))


CONFIGS = messages(descriptor()).map(lambda value: new_config(**value))


@given(config=CONFIGS)
def test_the_answered_json_is_a_valid_override_of_the_same_meaning(config: Any) -> None:
    assert parse_override(config_json(config)) == config


@given(config=CONFIGS)
def test_the_text_format_keeps_every_field(config: Any) -> None:
    assert parse_pbtxt(to_pbtxt(config)) == config


@given(text=st.text(max_size=60))
def test_any_text_is_read_or_refused_with_one_kind_of_error(text: str) -> None:
    for parse in (parse_pbtxt, parse_override):
        try:
            parse(text)
        except ConfigError as error:
            assert str(error)


OPTIONS = [parse_flags(["models", *flags], {}) for flags in ([], ["--gpu-fallback=refuse", "--strict-model-config"])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models") / "m"
    (made / "1").mkdir(parents=True)
    (made / "1" / "model.onnx").write_bytes(b"")
    return made


@settings(max_examples=300)
@given(config=CONFIGS, backend=st.sampled_from(["onnxruntime", ""]), number=st.integers(0, len(OPTIONS) - 1))
def test_any_configuration_is_planned_or_refused_with_a_reason(
    folder: Path, config: Any, backend: str, number: int
) -> None:
    config.name, config.backend, config.platform = "m", backend, ""
    options = OPTIONS[number]
    try:
        polled = poll_model(folder, "m", options, config)
        plan = prepare_version(Draft(polled, folder, 1, options), backend_of=backend_of)
    except AlipesError as error:
        assert str(error)
    else:
        assert plan.spec["instances"]
        json.dumps(plan.spec)
