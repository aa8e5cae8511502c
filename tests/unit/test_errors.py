from __future__ import annotations

from pathlib import Path

import pytest
from alipes import errors
from alipes.errors import AlipesError, ConfigError, InferError, ModelLoadError, Overloaded, RepositoryError, TooLarge

EVERY = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("kind", EVERY)
def test_everything_is_caught_by_the_root_and_carries_its_message(kind: type[AlipesError]) -> None:
    assert issubclass(kind, AlipesError)
    assert str(kind("what was seen")) == "what was seen"


@pytest.mark.parametrize("kind", [kind for kind in EVERY if issubclass(kind, InferError) and kind is not InferError])
def test_the_code_of_a_request_error_is_its_name(kind: type[InferError]) -> None:
    error = kind("no", model="m", request_id="7")
    assert (error.code, error.message, error.model, error.request_id) == (kind.__name__, "no", "m", "7")


def test_a_config_error_is_a_value_error() -> None:
    assert issubclass(ConfigError, ValueError)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConfigError("no"), "no"),
        (ConfigError("no", hint="say yes"), "no (say yes)"),
        (ConfigError("no", path="/a/b"), "/a/b: no"),
        (ConfigError("no", path=Path("/a/b"), line=3, hint="say yes"), "/a/b:3: no (say yes)"),
        (ConfigError("no in /a/b", path=Path("/a/b"), line=3), "no in /a/b"),
    ],
)
def test_an_explanation_has_place_message_and_hint(error: ConfigError, text: str) -> None:
    assert error.explain() == text


def test_a_reason_begins_with_the_word_of_its_code() -> None:
    assert ConfigError("no").reason == "Invalid argument: no"
    assert ConfigError("no", code="UNSUPPORTED").reason == "Unsupported: no"
    assert ModelLoadError("no").reason == "Internal: no"
    assert RepositoryError("no").reason == "no"
    assert RepositoryError("no", reason="because").reason == "because"


def test_errors_keep_their_details() -> None:
    assert Overloaded("no", retry_after_s=0.5).retry_after_s == 0.5
    assert TooLarge("no", limit="x=1").limit == "x=1"
    assert errors.DeadlineExceeded("no", where="queue").where == "queue"
