"""How the options of the server are made."""

from __future__ import annotations

from dataclasses import fields

import pytest
from alipes.config import options

CLASSES = [getattr(options, name) for name in options.__all__ if isinstance(getattr(options, name), type)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_options_take_names_alone(kind: type) -> None:
    assert all(field.kw_only for field in fields(kind))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes 1 positional argument"):
        kind(*range(len(fields(kind))))  # type: ignore[arg-type]
