"""``python -m alipes``: the same as the command ``alipes``."""

from alipes.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
