"""Stores that lie elsewhere: read over the network, checked, and held in a cache that servers share."""
