"""Programs and libraries: what they load, and what of them only debuggers read."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from alipes import _core
from alipes.deploy.image.elf import read_elf, without_debugging
from alipes.deploy.image.interpreter import program
from alipes.deploy.image.libraries import find_libraries
from alipes.errors import ConfigError

HEADER, SEGMENT, SECTION = "<16sHHIQQQIHHHHHH", "<IIQQQQQQ", "<IIQQQQIIQQ"


def library(*sections: str) -> bytes:
    """A library of one segment of 200 bytes, with these sections and their names behind it."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*sections, ".shstrtab"))
    table = 200 + len(names)
    header = struct.pack(
        HEADER, b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, table, 0, 64, 56, 1, 64, len(sections) + 1, len(sections)
    )
    segment = struct.pack(SEGMENT, 1, 5, 0, 0, 0, 200, 200, 4096)
    starts = [names.index(name.encode() + b"\0") for name in (*sections, ".shstrtab")]
    rows = [struct.pack(SECTION, start, 1, 0, 0, 200, len(names), 0, 0, 1, 0) for start in starts]
    return (header + segment).ljust(200, b"\0") + names + b"".join(rows)


def test_a_library_with_debugging_is_cut_behind_its_last_segment() -> None:
    cut = without_debugging(library(".text", ".debug_info"))
    assert len(cut) == 200
    fields = struct.unpack_from(HEADER, cut)
    assert (fields[6], fields[12], fields[13]) == (0, 0, 0)
    assert cut[64:] == library(".text", ".debug_info")[64:200]


@pytest.mark.parametrize(
    "data",
    [library(".text"), b"", b"text", b"\x7fELF\x02\x01", library(".debug_info")[:250], b"\x7fELF\x02\x09" + bytes(300)],
)
def test_anything_else_stays_as_it_is(data: bytes) -> None:
    assert without_debugging(data) == data


@pytest.mark.slow("the whole binding is loaded again, in a process of its own")
def test_a_library_is_loaded_without_its_debugging(tmp_path: Path) -> None:
    cut = tmp_path / "_core.abi3.so"
    cut.write_bytes(without_debugging(Path(_core.__file__).read_bytes()))
    script = f"import ctypes; ctypes.PyDLL({str(cut)!r}).PyInit__core"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_python_names_its_loader_and_its_c_library() -> None:
    read = read_elf(program())
    assert read is not None
    assert Path(read.interpreter).is_file()
    assert any(name.startswith("libc.so") for name in read.needed)


def test_a_file_that_is_no_library_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    path.write_text("INPUT(libc.so)")
    assert read_elf(path) is None
    path.write_bytes(b"")
    assert read_elf(path) is None


@pytest.mark.parametrize("size", [6, 64, 100, 150])
def test_a_library_that_was_cut_off_is_named_as_damaged(size: int, tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    whole = bytearray(program().read_bytes())
    path.write_bytes(whole[:size])
    with pytest.raises(ConfigError, match=r"libx\.so is a damaged library"):
        read_elf(path)


def test_a_list_of_libraries_that_leads_out_of_the_file_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    data = bytearray(library(".text"))
    struct.pack_into(SEGMENT, data, 64, 2, 6, 150, 150, 150, 4096, 4096, 8)
    struct.pack_into("<qQ", data, 150, 1, 1 << 40)
    path.write_bytes(data[:166])
    with pytest.raises(ConfigError, match="damaged"):
        read_elf(path)


def test_the_libraries_of_python_are_those_that_it_has_loaded() -> None:
    found = find_libraries(program(), [Path(_core.__file__)])
    assert found.missing == {}
    names = {Path(line.split()[-1]).name for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
    assert {"libc.so.6", "libgcc_s.so.1"} <= set(found.files)
    assert {name for name in names if name.startswith(("libc.so", "libm.so", "libpython"))} <= set(found.files)
    assert ctypes.CDLL(str(found.files["libm.so.6"])).abs(-1) == 1
    assert found.loader[0] == read_elf(program()).interpreter.lstrip("/")  # type: ignore[union-attr]


def test_a_library_that_is_not_here_is_noted_with_who_names_it(tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    data = bytearray(library(".text"))
    # One tag that names a library, one that says where names are, and the end.
    struct.pack_into(HEADER, data, 0, b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    data = data.ljust(400, b"\0")
    struct.pack_into(SEGMENT, data, 64, 1, 5, 0, 0, 0, 400, 400, 4096)
    struct.pack_into(SEGMENT, data, 120, 2, 6, 200, 200, 200, 48, 48, 8)
    struct.pack_into("<qQqQqQ", data, 200, 1, 1, 5, 300, 0, 0)
    data[301:320] = b"libnowhere.so.7".ljust(19, b"\0")
    path.write_bytes(data)
    read = read_elf(path)
    assert read is not None and read.needed == ("libnowhere.so.7",)
    assert find_libraries(program(), [path]).missing == {"libnowhere.so.7": path}
