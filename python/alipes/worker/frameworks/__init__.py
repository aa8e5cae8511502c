"""What runs the files of frameworks in a worker: one module for each framework, which opens a file and runs batches.

Such a module is a *program*: it has a function `open_model`, which takes an `Opening` and gives an `OpenedModel`
(`opened`). `runner` does the rest, the same for all: it gathers requests and splits answers. A program imports its
framework, numpy, and of this package nothing but `alipes.signature` and `alipes.worker`, since it may run in an
environment that has no more. Programs of other packages work in the same way.
"""
