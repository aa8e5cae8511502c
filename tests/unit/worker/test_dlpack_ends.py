"""Tensors that other libraries take over DLPack end wherever these libraries end them: any thread, with or without
the interpreter's lock, in a forked process and after the interpreter."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import pytest
from alipes._core import Tensor

End: TypeAlias = Callable[[int, int], None]
"""Calls a deleter, by its address, with the address of a tensor."""

DELETER_OFFSET: Final = 56
"""Where a `DLManagedTensor` has its deleter: behind data, device, dimensions, type, shape, strides, offset, context."""

USED: Final = ctypes.c_char_p(b"used_dltensor")
"""The name of a capsule whose tensor is taken. Python keeps the address alone."""

ENDED_LATE: Final = """
import ctypes
import os
import sys

import numpy as np
from test_dlpack_ends import end_detached, taken
from alipes._core import Tensor

libc = ctypes.CDLL(None)
left = Tensor("T", np.zeros(4)).to_dlpack()  # ends while the interpreter does
address, deleter = taken(Tensor("T", np.zeros(4)))
libc.__cxa_atexit(ctypes.c_void_p(deleter), ctypes.c_void_p(address), None)  # ends behind it
pid = os.fork()
if pid == 0:
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
address, deleter = taken(Tensor("T", np.zeros(4)))
pid = os.fork()
end_detached(deleter, address)
if pid == 0:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print("ended")
"""


def taken(tensor: Tensor) -> tuple[int, int]:
    """The addresses of a tensor that a library takes, and of its deleter."""
    capsule = tensor.to_dlpack()
    python = ctypes.pythonapi
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    address = python.PyCapsule_GetPointer(ctypes.py_object(capsule), b"dltensor")
    assert python.PyCapsule_SetName(ctypes.py_object(capsule), USED) == 0
    deleter = ctypes.c_void_p.from_address(address + DELETER_OFFSET).value
    assert deleter is not None
    return address, deleter


def end_attached(deleter: int, address: int) -> None:
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(deleter)(address)


def end_detached(deleter: int, address: int) -> None:
    """As torch does it: it releases the lock, then frees the memory."""
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(address)


def end_on_foreign_thread(deleter: int, address: int) -> None:
    """On a thread that Python has not made and does not know."""
    libc = ctypes.CDLL(None, use_errno=True)
    thread = ctypes.c_ulong()
    start, argument = ctypes.c_void_p(deleter), ctypes.c_void_p(address)
    assert libc.pthread_create(ctypes.byref(thread), None, start, argument) == 0
    assert libc.pthread_join(thread, None) == 0


def below_rust(work: Callable[[], None]) -> None:
    """Does it below a call of the extension, where its own count says that the thread holds the lock."""

    class Source:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __dlpack__(self, **_: object) -> Any:
            work()
            return np.zeros(1).__dlpack__()

    Tensor.from_dlpack("T", Source())


@pytest.mark.parametrize("around", [lambda work: work(), below_rust], ids=["plain", "below-rust"])
@pytest.mark.parametrize("end", [end_attached, end_detached, end_on_foreign_thread])
def test_an_exported_tensor_gives_its_elements_back(end: End, around: Callable[[Callable[[], None]], None]) -> None:
    array = np.zeros(4)
    gone = weakref.ref(array)
    address, deleter = taken(Tensor("T", array))
    del array
    assert gone() is not None
    around(lambda: end(deleter, address))
    assert gone() is None


def test_tensors_may_end_in_a_forked_process_and_after_the_interpreter() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}  # noqa: PTH120
    ended = subprocess.run(
        [sys.executable, "-c", ENDED_LATE], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "ended\n"), ended.stderr
