"""Model Analyzer's files: its configuration as it is written, and its tables.

Source: triton-model-analyzer 1.58, its documentation and what its own classes make of such files.
"""
