"""Bodies of calls: documents, forms with files, raw files, and what is refused."""

from __future__ import annotations

import io
from typing import Any

import pytest
from alipes.worker.apps import custom
from alipes.worker.apps.bodies import MAX_PARTS, Bodies
from alipes.worker.apps.documents import Documents
from alipes.worker.apps.misfit import Misfit
from alipes.worker.apps.options import Options
from alipes.worker.apps.plan import plan_of
from PIL import Image


def classify(image: Image.Image, top: int = 1, label: str = "") -> None: ...


def store(data: bytes, names: list[str] | None = None) -> None: ...


def add(a: float, b: float = 1.0) -> None: ...


def several(files: list[bytes]) -> None: ...


def bodies(function: Any) -> Bodies:
    plan = plan_of(function, Options(name="m"))
    return Bodies(plan, Documents(plan, "m"))


def form(*parts: tuple[str, str | None, bytes]) -> tuple[bytes, str]:
    """A multipart body: name, file name and content of each part."""
    body = io.BytesIO()
    for name, file, content in parts:
        more = f'; filename="{file}"' if file is not None else ""
        body.write(
            f'--edge\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + content + b"\r\n"
        )
    body.write(b"--edge--\r\n")
    return body.getvalue(), "multipart/form-data; boundary=edge"


PNG = custom.png(Image.new("L", (2, 3), 7))


@pytest.mark.parametrize("kind", ["", "application/json", "application/json; charset=utf-8", "application/x-y+json"])
def test_json_is_read_under_each_of_its_names(kind: str) -> None:
    assert bodies(add).read(b'{"a": 2}', kind, "") == {"a": 2.0, "b": 1.0}


def test_what_curl_sends_by_default_is_read_as_what_it_is() -> None:
    kind = "application/x-www-form-urlencoded"
    assert bodies(add).read(b'{"a": 2}', kind, "") == {"a": 2.0, "b": 1.0}
    assert bodies(add).read(b"a=2&b=3.5", kind, "") == {"a": 2.0, "b": 3.5}


@pytest.mark.parametrize("kind", ["image/png", "application/octet-stream", ""])
def test_a_raw_body_is_the_file_and_the_query_the_rest(kind: str) -> None:
    found = bodies(classify).read(PNG, kind, "top=3&label=a+b")
    assert (found["image"].size, found["top"], found["label"]) == ((2, 3), 3, "a b")
    assert bodies(store).read(b"{raw", "text/plain", "names=a&names=b") == {"data": b"{raw", "names": ["a", "b"]}


def test_a_form_has_files_and_texts() -> None:
    found = bodies(classify).read(*form(("image", "a.png", PNG), ("top", None, b"2"), ("label", None, b"12")), "")
    assert (found["image"].getpixel((0, 0)), found["top"], found["label"]) == (7, 2, "12")
    assert bodies(store).read(*form(("data", "x", b"\r\n--\x00"), ("names", None, b"a")), "") == {
        "data": b"\r\n--\x00",
        "names": ["a"],
    }
    assert bodies(several).read(*form(("files", "a", b"1"), ("files", "b", b"2")), "") == {"files": [b"1", b"2"]}
    assert bodies(store).read(*form(("data", "x", b""), ("names", None, b'["a", "b"]')), "")["names"] == ["a", "b"]


@pytest.mark.parametrize(
    ("function", "body", "kind", "status", "said"),
    [
        (add, b"1", "text/plain", 415, "a body of text/plain is not taken"),
        (add, *form(("a", None, b"two")), 422, r"\$\.a: expected float, got str"),
        (add, *form(("c", None, b"1")), 422, r"\$\.c: there is no such argument"),
        (add, *form(("a", "file", b"\xff")), 422, r"\$\.a: expected text, got a file"),
        (classify, b"text", "image/png", 422, r"\$\.image: expected a picture"),
        (store, b"--edge\r\n", "multipart/form-data; boundary=edge", 400, "cannot be read"),
        (store, b"", "multipart/form-data", 400, "without a boundary"),
        (store, *form(*[("names", None, b"")] * (MAX_PARTS + 1)), 413, "over a limit"),
        (add, b"a=1&" * (MAX_PARTS + 1), "application/x-www-form-urlencoded", 413, "more than 1000 fields"),
    ],
)
def test_what_cannot_be_read_has_its_status(function: Any, body: bytes, kind: str, status: int, said: str) -> None:
    with pytest.raises(Misfit, match=said) as raised:
        bodies(function).read(body, kind, "")
    assert raised.value.status == status
