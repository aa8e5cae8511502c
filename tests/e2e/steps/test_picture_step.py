"""Pictures go in as files: what the server makes of them is what Pillow makes of them."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
import tritonclient.http as http_client
from numpy.typing import NDArray
from PIL import Image, ImageOps, features
from PIL import __version__ as PILLOW
from support.pictures import decoded, file_of, photo, resized
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]
Infer = Callable[..., NDArray[Any]]

FILTERS = ("nearest", "box", "bilinear", "bicubic", "lanczos")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

JPEG_BOUND, JPEG_MEAN_BOUND = 6, 1.0
"""How far a channel of a JPEG picture may be from Pillow's, and all of them on average: roundings differ."""


def add_step(repository: Path, name: str, backend: str, *lines: str, **parameters: object) -> None:
    (repository / name / "1").mkdir(parents=True)
    rows = [f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in parameters.items()]
    (repository / name / "config.pbtxt").write_text("\n".join([f'backend: "{backend}"', *lines, *rows]))


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    plain = {"dtype": "UINT8", "layout": "NHWC"}
    add_step(repository, "plain", "picture", **plain)
    add_step(repository, "bgr", "picture", dtype="UINT8", channels="BGR")
    add_step(repository, "grey", "picture", **plain, channels="L")
    add_step(repository, "as_stored", "picture", **plain, exif_orientation=0)
    add_step(repository, "few_pixels", "picture", **plain, max_pixels=10_000)
    for name in FILTERS:
        add_step(repository, f"to_{name}", "picture", **plain, resize="61x47", resize_filter=name)
        add_step(repository, f"grey_{name}", "picture", **plain, resize="61x47", resize_filter=name, channels="L")
    numbers = {"mean": ", ".join(map(str, MEAN)), "std": " ".join(map(str, STD))}
    add_step(repository, "like_torchvision", "picture", "max_batch_size: 4", resize="256", crop="224", **numbers)
    return serve_module(repository).wait_until_started()


@pytest.fixture(scope="module")
def infer(server: ServerProcess) -> Infer:
    client = grpc_client.InferenceServerClient(server.grpc)

    def infer(model: str, *files: bytes, batch: bool = False) -> NDArray[Any]:
        shape = [len(files), 1] if batch else [1]
        request = grpc_client.InferInput("picture", shape, "BYTES")
        request.set_data_from_numpy(np.array(files, np.object_).reshape(shape))
        answer = client.infer(model, [request]).as_numpy("tensor")
        assert answer is not None
        return answer

    return infer


def difference(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.int64]:
    assert one.shape == other.shape
    return np.abs(one.astype(np.int64) - other.astype(np.int64))


LOSSLESS = {
    "png": lambda picture: file_of(picture, "PNG"),
    "png-alpha": lambda picture: file_of(with_alpha(picture), "PNG"),
    "png-grey-alpha": lambda picture: file_of(picture.convert("LA"), "PNG"),
    "png-grey": lambda picture: file_of(picture.convert("L"), "PNG"),
    "png-palette": lambda picture: file_of(picture.quantize(50), "PNG"),
    "png-palette-transparent": lambda picture: file_of(picture.quantize(9), "PNG", transparency=3),
    "png-bits": lambda picture: file_of(picture.convert("1"), "PNG"),
    "webp-lossless": lambda picture: file_of(picture, "WEBP", lossless=True),
    "webp-lossless-alpha": lambda picture: file_of(with_alpha(picture), "WEBP", lossless=True, exact=True),
}


def with_alpha(picture: Image.Image) -> Image.Image:
    picture = picture.copy()
    picture.putalpha(photo(*picture.size, seed=5, mode="L"))
    return picture


@pytest.mark.parametrize("kind", LOSSLESS)
@pytest.mark.parametrize("size", [(1, 1), (3, 200), (131, 77)], ids=str)
def test_lossless_files_are_read_bit_for_bit(infer: Infer, kind: str, size: tuple[int, int]) -> None:
    file = LOSSLESS[kind](photo(*size))
    np.testing.assert_array_equal(infer("plain", file), decoded(file))
    np.testing.assert_array_equal(infer("grey", file), decoded(file, "L"))


def test_files_of_16_bits_keep_their_upper_eight(infer: Infer) -> None:
    values = np.random.default_rng(2).integers(0, 1 << 16, (5, 7, 3), dtype=np.uint16)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    np.testing.assert_array_equal(infer("plain", png(7, 5, 16, 2, zlib.compress(rows))), values >> 8)
    one = b"".join(b"\0" + row[:, :1].astype(">u2").tobytes() for row in values)
    np.testing.assert_array_equal(infer("grey", png(7, 5, 16, 0, zlib.compress(one))), values[:, :, :1] >> 8)


def png(width: int, height: int, bits: int, colours: int, data: bytes) -> bytes:
    """A PNG file with this content, whatever it is."""
    head = struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", data), (b"IEND", b"")]
    text = (struct.pack(">I", len(body)) + kind + body for kind, body in chunks)
    checked = (part + struct.pack(">I", zlib.crc32(part[4:])) for part in text)
    return b"\x89PNG\r\n\x1a\n" + b"".join(checked)


@pytest.mark.parametrize("progressive", [False, True], ids=["baseline", "progressive"])
@pytest.mark.parametrize("quality", [30, 75, 95])
def test_jpeg_files_are_read_within_a_bound(infer: Infer, quality: int, progressive: bool) -> None:
    for width, height in ((1, 1), (8, 8), (17, 33), (200, 131)):
        options = {"quality": quality, "subsampling": "4:4:4", "progressive": progressive}
        for picture in (photo(width, height, seed=quality), noise(width, height)):
            file = file_of(picture, "JPEG", **options)
            assert difference(infer("plain", file), decoded(file)).max() <= JPEG_BOUND, (width, height)


@pytest.mark.parametrize("progressive", [False, True], ids=["baseline", "progressive"])
@pytest.mark.parametrize("subsampling", ["4:2:2", "4:2:0"])
@pytest.mark.parametrize("quality", [30, 75, 95])
def test_subsampled_jpeg_files_are_read_within_a_bound(
    infer: Infer, quality: int, subsampling: str, progressive: bool
) -> None:
    for width, height in ((16, 16), (17, 33), (64, 50), (200, 131), (201, 130)):
        options = {"quality": quality, "subsampling": subsampling, "progressive": progressive}
        for picture in (photo(width, height, seed=quality), noise(width, height)):
            file = file_of(picture, "JPEG", **options)
            differences = difference(infer("plain", file), decoded(file))
            # Colours beyond the edge are made up, in one way here and in another there.
            assert differences[1:-1, 1:-1].max() <= JPEG_BOUND, (width, height)
            assert differences.mean() <= JPEG_MEAN_BOUND, (width, height)


USUAL_ONES_ARE_EXACT = features.check("libjpeg_turbo") and {"avx2", "bmi2"} <= set(
    Path("/proc/cpuinfo").read_text().split()
)
"""Whether the processor has the instructions that read usual files, and Pillow the library that they agree with."""


@pytest.mark.skipif(not USUAL_ONES_ARE_EXACT, reason="needs AVX2 and BMI2, and Pillow with libjpeg-turbo")
@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("quality", [1, 40, 80, 100])
def test_usual_jpeg_files_are_read_bit_for_bit(infer: Infer, quality: int, subsampling: str) -> None:
    for width, height in ((1, 1), (5, 2), (6, 9), (16, 16), (17, 33), (200, 131), (201, 130)):
        options = {"quality": quality, "subsampling": subsampling, "optimize": width < 20}
        extremes = noise(width, height).point(lambda value: 255 if value > 127 else 0)
        for picture in (photo(width, height, seed=quality), noise(width, height), extremes):
            file = file_of(picture, "JPEG", **options)
            np.testing.assert_array_equal(infer("plain", file), decoded(file), f"{width} x {height}")


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8))


ODD = {
    "bytes behind its end": lambda picture: file_of(picture, "JPEG") + b"rest of a camera's file" * 9,
    "restart markers": lambda picture: file_of(picture, "JPEG", restart_marker_blocks=3),
    "tables of its own": lambda picture: file_of(picture, "JPEG", optimize=True),
    "a comment": lambda picture: file_of(picture, "JPEG", comment=b"\xff\xd9 in a comment"),
    "a colour profile": lambda picture: file_of(picture, "JPEG", icc_profile=bytes(70_000)),
    "a density": lambda picture: file_of(picture, "JPEG", dpi=(300, 300)),
    "colours without a transform": lambda picture: file_of(picture, "JPEG", keep_rgb=True),
}


@pytest.mark.parametrize("kind", ODD)
def test_jpeg_files_with_oddities_are_read(infer: Infer, kind: str) -> None:
    file = ODD[kind](photo(150, 93))
    assert difference(infer("plain", file), decoded(file))[1:-1, 1:-1].max() <= JPEG_BOUND


@pytest.mark.parametrize("progressive", [False, True], ids=["baseline", "progressive"])
@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_grey_and_cmyk_jpeg_files_are_read_within_a_bound(infer: Infer, mode: str, progressive: bool) -> None:
    file = file_of(photo(100, 61, mode=mode), "JPEG", quality=85, progressive=progressive)
    assert difference(infer("plain", file), decoded(file)).max() <= JPEG_BOUND


@pytest.mark.parametrize("quality", [20, 80])
def test_lossy_webp_files_are_read_bit_for_bit(infer: Infer, quality: int) -> None:
    for picture in (photo(90, 61), with_alpha(photo(33, 70))):
        file = file_of(picture, "WEBP", quality=quality)
        np.testing.assert_array_equal(infer("plain", file), decoded(file))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_pictures_are_turned_as_their_exif_data_say(infer: Infer, kind: str, orientation: int) -> None:
    picture, exif = photo(40, 23), Image.Exif()
    exif[0x0112] = orientation
    options: dict[str, Any] = {"JPEG": {"subsampling": "4:4:4"}, "WEBP": {"lossless": True}}.get(kind, {})
    file = file_of(picture, kind, exif=exif, **options)
    stored = infer("as_stored", file)
    assert difference(stored, decoded(file)).max() <= JPEG_BOUND
    turned = ImageOps.exif_transpose(Image.open(io.BytesIO(file)))
    upright = np.asarray(turned.convert("RGB"))
    assert difference(infer("plain", file), upright).max() <= JPEG_BOUND


@pytest.mark.parametrize("name", FILTERS)
def test_resizing_is_bit_for_bit_that_of_pillow(infer: Infer, name: str) -> None:
    filter_ = Image.Resampling[name.upper()]
    for size in ((61, 47), (1, 1), (500, 375), (30, 800), (61, 200), (333, 47), (7, 5), (1000, 3)):
        for mode, model in (("RGB", f"to_{name}"), ("L", f"grey_{name}")):
            picture = photo(*size, seed=sum(size), mode=mode)
            expected = np.asarray(resized(picture, (61, 47), filter_)).reshape(47, 61, -1)
            np.testing.assert_array_equal(infer(model, file_of(picture, "PNG")), expected, str(size))


def test_extremes_beside_each_other_are_resized_as_by_pillow(infer: Infer) -> None:
    pixels = np.random.default_rng(4).choice([0, 255], (90, 120, 3)).astype(np.uint8)
    picture = Image.fromarray(pixels)
    for name in FILTERS:
        expected = np.asarray(resized(picture, (61, 47), Image.Resampling[name.upper()]))
        np.testing.assert_array_equal(infer(f"to_{name}", file_of(picture, "PNG")), expected)


@pytest.mark.skipif(int(PILLOW.split(".")[0]) < 13, reason="Pillow before 13 resizes tall pictures in another order")
@pytest.mark.parametrize("name", FILTERS)
def test_resizing_is_that_of_the_newest_pillow_in_one_call(infer: Infer, name: str) -> None:
    for size in ((30, 800), (259, 100), (70, 90), (100, 48), (200, 400)):
        picture = photo(*size, seed=sum(size))
        expected = np.asarray(picture.resize((61, 47), Image.Resampling[name.upper()]))
        np.testing.assert_array_equal(infer(f"to_{name}", file_of(picture, "PNG")), expected, str(size))


def like_torchvision(picture: Image.Image) -> NDArray[np.float32]:
    """Resize to 256, centre crop of 224, to a tensor, normalise: torchvision's arithmetic in its order."""
    width, height = picture.size
    short = 256
    size = (short, int(short * height / width)) if width <= height else (int(short * width / height), short)
    picture = resized(picture, size, Image.Resampling.BILINEAR)
    left, top = round((picture.width - 224) / 2.0), round((picture.height - 224) / 2.0)
    pixels = np.asarray(picture.crop((left, top, left + 224, top + 224)), np.float32) / np.float32(255)
    mean, std = np.array(MEAN, np.float32), np.array(STD, np.float32)
    return ((pixels - mean) / std).astype(np.float32).transpose(2, 0, 1)


@pytest.mark.parametrize("size", [(500, 375), (231, 400), (256, 256), (259, 1001)], ids=str)
def test_resize_crop_and_normalise_are_bit_for_bit_those_of_torchvision(infer: Infer, size: tuple[int, int]) -> None:
    picture = photo(*size)
    answer = infer("like_torchvision", file_of(picture, "PNG"), batch=True)
    np.testing.assert_array_equal(answer[0], like_torchvision(picture))


def test_blue_comes_first_in_bgr(infer: Infer) -> None:
    file = file_of(photo(9, 5), "PNG")
    np.testing.assert_array_equal(infer("bgr", file), decoded(file)[:, :, ::-1].transpose(2, 0, 1))


def test_a_batch_of_files_of_all_sizes_and_formats_becomes_one_tensor(infer: Infer) -> None:
    files = [file_of(photo(300, 200), "JPEG"), file_of(photo(10, 700), "PNG"), file_of(photo(64, 64), "WEBP")]
    together = infer("like_torchvision", *files, batch=True)
    assert together.shape == (3, 3, 224, 224)
    for row, file in zip(together, files, strict=True):
        np.testing.assert_array_equal(row, infer("like_torchvision", file, batch=True)[0])


@pytest.mark.parametrize("form", ["binary", "base64", "data URL", "lines"])
def test_a_file_may_come_as_bytes_or_as_base64(server: ServerProcess, form: str) -> None:
    file = file_of(photo(20, 12), "PNG")
    text = base64.b64encode(file).decode()
    forms = {"binary": file, "base64": text, "data URL": f"data:image/png;base64,{text}"}
    lines = "\n".join(text[at : at + 76] for at in range(0, len(text), 76))
    client = http_client.InferenceServerClient(server.http)
    request = http_client.InferInput("picture", [1], "BYTES")
    request.set_data_from_numpy(np.array([forms.get(form, lines)], np.object_), binary_data=form == "binary")
    np.testing.assert_array_equal(client.infer("plain", [request]).as_numpy("tensor"), decoded(file))


def bomb(side: int) -> bytes:
    return png(side, side, 8, 2, zlib.compress(bytes(1000)))


def huge_jpeg() -> bytes:
    file = bytearray(file_of(photo(16, 16), "JPEG"))
    frame = file.index(b"\xff\xc0")
    file[frame + 5 : frame + 9] = struct.pack(">HH", 60_000, 60_000)
    return bytes(file)


def webp_bomb() -> bytes:
    """A file whose head tells a small canvas, and whose frame a large picture."""
    file = bytearray(file_of(with_alpha(photo(16, 16)), "WEBP", quality=50))
    frame = file.index(b"\x9d\x01\x2a")
    file[frame + 3 : frame + 7] = struct.pack("<HH", 16_000, 16_000)
    return bytes(file)


def with_scans(count: int) -> bytes:
    """A progressive JPEG file with so many scans, of which the first, for the whole picture, comes again and again."""
    file = file_of(photo(64, 48), "JPEG", progressive=True)
    begin = file.index(b"\xff\xda")
    end = file.index(b"\xff\xc4", begin)  # the tables of the second
    return file[:end] + file[begin:end] * (count - file.count(b"\xff\xda")) + file[end:]


BAD = {
    "nothing": (b"", "it has no bytes"),
    "text": (b"no picture at all", 'that begin with "no pictu"'),
    "another format": (b"GIF89a rest", "expected a JPEG, PNG or WebP file"),
    "base64 of text": (base64.b64encode(b"hello there"), 'behind base64 that begin with "hello th"'),
    "half a JPEG": (file_of(photo(90, 90), "JPEG")[:1500], "a JPEG file that is damaged, cut off"),
    "half a progressive JPEG": (file_of(photo(90, 90), "JPEG", progressive=True)[:1500], "a JPEG file that is damaged"),
    "head of a JPEG": (file_of(photo(90, 90), "JPEG")[:20], "a JPEG file that is damaged"),
    "half a PNG": (file_of(photo(90, 90), "PNG")[:1500], "a PNG file that is damaged, cut off"),
    "half a WebP": (file_of(photo(90, 90), "WEBP")[:900], "a WebP file that is damaged, cut off"),
    "bomb": (bomb(100_000), "a PNG picture of 100000 x 100000 pixels, more than the limit of 65535 on a side"),
    "smaller bomb": (bomb(60_000), "60000 x 60000 pixels, more than the limit of 50000000 in all"),
    "JPEG bomb": (huge_jpeg(), "60000 x 60000 pixels, more than the limit of 50000000 in all"),
    "WebP bomb": (webp_bomb(), "a WebP picture with a frame of 16000 x 16000 pixels, more than the limit of"),
    "no pixels": (png(0, 5, 8, 2, b""), "PNG"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_picture_has_one_error_that_says_why(infer: Infer, kind: str) -> None:
    file, reason = BAD[kind]
    with pytest.raises(InferenceServerException, match="input 'picture' holds no picture") as refused:
        infer("plain", file)
    assert reason in str(refused.value)
    assert infer("plain", file_of(photo(2, 2), "PNG")).shape == (2, 2, 3)


def test_a_progressive_file_has_a_bound_on_its_scans(infer: Infer) -> None:
    assert infer("plain", with_scans(100)).shape == (48, 64, 3)
    with pytest.raises(InferenceServerException, match="Too many scans, exceeded limit of 100"):
        infer("plain", with_scans(101))


def test_data_without_end_costs_no_more_than_the_picture(server: ServerProcess, infer: Infer) -> None:
    endless = zlib.compress(bytes(200 << 20), 9)  # 200 KB
    before = peak_bytes(server)
    assert infer("plain", png(3, 2, 8, 2, endless)).shape == (2, 3, 3)
    assert peak_bytes(server) - before < 50 << 20


def peak_bytes(server: ServerProcess) -> int:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))


def test_a_limit_of_pixels_is_that_of_the_model(infer: Infer) -> None:
    assert infer("few_pixels", file_of(photo(100, 100), "PNG")).shape == (100, 100, 3)
    with pytest.raises(InferenceServerException, match="101 x 100 pixels, more than the limit of 10000 in all"):
        infer("few_pixels", file_of(photo(101, 100), "PNG"))


def test_a_long_line_is_no_way_to_a_large_picture(infer: Infer) -> None:
    with pytest.raises(InferenceServerException, match="resized it would have 256 x 768000 pixels"):
        infer("like_torchvision", file_of(photo(1, 3000), "PNG"), batch=True)


def test_a_row_of_a_request_is_named(infer: Infer) -> None:
    good = file_of(photo(9, 9), "PNG")
    with pytest.raises(InferenceServerException, match="row 1 of 3: input 'picture' holds no picture"):
        infer("like_torchvision", good, b"bad", good, batch=True)


def test_a_file_that_cannot_be_read_fails_alone_in_its_batch(serve: Serve, tmp_path: Path) -> None:
    add_step(
        tmp_path, "m", "picture", "max_batch_size: 8 dynamic_batching { }", "instance_group { count: 1 }", resize="8x8"
    )
    server = serve(tmp_path, environment={"TRITONSERVER_DELAY_SCHEDULER": "5"}).wait_until_started()
    good = [file_of(photo(8, 8, seed=seed), "PNG") for seed in range(3)]
    files = [good[0], b"bad", good[1], file_of(photo(50, 50), "JPEG")[:900], good[2]]

    def ask(file: bytes) -> object:
        request = grpc_client.InferInput("picture", [1, 1], "BYTES")
        request.set_data_from_numpy(np.array([[file]], np.object_))
        try:
            return grpc_client.InferenceServerClient(server.grpc).infer("m", [request]).as_numpy("tensor")
        except InferenceServerException as error:
            return error

    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(ask, files))
    for file, answer in zip(files, answers, strict=True):
        if file in good:
            assert isinstance(answer, np.ndarray)
            expected = decoded(file).transpose(2, 0, 1).astype(np.float32) / np.float32(255)
            np.testing.assert_array_equal(answer[0], expected)
        else:
            assert "holds no picture" in str(answer)
    statistics = grpc_client.InferenceServerClient(server.grpc).get_inference_statistics("m", as_json=True)
    assert statistics is not None
    model = json.loads(json.dumps(statistics))["model_stats"][0]
    assert model["inference_stats"]["success"]["count"] == "3"
    assert model["inference_stats"]["fail"]["count"] == "2"
    assert model["execution_count"] == "1"
    assert model["inference_count"] == "3"
