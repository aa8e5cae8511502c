"""Keeps what proofs found out by what the model's files hold: a reload and a second start do not run them again.

The proofs lie in a folder of this user below the one for temporary files, one small file each. Where that folder cannot
be used, models are tried at each load.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from alipes.errors import ModelLoadError
from alipes.repository.private_folder import private_folder
from alipes.row_proof import RowProof

__all__ = ["keep_proof", "known_proof", "proof_key", "proof_of"]

_SCHEMA: Final = "2"
"""Changes where a proof would find something else, so that older ones are not read."""

MAX_PROOFS: Final = 1000
"""Files that are kept; the oldest go first."""

MAX_FILES: Final = 10_000
"""Files and folders of a version whose proof is kept."""

_BLOCK_BYTES: Final = 1 << 20


def proof_of(key: str, prove: Callable[[], RowProof]) -> RowProof:
    """What was found out under a key, found out now where nothing is kept."""
    known = known_proof(key)
    if known is not None:
        return known
    proof = prove()
    keep_proof(key, proof)
    return proof


def proof_key(folder: Path, facts: Iterable[str]) -> str:
    """The key of a version's files, wherever their folder is; empty where they cannot be read, or are too many.

    Args:
        folder: The version's folder.
        facts: What else a proof depends on, such as the library that runs the model.
    """
    digest = hashlib.sha256("\0".join([_SCHEMA, *facts]).encode(errors="surrogateescape"))
    try:
        for path in _files(folder):
            digest.update(f"\0{path.relative_to(folder)}\0{path.stat().st_size}\0".encode(errors="surrogateescape"))
            with path.open("rb") as file:
                while block := file.read(_BLOCK_BYTES):
                    digest.update(block)
    except OSError:
        return ""
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    """Regular files of a folder and of those in it, in their order. No recursion: folders may lie deep."""
    found, pending = [], [folder]
    while pending:
        for path in pending.pop().iterdir():
            if path.is_dir() and not path.is_symlink():
                pending.append(path)
            elif path.is_file():
                found.append(path)
        if len(found) + len(pending) > MAX_FILES:
            raise OSError(errno.EFBIG, "too many files", str(folder))
    return sorted(found)


def known_proof(key: str) -> RowProof | None:
    """What was found out under a key; none where nothing is kept, or what is kept cannot be read."""
    if not key:
        return None
    try:
        document = json.loads((private_folder("proofs") / key).read_text(encoding="utf-8"))
        return RowProof(**document)
    except (OSError, ValueError, TypeError, ModelLoadError):
        return None


def keep_proof(key: str, proof: RowProof) -> None:
    """Keeps what was found out. What could not be tried is tried again at the next load."""
    if not key or proof.outcome == "untried":
        return
    with suppress(OSError, ModelLoadError):
        folder = private_folder("proofs")
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=".")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(proof.to_document(), file)
        Path(name).replace(folder / key)
        _drop_oldest(folder)


def _drop_oldest(folder: Path) -> None:
    files = list(folder.iterdir())
    if len(files) > MAX_PROOFS:
        files.sort(key=lambda path: path.stat().st_mtime_ns)
        for path in files[: len(files) - MAX_PROOFS]:
            path.unlink(missing_ok=True)
