"""Models of XGBoost."""
