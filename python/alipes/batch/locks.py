"""A lock for each piece, which goes with its process, however that ends.

All are bytes of one file: a run has thousands of pieces. The locks belong to an open file, not to a process, so that
two starts within one process keep apart, too.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path
from typing import Final

from alipes.errors import BatchError

__all__ = ["PieceLocks"]

_BUSY: Final = {errno.EAGAIN, errno.EACCES}


class PieceLocks:
    """The locks of a run, as one worker has them."""

    def __init__(self, path: Path) -> None:
        """Opens the file of locks.

        Raises:
            BatchError: If it cannot be opened.
        """
        self._path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise BatchError(f"{path} cannot be opened: {error.strerror}") from error

    def acquire(self, piece: int) -> bool:
        """Whether the piece is this worker's now; false where another has it.

        Raises:
            BatchError: If the file system has no locks.
        """
        try:
            self._set(fcntl.F_WRLCK, piece)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            raise BatchError(
                f"{self._path.parent} is on a file system without locks ({error.strerror}): choose another folder"
            ) from error
        return True

    def release(self, piece: int) -> None:
        """Leaves the piece to others."""
        self._set(fcntl.F_UNLCK, piece)

    def close(self) -> None:
        """Leaves all pieces to others."""
        os.close(self._file)

    def _set(self, kind: int, piece: int) -> None:
        # struct flock: l_type, l_whence, l_start, l_len, l_pid.
        lock = struct.pack("@hhqqi4x", kind, os.SEEK_SET, piece, 1, 0)
        fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, lock)
