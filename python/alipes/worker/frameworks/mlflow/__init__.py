"""Models that MLflow has saved: which framework each is of, and functions of Python."""
