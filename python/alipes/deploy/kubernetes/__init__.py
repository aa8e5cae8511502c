"""The objects of Kubernetes that a description stands for, as plain documents."""
