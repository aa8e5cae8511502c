"""Fuzzers of what Python reads from outside: configurations, and what load requests bring along.

The gate replays them (`tests/property/test_fuzzers.py`); `make fuzz` searches with atheris (`support.fuzzing.search`).
"""
