"""The rows of sentences ask the models of the example, and refuse to measure wrong answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.fleet import Fleet
from bench.rows import sentences
from bench.rows.sentences import (
    Request,
    SentencesRow,
    check_tokens,
    network_request,
    sentence_rows,
    text_request,
    texts_request,
)
from bench.servers.endpoint import Endpoint
from bench.work import WrongAnswer


def test_each_request_is_for_a_model_of_the_example() -> None:
    asked = [text_request("tokens"), text_request("matcher"), network_request({})]
    assert [request.path for request in asked] == [f"/v2/models/{request.model}/infer" for request in asked]
    assert all((sentences.EXAMPLE / request.model / "config.pbtxt").is_file() for request in asked)
    assert sentences.MEANT in (sentences.EXAMPLE / "nearest" / "questions.txt").read_text(encoding="utf-8").splitlines()


def test_targets_of_sentences_name_contenders_of_their_row() -> None:
    labels = {
        "tokens": {sentences.NATIVE, sentences.IN_PYTHON},
        "tokens_step": {sentences.NATIVE, sentences.WHEEL},
        "sentences": {sentences.WHOLE, sentences.ALONE},
    }
    for row in sentence_rows():
        assert {name for target in row.facts.targets for name in (target.of, target.against)} == labels[row.facts.name]


def test_the_step_is_sent_different_sentences_in_one_batch() -> None:
    texts = sentences.sentences()
    assert len(set(texts)) == len(texts) == 50
    (tensor,) = texts_request(texts).document["inputs"]
    assert (tensor["shape"], tensor["data"]) == ([50, 1], texts)
    # Neither overwrites what the other sends.
    assert texts_request(texts).file() != text_request("tokens").file()


def test_texts_with_other_tokens_than_the_wheel_are_not_measured() -> None:
    expected = [(np.array([[2, 7, 3, 0]]), np.array([[1, 1, 1, 0]])), (np.array([[2, 3]]), np.array([[1, 1]]))]
    answer = {"input_ids": {"data": [2, 7, 3, 2, 3, 0]}, "attention_mask": {"data": [1, 1, 1, 1, 1, 0]}}
    check_tokens(answer, expected)
    answer["input_ids"]["data"][1] = 8
    with pytest.raises(WrongAnswer, match="text 0 has the tokens"):
        check_tokens(answer, expected)


def test_another_question_than_the_one_meant_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers(request: Request, endpoint: Endpoint) -> dict[str, Any]:
        return {"questions": {"data": ["Where is my parcel?", sentences.MEANT]}}

    def no_server(fleet: Fleet, name: str, folder: Path) -> None:
        assert folder == sentences.EXAMPLE

    monkeypatch.setattr(Request, "ask", answers)
    monkeypatch.setattr(Fleet, "alipes_on", no_server)
    with Fleet(frozenset()) as fleet, pytest.raises(WrongAnswer, match="is taken for"):
        SentencesRow().cells(fleet)
