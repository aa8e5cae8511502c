"""Sweeps of whole spaces, recorded on real servers, and searches replayed on them with the noise that was recorded."""
