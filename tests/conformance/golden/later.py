"""What the replay leaves out until the feature that it needs is there, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# Models that cannot load yet, by repository; the copy that is served does without them.
LATER_MODELS: Mapping[str, Sequence[str]] = {"basic": ("echo", "facts", "optional", "slow")}

LATER: Mapping[str, str] = {}
