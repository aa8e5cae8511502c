"""One file for each protocol: sends the request of a step, returns the answer in the form of the expectation."""
