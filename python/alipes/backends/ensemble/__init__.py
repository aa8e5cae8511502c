"""Models that are made of other models."""
