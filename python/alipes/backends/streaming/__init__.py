"""Models whose state the server keeps: what they compute is told by their tensors and parameters alone."""
