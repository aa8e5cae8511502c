"""A client for streams of requests: sequences whose state the server keeps, answered in order.

`signature` reads a model's inputs, `reader` makes tensors of arrays, `sequence_queue` keeps the order, `link` talks to
the server and recovers broken streams, `answers` queues responses until they are taken, `client` composes them.
"""
