"""The models that are measured, and the model repository that holds them."""
