"""Wildcards in files of objects."""

from __future__ import annotations

import numpy as np
import pytest
from alipes.cloud.kubernetes.template import documents_of
from alipes.errors import ConfigError

pytestmark = pytest.mark.extra("deploy")


def document(line: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\nspec:\n  {line}\n"


def value(line: str, **values: object) -> object:
    (found,) = documents_of(document(line), values)
    return found["spec"]["field"]


@pytest.mark.parametrize(
    ("line", "given", "expected"),
    [
        ("field: {{ .Values.v }}", 4, 4),
        ("field: {{ .Values.v }}", "20.11", "20.11"),
        ("field: {{ .Values.v }}", True, True),
        ("field: {{ .Values.v }}", None, None),
        ("field: {{ .Values.v }}", "a: b\n- c # {}", "a: b\n- c # {}"),
        ("field: '{{ .Values.v }}'", 4, "4"),
        ('field: "{{ .Values.v }}"', True, "true"),
        ("field: image:{{ .Values.v }}-py3", 20.5, "image:20.5-py3"),
        ("field: [{{ .Values.v }}, 2]", 1, [1, 2]),
        ("field: {a: {{ .Values.v }}}", "b", {"a": "b"}),
        ("field: |\n    first {{ .Values.v }}\n    last", "line", "first line\nlast\n"),
    ],
)
def test_a_value_alone_keeps_its_type_and_in_text_becomes_text(line: str, given: object, expected: object) -> None:
    assert value(line, v=given) == expected


def test_a_value_may_be_part_of_a_key() -> None:
    assert value("field: {example.com/{{ .Values.v }}: 1}", v="gpu") == {"example.com/gpu": 1}


def test_underscores_are_allowed_in_names() -> None:
    assert value("field: {{ .Values.node_pool }}", node_pool="t4") == "t4"


def test_a_missing_value_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^No value provided for wildcard gpus$") as found:
        value("field: {{ .Values.gpus }}", vcpus=4)
    assert isinstance(found.value, ValueError)


def test_unused_values_are_named() -> None:
    with pytest.raises(ConfigError, match=r"^Provided unused wildcard values: tag, bucket$"):
        value("field: {{ .Values.v }}", tag="20.11", v=1, bucket="b")


def test_documents_are_split_and_empty_ones_left_out() -> None:
    text = f"---\n{document('field: 1')}---\n# nothing\n---\n{document('field: {{ .Values.v }}')}"
    assert [one["spec"]["field"] for one in documents_of(text, {"v": 2})] == [1, 2]


def test_anchors_and_merges_work() -> None:
    text = document("base: &base {a: 1}\n  field: {<<: *base, b: {{ .Values.v }}}")
    (found,) = documents_of(text, {"v": 2})
    assert found["spec"]["field"] == {"a": 1, "b": 2}


def test_aliases_that_stand_for_billions_are_refused() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 10)]
    with pytest.raises(ConfigError, match="more than 200000 values"):
        documents_of(document("\n  ".join(lines)), {})


def test_an_alias_of_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        documents_of(document("field: &a [*a]"), {})


def test_a_date_is_text_as_in_json() -> None:
    assert value("field: 2026-11-28") == "2026-11-28"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [1", r"server.yaml: not YAML: .*line 1: a: \[1"),
        (
            "{{ if .Values.x }}",
            "line 1: {{ if .Values.x }}; of templates only {{ .Values.name }} is understood: render charts with Helm",
        ),
        ("- 1", "a document is list, not an object"),
        ("kind: Pod", "a document has no apiVersion"),
        ("apiVersion: v1\nkind: Pod", "a document has no metadata.name"),
        ("apiVersion: v1\nkind: !!python/name:os.system x", "not YAML"),
        ("a: !!int ''", "no tag:yaml.org,2002:int, line 1"),
        ("a: !!binary aGk=", "a value that JSON has not, line 1"),
        ("a: .nan", "a value that JSON has not"),
    ],
)
def test_what_is_no_object_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        documents_of(text, {}, "server.yaml")


def test_a_number_of_numpy_is_a_number() -> None:
    assert type(value("field: {{ .Values.v }}", v=np.int64(4))) is int


def test_a_value_that_no_file_can_have_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^the value of wildcard v is bytes, which no file can have$"):
        value("field: {{ .Values.v }}", v=b"")
