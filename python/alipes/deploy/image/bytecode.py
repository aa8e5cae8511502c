"""Python's byte code, made ahead: an image is read-only, and a server starts sooner with it.

Each file holds a hash of its source and says that nobody is to compare them (PEP 552): no time stamp is in it, and none
is looked at.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from alipes.deploy.image.contents import Contents, Entry
from alipes.errors import ConfigError

__all__ = ["with_bytecode"]

_PROGRAM: Final = """
import importlib.util, json, marshal, sys, warnings
warnings.simplefilter("ignore")
with open(sys.argv[1]) as listed, open(sys.argv[2], "wb") as out:
    for source, name in json.load(listed):
        with open(source, "rb") as opened:
            text = opened.read()
        try:
            code = compile(text, name, "exec", dont_inherit=True, optimize=0)
        except (SyntaxError, ValueError):  # a template, or a file for another release
            code = None
        head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(text)
        whole = b"" if code is None else head + marshal.dumps(code)
        out.write(len(whole).to_bytes(8, "little") + whole)
"""
"""Compiles files in their order, in a process that has done nothing else: the bytes of a code object depend on which of
its texts the process had already."""

_ENVIRONMENT: Final = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}


def with_bytecode(contents: Mapping[str, Entry]) -> Contents:
    """The contents, and beside each module its byte code.

    Raises:
        ConfigError: If the process that compiles them fails.
    """
    modules = {path: entry.source for path, entry in sorted(contents.items()) if path.endswith(".py") and entry.source}
    whole = dict(contents)
    if not modules:
        return whole
    with tempfile.TemporaryDirectory(prefix="alipes-") as name:
        listed, out = Path(name) / "listed", Path(name) / "out"
        listed.write_text(json.dumps([[str(source), f"/{path}"] for path, source in modules.items()]))
        command = [sys.executable, "-S", "-s", "-P", "-c", _PROGRAM, str(listed), str(out)]
        done = subprocess.run(command, env=_ENVIRONMENT, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise ConfigError(f"byte code cannot be written: {done.stderr.strip().splitlines()[-1:]}")
        data = out.read_bytes()
    place = 0
    for path in modules:
        size = int.from_bytes(data[place : place + 8], "little")
        place += 8
        if size:
            module = PurePosixPath(path)
            beside = f"{module.parent}/__pycache__/{module.stem}.{sys.implementation.cache_tag}.pyc"
            whole[beside] = Entry(0o644, data=data[place : place + size])
        place += size
    return whole
