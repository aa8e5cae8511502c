"""The table of models in the log."""

from __future__ import annotations

from alipes.server.table import HEADINGS, model_documents, model_rows, text_table
from alipes.types import IndexEntry, ModelState


def test_table_has_the_form_that_triton_logs() -> None:
    entries = [
        IndexEntry("mlp", "12", ModelState.READY),
        IndexEntry("x", "", ModelState.UNAVAILABLE, "no\nbackend"),
    ]
    assert text_table(HEADINGS, model_rows(entries)) == "\n".join(
        [
            "+-------+---------+-------------------------+",
            "| Model | Version | Status                  |",
            "+-------+---------+-------------------------+",
            "| mlp   | 12      | READY                   |",
            "| x     | -       | UNAVAILABLE: no backend |",
            "+-------+---------+-------------------------+",
        ]
    )


def test_a_table_without_models_has_its_headings() -> None:
    assert text_table(HEADINGS, []).splitlines()[1] == "| Model | Version | Status |"


def test_line_ends_and_escapes_of_a_name_stay_in_its_cell() -> None:
    entry = IndexEntry("two\nlines \x1b[31mé", "1", ModelState.READY)
    assert text_table(HEADINGS, model_rows([entry])).splitlines()[3:] == [
        r"| two\nlines \x1b[31mé | 1       | READY  |",
        "+----------------------+---------+--------+",
    ]


def test_a_log_of_documents_has_one_for_each_model_version() -> None:
    entries = [
        IndexEntry("mlp", "12", ModelState.READY),
        IndexEntry("x", "", ModelState.UNAVAILABLE, "no\nbackend"),
    ]
    assert model_documents(entries) == [
        {"message": "model 'mlp' version 12 is READY", "model": "mlp", "version": "12", "state": "READY"},
        {
            "message": "model 'x' is UNAVAILABLE: no backend",
            "model": "x",
            "state": "UNAVAILABLE",
            "reason": "no\nbackend",
        },
    ]
    assert model_documents([]) == [{"message": "no model was loaded"}]
