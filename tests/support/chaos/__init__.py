"""Trouble for a server under load, and the account of what became of every request."""
