"""What can run a model, and where the engine's library is."""
