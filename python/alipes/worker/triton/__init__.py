"""What a model file finds under ``import triton_python_backend_utils``, by the names that Triton gave it.

The classes that carry tensors are of `alipes._core`; here is the rest. `install` puts both where imports find them.
"""
