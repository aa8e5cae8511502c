"""What several test folders share: a running server, and models to serve."""
