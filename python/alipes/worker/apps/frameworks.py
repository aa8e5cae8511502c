"""Objects of other frameworks in an app, which people may mean to serve: they are named, and not served."""

from __future__ import annotations

from types import ModuleType
from typing import Final

__all__ = ["foreign_object"]

_FRAMEWORKS: Final = {
    "_bentoml_sdk": "BentoML",
    "bentoml": "BentoML",
    "fastapi": "FastAPI",
    "flask": "Flask",
    "litestar": "Litestar",
    "litserve": "LitServe",
    "quart": "Quart",
    "ray": "Ray",
    "sanic": "Sanic",
    "starlette": "Starlette",
}
"""Frameworks by the package of their classes."""


def foreign_object(module: ModuleType, name: str = "") -> tuple[str, str] | None:
    """An object of another framework, such as an application of FastAPI: its name in the app, and the framework.

    Args:
        module: The app.
        name: The object that is wanted; where it is none or empty, the first one counts.
    """
    things = vars(module)
    for attribute in (name, *things):
        package = type(things.get(attribute)).__module__.partition(".")[0]
        if package in _FRAMEWORKS:
            return attribute, _FRAMEWORKS[package]
    return None
