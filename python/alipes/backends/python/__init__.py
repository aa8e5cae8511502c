"""Models that are Python code: each instance runs in a process of its own, in any environment of Python 3.11 or newer.

Here is what the server does before such a process starts: find its interpreter, unpack its environment, have the model
complete its configuration, and write the setup of the process. Frameworks with Python bindings are further
backends on the same processes.
"""
