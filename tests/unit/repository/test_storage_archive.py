"""Archives of others: what is unpacked, and what is refused before it does harm."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from alipes.errors import RepositoryError
from alipes.repository.storage import archive
from alipes.repository.storage.archive import is_archive, unpack


def tar(path: Path, members: Iterable[tuple[str, bytes | str]], mode: str = "w:gz", kind: bytes = b"") -> Path:
    """A tar of files, or of links where the content is a text."""
    with tarfile.open(path, mode) as made:  # type: ignore[call-overload]
        for name, content in members:
            one = tarfile.TarInfo(name)
            if isinstance(content, str):
                one.type, one.linkname = kind or tarfile.SYMTYPE, content
                made.addfile(one)
            else:
                one.size, one.type = len(content), kind or tarfile.REGTYPE
                made.addfile(one, io.BytesIO(content) if not kind else None)
    return path


def zipped(path: Path, members: Iterable[tuple[str, bytes]], mode: int = 0) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members:
            one = zipfile.ZipInfo(name)
            one.external_attr = mode << 16
            one.compress_type = zipfile.ZIP_DEFLATED
            made.writestr(one, content)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def files(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz", "zip"])
def test_files_of_every_kind_of_archive_are_unpacked(mode: str, tmp_path: Path, folder: Path) -> None:
    members = [("m/1/model.onnx", b"model"), ("./readme", b"words")]
    path = tmp_path / "archive"
    made = zipped(path, members) if mode == "zip" else tar(path, members, mode)
    assert is_archive(made)
    unpack(made, folder)
    assert files(folder) == {"m/1/model.onnx": b"model", "readme": b"words"}


def test_links_within_the_folder_stay_and_second_names_are_copies(tmp_path: Path, folder: Path) -> None:
    unpack(tar(tmp_path / "a.tar", [("b/link", "../a"), ("a", b"one")], "w"), folder)
    assert (folder / "b" / "link").is_symlink() and (folder / "b" / "link").read_bytes() == b"one"
    made = tmp_path / "hard.tar"
    with tarfile.open(made, "w") as archived:
        one = tarfile.TarInfo("one")
        one.size = 3
        archived.addfile(one, io.BytesIO(b"abc"))
        two = tarfile.TarInfo("two")
        two.type, two.linkname = tarfile.LNKTYPE, "one"
        archived.addfile(two)
    (hard := tmp_path / "hard").mkdir()
    unpack(made, hard)
    assert files(hard) == {"one": b"abc", "two": b"abc"} and (hard / "two").stat().st_nlink == 1


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("../evil", "leads out of its folder"),
        ("a/../../evil", "leads out of its folder"),
        ("/evil", "leads out of its folder"),
        ("..\\evil", "leads out of its folder"),
        ("c:\\evil", "leads out of its folder"),
        ("/".join(["d"] * 65), "more than 64 folders deep"),
        ("n" * 1025, "longer than 1024"),
    ],
)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_path_that_leads_elsewhere_refuses_the_archive(
    kind: str, name: str, what: str, tmp_path: Path, folder: Path
) -> None:
    made = (tar if kind == "tar" else zipped)(tmp_path / "a", [(name, b"evil")])  # type: ignore[operator]
    with pytest.raises(RepositoryError, match=f"archive 'a' is refused: .*{what}"):
        unpack(made, folder)
    assert not (tmp_path / "evil").exists() and files(folder) == {}


@pytest.mark.parametrize(
    "members",
    [
        [("out", "/etc/passwd")],
        [("out", "../../etc/passwd")],
        [("a/in", "."), ("out", "a/in/../../..")],
        [("first", "second/x"), ("second", "..")],
    ],
)
def test_a_link_that_leads_out_refuses_the_archive(
    members: list[tuple[str, str]], tmp_path: Path, folder: Path
) -> None:
    with pytest.raises(RepositoryError, match="leads out of its folder"):
        unpack(tar(tmp_path / "a", members), folder)


@pytest.mark.parametrize(
    "members",
    [[("way", ".."), ("way/evil", b"evil")], [("way/evil", b"evil"), ("way", "..")], [("way", b""), ("way/a", b"")]],
)
def test_nothing_is_written_through_a_link_or_a_file(
    members: list[tuple[str, bytes | str]], tmp_path: Path, folder: Path
) -> None:
    with pytest.raises(RepositoryError, match="refused"):
        unpack(tar(tmp_path / "a", members), folder)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_are_refused(kind: bytes, tmp_path: Path, folder: Path) -> None:
    with pytest.raises(RepositoryError, match="neither a file nor a folder"):
        unpack(tar(tmp_path / "a", [("device", b"")], kind=kind), folder)


def test_a_device_or_a_link_out_in_a_zip_is_refused(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(RepositoryError, match="neither a file nor a folder"):
        unpack(zipped(tmp_path / "a", [("device", b"")], stat.S_IFBLK | 0o600), folder)
    with pytest.raises(RepositoryError, match="leads out"):
        unpack(zipped(tmp_path / "b", [("link", b"/etc/passwd")], stat.S_IFLNK | 0o777), folder)


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_bomb_ends_at_its_limit(kind: str, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "FREE_EXPANSION_BYTES", 1 << 20)
    made = (tar if kind == "tar" else zipped)(tmp_path / "a", [("zeros", b"\0" * (8 << 20))])  # type: ignore[operator]
    assert made.stat().st_size * 100 < 8 << 20
    with pytest.raises(RepositoryError, match="becomes more than"):
        unpack(made, folder)
    assert sum(len(one) for one in files(folder).values()) <= 2 << 20


def test_too_many_files_end_at_their_limit(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILES", 10)
    with pytest.raises(RepositoryError, match="more than 10 files"):
        unpack(zipped(tmp_path / "a", [(str(number), b"") for number in range(11)]), folder)


@pytest.mark.parametrize("cut", [10, -20])
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_damaged_archive_is_an_error_that_names_it(kind: str, cut: int, tmp_path: Path, folder: Path) -> None:
    made = (tar if kind == "tar" else zipped)(tmp_path / "a", [("one", bytes(range(256)) * 40)])  # type: ignore[operator]
    made.write_bytes(made.read_bytes()[:cut])
    with pytest.raises(RepositoryError, match="archive 'a' cannot be unpacked"):
        unpack(made, folder)


def test_a_name_stands_once_in_an_archive_and_layers_replace_it(tmp_path: Path, folder: Path) -> None:
    twice = [("a", b"one"), ("a", b"two")]
    with pytest.raises(RepositoryError, match="holds 'a' twice"):
        unpack(tar(tmp_path / "t", twice), folder)
    below = tar(tmp_path / "below", [("models/a", b"1"), ("models/b", b"1"), ("gone/x", b"1"), ("old/x", b"1")])
    above = [("models/a", b"2"), ("models/.wh.b", b""), (".wh.gone", b""), ("old/.wh..wh..opq", b""), ("old/y", b"2")]
    (image := tmp_path / "image").mkdir()
    unpack(below, image, is_layer=True)
    unpack(tar(tmp_path / "above", above), image, is_layer=True)
    assert files(image) == {"models/a": b"2", "old/y": b"2"}


def test_a_link_of_a_layer_below_is_no_way_out(tmp_path: Path, folder: Path) -> None:
    unpack(tar(tmp_path / "below", [("d/x", b""), ("way", "d")]), folder, is_layer=True)
    with pytest.raises(RepositoryError, match="'way' is no folder"):
        unpack(tar(tmp_path / "above", [("way/evil", b"")]), folder, is_layer=True)


def test_files_of_models_that_are_archives_stay_whole(tmp_path: Path) -> None:
    assert not is_archive(zipped(tmp_path / "net.pt", [("a", b"")]))
    assert is_archive(zipped(tmp_path / "net.zip", [("a", b"")]))
    assert not is_archive(tmp_path / "absent")
