"""Models whose instances are objects of the script that started the server."""
