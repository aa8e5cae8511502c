"""Whether what torch wrote gives a model's numbers for any input, and if not, why.

A trace keeps what its own sample took: a branch, a number that was read out of a tensor, a size. One more sample finds
that by chance, samples of several kinds find it every time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeAlias

import numpy as np

from alipes.errors import ExportError
from alipes.progress.work import current
from alipes.repository.export.compare import Difference, find_difference, judged
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.torch_source import Traced, outputs_of, to_numpy

__all__ = ["Run", "check_traced", "run_like_module"]

Run: TypeAlias = "Callable[[tuple[Any, ...]], list[np.ndarray]]"
"""Runs what was written on a tensor for each argument."""

_Change: TypeAlias = "Callable[[Any, bool], Any]"
"""Makes a probe's sample of a sample; the flag says whether its place among the inputs is odd."""

_log = logging.getLogger(__name__)

_LARGE: Final = 1e4
_SMALL: Final = 1e-4

_NUDGES: Final = 5
_NUDGE: Final = 8.0
"""By how many units in the last place inputs are changed, and how often, to see how much a model makes of rounding."""

_ROUNDING: Final = 8.0
"""An engine rounds in every step of a model: so many times what a model makes of changes of its input."""

_ADVICE: Final = "tolerance= allows more, check=False does not compare"
_DATA_ADVICE: Final = (
    "torch.where instead of an if, tensors instead of float() and .item() keep it general; torch.jit.script(model) "
    "keeps its branches; check=False publishes the trace as it is"
)
_SIZE_ADVICE: Final = (
    "take sizes from the tensor, as x.shape[0], in tensor operations rather than in numbers of Python, or give the "
    "input a fixed shape; check=False publishes the trace as it is"
)
_RANDOM_ADVICE: Final = (
    "what is random in forward belongs to training (functional.dropout takes training=self.training); check=False "
    "publishes it as it is"
)


@dataclass(frozen=True, slots=True)
class _Probe:
    """Samples to compare on.

    Attributes:
        name: What they are, for messages.
        samples: A tensor for each argument.
        cause: What is wrong where the file differs here, and not on what came before.
        advice: What to do about it.
        invented: Whether nobody may ever send such an input.
    """

    name: str
    samples: tuple[Any, ...]
    cause: str
    advice: str
    invented: bool


def check_traced(traced: Traced, run: Run, request: ExportRequest) -> None:
    """Compare what was written with the model, on samples of several kinds. Call it inside `inference_mode`.

    Raises:
        ExportError: If they differ: with the cause, the size of the difference, and what to do.
    """
    current().step("running the exported file")
    with judged(request):
        for probe in _probes(traced):
            _check(traced, run, probe, request)


def run_like_module(exported: Any) -> Run:
    """Runs what can be called like the model itself."""

    def run(samples: tuple[Any, ...]) -> list[np.ndarray]:
        return [to_numpy(one) for one in outputs_of(exported(*samples))]

    return run


def _probes(traced: Traced) -> Iterator[_Probe]:
    """What was traced comes first, then other numbers, then other sizes: so the first that differs names the cause."""
    yield _Probe("the sample that it was made with", traced.samples, "", _ADVICE, invented=False)
    kinds = _KINDS if any(_is_free(sample) for sample in traced.samples) else _ORDERS
    for name, change in kinds:
        samples = tuple(
            (change if _is_free(sample) else _ordered(change))(sample, bool(place % 2))
            for place, sample in enumerate(traced.samples)
        )
        yield _Probe(name, samples, "the trace depends on its input", _DATA_ADVICE, invented=True)
    for at, samples in enumerate(traced.resized):
        shapes = " and ".join(str(list(sample.shape)) for sample in samples)
        cause = "the trace depends on the size of its input"
        yield _Probe(f"an input of shape {shapes}", samples, cause, _SIZE_ADVICE, invented=at > 0)


def _check(traced: Traced, run: Run, probe: _Probe, request: ExportRequest) -> None:
    export = f"export of model '{request.config.name}'"
    expected = _answer(traced, probe.samples, may_fail=probe.invented)
    if expected is None:
        return
    try:
        found = run(probe.samples)
    except Exception as error:
        lines = str(error).strip().splitlines()
        raise ExportError(
            f"{export}: {probe.cause or 'the exported file cannot be run'}: it fails on {probe.name}, where the model "
            f"does not: {type(error).__name__}: {lines[0] if lines else ''}; {probe.advice}"
        ) from error
    names, tolerance = traced.outputs, request.tolerance
    difference = find_difference(names, expected, found, tolerance, lenient=probe.invented)
    if difference is None:
        return
    again = _answer(traced, probe.samples)
    assert again is not None
    by_itself = find_difference(names, expected, again, tolerance)
    if by_itself is not None:
        raise ExportError(
            f"{export}: the model itself is random: two calls on the same input differ{_by(by_itself)}; "
            f"{_RANDOM_ADVICE}"
        )
    slack = _rounding(traced, probe)
    if find_difference(names, expected, found, tolerance, slack=slack, lenient=probe.invented) is None:
        _log.info("%s: %s on %s, no more than the effect of rounding on the model", export, difference.text, probe.name)
        return
    raise ExportError(f"{export}: {_explanation(probe, difference)}")


def _explanation(probe: _Probe, difference: Difference) -> str:
    if not probe.cause:
        return (
            f"the trace differs from eager{_by(difference)}, on the sample that it was made with: {difference.text}; "
            f"{probe.advice}"
        )
    return (
        f"{probe.cause}: it gives the model's numbers for the sample that it was made with, but not for "
        f"{probe.name}: {difference.text}; {probe.advice}"
    )


def _by(difference: Difference) -> str:
    size = f" by {difference.size:.6g}" if np.isfinite(difference.size) else ""
    return f"{size} at output '{difference.output}'"


def _answer(traced: Traced, samples: tuple[Any, ...], *, may_fail: bool = False) -> list[np.ndarray] | None:
    """What the model gives; None where it takes no such input."""
    try:
        return [to_numpy(one) for one in outputs_of(traced.module(*samples))]
    except Exception:
        if not may_fail:
            raise
        return None


def _rounding(traced: Traced, probe: _Probe) -> list[float]:
    """How far the outputs of inputs that differ in their last places lie apart: no engine can come closer.

    How far they lie from the output of the probe itself does not count: zeros may take a branch of their own.
    """
    torch: Any = import_module("torch")
    generator = torch.Generator().manual_seed(0)
    nudged = (tuple(_nudged(one, generator) for one in probe.samples) for _ in range(_NUDGES))
    answers = [answer for one in nudged if (answer := _answer(traced, one, may_fail=True)) is not None]
    return [_ROUNDING * _spread(outputs) for outputs in zip(*answers, strict=False)]


def _spread(outputs: Sequence[np.ndarray]) -> float:
    if len({one.shape for one in outputs}) > 1 or outputs[0].dtype.kind in "OSU":
        return 0.0
    stacked = np.stack([one.astype(np.float64) for one in outputs])
    finite = np.isfinite(stacked).all(axis=0)
    return float(np.ptp(stacked, axis=0)[finite].max(initial=0.0)) if finite.any() else 0.0


def _nudged(sample: Any, generator: Any) -> Any:
    if not sample.dtype.is_floating_point or not sample.numel():
        return sample
    torch: Any = import_module("torch")
    size = _NUDGE * torch.finfo(sample.dtype).eps
    each, all_alike = (
        torch.rand(sample.shape, generator=generator).to(sample.device, sample.dtype) * 2 - 1 for _ in range(2)
    )
    # Zeros have no last place of their own.
    scale = float(sample.abs().max()) or 1.0
    return sample + size * (each * sample + all_alike * scale)


def _other(sample: Any, odd: bool) -> Any:
    """Other numbers of about the same size: of an example's own, where they are no floating ones."""
    torch: Any = import_module("torch")
    generator = torch.Generator().manual_seed(4 + odd)
    if sample.dtype.is_floating_point and sample.numel() > 1:
        drawn = torch.randn(sample.shape, generator=generator).to(sample.device, sample.dtype)
        return drawn * sample.std() + sample.mean()
    order = torch.randperm(sample.numel(), generator=generator).to(sample.device)
    return sample.flatten()[order].reshape(sample.shape)


def _reversed(sample: Any, odd: bool) -> Any:
    """What no draw may leave as it was."""
    return sample.flatten().flip(0).reshape(sample.shape)


def _is_free(sample: Any) -> bool:
    """Whether any number may be sent: whole ones may be indices, of which the sample's own are the only sure ones."""
    return bool(sample.dtype.is_floating_point) or _is_bool(sample)


def _ordered(change: _Change) -> _Change:
    """What a change is for whole numbers: another order."""
    return change if change is _reversed else _other


def _negated(sample: Any, odd: bool) -> Any:
    """What turns every comparison of sums round."""
    if sample.dtype.is_floating_point:
        return -sample
    return ~sample


def _zeros(sample: Any, odd: bool) -> Any:
    return sample.new_zeros(sample.shape)


def _ones(sample: Any, odd: bool) -> Any:
    return sample.new_ones(sample.shape)


def _negative(sample: Any, odd: bool) -> Any:
    return -sample.abs() if sample.dtype.is_floating_point else sample


def _large(sample: Any, odd: bool) -> Any:
    """Of several inputs every second one is small, so that each is compared as the larger and as the smaller one."""
    return _scaled(sample, large=not odd)


def _small(sample: Any, odd: bool) -> Any:
    return _scaled(sample, large=odd)


def _scaled(sample: Any, *, large: bool) -> Any:
    if sample.dtype.is_floating_point:
        return sample * (_LARGE if large else _SMALL)
    return _ones(sample, large) if large else _zeros(sample, large)


def _is_bool(sample: Any) -> bool:
    return str(sample.dtype) == "torch.bool"


_ORDERS: Final[tuple[tuple[str, _Change], ...]] = (
    ("the same numbers in another order", _other),
    ("the same numbers in reverse", _reversed),
)
"""The kinds of samples where all numbers are whole."""

_KINDS: Final[tuple[tuple[str, _Change], ...]] = (
    ("other random numbers", _other),
    ("the same numbers in reverse", _reversed),
    ("the same numbers negated", _negated),
    ("zeros", _zeros),
    ("ones", _ones),
    ("negative numbers", _negative),
    ("large numbers", _large),
    ("small numbers", _small),
)
"""What a probe is called, and what makes it of a sample; of an input at an odd place perhaps otherwise."""
