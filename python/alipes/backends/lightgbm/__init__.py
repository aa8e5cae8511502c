"""Models of LightGBM."""
