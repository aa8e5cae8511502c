"""Container images of the server, written without a container engine and without a base image."""
