"""Whatever a file of objects and the values of its wildcards say."""

from __future__ import annotations

import pytest
from alipes.cloud.kubernetes.template import documents_of
from alipes.errors import ConfigError
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.extra("deploy")

FILE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: x, labels: {alone: {{ .Values.v }}, quoted: "{{ .Values.v }}", inside: a{{ .Values.v }}z}}
data:
  {{ .Values.v }}key: last
"""

SCALARS = st.text() | st.integers() | st.booleans()


@settings(max_examples=30)
@given(SCALARS)
def test_no_value_changes_the_structure_of_a_file(value: object) -> None:
    (found,) = documents_of(FILE, {"v": value})
    text = str(value).lower() if isinstance(value, bool) else str(value)
    labels = {"alone": value, "quoted": text, "inside": f"a{text}z"}
    assert found == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "labels": labels},
        "data": {f"{text}key": "last"},
    }


TAGS = [f"!!{name} " for name in ("binary", "int", "float", "bool", "null", "timestamp", "set", "omap", "pairs", "seq")]
WORDS = ["a: ", "- ", "{", "}", "[", "]", "&a ", "*a", "<<: ", "{{ .Values.v }}", "\n", "  ", '"', "'", "|", "?", *TAGS]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=30).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    values = {"v": 1} if "{{ .Values.v }}" in text else {}
    try:
        documents = documents_of(text, values)
    except ConfigError:
        return
    assert all(one["kind"] for one in documents)
