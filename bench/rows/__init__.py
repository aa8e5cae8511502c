"""The rows of the table: what is sent, how, and what must be reached."""
