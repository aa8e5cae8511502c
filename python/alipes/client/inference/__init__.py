"""A client for streams of requests: sequences whose state the server keeps, answered in order.

`signature` tells what a model takes, `reader` makes tensors of what a caller gives, `lines` keeps the order, `link`
talks to the server and recovers what broke, `answers` holds what nobody has taken yet, `client` puts them together.
"""
