"""What `alipes help TOPIC` prints: texts to which messages lead, so that none names a page of the sources."""

from __future__ import annotations

from pathlib import Path

__all__ = ["topic_text", "topics"]

_FOLDER = Path(__file__).parent


def topics() -> dict[str, str]:
    """Every topic, with its first line."""
    return {file.stem: file.read_text(encoding="utf-8").partition("\n")[0] for file in sorted(_FOLDER.glob("*.txt"))}


def topic_text(name: str) -> str | None:
    """The text of a topic; None where there is no such topic."""
    return (_FOLDER / f"{name}.txt").read_text(encoding="utf-8") if name in topics() else None
