"""An app of another framework is not served: the error names the framework's object, and what to write."""

from __future__ import annotations

from types import ModuleType

import pytest
from alipes.errors import ConfigError
from alipes.worker.apps.source import declared

pytestmark = pytest.mark.extra("examples")

FASTAPI = """
from fastapi import APIRouter, FastAPI
router = APIRouter()
app = FastAPI()
"""
FLASK = """
from flask import Flask
web = Flask("shop")
"""


def refusal(source: str, name: str = "") -> str:
    module = ModuleType("main")
    module.__file__ = "/srv/main.py"
    exec(source, vars(module))
    with pytest.raises(ConfigError) as error:
        declared(module, name)
    return str(error.value)


@pytest.mark.parametrize(
    ("source", "name", "seen"),
    [
        (FASTAPI, "app", "'app' is an object of FastAPI"),
        (FASTAPI, "", "'router' is an object of FastAPI"),
        (FLASK, "app", "'web' is an object of Flask"),
    ],
)
def test_an_app_of_another_framework_is_answered_with_what_to_write(source: str, name: str, seen: str) -> None:
    rest = "and alipes serves functions and classes under @alipes.model: write it above the function that computes"
    assert refusal(source, name).startswith(f"{seen}, {rest}")
