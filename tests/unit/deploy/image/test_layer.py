"""Layers: archives whose bytes follow from their contents, and those that are kept."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest
from alipes.deploy.image.contents import Contents, Hashes, file, folder, link, text
from alipes.deploy.image.digest import digest_of
from alipes.deploy.image.layer import Layer, key_of, write_layer
from alipes.deploy.image.layer_cache import LayerCache
from alipes.errors import ConfigError


def written(contents: Contents, time_s: int = 0) -> tuple[Layer, bytes]:
    out = io.BytesIO()
    return write_layer(contents, out, time_s, lambda _: None), out.getvalue()


@pytest.fixture
def contents(tmp_path: Path) -> Contents:
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o700)
    return {
        "usr/bin/program": file(path),
        "tmp": folder(0o1777),
        "usr/bin/other": link("program"),
        "etc/passwd": text("root"),
    }


def test_equal_contents_are_equal_bytes_whenever_and_in_whichever_order(contents: Contents, tmp_path: Path) -> None:
    first = written(contents)
    os.utime(tmp_path / "program", (1, 1))
    assert written(dict(reversed(contents.items()))) == first


def test_the_digests_are_those_of_the_archive_and_of_what_is_stored(contents: Contents) -> None:
    layer, data = written(contents)
    assert (layer.digest, layer.size) == (digest_of(data), len(data))
    assert layer.diff_id == digest_of(gzip.decompress(data))
    assert (layer.files, layer.unpacked) == (2, len("#!/bin/sh\n") + len("root"))


def test_members_are_sorted_and_of_nobody_and_of_one_time(contents: Contents) -> None:
    with tarfile.open(fileobj=io.BytesIO(written(contents, 86400)[1])) as archive:
        members = archive.getmembers()
    names = [one.name for one in members]
    assert names == sorted(names) == ["etc", "etc/passwd", "tmp", "usr", "usr/bin", "usr/bin/other", "usr/bin/program"]
    assert {(one.uid, one.gid, one.uname, one.gname, one.mtime) for one in members} == {(0, 0, "", "", 86400)}
    assert {one.name: oct(one.mode) for one in members if one.isfile() or one.name == "tmp"} == {
        "etc/passwd": "0o644",
        "tmp": "0o1777",
        "usr/bin/program": "0o755",
    }


def test_long_paths_and_other_letters_are_read_back() -> None:
    names = ["a/" * 80 + "b" * 120, "modèles/été"]
    with tarfile.open(fileobj=io.BytesIO(written({name: text(name) for name in names})[1])) as archive:
        assert [one.name for one in archive if one.isfile()] == names


def test_a_key_differs_where_the_layer_would(contents: Contents) -> None:
    keys = [
        key_of(contents, Hashes(), 0),
        key_of(contents, Hashes(), 1),
        key_of(contents | {"etc/passwd": text("other")}, Hashes(), 0),
        key_of(contents | {"etc/passwd": text("root", mode=0o600)}, Hashes(), 0),
        key_of(contents | {"usr/bin/other": link("elsewhere")}, Hashes(), 0),
        key_of(contents | {"more": folder()}, Hashes(), 0),
    ]
    assert len(set(keys)) == len(keys)
    assert key_of(dict(reversed(contents.items())), Hashes(), 0) == keys[0]


def test_a_layer_in_the_cache_is_found_unless_it_was_damaged(contents: Contents, tmp_path: Path) -> None:
    cache = LayerCache(tmp_path / "kept")
    assert cache.find("key") is None
    layer = cache.add("key", lambda out: write_layer(contents, out, 0, lambda _: None))
    assert LayerCache(tmp_path / "kept").find("key") == layer
    blob = cache.blob(layer)
    blob.write_bytes(blob.read_bytes()[:-1])
    assert cache.find("key") is None
    cache.add("key", lambda out: write_layer(contents, out, 0, lambda _: None))
    assert cache.find("key") == layer


@pytest.mark.parametrize("note", [b"", b"[]", b"{}", b"no JSON"])
def test_a_damaged_note_is_no_layer(note: bytes, contents: Contents, tmp_path: Path) -> None:
    cache = LayerCache(tmp_path)
    cache.add("key", lambda out: write_layer(contents, out, 0, lambda _: None))
    (tmp_path / "key.json").write_bytes(note)
    assert cache.find("key") is None


def test_a_layer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    cache = LayerCache(tmp_path)
    gone = tmp_path / "gone"
    gone.write_text("")
    entry = file(gone)
    gone.unlink()
    with pytest.raises(ConfigError, match="gone cannot be read"):
        cache.add("key", lambda out: write_layer({"a": entry}, out, 0, lambda _: None))
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    cache = LayerCache(tmp_path)
    for index, name in enumerate(("old", "new")):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (index, index))
    cache.shrink(200)
    assert len(list(tmp_path.iterdir())) == 2
    cache.shrink(150)
    assert [one.name for one in tmp_path.iterdir()] == ["new"]


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="file/kept, which keeps layers, cannot be made"):
        LayerCache(tmp_path / "file" / "kept")
