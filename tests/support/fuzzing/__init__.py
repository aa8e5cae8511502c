"""Fuzzers of what Python reads from outside: configurations, and what load requests bring along.

The gate replays them (`tests/property/test_fuzzed_configurations.py`); `make fuzz` searches with atheris
(`support.fuzzing.search`).
"""
