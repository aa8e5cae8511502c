"""The reader of pages is tested itself: no other test checks the blocks that it overlooks."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.blocks import Block, Command, blocks, commands, fits
from support.reader import Reader

PAGE = """\
# Title

```bash
echo one
```

1. a list

   ```pbtxt models/a/config.pbtxt
   name: "a"
     dims: 1
   ```
"""


def test_blocks_come_with_their_language_argument_and_line() -> None:
    assert blocks(PAGE) == [
        Block("bash", "", "echo one\n", 3),
        Block("pbtxt", "models/a/config.pbtxt", 'name: "a"\n  dims: 1\n', 9),
    ]


def test_a_fence_that_is_not_closed_is_an_error() -> None:
    with pytest.raises(ValueError, match="not closed"):
        blocks("```bash\necho\n")


def test_a_console_block_is_commands_and_what_they_print() -> None:
    assert commands("$ one\n1\n1\n$ two\n") == [Command("one", "1\n1\n"), Command("two", "")]
    with pytest.raises(ValueError, match="begins with"):
        commands("one\n")


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\n", "a", True),
        ("a...c", "a b\nc", True),
        ("a...\nc", "abc", True),
        ("a\nc", "ac", False),
        ("a...", "b", False),
        ("a.c", "abc", False),
        ("", "a", False),
    ],
)
def test_dots_stand_for_anything_and_nothing_else_does(expected: str, printed: str, same: bool) -> None:
    assert fits(expected, printed) is same


@pytest.mark.parametrize(
    "block",
    [
        Block("bash", "", "true\nfalse\ntrue\n", 1),
        Block("bash", "", "curl localhost:8000\n", 1),
        Block("bash", "", "make no-such-target\n", 1),
        Block("bash", "serve", "alipes version\n", 1),
        Block("console", "", "$ echo 1\n2\n", 1),
        Block("python", "", "raise SystemExit(3)\n", 1),
        Block("", "", "what is this\n", 1),
        Block("rust", "", "fn main() {}\n", 1),
    ],
    ids=lambda block: f"{block.language} {block.text.splitlines()[0]}",
)
def test_what_does_not_work_or_has_no_reader_fails(block: Block, tmp_path: Path) -> None:
    with Reader(tmp_path) as reader, pytest.raises(AssertionError):
        reader.follow(block)


def test_a_block_that_needs_a_package_is_done_where_it_is_installed(tmp_path: Path) -> None:
    with Reader(tmp_path) as reader:
        reader.follow(Block("python", "needs no_such_package", "raise SystemExit(3)\n", 1))
        with pytest.raises(AssertionError):
            reader.follow(Block("python", "needs numpy", "raise SystemExit(3)\n", 1))
        reader.follow(Block("text", "a.txt needs numpy", "a\n", 1))
        reader.follow(Block("console", "needs numpy", "$ cat a.txt\na\n", 1))


def test_a_file_block_writes_its_file(tmp_path: Path) -> None:
    with Reader(tmp_path) as reader:
        reader.follow(Block("pbtxt", "models/a/config.pbtxt", 'name: "a"\n', 1))
        reader.follow(Block("console", "", '$ cat models/a/config.pbtxt\nname: "a"\n', 1))
        reader.follow(Block("text", "", "a picture\n", 1))
