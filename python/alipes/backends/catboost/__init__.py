"""Models of CatBoost."""
