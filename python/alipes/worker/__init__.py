"""The process that runs a model's `model.py`: started by the server, one for each instance, ended when it is gone.

`bootstrap` is the script that is started, `main` what it does, `executor` what the
link calls. `triton` holds what a model file finds
under `import triton_python_backend_utils`.
"""
