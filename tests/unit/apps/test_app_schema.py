"""Functions as OpenAPI describes them."""

from __future__ import annotations

import dataclasses
import io
from typing import Annotated, Any

import numpy as np
from alipes.worker.apps.documents import Documents
from alipes.worker.apps.options import Options
from alipes.worker.apps.plan import plan_of
from alipes.worker.apps.schema import schema_of


@dataclasses.dataclass
class Book:
    pages: int


@dataclasses.dataclass
class Film:
    minutes: float


@dataclasses.dataclass
class Order:
    """Fields that stand for classes of ours, one of which is the dataclass itself."""

    item: Book | Film
    place: Annotated[np.ndarray, np.float32, (2,)]
    gifts: list[Order] = dataclasses.field(default_factory=list)


def schema(function: Any) -> dict[str, Any]:
    options = Options(name="shop")
    plan = plan_of(function, options)
    return schema_of(function, plan, Documents(plan, "shop"), options)


def test_a_dataclass_is_described_field_by_field() -> None:
    def shop(order: Order) -> list[Order]: ...

    found = schema(shop)
    reference = {"$ref": "#/components/schemas/shop.Order"}
    content = found["request"]["application/json"]
    assert content["schema"]["properties"] == {"order": reference}
    assert content["example"] == {"order": {"item": {"pages": 1}, "place": [1.5, 1.5]}}
    assert found["response"]["application/json"]["schema"] == {"type": "array", "items": reference}
    order = found["components"]["shop.Order"]
    assert order["required"] == ["item", "place"]
    assert order["properties"] == {
        "item": {"anyOf": [{"$ref": f"#/components/schemas/shop.{name}"} for name in ("Book", "Film")]},
        "place": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        "gifts": {"type": "array", "items": reference},
    }
    assert {"shop.Book", "shop.Film"} <= found["components"].keys()


def test_a_result_that_nothing_describes_is_any_value() -> None:
    def shop() -> io.BytesIO: ...

    assert schema(shop)["response"]["application/json"]["schema"] == {}
