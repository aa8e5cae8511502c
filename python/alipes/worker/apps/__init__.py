"""Functions and classes as models: what `@alipes.model` marks, and the program that answers requests with it.

`decorator` marks, `plan` reads the annotations, `documents` and `tensors` turn requests into arguments and values into
responses, `program` is what a worker runs, `describe` what the control plane asks of an app before it serves it.
"""
