"""The running service: start and stop, the lifecycle of models, and requests to change it."""
