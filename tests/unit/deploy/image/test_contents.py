"""What goes into a layer: files, folders and links of this machine, by their path in the image."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.deploy.image.contents import Hashes, file, folder, link, text, tree, with_folders
from alipes.errors import ConfigError


def test_folders_above_a_file_are_added_in_front_of_it() -> None:
    whole = with_folders({"a/b/c": text("x"), "tmp": folder(0o1777)})
    assert list(whole) == ["a", "a/b", "a/b/c", "tmp"]
    assert [oct(entry.mode) for entry in whole.values()] == ["0o755", "0o755", "0o644", "0o1777"]


def test_a_folder_that_is_named_keeps_its_mode() -> None:
    assert with_folders({"tmp/x": text(""), "tmp": folder(0o1777)})["tmp"].mode == 0o1777


def test_files_are_readable_by_everybody_whatever_they_are_here(tmp_path: Path) -> None:
    private, program = tmp_path / "private", tmp_path / "program"
    private.write_text("")
    program.write_text("")
    private.chmod(0o600)
    program.chmod(0o700)
    assert (file(private).mode, file(program).mode) == (0o644, 0o755)


def test_links_are_followed_and_names_left_out(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_text("")
    (tmp_path / "real" / "tests").mkdir()
    (tmp_path / "real" / "tests" / "b").write_text("")
    (tmp_path / "linked").symlink_to("real")
    assert [str(path) for path, _ in tree(tmp_path, without=frozenset({"tests"}))] == ["linked/a", "real/a"]


@pytest.mark.parametrize(("target", "words"), [(".", "circle"), ("absent", "nowhere")])
def test_a_link_that_cannot_be_followed_is_named(target: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad").symlink_to(target)
    with pytest.raises(ConfigError, match=rf"bad leads .*{words}"):
        list(tree(tmp_path))


def test_a_file_that_went_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "gone"
    path.write_text("")
    entry = file(path)
    path.unlink()
    with pytest.raises(ConfigError, match="gone cannot be read: No such file"):
        entry.read()


def test_equal_contents_have_equal_hashes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x")
    hashes = Hashes()
    assert hashes.of(file(path)) == hashes.of(text("x")) != hashes.of(text("y"))
    assert link("a").is_file is False
