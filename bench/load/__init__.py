"""The load tools, and the requests that they send."""
