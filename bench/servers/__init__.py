"""The servers that are measured: alipes, the floors and the peers."""
