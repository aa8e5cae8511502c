"""What can run a model, what it needs from this machine, and how it prepares a version for the data plane."""
