"""Samples on which what was written of a PyTorch model is compared with it: the traced one, other numbers, other sizes.

How many kinds of numbers depends on how much could go wrong: all of them where the model may branch on its input, or is
small; few where a large one is proved not to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Any, Final, TypeAlias

from alipes.repository.export.torch_proof import reads_no_numbers
from alipes.repository.export.torch_source import Traced

__all__ = ["Probe", "Written", "probes_of"]

_Change: TypeAlias = "Callable[[Any, bool], Any]"
"""Makes a probe's sample of a sample; the flag says whether its place among the inputs is odd."""

_LARGE: Final = 1e4
_SMALL: Final = 1e-4

_ADVICE: Final = "tolerance= allows more, check=False does not compare"
_DATA_ADVICE: Final = (
    "torch.where instead of an if, tensors instead of float() and .item() keep it general; torch.jit.script(model) "
    "keeps its branches; check=False publishes the trace as it is"
)
_SIZE_ADVICE: Final = (
    "take sizes from the tensor, as x.shape[0], in tensor operations rather than in numbers of Python, or give the "
    "input a fixed shape; check=False publishes the trace as it is"
)

_COSTLY: Final = 1 << 18
"""From so many numbers in inputs, outputs and weights on it is cheaper to prove that a model does not branch on its
input than to run it, and what was written, on all kinds."""


class Written(Enum):
    """What was written of a model."""

    RECORDED = "its operations, for the framework that ran them"
    TRANSLATED = "its operations, for another framework"
    MADE = "code that makes another model"


@dataclass(frozen=True, slots=True)
class Probe:
    """Samples to compare on.

    Attributes:
        name: What they are, for messages.
        samples: A tensor for each argument.
        cause: What is wrong where the file differs here, and not on what came before.
        advice: What to do about it.
        invented: Whether nobody may ever send such an input.
        answer: What the model gave for them; None where it was not asked yet.
    """

    name: str
    samples: tuple[Any, ...]
    cause: str
    advice: str
    invented: bool
    answer: tuple[Any, ...] | None = None


def probes_of(traced: Traced, written: Written) -> Iterator[Probe]:
    """What was traced comes first, then other numbers, then other sizes: so the first that differs names the cause."""
    own = "the sample that it was made with"
    yield Probe(own, traced.samples, "", _ADVICE, invented=False, answer=traced.results)
    for name, change in _kinds(traced, written):
        samples = tuple(
            (change if _is_free(sample) else _ordered(change))(sample, bool(place % 2))
            for place, sample in enumerate(traced.samples)
        )
        yield Probe(name, samples, "the trace depends on its input", _DATA_ADVICE, invented=True)
    for at, samples in enumerate(traced.resized):
        shapes = " and ".join(str(list(sample.shape)) for sample in samples)
        cause = "the trace depends on the size of its input"
        answer = None if at else traced.resized_results
        yield Probe(f"an input of shape {shapes}", samples, cause, _SIZE_ADVICE, invented=at > 0, answer=answer)


def _kinds(traced: Traced, written: Written) -> Sequence[tuple[str, _Change]]:
    """All kinds, unless that costs much and a proof says more.

    An operation that was recorded gives the same again for any numbers. A translated one may still be another operation
    for numbers of some kinds.
    """
    kinds = _KINDS if any(_is_free(sample) for sample in traced.samples) else _ORDERS
    if written is Written.MADE or _size(traced) < _COSTLY or not reads_no_numbers(traced.module, traced.samples):
        return kinds
    return [one for one in kinds if one[1] is _other or (written is Written.TRANSLATED and one[1] in _TELLING)]


def _size(traced: Traced) -> int:
    """Numbers in inputs, outputs and weights."""
    weights = (*traced.module.parameters(), *traced.module.buffers())
    return sum(one.numel() for one in (*traced.samples, *traced.results, *weights))


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

_TELLING: Final = (_reversed, _negated, _zeros, _large)
"""Where an operation has signs, limits and places without a value: what else there is lies between these."""
