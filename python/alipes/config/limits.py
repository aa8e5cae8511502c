"""Bounds on what a configuration may ask for; a load request can bring one, so they hold for outside input."""

from __future__ import annotations

from typing import Final

__all__ = [
    "MAX_ABANDONED_OF_MODEL",
    "MAX_ABANDONED_STEPS",
    "MAX_COMPLETION_BYTES",
    "MAX_ENSEMBLE_DEPTH",
    "MAX_ENVIRONMENT_BYTES",
    "MAX_ENVIRONMENT_FILES",
    "MAX_INSTANCES",
    "MAX_OVERRIDE_DEPTH",
    "MAX_OVERRIDE_FILES",
    "MAX_PICTURE_PIXELS",
    "MAX_PICTURE_SIDE",
    "MAX_REVERT_AFTER_S",
    "MAX_STEPS",
    "MAX_STEP_TENSORS",
    "MAX_TEXT_BYTES",
    "MAX_THREADS",
    "PICTURE_PIXELS",
    "TEXT_BYTES",
]

MAX_INSTANCES: Final = 1024
"""Most instances of a model: each holds a copy of it, and no machine has more cores to run them on."""

MAX_THREADS: Final = 1024
"""Most threads of an engine for one model: more than any machine has cores is a slip of the pen."""

MAX_STEPS: Final = 1024
"""Most steps of an ensemble: pipelines have a handful, and what is checked of a graph grows faster than its steps."""

MAX_STEP_TENSORS: Final = 1024
"""Most inputs, and most outputs, of one step: every output follows from every input, and all of these are looked at."""

MAX_ENSEMBLE_DEPTH: Final = 32
"""Most ensembles that stand one within the other: each costs a request a few frames of the stack."""

MAX_COMPLETION_BYTES: Final = 1 << 24
"""Longest answer of the process that completes a configuration, log lines included: the model's code writes it."""

MAX_ENVIRONMENT_BYTES: Final = 1 << 36
"""Most bytes that an archive of a Python environment may unpack to; large ones with CUDA take a tenth of it."""

MAX_ENVIRONMENT_FILES: Final = 2_000_000
"""Most files in an archive of a Python environment; large ones have a tenth of it."""

MAX_OVERRIDE_FILES: Final = 10_000
"""Most files that one load request may bring: large models have a few hundred, and each costs the disk an entry."""

MAX_OVERRIDE_DEPTH: Final = 32
"""Most parts of the path of such a file: deeper folders are no model's, and the system's paths have an end."""

MAX_REVERT_AFTER_S: Final = 3600
"""Longest time that a provisional load stays without a word from the client that tries it: a lunch, and no night."""

MAX_ABANDONED_OF_MODEL: Final = 4
"""Most loads of one model that may hang for good after they were ended: each keeps a thread, and the next hangs too."""

MAX_ABANDONED_STEPS: Final = 64
"""Most loads of all models that may do so."""

MAX_PICTURE_SIDE: Final = 1 << 14
"""Longest side in pixels that a picture is resized or cropped to: networks take some hundred."""

PICTURE_PIXELS: Final = 50_000_000
"""Most pixels of a picture where the model does not say it: those of the largest telephone cameras. Decoding takes up
to eight bytes for each, and the result three."""

MAX_PICTURE_PIXELS: Final = 1 << 30
"""Most pixels that a model may allow: decoding as many takes eight gigabytes."""

TEXT_BYTES: Final = 1 << 18
"""Longest text in bytes where a tokenizer's model does not say it: some 60,000 tokens, more than networks take."""

MAX_TEXT_BYTES: Final = 1 << 24
"""Longest text in bytes that such a model may allow: it takes seconds, and a hundred times its size in memory."""
