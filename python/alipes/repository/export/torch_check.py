"""Whether what torch wrote gives a model's numbers for any input, and if not, why.

A trace keeps what its own sample took: a branch, a number that was read out of a tensor, a size. One more sample finds
that by chance, samples of several kinds find it every time, and a proof makes most of them needless.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, TypeAlias

import numpy as np

from alipes.errors import ExportError
from alipes.progress.work import current
from alipes.repository.export.compare import Difference, find_difference, judged
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.rows import Call, check_rows
from alipes.repository.export.torch_probes import Probe, Written, probes_of
from alipes.repository.export.torch_source import Traced, outputs_of, to_numpy

__all__ = ["Run", "check_traced", "run_like_module"]

Run: TypeAlias = "Callable[[tuple[Any, ...]], list[np.ndarray]]"
"""Runs what was written on a tensor for each argument."""

_log = logging.getLogger(__name__)

_NUDGES: Final = 5
_NUDGE: Final = 8.0
"""By how many units in the last place inputs are changed, and how often, to see how much a model makes of rounding."""

_ROUNDING: Final = 8.0
"""An engine rounds in every step of a model: so many times what a model makes of changes of its input."""

_RANDOM_ADVICE: Final = (
    "what is random in forward belongs to training (functional.dropout takes training=self.training); check=False "
    "publishes it as it is"
)


def check_traced(traced: Traced, run: Run, request: ExportRequest, written: Written) -> None:
    """Compare what was written with the model, on samples of several kinds. Call it inside `inference_mode`.

    Args:
        traced: The model.
        run: Runs what was written.
        request: What the export was asked for.
        written: What it wrote, which decides how many kinds are needed.

    Raises:
        ExportError: If they differ: with the cause, the size of the difference, and what to do.
    """
    current().step("running the exported file")
    with judged(request):
        for probe in probes_of(traced, written):
            _check(traced, run, probe, request)
    check_rows(request, _call(traced, request))


def run_like_module(exported: Any) -> Run:
    """Runs what can be called like the model itself."""

    def run(samples: tuple[Any, ...]) -> list[np.ndarray]:
        return [to_numpy(one) for one in outputs_of(exported(*samples))]

    return run


def _call(traced: Traced, request: ExportRequest) -> Call:
    """Calls the model on arrays by name."""
    torch: Any = import_module("torch")
    order = [traced.outputs.index(tensor.name) for tensor in request.config.output]

    def call(arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        pairs = zip(traced.inputs, traced.samples, strict=True)
        tensors = [torch.as_tensor(arrays[name]).to(sample.device, sample.dtype) for name, sample in pairs]
        found = [to_numpy(one) for one in outputs_of(traced.module(*tensors))]
        return [found[at] for at in order]

    return call


def _check(traced: Traced, run: Run, probe: Probe, request: ExportRequest) -> None:
    export = f"export of model '{request.config.name}'"
    if probe.answer is None:
        expected = _answer(traced, probe.samples, may_fail=probe.invented)
    else:
        expected = [to_numpy(one) for one in probe.answer]
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


def _explanation(probe: Probe, difference: Difference) -> str:
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


def _rounding(traced: Traced, probe: Probe) -> list[float]:
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
