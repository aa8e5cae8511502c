"""A client for streams of requests: sequences whose state the server keeps, answered in order.

`stream_signature` reads a model's inputs, `reader` makes tensors of arrays, `sequence_queue` keeps the order, `link`
has the stream to the server and restores it after failures, `recovery` has the policy and the errors for that,
`answers` queues responses, `answer_source` delivers them to a caller, and `client` composes all of these.
"""
