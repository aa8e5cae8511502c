"""Makes the weights of an opened file views of that file, so that the system keeps one copy for all instances.

torch reads TorchScript and exported programs into memory of each process. Their files are archives that store each
tensor as it is: a tensor with the very bytes of a record becomes a view of it. What is written to later, such as a
counter among the buffers, is copied by the system page by page, and the file stays as it is.
"""

from __future__ import annotations

import mmap
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import torch

__all__ = ["share_weights"]

_LOCAL_HEADER: Final = 30
"""Bytes before the name in the header of a record, whose last two fields say how long name and extra field are."""

_LEAST_BYTES: Final = 4096
"""Smaller tensors are left alone: sharing is by pages."""


def share_weights(tensors: Iterable[torch.Tensor], file: Path) -> int:
    """Makes tensors views of a file where they have the bytes of one of its records.

    Args:
        tensors: Parameters and buffers on the CPU; changed in place.
        file: The archive that they were read from. It must be replaced rather than overwritten from now on.

    Returns:
        How many bytes are shared.
    """
    with file.open("rb") as opened:
        memory = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY)
    records: dict[int, list[int]] = {}
    with zipfile.ZipFile(file) as archive:
        for record in archive.infolist():
            if record.compress_type == zipfile.ZIP_STORED and record.file_size >= _LEAST_BYTES:
                records.setdefault(record.file_size, []).append(_begin(memory, record.header_offset))
    return sum(_share(tensor, memory, records) for tensor in tensors)


def _begin(memory: mmap.mmap, header: int) -> int:
    sizes = memory[header + _LOCAL_HEADER - 4 : header + _LOCAL_HEADER]
    return header + _LOCAL_HEADER + int.from_bytes(sizes[:2], "little") + int.from_bytes(sizes[2:], "little")


def _share(tensor: torch.Tensor, memory: mmap.mmap, records: dict[int, list[int]]) -> int:
    size = tensor.numel() * tensor.element_size()
    if not tensor.is_contiguous() or tensor.untyped_storage().nbytes() != size:
        return 0  # a part of something larger
    for begin in records.get(size, ()):
        if begin % tensor.element_size() == 0:
            view = torch.frombuffer(memory, dtype=tensor.dtype, count=tensor.numel(), offset=begin).view(tensor.shape)
            if _same(tensor, view):
                with torch.no_grad():
                    tensor.set_(view)
                return int(size)
    return 0


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have the same bytes; most that have not differ in the first ones."""
    first, second = (tensor.view(-1).view(torch.uint8) for tensor in (one, other))
    return bool(torch.equal(first[:_LEAST_BYTES], second[:_LEAST_BYTES]) and torch.equal(first, second))
