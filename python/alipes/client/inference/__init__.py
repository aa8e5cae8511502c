"""Clients for streams of requests: sequences whose state the server keeps, answered in order.

`stream_signature` reads a model's inputs, `reader` and `signature_reader` make tensors of arrays, `sequence_queue` has
the order, `link` keeps the stream to the server and restores it after failures, `recovery` has the policy and the
errors for that, `answers` queues responses, `answer_source` delivers them to a caller, and `request_stream` composes
all of these. `stream_client` is its face in the words of `Client`, `client` the one in the words of hermes.
"""
