"""Models whose state the server keeps: their tensors and parameters define the computation."""
