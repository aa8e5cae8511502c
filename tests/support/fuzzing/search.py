"""Searches with atheris for inputs that reach new code: `python -m support.fuzzing.search NAME FOLDER SECONDS`.

libFuzzer, which atheris is made of, prints what it finds; `tools/fuzz` reads it. A crash is a file in FOLDER/crashes.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

WORDS_FILE = "words"


def main() -> None:
    """Runs the fuzzer until its time is up or an input breaks a promise."""
    name, folder, seconds = sys.argv[1], Path(sys.argv[2]) / sys.argv[1], sys.argv[3]
    atheris = _atheris()
    with atheris.instrument_imports(include=["alipes", "google.protobuf"]):
        from support.fuzzing.fuzzers import FUZZERS, WORDS, vectors
    fuzzer = next(fuzzer for fuzzer in FUZZERS if fuzzer.name == name)
    corpus, crashes = folder / "corpus", folder / "crashes"
    for made in (corpus, crashes):
        made.mkdir(parents=True, exist_ok=True)
    for seed in (*fuzzer.seeds(), *vectors(name)):
        (corpus / f"seed-{hashlib.sha256(seed).hexdigest()[:16]}").write_bytes(seed)
    (folder / WORDS_FILE).write_text("".join(f'"{word}"\n' for word in WORDS), encoding="utf-8")
    arguments = [
        sys.argv[0],
        str(corpus),
        f"-max_total_time={seconds}",
        f"-artifact_prefix={crashes}/",
        f"-dict={folder / WORDS_FILE}",
        "-print_final_stats=1",
        "-timeout=20",
        "-rss_limit_mb=2048",
    ]
    atheris.Setup(arguments, fuzzer.check)
    atheris.Fuzz()


def _atheris() -> Any:
    """The module, which is no requirement of the tests."""
    import atheris  # type: ignore[import-not-found, unused-ignore]

    return atheris


if __name__ == "__main__":
    main()
