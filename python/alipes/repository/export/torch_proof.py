"""Whether a PyTorch model takes the same steps for any numbers: it does where it can be run on tensors that have none.

A fake tensor has a shape, a datatype and a device. A branch on a number, `.item()` or `.numpy()` finds nothing to read
there and fails, so a model that gets through has no such place. It costs no arithmetic, and what was recorded of such a
model for one sample is right for each of the same size.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from typing import Any, Final

__all__ = ["reads_no_numbers"]

_READS: Final = frozenset(
    {"__array__", "__dlpack__", "_typed_storage", "data_ptr", "numpy", "storage", "tolist", "untyped_storage"}
)
"""Ways to a tensor's memory: fake ones have none behind some of them, which ends a process that goes there."""


def reads_no_numbers(module: Any, samples: tuple[Any, ...]) -> bool:
    """Whether a model is proved to do the same whatever numbers its inputs hold.

    False says nothing of the model: it may write its own state, or use what cannot be run without numbers.
    """
    if _may_write_script_state(module):
        return False
    fakes: Any = import_module("torch._subclasses.fake_tensor")
    try:
        with ExitStack() as stack:
            stack.enter_context(_unchanged(module))
            stack.enter_context(_silence())
            fake = stack.enter_context(fakes.FakeTensorMode(allow_non_fake_inputs=True))
            inputs = [fake.from_tensor(sample) for sample in samples]
            if not isinstance(module, import_module("torch").jit.ScriptModule):
                # Scripts have no such ways, and what runs them looks at memory itself.
                stack.enter_context(_no_reading(fakes.FakeTensor))
            module(*inputs)
    except Exception:
        return False
    return True


def _may_write_script_state(module: Any) -> bool:
    """Whether a script in it sets attributes: they are kept where Python cannot put them back."""
    torch: Any = import_module("torch")
    scripts = (part for part in module.modules() if isinstance(part, torch.jit.ScriptModule))
    try:
        return any(script.inlined_graph.findNode("prim::SetAttr") is not None for script in scripts)
    except RuntimeError:
        return True


@contextmanager
def _unchanged(module: Any) -> Iterator[None]:
    """Takes away again what the model keeps of a run: a fake tensor among its buffers would end the next real run."""
    torch: Any = import_module("torch")
    parts = [part for part in module.modules() if not isinstance(part, torch.jit.ScriptModule)]
    held = [(part.__dict__, dict(part.__dict__)) for part in parts]
    tables = [
        (part.__dict__[name], dict(part.__dict__[name])) for part in parts for name in ("_buffers", "_parameters")
    ]
    try:
        yield
    finally:
        for now, before in (*held, *tables):
            _put_back(now, before)


def _put_back(now: dict[str, Any], before: dict[str, Any]) -> None:
    for name in [name for name in now if name not in before]:
        del now[name]
    now.update({name: value for name, value in before.items() if now.get(name) is not value})


@contextmanager
def _silence() -> Iterator[None]:
    """What the model prints and warns of was seen when it was run in earnest."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _no_reading(fake: type) -> Any:
    """Refuses the ways to the memory of fake tensors; torch itself reads that of weights, to make fake ones of them."""
    overrides: Any = import_module("torch.overrides")

    class NoReading(overrides.TorchFunctionMode):  # type: ignore[misc]  # torch is optional
        def __torch_function__(self, called: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(called, "__name__", "") in _READS and any(isinstance(one, fake) for one in args):
                raise RuntimeError(f"it reads numbers by {called.__name__}")
            return called(*args, **(kwargs or {}))

    return NoReading()
