"""A stream whose frames arrive as files: each is sent, answered and written before the next one is there."""
