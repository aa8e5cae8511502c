"""Native steps: pictures into tensors, numbers into labels; the data plane computes them, and there is no file."""
