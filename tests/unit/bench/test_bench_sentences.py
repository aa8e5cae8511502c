"""The rows of sentences ask the models of the example, and refuse to measure wrong answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.fleet import Fleet
from bench.rows import sentences
from bench.rows.sentences import Request, SentencesRow, network_request, sentence_rows, text_request
from bench.servers.endpoint import Endpoint
from bench.work import WrongAnswer


def test_each_request_is_for_a_model_of_the_example() -> None:
    asked = [text_request("tokens"), text_request("matcher"), network_request({})]
    assert [request.path for request in asked] == [f"/v2/models/{request.model}/infer" for request in asked]
    assert all((sentences.EXAMPLE / request.model / "config.pbtxt").is_file() for request in asked)
    assert sentences.MEANT in (sentences.EXAMPLE / "nearest" / "questions.txt").read_text(encoding="utf-8").splitlines()


def test_targets_of_sentences_name_contenders_of_their_row() -> None:
    labels = {"tokens": {sentences.NATIVE, sentences.IN_PYTHON}, "sentences": {sentences.WHOLE, sentences.ALONE}}
    for row in sentence_rows():
        assert {name for target in row.facts.targets for name in (target.of, target.against)} == labels[row.facts.name]


def test_another_question_than_the_one_meant_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(request: Request, endpoint: Endpoint) -> dict[str, Any]:
        return {"questions": {"data": ["Where is my parcel?", sentences.MEANT]}}

    def no_server(fleet: Fleet, name: str, folder: Path) -> None:
        assert folder == sentences.EXAMPLE

    monkeypatch.setattr(Request, "ask", answers)
    monkeypatch.setattr(Fleet, "alipes_on", no_server)
    with Fleet(frozenset()) as fleet, pytest.raises(WrongAnswer, match="is taken for"):
        SentencesRow().cells(fleet)
