"""Servers on machines that are rented: clusters of Kubernetes (`kubernetes`) and of Google Cloud (`google`)."""
