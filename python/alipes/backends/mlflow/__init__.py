"""The MLflow backend: model folders, run by the framework that each names."""
