"""What a place on the network may send, and how long it may take. A store's author is not trusted with this machine."""

from __future__ import annotations

from typing import Final

MAX_FILES: Final = 100_000
"""Files, folders and links of an archive: a model has some hundreds, and a bomb has millions of empty ones."""

MAX_DEPTH: Final = 64
"""Folders of an archive inside one another; systems refuse paths of 4096 bytes in ways of their own."""

MAX_NAME_BYTES: Final = 1024
"""Length of a path in an archive."""

MAX_EXPANSION: Final = 100
"""Bytes that a byte of an archive may become. Weights shrink by less than 2, and text by about 10."""

FREE_EXPANSION_BYTES: Final = 1 << 30
"""Bytes that an archive may always become: a small one with a text of zeros is no attack."""

FREE_SHARE: Final = 0.9
"""Part of the free space of a disk that a store may fill: servers, logs and other models need the rest."""

SILENCE_S: Final = 20.0
"""Seconds without a byte after which a connection is given up; less than a server takes to stop."""

SLOWEST_BYTES_PER_S: Final = 1024
"""Rate below which a download is given up, measured over `PACE_WINDOW_S`: one byte now and then is no progress."""

PACE_WINDOW_S: Final = 120.0
"""Seconds over which the rate of a download is measured."""

ATTEMPTS: Final = 5
"""Connections in a row that may break off without a byte of progress."""

PAUSE_S: Final = 0.5
"""Seconds before the second attempt; each further one waits twice as long."""

RETRY_S: Final = 30.0
"""Seconds in which a store that could not be fetched is not asked again."""

MAX_DOCUMENT_BYTES: Final = 4 << 20
"""Bytes of a manifest or another document. Source: OCI distribution specification, which suggests as much."""

MAX_LAYERS: Final = 1000
"""Layers of an image."""
