"""What the variables of KServe's server say of the answers to events."""

from __future__ import annotations

import pytest
from alipes.config.cloud_events import read_cloud_events
from alipes.config.record_options import CloudEventOptions


def test_answers_are_kserves_unless_variables_say_otherwise() -> None:
    assert read_cloud_events({}) == CloudEventOptions(merge=False, kind=None, source=None)
    environ = {"CE_TYPE": "answer", "CE_SOURCE": "here"}
    assert read_cloud_events(environ) == CloudEventOptions(merge=False, kind="answer", source="here")


@pytest.mark.parametrize(("text", "merge"), [("true", True), ("TRUE", True), ("1", False), ("", False)])
def test_attributes_are_repeated_for_the_word_true_alone(text: str, merge: bool) -> None:
    assert read_cloud_events({"CE_MERGE": text}).merge is merge
