"""`@alipes.model`: what it marks stays what it is, and options that cannot be are refused at once."""

from __future__ import annotations

from typing import Any

import alipes
import pytest
from alipes.errors import ConfigError
from alipes.worker.apps.options import RESERVED_NAMES, options_of


def test_a_decorated_function_is_the_function_itself() -> None:
    def add(a: float, b: float = 1.0) -> float:
        return a + b

    assert alipes.model(add) is add
    assert add(2.0) == 3.0
    options = options_of(add)
    assert options is not None
    assert (options.name, options.max_batch_size, options.instances) == ("add", 0, 1)


def test_a_class_is_named_in_lower_case_and_can_be_made() -> None:
    @alipes.model(batch=True, instances=2)
    class Sentiment:
        def predict(self, text: list[str]) -> list[float]:
            return [float(len(one)) for one in text]

    options = options_of(Sentiment)
    assert options is not None
    assert (options.name, options.max_batch_size, options.instances) == ("sentiment", 32, 2)
    assert Sentiment().predict(["abc"]) == [3.0]


def test_a_subclass_of_a_model_is_no_model_by_itself() -> None:
    @alipes.model
    class Base:
        def predict(self, x: int) -> int:
            return x

    class Other(Base):
        pass

    assert options_of(Other) is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "a b"}, "letters, digits"),
        ({"name": ""}, "letters, digits"),
        ({"max_batch_size": -1}, "an integer from 0"),
        ({"max_batch_size": 2.5}, "an integer from 0"),
        ({"instances": 0}, "an integer from 1"),
        ({"instances": True}, "an integer from 1"),
        ({"concurrency": 0}, "an integer from 1"),
        ({"max_delay": -1.0, "batch": True}, "seconds from 0"),
        ({"timeout": -1.0}, "seconds from 0"),
        ({"timeout": True}, "seconds from 0"),
        ({"max_delay": 0.1}, "give max_batch_size= too"),
        ({"device": "tpu"}, "'cpu' or 'gpu'"),
        ({"start": "now"}, "a function"),
        ({"batch_size": 4}, "no option batch_size="),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(options: dict[str, Any], said: str) -> None:
    def function(x: int) -> int:
        return x

    with pytest.raises(ConfigError, match="model") as raised:
        alipes.model(**options)(function)
    assert said in str(raised.value)


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_a_name_that_the_server_has_for_itself_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="the server has"):
        alipes.model(name=name)(len)


def test_what_cannot_be_called_is_no_model() -> None:
    with pytest.raises(ConfigError, match="above a function or a class, not above a int"):
        alipes.model(5)  # type: ignore[call-overload]
