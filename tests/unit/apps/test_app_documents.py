"""JSON into the arguments of a function: all kinds of annotations, and one error that names the place."""

from __future__ import annotations

import base64
import dataclasses
import enum
import io
import json
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional, Required, TypedDict

import numpy as np
import pytest
from alipes.errors import Cancelled, ConfigError
from alipes.worker.apps import custom, jpeg
from alipes.worker.apps.callers import reading_for
from alipes.worker.apps.documents import Documents, encode
from alipes.worker.apps.misfit import SHOWN_CHARACTERS, Misfit
from alipes.worker.apps.options import Options
from alipes.worker.apps.plan import plan_of
from numpy.typing import NDArray
from PIL import Image


@dataclasses.dataclass
class Row:
    x: float
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Item:
    price: float
    name: str = ""


@dataclasses.dataclass
class Table:
    rows: list[Row]
    counts: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    values: NDArray[np.float32] | None = None


class Place(TypedDict):
    city: str
    zip: int


@dataclasses.dataclass
class Choice:
    """Fields that msgspec cannot read by itself."""

    one: Row | Table
    pair: Annotated[np.ndarray, np.float32, (2,)] = dataclasses.field(default_factory=lambda: np.zeros(2, np.float32))
    inner: list[Choice] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.inner) > 2:
            raise ValueError("too many")


class Both(TypedDict, total=False):
    first: Required[Row | Table]
    second: Row | Table


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def documents(annotation: Any, default: Any = ...) -> Documents:
    def function(x: Any = default) -> None: ...

    if default is ...:
        function.__defaults__ = None
    function.__annotations__ = {"x": annotation}
    options = Options(name="function")
    return Documents(plan_of(function, options), "function")


def read(annotation: Any, value: Any) -> Any:
    return documents(annotation).read(json.dumps({"x": value}).encode())["x"]


def misfit(annotation: Any, value: Any) -> str:
    with pytest.raises(Misfit) as raised:
        read(annotation, value)
    assert raised.value.status == 422
    return str(raised.value)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (int, 3, 3),
        (float, 3, 3.0),
        (str, "é", "é"),
        (bool, True, True),
        (None, None, None),
        (int | None, None, None),
        (list[float], [1, 2.5], [1.0, 2.5]),
        (tuple[int, str], [1, "a"], (1, "a")),
        (dict[str, list[int]], {"a": [1]}, {"a": [1]}),
        (int | str, "a", "a"),
        (Literal["a", "b"], "b", "b"),
        (Colour, "red", Colour.RED),
        (Row, {"x": 1}, Row(1.0)),
        (list[Row], [{"x": 1, "tags": ["t"]}], [Row(1.0, ["t"])]),
        (Place, {"city": "Bonn", "zip": 53111}, {"city": "Bonn", "zip": 53111}),
        (bytes, base64.b64encode(b"\x00\xff").decode(), b"\x00\xff"),
        (Any, {"a": [1, None]}, {"a": [1, None]}),
    ],
)
def test_an_annotation_takes_what_it_names(annotation: Any, value: Any, expected: Any) -> None:
    assert read(annotation, value) == expected


@pytest.mark.parametrize(
    ("annotation", "value", "said"),
    [
        (int, "3", "$.x: expected int, got str"),
        (float, None, "$.x: expected float, got null"),
        (list[float], [1, "a"], "$.x[1]: expected float, got str"),
        (Table, {"rows": [{"x": 1}, {"x": "s"}]}, "$.x.rows[1].x: expected float, got str"),
        (Table, {"rows": [{}]}, "$.x.rows[0].x: is missing"),
        (Table, {"rows": [], "counts": {"a": [1], "b c": [1, 2.5]}}, "$.x.counts['b c'][1]: expected int, got float"),
        (Table, {"rows": [], "values": [1, "a"]}, "$.x.values[1]: expected float, got str"),
        (Literal["a", "b"], "c", "$.x: 'c' is none of a, b"),
        (bytes, "no base64!", "$.x: invalid base64 encoded string"),
    ],
)
def test_an_error_names_the_place_and_both_kinds(annotation: Any, value: Any, said: str) -> None:
    assert misfit(annotation, value) == said


def test_what_is_wrong_first_is_named_where_the_rest_is_malformed() -> None:
    with pytest.raises(Misfit, match=r"^\$\.x\.counts\[\.\.\.\]: expected array, got int$"):
        documents(Table).read(b'{"x": {"rows": [], "counts": {"a": 1]}}')


def test_missing_and_unknown_arguments_are_named() -> None:
    reader = documents(int)
    with pytest.raises(Misfit, match=r"^\$\.x: is missing$"):
        reader.read(b"")
    with pytest.raises(Misfit, match=r"^\$\.y: there is no such argument; the function takes 'x'$"):
        reader.read(b'{"x": 1, "y": 2}')
    with pytest.raises(Misfit, match=r"^\$: expected int, got array$"):
        reader.read(b"[1]")
    with pytest.raises(Misfit, match=r"^\$\.y: there is no such argument, and 'x' is missing$"):
        reader.read(b'{"y": 2}')


def test_a_document_may_be_the_only_argument() -> None:
    assert documents(int).read(b"3") == {"x": 3}
    assert documents(list[float]).read(b"[1, 2]") == {"x": [1.0, 2.0]}
    for document in (b'{"price": 2}', b'{"x": {"price": 2}}'):
        assert documents(Item).read(document) == {"x": Item(2.0)}
    for other in (b'{"x": {"name": "a"}}', b'{"name": "a"}', b'{"y": {"price": 2}}', b'{"price": "a"}', b"{}"):
        with pytest.raises(Misfit):
            documents(Item).read(other)
    with pytest.raises(Misfit, match=r"^\$\.y: there is no such argument; the function takes 'x'$"):
        documents(Optional[Node], default=None).read(b'{"y": {}}')  # noqa: UP045


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b'{"x": 1} rest', b'{"x":' + b"[" * 100_000])
def test_a_body_that_is_no_json_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(Misfit) as raised:
        documents(Any).read(body)
    assert raised.value.status == 400


def test_a_default_is_the_functions_own() -> None:
    assert documents(list[int], [1]).read(b"{}") == {}
    assert documents(list[int], [1]).read(b'{"x": [2]}') == {"x": [2]}


def test_arrays_take_nested_lists_of_their_kind() -> None:
    for value in ([1.5, 2], [], [[1], [2]], 3):
        array = read(NDArray[np.float32], value)
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, np.array(value, np.float32))
    assert read(NDArray[np.int8], [[1, -2]]).dtype == np.int8
    assert read(NDArray[np.bool_], [True]).tolist() == [True]
    assert read(np.ndarray, [1, 2]).tolist() == [1, 2]
    assert read(Annotated[np.ndarray, np.uint8, (None, 2)], [[1, 2]]).shape == (1, 2)
    assert read(list[NDArray[np.int64]], [[1], [2, 3]])[1].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("annotation", "value", "said"),
    [
        (NDArray[np.float32], [[1, "a"]], "$.x[0][1]: expected float, got str"),
        (NDArray[np.float32], ["1.5"], "$.x[0]: expected float, got str"),
        (NDArray[np.float32], [[1], [1, 2]], "$.x: expected an array of float32, got lists of different lengths"),
        (NDArray[np.float32], {"a": 1}, "$.x: expected an array of float32, got object"),
        (NDArray[np.float32], [None], "$.x[0]: expected float, got null"),
        (NDArray[np.int8], [1, 300], "$.x[1]: expected an integer of int8, got one out of its range"),
        (NDArray[np.int64], [1.5], "$.x[0]: expected int, got float"),
        (NDArray[np.int64], [2**70], "$.x[0]: expected a number of int64, got an integer that is too large"),
        (NDArray[np.float32], [1.5, -1e39], "$.x[1]: expected a number of float32, got one out of its range"),
        (NDArray[np.float16], [[70000]], "$.x[0][0]: expected a number of float16, got one out of its range"),
        (NDArray[np.complex64], 1e39, "$.x: expected a number of complex64, got one out of its range"),
        (NDArray[np.bool_], [1], "$.x[0]: expected bool, got int"),
        (Annotated[np.ndarray, np.float32, (None, 2)], [[1]], "got shape [1, 1]"),
        (list[NDArray[np.int8]], [[1], ["a"]], "$.x[1][0]: expected int, got str"),
    ],
)
def test_an_array_that_does_not_fit_names_the_item(annotation: Any, value: Any, said: str) -> None:
    assert said in misfit(annotation, value)


def test_pictures_come_in_base64() -> None:
    data = custom.png(Image.new("RGB", (3, 2), "red"))
    text = base64.b64encode(data).decode()
    for value in (text, f"data:image/png;base64,{text}"):
        picture = read(Image.Image, value)
        assert (picture.size, picture.getpixel((2, 1))) == ((3, 2), (255, 0, 0))


@dataclasses.dataclass
class Node:
    """Fields that hold the class itself, in each of the ways that people write it."""

    next: Optional[Node] = None  # noqa: UP045
    others: list[Optional[Node]] = dataclasses.field(default_factory=list)  # noqa: UP045
    either: Row | Node | None = None


def test_a_class_may_hold_itself() -> None:
    found = read(Node, {"next": {"next": None}, "others": [None, {"others": []}], "either": {"x": 1}})
    assert found == Node(Node(), [None, Node()], Row(1.0))
    assert read(Optional[Node], None) is None  # noqa: UP045
    assert "$.x.next.next: expected" in misfit(Node, {"next": {"next": 5}})


def test_an_error_repeats_little_of_a_document() -> None:
    name = "n" * 10_000_000
    with pytest.raises(Misfit) as raised:
        documents(int).read(json.dumps({"x": 1, name: 1}).encode())
    assert len(str(raised.value)) <= SHOWN_CHARACTERS + 3
    assert str(raised.value).startswith("$.nnn")


def test_only_the_documented_formats_of_pictures_are_read() -> None:
    Image.init()
    picture, taken = Image.new("RGB", (8, 8), "red"), set()
    for kind in Image.SAVE:
        file = io.BytesIO()
        try:
            picture.save(file, kind)
            read(Image.Image, base64.b64encode(file.getvalue()).decode())
        except Misfit as error:
            assert "expected a picture, which is a file of JPEG, PNG," in str(error)
        except (OSError, KeyError, ValueError, RuntimeError, DeprecationWarning):
            continue  # Pillow does not write this picture so
        else:
            taken.add(kind)
    # A file of several JPEG pictures, as telephones write them, is a JPEG file.
    assert taken - {"MPO"} == set(custom.PICTURE_FORMATS)
    assert "EPS" in Image.SAVE


def test_no_other_reader_sees_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []

    def accepts(start: bytes) -> bool:
        seen.append(start)
        return True

    Image.init()
    monkeypatch.setitem(Image.OPEN, "EPS", (lambda _file, _name: pytest.fail("EPS was opened"), accepts))
    monkeypatch.setattr(Image, "ID", ["EPS", *Image.ID])
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "EPS")
    for start in (b"", b"\xc5\xd0\xd3\xc6" + bytes(26)):
        with pytest.raises(Misfit) as raised:
            read(Image.Image, base64.b64encode(start + file.getvalue()).decode())
        assert raised.value.status == 422
    assert seen == []


def test_a_jpeg_file_asks_for_no_more_than_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    profile, exif = bytes(200_000), b"Exif\0\0" + bytes(100)
    Image.effect_noise((64, 48), 50).save(file, "JPEG", progressive=True, icc_profile=profile, exif=exif)
    whole = file.getvalue()
    last = whole.rindex(b"\xff\xda")
    start, rest, scan = whole[:2], whole[2:], whole[last:-2]
    assert read(Image.Image, base64.b64encode(whole).decode()).size == (64, 48)
    few = [start + b"\xff" * 100 + rest, whole[:20] + b"junk" + whole[20:], whole + b"\xff\xda" * 1000]
    assert [read(Image.Image, base64.b64encode(data).decode()).size for data in few] == [(64, 48)] * 3
    # The bounds act before Pillow sees the file.
    monkeypatch.setattr(Image, "open", lambda *_args, **_options: pytest.fail("the file was opened"))
    fill = b"\xff" * (jpeg.MAX_LOOSE_BYTES + 1)
    for data, reason in (
        (whole[:last] + scan * (jpeg.MAX_SCANS + 1) + b"\xff\xd9", "more than 100 scans"),
        (start + b"\xff\xfe\0\2" * (jpeg.MAX_SEGMENTS + 1) + rest, "more than 4096 segments"),
        (start + b"\xff\xd0" * (jpeg.MAX_SEGMENTS + 1) + rest, "more than 4096 segments"),
        *((made, "more than 65536 bytes between") for made in (start + fill + rest, whole[:-9] + fill, start + fill)),
        (start + b"a" * len(fill) + rest, "more than 65536 bytes between"),
        (start + b"\xff\0" * len(fill), "more than 65536 bytes between"),
    ):
        with pytest.raises(Misfit, match=reason) as raised:
            read(Image.Image, base64.b64encode(data).decode())
        assert raised.value.status == 413


def test_a_picture_is_not_read_on_once_its_caller_has_left() -> None:
    data = custom.png(Image.effect_noise((600, 600), 50))
    looks: list[bool] = []

    def has_left() -> bool:
        looks.append(len(looks) == 3)
        return looks[-1]

    text = base64.b64encode(data).decode()
    with pytest.raises(Cancelled, match=r"^the caller has left$"), reading_for(has_left):
        read(Image.Image, text)
    assert looks == [False, False, False, True]
    assert read(Image.Image, text).size == (600, 600)


def test_a_picture_that_cannot_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = custom.png(Image.effect_noise((64, 64), 50))
    assert "expected a picture in base64, got int" in misfit(Image.Image, 5)
    assert "no base64" in misfit(Image.Image, "?")
    no_picture = base64.b64encode(b"text").decode()
    assert "expected a picture, which is a file of JPEG, PNG," in misfit(Image.Image, no_picture)
    assert "cannot be read" in misfit(Image.Image, base64.b64encode(data[: len(data) // 2]).decode())
    monkeypatch.setattr(custom, "MAX_PIXELS", 4095)
    with pytest.raises(Misfit, match=r"64 x 64 pixels") as raised:
        read(Image.Image, base64.b64encode(data).decode())
    assert raised.value.status == 413


def test_pydantic_models_are_read_and_answered() -> None:
    pydantic = pytest.importorskip("pydantic", reason="an app may use pydantic; nothing of ours needs it")

    class Item(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        name: str
        prices: list[float] = pydantic.Field(default_factory=list)

    assert read(Item, {"name": "a", "prices": [1]}) == Item(name="a", prices=[1.0])
    assert read(list[Item], [{"name": "a"}]) == [Item(name="a")]
    assert misfit(list[Item], [{"name": "a"}, {"name": "b", "prices": ["z"]}]).startswith("$.x[1].prices[0]: ")
    assert json.loads(encode(Item(name="a"))) == {"name": "a", "prices": []}


@pytest.mark.parametrize("annotation", [complex, Callable[[int], int], object, io.BytesIO, Row | complex])
def test_an_annotation_that_no_document_can_hold_is_refused(annotation: Any) -> None:
    with pytest.raises(ConfigError, match="argument 'x'") as raised:
        documents(annotation)
    assert "take numbers, texts, lists" in str(raised.value)


def test_an_annotation_that_is_not_defined_is_refused() -> None:
    with pytest.raises(ConfigError, match="its annotations name 'Nope', which is not there when the app is imported"):
        documents("Nope")

    @dataclasses.dataclass
    class Holder:
        one: "Nope"  # type: ignore[name-defined] # noqa: F821, UP037

    for annotation, name in ((Holder, "Holder"), (Holder | int, r".*Holder \| int")):
        with pytest.raises(ConfigError, match=f"argument 'x' is {name}, whose annotations name 'Nope', which is not"):
            documents(annotation)


def test_a_union_is_read_as_its_first_member_that_fits() -> None:
    assert read(Row | Table, {"x": 1}) == Row(1.0)
    assert read(Row | Table, {"rows": [{"x": 1}]}) == Table([Row(1.0)])
    assert read(Table | Row | None, None) is None
    assert read(list[Row | Table], [{"rows": []}, {"x": 2, "rows": []}]) == [Table([]), Row(2.0)]
    assert read(dict[str, Place | Row], {"a": {"x": 1}}) == {"a": Row(1.0)}
    array = read(NDArray[np.float32] | str, [1, 2])
    assert (array.tolist(), array.dtype) == ([1, 2], np.float32)
    assert read(NDArray[np.float32] | str, "a") == "a"
    said = misfit(list[Row | Table], [{"x": 1}, {"rows": [{"x": "a"}]}])
    assert said == (
        "$.x[1]: fits none of Row (Object missing required field x); Table (Expected float, got str - at $.rows[0].x)"
    )


def test_fields_of_a_dataclass_are_read_as_arguments_are() -> None:
    found = read(Choice, {"one": {"rows": []}, "pair": [1, 2], "inner": [{"one": {"x": 1}}]})
    assert (found.one, found.pair.tolist(), found.pair.dtype) == (Table([]), [1, 2], np.float32)
    (inner,) = found.inner
    assert (inner.one, inner.pair.tolist(), inner.inner) == (Row(1.0), [0, 0], [])
    assert read(Both, {"first": {"x": 1}}) == {"first": Row(1.0)}
    assert read(Both | None, {"first": {"x": 1}, "second": {"rows": []}}) == {"first": Row(1.0), "second": Table([])}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "$.x.one: is missing"),
        ({"one": {"x": 1}, "pair": [1, 2, 3]}, "$.x.pair: expected an array of float32 of shape [2], got shape [3]"),
        (
            {"one": {"x": 1}, "inner": [{"one": {"x": 1}}, {"one": {"y": 1}}]},
            "$.x.inner[1].one: fits none of Row (Object missing required field x); "
            "Table (Object missing required field rows)",
        ),
        ({"one": {"x": 1}, "inner": [{"one": {"x": 1}}] * 3}, "$.x: too many"),
        (7, "$.x: expected object, got int"),
    ],
)
def test_what_does_not_fit_a_field_is_named_with_its_path(value: Any, text: str) -> None:
    assert misfit(Choice, value) == text


def test_a_field_that_no_document_can_hold_is_refused() -> None:
    @dataclasses.dataclass
    class Odd:
        one: Row | Table
        stream: io.BytesIO

    with pytest.raises(ConfigError, match=r"argument 'x' has the type _io\.BytesIO, which no document can hold"):
        documents(Odd)


def test_values_are_answered_as_they_are() -> None:
    value = {
        "array": np.arange(4, dtype=np.float32).reshape(2, 2),
        "number": np.float32(1.5),
        "texts": np.array(["a", b"b"], object),
        "row": Row(1.0),
        "colour": Colour.BLUE,
        "bytes": b"\x00",
        "nan": math.nan,
        "none": None,
    }
    assert json.loads(encode(value)) == {
        "array": [[0, 1], [2, 3]],
        "number": 1.5,
        "texts": ["a", "b"],
        "row": {"x": 1.0, "tags": []},
        "colour": "blue",
        "bytes": "AA==",
        "nan": None,
        "none": None,
    }


def test_a_value_that_cannot_be_answered_is_named() -> None:
    with pytest.raises(TypeError, match="a complex cannot be answered as JSON"):
        encode({"a": 1j})
