"""Archives of environments: what is unpacked, and what is refused."""

from __future__ import annotations

import io
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from alipes.backends.python import archive as module
from alipes.backends.python.archive import is_archive, unpack
from alipes.errors import ModelLoadError

Pack = Callable[..., Path]


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    """Makes an archive of members that nobody would pack: ``pack(member, ...)``; files hold four bytes."""

    def make(*members: tarfile.TarInfo, mode: str = "w:gz") -> Path:
        path = tmp_path / "packed.tar.gz"
        with tarfile.open(path, mode) as packed:  # type: ignore[call-overload]
            for member in members:
                packed.addfile(member, io.BytesIO(b"four") if member.isreg() else None)
        return path

    return make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "unpacked"
    made.mkdir()
    return made


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode = kind, link, mode
    made.size = 4 if kind == tarfile.REGTYPE else 0
    return made


def refusal(archive: Path, folder: Path) -> str:
    with pytest.raises(ModelLoadError) as failure:
        unpack(archive, folder)
    return failure.value.reason.removeprefix(f"Invalid argument: the archive {archive} cannot be unpacked: ")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_files_folders_and_links_are_unpacked(pack: Pack, folder: Path, mode: str) -> None:
    unpack(
        pack(
            member("bin", tarfile.DIRTYPE, mode=0o555),
            member("bin/python3", mode=0o755),
            member("bin/python", tarfile.SYMTYPE, "python3"),
            member("bin/same", tarfile.LNKTYPE, "bin/python3", mode=0o755),
            mode=mode,
        ),
        folder,
    )
    assert (folder / "bin" / "python").read_text() == "four"
    assert (folder / "bin" / "python").is_symlink()
    assert (folder / "bin" / "same").samefile(folder / "bin" / "python3")
    assert (folder / "bin" / "python3").stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (member("../outside"), "which is outside the destination"),
        (member("bin/../../outside"), "which is outside the destination"),
        (member("out", tarfile.SYMTYPE, "../outside"), "which is outside the destination"),
        (member("out", tarfile.SYMTYPE, "/etc/passwd"), "is a link to an absolute path"),
        (member("out", tarfile.LNKTYPE, "../outside"), "which is outside the destination"),
        (member("disk", tarfile.BLKTYPE), "is a special file"),
        (member("pipe", tarfile.FIFOTYPE), "is a special file"),
    ],
)
def test_what_leads_out_of_the_folder_is_refused(
    pack: Pack, folder: Path, tmp_path: Path, bad: tarfile.TarInfo, message: str
) -> None:
    before = sorted(tmp_path.iterdir())
    text = refusal(pack(member("good"), bad), folder)
    assert message in text
    assert text.endswith("(a virtual environment must be made with --copies to be packed)")
    assert sorted(tmp_path.iterdir()) == sorted({*before, tmp_path / "packed.tar.gz"})


def test_a_path_from_the_root_lands_in_the_folder(pack: Pack, folder: Path) -> None:
    unpack(pack(member("/bin/python")), folder)
    assert (folder / "bin" / "python").exists()


def test_more_bytes_than_allowed_are_refused(pack: Pack, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ENVIRONMENT_BYTES", 7)
    assert refusal(pack(member("a"), member("b")), folder) == "it unpacks to more than 7 bytes"
    assert not (folder / "b").exists()


def test_more_files_than_allowed_are_refused(pack: Pack, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ENVIRONMENT_FILES", 2)
    assert refusal(pack(*map(member, "abc")), folder) == "it holds more than 2 files"


def test_a_damaged_archive_is_refused(pack: Pack, folder: Path) -> None:
    packed = pack(*(member(str(number)) for number in range(100)))
    packed.write_bytes(packed.read_bytes()[:200])
    assert refusal(packed, folder).startswith("EOFError: ")


def test_a_python_that_cannot_unpack_safely_does_not(pack: Pack, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(tarfile, "data_filter")
    assert "serve with 3.11.4 or newer" in refusal(pack(member("a")), folder)


@pytest.mark.parametrize(("content", "expected"), [(b"", False), (b"#!/bin/sh\n", False), (b"\x1f\x8bgz?", False)])
def test_other_files_are_no_archives(tmp_path: Path, content: bytes, expected: bool) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert is_archive(file) == expected


def test_an_archive_is_known_by_its_content(pack: Pack, tmp_path: Path) -> None:
    assert is_archive(pack(member("a")).rename(tmp_path / "environment"))


def program(folder: Path, name: str, text: str) -> None:
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / "bin" / name).chmod(0o755)


@pytest.mark.parametrize("code", [0, 3])
def test_an_environment_of_conda_pack_settles_in_its_place(pack: Pack, folder: Path, code: int) -> None:
    program(folder, "python", 'exec /bin/sh "$1"')
    program(folder, "conda-unpack", f'pwd > "{folder}/settled"; echo why >&2; exit {code}')
    packed = pack(member("more"))
    if code == 0:
        unpack(packed, folder)
    else:
        with pytest.raises(ModelLoadError, match=rf"conda-unpack of {folder} failed with exit code 3: why"):
            unpack(packed, folder)
    assert (folder / "settled").exists()
